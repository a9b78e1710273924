//! The PyTorch models against these.
//!
//! `ATELIER_WRITE_PYTORCH=1 PYTHON=python3 cargo test -p atelier-training --lib pytorch` writes the expected numbers again,
//! with a Python that has training/pytorch/requirements.txt.

use std::{env, fs, path::Path, process::Command};

use safetensors::{Dtype, SafeTensors, serialize_to_file, tensor::TensorView};
use sha2::{Digest, Sha256};

use super::*;

const EXPECTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/model/tests/pytorch.safetensors");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pytorch/expected.py");
const STEPS: usize = 10;
const RATE: f32 = 1e-3;

#[test]
fn pytorch_computes_and_learns_the_same() {
    let methods = [Method::None, Method::C, Method::Np, Method::Gs, Method::Gsu, Method::Match];
    let mut models: Vec<(&str, Model)> =
        methods.iter().map(|method| (method.as_str(), small(*method))).collect();
    models.push(("embeddings", small_with_embeddings()));
    for (_, model) in &mut models {
        model.config.dropout = 0.0;
        model.config.dropout_elsewhere = 0.0;
        model.outfits = None;
    }
    if env::var_os("ATELIER_WRITE_PYTORCH").is_some() {
        let folder = tempfile::tempdir().unwrap();
        for (name, model) in &models {
            write(model, &folder.path().join(name));
        }
        let python = env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let status = Command::new(python).arg(SCRIPT).arg(folder.path()).arg(EXPECTED).status().unwrap();
        assert!(status.success(), "{SCRIPT}: {status}");
    }
    let bytes = fs::read(EXPECTED).unwrap();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let source = hex::encode(Sha256::digest(include_bytes!("../../../pytorch/model.py")));
    let written_by = header.metadata().as_ref().and_then(|metadata| metadata.get("model.py"));
    assert_eq!(written_by, Some(&source), "model.py has changed: run this test with ATELIER_WRITE_PYTORCH=1");
    let expected = SafeTensors::deserialize(&bytes).unwrap();
    for (name, model) in models {
        compare(name, model, &expected);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "PyTorch's losses have a float32's precision")]
fn compare(model_name: &str, model: Model, expected: &SafeTensors<'_>) {
    let batch = batch(&model.config, &outfits(&model));
    let mut found = vec![("logits".to_owned(), model.logits(&batch))];
    let (_, gradients) = model.gradients(&batch, None, &mut Vec::new());
    let names = model.weights.0.iter().map(|tensor| format!("gradient {}", tensor.name));
    found.extend(names.zip(gradients.dense));
    let mut trainer = Trainer::new(model, AdamWConfig::default());
    let losses = (0..STEPS).map(|_| trainer.step(&batch, None, RATE, 1).total as f32);
    found.push(("losses".to_owned(), losses.collect()));
    found.push(("logits after".to_owned(), trainer.model().logits(&batch)));
    for (name, found) in found {
        let Ok(tensor) = expected.tensor(&format!("{model_name} {name}")) else {
            assert!(found.iter().all(|number| *number == 0.0), "{model_name}: PyTorch has no {name}");
            continue;
        };
        let numbers = tensor.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let expected: Vec<f32> = numbers.collect();
        let largest = expected.iter().fold(0.0, |largest: f32, number| largest.max(number.abs()));
        let apart = difference(&found, &expected);
        // Some gradients are zero but for rounding, such as those of the keys' biases.
        let close = |(found, expected): (&f32, &f32)| (found - expected).abs() <= 1e-5 * largest.max(1e-2);
        assert!(
            found.iter().zip(&expected).all(close),
            "{model_name}: {name} differs by {apart} of {largest}"
        );
    }
}

fn outfits(model: &Model) -> Vec<OwnedExample> {
    examples(&model.config, 16, true, 17)
}

/// Writes what the script reads: the first weights, the outfits, and what articles are made of.
fn write(model: &Model, folder: &Path) {
    fs::create_dir(folder).unwrap();
    model.save(&folder.join("start.safetensors")).unwrap();
    let outfits = outfits(model);
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
    let mut numbers: Vec<(&str, Vec<f32>)> =
        vec![("weight", outfits.iter().map(|outfit| outfit.weight).collect())];
    if let Some(rows) = &model.values {
        let mut starts = vec![0];
        let mut values = Vec::new();
        for article in 0..model.config.articles {
            values.extend_from_slice(rows.of_article(article));
            starts.push(u32::try_from(values.len()).unwrap());
        }
        integers.extend([("values", values), ("value_starts", starts)]);
        let factors = (0..model.config.values).map(|value| rows.factor(value)).collect();
        numbers.push(("value_factors", factors));
        if model.config.embedding > 0 {
            let embeddings = (0..model.config.articles).flat_map(|article| rows.embedding(article).to_vec());
            numbers.push(("embeddings", embeddings.collect()));
        }
    }
    let mut arrays: Vec<(&str, Dtype, Vec<u8>)> = Vec::new();
    for (name, values) in numbers {
        arrays.push((name, Dtype::F32, values.into_iter().flat_map(f32::to_le_bytes).collect()));
    }
    for (name, values) in integers {
        arrays.push((name, Dtype::U32, values.into_iter().flat_map(u32::to_le_bytes).collect()));
    }
    let views = arrays
        .iter()
        .map(|(name, kind, bytes)| (name, TensorView::new(*kind, vec![bytes.len() / 4], bytes).unwrap()));
    serialize_to_file(views, None, &folder.join("given.safetensors")).unwrap();
}
