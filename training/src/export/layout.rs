//! Between rows of slots and slots as an axis: shapes, masks, heads.

use super::{
    draw::{Drawing, Drawn, concat},
    graph::{int, ints, size},
};
use crate::engine::Rows;

/// What stands for "takes no part" in a softmax.
const NEVER: f32 = -1e9;

impl Drawing<'_> {
    /// [batch × slots, width] as [batch, slots, width].
    pub(super) fn by_outfit(&mut self, value: &Drawn) -> String {
        let width = size(value.width);
        let shape = match value.rows {
            Rows::Outfits => self.graph.list(&[-1, 1, width]),
            Rows::Slots | Rows::Positions => self.shape(value.rows, &[width]),
        };
        self.graph.node("Reshape", &[&value.name, &shape], vec![])
    }

    /// [batch, …, width] as [rows, width].
    pub(super) fn flat(&mut self, name: &str, width: usize) -> String {
        let shape = self.graph.list(&[-1, size(width)]);
        self.graph.node("Reshape", &[name, &shape], vec![])
    }

    /// The shape [batch, rows of an outfit, rest…].
    pub(super) fn shape(&mut self, rows: Rows, rest: &[i64]) -> String {
        let rest_list = self.graph.list(rest);
        let batch = self.graph.list(&[-1]);
        if rows == Rows::Outfits {
            let one = self.graph.list(&[1]);
            let key = format!("shape outfits {rest:?}");
            let parts = [batch, one, rest_list];
            return self.graph.shared(&key, |graph| concat(graph, &parts, 0));
        }
        let slots = self.graph.shared("slots", |graph| {
            graph.node("Shape", &["articles"], vec![int("start", 1), int("end", 2)])
        });
        let count = if rows == Rows::Positions {
            let one = self.graph.list(&[1]);
            self.graph.shared("positions", |graph| graph.node("Add", &[&slots, &one], vec![]))
        } else {
            slots
        };
        let key = format!("shape {rows:?} {rest:?}");
        self.graph.shared(&key, |graph| concat(graph, &[batch, count, rest_list], 0))
    }

    /// Which slots hold nothing: [batch, slots].
    pub(super) fn is_padding(&mut self) -> String {
        let padding = self.graph.ints(&[], &[i64::from(self.config().padding())]);
        self.graph.shared("is padding", |graph| graph.node("Equal", &["articles", &padding], vec![]))
    }

    /// What is added to attention scores: [batch, 1, 1, rows of an outfit].
    pub(super) fn attention_bias(&mut self, rows: Rows) -> String {
        let padding = self.is_padding();
        let (never, nought) = (self.graph.float(NEVER), self.graph.float(0.0));
        let axes = self.graph.list(&[1, 2]);
        let bias = self.graph.shared("attention bias of slots", |graph| {
            let bias = graph.node("Where", &[&padding, &never, &nought], vec![]);
            graph.node("Unsqueeze", &[&bias, &axes], vec![])
        });
        if rows == Rows::Slots {
            return bias;
        }
        let before = self.graph.ints(&[8], &[0, 0, 0, 1, 0, 0, 0, 0]);
        self.graph.shared("attention bias of positions", |graph| graph.node("Pad", &[&bias, &before], vec![]))
    }

    /// Rows of an outfit's heads: [batch, heads, rows, width of a head], or the last two the other way.
    pub(super) fn heads(&mut self, name: &str, rows: Rows, transposed: bool) -> String {
        let heads = self.config().heads;
        let shape = self.shape(rows, &[size(heads), size(self.config().width / heads)]);
        let split = self.graph.node("Reshape", &[name, &shape], vec![]);
        let order: &[i64] = if transposed { &[0, 2, 3, 1] } else { &[0, 2, 1, 3] };
        self.graph.node("Transpose", &[&split], vec![ints("perm", order)])
    }
}
