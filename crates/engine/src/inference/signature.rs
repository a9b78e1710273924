//! A model's inputs and outputs, checked against its release: names, types and shapes.

use std::path::Path;

use ort::value::{Outlet, TensorElementType, ValueType};

use super::model::{Contract, Form, ModelError};

/// One input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) element: Element,
    /// -1 means any length.
    pub(super) axes: Vec<i64>,
    /// The type and shape as the session or server describes them.
    pub(super) description: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Int64,
    Float32,
    Other,
}

impl Port {
    pub(super) fn from_outlet(outlet: &Outlet) -> Self {
        let (element, axes) = match outlet.dtype() {
            ValueType::Tensor { ty: TensorElementType::Int64, shape, .. } => (Element::Int64, shape.to_vec()),
            ValueType::Tensor { ty: TensorElementType::Float32, shape, .. } => {
                (Element::Float32, shape.to_vec())
            }
            _ => (Element::Other, Vec::new()),
        };
        Self { name: outlet.name().to_owned(), element, axes, description: outlet.dtype().to_string() }
    }
}

/// All inputs and outputs of the model at `path`.
#[derive(Debug)]
pub(super) struct Signature<'a> {
    pub(super) path: &'a Path,
    pub(super) inputs: Vec<Port>,
    pub(super) outputs: Vec<Port>,
}

/// Expected lengths; None for any length.
type Axes = [Option<usize>];

impl Signature<'_> {
    pub(super) fn has_input(&self, name: &str) -> bool {
        self.inputs.iter().any(|port| port.name == name)
    }

    pub(super) fn has_output(&self, name: &str) -> bool {
        self.outputs.iter().any(|port| port.name == name)
    }

    /// Checks the model's inputs and outputs.
    pub(super) fn check(&self, contract: Contract<'_>, form: &Form) -> Result<(), ModelError> {
        let features = contract.features();
        let (inputs, outputs) = (&self.inputs, &self.outputs);
        let (last, width) = form.last();
        let articles: &[&str] = match form {
            Form::Whole { .. } => {
                self.require(inputs, "input", "articles", Element::Int64, &[None, None])?;
                &["articles"]
            }
            Form::Trunk(tables) => {
                let row = tables.widths().row();
                self.require(inputs, "input", "rows", Element::Float32, &[None, None, Some(row)])?;
                self.require(inputs, "input", "kinds", Element::Int64, &[None, None])?;
                match tables.context() {
                    Some(context) => {
                        let axes = [None, Some(context.width())];
                        self.require(inputs, "input", "context", Element::Float32, &axes)?;
                        &["rows", "kinds", "context"]
                    }
                    None => &["rows", "kinds"],
                }
            }
        };
        self.require(inputs, "input", "blank", Element::Int64, &[None])?;
        self.check_port(inputs, "input", "features", Element::Int64, &[None, Some(features), None])?;
        self.require(outputs, "output", last, Element::Float32, &[None, Some(width)])?;
        if let Form::Trunk(tables) = form
            && tables.widths().personas > 0
        {
            let axes = [None, Some(tables.widths().personas)];
            self.require(outputs, "output", "personas", Element::Float32, &axes)?;
        }
        self.check_port(outputs, "output", "personas", Element::Float32, &[None, None])?;
        self.check_port(outputs, "output", "steps", Element::Float32, &[None])?;
        let known = [articles, &["blank", "features"]].concat();
        match inputs.iter().find(|input| !known.contains(&input.name.as_str())) {
            Some(input) => Err(self.mismatch(
                "an input".into(),
                format!("called {:?}", input.name),
                format!("only {}", known.join(", ")),
            )),
            None => Ok(()),
        }
    }

    fn require(
        &self,
        ports: &[Port],
        what: &str,
        name: &str,
        element: Element,
        axes: &Axes,
    ) -> Result<(), ModelError> {
        if !ports.iter().any(|port| port.name == name) {
            let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            return Err(self.mismatch(
                format!("its {what} `{name}`"),
                format!("missing among {}", names.join(", ")),
                describe(element, axes),
            ));
        }
        self.check_port(ports, what, name, element, axes)
    }

    /// Checks the port if the model has it.
    fn check_port(
        &self,
        ports: &[Port],
        what: &str,
        name: &str,
        element: Element,
        axes: &Axes,
    ) -> Result<(), ModelError> {
        let Some(port) = ports.iter().find(|port| port.name == name) else { return Ok(()) };
        // A dynamic axis takes any length. An input that must take any length needs one.
        let axis_fits = |found: i64, axis: Option<usize>| match axis {
            _ if found == -1 => true,
            Some(length) => usize::try_from(found) == Ok(length),
            None => what == "output",
        };
        let fits = port.element == element
            && port.axes.len() == axes.len()
            && port.axes.iter().zip(axes).all(|(&found, &axis)| axis_fits(found, axis));
        if fits {
            return Ok(());
        }
        Err(self.mismatch(format!("its {what} `{name}`"), port.description.clone(), describe(element, axes)))
    }

    fn mismatch(&self, what: String, found: String, expected: String) -> ModelError {
        ModelError::Contract { path: self.path.to_owned(), what, found, expected }
    }
}

fn describe(element: Element, axes: &Axes) -> String {
    let element = match element {
        Element::Int64 => TensorElementType::Int64.to_string(),
        Element::Float32 => TensorElementType::Float32.to_string(),
        Element::Other => "anything".into(),
    };
    let axes: Vec<String> =
        axes.iter().map(|axis| axis.map_or("any".into(), |length| length.to_string())).collect();
    format!("{element} [{}]", axes.join(", "))
}
