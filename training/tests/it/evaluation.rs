//! Evaluation through ONNX Runtime gives the same figures as the trained weights.

use std::sync::LazyLock;

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
    metrics::{Summary, Tally, rank},
    model::{Batch, Example, Model, ModelConfig},
    release::assemble,
};
use serde_json::Map;

use super::Home;

fn model(data: &Data, method: Method, seed: u64) -> Model {
    let mut config = ModelConfig::new(method, data.vocabulary().len(), data.schema());
    (config.width, config.heads, config.hidden, config.blocks) = (16, 4, 24, 2);
    let initial = &mut config.initial;
    (initial.articles, initial.features, initial.vocabulary) = (0.7, 0.7, 0.5);
    Model::new(&config, seed)
}

/// The same figures computed from the weights, one case after the other, for some customers.
fn by_hand(data: &Data, model: &Model, takes: impl Fn(u32) -> bool) -> Summary {
    let mut tally = Tally::default();
    for &outfit in data.validation().iter().filter(|outfit| takes(data.outfits().customer(**outfit))) {
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
    tally.summary()
}

/// It can be loaded once per process.
pub(crate) static RUNTIME: LazyLock<OnnxRuntime> =
    LazyLock::new(|| OnnxRuntime::load(&cache_folder(), |notice| println!("{notice}")).unwrap());

fn assert_near(found: &Summary, expected: &Summary, what: &str) {
    assert_eq!(found.slots, expected.slots, "{what}");
    for (name, found, expected) in [
        ("cross-entropy", found.cross_entropy, expected.cross_entropy),
        ("recall@5", found.recall_at_5, expected.recall_at_5),
        ("recall@250", found.recall_at_250, expected.recall_at_250),
        ("MRR", found.mrr, expected.mrr),
    ] {
        let off =
            (found.mean - expected.mean).abs().max((found.standard_error - expected.standard_error).abs());
        assert!(off < 1e-4, "{what}: {name} is {found:?}, expected {expected:?}");
    }
}

#[test]
fn figures_through_onnx_runtime_match_the_weights() {
    let home = Home::new();
    home.output_of("synthesise --out world --articles 60 --customers 500 --outfits 600 --validation 40");
    let data = Data::load(&home.at("world")).unwrap();
    assert_eq!(data.count_known(), 60);
    let cases = Cases::of_validation(&data);
    let mut results = Vec::new();
    for (method, seed) in [(Method::Np, 1), (Method::Np, 2), (Method::Latent, 1), (Method::Universal, 1)] {
        let model = model(&data, method, seed);
        let (release, entry) = exported(&home, &data, &model);
        let answers = ask(&RUNTIME, &Subject::new(&data, &release, &entry), &data, &cases, &|_| {}).unwrap();
        let evaluation = Evaluation::new(&data, &cases, &answers, Some(seed));
        assert_eq!((evaluation.about.method, evaluation.outfits), (method, 40));
        assert_eq!(evaluation.steps.is_some(), method == Method::Universal);
        assert_near(&evaluation.summary, &by_hand(&data, &model, |_| true), method.as_str());
        for (segment, is_seen) in [("seen in training", true), ("unseen in training", false)] {
            let of_segment = evaluation.segments.iter().find(|found| found.value == segment).unwrap();
            let expected = by_hand(&data, &model, |customer| data.is_seen(customer) == is_seen);
            assert!(expected.slots > 20, "{}", expected.slots);
            assert_near(&of_segment.summary, &expected, segment);
        }
        results.push((evaluation, answers));
    }

    let comparison = compare(&data, &cases, &results, Vec::new());
    assert_eq!(comparison.methods.iter().map(|method| method.runs).collect::<Vec<_>>(), [2, 1, 1]);
    let mean = |place: usize| results[place].0.summary.cross_entropy.mean;
    let mut found = comparison.differences.iter().filter(|d| d.metric == Metric::CrossEntropy);
    let found = found.find(|d| d.first == "np" && d.second == "universal").unwrap();
    let expected = f64::midpoint(mean(0), mean(1)) - mean(3);
    assert!((found.difference - expected).abs() < 1e-4, "np less universal: {found:?}, expected {expected}");
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
