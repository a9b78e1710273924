//! An ONNX file spoilt where it hurts: most of its bytes are weights, and what stands between them decides what
//! happens.

use std::ops::Range;

use crate::chance::Chance;

/// A whole file, and where its structure lies: all but the weights.
pub struct Whole {
    bytes: Vec<u8>,
    structure: Vec<Range<usize>>,
    weights: Vec<Range<usize>>,
    /// The graph with its tag and length, and each of its fields.
    graph: Range<usize>,
    parts: Vec<Range<usize>>,
}

/// Raw data of so many bytes is weights; shorter ones are shapes and axes.
const WEIGHTS: usize = 65;
/// Words that mean something in a graph, each written over another one's place.
const WORDS: [&[u8]; 14] = [
    b"Loop",
    b"If",
    b"Gather",
    b"MatMul",
    b"Reshape",
    b"Gemm",
    b"logits",
    b"hidden",
    b"articles",
    b"\xff\xff\xff\x7f",
    b"\x00",
    b"\x80\x80\x80\x80",
    b"ai.onnx",
    b"batch",
];
/// Numbers that arithmetic does not expect, in float32.
const NUMBERS: [u32; 6] = [0x7f80_0000, 0xff80_0000, 0x7f7f_ffff, 0x7fc0_0000, 0x0000_0001, 0xffff_ffff];

impl Whole {
    pub fn new(bytes: Vec<u8>) -> Self {
        const GRAPH: u64 = 7;
        const INITIALIZER: u64 = 5;
        const RAW_DATA: u64 = 9;
        let of = |within: &Range<usize>, wanted: u64| -> Vec<Field> {
            let found = fields(&bytes, within.clone()).into_iter();
            found.filter(|field| field.number == wanted).collect()
        };
        let graph = of(&(0..bytes.len()), GRAPH).remove(0);
        let mut weights = Vec::new();
        for tensor in of(&graph.payload, INITIALIZER) {
            let raw = of(&tensor.payload, RAW_DATA).into_iter().map(|field| field.payload);
            weights.extend(raw.filter(|raw| raw.len() >= WEIGHTS));
        }
        let mut structure = Vec::new();
        let mut from = 0;
        for raw in &weights {
            structure.push(from..raw.start);
            from = raw.end;
        }
        structure.push(from..bytes.len());
        let parts = fields(&bytes, graph.payload).into_iter().map(|field| field.whole).collect();
        Self { bytes, structure, weights, graph: graph.whole, parts }
    }

    /// Spoilt in one to four places.
    pub fn spoilt(&self, chance: &mut Chance) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        // What moves bytes comes last, and once: places are the whole file's.
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

    /// Other bytes in the place of some of the structure's: lengths still say where what ends.
    fn write_over(&self, bytes: &mut [u8], chance: &mut Chance) {
        let place = within(&self.structure, chance);
        let end = |length: usize| (place + length).min(bytes.len());
        match chance.below(4) {
            0 => bytes[place] ^= 1 << chance.below(8),
            1 => bytes[place] = u8::try_from(chance.below(256)).expect("below 256; this is a bug"),
            2 => {
                let word = WORDS[chance.below(WORDS.len())];
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
        let number = NUMBERS[chance.below(NUMBERS.len())].to_le_bytes();
        if let Some(weight) = bytes.get_mut(place..place + 4) {
            weight.copy_from_slice(&number);
        }
    }

    /// A node, a weight, an input or an output of the graph left out, there twice, or in another's place.
    fn with_parts_moved(&self, bytes: &[u8], chance: &mut Chance) -> Vec<u8> {
        let mut parts = self.parts.clone();
        let (one, other) = (chance.below(parts.len()), chance.below(parts.len()));
        match chance.below(3) {
            0 => drop(parts.remove(one)),
            1 => parts.insert(other, parts[one].clone()),
            _ => parts.swap(one, other),
        }
        let graph: Vec<u8> = parts.into_iter().flat_map(|part| &bytes[part]).copied().collect();
        // The graph's own tag, of one byte, stays; its length is written anew.
        [&bytes[..=self.graph.start], &varint(graph.len()), &graph, &bytes[self.graph.end..]].concat()
    }
}

/// A place in one of the ranges, any byte of them alike.
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

/// A field of a protobuf message: where it lies, and where what it holds lies.
struct Field {
    number: u64,
    whole: Range<usize>,
    payload: Range<usize>,
}

/// Of a message that is sound: the files that are spoilt are.
fn fields(bytes: &[u8], message: Range<usize>) -> Vec<Field> {
    let mut found = Vec::new();
    let mut at = message.start;
    while at < message.end {
        let start = at;
        let key = number(bytes, &mut at);
        let length = match key & 7 {
            0 => {
                number(bytes, &mut at);
                0
            }
            1 => 8,
            2 => usize::try_from(number(bytes, &mut at)).expect("a length; this is a bug"),
            5 => 4,
            other => unreachable!("a sound file has no wire type {other}; this is a bug"),
        };
        let payload = at..at + length;
        at += length;
        found.push(Field { number: key >> 3, whole: start..at, payload });
    }
    found
}

fn number(bytes: &[u8], at: &mut usize) -> u64 {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = bytes[*at];
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).expect("seven bits; this is a bug") | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).expect("seven bits; this is a bug"));
    bytes
}
