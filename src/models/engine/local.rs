//! A model in a session of this process.
//!
//! On a CPU, a file written by our exporter is served in two parts: ONNX Runtime computes the trunk and the
//! [`head`](super::head) computes the last layer. On other devices, and for other files, ONNX Runtime computes the
//! whole model.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use ort::{
    session::{Session, SessionInputs, SessionOutputs},
    value::Tensor,
};

use super::{
    Answer, Device, ModelError, Question,
    choose::choose_all,
    cores::Cores,
    graph,
    head::{Boosts, Head},
    inputs::Inputs,
    model::{Contract, OptionalOutputs, Outputs},
    signature::Port,
    weights,
};
use crate::models::onnx_runtime::OnnxRuntime;

#[derive(Debug)]
pub(super) struct Local {
    path: PathBuf,
    session: Session,
    /// Computes the last layer, unless the session does.
    head: Option<Arc<Head>>,
    device: Device,
    cores: Cores,
    weights_searched: bool,
}

impl Local {
    /// Opens the file. Further copies of a model share the head of the first.
    pub(super) fn open(
        runtime: &OnnxRuntime,
        device: Device,
        cores: Cores,
        contract: Contract<'_>,
        head: Option<Arc<Head>>,
    ) -> Result<Self, ModelError> {
        let path = contract.file();
        let (session, head) = open_session(runtime, &path, contract, device, head)
            .map_err(|error| rejected(&path, device, &error))?;
        check_metadata(&session, &path, contract)?;
        let weights_searched = check_weights(&path)?;
        Ok(Self { path, session, head, device, cores, weights_searched })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn head(&self) -> Option<&Arc<Head>> {
        self.head.as_ref()
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

    pub(super) fn answer(
        &mut self,
        inputs: Inputs,
        articles: usize,
        optional: OptionalOutputs,
        questions: &[Question],
    ) -> Result<Vec<Result<Answer, ModelError>>, ModelError> {
        let Self { path, session, head, device, cores, .. } = self;
        let cores = cores.start_run();
        let rejected = |error: &ort::Error| rejected(path, *device, error);
        let tensors = tensors(inputs).map_err(|error| rejected(&error))?;
        let outputs = session.run(SessionInputs::from(tensors)).map_err(|error| rejected(&error))?;
        let (name, width) = match head {
            Some(head) => ("hidden", head.hidden()),
            None => ("logits", articles),
        };
        // A file of another's may have an output of this name.
        let boosts = match head {
            Some(head) if head.is_boosted() => boosts(path, &outputs, questions.len(), articles)?,
            _ => Vec::new(),
        };
        let outputs = read_outputs(path, &outputs, questions.len(), (name, width), optional)?;
        let answers = match head {
            Some(head) => {
                let personas = outputs.personas.map(|(_, mixes)| mixes);
                head.answer(outputs.last, personas, &boosts, questions, &cores)
            }
            None => choose_all(outputs.last, articles, questions),
        };
        Ok(outputs.complete(path, answers))
    }
}

/// Opens the file in a session, or only its trunk with a head where that is faster.
fn open_session(
    runtime: &OnnxRuntime,
    path: &Path,
    contract: Contract<'_>,
    device: Device,
    shared: Option<Arc<Head>>,
) -> Result<(Session, Option<Arc<Head>>), ort::Error> {
    let builder = Session::builder(runtime.environment())?.with_intra_threads(1)?;
    let mut builder = device.configure(builder)?;
    // If the file cannot be read or cut, ONNX Runtime reports what is wrong with it.
    let parts = match device {
        Device::Cpu => fs::read(path).ok().and_then(|file| graph::split(&file)),
        Device::Cuda | Device::Remote => None,
    };
    match parts {
        Some(parts) if parts.head.bias.len() == contract.articles() => {
            let session = builder.commit_from_memory(&parts.trunk)?;
            Ok((session, Some(shared.unwrap_or_else(|| Arc::new(Head::new(&parts.head))))))
        }
        _ => Ok((builder.commit_from_file(path)?, None)),
    }
}

fn tensors(inputs: Inputs) -> ort::Result<Vec<(&'static str, Tensor<i64>)>> {
    let Inputs { batch, slots, articles, blanks, features } = inputs;
    let mut tensors = vec![
        ("articles", Tensor::from_array(([batch, slots], articles))?),
        ("blank", Tensor::from_array(([batch], blanks))?),
    ];
    if let Some(features) = features {
        let shape = [batch, features.features, features.values];
        tensors.push(("features", Tensor::from_array((shape, features.cells))?));
    }
    Ok(tensors)
}

fn read_outputs<'a>(
    path: &Path,
    outputs: &'a SessionOutputs<'_>,
    batch: usize,
    (name, width): (&'static str, usize),
    optional: OptionalOutputs,
) -> Result<Outputs<'a>, ModelError> {
    Ok(Outputs {
        last: floats(path, outputs, name, &[batch, width])?,
        personas: optional.personas.then(|| rows(path, outputs, "personas", batch)).transpose()?,
        steps: optional.steps.then(|| floats(path, outputs, "steps", &[batch])).transpose()?,
    })
}

/// What is added to the logits, question by question.
fn boosts(
    path: &Path,
    outputs: &SessionOutputs<'_>,
    batch: usize,
    articles: usize,
) -> Result<Vec<Boosts>, ModelError> {
    let (columns, values) = rows(path, outputs, "boosts", batch)?;
    let refused = |found: String| ModelError::Output { path: path.to_owned(), found };
    let (_, boosted) = outputs["boosted"]
        .try_extract_tensor::<i32>()
        .map_err(|error| refused(format!("boosted that {error}")))?;
    if boosted.len() != values.len() {
        return Err(refused(format!("{} boosted articles and {} boosts", boosted.len(), values.len())));
    }
    let each = boosted.chunks(columns.max(1)).zip(values.chunks(columns.max(1)));
    each.map(|(boosted, values)| {
        Boosts::new(boosted, values, articles)
            .ok_or_else(|| refused(format!("boosted articles beyond the {articles} of the vocabulary")))
    })
    .collect()
}

fn floats<'a>(
    path: &Path,
    outputs: &'a SessionOutputs<'_>,
    name: &'static str,
    shape: &[usize],
) -> Result<&'a [f32], ModelError> {
    let found = outputs[name].try_extract_tensor::<f32>();
    match found {
        Ok((found, values))
            if found.iter().map(|&d| usize::try_from(d).ok()).eq(shape.iter().map(|&d| Some(d))) =>
        {
            Ok(values)
        }
        Ok((found, _)) => {
            Err(ModelError::Output { path: path.to_owned(), found: format!("{name} of shape {found:?}") })
        }
        Err(error) => {
            Err(ModelError::Output { path: path.to_owned(), found: format!("{name} that {error}") })
        }
    }
}

/// An output with any number of columns, and that number.
fn rows<'a>(
    path: &Path,
    outputs: &'a SessionOutputs<'_>,
    name: &'static str,
    batch: usize,
) -> Result<(usize, &'a [f32]), ModelError> {
    let columns = match outputs[name].try_extract_tensor::<f32>() {
        Ok((shape, _)) => shape.get(1).and_then(|&columns| usize::try_from(columns).ok()).unwrap_or(0),
        Err(_) => 0,
    };
    floats(path, outputs, name, &[batch, columns]).map(|values| (columns, values))
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
