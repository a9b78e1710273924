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

/// A model's expected input or output: its name, its type, and its lengths, None for any.
struct Expected(&'static str, Element, Vec<Option<usize>>);

impl Signature<'_> {
    pub(super) fn has_input(&self, name: &str) -> bool {
        self.inputs.iter().any(|port| port.name == name)
    }

    pub(super) fn has_output(&self, name: &str) -> bool {
        self.outputs.iter().any(|port| port.name == name)
    }

    /// Checks the model's inputs and outputs.
    pub(super) fn check(&self, contract: Contract<'_>, form: &Form) -> Result<(), ModelError> {
        use Element::{Float32, Int64};
        let (last, width) = form.last();
        let features = Some(contract.release.schema().features().len());
        let (mut inputs, mut personas) = (Vec::new(), 0);
        match form {
            Form::Whole { .. } => inputs.push(Expected("articles", Int64, vec![None, None])),
            Form::Trunk(tables) => {
                personas = tables.widths().personas;
                inputs.push(Expected("rows", Float32, vec![None, None, Some(tables.widths().row())]));
                inputs.push(Expected("kinds", Int64, vec![None, None]));
                let context = tables.context().map(|context| vec![None, Some(context.width())]);
                inputs.extend(context.map(|axes| Expected("context", Float32, axes)));
            }
        }
        inputs.push(Expected("blank", Int64, vec![None]));
        let features = Expected("features", Int64, vec![None, features, None]);
        let personas = Expected("personas", Float32, vec![None, Some(personas).filter(|count| *count > 0)]);
        let needs_personas = personas.2[1].is_some();
        inputs.iter().try_for_each(|expected| self.check_port("input", expected, true))?;
        self.check_port("input", &features, false)?;
        self.check_port("output", &Expected(last, Float32, vec![None, Some(width)]), true)?;
        self.check_port("output", &personas, needs_personas)?;
        self.check_port("output", &Expected("steps", Float32, vec![None]), false)?;
        let known: Vec<&str> = inputs.iter().chain([&features]).map(|Expected(name, ..)| *name).collect();
        match self.inputs.iter().find(|input| !known.contains(&input.name.as_str())) {
            Some(input) => Err(self.mismatch(
                "an input".into(),
                format!("called {:?}", input.name),
                format!("only {}", known.join(", ")),
            )),
            None => Ok(()),
        }
    }

    fn check_port(&self, what: &str, expected: &Expected, is_required: bool) -> Result<(), ModelError> {
        let Expected(name, element, axes) = expected;
        let ports = if what == "input" { &self.inputs } else { &self.outputs };
        let Some(port) = ports.iter().find(|port| port.name == *name) else {
            let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            let missing = format!("missing among {}", names.join(", "));
            let missing = || self.mismatch(format!("its {what} `{name}`"), missing, describe(*element, axes));
            return if is_required { Err(missing()) } else { Ok(()) };
        };
        // A dynamic axis takes any length. An input that must take any length needs one.
        let axis_fits = |found: i64, axis: Option<usize>| match axis {
            _ if found == -1 => true,
            Some(length) => usize::try_from(found) == Ok(length),
            None => what == "output",
        };
        let fits = port.element == *element
            && port.axes.len() == axes.len()
            && port.axes.iter().zip(axes).all(|(&found, &axis)| axis_fits(found, axis));
        if fits {
            return Ok(());
        }
        let expected = describe(*element, axes);
        Err(self.mismatch(format!("its {what} `{name}`"), port.description.clone(), expected))
    }

    fn mismatch(&self, what: String, found: String, expected: String) -> ModelError {
        ModelError::Contract { path: self.path.to_owned(), what, found, expected }
    }
}

fn describe(element: Element, axes: &[Option<usize>]) -> String {
    let element = match element {
        Element::Int64 => TensorElementType::Int64.to_string(),
        Element::Float32 => TensorElementType::Float32.to_string(),
        Element::Other => "anything".into(),
    };
    let axes: Vec<String> =
        axes.iter().map(|axis| axis.map_or("any".into(), |length| length.to_string())).collect();
    format!("{element} [{}]", axes.join(", "))
}
