//! Baselines on a shop of four articles, counted by hand.

use atelier::domain::{Article, ArticleId, CustomerId, FeatureValue, Schema, Vocabulary};
use serde_json::Map;

use super::*;

/// Coats 0 and 1, hats 2 and 3; one woman with a lower and one with an upper band for outerwear.
fn shop() -> Dataset {
    let article = |number: usize, kind: &str| {
        Article::new(ArticleId::new(format!("a-{number}")).unwrap(), kind, Map::new()).unwrap()
    };
    let articles = vec![article(0, "coat"), article(1, "coat"), article(2, "hat"), article(3, "hat")];
    let customer = |number: usize, band: &str| Customer {
        id: CustomerId::new(format!("c-{number}")).unwrap(),
        features: [("gender", "female"), ("price_outerwear", band)]
            .map(|(name, word)| (name.to_owned(), FeatureValue::Text(word.to_owned())))
            .into_iter()
            .collect(),
    };
    let outfit = |customer: u32, articles: &[u32], part| IndexedOutfit {
        customer,
        articles: articles.to_vec(),
        part,
        features: Features::default(),
    };
    Dataset {
        schema: Schema::default_schema(),
        vocabulary: Vocabulary::new(articles.iter().map(|a| a.id.clone()).collect()).unwrap(),
        articles,
        customers: vec![customer(0, "lower"), customer(1, "upper")],
        outfits: vec![
            outfit(0, &[0, 2], Part::Train),
            outfit(0, &[0, 2], Part::Train),
            outfit(0, &[0, 3], Part::Train),
            outfit(1, &[1, 3], Part::Train),
            outfit(1, &[1, 3], Part::Validation),
        ],
    }
}

fn near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-12, "{found:?} is not {expected:?}");
    }
}

fn answer(data: &Dataset, types: &Types, who: &dyn Answers, visible: &[u32], missing: usize) -> Vec<f64> {
    let mut probabilities = vec![f64::NAN; 4];
    let question = Question {
        customer: &data.customers[1],
        features: &data.outfits[4].features,
        visible,
        told_type: types.of_article[missing],
    };
    who.answer(&question, &mut probabilities);
    probabilities
}

#[test]
fn popularity_counts_training_outfits_only() {
    let data = shop();
    let types = Types::new(&data);
    let all = Popularity::from_counts(&counts(&data), 0.5);
    near(&answer(&data, &types, &all, &[3], 1), &[3.5 / 10.0, 1.5 / 10.0, 2.5 / 10.0, 2.5 / 10.0]);
    let told = TypePopularity::from_counts(&counts(&data), &types, 0.5);
    near(&answer(&data, &types, &told, &[3], 1), &[3.5 / 5.0, 1.5 / 5.0, 0.0, 0.0]);
}

#[test]
fn cooccurrence_mixes_what_stood_beside_with_popularity() {
    let data = shop();
    let types = Types::new(&data);
    let popularity = Popularity::from_counts(&counts(&data), 0.5);
    let pairs = Pairs::count(&data);
    let both = Cooccurrence { popularity: &popularity, pairs: &pairs, weight: 0.5 };
    // Hat 3 stood once beside each coat.
    near(&answer(&data, &types, &both, &[3], 1), &[0.25 + 0.175, 0.25 + 0.075, 0.125, 0.125]);
}

#[test]
fn a_profile_backs_off_from_band_to_gender_to_type() {
    let data = shop();
    let types = Types::new(&data);
    let base = TypePopularity::from_counts(&counts(&data), &types, 0.5);
    let cells = Cells::count(&data, &types);
    assert_eq!(cells.prices[0].as_deref(), Some("price_outerwear"), "the band tells the coats apart");
    let profile = ProfilePopularity { base: &base, cells: &cells, strength: 2.0 };
    // Women: (1 + 2 · 0.3) / (4 + 2); women with an upper band: (1 + 2 · that) / (1 + 2).
    let by_gender = (1.0 + 2.0 * 0.3) / 6.0;
    let by_band = (1.0 + 2.0 * by_gender) / 3.0;
    near(&answer(&data, &types, &profile, &[3], 1), &[1.0 - by_band, by_band, 0.0, 0.0]);
}

#[test]
fn evaluation_masks_every_slot_in_turn() {
    let data = shop();
    let types = Types::new(&data);
    let popularity = Popularity::from_counts(&counts(&data), 0.5);
    let summary = evaluate(&data, &types, Part::Validation, &popularity).summary();
    // The outfit {1, 3}: article 1 comes last, article 3 shares ranks two and three.
    assert_eq!(summary.slots, 2);
    let loss = -(0.15_f64.ln() + 0.25_f64.ln()) / 2.0;
    assert!((summary.cross_entropy.mean - loss).abs() < 1e-12);
    assert!((summary.mrr.mean - f64::midpoint(1.0 / 4.0, 1.0 / 2.5)).abs() < 1e-12);
    assert!((summary.recall_at_1.mean - 0.0).abs() < 1e-12);
    assert!((summary.recall_at_5.mean - 1.0).abs() < 1e-12);
}
