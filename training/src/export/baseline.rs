//! Baselines as whole files: articles' numbers in, logits of the known articles out. All numbers are float32, because counts need
//! their digits.

use super::{
    graph::{Axis, Graph, int, tensor, text},
    proto::{DataType, GraphProto},
    whole::Table,
};
use crate::{
    baselines::{Cooccurrence, Pairs, Popularity},
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
    finish(graph, "popularity", articles)
}

/// About the bytes of what was beside what.
pub(super) fn bytes(pairs: &Pairs, articles: usize) -> usize {
    8 * articles * columns(pairs, articles)
}

/// The most articles that were beside one.
fn columns(pairs: &Pairs, articles: usize) -> usize {
    (0..articles).map(|article| pairs.beside(number(article)).len()).max().unwrap_or(0).max(1)
}

/// Popularity, and what was beside the visible articles in equal parts.
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
    // Articles never seen beside another are left out; if all are, popularity decides.
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
    let attributes = vec![int("axis", 1), text("reduction", "add")];
    let sum = graph.node("ScatterElements", &[&plain, &others, &shares], attributes);
    graph.named_node("Log", &[&sum], &["logits"], vec![]);
    finish(graph, "co-occurrence", articles)
}

fn finish(graph: Graph, name: &str, articles: usize) -> GraphProto {
    let batch = Axis::Named("batch");
    let inputs = vec![
        tensor("articles", DataType::Int64, &[batch, Axis::Named("slots")]),
        tensor("blank", DataType::Int64, &[batch]),
    ];
    graph.finish(name, inputs, vec![tensor("logits", DataType::Float, &[batch, Axis::Fixed(articles)])])
}

fn vector(graph: &mut Graph, name: &str, data: Vec<f32>) -> String {
    graph.weight(&Tensor { name: name.to_owned(), shape: vec![data.len()], data }, false)
}

fn number(article: usize) -> u32 {
    u32::try_from(article).expect("articles fit 32 bits; this is a bug")
}

#[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
fn single(weight: f64) -> f32 {
    weight as f32
}
