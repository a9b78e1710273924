//! Outfits per second of a training step (forward, backward, `AdamW`) on random outfits of 4 to 8 articles (mean five)
//! at V=30,000, batch 1024. `gsu_pytorch.py` is the same in PyTorch.
//!
//! `taskset -c 0,1 cargo bench -p atelier-training --bench step -- gsu`

use std::{hint::black_box, time::Instant};

use atelier::domain::{Method, Schema};
use atelier_training::{
    AdamWConfig,
    model::{Batch, Example, Model, ModelConfig, Trainer},
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const OUTFITS: u32 = 1024;
const STEPS: usize = 12;

fn main() {
    let word = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let method: Method = word.map_or(Method::Gsu, |word| word.parse().expect("the word names a method"));
    let config = ModelConfig::new(method, 30_000, &Schema::default_schema());
    let mut trainer = Trainer::new(Model::new(&config, 1), AdamWConfig::default());
    let mut random = Pcg64::seed_from_u64(1);
    let mut seconds = Vec::new();
    let mut loss = None;
    for _ in 0..STEPS {
        let batch = batch(&config, &mut random);
        let start = Instant::now();
        loss = Some(black_box(trainer.step(&batch, None, 1e-3, 1)));
        seconds.push(start.elapsed().as_secs_f64());
    }
    let mut seconds = seconds.split_off(2);
    seconds.sort_by(f64::total_cmp);
    let threads = rayon::current_num_threads();
    let speed = |seconds: f64| f64::from(OUTFITS) / seconds;
    println!(
        "{method}, {threads} threads: median {:.0} outfits/s, best {:.0}, last loss {:.4}",
        speed(seconds[seconds.len() / 2]),
        speed(seconds[0]),
        loss.expect("there was a step").cross_entropy
    );
}

fn batch(config: &ModelConfig, random: &mut Pcg64) -> Batch {
    let mut batch = Batch::new(config);
    for _ in 0..OUTFITS {
        let length = match random.random_range(0..100) {
            0..45 => 4,
            45..75 => 5,
            75..88 => 6,
            88..95 => 7,
            _ => 8,
        };
        let mut slots: Vec<u32> = (0..length).map(|_| random.random_range(0..config.blank())).collect();
        let blank = random.random_range(0..length);
        let target = std::mem::replace(&mut slots[blank], config.blank());
        let features: Vec<Vec<u32>> = config
            .features
            .iter()
            .map(|feature| vec![random.random_range(1..u32::try_from(feature.rows).expect("few rows"))])
            .collect();
        batch.push(Example { slots: &slots, features: &features, blank, target, weight: 1.0 });
    }
    batch
}
