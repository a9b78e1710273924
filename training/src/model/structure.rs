//! How a model is put together: written once, for training and export.

use crate::engine::{
    Activation, Composed, Head, Linear, Memory, Norm, Ops, PairHead, Param, Residue, Tables,
};

/// A model's layers.
#[derive(Debug, Clone)]
pub(crate) struct Structure {
    pub(crate) tables: Tables,
    /// Tables that are sums of articles' own vectors and their values'.
    pub(crate) composed: Vec<Composed>,
    pub(crate) conditioned: Conditioned,
    pub(crate) blocks: Vec<Block>,
    /// Of a universal trunk.
    pub(crate) halting: Option<Linear>,
    pub(crate) transform: Linear,
    /// Whether the last dense layer also reads the match.
    pub(crate) matches: bool,
    pub(crate) head: Head,
    /// The personas' biases of visible articles: those of the head.
    pub(crate) evidence: Option<Param>,
    /// Counts, added to the last dense layer's logits.
    pub(crate) memory: Option<Memory>,
    /// Of a model that judges pairs.
    pub(crate) pair: Option<PairHead>,
}

/// FNN(x) = W2 max(0, W1 x + b1) + b2
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fnn {
    pub(crate) first: Linear,
    pub(crate) second: Linear,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct AttentionLayer {
    pub(crate) query: Linear,
    pub(crate) key_value: Linear,
    pub(crate) out: Linear,
    pub(crate) norm: Norm,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) attention: AttentionLayer,
    /// Reads the global state, if there is one.
    pub(crate) state: Option<Linear>,
    pub(crate) fnn: Fnn,
    pub(crate) norm: Norm,
}

/// How the global state changes after a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Update {
    pub(crate) fnn: Fnn,
    pub(crate) norm: Norm,
}

/// The layers of a conditioning.
#[derive(Debug, Clone)]
pub(crate) enum Conditioned {
    None,
    /// FNN([x; c]), its first matrix in two parts: the context's part is computed once per outfit.
    Concat {
        article: Linear,
        context: Linear,
        out: Linear,
    },
    Position {
        context: Linear,
    },
    /// Updates happen between blocks: one fewer than blocks, or none.
    State {
        context: Fnn,
        updates: Vec<Update>,
    },
}

/// A model's output for each outfit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output<V> {
    /// The input of the last dense layer.
    pub(crate) hidden: V,
    pub(crate) personas: Option<V>,
    pub(crate) steps: Option<V>,
}

impl Structure {
    /// The tensors that no optimiser moves: sums of others, and counts.
    pub(crate) fn unmoved(&self) -> Vec<Param> {
        let counts = self
            .memory
            .iter()
            .flat_map(|memory| [memory.articles, memory.counts, memory.expected, memory.named]);
        self.composed.iter().map(|table| table.sum).chain(counts).collect()
    }

    pub(crate) fn forward<O: Ops>(&self, ops: &mut O) -> Output<O::Value> {
        let articles = ops.articles();
        let (x, state) = self.condition(ops, articles);
        let (blank, steps) = match &self.halting {
            None => (self.stacked(ops, x, state), None),
            Some(halting) => {
                let unit = &mut |ops: &mut O, x| {
                    self.blocks.iter().fold(x, |x, layer| block(ops, layer, x, state, false))
                };
                let adaptive = ops.adaptive(x, halting, unit);
                (ops.at_blank(adaptive.value), Some(adaptive.steps))
            }
        };
        let mut hidden = ops.linear(blank, &self.transform, Activation::Gelu);
        if self.matches {
            let matched = ops.matched();
            hidden = ops.beside(hidden, matched);
        }
        let personas = self.evidence.map(|table| ops.personas(table));
        Output { hidden, personas, steps }
    }

    /// The input of the first block, and the global state.
    fn condition<O: Ops>(&self, ops: &mut O, x: O::Value) -> (O::Value, Option<O::Value>) {
        match &self.conditioned {
            Conditioned::None => (x, None),
            Conditioned::Concat { article, out, .. } => {
                let c = self.encode(ops);
                let x = ops.linear(x, article, Activation::Identity);
                let x = ops.add_relu(x, c);
                (ops.linear(x, out, Activation::Identity), None)
            }
            Conditioned::Position { .. } => {
                let c = self.encode(ops);
                (ops.with_position(x, c), None)
            }
            Conditioned::State { .. } => (x, Some(self.encode(ops))),
        }
    }

    fn encode<O: Ops>(&self, ops: &mut O) -> O::Value {
        if let Some(context) = ops.encoded() {
            return context;
        }
        let (mut c, layers) = (ops.context(), self.context_layers());
        for (place, layer) in layers.iter().enumerate() {
            let is_last = place + 1 == layers.len();
            c = ops.linear(c, layer, if is_last { Activation::Identity } else { Activation::Relu });
        }
        c
    }

    /// The context's layers, with `ReLU` between them.
    pub(crate) fn context_layers(&self) -> Vec<Linear> {
        match &self.conditioned {
            Conditioned::None => Vec::new(),
            Conditioned::Concat { context, .. } | Conditioned::Position { context } => vec![*context],
            Conditioned::State { context, .. } => vec![context.first, context.second],
        }
    }

    /// Applies the blocks one after the other, the last one only at the blank.
    fn stacked<O: Ops>(&self, ops: &mut O, mut x: O::Value, mut state: Option<O::Value>) -> O::Value {
        let updates = match &self.conditioned {
            Conditioned::State { updates, .. } => updates.as_slice(),
            _ => &[],
        };
        for (place, layer) in self.blocks.iter().enumerate() {
            x = block(ops, layer, x, state, place + 1 == self.blocks.len());
            if let (Some(update), Some(before)) = (updates.get(place), state) {
                state = Some(update_state(ops, update, before));
            }
        }
        x
    }
}

fn block<O: Ops>(
    ops: &mut O,
    layer: &Block,
    x: O::Value,
    state: Option<O::Value>,
    blank_only: bool,
) -> O::Value {
    let query = if blank_only { ops.at_blank(x) } else { x };
    let mut x = attend(ops, &layer.attention, query, x);
    if let (Some(read), Some(state)) = (&layer.state, state) {
        let read = ops.linear(state, read, Activation::Identity);
        x = ops.add_norm(x, read, None, Residue::Read);
    }
    let through = fnn(ops, &layer.fnn, x);
    ops.add_norm(x, through, Some(&layer.norm), Residue::Computed)
}

fn update_state<O: Ops>(ops: &mut O, update: &Update, state: O::Value) -> O::Value {
    let through = fnn(ops, &update.fnn, state);
    ops.add_norm(state, through, Some(&update.norm), Residue::Computed)
}

/// Lets `x` attend to `source`.
fn attend<O: Ops>(ops: &mut O, layer: &AttentionLayer, x: O::Value, source: O::Value) -> O::Value {
    let attended = ops.attention(x, source, &layer.query, &layer.key_value);
    let attended = ops.linear(attended, &layer.out, Activation::Identity);
    ops.add_norm(x, attended, Some(&layer.norm), Residue::Read)
}

fn fnn<O: Ops>(ops: &mut O, layer: &Fnn, x: O::Value) -> O::Value {
    let hidden = ops.linear(x, &layer.first, Activation::Relu);
    ops.linear(hidden, &layer.second, Activation::Identity)
}
