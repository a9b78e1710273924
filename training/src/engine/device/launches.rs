//! What several of the tape's operations launch, forwards or backwards.

use super::{Argument, Device, DeviceTape};
use crate::engine::{
    dropout::Mask,
    ops::{Activation, Rows},
    weights::Param,
};

impl<D: Device> DeviceTape<'_, D> {
    pub(super) fn indices(&self, at: usize) -> Argument<'_, D> {
        Argument::Indices(&self.packed.indices, at)
    }

    pub(super) fn weights(&self, param: Param) -> Argument<'_, D> {
        Argument::In(&self.parameters.weights, self.parameters.at(param))
    }

    /// The keys and places of rows, and how much is dropped of the operation at this place of the tape.
    pub(super) fn dropout(&self, rows: Rows, node: usize) -> ([Argument<'_, D>; 2], [Argument<'_, D>; 3]) {
        let of = self.packed.of(rows);
        let Mask { threshold, kept, .. } = self.mask;
        (
            [self.indices(of.keys), self.indices(of.places)],
            [Argument::size(node), Argument::Count(threshold), Argument::Real(kept)],
        )
    }

    /// Drops numbers of the operation at this place.
    pub(super) fn drop(&self, values: &mut D::Floats, rows: Rows, width: usize, node: usize) {
        if self.mask.threshold == 0 {
            return;
        }
        let ([keys, places], [node, threshold, kept]) = self.dropout(rows, node);
        let rows = self.packed.rows(rows);
        let sizes = (Argument::size(rows), Argument::size(width));
        let mut arguments = [Argument::write(values), keys, places, sizes.0, sizes.1, node, threshold, kept];
        self.device.launch("drop", rows * width, &mut arguments);
    }

    /// Adds a bias and applies what ends the layer; gives what went into it, where backwards needs that.
    pub(super) fn activate(
        &self,
        value: &mut D::Floats,
        bias: Param,
        (rows, width): (usize, usize),
        activation: Activation,
    ) -> Option<D::Floats> {
        let (bias, threads) = (self.weights(bias), rows * width);
        let (rows, width) = (Argument::size(rows), Argument::size(width));
        let kernel = match activation {
            Activation::Identity => "add_bias",
            Activation::Relu => "add_bias_relu",
            Activation::Gelu => {
                let mut before = self.device.room(threads);
                let mut arguments = [Argument::write(value), Argument::write(&mut before), bias, rows, width];
                self.device.launch("add_bias_gelu", threads, &mut arguments);
                return Some(before);
            }
        };
        self.device.launch(kernel, threads, &mut [Argument::write(value), bias, rows, width]);
        None
    }

    /// Puts rows where the list at `at` says, or adds them there.
    pub(super) fn put(
        &self,
        to: &mut D::Floats,
        from: &D::Floats,
        at: usize,
        (rows, width): (usize, usize),
        adds: bool,
    ) {
        let sizes = (Argument::size(rows), Argument::size(width));
        let (to, from, adds) = (Argument::write(to), Argument::read(from), Argument::Count(adds.into()));
        let mut arguments = [to, from, self.indices(at), sizes.0, sizes.1, adds];
        self.device.launch("put_rows", rows * width, &mut arguments);
    }

    /// Takes the rows that the list at `at` names, or adds them to what is there.
    pub(super) fn take(
        &self,
        to: &mut D::Floats,
        from: Argument<'_, D>,
        at: usize,
        (rows, width): (usize, usize),
        adds: bool,
    ) {
        let sizes = (Argument::size(rows), Argument::size(width));
        let (to, adds) = (Argument::write(to), Argument::Count(adds.into()));
        let mut arguments = [to, from, self.indices(at), sizes.0, sizes.1, adds];
        self.device.launch("take_rows", rows * width, &mut arguments);
    }

    /// Divides sums over an outfit's values of a feature by their number.
    pub(super) fn average(&self, values: &mut D::Floats) {
        let width = self.tables.feature_width;
        let places = self.packed.rows(Rows::Outfits) * self.tables.features.len();
        let parts = Argument::read(&self.packed.feature_parts);
        let mut arguments = [Argument::write(values), parts, Argument::size(places), Argument::size(width)];
        self.device.launch("scale_rows", places * width, &mut arguments);
    }

    /// value += share × state, slot by slot.
    pub(super) fn mix(&self, value: &mut D::Floats, state: &D::Floats, shares: &D::Floats, width: usize) {
        let slots = self.packed.rows(Rows::Slots);
        let sizes = (Argument::size(slots), Argument::size(width));
        let (state, shares) = (Argument::read(state), Argument::read(shares));
        let mut arguments = [Argument::write(value), state, shares, sizes.0, sizes.1];
        self.device.launch("mix", slots * width, &mut arguments);
    }
}
