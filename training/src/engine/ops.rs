//! What a model is made of, said once for all that can be done with it.

use super::Param;

/// x W + b; the weight is stored [in, out].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Linear {
    pub(crate) weight: Param,
    pub(crate) bias: Option<Param>,
}

/// The learned scale and shift of a normalisation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Norm {
    pub(crate) scale: Param,
    pub(crate) shift: Param,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    Identity,
    Relu,
    /// The exact one, with the error function.
    Gelu,
}

/// What a value has a row for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    Outfits,
    Slots,
    /// The outfit's slots and before them one position for its context.
    Positions,
}

/// What adaptive computation gives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Adaptive<V> {
    pub(crate) value: V,
    /// Mean steps over an outfit's slots, one number an outfit.
    pub(crate) steps: V,
}

/// Builds a model: on a tape it computes, in an exporter it draws.
///
/// Where one argument has a row an outfit and the other a row a slot, the outfit's row serves all of
/// its slots.
pub(crate) trait Ops {
    type Value: Copy;

    /// The embedding of what is in each slot.
    fn articles(&mut self) -> Self::Value;

    /// Each outfit's context: its features' embeddings side by side.
    fn context(&mut self) -> Self::Value;

    fn linear(&mut self, x: Self::Value, layer: &Linear, activation: Activation) -> Self::Value;

    /// max(0, x + y)
    fn add_relu(&mut self, x: Self::Value, y: Self::Value) -> Self::Value;

    /// The normalised x + dropout(y).
    fn add_norm(&mut self, x: Self::Value, y: Self::Value, norm: Option<&Norm>) -> Self::Value;

    /// Multi-head attention within each outfit, before its output layer: `asking` makes the queries,
    /// `asked` the keys and the values, side by side.
    fn attention(
        &mut self,
        asking: Self::Value,
        asked: Self::Value,
        query: &Linear,
        key_value: &Linear,
    ) -> Self::Value;

    /// One more position before the slots.
    fn with_position(&mut self, slots: Self::Value, position: Self::Value) -> Self::Value;

    /// The rows of the slots that were asked for.
    fn at_blank(&mut self, x: Self::Value) -> Self::Value;

    /// Applies `unit` until every slot has halted, and mixes the states by their halting weights.
    fn adaptive(
        &mut self,
        x: Self::Value,
        halting: &Linear,
        unit: &mut dyn FnMut(&mut Self, Self::Value) -> Self::Value,
    ) -> Adaptive<Self::Value>;

    /// How much of each persona the visible articles show.
    fn personas(&mut self, table: Param) -> Self::Value;
}
