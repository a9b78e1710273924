//! A device computes what the CPU does: every method, every gradient, step after step. In the shim always;
//! on a GPU by `just cuda-check`.

use rayon::prelude::*;

use super::*;
use crate::engine::device::{Cuda, Device, shim::Shim};

/// How far apart float32 sums in another order may be, against the largest number of a tensor.
const TOLERANCE: f32 = 1e-4;

/// Past one of the CPU's shards.
const OUTFITS: usize = 70;

fn assert_near(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().map(|number| number.abs()).fold(0.0, f32::max);
    let apart = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    // Not a fold by max: that would pass over NaN.
    let worst = apart.reduce(|worst, apart| if apart <= worst { worst } else { apart }).unwrap_or_default();
    assert!(worst <= TOLERANCE * largest + 1e-7, "{what}: {worst} apart, where the largest is {largest}");
}

/// With no bias at nought and no scale at one, as a new model has them.
fn moved(method: Method) -> Model {
    let mut model = small(method);
    let mut random = Pcg64::seed_from_u64(9);
    let numbers = model.weights.0.iter_mut().flat_map(|tensor| &mut tensor.data);
    numbers.for_each(|number| *number += random.random_range(-0.2..0.2));
    model
}

fn same_gradients<D: Device>(device: D, method: Method, key: Option<u64>) {
    let model = moved(method);
    let outfits = examples(model.config(), OUTFITS, false, 3);
    let batch = batch(model.config(), &outfits);
    let (loss, gradients) = model.gradients(&batch, key, &mut Vec::new());
    let mut expected = gradients.dense;
    let (articles, width) = (model.structure.tables.articles.0, model.config.width);
    expected[articles] = vec![0.0; model.weights.0[articles].data.len()];
    let merged = gradients.articles.merged(width);
    for (row, values) in merged.rows.iter().zip(merged.values.chunks_exact(width)) {
        expected[articles][*row as usize * width..][..width].copy_from_slice(values);
    }
    let names: Vec<String> = model.weights.0.iter().map(|tensor| tensor.name.clone()).collect();
    let trainer = DeviceTrainer::new(device, Trainer::new(model, AdamWConfig::default())).unwrap();
    let (learned, _) = trainer.gradients(&batch, key).unwrap();
    let found = trainer.loss(&batch, &learned).unwrap();
    assert!((found.cross_entropy - loss.cross_entropy).abs() < 1e-5, "{method}: {found:?}, {loss:?}");
    assert!((found.total - loss.total).abs() < 1e-5, "{method}: {found:?}, {loss:?}");
    assert_eq!(found.steps, loss.steps, "{method}");
    let found = trainer.parameters.by_tensor(&trainer.device, &learned.gradients);
    for ((found, expected), name) in found.iter().zip(&expected).zip(&names) {
        assert_near(found, expected, &format!("{method}, dropout {key:?}: the gradient of {name}"));
    }
}

/// Batches that touch other articles each time, so that rows of the table catch up; then the same again
/// from a file.
fn same_steps<D: Device>(open: &dyn Fn() -> D, method: Method) {
    // With a larger epsilon: what has no gradient but rounding must not move by its sign.
    let config = AdamWConfig { epsilon: 1e-3, ..AdamWConfig::default() };
    let start = || Trainer::new(small(method), config);
    let outfits = examples(start().model().config(), 24, false, 23);
    let batches: Vec<Batch> = outfits.chunks(8).map(|part| batch(start().model().config(), part)).collect();
    let step = |learner: &mut dyn Learner| {
        let batch = &batches[learner.steps() as usize % batches.len()];
        learner.step(batch, None, 1e-2, 29).unwrap()
    };
    let mut cpu = start();
    let mut device = DeviceTrainer::new(open(), start()).unwrap();
    for _ in 0..4 {
        let (expected, found) = (step(&mut cpu), step(&mut device));
        assert!((expected.total - found.total).abs() < 1e-4, "{method}: {found:?}, expected {expected:?}");
    }
    let logits = device.logits(&batches[0]).unwrap();
    assert_near(&logits, &cpu.model().logits(&batches[0]), &format!("{method}: logits"));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trainer.safetensors");
    let fetched = device.trainer().unwrap();
    for (found, expected) in fetched.model.weights.0.iter().zip(&cpu.model.weights.0) {
        assert_near(&found.data, &expected.data, &format!("{method}: {} after four steps", found.name));
    }
    for (found, expected) in fetched.adamw.second.iter().zip(&cpu.adamw.second) {
        assert_near(found, expected, &format!("{method}: second moments"));
    }
    assert_eq!(fetched.adamw.touched, cpu.adamw.touched);
    fetched.save(&path).unwrap();
    let mut resumed = DeviceTrainer::new(open(), Trainer::load(&path).unwrap()).unwrap();
    let whole = [step(&mut device), step(&mut device)];
    assert_eq!([step(&mut resumed), step(&mut resumed)], whole, "{method}: to the last bit");
    let (whole, resumed) = (device.trainer().unwrap(), resumed.trainer().unwrap());
    assert!(whole.model.weights == resumed.model.weights && whole.adamw == resumed.adamw, "{method}");
}

#[test]
fn gradients_are_the_cpus() {
    Method::ALL.into_par_iter().for_each(|method| same_gradients(Shim::new(), method, None));
}

#[test]
fn gradients_under_dropout_are_the_cpus() {
    Method::ALL.into_par_iter().for_each(|method| same_gradients(Shim::new(), method, Some(41)));
}

#[test]
fn steps_are_the_cpus_and_go_on_from_a_file() {
    Method::ALL.into_par_iter().for_each(|method| same_steps(&Shim::new, method));
}

#[test]
fn a_step_that_kernels_cannot_count_is_refused() {
    let trainer = Trainer::new(small(Method::None), AdamWConfig::default());
    let outfits = examples(trainer.model().config(), 8, false, 3);
    let batch = batch(trainer.model().config(), &outfits);
    let mut device = DeviceTrainer::new(Shim::new(), trainer).unwrap();
    device.fetched.model.config.hidden = 1 << 28;
    let said = device.step(&batch, None, 1e-3, 1).unwrap_err().to_string();
    assert!(
        said.starts_with("a step needs 11811160064 numbers") && said.contains("smaller --batch"),
        "{said}"
    );
}

#[test]
#[ignore = "needs an NVIDIA GPU: just cuda-check"]
fn a_gpu_computes_what_the_cpu_does() {
    let open = || Cuda::open().unwrap();
    println!("on {}", open().name());
    for method in Method::ALL {
        same_gradients(open(), method, None);
        same_gradients(open(), method, Some(41));
        same_steps(&open, method);
        println!("{method}: losses, gradients and steps agree");
    }
}
