//! The device's tape run backwards.

use super::{
    Argument, Device, DeviceTape, LANES, Learning, Product,
    tape::{Op, Recorded},
};
use crate::engine::{
    number,
    ops::{Activation, Linear, Norm, Rows},
    tape::Node,
    weights::Param,
};

/// Rows that one thread adds up where columns are summed.
const PIECE: usize = 64;

/// Where the backward pass is.
pub(super) struct Pass<'a, D: Device> {
    pub(super) of: Vec<Option<D::Floats>>,
    pub(super) learning: &'a Learning<D>,
    /// What one unit of an outfit's mean pondering adds to the loss.
    pub(super) ponder: f32,
    /// Of all weights, in their layout; of the article table only rows that the batch touches count.
    pub(super) gradients: D::Floats,
}

impl<D: Device> DeviceTape<'_, D> {
    /// Adds to the pass's gradients what the gradients of some nodes mean for the weights.
    pub(super) fn run_back(&self, pass: &mut Pass<'_, D>) {
        for place in (0..self.nodes.len()).rev() {
            if let Some(gradient) = pass.of[place].take() {
                self.step_back(place, gradient, pass);
            }
        }
    }

    fn step_back(&self, place: usize, mut gradient: D::Floats, pass: &mut Pass<'_, D>) {
        let Recorded { value, rows, width, op } = &self.nodes[place];
        let (rows, width) = (*rows, *width);
        let count = self.packed.rows(rows) * width;
        match op {
            Op::Articles => {
                self.drop(&mut gradient, rows, width, place);
                pass.learning.add(self.device, pass.learning.articles, &gradient, &mut pass.gradients);
            }
            Op::Context => {
                self.average(&mut gradient);
                let sums = pass.learning.features.expect("a context has features; this is a bug");
                pass.learning.add(self.device, sums, &gradient, &mut pass.gradients);
            }
            Op::Linear { x, layer, activation, before } => {
                let from = before.as_ref().unwrap_or(value);
                self.unactivate(*activation, &mut gradient, from, count);
                self.linear_back(*x, layer, &gradient, pass);
            }
            Op::AddRelu { x, y } => {
                self.unactivate(Activation::Relu, &mut gradient, value, count);
                self.unserve(*y, &gradient, (rows, width), None, pass);
                self.give(*x, gradient, pass);
            }
            Op::AddNorm { x, y, norm, inverse } => {
                let normal = norm.as_ref().map_or(value, |(_, normal)| normal);
                if let Some((norm, _)) = norm {
                    let size = (self.packed.rows(rows), width);
                    self.add_columns(norm.scale, &gradient, Some(normal), size, pass);
                    self.add_columns(norm.shift, &gradient, None, size, pass);
                }
                let norm = norm.as_ref().map(|(norm, _)| norm);
                self.unnormalise(&mut gradient, normal, inverse, norm, (self.packed.rows(rows), width));
                self.unserve(*y, &gradient, (rows, width), Some(place), pass);
                self.give(*x, gradient, pass);
            }
            Op::Attention { queries, keys_values, weights } => {
                self.unattend((*queries, *keys_values), &gradient, weights, pass);
            }
            Op::WithPosition { slots, position } => {
                let ([many, one], packed) = ([*slots, *position], self.packed);
                for (node, at) in [(one, packed.context_positions), (many, packed.slot_positions)] {
                    let size = (packed.rows(self.nodes[node.0].rows), width);
                    self.take(self.zeroed(node, pass), Argument::read(&gradient), at, size, true);
                }
            }
            Op::AtBlank { x } => {
                let blanks = self.packed.of(self.nodes[x.0].rows).blanks;
                let size = (self.packed.rows(Rows::Outfits), width);
                self.put(self.zeroed(*x, pass), &gradient, blanks, size, true);
            }
            Op::Adaptive { .. } => self.unadapt(op, &gradient, width, pass),
            Op::Steps => unreachable!("steps are counted, not differentiated; this is a bug"),
            Op::Personas => self.unpersonas(value, &gradient, width, pass),
        }
    }

    fn unactivate(&self, activation: Activation, gradient: &mut D::Floats, from: &D::Floats, count: usize) {
        let kernel = match activation {
            Activation::Identity => return,
            Activation::Relu => "unrelu",
            Activation::Gelu => "ungelu",
        };
        let mut arguments = [Argument::write(gradient), Argument::read(from), Argument::size(count)];
        self.device.launch(kernel, count, &mut arguments);
    }

    fn linear_back(&self, x: Node, layer: &Linear, gradient: &D::Floats, pass: &mut Pass<'_, D>) {
        let from = &self.nodes[x.0];
        let (rows, inner) = (self.packed.rows(from.rows), from.width);
        let (weights, at) = (&self.parameters.weights, self.parameters.at(layer.weight));
        let width = self.parameters.shape(layer.weight)[1];
        let of_weights = Product {
            rows: inner,
            columns: width,
            inner: rows,
            a_transposed: true,
            b_transposed: false,
            adds: true,
        };
        let into = (&mut pass.gradients, at);
        self.device.multiply(of_weights, (&from.value, 0), (gradient, 0), into);
        if let Some(bias) = layer.bias {
            self.add_columns(bias, gradient, None, (rows, width), pass);
        }
        let adds = pass.of[x.0].is_some();
        let to = pass.of[x.0].get_or_insert_with(|| self.device.room(rows * inner));
        let of_x =
            Product { rows, columns: inner, inner: width, a_transposed: false, b_transposed: true, adds };
        self.device.multiply(of_x, (gradient, 0), (weights, at), (to, 0));
    }

    /// Adds to a weight's gradient the sums of the columns, of `a` or of `a` times `b`.
    pub(super) fn add_columns(
        &self,
        param: Param,
        a: &D::Floats,
        b: Option<&D::Floats>,
        (rows, width): (usize, usize),
        pass: &mut Pass<'_, D>,
    ) {
        let pieces = rows.div_ceil(PIECE);
        let mut parts = self.device.room(pieces * width);
        let multiplied = Argument::Count(b.is_some().into());
        let (rows, piece) = (Argument::size(rows), Argument::size(PIECE));
        let (from, by) = (Argument::read(a), Argument::read(b.unwrap_or(a)));
        let mut arguments =
            [Argument::write(&mut parts), from, by, rows, Argument::size(width), piece, multiplied];
        self.device.launch("column_parts", pieces * width, &mut arguments);
        let to = Argument::Out(&mut pass.gradients, self.parameters.at(param));
        let (pieces, of_width) = (Argument::size(pieces), Argument::size(width));
        let mut arguments = [to, Argument::read(&parts), pieces, of_width];
        self.device.launch("column_total", width, &mut arguments);
    }

    fn unnormalise(
        &self,
        gradient: &mut D::Floats,
        normal: &D::Floats,
        inverse: &D::Floats,
        norm: Option<&Norm>,
        (rows, width): (usize, usize),
    ) {
        let scaled = Argument::Count(norm.is_some().into());
        let scale = norm.map_or(Argument::read(&self.parameters.weights), |norm| self.weights(norm.scale));
        let (normal, inverse) = (Argument::read(normal), Argument::read(inverse));
        let (of_rows, width) = (Argument::size(rows), Argument::size(width));
        let mut arguments = [Argument::write(gradient), normal, inverse, scale, scaled, of_rows, width];
        self.device.launch("unnormalise", rows * LANES, &mut arguments);
    }

    /// Adds to the gradient of what served some rows; `dropped` says by which operation's dropout.
    fn unserve(
        &self,
        y: Node,
        gradient: &D::Floats,
        (rows, width): (Rows, usize),
        dropped: Option<usize>,
        pass: &mut Pass<'_, D>,
    ) {
        let narrow = self.nodes[y.0].rows;
        let of_rows = self.packed.rows(narrow);
        let starts = self.indices(self.packed.served(rows, narrow));
        let ([keys, places], [node, mut threshold, mut kept]) =
            self.dropout(rows, dropped.unwrap_or_default());
        if dropped.is_none() {
            (threshold, kept) = (Argument::Count(0), Argument::Real(1.0));
        }
        let to = Argument::write(self.zeroed(y, pass));
        let (of_narrow, of_width) = (Argument::size(of_rows), Argument::size(width));
        let gradient = Argument::read(gradient);
        let mut arguments = [to, gradient, starts, keys, places, of_narrow, of_width, node, threshold, kept];
        self.device.launch("unserve", of_rows * width, &mut arguments);
    }

    pub(super) fn give(&self, node: Node, gradient: D::Floats, pass: &mut Pass<'_, D>) {
        let Some(to) = &mut pass.of[node.0] else {
            pass.of[node.0] = Some(gradient);
            return;
        };
        let length = self.length(node);
        let mut arguments = [Argument::write(to), Argument::read(&gradient), Argument::size(length)];
        self.device.launch("add", length, &mut arguments);
    }

    /// A node's gradient to add to.
    pub(super) fn zeroed<'p>(&self, node: Node, pass: &'p mut Pass<'_, D>) -> &'p mut D::Floats {
        pass.of[node.0].get_or_insert_with(|| self.device.zeros(self.length(node)))
    }

    /// Numbers of a node's value.
    fn length(&self, node: Node) -> usize {
        let Recorded { rows, width, .. } = &self.nodes[node.0];
        self.packed.rows(*rows) * width
    }

    /// An outfit's pondering is the mean over its slots.
    pub(super) fn ponder_by_slot(&self, ponder: f32) -> Vec<f32> {
        let lengths = self.packed.lengths.iter();
        lengths.flat_map(|&slots| std::iter::repeat_n(ponder / number(slots), slots)).collect()
    }
}
