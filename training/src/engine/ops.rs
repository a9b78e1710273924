//! The operations that a model is made of.

use super::Param;

/// x W + b; the weight is stored [in, out].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Linear {
    pub(crate) weight: Param,
    pub(crate) bias: Option<Param>,
}

/// The learned scale and shift of a layer normalisation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Norm {
    pub(crate) scale: Param,
    pub(crate) shift: Param,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    Identity,
    Relu,
    /// The exact form, with the error function.
    Gelu,
}

/// A value has a row for each of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    Outfits,
    Slots,
    /// The outfit's slots, preceded by one position for its context.
    Positions,
}

/// Added to a residual connection, and decides its dropout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Residue {
    /// Attention to the outfit, or what was read from the global state.
    Read,
    /// A feed-forward network's value.
    Computed,
}

/// The result of adaptive computation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Adaptive<V> {
    pub(crate) value: V,
    /// Mean steps over each outfit's slots: one number per outfit.
    pub(crate) steps: V,
}

/// Builds a model: a tape computes it, an exporter draws it.
///
/// If one argument has a row per outfit and the other a row per slot, the outfit's row is broadcast to its slots.
pub(crate) trait Ops {
    type Value: Copy;

    /// The embedding of each slot's content.
    fn articles(&mut self) -> Self::Value;

    /// The match of the visible articles and the features, summed.
    fn matched(&mut self) -> Self::Value;

    /// Two values side by side.
    fn beside(&mut self, x: Self::Value, y: Self::Value) -> Self::Value;

    /// Each outfit's context: its features' embeddings side by side.
    fn context(&mut self) -> Self::Value;

    /// The context after its dense layers, if it was computed before.
    fn encoded(&mut self) -> Option<Self::Value> {
        None
    }

    fn linear(&mut self, x: Self::Value, layer: &Linear, activation: Activation) -> Self::Value;

    /// max(0, x + y)
    fn add_relu(&mut self, x: Self::Value, y: Self::Value) -> Self::Value;

    /// x + dropout(y), normalised.
    fn add_norm(&mut self, x: Self::Value, y: Self::Value, norm: Option<&Norm>, kind: Residue)
    -> Self::Value;

    /// Multi-head attention within each outfit, without its output layer: queries come from `x`, keys and values,
    /// side by side, from `source`.
    fn attention(
        &mut self,
        x: Self::Value,
        source: Self::Value,
        query: &Linear,
        key_value: &Linear,
    ) -> Self::Value;

    /// Puts one more position before each outfit's slots.
    fn with_position(&mut self, slots: Self::Value, position: Self::Value) -> Self::Value;

    /// The rows of the slots to predict.
    fn at_blank(&mut self, x: Self::Value) -> Self::Value;

    /// Applies `unit` until every slot has halted, and averages the states by their halting weights.
    fn adaptive(
        &mut self,
        x: Self::Value,
        halting: &Linear,
        unit: &mut dyn FnMut(&mut Self, Self::Value) -> Self::Value,
    ) -> Adaptive<Self::Value>;

    /// The mixture of personas that the visible articles suggest.
    fn personas(&mut self, table: Param) -> Self::Value;
}
