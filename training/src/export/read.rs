//! Reads the weights of an exported model again, for a later one to begin with.

use std::{collections::HashMap, fs, io, path::Path};

use half::f16;
use prost::Message;
use safetensors::{Dtype, SafeTensors};

use super::{
    ExportError,
    proto::{DataType, ModelProto},
};
use crate::engine::Tensor;

/// The numbers of a trunk and of the tables next to it, by their names there.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn read_weights(
    trunk: &Path,
    tables: Option<&Path>,
) -> Result<HashMap<String, Tensor>, ExportError> {
    let fail = |path: &Path, source| ExportError { path: path.to_owned(), source };
    let mut found = HashMap::new();
    let mut put = |name: &str, shape: Vec<usize>, data: Vec<f32>| {
        found.insert(name.to_owned(), Tensor { name: name.to_owned(), shape, data });
    };
    let bytes = fs::read(trunk).map_err(|error| fail(trunk, error))?;
    let proto = ModelProto::decode(bytes.as_slice()).map_err(|error| fail(trunk, io::Error::other(error)))?;
    for tensor in proto.graph.iter().flat_map(|graph| &graph.initializer) {
        let shape = tensor.dims.iter().filter_map(|length| usize::try_from(*length).ok()).collect();
        match DataType::try_from(tensor.data_type) {
            Ok(DataType::Float) => put(&tensor.name, shape, singles(&tensor.raw_data)),
            Ok(DataType::Float16) => put(&tensor.name, shape, halves(&tensor.raw_data)),
            _ => {}
        }
    }
    let Some(path) = tables else { return Ok(found) };
    let bytes = fs::read(path).map_err(|error| fail(path, error))?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| fail(path, io::Error::other(error)))?;
    for (name, tensor) in tensors.tensors() {
        let (shape, bytes) = (tensor.shape().to_vec(), tensor.data());
        match tensor.dtype() {
            Dtype::F32 => put(&name, shape, singles(bytes)),
            Dtype::F16 => put(&name, shape, halves(bytes)),
            Dtype::I8 => {
                let scales = tensors.tensor(&format!("{name}.scale")).map(|scales| singles(scales.data()));
                let scales = scales.map_err(|error| fail(path, io::Error::other(error)))?;
                let columns = shape.get(1).copied().unwrap_or(1).max(1);
                let rows = bytes.chunks_exact(columns).zip(&scales);
                let data = rows.flat_map(|(row, scale)| {
                    row.iter().map(move |step| f32::from(step.cast_signed()) * scale)
                });
                put(&name, shape.clone(), data.collect());
            }
            _ => {}
        }
    }
    Ok(found)
}

fn singles(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn halves(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect()
}
