//! Evaluation through ONNX Runtime gives the same figures as the trained weights.

use std::{fmt::Write, fs, sync::LazyLock};

use atelier_core::domain::Method;
use atelier_core::util::folders::cache_folder;
use atelier_engine::{
    evaluation::Metric,
    onnx_runtime::OnnxRuntime,
    release::{MethodEntry, Release},
};
use atelier_training::{
    data::Data,
    evaluate::{Cases, Evaluation, Subject, ask, compare},
    export::{Metadata, Storage, export},
    metrics::{Tally, rank},
    model::{Batch, Example, Model, ModelConfig},
    release::assemble,
};
use serde_json::Map;

use super::Home;

const SCHEMA: &str = "name = \"two\"\n\
    [[feature]]\nname = \"gender\"\nkind = \"category\"\nvalues = [\"female\", \"male\"]\n\
    [[feature]]\nname = \"colours\"\nkind = \"set\"\nvalues = [\"red\", \"green\", \"blue\"]\n";

/// Outfits of four to eight articles for three customers, one of whom is only in validation.
fn shop() -> Home {
    let home = Home::new();
    let mut articles = String::new();
    for number in 0..40 {
        writeln!(articles, "{{\"id\":\"a-{number}\",\"type\":\"t-{}\"}}", number % 4).unwrap();
    }
    let mut outfits = String::new();
    for number in 0..60 {
        let length = 4 + number % 5;
        let ids: Vec<String> =
            (0..length).map(|slot| format!("\"a-{}\"", (number * 7 + slot * 3) % 40)).collect();
        let (customer, split) = match number % 3 {
            0 => (2, "validation"),
            1 => (0, "validation"),
            _ => (number % 2, "train"),
        };
        writeln!(
            outfits,
            "{{\"customer\":\"c-{customer}\",\"articles\":[{}],\"split\":\"{split}\"}}",
            ids.join(",")
        )
        .unwrap();
    }
    let customers = "{\"id\":\"c-0\",\"features\":{\"gender\":\"female\",\"colours\":[\"red\",\"blue\"]}}\n\
                     {\"id\":\"c-1\",\"features\":{}}\n\
                     {\"id\":\"c-2\",\"features\":{\"gender\":\"male\",\"colours\":[\"green\"]}}\n";
    for (name, text) in [
        ("schema.toml", SCHEMA),
        ("articles.jsonl", &articles),
        ("customers.jsonl", customers),
        ("outfits.jsonl", &outfits),
    ] {
        home.write(name, text);
    }
    home
}

fn model(data: &Data, method: Method, seed: u64) -> Model {
    let mut config = ModelConfig::new(method, data.vocabulary().len(), data.schema());
    (config.width, config.heads, config.hidden, config.blocks) = (16, 4, 24, 2);
    config.initial.articles = 0.7;
    config.initial.features = 0.7;
    config.initial.vocabulary = 0.5;
    Model::new(&config, seed)
}

/// The same figures computed from the weights, one case after the other.
fn by_hand(data: &Data, model: &Model) -> Tally {
    let mut tally = Tally::default();
    for &outfit in data.validation() {
        let articles = data.outfits().articles(outfit);
        let mut features = Vec::new();
        data.features_of(outfit, &mut features);
        tally.add_outfit(articles.iter().enumerate().map(|(blank, &target)| {
            let mut slots = articles.to_vec();
            slots[blank] = data.vocabulary().blank();
            let mut batch = Batch::new(model.config());
            batch.push(Example { slots: &slots, features: &features, blank, target, weight: 1.0 });
            let logits: Vec<f64> = model.logits(&batch).into_iter().map(f64::from).collect();
            let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
            (logits[target as usize].exp() / total, rank(&logits, target as usize))
        }));
    }
    tally
}

/// It can be loaded once per process.
pub(crate) static RUNTIME: LazyLock<OnnxRuntime> =
    LazyLock::new(|| OnnxRuntime::load(&cache_folder(), |notice| println!("{notice}")).unwrap());

fn near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 1e-4, "{what}: {found}, expected {expected}");
}

#[test]
fn figures_through_onnx_runtime_match_the_weights() {
    let home = shop();
    let data = Data::load(home.0.path()).unwrap();
    let cases = Cases::of_validation(&data);
    assert_eq!(cases.as_slice().len(), 240);
    let asked = |method: Method, seed: u64| {
        let model = model(&data, method, seed);
        let (release, entry) = exported(&home, &data, &model);
        let answers = ask(&RUNTIME, &Subject::new(&data, &release, &entry), &data, &cases, &|_| {}).unwrap();
        (Evaluation::new(&data, &cases, &answers, Some(seed)), answers, by_hand(&data, &model).summary())
    };
    let mut results = Vec::new();
    for (method, seed) in [(Method::Np, 1), (Method::Np, 2), (Method::Latent, 1), (Method::Universal, 1)] {
        let (evaluation, answers, expected) = asked(method, seed);
        let found = &evaluation.summary;
        assert_eq!((found.slots, evaluation.outfits), (240, 40));
        assert_eq!(evaluation.about.method, method);
        for (name, found, expected) in [
            ("cross-entropy", found.cross_entropy, expected.cross_entropy),
            ("recall@5", found.recall_at_5, expected.recall_at_5),
            ("recall@250", found.recall_at_250, expected.recall_at_250),
            ("MRR", found.mrr, expected.mrr),
        ] {
            near(found.mean, expected.mean, &format!("{method}: {name}"));
            near(found.standard_error, expected.standard_error, &format!("{method}: error of {name}"));
        }
        near(found.recall_at_250.mean, 1.0, "forty articles");
        assert_eq!(evaluation.steps.is_some(), method == Method::Universal);
        results.push((evaluation, answers));
    }
    let segment_summary = |by: &str, value: &str| {
        let segments = &results[0].0.segments;
        segments.iter().find(|segment| segment.by == by && segment.value == value).unwrap().summary.clone()
    };
    let (seen, unseen) =
        (segment_summary("customer", "seen in training"), segment_summary("customer", "unseen in training"));
    assert_eq!((seen.slots, unseen.slots), (120, 120));
    assert_eq!(segment_summary("gender", "male"), unseen, "the customer who is only in validation");
    assert_eq!(segment_summary("articles", "8").slots % 8, 0);

    let comparison = compare(&data, &cases, &results, Vec::new());
    assert_eq!(comparison.methods.iter().map(|method| method.runs).collect::<Vec<_>>(), [2, 1, 1]);
    let mean = |place: usize| results[place].0.summary.cross_entropy.mean;
    let found = comparison
        .differences
        .iter()
        .find(|d| d.metric == Metric::CrossEntropy && d.first == "np" && d.second == "universal")
        .unwrap();
    near(found.difference, f64::midpoint(mean(0), mean(1)) - mean(3), "np less universal");
    assert!(found.low < found.difference && found.difference < found.high, "{found:?}");
}

/// A release of this model alone.
fn exported(home: &Home, data: &Data, model: &Model) -> (Release, MethodEntry) {
    let method = model.config().method;
    let metadata = Metadata { release: "test".into(), storage: Storage::Float32 };
    let file = format!("{method}.onnx");
    let parameters = export(model, &metadata, &home.at(&file)).unwrap();
    let tables = Some(format!("{method}.safetensors"));
    let entry = MethodEntry { method, file, tables, pair: None, parameters, metrics: Map::new() };
    (assemble(home.0.path(), "test", data, entry.clone()).unwrap(), entry)
}

#[test]
fn a_file_for_another_catalogue_is_refused() {
    let home = shop();
    let data = Data::load(home.0.path()).unwrap();
    let config = ModelConfig::new(Method::None, 39, data.schema());
    let (release, entry) = exported(&home, &data, &Model::new(&config, 1));
    let cases = Cases::of_validation(&data);
    let refused = || {
        let subject = Subject::new(&data, &release, &entry);
        ask(&RUNTIME, &subject, &data, &cases, &|_| {}).unwrap_err().to_string()
    };
    let error = refused();
    let tables = home.at("none.safetensors");
    let expected =
        format!("{}: the tensor articles.own is of shape [39, 128], expected 40 rows", tables.display());
    assert!(error.starts_with(&expected), "{error}");
    let (_, _) = exported(&home, &data, &model(&data, Method::None, 1));
    fs::write(home.at("none.onnx"), "not a model").unwrap();
    assert!(refused().contains("ONNX Runtime rejects it"), "{}", refused());
}
