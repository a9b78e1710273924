//! The tape on a device: computes a model on a whole batch and remembers what its gradients need.

use super::{Argument, Device, LANES, Packed, Parameters, Product};
use crate::engine::{
    adaptive::{Course, Halting},
    dropout::{Dropout, Mask},
    ops::{Activation, Adaptive, Linear, Norm, Ops, Rows},
    personas::EVIDENCE,
    shard::Tables,
    tape::Node,
    weights::Param,
};

/// One operation with what its backward pass needs beside the values of its arguments.
#[derive(Debug)]
pub(super) enum Op<D: Device> {
    Articles,
    Context,
    Linear { x: Node, layer: Linear, activation: Activation, before: Option<D::Floats> },
    AddRelu { x: Node, y: Node },
    AddNorm { x: Node, y: Node, norm: Option<(Norm, D::Floats)>, inverse: D::Floats },
    Attention { queries: Node, keys_values: Node, weights: D::Floats },
    WithPosition { slots: Node, position: Node },
    AtBlank { x: Node },
    Adaptive { states: Vec<Node>, logits: Vec<Node>, course: Course },
    Steps,
    Personas,
}

#[derive(Debug)]
pub(super) struct Recorded<D: Device> {
    pub(super) value: D::Floats,
    pub(super) rows: Rows,
    pub(super) width: usize,
    pub(super) op: Op<D>,
}

/// Computes a model on a batch.
#[derive(Debug)]
pub(crate) struct DeviceTape<'a, D: Device> {
    pub(super) device: &'a D,
    pub(super) parameters: &'a Parameters<D>,
    pub(super) tables: &'a Tables,
    pub(super) packed: &'a Packed<D>,
    halting: Halting,
    pub(super) mask: Mask,
    pub(super) nodes: Vec<Recorded<D>>,
}

impl<'a, D: Device> DeviceTape<'a, D> {
    /// With a rate, it drops by the keys of the packed shards.
    pub(crate) fn new(
        device: &'a D,
        parameters: &'a Parameters<D>,
        tables: &'a Tables,
        packed: &'a Packed<D>,
        halting: Halting,
        dropout: Option<f32>,
    ) -> Self {
        // The key comes with the rows; only how much is dropped is the same for all.
        let mask = dropout.map_or(Mask::NONE, |rate| Dropout { rate, key: 0 }.mask(0));
        Self { device, parameters, tables, packed, halting, mask, nodes: Vec::new() }
    }

    pub(super) fn value(&self, node: Node) -> &D::Floats {
        &self.nodes[node.0].value
    }

    fn record(&mut self, value: D::Floats, rows: Rows, width: usize, op: Op<D>) -> Node {
        self.nodes.push(Recorded { value, rows, width, op });
        Node(self.nodes.len() - 1)
    }
}

impl<D: Device> Ops for DeviceTape<'_, D> {
    type Value = Node;

    fn articles(&mut self) -> Node {
        let (rows, width) = (self.packed.rows(Rows::Slots), self.tables.width);
        let (mut value, table) = (self.device.room(rows * width), self.weights(self.tables.articles));
        self.take(&mut value, table, self.packed.slots, (rows, width), false);
        self.drop(&mut value, Rows::Slots, width, self.nodes.len());
        self.record(value, Rows::Slots, width, Op::Articles)
    }

    fn context(&mut self) -> Node {
        let (features, width) = (self.tables.features.len(), self.tables.feature_width);
        let places = self.packed.rows(Rows::Outfits) * features;
        let mut value = self.device.zeros(places * width);
        let [of_places, of_width] = [places, width].map(|number| Argument::size(number));
        self.device.launch(
            "gather",
            places * width,
            &mut [
                Argument::write(&mut value),
                Argument::read(&self.parameters.weights),
                self.indices(self.packed.feature_sources),
                self.indices(self.packed.feature_starts),
                self.indices(self.packed.feature_targets),
                of_places,
                of_width,
            ],
        );
        self.average(&mut value);
        self.record(value, Rows::Outfits, features * width, Op::Context)
    }

    fn linear(&mut self, x: Node, layer: &Linear, activation: Activation) -> Node {
        let from = &self.nodes[x.0];
        let (rows, width) = (from.rows, self.parameters.shape(layer.weight)[1]);
        let of_rows = self.packed.rows(rows);
        let mut value = self.device.room(of_rows * width);
        self.device.multiply(
            Product {
                rows: of_rows,
                columns: width,
                inner: from.width,
                a_transposed: false,
                b_transposed: false,
                adds: false,
            },
            (&from.value, 0),
            (&self.parameters.weights, self.parameters.at(layer.weight)),
            (&mut value, 0),
        );
        let before = match (layer.bias, activation) {
            (Some(bias), _) => self.activate(&mut value, bias, (of_rows, width), activation),
            (None, Activation::Identity) => None,
            (None, _) => {
                unreachable!("only a part of a layer lacks a bias, and it ends in none; this is a bug")
            }
        };
        self.record(value, rows, width, Op::Linear { x, layer: *layer, activation, before })
    }

    fn add_relu(&mut self, x: Node, y: Node) -> Node {
        let (to, from) = (&self.nodes[x.0], &self.nodes[y.0]);
        let (rows, width) = (to.rows, to.width);
        let of_rows = self.packed.rows(rows);
        let mut value = self.device.room(of_rows * width);
        self.device.launch(
            "add_relu",
            of_rows * width,
            &mut [
                Argument::write(&mut value),
                Argument::read(&to.value),
                Argument::read(&from.value),
                self.indices(self.packed.serving(rows, from.rows)),
                Argument::size(of_rows),
                Argument::size(width),
            ],
        );
        self.record(value, rows, width, Op::AddRelu { x, y })
    }

    fn add_norm(&mut self, x: Node, y: Node, norm: Option<&Norm>) -> Node {
        let (to, from) = (&self.nodes[x.0], &self.nodes[y.0]);
        let (rows, width) = (to.rows, to.width);
        let of_rows = self.packed.rows(rows);
        let [mut normal, mut inverse] = [of_rows * width, of_rows].map(|length| self.device.room(length));
        let ([keys, places], [node, threshold, kept]) = self.dropout(rows, self.nodes.len());
        self.device.launch(
            "normalise",
            of_rows * LANES,
            &mut [
                Argument::write(&mut normal),
                Argument::write(&mut inverse),
                Argument::read(&to.value),
                Argument::read(&from.value),
                self.indices(self.packed.serving(rows, from.rows)),
                keys,
                places,
                Argument::size(of_rows),
                Argument::size(width),
                node,
                threshold,
                kept,
            ],
        );
        let Some(norm) = norm else {
            return self.record(normal, rows, width, Op::AddNorm { x, y, norm: None, inverse });
        };
        let mut value = self.device.room(of_rows * width);
        self.device.launch(
            "rescale",
            of_rows * width,
            &mut [
                Argument::write(&mut value),
                Argument::read(&normal),
                self.weights(norm.scale),
                self.weights(norm.shift),
                Argument::size(of_rows),
                Argument::size(width),
            ],
        );
        self.record(value, rows, width, Op::AddNorm { x, y, norm: Some((*norm, normal)), inverse })
    }

    fn attention(&mut self, asking: Node, asked: Node, query: &Linear, key_value: &Linear) -> Node {
        let queries = self.linear(asking, query, Activation::Identity);
        let keys_values = self.linear(asked, key_value, Activation::Identity);
        let (asking, asked) = (&self.nodes[queries.0], &self.nodes[keys_values.0]);
        let (rows, width, heads) = (asking.rows, asking.width, self.tables.heads);
        let (of_queries, of_keys) = (self.packed.of(rows), self.packed.of(asked.rows));
        let mut value = self.device.room(of_queries.rows * width);
        let mut weights = self.device.room(of_queries.rows * heads * of_keys.longest);
        let sizes = [of_queries.rows, width, heads, of_keys.longest];
        let [of_rows, of_width, of_heads, most] = sizes.map(|number| Argument::size(number));
        self.device.launch(
            "attend",
            of_queries.rows * heads,
            &mut [
                Argument::write(&mut value),
                Argument::write(&mut weights),
                Argument::read(&asking.value),
                Argument::read(&asked.value),
                self.indices(of_queries.outfits),
                self.indices(of_keys.starts),
                of_rows,
                of_width,
                of_heads,
                most,
            ],
        );
        self.record(value, rows, width, Op::Attention { queries, keys_values, weights })
    }

    fn with_position(&mut self, slots: Node, position: Node) -> Node {
        let (many, one) = (&self.nodes[slots.0], &self.nodes[position.0]);
        let (packed, width) = (self.packed, many.width);
        let mut value = self.device.room(packed.rows(Rows::Positions) * width);
        let (outfits, of_slots) = (packed.rows(Rows::Outfits), packed.rows(Rows::Slots));
        self.put(&mut value, &one.value, packed.context_positions, (outfits, width), false);
        self.put(&mut value, &many.value, packed.slot_positions, (of_slots, width), false);
        self.record(value, Rows::Positions, width, Op::WithPosition { slots, position })
    }

    fn at_blank(&mut self, x: Node) -> Node {
        let from = &self.nodes[x.0];
        let (blanks, size) =
            (self.packed.of(from.rows).blanks, (self.packed.rows(Rows::Outfits), from.width));
        let mut value = self.device.room(size.0 * size.1);
        self.take(&mut value, Argument::read(&from.value), blanks, size, false);
        let width = size.1;
        self.record(value, Rows::Outfits, width, Op::AtBlank { x })
    }

    fn adaptive(
        &mut self,
        x: Node,
        halting: &Linear,
        unit: &mut dyn FnMut(&mut Self, Node) -> Node,
    ) -> Adaptive<Node> {
        let slots = self.packed.rows(Rows::Slots);
        let mut course = Course::new(self.halting, slots);
        let (mut states, mut logits) = (Vec::new(), Vec::new());
        let mut state = x;
        loop {
            state = unit(self, state);
            let logit = self.linear(state, halting, Activation::Identity);
            states.push(state);
            logits.push(logit);
            // Who goes on is decided on the host. A device that failed halts everybody: it keeps what went
            // wrong, and tells it when the losses are fetched.
            let chances = self.device.download(self.value(logit));
            if !course.step(&chances.unwrap_or_else(|_| vec![f32::INFINITY; slots])) {
                break;
            }
        }
        let width = self.nodes[x.0].width;
        let mut value = self.device.zeros(slots * width);
        for (state, shares) in states.iter().zip(&course.shares) {
            let shares = self.device.floats(shares);
            self.mix(&mut value, self.value(*state), &shares, width);
        }
        let value = self.record(value, Rows::Slots, width, Op::Adaptive { states, logits, course });
        let steps = self.record(self.device.zeros(1), Rows::Outfits, 1, Op::Steps);
        Adaptive { value, steps }
    }

    fn personas(&mut self, table: Param) -> Node {
        let of_slots = self.packed.of(Rows::Slots);
        let (outfits, width) = (self.packed.rows(Rows::Outfits), self.parameters.shape(table)[1]);
        let mut value = self.device.room(outfits * width);
        // The table has a row an article, so the first row that it lacks is the blank.
        let sizes = [outfits, width, self.parameters.shape(table)[0]];
        let [of_outfits, of_width, blank] = sizes.map(|number| Argument::size(number));
        self.device.launch(
            "personas",
            outfits,
            &mut [
                Argument::write(&mut value),
                self.weights(table),
                self.indices(self.packed.slots),
                self.indices(of_slots.starts),
                of_outfits,
                of_width,
                blank,
                Argument::Real(EVIDENCE),
            ],
        );
        self.record(value, Rows::Outfits, width, Op::Personas)
    }
}
