//! Writes the tables next to a trunk: what [`atelier_engine::tables::Tables`] reads.

use std::{fs, io, path::Path};

use half::f16;
use safetensors::{Dtype, serialize, tensor::TensorView};

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
    stored.extend(context(model, storage));
    let views = stored.iter().map(|tensor| {
        let view = TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes);
        (tensor.name.as_str(), view.expect("the bytes fit the shape"))
    });
    // `serialize_to_file` makes files that only their owner can read.
    let written = serialize(views, None).map_err(io::Error::other).and_then(|bytes| fs::write(path, bytes));
    written.map_err(|source| ExportError { path: path.to_owned(), source })
}

/// A table's own vectors of the vocabulary, and the vectors of values and embeddings if it is a sum.
fn sums(model: &Model, name: &str, table: Param, storage: Storage) -> Vec<Stored> {
    let articles = model.config().articles;
    let whole = |param: Param| model.weights().tensor(param);
    let own = |tensor: &Tensor| {
        let columns = tensor.shape.get(1).copied().unwrap_or(1);
        let shape: &[usize] = if tensor.shape.len() > 1 { &[articles, columns] } else { &[articles] };
        floats(&format!("{name}.own"), shape, &tensor.data[..articles * columns], storage)
    };
    let Some(composed) = model.composed(table) else { return own(whole(table)) };
    let Composed { own: vectors, values, embedding, .. } = composed;
    let values = model.scaled_values(values, whole(vectors).shape.get(1).copied().unwrap_or(1));
    let mut stored = own(&model.own_vectors(composed));
    stored.extend(floats(&format!("{name}.values"), &values.shape, &values.data, storage));
    if let Some(embedding) = embedding {
        let embedding = whole(embedding);
        stored.extend(floats(&format!("{name}.embedding"), &embedding.shape, &embedding.data, storage));
    }
    stored
}

fn memory(model: &Model, storage: Storage) -> Vec<Stored> {
    let Some(memory) = &model.structure().memory else { return Vec::new() };
    let [beside, named] = memory.rows(model.weights());
    let (articles, columns) = (model.config().articles, model.config().memory + 1);
    let shape = vec![articles, columns];
    let mut stored =
        vec![integers("memory.articles".to_owned(), shape.clone(), &beside.0[..articles * columns])];
    stored.extend(floats("memory.strengths", &shape, &beside.1[..articles * columns], storage));
    if let Some((outfits, weights)) = model.outfits() {
        let articles = model.config().articles;
        let end = [u32::try_from(articles).expect("articles fit 32 bits")];
        let all = outfits.outfits().flat_map(|outfit| outfit.iter().chain(&end));
        let all: Vec<i32> = all.map(|&article| article.cast_signed()).collect();
        stored.push(integers("memory.outfits".to_owned(), vec![all.len()], &all));
        stored.extend(floats("memory.outfits.weights", &[weights.len()], weights, storage));
    }
    for (feature, first) in model.config().features.iter().zip(&memory.features) {
        let Some(first) = first else { continue };
        let rows = *first..first + feature.rows;
        let name = |what: &str| format!("memory.{}.{what}", feature.name);
        stored.push(integers(name("articles"), vec![feature.rows], &named.0[rows.clone()]));
        stored.extend(floats(&name("strengths"), &[feature.rows], &named.1[rows], storage));
    }
    stored
}

/// The tables of the trunk's input `context`.
fn context(model: &Model, storage: Storage) -> Vec<Stored> {
    let storage = if storage.is_half() { Storage::Float16 } else { Storage::Float32 };
    let tables = &model.structure().tables;
    let rows = [("features", &tables.features), ("match", &tables.matched)];
    let rows = rows.into_iter().flat_map(|(kind, tables)| {
        let features = model.config().features.iter().zip(tables);
        features.map(move |(feature, table)| (format!("{kind}.{}", feature.name), *table))
    });
    let layers = model.structure().context_layers().into_iter().enumerate().flat_map(|(place, layer)| {
        let bias = layer.bias.expect("the context's layers have biases");
        [("weight", layer.weight), ("bias", bias)]
            .map(|(part, param)| (format!("context.{place}.{part}"), param))
    });
    let stored = |(name, param): (String, Param)| {
        let tensor = model.weights().tensor(param);
        floats(&name, &tensor.shape, &tensor.data, storage)
    };
    rows.chain(layers).flat_map(stored).collect()
}

/// Numbers, and their scales if these are stored. Lists are small and always stored in float32.
fn floats(name: &str, shape: &[usize], numbers: &[f32], storage: Storage) -> Vec<Stored> {
    let stored = |dtype, bytes| Stored { name: name.to_owned(), dtype, shape: shape.to_vec(), bytes };
    match (storage, shape) {
        (Storage::Float16, [_, _]) => {
            let bytes = numbers.iter().flat_map(|number| f16::from_f32(*number).to_le_bytes()).collect();
            vec![stored(Dtype::F16, bytes)]
        }
        (Storage::Int8, [rows, columns]) => {
            let (mut scales, mut steps) = (Vec::with_capacity(*rows), Vec::with_capacity(numbers.len()));
            for row in numbers.chunks_exact(*columns) {
                let scale = scale(row);
                scales.push(scale);
                steps.extend(row.iter().map(|number| step(*number, scale).cast_unsigned()));
            }
            let scales = floats(&format!("{name}.scale"), &[*rows], &scales, storage);
            std::iter::once(stored(Dtype::I8, steps)).chain(scales).collect()
        }
        _ => vec![stored(Dtype::F32, numbers.iter().flat_map(|number| number.to_le_bytes()).collect())],
    }
}

/// The scale of a row of eight-bit numbers: its largest number is 127 of them.
fn scale(row: &[f32]) -> f32 {
    row.iter().fold(0.0_f32, |most, number| most.max(number.abs())) / f32::from(i8::MAX)
}

fn step(number: f32, scale: f32) -> i8 {
    #[expect(clippy::cast_possible_truncation, reason = "casts from floats saturate, and 0 / 0 becomes 0")]
    let step = (number / scale).round() as i8;
    step
}

fn integers(name: String, shape: Vec<usize>, numbers: &[i32]) -> Stored {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Stored { name, dtype: Dtype::I32, shape, bytes }
}
