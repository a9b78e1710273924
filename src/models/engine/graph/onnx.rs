//! The parts of ONNX's messages that are looked into, and the numbers of their fields (onnx.proto).

use super::wire::{Field, Value, fields, packed};

/// Of a `ModelProto`.
pub(super) const GRAPH: u64 = 7;
/// Of a `GraphProto`.
pub(super) const NODE: u64 = 1;
pub(super) const INITIALIZER: u64 = 5;
pub(super) const OUTPUT: u64 = 12;
/// Of a `TensorProto`, and what stands for its types there.
const FLOAT: u64 = 1;
const FLOAT16: u64 = 10;

/// An operator with what it takes and gives.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) inputs: Vec<&'a str>,
    pub(super) outputs: Vec<&'a str>,
    pub(super) operator: &'a str,
    attributes: Vec<Attribute<'a>>,
    /// Whether it is one of ONNX's own.
    standard: bool,
}

#[derive(Debug, Default)]
struct Attribute<'a> {
    name: &'a str,
    float: Option<f32>,
    whole: Option<u64>,
    /// Bodies of loops and branches.
    graphs: Vec<&'a [u8]>,
}

impl<'a> Node<'a> {
    pub(super) fn read(message: &'a [u8]) -> Option<Self> {
        let mut node =
            Self { inputs: vec![], outputs: vec![], operator: "", attributes: vec![], standard: true };
        for field in fields(message)? {
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

    /// Whether it is x · wᵀ + c, and nothing else about it.
    pub(super) fn is_dense(&self) -> bool {
        let plain = |attribute: &Attribute<'_>| match attribute.name {
            "transB" => true,
            "transA" => attribute.whole == Some(0),
            "alpha" | "beta" => attribute.float == Some(1.0),
            _ => false,
        };
        let transposed = |attribute: &Attribute<'_>| attribute.name == "transB" && attribute.whole == Some(1);
        self.standard
            && self.operator == "Gemm"
            && self.inputs.len() == 3
            && self.attributes.iter().all(plain)
            && self.attributes.iter().any(transposed)
    }

    /// Whether it turns numbers of another kind into float32.
    pub(super) fn is_cast(&self) -> bool {
        let to_float = |attribute: &Attribute<'_>| attribute.name == "to" && attribute.whole == Some(FLOAT);
        self.standard && self.operator == "Cast" && self.attributes.iter().any(to_float)
    }

    /// All names that it reads, those in its bodies too.
    pub(super) fn reads(&self) -> Option<Vec<&'a str>> {
        let mut names = self.inputs.clone();
        for body in self.attributes.iter().flat_map(|attribute| &attribute.graphs) {
            for field in fields(body)? {
                match field.number {
                    NODE => names.extend(Self::read(field.bytes()?)?.reads()?),
                    OUTPUT => names.push(name(field.bytes()?)?),
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
        for field in fields(message)? {
            match (field.number, field.value) {
                (1, _) => attribute.name = field.text()?,
                (2, Value::Fixed32(bytes)) => attribute.float = Some(f32::from_le_bytes(bytes)),
                (3, Value::Number(number)) => attribute.whole = Some(number),
                (6 | 11, Value::Bytes(body)) => attribute.graphs.push(body),
                _ => {}
            }
        }
        Some(attribute)
    }
}

/// A weight that lies in the file.
#[derive(Debug)]
pub(super) struct Tensor<'a> {
    pub(super) name: &'a str,
    pub(super) shape: Vec<usize>,
    kind: u64,
    raw: Option<&'a [u8]>,
    /// Its numbers are in another file.
    pub(super) elsewhere: bool,
}

impl<'a> Tensor<'a> {
    pub(super) fn read(message: &'a [u8]) -> Option<Self> {
        let mut tensor = Self { name: "", shape: vec![], kind: 0, raw: None, elsewhere: false };
        let length = |number: u64| usize::try_from(number).ok();
        for field in fields(message)? {
            match (field.number, field.value) {
                (1, Value::Number(number)) => tensor.shape.push(length(number)?),
                (1, Value::Bytes(numbers)) => {
                    tensor.shape = packed(numbers)?.into_iter().map(length).collect::<Option<_>>()?;
                }
                (2, Value::Number(kind)) => tensor.kind = kind,
                (8, _) => tensor.name = field.text()?,
                (9, Value::Bytes(raw)) => tensor.raw = Some(raw),
                (13, _) => tensor.elsewhere = true,
                _ => {}
            }
        }
        Some(tensor)
    }

    /// Its numbers in float32.
    pub(super) fn floats(&self) -> Option<Vec<f32>> {
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

/// What an input or output is called.
pub(super) fn name(message: &[u8]) -> Option<&str> {
    fields(message)?.into_iter().find(|field| field.number == 1).and_then(Field::text)
}
