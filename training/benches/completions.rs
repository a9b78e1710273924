//! Completions per second of bare ONNX Runtime on an exported file: full logits, V=30,000, outfits of five.
//!
//! `taskset -c 0,1 cargo bench -p atelier-training --bench completions -- gsu`

use std::time::{Duration, Instant};

use atelier_core::domain::{Method, Schema};
use atelier_core::util::folders::cache_folder;
use atelier_engine::onnx_runtime::OnnxRuntime;
use atelier_training::{
    export::{Metadata, Storage, export},
    model::{Model, ModelConfig},
};
use ort::{session::Session, value::Tensor};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const SLOTS: usize = 5;

fn main() -> anyhow::Result<()> {
    let word = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let method: Method = word.map_or(Ok(Method::Gsu), |word| word.parse())?;
    let config = ModelConfig::new(method, 30_000, &Schema::default_schema());
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.onnx");
    let metadata = Metadata { release: "bench".into(), storage: Storage::Float32 };
    export(&Model::new(&config, 1), &metadata, &path)?;
    let runtime = OnnxRuntime::load(&cache_folder(), |notice| println!("{notice}"))?;
    for threads in [1, 2] {
        let builder = Session::builder(runtime.environment())?.with_intra_threads(threads);
        let mut session = builder.map_err(ort::Error::<()>::from)?.commit_from_file(&path)?;
        for batch in [1, 16, 64, 256] {
            let speed = completions(&mut session, &config, batch)?;
            println!("{method}, {threads} threads, batch {batch}: {speed:.0} completions/s");
        }
    }
    Ok(())
}

/// The best of five rounds of half a second.
fn completions(session: &mut Session, config: &ModelConfig, batch: u32) -> anyhow::Result<f64> {
    let mut random = Pcg64::seed_from_u64(1);
    let outfits = batch as usize;
    let mut articles: Vec<i64> =
        (0..outfits * SLOTS).map(|_| i64::from(random.random_range(0..config.blank()))).collect();
    for outfit in articles.chunks_exact_mut(SLOTS) {
        outfit[2] = i64::from(config.blank());
    }
    let features: Vec<i64> = (0..outfits).flat_map(|_| config.features.iter().map(|_| 1)).collect();
    let mut inputs = vec![
        ("articles", Tensor::from_array(([outfits, SLOTS], articles))?),
        ("blank", Tensor::from_array(([outfits], vec![2_i64; outfits]))?),
    ];
    if session.inputs().iter().any(|input| input.name() == "features") {
        inputs.push(("features", Tensor::from_array(([outfits, config.features.len(), 1], features))?));
    }
    let mut best = 0.0_f64;
    for _ in 0..5 {
        let start = Instant::now();
        let mut runs = 0;
        while start.elapsed() < Duration::from_millis(500) {
            session.run(inputs.iter().map(|(name, value)| (*name, value)).collect::<Vec<_>>())?;
            runs += 1;
        }
        best = best.max(f64::from(runs * batch) / start.elapsed().as_secs_f64());
    }
    Ok(best)
}
