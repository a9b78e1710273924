//! Baselines as whole files: articles' numbers in, logits of the known articles out. All numbers are float32, because counts need
//! their digits.

use super::{
    graph::{Axis, Graph, int, size, tensor, text},
    proto::{AttributeProto, DataType, GraphProto},
    whole::Table,
};
use crate::{
    baselines::{Cooccurrence, Logit, Pairs, Popularity},
    data::Data,
    engine::Tensor,
};

/// The same answer to every question.
pub(super) fn draw_popularity(popularity: &Popularity, articles: usize) -> GraphProto {
    let mut graph = Graph::new();
    let logits: Vec<f32> = popularity.probabilities(articles).map(f32::ln).collect();
    let bias = vector(&mut graph, "vocabulary.bias", logits);
    let rows = graph.node("Shape", &["blank"], vec![]);
    let columns = graph.node("Shape", &[&bias], vec![]);
    let shape = graph.node("Concat", &[&rows, &columns], vec![int("axis", 0)]);
    graph.named_node("Expand", &[&bias, &shape], &["logits"], vec![]);
    finish(graph, "popularity", articles, 0)
}

/// About the bytes of the pairs.
pub(super) fn bytes(pairs: &Pairs, articles: usize) -> usize {
    8 * articles * columns(pairs, articles)
}

/// The most articles in one's pairs.
fn columns(pairs: &Pairs, articles: usize) -> usize {
    (0..articles).map(|article| pairs.beside(number(article)).len()).max().unwrap_or(0).max(1)
}

/// Popularity, and pairs with the visible articles, in equal parts.
pub(super) fn draw_cooccurrence(counts: &Cooccurrence<'_>, articles: usize) -> GraphProto {
    let mut graph = Graph::new();
    let pairs = counts.pairs;
    let mut table = Table::new(articles + 2, columns(pairs, articles));
    let total = |article: usize| if article < articles { pairs.total(number(article)) } else { 0.0 };
    let seen = (0..articles + 2).map(|article| f32::from(u8::from(total(article) > 0.0))).collect();
    for article in 0..articles {
        for (column, &(other, times)) in pairs.beside(number(article)).iter().enumerate() {
            table.set(article, column, other, single(times / total(article)));
        }
    }
    let popularity =
        vector(&mut graph, "vocabulary.popularity", counts.popularity.probabilities(articles).collect());
    let seen = vector(&mut graph, "memory.seen", seen);
    // Articles never seen with another are left out; if all are, popularity decides.
    let seen = graph.node("Gather", &[&seen, "articles"], vec![]);
    let axis = graph.list(&[1]);
    let count = graph.node("ReduceSum", &[&seen, &axis], vec![int("keepdims", 1)]);
    let (one, weight) = (graph.float(1.0), graph.float(single(counts.weight)));
    let any = graph.node("Min", &[&count, &one], vec![]);
    let weight = graph.node("Mul", &[&any, &weight], vec![]);
    let divisor = graph.node("Max", &[&count, &one], vec![]);
    let each = graph.node("Div", &[&weight, &divisor], vec![]);
    let rest = graph.node("Sub", &[&one, &weight], vec![]);
    let plain = graph.node("Mul", &[&rest, &popularity], vec![]);
    let [others, shares] = table.look_up(&mut graph, "memory.", "articles", false);
    let shares = graph.node("Mul", &[&shares, &each], vec![]);
    let sum = graph.node("ScatterElements", &[&plain, &others, &shares], add());
    graph.named_node("Log", &[&sum], &["logits"], vec![]);
    finish(graph, "co-occurrence", articles, 0)
}

/// Sums of what is counted of values: a vector of what is known against a vector of each candidate's values, and lists of what
/// visible articles and features add to single articles.
pub(super) fn draw_logit(logit: &Logit<'_>, data: &Data) -> GraphProto {
    let (articles, terms, schema) = (data.count_known(), logit.terms(), data.schema().features());
    let mut graph = Graph::new();
    let width = terms.values.len();
    let mut columns = vec![None; data.attributes().count()];
    terms.values.iter().enumerate().for_each(|(column, &value)| columns[value as usize] = Some(column));
    let columns_of = |article: usize| {
        data.attributes().for_article(article).iter().filter_map(|&value| columns[value as usize])
    };
    let (mut known, mut own) = (vec![0.0; (articles + 2) * width], vec![0.0; articles * width]);
    for article in 0..articles {
        for column in columns_of(article) {
            own[article * width + column] = 1.0;
            let known = &mut known[article * width..][..width];
            known.iter_mut().zip(&terms.beside[column]).for_each(|(to, from)| *to += from);
        }
    }
    let known = matrix(&mut graph, "articles.values", known, width);
    let own = matrix(&mut graph, "vocabulary.values", own, width);
    let popularity = terms.popularity[..articles].iter().map(|&popularity| single(popularity)).collect();
    let bias = vector(&mut graph, "vocabulary.bias", popularity);

    let known = graph.node("Gather", &[&known, "articles"], vec![]);
    let axis = graph.list(&[1]);
    let mut sum = graph.node("ReduceSum", &[&known, &axis], vec![int("keepdims", 0)]);
    let rows = (!schema.is_empty()).then(|| {
        let profile: Vec<f32> = terms.profile.iter().flatten().flatten().copied().collect();
        let profile = matrix(&mut graph, "features.values", profile, width);
        let (rows, shares) = read_features(&mut graph, data);
        let batch = graph.node("Shape", &["blank"], vec![]);
        let count = graph.list(&[size(terms.profile.iter().map(Vec::len).sum())]);
        let shape = graph.node("Concat", &[&batch, &count], vec![int("axis", 0)]);
        let zero = graph.float(0.0);
        let none = graph.node("Expand", &[&zero, &shape], vec![]);
        let given = graph.node("ScatterElements", &[&none, &rows, &shares], add());
        let of_profile = graph.node("MatMul", &[&given, &profile], vec![]);
        sum = graph.node("Add", &[&sum, &of_profile], vec![]);
        rows
    });
    let mut logits = graph.node("Gemm", &[&sum, &own, &bias], vec![int("transB", 1)]);
    if let (Some(rows), true) = (rows, logit.named().next().is_some()) {
        let begins = begins(data);
        let mut table = Table::new(terms.profile.iter().map(Vec::len).sum(), 1);
        for (feature, named, worth) in logit.named() {
            let named = (begins[feature]..).zip(named).filter_map(|(row, article)| Some((row, (*article)?)));
            let within = named.filter(|(_, article)| data.is_known(*article));
            within.for_each(|(row, article)| table.set(row, 0, article, single(worth)));
        }
        let [named, worth] = table.look_up(&mut graph, "memory.features.", &rows, false);
        logits = graph.node("ScatterElements", &[&logits, &named, &worth], add());
    }
    let beside: Vec<Vec<(u32, f64)>> = (0..articles).map(|article| logit.beside(number(article))).collect();
    let mut table = Table::new(articles + 2, beside.iter().map(Vec::len).max().unwrap_or(1));
    for (article, beside) in beside.iter().enumerate() {
        for (column, &(other, worth)) in beside.iter().enumerate() {
            table.set(article, column, other, single(worth));
        }
    }
    let [others, worth] = table.look_up(&mut graph, "memory.", "articles", false);
    graph.named_node("ScatterElements", &[&logits, &others, &worth], &["logits"], add());
    finish(graph, "logit", articles, schema.len())
}

/// The rows of the given values in a table of all features, and what each counts: of a set of n values one counts 1/√n.
fn read_features(graph: &mut Graph, data: &Data) -> (String, String) {
    let begins: Vec<i64> = begins(data).into_iter().map(size).collect();
    let begins = graph.ints(&[size(begins.len()), 1], &begins);
    let rows = graph.node("Add", &["features", &begins], vec![]);
    let zero = graph.ints(&[], &[0]);
    let given = graph.node("Greater", &["features", &zero], vec![]);
    let given = graph.node("Cast", &[&given], vec![int("to", DataType::Float as i64)]);
    let axis = graph.list(&[2]);
    let count = graph.node("ReduceSum", &[&given, &axis], vec![int("keepdims", 1)]);
    let one = graph.float(1.0);
    let count = graph.node("Max", &[&count, &one], vec![]);
    let root = graph.node("Sqrt", &[&count], vec![]);
    let shares = graph.node("Div", &[&given, &root], vec![]);
    let flat = graph.list(&[0, -1]);
    let [rows, shares] = [rows, shares].map(|values| graph.node("Reshape", &[&values, &flat], vec![]));
    (rows, shares)
}

/// Where each feature's rows begin in a table of all features.
fn begins(data: &Data) -> Vec<usize> {
    let rows = data.schema().features().iter().map(atelier_core::domain::Feature::rows);
    rows.scan(0, |next, rows| Some(std::mem::replace(next, *next + rows))).collect()
}

fn finish(graph: Graph, name: &str, articles: usize, features: usize) -> GraphProto {
    let batch = Axis::Named("batch");
    let mut inputs = vec![
        tensor("articles", DataType::Int64, &[batch, Axis::Named("slots")]),
        tensor("blank", DataType::Int64, &[batch]),
    ];
    if features > 0 {
        inputs.push(tensor(
            "features",
            DataType::Int64,
            &[batch, Axis::Fixed(features), Axis::Named("values")],
        ));
    }
    graph.finish(name, inputs, vec![tensor("logits", DataType::Float, &[batch, Axis::Fixed(articles)])])
}

/// The attributes of a scatter that adds.
fn add() -> Vec<AttributeProto> {
    vec![int("axis", 1), text("reduction", "add")]
}

fn matrix(graph: &mut Graph, name: &str, data: Vec<f32>, width: usize) -> String {
    let shape = vec![data.len() / width.max(1), width];
    graph.weight(&Tensor { name: name.to_owned(), shape, data }, false)
}

fn vector(graph: &mut Graph, name: &str, data: Vec<f32>) -> String {
    graph.weight(&Tensor { name: name.to_owned(), shape: vec![data.len()], data }, false)
}

fn number(article: usize) -> u32 {
    u32::try_from(article).expect("articles fit 32 bits")
}

#[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
fn single(weight: f64) -> f32 {
    weight as f32
}
