//! Baselines on a shop of six articles, against counts by hand.

use serde_json::json;

use super::*;
use crate::testing::{folder, lines, near};

/// Coats 0 and 1, hats 2 and 3, a shoe and a bag that go with everything.
const ARTICLES: &str = r#"{"id":"a-0","type":"coat"}
{"id":"a-1","type":"coat"}
{"id":"a-2","type":"hat"}
{"id":"a-3","type":"hat"}
{"id":"a-4","type":"shoe"}
{"id":"a-5","type":"bag"}
"#;

/// Two women, one with a lower and one with an upper band for outerwear.
const CUSTOMERS: &str = r#"{"id":"c-0","features":{"gender":"female","price_outerwear":"lower"}}
{"id":"c-1","features":{"gender":"female","price_outerwear":"upper"}}
"#;

/// The third row is in the development split.
const OUTFITS: &str = r#"{"customer":"c-0","articles":["a-0","a-2","a-4","a-5"]}
{"customer":"c-0","articles":["a-0","a-2","a-4","a-5"]}
{"customer":"c-1","articles":["a-1","a-2","a-4","a-5"]}
{"customer":"c-0","articles":["a-0","a-3","a-4","a-5"]}
{"customer":"c-1","articles":["a-1","a-3","a-4","a-5"]}
{"customer":"c-1","articles":["a-1","a-3","a-4","a-5"],"split":"validation"}
"#;

fn load(articles: &str, customers: &str, outfits: &str, schema: &str) -> Data {
    let tables = [("articles.jsonl", articles), ("customers.jsonl", customers), ("outfits.jsonl", outfits)];
    let schema = (!schema.is_empty()).then_some(("schema.toml", schema));
    Data::load(folder(&tables.into_iter().chain(schema).collect::<Vec<_>>()).path()).unwrap()
}

fn shop() -> Data {
    let data = load(ARTICLES, CUSTOMERS, OUTFITS, "");
    let splits = [data.training(), data.development(), data.validation()];
    assert_eq!(splits, [&[0, 1, 3, 4][..], &[2], &[5]]);
    data
}

fn popularity(data: &Data) -> Popularity {
    Popularity::from_counts(&data.count_articles(data.training()), 0.5)
}

fn type_popularity(data: &Data) -> TypePopularity<'_> {
    TypePopularity::from_counts(&data.count_articles(data.training()), data, 0.5)
}

fn all_near(found: &[f64], expected: [f64; 6]) {
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-12, "{found:?} is not {expected:?}");
    }
}

/// The answer about coat 1 missing with hat 3, in the validation outfit.
fn answer(data: &Data, baseline: &dyn Answers) -> Vec<f64> {
    let mut probabilities = vec![f64::NAN; 6];
    let mut features = Vec::new();
    data.features_of(5, &mut features);
    let question = Question { features: &features, customer: 1, visible: &[3], told_type: data.type_of(1) };
    baseline.answer(&question, &mut probabilities);
    probabilities
}

#[test]
fn popularity_counts_only_training_outfits() {
    let data = shop();
    let counts = [3.5, 1.5, 2.5, 2.5, 4.5, 4.5];
    all_near(&answer(&data, &popularity(&data)), counts.map(|count| count / 19.0));
    all_near(&answer(&data, &type_popularity(&data)), [3.5 / 5.0, 1.5 / 5.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn cooccurrence_mixes_pairs_with_popularity() {
    let data = shop();
    let (popularity, pairs) = (popularity(&data), Pairs::count(&data));
    let both = Cooccurrence { popularity: &popularity, pairs: &pairs, weight: 0.5 };
    // Hat 3 was seen once with each coat, twice with the shoe and the bag.
    let beside = [1.0 / 6.0, 1.0 / 6.0, 0.0, 0.0, 2.0 / 6.0, 2.0 / 6.0];
    let expected = std::array::from_fn(|at| f64::midpoint(beside[at], popularity.probabilities[at]));
    all_near(&answer(&data, &both), expected);
}

#[test]
fn a_profile_backs_off_from_band_to_gender_to_type() {
    let data = shop();
    let (base, cells) = (type_popularity(&data), Cells::count(&data));
    let told = cells.prices[data.type_of(0)].map(|place| data.schema().features()[place].name.as_str());
    assert_eq!(told, Some("price_outerwear"), "this band has most information about coats");
    let profile = ProfilePopularity { base: &base, cells: &cells, strength: 2.0 };
    // Women: (1 + 2 · 0.3) / (4 + 2); women with an upper band: (1 + 2 · that) / (1 + 2).
    let by_gender = (1.0 + 2.0 * 0.3) / 6.0;
    let by_band = (1.0 + 2.0 * by_gender) / 3.0;
    all_near(&answer(&data, &profile), [1.0 - by_band, by_band, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn evaluation_masks_every_slot_in_turn() {
    let data = shop();
    let summary = evaluate(&data, data.validation(), &popularity(&data)).any.summary();
    // The coat comes last, the hat shares ranks four and five, shoe and bag share one and two.
    assert_eq!(summary.slots, 4);
    let loss = -[1.5, 2.5, 4.5, 4.5].iter().map(|count: &f64| (count / 19.0).ln()).sum::<f64>() / 4.0;
    let mrr = [6.0, 4.5, 1.5, 1.5].iter().map(|rank: &f64| rank.recip()).sum::<f64>() / 4.0;
    near(summary.cross_entropy.mean, loss, 1e-12);
    near(summary.mrr.mean, mrr, 1e-12);
    near(summary.recall_at_1.mean, 0.0, 1e-12);
    near(summary.recall_at_5.mean, 0.75, 1e-12);
}

/// Any two of an outfit's articles are with every shoe as often: only all three of them say which one it is.
#[test]
fn the_logit_reads_whole_outfits() {
    let kinds = ["coat", "hat", "bag", "shoe"];
    let article = |at: usize| json!({"id": format!("{}-{}", kinds[at / 5], at % 5), "type": kinds[at / 5]});
    let outfit = |place: usize| {
        let (coat, hat, bag) = (place % 5, place / 5 % 5, place / 25 % 5);
        let numbers = kinds.iter().zip([coat, hat, bag, (coat + hat + bag) % 5]);
        let articles: Vec<String> = numbers.map(|(kind, number)| format!("{kind}-{number}")).collect();
        json!({"customer": "c-0", "articles": articles})
    };
    let (articles, outfits) = (lines((0..20).map(article)), lines((0..500).map(outfit)));
    let data = load(&articles, "{\"id\":\"c-0\"}\n", &outfits, "");
    let recall =
        |logit: &Logit<'_>| evaluate(&data, data.development(), logit).any.summary().recall_at_1.mean;
    let (with, without) = (recall(&Logit::fit(&data)), recall(&Logit::fit_for_file(&data)));
    assert!(with > 0.95 && without < 0.5, "{with}, {without}");
}

#[test]
fn the_logit_reads_which_articles_a_feature_names() {
    let schema = "name = \"had\"\n[[feature]]\nname = \"had\"\nkind = \"set\"\nvalues = [\"a-0\", \"a-1\"]\n";
    // Each outfit has the coat that its customer had, one time in two the first.
    let outfit = |place: usize| {
        let [coat, hat] = [place % 2, 2 + place / 2 % 2].map(|number| format!("a-{number}"));
        let articles = [&coat, &hat, "a-4", "a-5"];
        json!({"customer": format!("c-{}", place / 4 % 2), "articles": articles, "features": {"had": [coat]}})
    };
    let customers = "{\"id\":\"c-0\"}\n{\"id\":\"c-1\"}\n";
    let data = load(ARTICLES, customers, &lines((0..200).map(outfit)), schema);
    let logit = Logit::fit(&data);
    for had in [1, 2] {
        let features = [vec![had]];
        let mut probabilities = vec![f64::NAN; 6];
        let question = Question { features: &features, customer: 0, visible: &[2, 4, 5], told_type: 0 };
        logit.answer(&question, &mut probabilities);
        assert!(probabilities[had as usize - 1] > 0.8, "{had}: {probabilities:?}");
    }
    let named: Vec<(String, f64)> =
        logit.coefficients().filter(|(name, _)| name.starts_with("named by")).collect();
    assert!(matches!(&named[..], [(name, weight)] if name == "named by had" && *weight > 1.0), "{named:?}");
}
