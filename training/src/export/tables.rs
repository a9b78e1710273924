//! Writes the tables beside a trunk: what [`atelier::models::tables::Tables`] reads.

use std::path::Path;

use half::f16;
use safetensors::{Dtype, serialize_to_file, tensor::TensorView};

use super::{ExportError, Storage};
use crate::{
    engine::{Composed, Param, Tensor},
    model::Model,
};

/// One tensor as it is stored.
struct Stored {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

pub(super) fn write(model: &Model, storage: Storage, path: &Path) -> Result<(), ExportError> {
    let structure = model.structure();
    let mut stored = Vec::new();
    let named = [
        ("articles", Some(structure.tables.articles)),
        ("vocabulary", Some(structure.head.weight)),
        ("bias", Some(structure.head.bias)),
        ("personas", structure.head.personas),
    ];
    for (name, table) in named {
        if let Some(table) = table {
            stored.extend(sums(model, name, table, storage));
        }
    }
    stored.extend(memory(model, storage));
    let views = stored.iter().map(|tensor| {
        let view = TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes);
        (tensor.name.as_str(), view.expect("the bytes fit the shape; this is a bug"))
    });
    serialize_to_file(views, None, path)
        .map_err(|error| ExportError { path: path.to_owned(), source: std::io::Error::other(error) })
}

/// A table's own vectors of the vocabulary, and the vectors of values and embeddings if it is a sum.
fn sums(model: &Model, name: &str, table: Param, storage: Storage) -> Vec<Stored> {
    let articles = model.config().articles;
    let whole = |param: Param| model.weights().tensor(param);
    let own = |tensor: &Tensor| {
        let columns = tensor.shape.get(1).copied().unwrap_or(1);
        let shape = if tensor.shape.len() > 1 { vec![articles, columns] } else { vec![articles] };
        floats(format!("{name}.own"), shape, &tensor.data[..articles * columns], storage)
    };
    let Some(composed) = model.composed(table) else { return vec![own(whole(table))] };
    let Composed { own: vectors, values, embedding, .. } = composed;
    let values = model.scaled_values(values, whole(vectors).shape.get(1).copied().unwrap_or(1));
    let mut stored = vec![
        own(&model.own_vectors(composed)),
        floats(format!("{name}.values"), values.shape, &values.data, storage),
    ];
    stored.extend(embedding.map(|embedding| {
        let embedding = whole(embedding);
        floats(format!("{name}.embedding"), embedding.shape.clone(), &embedding.data, storage)
    }));
    stored
}

fn memory(model: &Model, storage: Storage) -> Vec<Stored> {
    let Some(memory) = &model.structure().memory else { return Vec::new() };
    let [beside, named] = memory.rows(model.weights());
    let (articles, columns) = (model.config().articles, model.config().memory + 1);
    let shape = vec![articles, columns];
    let mut stored = vec![
        integers("memory.articles".to_owned(), shape.clone(), &beside.0[..articles * columns]),
        floats("memory.strengths".to_owned(), shape, &beside.1[..articles * columns], storage),
    ];
    for (feature, first) in model.config().features.iter().zip(&memory.features) {
        let Some(first) = first else { continue };
        let rows = *first..first + feature.rows;
        let name = |what: &str| format!("memory.{}.{what}", feature.name);
        stored.push(integers(name("articles"), vec![feature.rows], &named.0[rows.clone()]));
        stored.push(floats(name("strengths"), vec![feature.rows], &named.1[rows], storage));
    }
    stored
}

/// Lists are small and always stored in float32.
fn floats(name: String, shape: Vec<usize>, numbers: &[f32], storage: Storage) -> Stored {
    if storage == Storage::Float16 && shape.len() > 1 {
        let bytes = numbers.iter().flat_map(|number| f16::from_f32(*number).to_le_bytes()).collect();
        return Stored { name, dtype: Dtype::F16, shape, bytes };
    }
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Stored { name, dtype: Dtype::F32, shape, bytes }
}

fn integers(name: String, shape: Vec<usize>, numbers: &[i32]) -> Stored {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Stored { name, dtype: Dtype::I32, shape, bytes }
}
