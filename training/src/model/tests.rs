use atelier_core::domain::{MAX_SLOTS, Method, Schema};
use atelier_engine::outfit_memory::{FEATURES, OutfitMemory};
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_pcg::Pcg64;

use super::*;
use crate::{
    AdamWConfig,
    engine::number,
    testing::{assert_has, difference, near},
};

mod gradients;
pub(crate) mod pairs;
mod pytorch;

/// A model small enough for finite differences, whose every part has an effect.
pub(crate) fn small(method: Method) -> Model {
    let schema = Schema::parse(
        "name = \"small\"\n\
         [[feature]]\nname = \"gender\"\nkind = \"category\"\nvalues = [\"female\", \"male\"]\n\
         [[feature]]\nname = \"colours\"\nkind = \"set\"\nvalues = [\"red\", \"green\", \"blue\"]\n\
         [[feature]]\nname = \"age\"\nkind = \"number\"\nedges = [18, 30]\n",
    )
    .unwrap();
    let mut config = ModelConfig::new(method, 23, &schema);
    (config.width, config.heads, config.blocks, config.hidden) = (8, 2, 3, 12);
    (config.feature_width, config.personas) = (4, 3);
    config.initial =
        InitialScales { articles: 0.7, features: 0.7, vocabulary: 0.5, personas: 0.7, linear: 0.9 };
    let universal = &mut config.universal;
    (universal.blocks, universal.most_steps) = (2, 5);
    (universal.halting_bias, universal.ponder_weight) = (-1.0, 0.3);
    if method == Method::Match {
        (config.values, config.matching, config.memory) = (5, 4, 3);
        config.of_articles = vec!["colours".to_owned()];
    }
    of_config(&config)
}

/// The small match of articles with embeddings.
pub(crate) fn small_with_embeddings() -> Model {
    let mut config = small(Method::Match).config;
    config.embedding = 2;
    of_config(&config)
}

/// A model whose every tensor has an effect.
pub(crate) fn of_config(config: &ModelConfig) -> Model {
    let mut model = Model::new(config, 7);
    if config.memory > 0 {
        fill_memory(&mut model);
    }
    if config.values > 0 {
        model.set_values(Arc::new(values(config)));
        draw_values(&mut model);
    }
    model
}

/// Each article has none to three values.
pub(crate) fn values(config: &ModelConfig) -> ValueRows {
    let mut random = Pcg64::seed_from_u64(11);
    let rows = (0..config.articles).map(|article| {
        let mut values: Vec<u32> = (0..article % 4).map(|_| random.random_range(0..5)).collect();
        values.sort_unstable();
        values.dedup();
        values
    });
    let rows: Vec<Vec<u32>> = rows.collect();
    let factors = (0..config.values).map(|value| [1.0, 0.3][value % 2]).collect();
    let embeddings = (0..config.articles * config.embedding).map(|_| random.random::<f32>() - 0.5).collect();
    ValueRows::new(factors, rows.iter().map(Vec::as_slice)).with_embeddings(config.embedding, embeddings)
}

/// Each row boosts none to three articles.
fn fill_memory(model: &mut Model) {
    let mut random = Pcg64::seed_from_u64(17);
    let (articles, width) = (model.config.articles, model.config.memory);
    for row in 0..articles {
        for place in 0..row % (width + 1) {
            let numbers = [number(random.random_range(0..articles)), number(1 + row % 4), 0.7];
            for (name, value) in
                ["memory.articles", "memory.counts", "memory.expected"].into_iter().zip(numbers)
            {
                model.named_mut(name).unwrap().data[row * width + place] = value;
            }
        }
    }
    let outfit = |_| {
        let mut outfit: Vec<u32> = (0..23).collect();
        outfit.shuffle(&mut random);
        outfit.truncate(7);
        outfit
    };
    let outfits: Vec<Vec<u32>> = (0..200).map(outfit).collect();
    model.set_outfits(Arc::new(OutfitMemory::new(articles, outfits.iter().map(Vec::as_slice))));
    model.named_mut("memory.outfits").unwrap().data =
        (0..FEATURES).map(|_| random.random::<f32>() - 0.3).collect();
    // Green and blue are articles, red is none.
    model.named_mut("memory.named").unwrap().data.copy_from_slice(&[0.0, 0.0, 4.0, 9.0]);
}

/// Vectors of values start at zero; these have an effect.
fn draw_values(model: &mut Model) {
    let mut random = Pcg64::seed_from_u64(13);
    let ends = ["values", "value_biases", "embedding", "embedding_biases"];
    for tensor in &mut model.weights.0 {
        if tensor.name.starts_with("match.") || ends.iter().any(|end| tensor.name.ends_with(end)) {
            tensor.data.iter_mut().for_each(|value| *value = random.random::<f32>() - 0.5);
        }
    }
    model.compose(Needs::default());
}

/// Outfits of one to twelve slots, with sets, unknown features, further blanks, and padding if `padded`.
pub(crate) fn examples(config: &ModelConfig, count: usize, padded: bool, seed: u64) -> Vec<OwnedExample> {
    let mut random = Pcg64::seed_from_u64(seed);
    (0..count)
        .map(|place| {
            let length = 1 + place % MAX_SLOTS;
            let mut slots: Vec<u32> = (0..length).map(|_| random.random_range(0..config.blank())).collect();
            let target = slots[0];
            slots[0] = config.blank();
            if length > 2 && random.random_bool(0.4) {
                slots[1] = config.blank();
            }
            if padded {
                slots.resize(MAX_SLOTS, config.padding());
            }
            // There may be another blank, so the slot to predict is followed through the shuffle.
            let mut order: Vec<usize> = (0..slots.len()).collect();
            order.shuffle(&mut random);
            let blank = order.iter().position(|&from| from == 0).unwrap();
            let slots = order.iter().map(|&from| slots[from]).collect();
            let features = draw_features(config, &mut random);
            OwnedExample { slots, features, blank, target, weight: 0.5 + random.random::<f32>() }
        })
        .collect()
}

/// None to two values of each feature.
fn draw_features(config: &ModelConfig, random: &mut Pcg64) -> Vec<Vec<u32>> {
    let draw = |feature: &FeatureRows| {
        let most = u32::try_from(feature.rows).unwrap();
        (0..random.random_range(0..3)).map(|_| random.random_range(1..most)).collect()
    };
    config.features.iter().map(draw).collect()
}

#[derive(Debug, Clone)]
pub(crate) struct OwnedExample {
    pub(crate) slots: Vec<u32>,
    pub(crate) features: Vec<Vec<u32>>,
    pub(crate) blank: usize,
    pub(crate) target: u32,
    pub(crate) weight: f32,
}

pub(crate) fn batch(config: &ModelConfig, examples: &[OwnedExample]) -> Batch {
    let mut batch = Batch::new(config);
    for OwnedExample { slots, features, blank, target, weight } in examples {
        batch.push(Example { slots, features, blank: *blank, target: *target, weight: *weight });
    }
    batch
}

impl Model {
    /// Each outfit's mixture of personas, if the method has personas.
    pub(crate) fn personas(&self, batch: &Batch) -> Option<Vec<f32>> {
        let mut tape = self.tape(&batch.packed, None);
        let shares = self.structure.forward(&mut tape).personas?;
        Some(tape.value(shares).to_vec())
    }

    /// Each outfit's mean steps, if the trunk is universal.
    pub(crate) fn steps(&self, batch: &Batch) -> Option<Vec<f32>> {
        let mut tape = self.tape(&batch.packed, None);
        let steps = self.structure.forward(&mut tape).steps?;
        Some(tape.value(steps).to_vec())
    }

    /// The loss without dropout.
    fn loss(&self, batch: &Batch) -> Loss {
        self.gradients(batch, None, &mut Vec::new()).0
    }

    /// The logits of outfits, and of each of them alone.
    fn ask(&self, outfits: &[OwnedExample]) -> (Vec<f32>, Vec<f32>) {
        let ask = |outfits: &[OwnedExample]| self.logits(&batch(self.config(), outfits));
        (ask(outfits), outfits.chunks(1).flat_map(ask).collect())
    }
}

#[test]
fn order_padding_and_neighbours_do_not_matter() {
    for method in Method::ALL {
        let model = small(method);
        let padding = model.config().padding();
        let mut outfits = examples(model.config(), 16, false, 11);
        let (logits, _) = model.ask(&outfits);
        for outfit in &mut outfits {
            outfit.slots.reverse();
            outfit.blank = outfit.slots.len() - 1 - outfit.blank;
        }
        let (reversed, _) = model.ask(&outfits);
        for outfit in &mut outfits {
            outfit.slots.insert(0, padding);
            outfit.slots.push(padding);
            outfit.blank += 1;
        }
        let (padded, alone) = model.ask(&outfits);
        assert!(difference(&logits, &reversed) < 1e-5, "{method}: the order of the slots");
        assert!(difference(&reversed, &padded) < 1e-6, "{method}: padding");
        assert!(difference(&padded, &alone) < 1e-5, "{method}: the other outfits of the batch");
    }
}

#[test]
fn personas_come_from_visible_articles() {
    for method in Method::ALL {
        let model = small(method);
        let mut outfits = examples(model.config(), 16, false, 17);
        outfits[7].slots.fill(model.config().blank());
        let found = model.personas(&batch(model.config(), &outfits));
        assert_eq!(found.is_some(), Axes::new(method).personas, "{method}");
        for (outfit, shares) in outfits.iter().zip(found.unwrap_or_default().chunks_exact(3)) {
            near(f64::from(shares.iter().sum::<f32>()), 1.0, 1e-6);
            assert!(shares.iter().all(|share| *share >= 0.01 / 3.0 - 1e-7), "{method}");
            let visible = outfit.slots.iter().any(|&slot| slot < model.config().blank());
            let even = shares.iter().all(|share| (share - 1.0 / 3.0).abs() < 1e-6);
            assert_eq!(even, !visible, "{method}: {shares:?}");
        }
    }
}

#[test]
fn slots_halt_between_the_first_step_and_the_last() {
    let model = small(Method::Universal);
    let outfits = batch(model.config(), &examples(model.config(), 32, false, 19));
    let steps = model.steps(&outfits).unwrap();
    assert!(steps.iter().all(|steps| (1.0..=5.0).contains(steps)), "{steps:?}");
    assert!(steps.iter().any(|steps| steps.fract() > 0.0), "each slot halts at its own step: {steps:?}");
    assert_eq!(small(Method::None).steps(&outfits), None);
}

#[test]
fn a_file_without_what_is_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    small(Method::Latent).save(&path).unwrap();
    assert_has(&Trainer::load(&path).unwrap_err().to_string(), &["the header's \"adamw\" is missing"]);
    std::fs::write(&path, "not weights").unwrap();
    let error = Model::load(&path).unwrap_err().to_string();
    assert_has(&error, &[path.to_str().unwrap(), "is not a file of weights"]);
}
