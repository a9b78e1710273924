use atelier_core::domain::{MAX_SLOTS, Method, Schema};
use atelier_engine::outfit_memory::{FEATURES, OutfitMemory};
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_pcg::Pcg64;

use super::*;
use crate::{AdamWConfig, engine::number};

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
    config.width = 8;
    config.heads = 2;
    config.blocks = 3;
    config.universal.blocks = 2;
    config.hidden = 12;
    config.feature_width = 4;
    config.personas = 3;
    config.initial =
        InitialScales { articles: 0.7, features: 0.7, vocabulary: 0.5, personas: 0.7, linear: 0.9 };
    config.universal.most_steps = 5;
    config.universal.halting_bias = -1.0;
    config.universal.ponder_weight = 0.3;
    if method == Method::Match {
        config.values = 5;
        config.matching = 4;
        config.memory = 3;
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
    let outfits: Vec<Vec<u32>> = (0..200)
        .map(|_| {
            let mut outfit: Vec<u32> = (0..23).collect();
            outfit.shuffle(&mut random);
            outfit.truncate(7);
            outfit
        })
        .collect();
    model.set_outfits(Arc::new(OutfitMemory::new(articles, outfits.iter().map(Vec::as_slice))));
    model.named_mut("memory.outfits").unwrap().data =
        (0..FEATURES).map(|_| random.random::<f32>() - 0.3).collect();
    // Green and blue are articles, red is none.
    model.named_mut("memory.named").unwrap().data.copy_from_slice(&[0.0, 0.0, 4.0, 9.0]);
}

/// Vectors of values start at zero; these have an effect.
fn draw_values(model: &mut Model) {
    let mut random = Pcg64::seed_from_u64(13);
    for tensor in &mut model.weights.0 {
        if ["values", "value_biases", "embedding", "embedding_biases"]
            .iter()
            .any(|end| tensor.name.ends_with(end))
            || tensor.name.starts_with("match.")
        {
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
            let features = config.features.iter().map(|feature| {
                let most = u32::try_from(feature.rows).unwrap();
                (0..random.random_range(0..3)).map(|_| random.random_range(1..most)).collect()
            });
            let features = features.collect();
            OwnedExample { slots, features, blank, target, weight: 0.5 + random.random::<f32>() }
        })
        .collect()
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
}

fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn order_padding_and_neighbours_do_not_matter() {
    for method in Method::ALL {
        let model = small(method);
        let mut outfits = examples(model.config(), 16, false, 11);
        let logits = model.logits(&batch(model.config(), &outfits));
        for outfit in &mut outfits {
            outfit.slots.reverse();
            outfit.blank = outfit.slots.len() - 1 - outfit.blank;
        }
        let reversed = model.logits(&batch(model.config(), &outfits));
        assert!(difference(&logits, &reversed) < 1e-5, "{method}: the order of the slots");
        for outfit in &mut outfits {
            outfit.slots.insert(0, model.config().padding());
            outfit.slots.push(model.config().padding());
            outfit.blank += 1;
        }
        let padded = model.logits(&batch(model.config(), &outfits));
        assert!(difference(&reversed, &padded) < 1e-6, "{method}: padding");
        let alone: Vec<f32> = outfits
            .iter()
            .flat_map(|outfit| model.logits(&batch(model.config(), std::slice::from_ref(outfit))))
            .collect();
        assert!(difference(&padded, &alone) < 1e-5, "{method}: the other outfits of the batch");
    }
}

#[test]
fn the_context_changes_conditioned_methods_only() {
    for method in Method::ALL {
        let model = small(method);
        let mut outfits = examples(model.config(), 8, false, 13);
        for outfit in &mut outfits {
            outfit.features = vec![vec![1], vec![], vec![2]];
        }
        let one = model.logits(&batch(model.config(), &outfits));
        for outfit in &mut outfits {
            outfit.features = vec![vec![2], vec![1, 3], vec![]];
        }
        let other = model.logits(&batch(model.config(), &outfits));
        let conditioned = Axes::new(method).conditioning != Conditioning::None;
        assert_eq!(difference(&one, &other) > 1e-3, conditioned, "{method}");
    }
}

#[test]
fn personas_come_from_visible_articles() {
    for method in Method::ALL {
        let model = small(method);
        let mut outfits = examples(model.config(), 16, false, 17);
        outfits[7].slots.fill(model.config().blank());
        let Some(shares) = model.personas(&batch(model.config(), &outfits)) else {
            assert!(!Axes::new(method).personas);
            continue;
        };
        for (outfit, shares) in outfits.iter().zip(shares.chunks_exact(3)) {
            assert!((shares.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{method}");
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
    let outfits = examples(model.config(), 32, false, 19);
    let steps = model.steps(&batch(model.config(), &outfits)).unwrap();
    assert!(steps.iter().all(|steps| (1.0..=5.0).contains(steps)), "{steps:?}");
    assert!(steps.iter().any(|steps| steps.fract() > 0.0), "each slot halts at its own step: {steps:?}");
    assert_eq!(small(Method::None).steps(&batch(model.config(), &outfits)), None);
}

#[test]
fn training_is_reproducible_and_resumes_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    for method in [Method::Gsu, Method::LatentUniversal] {
        let start = || Trainer::new(small(method), AdamWConfig::default());
        let outfits = examples(start().model().config(), 132, false, 23);
        let batches: Vec<Batch> =
            outfits.chunks(66).map(|part| batch(start().model().config(), part)).collect();
        let learn = |trainer: &mut Trainer, steps: usize| {
            let losses = (0..steps).map(|_| {
                let batch = &batches[trainer.steps() as usize % batches.len()];
                trainer.step(batch, None, 1e-2, 29).total
            });
            losses.collect::<Vec<f64>>()
        };
        let mut whole = start();
        let losses = learn(&mut whole, 4);
        assert!(losses[3] < losses[1], "{method}: the loss falls: {losses:?}");

        let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let mut first = start();
        let mut resumed = one_thread.install(|| learn(&mut first, 2));
        let path = folder.path().join("trainer.safetensors");
        first.save(&path).unwrap();
        let mut second = Trainer::load(&path).unwrap();
        assert_eq!(second.model().config(), first.model().config());
        resumed.extend(learn(&mut second, 2));
        assert_eq!(resumed, losses, "{method}: to the last bit");
        assert_eq!(second.model().weights(), whole.model().weights());
    }
}

#[test]
fn a_model_is_saved_with_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let model = small(Method::Latent);
    model.save(&path).unwrap();
    let loaded = Model::load(&path).unwrap();
    assert_eq!((loaded.config(), loaded.weights()), (model.config(), model.weights()));

    let error = Trainer::load(&path).unwrap_err().to_string();
    assert!(error.contains("the header's \"adamw\" is missing"), "{error}");
    std::fs::write(&path, "not weights").unwrap();
    let error = Model::load(&path).unwrap_err().to_string();
    assert!(
        error.starts_with(path.to_str().unwrap()) && error.contains("is not a file of weights"),
        "{error}"
    );
}

#[test]
fn a_weight_of_zero_gives_no_gradient() {
    let model = small(Method::None);
    let mut outfits = examples(model.config(), 4, false, 31);
    for outfit in &mut outfits {
        outfit.weight = 0.0;
    }
    let (loss, gradients) = model.gradients(&batch(model.config(), &outfits), None, &mut Vec::new());
    assert!(loss.cross_entropy > 1.0 && loss.total == 0.0);
    assert!(gradients.dense.iter().flatten().all(|gradient| *gradient == 0.0));
}
