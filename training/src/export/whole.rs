//! Joins a trunk and its tables into one file: articles' numbers in, logits out.

use atelier_engine::tables::{Composition, ContextEncoder, Matrix, Rows, Tables};

use super::{
    draw::{mean_features, sum_features},
    graph::{Axis, Graph, int, size, tensor, text},
    proto::{DataType, ModelProto},
};
use crate::engine::Tensor;

/// Joins them. `articles` are those of the vocabulary.
pub(super) fn join(trunk: &ModelProto, tables: &Tables, articles: &[Composition], half: bool) -> ModelProto {
    let trunk_graph = trunk.graph.clone().expect("a model has a graph");
    let widths = tables.widths();
    let mut rows = matrix("articles.weight", articles.len() + 2, widths.hidden());
    let mut vocabulary = matrix("vocabulary.weight", articles.len(), widths.hidden());
    let mut bias =
        Tensor { name: "vocabulary.bias".to_owned(), shape: vec![articles.len()], data: Vec::new() };
    let mut personas = matrix("personas.weight", articles.len(), widths.personas);
    let mut row = vec![0.0; widths.row()];
    for article in articles {
        tables.write_row(article, &mut row);
        rows.data.extend_from_slice(&row[..widths.hidden()]);
        bias.data.push(tables.write_weights(article, &mut row));
        vocabulary.data.extend_from_slice(&row[..widths.hidden()]);
        personas.data.extend_from_slice(&row[widths.hidden()..]);
    }
    // The trunk has the blank's row.
    rows.data.resize((articles.len() + 2) * widths.hidden(), 0.0);
    let mut graph = Graph::within("whole");
    let rows = graph.weight(&rows, half);
    let personas = (widths.personas > 0).then(|| graph.weight(&personas, half));
    look_up(&mut graph, &rows, personas.as_deref(), articles.len());
    let features = tables.context().map(|context| draw_context(&mut graph, context, half));
    graph.append(trunk_graph.clone());
    let logits = if tables.has_memory() { "plain" } else { "logits" };
    let (weight, bias) = (graph.weight(&vocabulary, half), graph.weight(&bias, false));
    let transposed = || vec![int("transB", 1)];
    match personas {
        Some(personas) => {
            let plain = graph.node("Gemm", &["hidden", &weight, &bias], transposed());
            graph.named_node("Gemm", &["personas", &personas, &plain], &[logits], transposed());
        }
        None => graph.named_node("Gemm", &["hidden", &weight, &bias], &[logits], transposed()),
    }
    add_memory(&mut graph, tables, articles.len(), half);
    let batch = Axis::Named("batch");
    let mut inputs = vec![tensor("articles", DataType::Int64, &[batch, Axis::Named("slots")])];
    if let Some(features) = features {
        let axes = [batch, Axis::Fixed(features), Axis::Named("values")];
        inputs.push(tensor("features", DataType::Int64, &axes));
    }
    let made = ["rows", "kinds", "context"];
    inputs.extend(trunk_graph.input.iter().filter(|input| !made.contains(&input.name.as_str())).cloned());
    let mut outputs = vec![tensor("logits", DataType::Float, &[batch, Axis::Fixed(articles.len())])];
    outputs.extend(trunk_graph.output.iter().filter(|output| output.name != "hidden").cloned());
    ModelProto { graph: Some(graph.finish(&trunk_graph.name, inputs, outputs)), ..trunk.clone() }
}

fn matrix(name: &str, rows: usize, columns: usize) -> Tensor {
    let data = Vec::with_capacity(rows * columns);
    Tensor { name: name.to_owned(), shape: vec![rows, columns], data }
}

/// Draws the trunk's inputs `rows` and `kinds` from `articles`, numbers of the vocabulary, of blanks and of padding. `rows`
/// has a row for each of these, `personas` for articles alone.
pub(super) fn look_up(graph: &mut Graph, rows: &str, personas: Option<&str>, articles: usize) {
    let [last, blank] = [articles - 1, articles].map(|number| graph.ints(&[], &[size(number)]));
    let beyond = [&last, &blank].map(|number| {
        let is_beyond = graph.node("Greater", &["articles", number], vec![]);
        graph.node("Cast", &[&is_beyond], vec![int("to", DataType::Int64 as i64)])
    });
    graph.named_node("Add", &[&beyond[0], &beyond[1]], &["kinds"], vec![]);
    let Some(personas) = personas else {
        graph.named_node("Gather", &[rows, "articles"], &["rows"], vec![]);
        return;
    };
    let read = graph.node("Gather", &[rows, "articles"], vec![]);
    // Blanks and padding take another row, which is not read.
    let within = graph.node("Min", &["articles", &last], vec![]);
    let votes = graph.node("Gather", &[personas, &within], vec![]);
    graph.named_node("Concat", &[&read, &votes], &["rows"], vec![int("axis", 2)]);
}

/// Draws the trunk's input `context` from `features`, and returns their number.
fn draw_context(graph: &mut Graph, context: &ContextEncoder, half: bool) -> usize {
    let weight = |graph: &mut Graph, name: String, rows: &Matrix| {
        let tensor = Tensor { name, shape: vec![rows.rows(), rows.columns()], data: rows.to_singles() };
        graph.weight(&tensor, half)
    };
    let rows = |graph: &mut Graph, kind: &str, tables: &Rows| -> Vec<(String, usize)> {
        let mut table = |(name, rows): &(String, Matrix)| {
            (weight(graph, format!("{kind}.{name}.weight"), rows), rows.rows())
        };
        tables.iter().map(&mut table).collect()
    };
    let width = |tables: &Rows| tables.first().map_or(0, |(_, rows)| rows.columns());
    let mut parts = Vec::new();
    if !context.features.is_empty() {
        let tables = rows(graph, "features", &context.features);
        let mut c = mean_features(graph, "features", &tables, tables.len() * width(&context.features));
        for (place, layer) in context.layers.iter().enumerate() {
            if place > 0 {
                c = graph.node("Relu", &[&c], vec![]);
            }
            let bias = Tensor {
                name: format!("context.{place}.bias"),
                shape: vec![layer.bias.len()],
                data: layer.bias.clone(),
            };
            let weight = weight(graph, format!("context.{place}.weight"), &layer.weight);
            let bias = graph.weight(&bias, false);
            c = graph.node("Gemm", &[&c, &weight, &bias], vec![]);
        }
        parts.push(c);
    }
    if !context.matched.is_empty() {
        let tables = rows(graph, "match", &context.matched);
        parts.push(sum_features(graph, "features", &tables, width(&context.matched)));
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    graph.named_node("Concat", &parts, &["context"], vec![int("axis", 1)]);
    context.features.len().max(context.matched.len())
}

/// Adds to the logits what the outfit's articles and the customer's features boost.
fn add_memory(graph: &mut Graph, tables: &Tables, articles: usize, half: bool) {
    let Some(columns) = tables.memory_columns() else { return };
    let mut table = Table::new(articles + 2, columns);
    for article in 0..articles {
        let place = u32::try_from(article).expect("a vocabulary is counted in 32 bits");
        for (column, (other, strength)) in tables.boosts_of_article(place).enumerate() {
            table.set(article, column, other, strength);
        }
    }
    let mut found = [Vec::new(), Vec::new()];
    let mut look_up = |graph: &mut Graph, name: &str, table: Table, rows: &str| {
        let read = table.look_up(graph, &format!("memory.{name}"), rows, half);
        found.iter_mut().zip(read).for_each(|(found, read)| found.push(read));
    };
    look_up(graph, "", table, "articles");
    for (feature, values) in tables.named_articles() {
        let mut table = Table::new(values.len(), 1);
        for (value, named) in values.iter().enumerate() {
            if let Some((article, strength)) = named {
                table.set(value, 0, *article, *strength);
            }
        }
        let place = graph.ints(&[], &[size(feature)]);
        let rows = graph.node("Gather", &["features", &place], vec![int("axis", 1)]);
        look_up(graph, &format!("{feature}."), table, &rows);
    }
    for (found, output) in found.iter().zip(["boosted", "boosts"]) {
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        graph.named_node("Concat", &found, &[output], vec![int("axis", 1)]);
    }
    let attributes = vec![int("axis", 1), text("reduction", "add")];
    graph.named_node("ScatterElements", &["plain", "boosted", "boosts"], &["logits"], attributes);
}

/// The boosts of rows.
pub(super) struct Table {
    rows: usize,
    columns: usize,
    articles: Vec<i32>,
    strengths: Vec<f32>,
}

impl Table {
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        Self { rows, columns, articles: vec![0; rows * columns], strengths: vec![0.0; rows * columns] }
    }

    pub(super) fn set(&mut self, row: usize, column: usize, article: u32, strength: f32) {
        let place = row * self.columns + column;
        self.articles[place] = i32::try_from(article).expect("articles fit 32 bits");
        self.strengths[place] = strength;
    }

    /// Draws what these rows boost, and by how much: for each question a list of both.
    pub(super) fn look_up(self, graph: &mut Graph, name: &str, rows: &str, half: bool) -> [String; 2] {
        let shape: Vec<i64> = [self.rows, self.columns].map(size).to_vec();
        let boosted = format!("{name}articles");
        graph.integers(&boosted, &shape, &self.articles);
        let strengths = Tensor {
            name: format!("{name}strengths"),
            shape: vec![self.rows, self.columns],
            data: self.strengths,
        };
        let strengths = graph.weight(&strengths, half);
        let flat = graph.list(&[0, -1]);
        [boosted, strengths].map(|table| {
            let rows = graph.node("Gather", &[&table, rows], vec![]);
            graph.node("Reshape", &[&rows, &flat], vec![])
        })
    }
}
