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
    let pair = |place| {
        let (first, second) = (half(1 + place % 4, &mut random), half(1 + place / 2 % 4, &mut random));
        OwnedPair { first, second, features: draw_features(config, &mut random), same: place % 2 == 0 }
    };
    (0..count).map(pair).collect()
}

pub(crate) fn pair_batch(config: &ModelConfig, pairs: &[OwnedPair]) -> PairBatch {
    let mut batch = PairBatch::new(config);
    for OwnedPair { first, second, features, same } in pairs {
        batch.push(PairExample { first, second, features, same: *same });
    }
    batch
}

type Change<'a> = &'a dyn Fn(&mut OwnedPair);

#[test]
fn the_order_of_halves_and_slots_and_padding_do_not_matter() {
    for method in Method::ALL {
        let model = small_pair(method);
        let padding = model.config().padding();
        let ask = |pairs: &[OwnedPair]| model.pair_probabilities(&pair_batch(model.config(), pairs));
        let mut all = pairs(model.config(), 16, false, 3);
        let mut before = ask(&all);
        assert!(before.iter().all(|probability| (0.0..=1.0).contains(probability)));
        let changes: [(&str, f32, Change<'_>); 3] = [
            ("the halves' order", 1e-5, &|pair| std::mem::swap(&mut pair.first, &mut pair.second)),
            ("the slots' order", 1e-5, &|pair| {
                pair.first.reverse();
                pair.second.reverse();
            }),
            ("padding", 1e-6, &|pair| {
                pair.first.insert(0, padding);
                pair.second.push(padding);
            }),
        ];
        for (what, most, change) in changes {
            all.iter_mut().for_each(change);
            let after = ask(&all);
            assert!(difference(&before, &after) < most, "{method}: {what}");
            before = after;
        }
        let alone: Vec<f32> = all.chunks(1).flat_map(ask).collect();
        assert!(difference(&before, &alone) < 1e-5, "{method}: the other pairs of the batch");
    }
}

#[test]
fn no_pairs_teach_nothing() {
    for method in [Method::Gsu, Method::LatentUniversal] {
        let [mut with_none, mut plain] =
            [(), ()].map(|()| Trainer::new(small_pair(method), AdamWConfig::default()));
        let config = plain.model().config().clone();
        let outfits = batch(&config, &examples(&config, 8, false, 23));
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
