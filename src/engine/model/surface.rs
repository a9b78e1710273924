//! Whether a file's names, types, shapes and metadata are those that its release needs.

use std::path::Path;

use ort::{
    session::Session,
    value::{Outlet, TensorElementType, ValueType},
};

use super::{Expected, ModelError};
use crate::engine::head::Head;

/// Checks names, types and shapes of a file, or of its trunk where it is served with a head of ours.
pub(super) fn check_surface(
    session: &Session,
    path: &Path,
    expected: Expected<'_>,
    head: Option<&Head>,
) -> Result<(), ModelError> {
    Surface { path, expected }.check(session, head)
}

pub(super) fn check_metadata(
    session: &Session,
    path: &Path,
    expected: Expected<'_>,
) -> Result<(), ModelError> {
    let metadata = session.metadata();
    let entries = [
        ("method", expected.entry.method.to_string()),
        ("release", expected.manifest().name.clone()),
        ("parameters", expected.entry.parameters.to_string()),
    ];
    for (key, expected) in entries {
        let found = metadata.as_ref().ok().and_then(|metadata| metadata.custom(key));
        if found.as_deref() != Some(expected.as_str()) {
            return Err(ModelError::Contract {
                path: path.to_owned(),
                what: format!("`{key}` of its metadata"),
                found: found.map_or("missing".into(), |found| format!("{found:?}")),
                expected: format!("{expected:?}"),
            });
        }
    }
    Ok(())
}

struct Surface<'a> {
    path: &'a Path,
    expected: Expected<'a>,
}

/// One axis: any length, or this one.
type Axes = [Option<usize>];

impl Surface<'_> {
    fn check(&self, session: &Session, head: Option<&Head>) -> Result<(), ModelError> {
        let articles = self.expected.release.vocabulary().len();
        let features = self.expected.schema().features().len();
        let (inputs, outputs) = (session.inputs(), session.outputs());
        let (whole, float) = (TensorElementType::Int64, TensorElementType::Float32);
        self.needs(inputs, "input", "articles", whole, &[None, None])?;
        self.needs(inputs, "input", "blank", whole, &[None])?;
        self.may_have(inputs, "input", "features", whole, &[None, Some(features), None])?;
        if let Some(head) = head {
            self.needs(outputs, "output", "hidden", float, &[None, Some(head.hidden())])?;
            if head.personas() > 0 {
                self.needs(outputs, "output", "personas", float, &[None, Some(head.personas())])?;
            }
        } else {
            self.needs(outputs, "output", "logits", float, &[None, Some(articles)])?;
        }
        self.may_have(outputs, "output", "personas", float, &[None, None])?;
        self.may_have(outputs, "output", "steps", float, &[None])?;
        let known = ["articles", "blank", "features"];
        match inputs.iter().find(|input| !known.contains(&input.name())) {
            Some(input) => Err(self.wrong(
                format!("an input called {:?}", input.name()),
                "there".into(),
                "no inputs but articles, blank and features".into(),
            )),
            None => Ok(()),
        }
    }

    fn needs(
        &self,
        outlets: &[Outlet],
        what: &str,
        name: &str,
        element: TensorElementType,
        axes: &Axes,
    ) -> Result<(), ModelError> {
        if named(outlets, name).is_none() {
            let names: Vec<&str> = outlets.iter().map(Outlet::name).collect();
            return Err(self.wrong(
                format!("its {what} `{name}`"),
                format!("missing among {}", names.join(", ")),
                describe(element, axes),
            ));
        }
        self.may_have(outlets, what, name, element, axes)
    }

    fn may_have(
        &self,
        outlets: &[Outlet],
        what: &str,
        name: &str,
        element: TensorElementType,
        axes: &Axes,
    ) -> Result<(), ModelError> {
        let Some(outlet) = named(outlets, name) else { return Ok(()) };
        // A dynamic axis takes any length. Where any is needed, an input's must be dynamic.
        let axis_fits = |found: i64, axis: Option<usize>| match axis {
            _ if found == -1 => true,
            Some(length) => usize::try_from(found) == Ok(length),
            None => what == "output",
        };
        let fits = match outlet.dtype() {
            ValueType::Tensor { ty, shape, .. } => {
                *ty == element
                    && shape.len() == axes.len()
                    && shape.iter().zip(axes).all(|(&found, &axis)| axis_fits(found, axis))
            }
            _ => false,
        };
        if fits {
            return Ok(());
        }
        Err(self.wrong(format!("its {what} `{name}`"), outlet.dtype().to_string(), describe(element, axes)))
    }

    fn wrong(&self, what: String, found: String, expected: String) -> ModelError {
        ModelError::Contract { path: self.path.to_owned(), what, found, expected }
    }
}

fn describe(element: TensorElementType, axes: &Axes) -> String {
    let axes: Vec<String> =
        axes.iter().map(|axis| axis.map_or("any".into(), |length| length.to_string())).collect();
    format!("{element} [{}]", axes.join(", "))
}

pub(super) fn named<'a>(outlets: &'a [Outlet], name: &str) -> Option<&'a Outlet> {
    outlets.iter().find(|outlet| outlet.name() == name)
}
