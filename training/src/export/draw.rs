//! The model's operations as ONNX nodes.
//!
//! Values stay two-dimensional, one row a slot or an outfit, so that every linear layer is one Gemm
//! (which ONNX Runtime packs ahead and fuses with what follows); only attention and what joins an
//! outfit's row to its slots' sees the slots as an axis.

use super::{
    graph::{Graph, float, int, ints, size},
    proto::{GraphProto, ValueInfoProto},
};
use crate::{
    engine::{Activation, Adaptive, Linear, Norm, Ops, Param, Rows, number},
    model::{Model, ModelConfig, Output},
};

/// Draws one model.
#[derive(Debug)]
pub(super) struct Drawing<'a> {
    pub(super) model: &'a Model,
    half: bool,
    pub(super) graph: Graph,
    /// What the features that are read are called: an input, or what a pair's were turned into.
    pub(super) features: &'static str,
    pub(super) values: Vec<Drawn>,
}

#[derive(Debug, Clone)]
pub(super) struct Drawn {
    pub(super) name: String,
    pub(super) rows: Rows,
    pub(super) width: usize,
}

const EPSILON: f32 = 1e-5;

impl<'a> Drawing<'a> {
    pub(super) fn new(model: &'a Model, half: bool) -> Self {
        Self { model, half, graph: Graph::new(), features: "features", values: Vec::new() }
    }

    pub(super) fn config(&self) -> &'a ModelConfig {
        self.model.config()
    }

    pub(super) fn record(&mut self, name: String, rows: Rows, width: usize) -> usize {
        self.values.push(Drawn { name, rows, width });
        self.values.len() - 1
    }

    /// A weight's float32 value. Vectors are small and keep their precision.
    pub(super) fn weight(&mut self, param: Param) -> String {
        let tensor = self.model.weights().tensor(param);
        self.graph.weight(tensor, self.half && tensor.shape.len() > 1)
    }

    pub(super) fn gemm(&mut self, x: &str, layer: &Linear) -> String {
        let weight = self.weight(layer.weight);
        match layer.bias {
            Some(bias) => {
                let bias = self.weight(bias);
                self.graph.node("Gemm", &[x, &weight, &bias], vec![])
            }
            None => self.graph.node("Gemm", &[x, &weight], vec![]),
        }
    }

    fn width_of(&self, layer: &Linear) -> usize {
        self.model.weights().tensor(layer.weight).shape[1]
    }

    /// The last dense layer.
    pub(super) fn head(&mut self, output: Output<usize>) {
        let head = self.model.structure().head;
        let hidden = self.values[output.hidden].name.clone();
        self.graph.named_node("Identity", &[&hidden], &["hidden"], vec![]);
        let (weight, bias) = (self.weight(head.weight), self.weight(head.bias));
        let transposed = vec![int("transB", 1)];
        match (output.personas, head.personas) {
            (Some(shares), Some(table)) => {
                let shares = self.values[shares].name.clone();
                self.graph.named_node("Identity", &[&shares], &["personas"], vec![]);
                let plain = self.graph.node("Gemm", &["hidden", &weight, &bias], transposed.clone());
                let table = self.weight(table);
                self.graph.named_node("Gemm", &["personas", &table, &plain], &["logits"], transposed);
            }
            _ => self.graph.named_node("Gemm", &["hidden", &weight, &bias], &["logits"], transposed),
        }
        if let Some(steps) = output.steps {
            let steps = self.values[steps].name.clone();
            self.graph.named_node("Identity", &[&steps], &["steps"], vec![]);
        }
    }

    pub(super) fn finish(
        self,
        name: &str,
        inputs: Vec<ValueInfoProto>,
        outputs: Vec<ValueInfoProto>,
    ) -> GraphProto {
        self.graph.finish(name, inputs, outputs)
    }
}

impl Ops for Drawing<'_> {
    type Value = usize;

    fn articles(&mut self) -> usize {
        let table = self.weight(self.model.structure().tables.articles);
        let every = self.graph.list(&[-1]);
        let flat = self.graph.node("Reshape", &["articles", &every], vec![]);
        let name = self.graph.node("Gather", &[&table, &flat], vec![]);
        self.record(name, Rows::Slots, self.config().width)
    }

    fn context(&mut self) -> usize {
        self.customer()
    }

    fn linear(&mut self, x: usize, layer: &Linear, activation: Activation) -> usize {
        let Drawn { name, rows, .. } = self.values[x].clone();
        let mut name = self.gemm(&name, layer);
        match activation {
            Activation::Identity => {}
            Activation::Relu => name = self.graph.node("Relu", &[&name], vec![]),
            Activation::Gelu => {
                let graph = &mut self.graph;
                let (root, one, half) =
                    (graph.float(std::f32::consts::SQRT_2), graph.float(1.0), graph.float(0.5));
                let scaled = graph.node("Div", &[&name, &root], vec![]);
                let error = graph.node("Erf", &[&scaled], vec![]);
                let error = graph.node("Add", &[&error, &one], vec![]);
                let twice = graph.node("Mul", &[&name, &error], vec![]);
                name = graph.node("Mul", &[&twice, &half], vec![]);
            }
        }
        self.record(name, rows, self.width_of(layer))
    }

    fn add_relu(&mut self, x: usize, y: usize) -> usize {
        let (to, from) = (self.values[x].clone(), self.values[y].clone());
        let (x, y) = (self.by_outfit(&to), self.by_outfit(&from));
        let sum = self.graph.node("Add", &[&x, &y], vec![]);
        let sum = self.graph.node("Relu", &[&sum], vec![]);
        let name = self.flat(&sum, to.width);
        self.record(name, to.rows, to.width)
    }

    fn add_norm(&mut self, x: usize, y: usize, norm: Option<&Norm>) -> usize {
        let (to, from) = (self.values[x].clone(), self.values[y].clone());
        let width = to.width;
        let (scale, shift) = match norm {
            Some(norm) => (self.weight(norm.scale), Some(self.weight(norm.shift))),
            None => (self.graph.floats(&[size(width)], &vec![1.0; width]), None),
        };
        let sum = if to.rows == from.rows {
            self.graph.node("Add", &[&to.name, &from.name], vec![])
        } else {
            let (x, y) = (self.by_outfit(&to), self.by_outfit(&from));
            self.graph.node("Add", &[&x, &y], vec![])
        };
        let mut inputs = vec![sum.as_str(), scale.as_str()];
        inputs.extend(shift.as_deref());
        let attributes = vec![int("axis", -1), float("epsilon", EPSILON)];
        let mut name = self.graph.node("LayerNormalization", &inputs, attributes);
        if to.rows != from.rows {
            name = self.flat(&name, width);
        }
        self.record(name, to.rows, width)
    }

    fn attention(&mut self, asking: usize, asked: usize, query: &Linear, key_value: &Linear) -> usize {
        let (asking, asked) = (self.values[asking].clone(), self.values[asked].clone());
        let width = self.config().width;
        let queries = self.gemm(&asking.name, query);
        let keys_values = self.gemm(&asked.name, key_value);
        let halves = self.graph.list(&[size(width), size(width)]);
        let keys = format!("{keys_values}_keys");
        let values = format!("{keys_values}_values");
        self.graph.named_node("Split", &[&keys_values, &halves], &[&keys, &values], vec![int("axis", 1)]);
        let queries = self.heads(&queries, asking.rows, false);
        let keys = self.heads(&keys, asked.rows, true);
        let values = self.heads(&values, asked.rows, false);
        let scale = self.graph.float(1.0 / number(width / self.config().heads).sqrt());
        let queries = self.graph.node("Mul", &[&queries, &scale], vec![]);
        let scores = self.graph.node("MatMul", &[&queries, &keys], vec![]);
        let bias = self.attention_bias(asked.rows);
        let scores = self.graph.node("Add", &[&scores, &bias], vec![]);
        let weights = self.graph.node("Softmax", &[&scores], vec![int("axis", -1)]);
        let mixed = self.graph.node("MatMul", &[&weights, &values], vec![]);
        let mixed = self.graph.node("Transpose", &[&mixed], vec![ints("perm", &[0, 2, 1, 3])]);
        let name = self.flat(&mixed, width);
        self.record(name, asking.rows, width)
    }

    fn with_position(&mut self, slots: usize, position: usize) -> usize {
        let (slots, position) = (self.values[slots].clone(), self.values[position].clone());
        let parts = [self.by_outfit(&position), self.by_outfit(&slots)];
        let both = concat(&mut self.graph, &parts, 1);
        let name = self.flat(&both, slots.width);
        self.record(name, Rows::Positions, slots.width)
    }

    fn at_blank(&mut self, x: usize) -> usize {
        let value = self.values[x].clone();
        let by_outfit = self.by_outfit(&value);
        let axis = self.graph.list(&[1]);
        let blank = self.graph.shared("blank", |graph| graph.node("Unsqueeze", &["blank", &axis], vec![]));
        let blank = if value.rows == Rows::Positions {
            let one = self.graph.ints(&[], &[1]);
            self.graph.shared("blank position", |graph| graph.node("Add", &[&blank, &one], vec![]))
        } else {
            blank
        };
        let name = self.graph.node("GatherND", &[&by_outfit, &blank], vec![int("batch_dims", 1)]);
        self.record(name, Rows::Outfits, value.width)
    }

    fn adaptive(
        &mut self,
        x: usize,
        halting: &Linear,
        unit: &mut dyn FnMut(&mut Self, usize) -> usize,
    ) -> Adaptive<usize> {
        self.repeat(x, halting, unit)
    }

    fn personas(&mut self, table: Param) -> usize {
        self.mixture(table)
    }
}

pub(super) fn concat(graph: &mut Graph, parts: &[String], axis: i64) -> String {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    graph.node("Concat", &parts, vec![int("axis", axis)])
}
