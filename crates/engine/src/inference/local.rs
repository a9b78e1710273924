//! A model in a session of this process.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ort::{
    session::{Session, SessionInputs, SessionOutputs},
    value::{DynValue, Tensor},
};

use super::{
    Device, ModelError,
    inputs::{ArticleCells, Inputs},
    model::{Contract, Found, OptionalOutputs, Outputs},
    signature::Port,
    weights,
};
use crate::onnx_runtime::OnnxRuntime;

#[derive(Debug)]
pub(super) struct Local {
    path: PathBuf,
    session: Session,
    device: Device,
    weights_searched: bool,
    /// After the session, because fields are dropped in this order.
    _runtime: OnnxRuntime,
}

impl Local {
    pub(super) fn open(
        runtime: &OnnxRuntime,
        device: Device,
        contract: Contract<'_>,
    ) -> Result<Self, ModelError> {
        let path = contract.file();
        let session =
            open_session(runtime, &path, device).map_err(|error| rejected(&path, device, &error))?;
        check_metadata(&session, &path, contract)?;
        let weights_searched = check_weights(&path)?;
        Ok(Self { path, session, device, weights_searched, _runtime: runtime.clone() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether all weights are in the file, where they were searched for numbers with which nothing can be computed.
    pub(super) fn weights_searched(&self) -> bool {
        self.weights_searched
    }

    /// The session's inputs and outputs.
    pub(super) fn ports(&self) -> (Vec<Port>, Vec<Port>) {
        let ports = |outlets: &[_]| outlets.iter().map(Port::from_outlet).collect();
        (ports(self.session.inputs()), ports(self.session.outputs()))
    }

    /// Runs the model, and reads its outputs; `last` is the one that answers are made from.
    pub(super) fn infer<T>(
        &mut self,
        inputs: Inputs,
        last: (&'static str, usize),
        optional: OptionalOutputs,
        read: impl FnOnce(Outputs<'_>) -> T,
    ) -> Result<T, ModelError> {
        let Self { path, session, device, .. } = self;
        let rejected = |error: &ort::Error| rejected(path, *device, error);
        let batch = inputs.batch;
        let tensors = tensors(inputs).map_err(|error| rejected(&error))?;
        let outputs = session.run(SessionInputs::from(tensors)).map_err(|error| rejected(&error))?;
        Ok(read(Outputs::find(path, batch, last, optional, |name| find(&outputs, name))?))
    }
}

fn open_session(runtime: &OnnxRuntime, path: &Path, device: Device) -> Result<Session, ort::Error> {
    let builder = Session::builder(runtime.environment())?.with_intra_threads(1)?;
    device.configure(builder)?.commit_from_file(path)
}

fn tensors(inputs: Inputs) -> ort::Result<Vec<(&'static str, DynValue)>> {
    let Inputs { batch, slots, articles, blanks, features } = inputs;
    let mut tensors = match articles {
        ArticleCells::Numbers(numbers) => {
            vec![("articles", Tensor::from_array(([batch, slots], numbers))?.into_dyn())]
        }
        ArticleCells::Rows { width, rows, kinds } => vec![
            ("rows", Tensor::from_array(([batch, slots, width], rows))?.into_dyn()),
            ("kinds", Tensor::from_array(([batch, slots], kinds))?.into_dyn()),
        ],
    };
    tensors.push(("blank", Tensor::from_array(([batch], blanks))?.into_dyn()));
    if let Some(features) = features {
        let shape = [batch, features.features, features.values];
        tensors.push(("features", Tensor::from_array((shape, features.cells))?.into_dyn()));
    }
    Ok(tensors)
}

fn find<'a>(outputs: &'a SessionOutputs<'_>, name: &str) -> Found<'a> {
    match outputs[name].try_extract_tensor::<f32>() {
        Ok((shape, numbers)) => Ok((shape, numbers)),
        Err(error) => Err(format!("that {error}")),
    }
}

fn check_metadata(session: &Session, path: &Path, contract: Contract<'_>) -> Result<(), ModelError> {
    let metadata = session.metadata();
    let entries = [
        ("method", contract.entry().method.to_string()),
        ("release", contract.manifest().name.clone()),
        ("parameters", contract.entry().parameters.to_string()),
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

/// Returns whether all weights are in the file.
fn check_weights(path: &Path) -> Result<bool, ModelError> {
    let bytes = fs::read(path).map_err(|source| ModelError::File { path: path.to_owned(), source })?;
    let found = weights::search(&bytes);
    match found.unsound {
        Some((weight, found)) => Err(ModelError::Weights { path: path.to_owned(), weight, found }),
        None => Ok(!found.elsewhere),
    }
}

fn rejected(path: &Path, device: Device, error: &ort::Error) -> ModelError {
    ModelError::Runtime { path: path.to_owned(), device, reason: error.to_string() }
}
