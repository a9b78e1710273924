//! Damages an ONNX file where it matters: most of its bytes are weights, and the structure between them decides what
//! happens.

#[path = "../../crates/engine/src/inference/protobuf.rs"]
#[expect(dead_code, unused_imports, reason = "the engine needs more of it, and tests it")]
mod protobuf;

use std::ops::Range;

use self::protobuf::{Field, valid_fields};
use crate::chance::Chance;

/// A sound file, and the places of its structure: everything but the weights.
pub struct Whole {
    bytes: Vec<u8>,
    structure: Vec<Range<usize>>,
    weights: Vec<Range<usize>>,
    /// The graph field with its tag and length, and each field of the graph.
    graph: Range<usize>,
    parts: Vec<Range<usize>>,
}

/// The field of a model that holds its graph.
const GRAPH: u64 = 7;
/// Raw data of at least this many bytes is weights; shorter data is shapes and axes.
const WEIGHTS: usize = 65;
/// Words with a meaning in a graph, written over others; between bars.
const WORDS: &[u8] = b"Loop|If|Gather|MatMul|Reshape|Gemm|logits|hidden|articles|\xff\xff\xff\x7f|\x00|\
                       \x80\x80\x80\x80|ai.onnx|batch";
/// Extreme numbers in float32.
const NUMBERS: [u32; 6] = [0x7f80_0000, 0xff80_0000, 0x7f7f_ffff, 0x7fc0_0000, 0x0000_0001, 0xffff_ffff];

impl Whole {
    pub fn new(bytes: Vec<u8>) -> Self {
        const INITIALIZER: u64 = 5;
        const RAW_DATA: u64 = 9;
        let place = |part: &[u8]| {
            let start = part.as_ptr().addr() - bytes.as_ptr().addr();
            start..start + part.len()
        };
        let graph = find(&bytes, GRAPH).remove(0);
        let mut weights = Vec::new();
        for tensor in find(content(&graph), INITIALIZER) {
            let raw = find(content(&tensor), RAW_DATA).into_iter().map(|field| place(content(&field)));
            weights.extend(raw.filter(|raw| raw.len() >= WEIGHTS));
        }
        let starts = [0].into_iter().chain(weights.iter().map(|raw| raw.end));
        let ends = weights.iter().map(|raw| raw.start).chain([bytes.len()]);
        let structure = starts.zip(ends).map(|(start, end)| start..end).collect();
        let content = place(content(&graph));
        // The fields of the graph, one after the other: each ends where what is left of it begins.
        let mut parts = Vec::new();
        let mut from = content.start;
        while from < content.end {
            let rest = &bytes[from..content.end];
            let length = (1..=rest.len()).find(|length| valid_fields(&rest[..*length]).count() == 1);
            let end = from + length.expect("the file is sound; this is a bug");
            parts.push(from..end);
            from = end;
        }
        // With its tag of one byte and its length.
        let graph = content.start - 1 - varint(content.len()).len()..content.end;
        Self { bytes, structure, weights, graph, parts }
    }

    /// Damages a copy in one to four places.
    pub fn spoilt(&self, chance: &mut Chance) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        // Moving bytes comes last, and once: the places are those of the sound file.
        for _ in 0..=chance.below(3) {
            match chance.below(8) {
                0..5 => self.write_over(&mut bytes, chance),
                5 => self.change_a_weight(&mut bytes, chance),
                6 => return self.with_parts_moved(&bytes, chance),
                _ => return chance.spoil(&[bytes]),
            }
        }
        bytes
    }

    /// Overwrites bytes of the structure; lengths stay right.
    fn write_over(&self, bytes: &mut [u8], chance: &mut Chance) {
        let place = within(&self.structure, chance);
        let end = |length: usize| (place + length).min(bytes.len());
        match chance.below(4) {
            0 => bytes[place] ^= 1 << chance.below(8),
            1 => bytes[place] = u8::try_from(chance.below(256)).expect("below 256; this is a bug"),
            2 => {
                let word = chance.word(WORDS);
                let own = place..end(word.len());
                let length = own.len();
                bytes[own].copy_from_slice(&word[..length]);
            }
            _ => {
                let length = 1 + chance.below(16);
                let from = within(&self.structure, chance).min(bytes.len() - length);
                let to = place.min(bytes.len() - length);
                bytes.copy_within(from..from + length, to);
            }
        }
    }

    fn change_a_weight(&self, bytes: &mut [u8], chance: &mut Chance) {
        let place = within(&self.weights, chance) & !3;
        let number = chance.one(&NUMBERS).to_le_bytes();
        if let Some(weight) = bytes.get_mut(place..place + 4) {
            weight.copy_from_slice(&number);
        }
    }

    /// Removes, repeats or swaps a node, a weight, an input or an output of the graph.
    fn with_parts_moved(&self, bytes: &[u8], chance: &mut Chance) -> Vec<u8> {
        let mut parts = self.parts.clone();
        let (one, other) = (chance.below(parts.len()), chance.below(parts.len()));
        match chance.below(3) {
            0 => drop(parts.remove(one)),
            1 => parts.insert(other, parts[one].clone()),
            _ => parts.swap(one, other),
        }
        let graph: Vec<u8> = parts.into_iter().flat_map(|part| &bytes[part]).copied().collect();
        // The file's own tag, of one byte, stays: it may be spoilt already.
        let length = varint(graph.len());
        [&bytes[..=self.graph.start], &length, &graph, &bytes[self.graph.end..]].concat()
    }
}

fn find(message: &[u8], number: u64) -> Vec<Field<'_>> {
    valid_fields(message).filter(|field| field.number == number).collect()
}

/// A length as protobuf writes it.
fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7f).expect("seven bits; this is a bug") | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).expect("seven bits; this is a bug"));
    bytes
}

fn content<'a>(field: &Field<'a>) -> &'a [u8] {
    field.bytes().expect("a message or text; this is a bug")
}

/// A random place in one of the ranges; every byte is equally likely.
fn within(ranges: &[Range<usize>], chance: &mut Chance) -> usize {
    let mut place = chance.below(ranges.iter().map(ExactSizeIterator::len).sum());
    for range in ranges {
        if place < range.len() {
            return range.start + place;
        }
        place -= range.len();
    }
    unreachable!("it is below the sum of their lengths; this is a bug")
}
