//! What a model takes and gives, held against the contract of a release: names, types and shapes.

use std::path::Path;

use ort::value::{Outlet, TensorElementType, ValueType};

use super::{
    head::Head,
    model::{Expected, ModelError},
};

/// One input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) element: Element,
    /// -1 is any length.
    pub(super) axes: Vec<i64>,
    /// In the words of whoever described it.
    pub(super) shown: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Int64,
    Float32,
    Other,
}

impl Port {
    pub(super) fn of_session(outlet: &Outlet) -> Self {
        let (element, axes) = match outlet.dtype() {
            ValueType::Tensor { ty: TensorElementType::Int64, shape, .. } => (Element::Int64, shape.to_vec()),
            ValueType::Tensor { ty: TensorElementType::Float32, shape, .. } => {
                (Element::Float32, shape.to_vec())
            }
            _ => (Element::Other, Vec::new()),
        };
        Self { name: outlet.name().to_owned(), element, axes, shown: outlet.dtype().to_string() }
    }
}

/// All that a model takes and gives, and where it was found.
#[derive(Debug)]
pub(super) struct Surface<'a> {
    pub(super) path: &'a Path,
    pub(super) inputs: Vec<Port>,
    pub(super) outputs: Vec<Port>,
}

/// One axis: any length, or this one.
type Axes = [Option<usize>];

impl Surface<'_> {
    pub(super) fn takes(&self, name: &str) -> bool {
        self.inputs.iter().any(|port| port.name == name)
    }

    pub(super) fn gives(&self, name: &str) -> bool {
        self.outputs.iter().any(|port| port.name == name)
    }

    /// Of all of it, or of the part before a head of ours.
    pub(super) fn check(&self, expected: Expected<'_>, head: Option<&Head>) -> Result<(), ModelError> {
        let articles = expected.articles();
        let features = expected.features();
        let (inputs, outputs) = (&self.inputs, &self.outputs);
        self.needs(inputs, "input", "articles", Element::Int64, &[None, None])?;
        self.needs(inputs, "input", "blank", Element::Int64, &[None])?;
        self.may_have(inputs, "input", "features", Element::Int64, &[None, Some(features), None])?;
        if let Some(head) = head {
            self.needs(outputs, "output", "hidden", Element::Float32, &[None, Some(head.hidden())])?;
            if head.personas() > 0 {
                self.needs(outputs, "output", "personas", Element::Float32, &[None, Some(head.personas())])?;
            }
        } else {
            self.needs(outputs, "output", "logits", Element::Float32, &[None, Some(articles)])?;
        }
        self.may_have(outputs, "output", "personas", Element::Float32, &[None, None])?;
        self.may_have(outputs, "output", "steps", Element::Float32, &[None])?;
        let known = ["articles", "blank", "features"];
        match inputs.iter().find(|input| !known.contains(&input.name.as_str())) {
            Some(input) => Err(self.wrong(
                format!("an input called {:?}", input.name),
                "there".into(),
                "no inputs but articles, blank and features".into(),
            )),
            None => Ok(()),
        }
    }

    fn needs(
        &self,
        ports: &[Port],
        what: &str,
        name: &str,
        element: Element,
        axes: &Axes,
    ) -> Result<(), ModelError> {
        if !ports.iter().any(|port| port.name == name) {
            let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            return Err(self.wrong(
                format!("its {what} `{name}`"),
                format!("missing among {}", names.join(", ")),
                describe(element, axes),
            ));
        }
        self.may_have(ports, what, name, element, axes)
    }

    fn may_have(
        &self,
        ports: &[Port],
        what: &str,
        name: &str,
        element: Element,
        axes: &Axes,
    ) -> Result<(), ModelError> {
        let Some(port) = ports.iter().find(|port| port.name == name) else { return Ok(()) };
        // A dynamic axis takes any length. Where any is needed, an input's must be dynamic.
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
        Err(self.wrong(format!("its {what} `{name}`"), port.shown.clone(), describe(element, axes)))
    }

    fn wrong(&self, what: String, found: String, expected: String) -> ModelError {
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
