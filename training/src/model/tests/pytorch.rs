//! The PyTorch models against these: run with `cargo test -p atelier-training -- --ignored pytorch`.

use std::{env, fs, process::Command};

use safetensors::{Dtype, serialize_to_file, tensor::TensorView};

use super::*;
use crate::AdamWConfig;

const STEPS: usize = 10;
const RATE: f32 = 1e-3;
const EPSILON: f32 = 1e-6;

/// `training/pytorch/check.py` loads the weights, and compares its logits, gradients, and weights after ten steps.
#[test]
#[ignore = "needs PyTorch: set PYTHON to one that has torch, numpy and safetensors"]
fn pytorch_computes_and_learns_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let methods = [Method::None, Method::C, Method::Np, Method::Gs, Method::Gsu, Method::Match];
    let models = methods.iter().map(|method| (method.as_str(), small(*method)));
    for (name, mut model) in models.chain([("embeddings", small_with_embeddings())]) {
        model.config.dropout = 0.0;
        model.config.dropout_elsewhere = 0.0;
        model.outfits = None;
        write(&model, &folder.path().join(name));
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/pytorch/check.py");
    let python = env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let status = Command::new(python).arg(script).arg(folder.path()).status().unwrap();
    assert!(status.success(), "they differ");
}

fn write(model: &Model, folder: &std::path::Path) {
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("config.json"), serde_json::to_string(&model.config).unwrap()).unwrap();
    model.save(&folder.join("start.safetensors")).unwrap();
    let outfits = examples(&model.config, 16, true, 17);
    let batch = batch(&model.config, &outfits);
    let mut numbers: Vec<(String, Vec<f32>)> = vec![("logits".to_owned(), model.logits(&batch))];
    let (_, gradients) = model.gradients(&batch, None, &mut Vec::new());
    let mut trainer = Trainer::new(model.clone(), AdamWConfig { epsilon: EPSILON, ..AdamWConfig::default() });
    for _ in 0..STEPS {
        trainer.step(&batch, None, RATE, 1);
    }
    for (place, tensor) in trainer.model().weights.0.iter().enumerate() {
        if !gradients.dense[place].is_empty() {
            numbers.push((format!("gradient {}", tensor.name), gradients.dense[place].clone()));
        }
        numbers.push((format!("after {}", tensor.name), tensor.data.clone()));
    }
    numbers.push(("weight".to_owned(), outfits.iter().map(|outfit| outfit.weight).collect()));
    let longest = |outfit: &OwnedExample| outfit.features.iter().map(Vec::len).max().unwrap_or(0);
    let width = outfits.iter().map(longest).max().unwrap_or(0).max(1);
    let features = outfits.iter().flat_map(|outfit| &outfit.features).flat_map(|values| {
        let rest = vec![0; width - values.len()];
        values.iter().copied().chain(rest).collect::<Vec<u32>>()
    });
    let mut integers: Vec<(&str, Vec<u32>)> = vec![
        ("slots", outfits.iter().flat_map(|outfit| outfit.slots.iter().copied()).collect()),
        ("features", features.collect()),
        ("blank", outfits.iter().map(|outfit| u32::try_from(outfit.blank).unwrap()).collect()),
        ("target", outfits.iter().map(|outfit| outfit.target).collect()),
    ];
    if let Some(rows) = &model.values {
        let mut starts = vec![0];
        let mut values = Vec::new();
        for article in 0..model.config.articles {
            values.extend_from_slice(rows.of_article(article));
            starts.push(u32::try_from(values.len()).unwrap());
        }
        integers.extend([("values", values), ("value_starts", starts)]);
        let factors = (0..model.config.values).map(|value| rows.factor(value)).collect();
        numbers.push(("value_factors".to_owned(), factors));
        if model.config.embedding > 0 {
            let embeddings = (0..model.config.articles).flat_map(|article| rows.embedding(article).to_vec());
            numbers.push(("embeddings".to_owned(), embeddings.collect()));
        }
    }
    let bytes = |values: Vec<[u8; 4]>| values.concat();
    let mut arrays: Vec<(String, Dtype, Vec<u8>)> = Vec::new();
    for (name, values) in numbers {
        arrays.push((name, Dtype::F32, bytes(values.into_iter().map(f32::to_le_bytes).collect())));
    }
    for (name, values) in integers {
        arrays.push((name.to_owned(), Dtype::U32, bytes(values.into_iter().map(u32::to_le_bytes).collect())));
    }
    let views = arrays
        .iter()
        .map(|(name, kind, bytes)| (name, TensorView::new(*kind, vec![bytes.len() / 4], bytes).unwrap()));
    serialize_to_file(views, None, &folder.join("expected.safetensors")).unwrap();
}
