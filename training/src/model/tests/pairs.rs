use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_pcg::Pcg64;

use super::*;

/// [`small`] that judges pairs.
pub(crate) fn small_pair(method: Method) -> Model {
    let mut config = small(method).config().clone();
    config.pair = true;
    of_config(&config)
}

#[derive(Debug, Clone)]
pub(crate) struct OwnedPair {
    pub(crate) first: Vec<u32>,
    pub(crate) second: Vec<u32>,
    pub(crate) features: Vec<Vec<u32>>,
    pub(crate) same: bool,
}

/// Halves of one to four slots with some blanks, and padding if `padded`.
pub(crate) fn pairs(config: &ModelConfig, count: usize, padded: bool, seed: u64) -> Vec<OwnedPair> {
    let mut random = Pcg64::seed_from_u64(seed);
    let half = |length: usize, random: &mut Pcg64| {
        let mut slots: Vec<u32> = (0..length).map(|_| random.random_range(0..config.blank())).collect();
        if length > 2 && random.random_bool(0.3) {
            slots[1] = config.blank();
        }
        if padded {
            slots.resize(5, config.padding());
            slots.shuffle(random);
        }
        slots
    };
    (0..count)
        .map(|place| {
            let (first, second) = (half(1 + place % 4, &mut random), half(1 + place / 2 % 4, &mut random));
            let features = config.features.iter().map(|feature| {
                let most = u32::try_from(feature.rows).unwrap();
                (0..random.random_range(0..3)).map(|_| random.random_range(1..most)).collect()
            });
            let features = features.collect();
            OwnedPair { first, second, features, same: place % 2 == 0 }
        })
        .collect()
}

pub(crate) fn pair_batch(config: &ModelConfig, pairs: &[OwnedPair]) -> PairBatch {
    let mut batch = PairBatch::new(config);
    for OwnedPair { first, second, features, same } in pairs {
        batch.push(PairExample { first, second, features, same: *same });
    }
    batch
}

#[test]
fn the_order_of_halves_and_slots_and_padding_do_not_matter() {
    for method in Method::ALL {
        let model = small_pair(method);
        let mut all = pairs(model.config(), 16, false, 3);
        let straight = model.pair_probabilities(&pair_batch(model.config(), &all));
        assert!(straight.iter().all(|probability| (0.0..=1.0).contains(probability)));
        for pair in &mut all {
            std::mem::swap(&mut pair.first, &mut pair.second);
        }
        let swapped = model.pair_probabilities(&pair_batch(model.config(), &all));
        assert!(difference(&straight, &swapped) < 1e-5, "{method}: the halves' order");
        for pair in &mut all {
            pair.first.reverse();
            pair.second.reverse();
        }
        let reversed = model.pair_probabilities(&pair_batch(model.config(), &all));
        assert!(difference(&swapped, &reversed) < 1e-5, "{method}: the slots' order");
        for pair in &mut all {
            pair.first.insert(0, model.config().padding());
            pair.second.push(model.config().padding());
        }
        let padded = model.pair_probabilities(&pair_batch(model.config(), &all));
        assert!(difference(&reversed, &padded) < 1e-6, "{method}: padding");
        let alone: Vec<f32> = all
            .iter()
            .flat_map(|pair| {
                model.pair_probabilities(&pair_batch(model.config(), std::slice::from_ref(pair)))
            })
            .collect();
        assert!(difference(&padded, &alone) < 1e-5, "{method}: the other pairs of the batch");
    }
}

#[test]
fn a_seed_gives_the_same_weights_with_and_without_pairs() {
    for method in Method::ALL {
        let (with, without) = (small_pair(method), small(method));
        let count = without.weights().0.len();
        assert_eq!(with.weights().0[..count], without.weights().0[..]);
        let more: Vec<&str> = with.weights().0[count..].iter().map(|tensor| tensor.name.as_str()).collect();
        let names = ["pair.first.weight", "pair.first.bias", "pair.second.weight", "pair.second.bias"];
        assert_eq!(more, names);
        assert!(with.structure().pair.is_some() && without.structure().pair.is_none());
    }
}

#[test]
fn pairs_are_learned_beside_the_masked_articles() {
    for method in [Method::Gsu, Method::LatentUniversal] {
        let start = || Trainer::new(small_pair(method), AdamWConfig::default());
        let config = start().model().config().clone();
        let outfits = batch(&config, &examples(&config, 8, false, 23));
        // Two shards.
        let halves = pair_batch(&config, &pairs(&config, 34, false, 29));
        let learn = |trainer: &mut Trainer, steps: usize| -> Vec<Loss> {
            (0..steps).map(|_| trainer.step(&outfits, Some((&halves, 0.5)), 2e-2, 31)).collect()
        };
        let mut trainer = start();
        let mut losses = learn(&mut trainer, 5);
        let after_five = trainer.model().weights().clone();
        losses.append(&mut learn(&mut trainer, 20));
        let pair: Vec<f64> = losses.iter().map(|loss| loss.pair.unwrap()).collect();
        // Five steps each: with dropout a single loss is noisy.
        let mean = |losses: &[f64]| losses.iter().sum::<f64>() / 5.0;
        assert!(mean(&pair[20..]) < 0.96 * mean(&pair[..5]), "{method}: {pair:?}");
        assert!(losses[0].total > losses[0].cross_entropy * 0.5);
        let mut again = start();
        let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(one_thread.install(|| learn(&mut again, 5)), losses[..5], "{method}: to the last bit");
        assert_eq!(again.model().weights(), &after_five);

        let mut with_none = start();
        let mut plain = start();
        let none = with_none.step(&outfits, Some((&PairBatch::new(&config), 0.5)), 1e-2, 31);
        assert_eq!(none, plain.step(&outfits, None, 1e-2, 31));
        assert_eq!(with_none.model().weights(), plain.model().weights());
    }
}

#[test]
fn a_half_may_have_no_articles() {
    let model = small_pair(Method::Latent);
    let mut all = pairs(model.config(), 4, false, 5);
    for pair in &mut all {
        pair.first = vec![model.config().padding()];
    }
    all[0].second.clear();
    let batch = pair_batch(model.config(), &all);
    assert!(model.pair_probabilities(&batch).iter().all(|probability| probability.is_finite()));
    let (loss, gradients) = model.pair_gradients(&batch, 1.0, None);
    assert!(loss.total.is_finite() && gradients.dense.iter().flatten().all(|gradient| gradient.is_finite()));
}
