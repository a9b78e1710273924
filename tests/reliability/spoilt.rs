//! Damages an ONNX file where it matters: most of its bytes are weights, and the structure between them decides what
//! happens.

use std::ops::Range;

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, encode_varint, skip_field};

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
const GRAPH: u32 = 7;
/// Raw data of at least this many bytes is weights; shorter data is shapes and axes.
const WEIGHTS: usize = 65;
/// Words with a meaning in a graph, written over others; between bars.
const WORDS: &[u8] = b"Loop|If|Gather|MatMul|Reshape|Gemm|logits|hidden|articles|\xff\xff\xff\x7f|\x00|\
                       \x80\x80\x80\x80|ai.onnx|batch";
/// Extreme numbers in float32.
const NUMBERS: [u32; 6] = [0x7f80_0000, 0xff80_0000, 0x7f7f_ffff, 0x7fc0_0000, 0x0000_0001, 0xffff_ffff];

impl Whole {
    pub fn new(bytes: Vec<u8>) -> Self {
        const INITIALIZER: u32 = 5;
        const RAW_DATA: u32 = 9;
        let place = |part: &[u8]| {
            let start = part.as_ptr().addr() - bytes.as_ptr().addr();
            start..start + part.len()
        };
        let graph = find(&bytes, GRAPH).remove(0);
        let tensors = find(graph, INITIALIZER).into_iter();
        let raw = tensors.flat_map(|tensor| find(tensor, RAW_DATA)).map(place);
        let weights: Vec<Range<usize>> = raw.filter(|raw| raw.len() >= WEIGHTS).collect();
        let starts = [0].into_iter().chain(weights.iter().map(|raw| raw.end));
        let ends = weights.iter().map(|raw| raw.start).chain([bytes.len()]);
        let structure = starts.zip(ends).map(|(start, end)| start..end).collect();
        let parts = fields(graph).into_iter().map(|field| place(field.whole)).collect();
        let content = place(graph);
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
            1 => bytes[place] = u8::try_from(chance.below(256)).expect("below 256"),
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

/// A field of a message: its bytes, and those of its text or message.
struct Field<'a> {
    number: u32,
    whole: &'a [u8],
    content: &'a [u8],
}

fn fields(message: &[u8]) -> Vec<Field<'_>> {
    const SOUND: &str = "the file is sound";
    let (mut rest, mut fields) = (message, Vec::new());
    while !rest.is_empty() {
        let begin = rest;
        let (number, kind) = decode_key(&mut rest).expect(SOUND);
        let mut content = &rest[..0];
        if kind == WireType::LengthDelimited {
            let length = decode_varint(&mut rest).expect(SOUND);
            (content, rest) = rest.split_at(usize::try_from(length).expect(SOUND));
        } else {
            skip_field(kind, number, &mut rest, DecodeContext::default()).expect(SOUND);
        }
        fields.push(Field { number, whole: &begin[..begin.len() - rest.len()], content });
    }
    fields
}

/// The contents of the fields with a number.
fn find(message: &[u8], number: u32) -> Vec<&[u8]> {
    let found = fields(message).into_iter().filter(|field| field.number == number);
    found.map(|field| field.content).collect()
}

/// A length as protobuf writes it.
fn varint(length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(length as u64, &mut bytes);
    bytes
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
    unreachable!("it is below the sum of their lengths")
}
