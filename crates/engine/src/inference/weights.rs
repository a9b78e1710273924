//! Finds numbers among an ONNX file's weights with which nothing can be computed.
//!
//! A NaN or an infinity in one article's row spoils only the outfits with that article. The trial questions would miss
//! it, and customers would not. So all constants of the file are searched, as bytes: initialisers, those inside operators,
//! and those of loops, branches and functions. Malformed files are ONNX Runtime's to report.
//!
//! A mask is not a row: exporters write attention masks as tables of one number and infinity, and single infinities as
//! limits.

use std::collections::BTreeSet;

use super::protobuf::{Field, Value, is_valid, valid_fields};
use crate::tables::LARGEST;

/// Values of `TensorProto.DataType` that can be NaN.
const FLOAT: u64 = 1;
const FLOAT16: u64 = 10;
const DOUBLE: u64 = 11;
const BFLOAT16: u64 = 16;

/// Bodies within bodies; deeper ones are not searched.
const DEPTH: u32 = 32;

/// What the search has found.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    /// The name of the first weight that is unsound, and what it holds.
    pub(super) unsound: Option<(String, String)>,
    /// The names of other files with weights, which were not searched.
    pub(super) elsewhere: BTreeSet<String>,
    /// Whether a part was not searched: it is malformed, or too deep.
    pub(super) unread: bool,
}

pub(super) fn search(model: &[u8]) -> Found {
    const GRAPH: u64 = 7;
    const FUNCTION: u64 = 25;
    const FUNCTION_NODE: u64 = 7;
    let mut found = Found::default();
    for (number, message) in messages(model, &mut found) {
        match number {
            GRAPH => search_graph(message, DEPTH, &mut found),
            FUNCTION => {
                let nodes = messages(message, &mut found);
                let nodes = nodes.into_iter().filter(|(number, _)| *number == FUNCTION_NODE);
                nodes.for_each(|(_, node)| search_node(node, DEPTH, &mut found));
            }
            _ => {}
        }
    }
    found
}

/// The fields that may be messages, and their numbers. Notes whether a part cannot be read.
fn messages<'a>(message: &'a [u8], found: &mut Found) -> Vec<(u64, &'a [u8])> {
    found.unread |= !is_valid(message);
    valid_fields(message).filter_map(|field| Some((field.number, field.bytes()?))).collect()
}

fn search_graph(graph: &[u8], depth: u32, found: &mut Found) {
    const NODE: u64 = 1;
    const INITIALIZER: u64 = 5;
    const SPARSE_INITIALIZER: u64 = 15;
    for (number, message) in messages(graph, found) {
        match number {
            NODE => search_node(message, depth, found),
            INITIALIZER => search_tensor(message, found),
            SPARSE_INITIALIZER => search_sparse(message, found),
            _ => {}
        }
    }
}

fn search_sparse(sparse: &[u8], found: &mut Found) {
    const VALUES: u64 = 1;
    const INDICES: u64 = 2;
    let tensors =
        messages(sparse, found).into_iter().filter(|(number, _)| [VALUES, INDICES].contains(number));
    tensors.for_each(|(_, tensor)| search_tensor(tensor, found));
}

fn search_node(node: &[u8], depth: u32, found: &mut Found) {
    const ATTRIBUTE: u64 = 5;
    const TENSOR: u64 = 5;
    const GRAPH: u64 = 6;
    const TENSORS: u64 = 10;
    const GRAPHS: u64 = 11;
    const SPARSE: u64 = 22;
    const SPARSES: u64 = 23;
    let Some(depth) = depth.checked_sub(1) else {
        found.unread = true;
        return;
    };
    let attributes = messages(node, found).into_iter().filter(|(number, _)| *number == ATTRIBUTE);
    for (number, message) in
        attributes.flat_map(|(_, attribute)| messages(attribute, found)).collect::<Vec<_>>()
    {
        match number {
            SPARSE | SPARSES => search_sparse(message, found),
            TENSOR | TENSORS => search_tensor(message, found),
            GRAPH | GRAPHS => search_graph(message, depth, found),
            _ => {}
        }
    }
}

fn search_tensor(tensor: &[u8], found: &mut Found) {
    const DIMENSIONS: u64 = 1;
    const DATA_TYPE: u64 = 2;
    const FLOAT_DATA: u64 = 4;
    const INT_DATA: u64 = 5;
    const NAME: u64 = 8;
    const RAW_DATA: u64 = 9;
    const DOUBLE_DATA: u64 = 10;
    const EXTERNAL_DATA: u64 = 13;
    found.unread |= !is_valid(tensor);
    let (mut kind, mut name, mut rank) = (0, &b""[..], 0);
    let mut data = Vec::new();
    let mut loose = Vec::new();
    for field in valid_fields(tensor) {
        match (field.number, field.value) {
            (DIMENSIONS, Value::Number(_)) => rank += 1,
            (DIMENSIONS, Value::Bytes(lengths)) => {
                rank += lengths.iter().filter(|byte| **byte < 0x80).count();
            }
            (DATA_TYPE, Value::Number(number)) => kind = number,
            (NAME, Value::Bytes(bytes)) => name = bytes,
            (RAW_DATA | FLOAT_DATA | DOUBLE_DATA, Value::Bytes(bytes)) => data.push(bytes),
            (FLOAT_DATA, Value::Fixed32(bytes)) => loose.extend(bytes),
            (DOUBLE_DATA, Value::Fixed64(bytes)) => loose.extend(bytes),
            (INT_DATA, Value::Bytes(bytes)) => loose.extend(halves(bytes)),
            (EXTERNAL_DATA, Value::Bytes(pair)) => found.elsewhere.extend(location(pair)),
            _ => {}
        }
    }
    data.push(&loose);
    if found.unsound.is_none() && data.iter().any(|bytes| is_suspicious(kind, bytes)) {
        let numbers: Vec<f64> = data.iter().flat_map(|bytes| numbers(kind, bytes)).collect();
        found.unsound =
            describe(&numbers, rank).map(|what| (String::from_utf8_lossy(name).into_owned(), what));
    }
}

/// The file that an entry about external data names.
fn location(pair: &[u8]) -> Option<String> {
    let last = |number| {
        let entries = valid_fields(pair).filter(|field| field.number == number);
        entries.filter_map(Field::bytes).last().unwrap_or_default()
    };
    (last(1) == b"location").then(|| String::from_utf8_lossy(last(2)).into_owned())
}

/// Half-precision numbers that are stored as packed integers.
fn halves(packed: &[u8]) -> Vec<u8> {
    let numbers = super::protobuf::read_packed(packed).unwrap_or_default();
    numbers.into_iter().flat_map(|number| [number.to_le_bytes()[0], number.to_le_bytes()[1]]).collect()
}

/// Whether a number is NaN, infinite or large: its bits without the sign are above a limit.
fn is_suspicious(kind: u64, raw: &[u8]) -> bool {
    fn any_from(raw: &[u8], limit: u16) -> bool {
        let (halves, _) = raw.as_chunks::<2>();
        // Without an early exit, the compiler vectorises the loop.
        halves.iter().fold(false, |found, half| found | (u16::from_le_bytes(*half) & 0x7fff >= limit))
    }
    match kind {
        FLOAT => {
            let (words, _) = raw.as_chunks::<4>();
            let limit = LARGEST.to_bits();
            words.iter().fold(false, |found, word| found | (u32::from_le_bytes(*word) & 0x7fff_ffff > limit))
        }
        DOUBLE => {
            let (words, _) = raw.as_chunks::<8>();
            let limit = f64::from(LARGEST).to_bits();
            words.iter().fold(false, |found, word| found | (u64::from_le_bytes(*word) & !(1 << 63) > limit))
        }
        FLOAT16 => any_from(raw, 0x7c00),
        BFLOAT16 => any_from(raw, 0x5d5e),
        _ => false,
    }
}

fn numbers(kind: u64, raw: &[u8]) -> Vec<f64> {
    match kind {
        FLOAT => raw.as_chunks().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect(),
        DOUBLE => raw.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect(),
        FLOAT16 => raw.as_chunks().0.iter().map(|bytes| half::f16::from_le_bytes(*bytes).to_f64()).collect(),
        BFLOAT16 => {
            raw.as_chunks().0.iter().map(|bytes| half::bf16::from_le_bytes(*bytes).to_f64()).collect()
        }
        _ => Vec::new(),
    }
}

/// What is wrong with a tensor's numbers, if something is.
fn describe(numbers: &[f64], rank: usize) -> Option<String> {
    if numbers.iter().any(|number| number.is_nan()) {
        return Some("NaN".into());
    }
    let large = |number: &&f64| number.abs() > f64::from(LARGEST);
    let first = numbers.iter().find(|number| !large(number))?;
    let is_mask =
        numbers.iter().filter(|number| !large(number)).all(|number| number.to_bits() == first.to_bits());
    if is_mask {
        return None;
    }
    if numbers.iter().any(|number| number.is_infinite()) {
        return Some("infinity".into());
    }
    // Lists may hold large numbers, for example to hide articles; rows are multiplied.
    let number = *numbers.iter().find(large).filter(|_| rank > 1)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is printed; above float32 it is infinite there, too"
    )]
    let number = number as f32;
    Some(format!("{number:e}, which is too large to compute with"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An encoded field of bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, length], bytes].concat()
    }

    /// A tensor with two dimensions.
    fn tensor(kind: u64, data: &[u8]) -> Vec<u8> {
        let kind = [2 << 3, u8::try_from(kind).unwrap()];
        [&field(1, &[1, 2])[..], &kind, &field(8, b"w"), data].concat()
    }

    fn model(kind: u64, data: &[u8]) -> Vec<u8> {
        field(7, &[field(1, &field(3, b"a node")), field(5, &tensor(kind, data))].concat())
    }

    fn what(model: &[u8]) -> Option<String> {
        search(model).unsound.map(|(name, what)| {
            assert_eq!(name, "w");
            what
        })
    }

    fn floats(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn a_nan_is_found_in_every_width() {
        let find = |kind, bytes: &[&[u8]]| what(&model(kind, &field(9, &bytes.concat())));
        let found = Some("NaN".to_owned());
        assert_eq!(find(FLOAT, &[&floats(&[1.0, f32::NAN])]), found);
        assert_eq!(find(DOUBLE, &[&(-f64::NAN).to_le_bytes()]), found);
        assert_eq!(find(FLOAT16, &[&[0, 0x3c], &[1, 0xfc]]), found, "negative");
        assert_eq!(find(BFLOAT16, &[&[0xc0, 0x7f]]), found);
        assert_eq!(find(7, &[&f32::NAN.to_le_bytes()]), None, "an integer type");
        assert_eq!(what(&model(FLOAT, &field(4, &f32::NAN.to_le_bytes()))), found);
        assert_eq!(what(&model(DOUBLE, &field(10, &f64::NAN.to_le_bytes()))), found);
        assert_eq!(what(&model(FLOAT16, &field(5, &[0x81, 0xfc, 0x03]))), found, "as a packed integer");
    }

    #[test]
    fn infinity_and_numbers_too_large_are_found_in_rows_but_not_in_masks() {
        let find = |numbers: &[f32]| what(&model(FLOAT, &field(9, &floats(numbers))));
        let infinity = Some("infinity".to_owned());
        assert_eq!(find(&[1.0, 0.5, f32::INFINITY]), infinity);
        assert_eq!(find(&[1.0, 0.5, f32::NEG_INFINITY]), infinity);
        assert_eq!(find(&[1.0, 0.5, -3e38]), Some("-3e38, which is too large to compute with".into()));
        assert_eq!(find(&[1.0, 0.5, 1e17]), None);
        assert_eq!(find(&[0.0, 0.0, f32::NEG_INFINITY]), None, "a mask");
        assert_eq!(find(&[0.0, f32::MIN]), None, "a mask");
        assert_eq!(find(&[f32::INFINITY]), None, "a limit");
        let half = |bytes: &[u8]| what(&model(FLOAT16, &field(9, bytes)));
        assert_eq!(half(&[0, 0x3c, 0, 0x38, 0, 0x7c]), infinity);
        let brain = |bytes: &[u8]| what(&model(BFLOAT16, &field(9, bytes)));
        assert_eq!(brain(&[0x80, 0x3f, 0, 0x3f, 0x80, 0x7f]), infinity);
        let double = [1.0, 0.5, 1e200].map(f64::to_le_bytes).concat();
        assert!(what(&model(DOUBLE, &field(9, &double))).is_some(), "too large for float32");
    }

    #[test]
    fn constants_of_operators_loops_and_functions_are_searched() {
        let rows = tensor(FLOAT, &field(9, &floats(&[1.0, 0.5, f32::INFINITY])));
        let node = field(5, &field(5, &rows));
        let infinity = Some("infinity".to_owned());
        assert_eq!(what(&field(7, &field(1, &node))), infinity, "a constant");
        let body = field(1, &field(5, &field(6, &field(5, &rows))));
        assert_eq!(what(&field(7, &body)), infinity, "a loop's");
        let function = field(7, &node);
        let length = u8::try_from(function.len()).unwrap();
        assert_eq!(what(&[&[0xca, 0x01, length][..], &function].concat()), infinity, "a function's");
        let external = field(13, &[field(1, b"location"), field(2, b"file")].concat());
        assert_eq!(search(&model(FLOAT, &external)).elsewhere, ["file".to_owned()].into());
        assert!(search(&model(FLOAT, &field(4, b"xyz")[..3])).unread);
        assert_eq!(search(&model(FLOAT, &field(9, &floats(&[1.0])))), Found::default());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = search(&bytes);
            let _ = search(&field(7, &bytes));
            let _ = search(&field(7, &field(5, &bytes)));
        }
    }
}
