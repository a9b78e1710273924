//! Finds numbers among an ONNX file's weights with which nothing can be computed.
//!
//! A NaN or an infinity in one article's row spoils only the outfits with that article. The trial questions would miss
//! it, and customers would not. So all constants of the file are searched, as bytes: initialisers, those inside operators,
//! and those of loops, branches and functions. Malformed files are ONNX Runtime's to report.
//!
//! A mask is not a row: exporters write attention masks as tables of one number and infinity, and single infinities as
//! limits.

use std::collections::BTreeSet;

use half::{bf16, f16};
use prost::{Message, bytes::Bytes};

use crate::tables::LARGEST;

/// Values of `TensorProto.DataType` that can be NaN.
const FLOAT: i32 = 1;
const FLOAT16: i32 = 10;
const DOUBLE: i32 = 11;
const BFLOAT16: i32 = 16;

#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    /// The name of the first weight that is unsound, and what it holds.
    pub(super) unsound: Option<(String, String)>,
    /// The names of other files with weights, which were not searched.
    pub(super) elsewhere: BTreeSet<String>,
    /// Whether the file was not searched: it is malformed, or nested more deeply than is read.
    pub(super) unread: bool,
}

// The fields of ONNX's messages that are searched. Texts are bytes, because they need not be UTF-8.

#[derive(Message)]
struct Model {
    #[prost(message, optional, tag = "7")]
    graph: Option<Graph>,
    #[prost(message, repeated, tag = "25")]
    functions: Vec<Function>,
}

#[derive(Message)]
struct Function {
    #[prost(message, repeated, tag = "7")]
    nodes: Vec<Node>,
}

#[derive(Message)]
struct Graph {
    #[prost(message, repeated, tag = "1")]
    nodes: Vec<Node>,
    #[prost(message, repeated, tag = "5")]
    initializers: Vec<Tensor>,
    #[prost(message, repeated, tag = "15")]
    sparse_initializers: Vec<Sparse>,
}

#[derive(Message)]
struct Node {
    #[prost(message, repeated, tag = "5")]
    attributes: Vec<Attribute>,
}

#[derive(Message)]
struct Attribute {
    #[prost(message, optional, tag = "5")]
    tensor: Option<Tensor>,
    #[prost(message, optional, tag = "6")]
    graph: Option<Graph>,
    #[prost(message, repeated, tag = "10")]
    tensors: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    graphs: Vec<Graph>,
    #[prost(message, optional, tag = "22")]
    sparse: Option<Sparse>,
    #[prost(message, repeated, tag = "23")]
    sparses: Vec<Sparse>,
}

#[derive(Message)]
struct Sparse {
    #[prost(message, optional, tag = "1")]
    values: Option<Tensor>,
    #[prost(message, optional, tag = "2")]
    indices: Option<Tensor>,
}

#[derive(Message)]
struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    dimensions: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(float, repeated, tag = "4")]
    floats: Vec<f32>,
    /// Half-precision numbers, too.
    #[prost(int32, repeated, tag = "5")]
    integers: Vec<i32>,
    #[prost(bytes = "bytes", tag = "8")]
    name: Bytes,
    #[prost(bytes = "bytes", tag = "9")]
    raw: Bytes,
    #[prost(double, repeated, tag = "10")]
    doubles: Vec<f64>,
    #[prost(message, repeated, tag = "13")]
    external: Vec<Entry>,
}

#[derive(Message)]
struct Entry {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

/// Searches the bytes of a file. What the file holds as bytes is not copied.
pub(super) fn search(file: impl Into<Bytes>) -> Found {
    let mut found = Found::default();
    let model = Model::decode(file.into()).unwrap_or_else(|_| {
        found.unread = true;
        Model::default()
    });
    model.graph.iter().for_each(|graph| search_graph(graph, &mut found));
    model.functions.iter().for_each(|function| search_nodes(&function.nodes, &mut found));
    found
}

fn search_graph(graph: &Graph, found: &mut Found) {
    search_nodes(&graph.nodes, found);
    search_tensors(&graph.initializers, &graph.sparse_initializers, found);
}

fn search_nodes(nodes: &[Node], found: &mut Found) {
    for attribute in nodes.iter().flat_map(|node| &node.attributes) {
        let Attribute { tensor, graph, tensors, graphs, sparse, sparses } = attribute;
        search_tensors(tensor.iter().chain(tensors), sparse.iter().chain(sparses), found);
        graph.iter().chain(graphs).for_each(|graph| search_graph(graph, found));
    }
}

fn search_tensors<'a>(
    tensors: impl IntoIterator<Item = &'a Tensor>,
    sparse: impl IntoIterator<Item = &'a Sparse>,
    found: &mut Found,
) {
    let of_sparse = sparse.into_iter().flat_map(|sparse| sparse.values.iter().chain(&sparse.indices));
    tensors.into_iter().chain(of_sparse).for_each(|tensor| search_tensor(tensor, found));
}

fn search_tensor(tensor: &Tensor, found: &mut Found) {
    let locations = tensor.external.iter().filter(|entry| entry.key == "location");
    found.elsewhere.extend(locations.map(|entry| String::from_utf8_lossy(&entry.value).into_owned()));
    if found.unsound.is_none() {
        let what = suspicious(tensor).and_then(|numbers| describe(&numbers, tensor.dimensions.len()));
        found.unsound = what.map(|what| (String::from_utf8_lossy(&tensor.name).into_owned(), what));
    }
}

/// A tensor's numbers, if one of them is NaN, infinite or large: its bits without the sign are above a limit.
fn suspicious(tensor: &Tensor) -> Option<Vec<f64>> {
    let Tensor { raw, floats, doubles, integers, .. } = tensor;
    let low = |number: &i32| u16::from_le_bytes([number.to_le_bytes()[0], number.to_le_bytes()[1]]);
    let halves = raw.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
    let halves = halves.chain(integers.iter().map(low));
    match tensor.data_type {
        FLOAT => {
            let words = raw.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
            let words = words.chain(floats.iter().map(|float| float.to_bits()));
            let limit = LARGEST.to_bits();
            pick(words, |word| word & 0x7fff_ffff > limit, |word| f32::from_bits(word).into())
        }
        DOUBLE => {
            let words = raw.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
            let words = words.chain(doubles.iter().map(|double| double.to_bits()));
            let limit = f64::from(LARGEST).to_bits();
            pick(words, |word| word & !(1 << 63) > limit, f64::from_bits)
        }
        FLOAT16 => pick(halves, |half| half & 0x7fff >= 0x7c00, |half| f16::from_bits(half).to_f64()),
        BFLOAT16 => pick(halves, |half| half & 0x7fff >= 0x5d5e, |half| bf16::from_bits(half).to_f64()),
        _ => None,
    }
}

/// All of them as numbers, if one is suspicious.
fn pick<B>(
    bits: impl Iterator<Item = B> + Clone,
    is_suspicious: impl Fn(B) -> bool,
    number: impl Fn(B) -> f64,
) -> Option<Vec<f64>> {
    // Without an early exit, the compiler vectorises the loop.
    let any = bits.clone().fold(false, |found, one| found | is_suspicious(one));
    any.then(|| bits.map(number).collect())
}

/// The fault of a tensor's numbers, if there is one.
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
    fn tensor(kind: i32, data: &[u8]) -> Vec<u8> {
        let kind = [2 << 3, u8::try_from(kind).unwrap()];
        [&field(1, &[1, 2])[..], &kind, &field(8, b"w"), data].concat()
    }

    fn model(kind: i32, data: &[u8]) -> Vec<u8> {
        field(7, &[field(1, &field(3, b"a node")), field(5, &tensor(kind, data))].concat())
    }

    fn what(model: &[u8]) -> Option<String> {
        search(model.to_vec()).unsound.map(|(name, what)| {
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
        assert_eq!(search(model(FLOAT, &external)).elsewhere, ["file".to_owned()].into());
        assert!(search(model(FLOAT, &field(4, b"xyz")[..3])).unread);
        assert_eq!(search(model(FLOAT, &field(9, &floats(&[1.0])))), Found::default());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = search(bytes.clone());
            let _ = search(field(7, &bytes));
            let _ = search(field(7, &field(5, &bytes)));
        }
    }
}
