//! Splits an ONNX file: the trunk, which ends with the output `hidden`, and the weights of the last dense layer, with
//! which the [`head`](super::head) computes.
//!
//! The trunk is an ONNX file again, in which everything that is kept is kept byte for byte. Only files that our
//! exporter could have written are split: `logits` is a dense layer of `hidden` and, optionally, one of `personas`, to
//! which `boosts` may be added where `boosted` says, and the weights have the expected names. ONNX Runtime serves any
//! other file as it is.
//!
//! Must not know sessions, releases or what the numbers mean.

use std::collections::HashSet;

use super::{
    head::HeadWeights,
    protobuf::{Field, Value, put_bytes, put_number, read_fields, read_packed},
};

/// Field numbers, from onnx.proto. The graph of a `ModelProto`.
const GRAPH: u64 = 7;
/// The parts of a `GraphProto`.
const NODE: u64 = 1;
const INITIALIZER: u64 = 5;
const OUTPUT: u64 = 12;
/// Values of `TensorProto.DataType`.
const FLOAT: u64 = 1;
const INT32: u64 = 6;
const FLOAT16: u64 = 10;

/// The two parts of a file.
#[derive(Debug)]
pub(super) struct Parts {
    /// An ONNX file with the output `hidden` in place of `logits`, and `boosted` and `boosts` if there are boosts.
    pub(super) trunk: Vec<u8>,
    pub(super) head: HeadWeights,
}

/// Returns None if the file is malformed or does not end as our exporter's files do.
pub(super) fn split(file: &[u8]) -> Option<Parts> {
    let model = read_fields(file)?;
    let mut graphs = model.iter().filter(|field| field.number == GRAPH);
    let (graph, None) = (Graph::read(graphs.next()?.bytes()?)?, graphs.next()) else { return None };
    let last = graph.last_layer()?;
    let head = HeadWeights {
        bias: graph.weights("vocabulary.bias", last.bias)?,
        vocabulary: graph.matrix("vocabulary.weight", last.vocabulary, last.bias)?,
        personas: match last.personas {
            Some(personas) => Some(graph.matrix("personas.weight", personas, last.bias)?),
            None => None,
        },
        is_boosted: last.is_boosted,
    };
    let articles = head.bias.len();
    let mut outputs = vec![("hidden", FLOAT, Some(head.vocabulary.len() / articles))];
    if last.is_boosted {
        outputs.extend([("boosted", INT32, None), ("boosts", FLOAT, None)]);
    }
    let shortened = graph.without_logits(&outputs)?;
    let mut trunk = Vec::with_capacity(file.len());
    for field in &model {
        if field.number == GRAPH {
            put_bytes(&mut trunk, GRAPH, &shortened);
        } else {
            trunk.extend_from_slice(field.encoded);
        }
    }
    Some(Parts { trunk, head })
}

struct Graph<'a> {
    fields: Vec<Field<'a>>,
    nodes: Vec<Node<'a>>,
    weights: Vec<Tensor<'a>>,
    outputs: Vec<&'a str>,
}

/// The names of the values that the last layer's operators take as weights.
struct LastLayer<'a> {
    vocabulary: &'a str,
    bias: &'a str,
    personas: Option<&'a str>,
    /// Whether `boosts` are added.
    is_boosted: bool,
}

impl<'a> Graph<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut graph =
            Self { fields: read_fields(message)?, nodes: vec![], weights: vec![], outputs: vec![] };
        for field in &graph.fields {
            match field.number {
                NODE => graph.nodes.push(Node::read(field.bytes()?)?),
                INITIALIZER => graph.weights.push(Tensor::read(field.bytes()?)?),
                OUTPUT => graph.outputs.push(read_name(field.bytes()?)?),
                _ => {}
            }
        }
        // ONNX Runtime gets the trunk as bytes, so it has no folder in which to find weights of other files.
        (!graph.weights.iter().any(|weights| weights.external)).then_some(graph)
    }

    /// The node that computes a value.
    fn producer(&self, name: &str) -> Option<&Node<'a>> {
        self.nodes.iter().find(|node| node.outputs.contains(&name))
    }

    /// The inputs of the dense layer that computes a value, if one does.
    fn dense_inputs(&self, name: &str) -> Option<[&'a str; 3]> {
        self.producer(name).filter(|node| node.is_dense())?.inputs.as_slice().try_into().ok()
    }

    fn last_layer(&self) -> Option<LastLayer<'a>> {
        self.producer("hidden")?;
        self.outputs.contains(&"logits").then_some(())?;
        let boosted = self.producer("logits").filter(|node| node.adds_boosts());
        let (inputs, personas) = match self.dense_inputs(boosted.map_or("logits", |node| node.inputs[0]))? {
            ["personas", personas, plain] => (self.dense_inputs(plain)?, Some(personas)),
            inputs => (inputs, None),
        };
        let ["hidden", vocabulary, bias] = inputs else { return None };
        if personas.is_some() {
            self.producer("personas")?;
        }
        Some(LastLayer { vocabulary, bias, personas, is_boosted: boosted.is_some() })
    }

    /// The numbers of the `expected` weights, if `input` is these weights or their cast to float32.
    fn weights(&self, expected: &str, input: &str) -> Option<Vec<f32>> {
        let stored = self.stored(input)?;
        (stored.name == expected).then(|| stored.floats())?
    }

    /// The same for a matrix with one row per number of the list `bias`.
    fn matrix(&self, expected: &str, input: &str, bias: &str) -> Option<Vec<f32>> {
        let (&[rows, columns], &[articles]) = (&*self.stored(input)?.shape, &*self.stored(bias)?.shape)
        else {
            return None;
        };
        (rows == articles && rows > 0 && columns > 0).then(|| self.weights(expected, input))?
    }

    /// The initializer behind an input, with or without a cast.
    fn stored(&self, input: &str) -> Option<&Tensor<'a>> {
        let stored = match self.producer(input) {
            Some(node) if node.is_cast() => *node.inputs.first()?,
            Some(_) => return None,
            None => input,
        };
        self.weights.iter().find(|weights| weights.name == stored)
    }

    /// The graph with these outputs (name, type, columns) instead of `logits`, without the nodes and weights that only
    /// `logits` needed.
    fn without_logits(&self, outputs: &[(&'static str, u64, Option<usize>)]) -> Option<Vec<u8>> {
        let mut needed: HashSet<&str> =
            self.outputs.iter().copied().filter(|&output| output != "logits").collect();
        needed.extend(outputs.iter().map(|(name, ..)| name));
        // Nodes are ordered so that each follows the nodes whose results it reads.
        let mut kept = vec![false; self.nodes.len()];
        for (kept, node) in kept.iter_mut().zip(&self.nodes).rev() {
            *kept = node.outputs.iter().any(|output| needed.contains(output));
            if *kept {
                needed.extend(node.reads()?);
            }
        }
        let (mut nodes, mut weights) = (kept.into_iter(), self.weights.iter());
        let mut graph = Vec::new();
        for field in &self.fields {
            let keep = match field.number {
                NODE => nodes.next()?,
                INITIALIZER => needed.contains(weights.next()?.name),
                OUTPUT => read_name(field.bytes()?)? != "logits",
                _ => true,
            };
            if keep {
                graph.extend_from_slice(field.encoded);
            }
        }
        for &(name, kind, columns) in outputs.iter().filter(|(name, ..)| !self.outputs.contains(name)) {
            put_bytes(&mut graph, OUTPUT, &output(name, kind, columns));
        }
        Some(graph)
    }
}

/// A `ValueInfoProto`: one row per question of the batch.
fn output(name: &str, kind: u64, columns: Option<usize>) -> Vec<u8> {
    let nested = |number: u64, inner: &[u8]| {
        let mut outer = Vec::new();
        put_bytes(&mut outer, number, inner);
        outer
    };
    let mut width = Vec::new();
    match columns {
        Some(columns) => put_number(&mut width, 1, columns as u64),
        None => put_bytes(&mut width, 2, format!("{name}_columns").as_bytes()),
    }
    let mut shape = nested(1, &nested(2, b"batch"));
    put_bytes(&mut shape, 1, &width);
    let mut tensor = Vec::new();
    put_number(&mut tensor, 1, kind);
    put_bytes(&mut tensor, 2, &shape);
    let mut output = nested(1, name.as_bytes());
    put_bytes(&mut output, 2, &nested(1, &tensor));
    output
}

/// An operator with its inputs and outputs.
#[derive(Debug)]
struct Node<'a> {
    inputs: Vec<&'a str>,
    outputs: Vec<&'a str>,
    operator: &'a str,
    attributes: Vec<Attribute<'a>>,
    /// Whether it is one of ONNX's own operators.
    standard: bool,
}

#[derive(Debug, Default)]
struct Attribute<'a> {
    name: &'a str,
    float: Option<f32>,
    integer: Option<u64>,
    text: &'a [u8],
    /// Bodies of loops and branches.
    graphs: Vec<&'a [u8]>,
}

impl<'a> Node<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut node =
            Self { inputs: vec![], outputs: vec![], operator: "", attributes: vec![], standard: true };
        for field in read_fields(message)? {
            match field.number {
                1 => node.inputs.push(field.text()?),
                2 => node.outputs.push(field.text()?),
                4 => node.operator = field.text()?,
                5 => node.attributes.push(Attribute::read(field.bytes()?)?),
                7 => node.standard = matches!(field.text()?, "" | "ai.onnx"),
                _ => {}
            }
        }
        Some(node)
    }

    /// Whether it computes exactly x · wᵀ + c.
    fn is_dense(&self) -> bool {
        let plain = |attribute: &Attribute<'_>| match attribute.name {
            "transB" => true,
            "transA" => attribute.integer == Some(0),
            "alpha" | "beta" => attribute.float == Some(1.0),
            _ => false,
        };
        let transposed =
            |attribute: &Attribute<'_>| attribute.name == "transB" && attribute.integer == Some(1);
        self.standard
            && self.operator == "Gemm"
            && self.inputs.len() == 3
            && self.attributes.iter().all(plain)
            && self.attributes.iter().any(transposed)
    }

    /// Whether it computes exactly x plus `boosts`, at the columns `boosted`.
    fn adds_boosts(&self) -> bool {
        let plain = |attribute: &Attribute<'_>| match attribute.name {
            "axis" => attribute.integer == Some(1),
            "reduction" => attribute.text == b"add",
            _ => false,
        };
        self.standard
            && self.operator == "ScatterElements"
            && matches!(*self.inputs, [_, "boosted", "boosts"])
            && self.attributes.len() == 2
            && self.attributes.iter().all(plain)
    }

    /// Whether it converts numbers to float32.
    fn is_cast(&self) -> bool {
        let to_float = |attribute: &Attribute<'_>| attribute.name == "to" && attribute.integer == Some(FLOAT);
        self.standard && self.operator == "Cast" && self.attributes.iter().any(to_float)
    }

    /// All names that it reads, including those in its bodies.
    fn reads(&self) -> Option<Vec<&'a str>> {
        let mut names = self.inputs.clone();
        for body in self.attributes.iter().flat_map(|attribute| &attribute.graphs) {
            for field in read_fields(body)? {
                match field.number {
                    NODE => names.extend(Self::read(field.bytes()?)?.reads()?),
                    OUTPUT => names.push(read_name(field.bytes()?)?),
                    _ => {}
                }
            }
        }
        Some(names)
    }
}

impl<'a> Attribute<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut attribute = Self::default();
        for field in read_fields(message)? {
            match (field.number, field.value) {
                (1, _) => attribute.name = field.text()?,
                (2, Value::Fixed32(bytes)) => attribute.float = Some(f32::from_le_bytes(bytes)),
                (3, Value::Number(number)) => attribute.integer = Some(number),
                (4, Value::Bytes(text)) => attribute.text = text,
                (6 | 11, Value::Bytes(body)) => attribute.graphs.push(body),
                _ => {}
            }
        }
        Some(attribute)
    }
}

/// A weight of the file.
#[derive(Debug)]
struct Tensor<'a> {
    name: &'a str,
    shape: Vec<usize>,
    kind: u64,
    raw: Option<&'a [u8]>,
    /// Whether its numbers are in another file.
    external: bool,
}

impl<'a> Tensor<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut tensor = Self { name: "", shape: vec![], kind: 0, raw: None, external: false };
        let length = |number: u64| usize::try_from(number).ok();
        for field in read_fields(message)? {
            match (field.number, field.value) {
                (1, Value::Number(number)) => tensor.shape.push(length(number)?),
                (1, Value::Bytes(numbers)) => {
                    tensor.shape = read_packed(numbers)?.into_iter().map(length).collect::<Option<_>>()?;
                }
                (2, Value::Number(kind)) => tensor.kind = kind,
                (8, _) => tensor.name = field.text()?,
                (9, Value::Bytes(raw)) => tensor.raw = Some(raw),
                (13, _) => tensor.external = true,
                _ => {}
            }
        }
        Some(tensor)
    }

    /// Its numbers as float32.
    fn floats(&self) -> Option<Vec<f32>> {
        let raw = self.raw?;
        let floats: Vec<f32> = match self.kind {
            FLOAT => raw.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(),
            FLOAT16 => {
                raw.as_chunks().0.iter().map(|&bytes| half::f16::from_le_bytes(bytes).to_f32()).collect()
            }
            _ => return None,
        };
        let expected = self.shape.iter().try_fold(1_usize, |product, &axis| product.checked_mul(axis))?;
        (floats.len() == expected).then_some(floats)
    }
}

/// The name of an input or output.
fn read_name(message: &[u8]) -> Option<&str> {
    read_fields(message)?.into_iter().find(|field| field.number == 1).and_then(Field::text)
}

#[cfg(test)]
mod tests;
