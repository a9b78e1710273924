//! Builds an ONNX graph: names, constants, weights, scopes.

use std::collections::HashMap;

use half::f16;

use super::proto::{
    AttributeProto, AttributeType, DataType, Dimension, GraphProto, NodeProto, Size, TensorProto,
    TensorShapeProto, TensorType, TypeProto, ValueInfoProto,
};
use crate::engine::Tensor;

/// A graph under construction. Constants are nodes, because every float initialiser except the tables counts as
/// parameters.
#[derive(Debug)]
pub(super) struct Graph {
    /// The graph itself, then the open bodies in it.
    scopes: Vec<Vec<NodeProto>>,
    initializers: Vec<TensorProto>,
    /// Names of values that are needed more than once, by a key. They depend on constants and inputs alone.
    shared: HashMap<String, String>,
    /// Begins the names of values that are not named by the caller.
    prefix: &'static str,
    names: usize,
}

impl Graph {
    pub(super) fn new() -> Self {
        Self::within("")
    }

    /// A graph whose names differ from those of another that it takes up.
    pub(super) fn within(prefix: &'static str) -> Self {
        Self { scopes: vec![Vec::new()], initializers: Vec::new(), shared: HashMap::new(), prefix, names: 0 }
    }

    /// Adds the nodes and weights of another graph.
    pub(super) fn append(&mut self, other: GraphProto) {
        self.scopes.last_mut().expect("the graph itself is always open").extend(other.node);
        self.initializers.extend(other.initializer);
    }

    fn new_name(&mut self, operator: &str) -> String {
        self.names += 1;
        format!("{}{}_{}", self.prefix, operator.to_lowercase(), self.names)
    }

    /// Adds a node, and returns the name of its output.
    pub(super) fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
    ) -> String {
        let output = self.new_name(operator);
        self.named_node(operator, inputs, &[&output], attributes);
        output
    }

    /// Adds a node with named outputs.
    pub(super) fn named_node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: Vec<AttributeProto>,
    ) {
        let node = node(operator, inputs, outputs, attributes);
        self.scopes.last_mut().expect("the graph itself is always open").push(node);
    }

    /// Returns the value of this key, made on first use in the graph itself, even while a body is open: ONNX Runtime
    /// folds what depends on weights alone in the graph, but not in bodies.
    pub(super) fn shared(&mut self, key: &str, make: impl FnOnce(&mut Self) -> String) -> String {
        if let Some(name) = self.shared.get(key) {
            return name.clone();
        }
        let bodies = self.scopes.split_off(1);
        let name = make(self);
        self.scopes.extend(bodies);
        self.shared.insert(key.to_owned(), name.clone());
        name
    }

    pub(super) fn floats(&mut self, dims: &[i64], values: &[f32]) -> String {
        let raw = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(DataType::Float, dims, raw)
    }

    pub(super) fn float(&mut self, value: f32) -> String {
        self.floats(&[], &[value])
    }

    pub(super) fn ints(&mut self, dims: &[i64], values: &[i64]) -> String {
        let raw = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(DataType::Int64, dims, raw)
    }

    /// A list of integers, such as a shape or axes.
    pub(super) fn list(&mut self, values: &[i64]) -> String {
        self.ints(&[size(values.len())], values)
    }

    pub(super) fn bool(&mut self, value: bool) -> String {
        self.constant(DataType::Bool, &[], vec![u8::from(value)])
    }

    fn constant(&mut self, data_type: DataType, dims: &[i64], raw: Vec<u8>) -> String {
        let key = format!("constant {data_type:?} {dims:?} {raw:?}");
        let tensor = TensorProto {
            dims: dims.to_vec(),
            data_type: data_type.into(),
            name: String::new(),
            raw_data: raw,
        };
        self.shared(&key, |graph| {
            let value = AttributeProto {
                name: "value".to_owned(),
                t: Some(tensor),
                r#type: AttributeType::Tensor.into(),
                ..AttributeProto::default()
            };
            graph.node("Constant", &[], vec![value])
        })
    }

    /// Adds a weight under its own name, in half precision if `half`; returns the name of its float32 value.
    pub(super) fn weight(&mut self, tensor: &Tensor, half: bool) -> String {
        let data = &tensor.data;
        let (data_type, raw_data) = if half {
            let halves = data.iter().flat_map(|&number| f16::from_f32(number).to_le_bytes());
            (DataType::Float16, halves.collect())
        } else {
            (DataType::Float, data.iter().flat_map(|number| number.to_le_bytes()).collect())
        };
        let name = tensor.name.clone();
        self.shared(&format!("weight {name}"), |graph| {
            graph.initializers.push(TensorProto {
                dims: tensor.shape.iter().map(|&length| size(length)).collect(),
                data_type: data_type.into(),
                name: name.clone(),
                raw_data,
            });
            if half { graph.node("Cast", &[&name], vec![int("to", DataType::Float as i64)]) } else { name }
        })
    }

    /// Adds a table of integers under this name.
    pub(super) fn integers(&mut self, name: &str, dims: &[i64], values: &[i32]) {
        self.initializers.push(TensorProto {
            dims: dims.to_vec(),
            data_type: DataType::Int32.into(),
            name: name.to_owned(),
            raw_data: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        });
    }

    /// Opens a body; nodes go into it until it is closed.
    pub(super) fn open(&mut self) {
        self.scopes.push(Vec::new());
    }

    pub(super) fn close(
        &mut self,
        input: Vec<ValueInfoProto>,
        output: Vec<ValueInfoProto>,
    ) -> AttributeProto {
        let node = self.scopes.pop().expect("a body is open");
        let body = GraphProto { node, name: "body".to_owned(), initializer: Vec::new(), input, output };
        AttributeProto {
            name: "body".to_owned(),
            g: Some(body),
            r#type: AttributeType::Graph.into(),
            ..AttributeProto::default()
        }
    }

    pub(super) fn finish(
        mut self,
        name: &str,
        input: Vec<ValueInfoProto>,
        output: Vec<ValueInfoProto>,
    ) -> GraphProto {
        let node = self.scopes.pop().expect("the graph itself is open");
        GraphProto { node, name: name.to_owned(), initializer: self.initializers, input, output }
    }
}

fn node(operator: &str, inputs: &[&str], outputs: &[&str], attribute: Vec<AttributeProto>) -> NodeProto {
    NodeProto {
        input: inputs.iter().map(ToString::to_string).collect(),
        output: outputs.iter().map(ToString::to_string).collect(),
        name: format!("make_{}", outputs[0]),
        op_type: operator.to_owned(),
        attribute,
    }
}

pub(super) fn size(length: usize) -> i64 {
    i64::try_from(length).expect("no tensor is that long")
}

pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        i: Some(value),
        r#type: AttributeType::Int.into(),
        ..AttributeProto::default()
    }
}

pub(super) fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        s: Some(value.as_bytes().to_vec()),
        r#type: AttributeType::String.into(),
        ..AttributeProto::default()
    }
}

pub(super) fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        f: Some(value),
        r#type: AttributeType::Float.into(),
        ..AttributeProto::default()
    }
}

pub(super) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        ints: values.to_vec(),
        r#type: AttributeType::Ints.into(),
        ..AttributeProto::default()
    }
}

/// One axis of an input or output.
#[derive(Debug, Clone, Copy)]
pub(super) enum Axis {
    Fixed(usize),
    Named(&'static str),
}

pub(super) fn tensor(name: &str, data_type: DataType, axes: &[Axis]) -> ValueInfoProto {
    let dim = axes.iter().map(|axis| Dimension {
        value: Some(match *axis {
            Axis::Fixed(length) => Size::Fixed(size(length)),
            Axis::Named(name) => Size::Dynamic(name.to_owned()),
        }),
    });
    let shape = Some(TensorShapeProto { dim: dim.collect() });
    let tensor_type = Some(TensorType { elem_type: data_type.into(), shape });
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { tensor_type }) }
}
