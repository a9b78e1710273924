//! Baselines on a shop of six articles, against counts by hand.

use std::fs;

use super::*;

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

fn shop() -> Data {
    let folder = tempfile::tempdir().unwrap();
    for (name, rows) in
        [("articles.jsonl", ARTICLES), ("customers.jsonl", CUSTOMERS), ("outfits.jsonl", OUTFITS)]
    {
        fs::write(folder.path().join(name), rows).unwrap();
    }
    let data = Data::load(folder.path()).unwrap();
    assert_eq!(
        (data.training(), data.development(), data.validation()),
        (&[0, 1, 3, 4][..], &[2][..], &[5][..])
    );
    data
}

fn near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-12, "{found:?} is not {expected:?}");
    }
}

/// The answer about coat 1 missing beside hat 3, in the validation outfit.
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
    let all = Popularity::from_counts(&data.count_articles(data.training()), 0.5);
    near(&answer(&data, &all), &[3.5, 1.5, 2.5, 2.5, 4.5, 4.5].map(|count| count / 19.0));
    let told = TypePopularity::from_counts(&data.count_articles(data.training()), &data, 0.5);
    near(&answer(&data, &told), &[3.5 / 5.0, 1.5 / 5.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn cooccurrence_mixes_pairs_with_popularity() {
    let data = shop();
    let popularity = Popularity::from_counts(&data.count_articles(data.training()), 0.5);
    let pairs = Pairs::count(&data);
    let both = Cooccurrence { popularity: &popularity, pairs: &pairs, weight: 0.5 };
    // Hat 3 was seen once beside each coat, twice beside the shoe and the bag.
    let beside = [1.0 / 6.0, 1.0 / 6.0, 0.0, 0.0, 2.0 / 6.0, 2.0 / 6.0];
    let expected: Vec<f64> =
        beside.iter().zip(&popularity.probabilities).map(|(a, b)| f64::midpoint(*a, *b)).collect();
    near(&answer(&data, &both), &expected);
}

#[test]
fn a_profile_backs_off_from_band_to_gender_to_type() {
    let data = shop();
    let base = TypePopularity::from_counts(&data.count_articles(data.training()), &data, 0.5);
    let cells = Cells::count(&data);
    let told = cells.prices[data.type_of(0)].map(|place| data.schema().features()[place].name.as_str());
    assert_eq!(told, Some("price_outerwear"), "this band has most information about coats");
    let profile = ProfilePopularity { base: &base, cells: &cells, strength: 2.0 };
    // Women: (1 + 2 · 0.3) / (4 + 2); women with an upper band: (1 + 2 · that) / (1 + 2).
    let by_gender = (1.0 + 2.0 * 0.3) / 6.0;
    let by_band = (1.0 + 2.0 * by_gender) / 3.0;
    near(&answer(&data, &profile), &[1.0 - by_band, by_band, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn evaluation_masks_every_slot_in_turn() {
    let data = shop();
    let popularity = Popularity::from_counts(&data.count_articles(data.training()), 0.5);
    let summary = evaluate(&data, data.validation(), &popularity).any.summary();
    // The coat comes last, the hat shares ranks four and five, shoe and bag share one and two.
    assert_eq!(summary.slots, 4);
    let loss = -[1.5, 2.5, 4.5, 4.5].iter().map(|count: &f64| (count / 19.0).ln()).sum::<f64>() / 4.0;
    assert!((summary.cross_entropy.mean - loss).abs() < 1e-12);
    let mrr = [6.0, 4.5, 1.5, 1.5].iter().map(|rank: &f64| rank.recip()).sum::<f64>() / 4.0;
    assert!((summary.mrr.mean - mrr).abs() < 1e-12);
    assert!((summary.recall_at_1.mean - 0.0).abs() < 1e-12);
    assert!((summary.recall_at_5.mean - 0.75).abs() < 1e-12);
}

/// Any two of an outfit's articles are beside every shoe as often: only all three of them say which one it is.
#[test]
fn the_logit_reads_whole_outfits() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let kinds = ["coat", "hat", "bag", "shoe"];
    let articles = kinds.iter().flat_map(|kind| {
        (0..5).map(move |number| format!("{{\"id\":\"{kind}-{number}\",\"type\":\"{kind}\"}}\n"))
    });
    write("articles.jsonl", &articles.collect::<String>());
    write("customers.jsonl", "{\"id\":\"c-0\"}\n");
    let outfit = |place: usize| {
        let (coat, hat, bag) = (place % 5, place / 5 % 5, place / 25 % 5);
        let shoe = (coat + hat + bag) % 5;
        format!(
            "{{\"customer\":\"c-0\",\"articles\":[\"coat-{coat}\",\"hat-{hat}\",\"bag-{bag}\",\"shoe-{shoe}\"]}}\n"
        )
    };
    write("outfits.jsonl", &(0..500).map(outfit).collect::<String>());
    let data = Data::load(folder.path()).unwrap();
    let recall =
        |logit: &Logit<'_>| evaluate(&data, data.development(), logit).any.summary().recall_at_1.mean;
    let (with, without) = (recall(&Logit::fit(&data)), recall(&Logit::fit_for_file(&data)));
    assert!(with > 0.95 && without < 0.5, "{with}, {without}");
}

#[test]
fn the_logit_reads_which_articles_a_feature_names() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("articles.jsonl", ARTICLES);
    write(
        "schema.toml",
        "name = \"had\"\n[[feature]]\nname = \"had\"\nkind = \"set\"\nvalues = [\"a-0\", \"a-1\"]\n",
    );
    write("customers.jsonl", "{\"id\":\"c-0\"}\n{\"id\":\"c-1\"}\n");
    // Each outfit has the coat that its customer had, one time in two the first.
    let outfit = |place: usize| {
        let (coat, hat) = (place % 2, 2 + place / 2 % 2);
        format!(
            "{{\"customer\":\"c-{}\",\"articles\":[\"a-{coat}\",\"a-{hat}\",\"a-4\",\"a-5\"],\"features\":{{\"had\":[\"a-{coat}\"]}}}}\n",
            place / 4 % 2
        )
    };
    write("outfits.jsonl", &(0..200).map(outfit).collect::<String>());
    let data = Data::load(folder.path()).unwrap();
    let question = |had: u32| {
        let features = [vec![had]];
        let mut probabilities = vec![f64::NAN; 6];
        let question = Question { features: &features, customer: 0, visible: &[2, 4, 5], told_type: 0 };
        Logit::fit(&data).answer(&question, &mut probabilities);
        [probabilities[0], probabilities[1]]
    };
    let ([first, _], [_, second]) = (question(1), question(2));
    assert!(first > 0.8 && second > 0.8, "{first}, {second}");
    let found = Logit::fit(&data);
    let named: Vec<(String, f64)> =
        found.coefficients().filter(|(name, _)| name.starts_with("named by")).collect();
    assert!(matches!(&named[..], [(name, weight)] if name == "named by had" && *weight > 1.0), "{named:?}");
}
