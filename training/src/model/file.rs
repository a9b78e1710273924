//! Models and trainers as safetensors files, with the configuration in the header.
//!
//! A trainer's file holds the model and the optimiser's state. Loading builds the model from the file's
//! configuration.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use super::{Model, ModelConfig, Trainer};
use crate::engine::{AdamW, AdamWConfig, Param, Tensor};

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{path}: {source}", path = .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{path} is not a file of weights: {source}", path = .path.display())]
    Format { path: PathBuf, source: safetensors::SafeTensorError },
    #[error(
        "{path}: the header's {name:?} is missing or invalid ({reason}); expected a file that this program wrote",
        path = .path.display()
    )]
    Header { path: PathBuf, name: &'static str, reason: String },
    #[error("{path}: the tensor {name:?} is {found}, expected {expected}", path = .path.display())]
    Tensor { path: PathBuf, name: String, found: String, expected: String },
}

impl Model {
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let header = HashMap::from([("config".to_owned(), json(&self.config))]);
        write(path, &self.named(), header)
    }

    pub fn load(path: &Path) -> Result<Self, FileError> {
        let file = File::read(path)?;
        file.model(&file.tensors()?)
    }

    fn named(&self) -> Vec<Named> {
        self.weights.0.iter().map(|tensor| named("", tensor, &tensor.data)).collect()
    }
}

impl Trainer {
    /// Saves the weights and the optimiser's state.
    pub(crate) fn save(&self, path: &Path) -> Result<(), FileError> {
        let Self { model, adamw, .. } = self;
        let mut tensors = model.named();
        for (prefix, moments) in [("first.", &adamw.first), ("second.", &adamw.second)] {
            // Sums have none.
            let moved = model.weights.0.iter().zip(moments).filter(|(_, moments)| !moments.is_empty());
            tensors.extend(moved.map(|(tensor, moments)| named(prefix, tensor, moments)));
        }
        let header = HashMap::from([
            ("config".to_owned(), json(&model.config)),
            ("adamw".to_owned(), json(&adamw.config)),
            ("steps".to_owned(), adamw.steps.to_string()),
        ]);
        write(path, &tensors, header)
    }

    pub(crate) fn load(path: &Path) -> Result<Self, FileError> {
        let file = File::read(path)?;
        let tensors = file.tensors()?;
        let model = file.model(&tensors)?;
        let config: AdamWConfig = file.header("adamw")?;
        let unmoved = model.structure.unmoved();
        let mut adamw = AdamW::new(config, &model.weights, &unmoved);
        adamw.steps = file.header("steps")?;
        for (place, tensor) in model.weights.0.iter().enumerate() {
            if unmoved.contains(&Param(place)) {
                continue;
            }
            adamw.first[place] = file.floats(&tensors, &format!("first.{}", tensor.name), &tensor.shape)?;
            adamw.second[place] = file.floats(&tensors, &format!("second.{}", tensor.name), &tensor.shape)?;
        }
        Ok(Self::resumed(model, adamw))
    }
}

/// A tensor to write: name, shape, bytes.
type Named = (String, Vec<usize>, Vec<u8>);

fn named(prefix: &str, tensor: &Tensor, data: &[f32]) -> Named {
    let bytes = data.iter().flat_map(|number| number.to_le_bytes()).collect();
    (format!("{prefix}{}", tensor.name), tensor.shape.clone(), bytes)
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("a configuration is always JSON")
}

fn write(path: &Path, tensors: &[Named], header: HashMap<String, String>) -> Result<(), FileError> {
    let format = |source| FileError::Format { path: path.to_owned(), source };
    let views = tensors
        .iter()
        .map(|(name, shape, bytes)| Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(format)?;
    let bytes = safetensors::serialize(views, Some(header)).map_err(format)?;
    // To another name first, so that a killed run leaves the last checkpoint intact.
    let file = |source| FileError::File { path: path.to_owned(), source };
    let beside = path.with_added_extension("partial");
    fs::write(&beside, bytes).map_err(file)?;
    fs::rename(&beside, path).map_err(file)
}

struct File<'a> {
    path: &'a Path,
    bytes: Vec<u8>,
    header: HashMap<String, String>,
}

impl<'a> File<'a> {
    fn read(path: &'a Path) -> Result<Self, FileError> {
        let bytes = fs::read(path).map_err(|source| FileError::File { path: path.to_owned(), source })?;
        let (_, metadata) = SafeTensors::read_metadata(&bytes)
            .map_err(|source| FileError::Format { path: path.to_owned(), source })?;
        let header = metadata.metadata().clone().unwrap_or_default();
        Ok(Self { path, bytes, header })
    }

    fn tensors(&self) -> Result<SafeTensors<'_>, FileError> {
        SafeTensors::deserialize(&self.bytes)
            .map_err(|source| FileError::Format { path: self.path.to_owned(), source })
    }

    fn header<T: serde::de::DeserializeOwned>(&self, name: &'static str) -> Result<T, FileError> {
        let refuse = |reason: String| FileError::Header { path: self.path.to_owned(), name, reason };
        let text = self.header.get(name).ok_or_else(|| refuse("missing".to_owned()))?;
        serde_json::from_str(text).map_err(|error| refuse(error.to_string()))
    }

    fn model(&self, tensors: &SafeTensors<'_>) -> Result<Model, FileError> {
        let config: ModelConfig = self.header("config")?;
        let mut model = Model::new(&config, 0);
        for tensor in &mut model.weights.0 {
            tensor.data = self.floats(tensors, &tensor.name, &tensor.shape)?;
        }
        Ok(model)
    }

    fn floats(&self, tensors: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<Vec<f32>, FileError> {
        let refuse = |found: String| {
            let expected = format!("F32 {shape:?}");
            FileError::Tensor { path: self.path.to_owned(), name: name.to_owned(), found, expected }
        };
        let tensor = tensors.tensor(name).map_err(|_| refuse("missing".to_owned()))?;
        if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
            return Err(refuse(format!("{:?} {:?}", tensor.dtype(), tensor.shape())));
        }
        Ok(tensor.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}
