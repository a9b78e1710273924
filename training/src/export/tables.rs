//! What is looked up: the customer's features, the personas' biases.

use super::{
    draw::{Drawing, concat},
    graph::{int, ints, size},
    proto::DataType,
};
use crate::engine::{EVIDENCE, Param, Rows, number};

impl Drawing<'_> {
    /// The customer's context.
    pub(super) fn customer(&mut self) -> usize {
        let features = self.features;
        let tables = &self.model.structure().tables;
        let weights: Vec<String> = tables.features.iter().map(|&param| self.weight(param)).collect();
        // The tables one below the other, and where each begins: one lookup for all features.
        let all = concat(&mut self.graph, &weights, 0);
        let begins = tables.features.iter().scan(0, |next, &param| {
            let begin = *next;
            *next += size(self.model.weights().tensor(param).shape[0]);
            Some(begin)
        });
        let begins: Vec<i64> = begins.collect();
        let count = size(begins.len());
        let graph = &mut self.graph;
        let begins = graph.ints(&[1, count, 1], &begins);
        let rows = graph.node("Add", &[features, &begins], vec![]);
        let rows = graph.node("Gather", &[&all, &rows], vec![]);
        // Noughts are skipped, but where all are noughts each is the row for "not given".
        let nought = graph.ints(&[], &[0]);
        let given = graph.node("Greater", &[features, &nought], vec![]);
        let given = graph.node("Cast", &[&given], vec![int("to", DataType::Float as i64)]);
        let any = graph.node("ReduceMax", &[&given], vec![ints("axes", &[2]), int("keepdims", 1)]);
        let one = graph.float(1.0);
        let none = graph.node("Sub", &[&one, &any], vec![]);
        let taken = graph.node("Add", &[&given, &none], vec![]);
        let axis = graph.list(&[2]);
        let total = graph.node("ReduceSum", &[&taken, &axis], vec![int("keepdims", 1)]);
        let shares = graph.node("Div", &[&taken, &total], vec![]);
        let shares = graph.node("Unsqueeze", &[&shares, &axis], vec![]);
        let mean = graph.node("MatMul", &[&shares, &rows], vec![]);
        let width = tables.features.len() * tables.feature_width;
        let name = self.flat(&mean, width);
        self.record(name, Rows::Outfits, width)
    }

    /// The mixture of personas that the visible articles show.
    pub(super) fn mixture(&mut self, table: Param) -> usize {
        let count = self.model.weights().tensor(table).shape[1];
        let table = self.weight(table);
        let last = i64::from(self.config().blank()) - 1;
        let graph = &mut self.graph;
        let last = graph.ints(&[], &[last]);
        let hidden = graph.node("Greater", &["articles", &last], vec![]);
        // Blanks and padding have no row; any row will do, for it is taken nought times.
        let rows = graph.node("Min", &["articles", &last], vec![]);
        let biases = graph.node("Gather", &[&table, &rows], vec![]);
        let (one, nought, axis) = (graph.float(1.0), graph.float(0.0), graph.list(&[1]));
        let visible = graph.node("Where", &[&hidden, &nought, &one], vec![]);
        let visible = graph.node("Unsqueeze", &[&visible, &axis], vec![]);
        let sums = graph.node("MatMul", &[&visible, &biases], vec![]);
        let sums = graph.node("Squeeze", &[&sums, &axis], vec![]);
        let softmax = graph.node("Softmax", &[&sums], vec![int("axis", -1)]);
        let (evidence, even) = (graph.float(EVIDENCE), graph.float((1.0 - EVIDENCE) / number(count)));
        let shares = graph.node("Mul", &[&softmax, &evidence], vec![]);
        let name = graph.node("Add", &[&shares, &even], vec![]);
        self.record(name, Rows::Outfits, count)
    }
}
