//! An ONNX file cut in two: the trunk, which ends with the vector called `hidden`, and the last dense layer's
//! weights, which the [`head`](super::head) computes with.
//!
//! A file's bytes come in; the trunk goes out as a file's bytes again, in which everything that is kept stands as it
//! stood. Only a file that our exporter could have written is cut: `logits` is one dense layer of `hidden` and, where
//! it has them, one of `personas`, and the weights have their names. Any other is left as it is, to be served whole.
//!
//! Must not know sessions, releases or what the numbers mean.

mod onnx;
mod wire;

use std::collections::HashSet;

use self::{
    onnx::{GRAPH, INITIALIZER, NODE, Node, OUTPUT, Tensor, name},
    wire::{Field, fields, put_bytes, put_number},
};
use super::head::HeadWeights;

/// A file in its two parts.
#[derive(Debug)]
pub(super) struct Parts {
    /// An ONNX file with the output `hidden` in place of `logits`.
    pub(super) trunk: Vec<u8>,
    pub(super) head: HeadWeights,
}

/// None for a file that is none, or that does not end as our exporter's do.
pub(super) fn cut(file: &[u8]) -> Option<Parts> {
    let model = fields(file)?;
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
    };
    let articles = head.bias.len();
    let shortened = graph.without_logits(head.vocabulary.len() / articles)?;
    let mut trunk = Vec::with_capacity(file.len());
    for field in &model {
        if field.number == GRAPH {
            put_bytes(&mut trunk, GRAPH, &shortened);
        } else {
            trunk.extend_from_slice(field.whole);
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

/// The names of the last layer's weights, as its operators take them.
struct LastLayer<'a> {
    vocabulary: &'a str,
    bias: &'a str,
    personas: Option<&'a str>,
}

impl<'a> Graph<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut graph = Self { fields: fields(message)?, nodes: vec![], weights: vec![], outputs: vec![] };
        for field in &graph.fields {
            match field.number {
                NODE => graph.nodes.push(Node::read(field.bytes()?)?),
                INITIALIZER => graph.weights.push(Tensor::read(field.bytes()?)?),
                OUTPUT => graph.outputs.push(name(field.bytes()?)?),
                _ => {}
            }
        }
        // A trunk that is given to ONNX Runtime as bytes has no folder in which other files could lie.
        (!graph.weights.iter().any(|weights| weights.elsewhere)).then_some(graph)
    }

    fn maker(&self, name: &str) -> Option<&Node<'a>> {
        self.nodes.iter().find(|node| node.outputs.contains(&name))
    }

    fn dense(&self, name: &str) -> Option<[&'a str; 3]> {
        self.maker(name).filter(|node| node.is_dense())?.inputs.as_slice().try_into().ok()
    }

    fn last_layer(&self) -> Option<LastLayer<'a>> {
        self.maker("hidden")?;
        self.outputs.contains(&"logits").then_some(())?;
        let (of, personas) = match self.dense("logits")? {
            ["personas", personas, plain] => (self.dense(plain)?, Some(personas)),
            of => (of, None),
        };
        let ["hidden", vocabulary, bias] = of else { return None };
        if personas.is_some() {
            self.maker("personas")?;
        }
        Some(LastLayer { vocabulary, bias, personas })
    }

    /// Those weights' numbers, if what the layer takes is they or they cast to float32.
    fn weights(&self, expected: &str, taken: &str) -> Option<Vec<f32>> {
        let stored = self.stored(taken)?;
        (stored.name == expected).then(|| stored.floats())?
    }

    /// The same of a matrix that has a row of numbers for each of a list's.
    fn matrix(&self, expected: &str, taken: &str, list: &str) -> Option<Vec<f32>> {
        let (&[rows, columns], &[articles]) = (&*self.stored(taken)?.shape, &*self.stored(list)?.shape)
        else {
            return None;
        };
        (rows == articles && rows > 0 && columns > 0).then(|| self.weights(expected, taken))?
    }

    fn stored(&self, taken: &str) -> Option<&Tensor<'a>> {
        let stored = match self.maker(taken) {
            Some(node) if node.is_cast() => *node.inputs.first()?,
            Some(_) => return None,
            None => taken,
        };
        self.weights.iter().find(|weights| weights.name == stored)
    }

    /// The graph up to `hidden`, and to `personas` and what else it gives; what only `logits` needed is left out.
    fn without_logits(&self, hidden: usize) -> Option<Vec<u8>> {
        let mut needed: HashSet<&str> =
            self.outputs.iter().copied().filter(|&output| output != "logits").collect();
        needed.insert("hidden");
        // Operators stand behind those whose results they read.
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
                OUTPUT => name(field.bytes()?)? != "logits",
                _ => true,
            };
            if keep {
                graph.extend_from_slice(field.whole);
            }
        }
        if !self.outputs.contains(&"hidden") {
            put_bytes(&mut graph, OUTPUT, &float_output("hidden", hidden));
        }
        Some(graph)
    }
}

/// A `ValueInfoProto`: float32, a row each of the batch.
fn float_output(name: &str, columns: usize) -> Vec<u8> {
    let nested = |number: u64, inner: &[u8]| {
        let mut outer = Vec::new();
        put_bytes(&mut outer, number, inner);
        outer
    };
    let mut width = Vec::new();
    put_number(&mut width, 1, columns as u64);
    let mut shape = nested(1, &nested(2, b"batch"));
    put_bytes(&mut shape, 1, &width);
    let mut tensor = Vec::new();
    put_number(&mut tensor, 1, 1);
    put_bytes(&mut tensor, 2, &shape);
    let mut output = nested(1, name.as_bytes());
    put_bytes(&mut output, 2, &nested(1, &tensor));
    output
}

#[cfg(test)]
mod tests;
