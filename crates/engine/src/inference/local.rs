//! A model in a session of this process.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use ort::{
    logging::LogLevel,
    session::{RunOptions, Session, SessionInputs, SessionOutputs},
    value::{DynValue, Tensor},
};

use super::{
    Device, ModelError,
    deadlines::end_at,
    inputs::{Data, Input, Inputs},
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
    /// Whether all weights are in the file, where they were searched for numbers with which nothing can be computed.
    pub(super) weights_searched: bool,
    /// After the session, because fields are dropped in this order.
    _runtime: OnnxRuntime,
}

impl Local {
    pub(super) fn open(
        runtime: &OnnxRuntime,
        device: Device,
        contract: Contract<'_>,
        path: PathBuf,
    ) -> Result<Self, ModelError> {
        let found = search_weights(&path)?;
        check_files(&found, &path, contract)?;
        let session =
            open_session(runtime, &path, device).map_err(|error| rejected(&path, device, &error))?;
        check_metadata(&session, &path, contract)?;
        let weights_searched = found.elsewhere.is_empty();
        check_weights(found, &path)?;
        Ok(Self { path, session, device, weights_searched, _runtime: runtime.clone() })
    }

    /// The session's inputs and outputs.
    pub(super) fn ports(&self) -> (Vec<Port>, Vec<Port>) {
        let ports = |outlets: &[_]| outlets.iter().map(Port::from_outlet).collect();
        (ports(self.session.inputs()), ports(self.session.outputs()))
    }

    /// Runs the model, and reads its outputs; `last` is the one that answers are made from. Ends a run at the deadline.
    pub(super) fn infer<T>(
        &mut self,
        inputs: Inputs,
        deadline: Instant,
        last: (&'static str, usize),
        optional: OptionalOutputs,
        read: impl FnOnce(Outputs<'_>) -> T,
    ) -> Result<T, ModelError> {
        let Self { path, session, device, .. } = self;
        let rejected = |error: &ort::Error| rejected(path, *device, error);
        let batch = inputs.batch;
        let tensors: ort::Result<Vec<_>> = inputs.tensors.into_iter().map(tensor).collect();
        let tensors = tensors.map_err(|error| rejected(&error))?;
        let options = Arc::new(RunOptions::new().map_err(|error| rejected(&error))?);
        let watched = end_at(deadline, Arc::clone(&options));
        let outputs = session.run_with_options(SessionInputs::from(tensors), &*options);
        drop(watched);
        let outputs = outputs.map_err(|error| {
            let is_late = Instant::now() >= deadline;
            if is_late { ModelError::Timeout { path: path.clone() } } else { rejected(&error) }
        })?;
        Ok(read(Outputs::find(path, batch, last, optional, |name| find(&outputs, name))?))
    }
}

fn open_session(runtime: &OnnxRuntime, path: &Path, device: Device) -> Result<Session, ort::Error> {
    // Each batch has another shape, which a memory pattern would miss, and each miss is a message. `ort` opens the environment
    // for all messages, of which those for developers would be formatted in each run.
    let builder = Session::builder(runtime.environment())?
        .with_intra_threads(1)?
        .with_log_level(LogLevel::Warning)?
        .with_memory_pattern(false)?;
    device.configure(builder)?.commit_from_file(path)
}

fn tensor(Input { name, shape, data, .. }: Input) -> ort::Result<(&'static str, DynValue)> {
    let tensor = match data {
        Data::Integers(numbers) => Tensor::from_array((shape.lengths(), numbers))?.into_dyn(),
        Data::Floats(numbers) => Tensor::from_array((shape.lengths(), numbers))?.into_dyn(),
    };
    Ok((name, tensor))
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
        ("method", contract.entry.method.to_string()),
        ("release", contract.release.manifest().name.clone()),
        ("parameters", contract.entry.parameters.to_string()),
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

fn search_weights(path: &Path) -> Result<weights::Found, ModelError> {
    let bytes = fs::read(path).map_err(|source| ModelError::File { path: path.to_owned(), source })?;
    Ok(weights::search(bytes))
}

/// Before ONNX Runtime reads other files with weights: any path may be in a model.
fn check_files(found: &weights::Found, path: &Path, contract: Contract<'_>) -> Result<(), ModelError> {
    let files = &contract.release.manifest().files;
    match found.elsewhere.iter().find(|file| !files.contains_key(*file)) {
        None => Ok(()),
        Some(file) => Err(ModelError::Contract {
            path: path.to_owned(),
            what: "the file of some weights (external data)".into(),
            found: format!("{file:?}"),
            expected: "a file that release.json lists under `files`".into(),
        }),
    }
}

fn check_weights(found: weights::Found, path: &Path) -> Result<(), ModelError> {
    if let Some((weight, found)) = found.unsound {
        return Err(ModelError::Weights { path: path.to_owned(), weight, found });
    }
    if found.unread {
        return Err(ModelError::Contract {
            path: path.to_owned(),
            what: "a part of it".into(),
            found: "something that only ONNX Runtime can read, or nested more than 32 times".into(),
            expected: "plain ONNX; export the model again".into(),
        });
    }
    Ok(())
}

fn rejected(path: &Path, device: Device, error: &ort::Error) -> ModelError {
    ModelError::Runtime { path: path.to_owned(), device, reason: error.to_string() }
}
