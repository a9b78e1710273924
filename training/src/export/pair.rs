//! Draws the pair file, which judges whether two halves were one outfit.

use super::{
    Storage,
    draw::{Drawing, concat},
    graph::{Axis, Graph, int, tensor},
    proto::{DataType, GraphProto},
    whole::look_up,
};
use crate::{
    engine::{DISTANCE_EPSILON, PairHead, READINGS},
    model::{Model, Output},
};

/// The name of the pair's features, repeated for each reading.
const FEATURES: &str = "features_of_readings";

/// Draws the graph; None if the model does not judge pairs.
pub(super) fn draw(model: &Model, storage: Storage) -> Option<GraphProto> {
    let head = model.structure().pair?;
    let (config, conditioned) = (model.config(), !model.structure().tables.features.is_empty());
    let mut drawing = Drawing::new(model, storage == Storage::Float16);
    drawing.readings(conditioned);
    let output = model.structure().forward(&mut drawing);
    drawing.judge(head, output);
    let batch = Axis::Named("batch");
    let half = |name| tensor(name, DataType::Int64, &[batch, Axis::Named("slots")]);
    let mut inputs = vec![half("first"), half("second")];
    if conditioned {
        let axes = [batch, Axis::Fixed(config.features.len()), Axis::Named("values")];
        inputs.push(tensor("features", DataType::Int64, &axes));
    }
    let outputs = vec![tensor("probability", DataType::Float, &[batch])];
    Some(drawing.finish(&format!("{}.pair", config.method), inputs, outputs))
}

impl Drawing<'_> {
    /// Makes the trunk's inputs from the halves: the first, the second and both together, one below the other, each with
    /// a blank at its end.
    fn readings(&mut self, conditioned: bool) {
        let config = self.config();
        let (blank, padding) = (i64::from(config.blank()), i64::from(config.padding()));
        let graph = &mut self.graph;
        let rows = graph.node("Shape", &["first"], vec![int("end", 1)]);
        let one = graph.list(&[1]);
        let column = concat(graph, &[rows, one], 0);
        let blank = graph.ints(&[], &[blank]);
        let blanks = graph.node("Expand", &[&blank, &column], vec![]);
        let shape = graph.node("Shape", &["first"], vec![]);
        let padding = graph.ints(&[], &[padding]);
        let nothing = graph.node("Expand", &[&padding, &shape], vec![]);
        let mut row =
            |halves: [&str; 2]| concat(graph, &[halves[0], halves[1], &blanks].map(str::to_owned), 1);
        let rows = [row(["first", &nothing]), row(["second", &nothing]), row(["first", "second"])];
        let graph = &mut self.graph;
        graph.named_node("Concat", &rows.each_ref().map(String::as_str), &["articles"], vec![int("axis", 0)]);
        let tables = &self.model.structure().tables;
        let rows = self.weight(tables.articles);
        let personas = self.model.structure().head.personas.map(|table| self.weight(table));
        let articles = self.config().articles;
        look_up(&mut self.graph, &rows, personas.as_deref(), articles);
        let graph = &mut self.graph;
        // The blank is the last slot of each.
        let slots = graph.node("Shape", &["articles"], vec![int("start", 1), int("end", 2)]);
        let one = graph.ints(&[], &[1]);
        let last = graph.node("Sub", &[&slots, &one], vec![]);
        let rows = graph.node("Shape", &["articles"], vec![int("end", 1)]);
        graph.named_node("Expand", &[&last, &rows], &["blank"], vec![]);
        if conditioned {
            graph.named_node("Concat", &["features"; READINGS], &[FEATURES], vec![int("axis", 0)]);
            self.features = FEATURES;
        }
    }

    /// Draws the layers over the readings.
    fn judge(&mut self, head: PairHead, output: Output<usize>) {
        let hidden = self.values[output.hidden].name.clone();
        let [first, second, both] = self.parts(&hidden);
        let graph = &mut self.graph;
        let sum = graph.node("Add", &[&first, &second], vec![]);
        let apart = graph.node("Sub", &[&first, &second], vec![]);
        let apart = graph.node("Abs", &[&apart], vec![]);
        let product = graph.node("Mul", &[&first, &second], vec![]);
        let mut joined = vec![sum, apart, product, both];
        if let Some(shares) = output.personas {
            let shares = self.values[shares].name.clone();
            let [p, q, _] = self.parts(&shares);
            joined.extend(distances(&mut self.graph, &p, &q));
        }
        let joined = concat(&mut self.graph, &joined, 1);
        let hidden = self.gemm(&joined, &head.first);
        let hidden = self.graph.node("Relu", &[&hidden], vec![]);
        let logit = self.gemm(&hidden, &head.second);
        let probability = self.graph.node("Sigmoid", &[&logit], vec![]);
        let every = self.graph.list(&[-1]);
        self.graph.named_node("Reshape", &[&probability, &every], &["probability"], vec![]);
    }

    /// Splits the rows into those of the first halves, the second, and both together.
    fn parts(&mut self, name: &str) -> [String; READINGS] {
        let parts = [0, 1, 2].map(|part| format!("{name}_part_{part}"));
        self.graph.named_node("Split", &[name], &parts.each_ref().map(String::as_str), vec![int("axis", 0)]);
        parts
    }
}

/// The distance of two mixtures of personas, and their divergence averaged over both directions: two columns.
fn distances(graph: &mut Graph, p: &str, q: &str) -> [String; 2] {
    let apart = graph.node("Sub", &[p, q], vec![]);
    let squares = graph.node("Mul", &[&apart, &apart], vec![]);
    let axis = graph.list(&[1]);
    let keep = || vec![int("keepdims", 1)];
    let squares = graph.node("ReduceSum", &[&squares, &axis], keep());
    let least = graph.float(DISTANCE_EPSILON);
    let squares = graph.node("Add", &[&squares, &least], vec![]);
    let distance = graph.node("Sqrt", &[&squares], vec![]);
    let [p, q] = [p, q].map(|mixture| graph.node("Log", &[mixture], vec![]));
    let logs = graph.node("Sub", &[&p, &q], vec![]);
    let terms = graph.node("Mul", &[&apart, &logs], vec![]);
    let sum = graph.node("ReduceSum", &[&terms, &axis], keep());
    let half = graph.float(0.5);
    [distance, graph.node("Mul", &[&sum, &half], vec![])]
}
