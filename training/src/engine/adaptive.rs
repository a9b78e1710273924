//! Adaptive computation time (Graves 2016), per slot: each step's state gives the probability that it is the last;
//! the states are averaged by those probabilities, and the last step takes the remainder.

use super::{
    pair::sigmoid,
    simd::{dot, number, vectorised},
};

/// When adaptive computation ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Halting {
    /// A slot halts when its probabilities sum to 1 − `epsilon`.
    pub(crate) epsilon: f32,
    pub(crate) max_steps: usize,
}

/// How one shard's slots halt, step by step.
#[derive(Debug)]
pub(super) struct HaltingState {
    halting: Halting,
    /// The sum of the probabilities so far, per slot.
    spent: Vec<f32>,
    /// The step at which each slot halted, from 1; 0 while it runs.
    pub(super) halted: Vec<usize>,
    /// Each step's weight in the average, per slot.
    pub(super) shares: Vec<Vec<f32>>,
}

impl HaltingState {
    pub(super) fn new(halting: Halting, slots: usize) -> Self {
        Self { halting, spent: vec![0.0; slots], halted: vec![0; slots], shares: Vec::new() }
    }

    /// Adds a step with these halting logits; false when all slots have halted.
    pub(super) fn step(&mut self, logits: &[f32]) -> bool {
        let step = self.shares.len() + 1;
        let mut shares = vec![0.0; logits.len()];
        for (slot, share) in shares.iter_mut().enumerate() {
            if self.halted[slot] > 0 {
                continue;
            }
            let probability = sigmoid(logits[slot]);
            let spent = self.spent[slot] + probability;
            if step == self.halting.max_steps || spent >= 1.0 - self.halting.epsilon {
                self.halted[slot] = step;
                *share = 1.0 - self.spent[slot];
            } else {
                self.spent[slot] = spent;
                *share = probability;
            }
        }
        self.shares.push(shares);
        self.halted.contains(&0)
    }

    /// Steps plus remainder of each slot.
    pub(super) fn ponder(&self) -> impl Iterator<Item = f32> {
        self.halted.iter().zip(&self.spent).map(|(&steps, spent)| number(steps) + 1.0 - spent)
    }

    /// Turns the shares' gradients, step by step, into those of the halting logits. `ponder` is the loss per unit of
    /// each slot's pondering.
    pub(super) fn backward(&self, share_gradients: &[Vec<f32>], ponder: &[f32]) -> Vec<Vec<f32>> {
        let mut logits = vec![vec![0.0; self.halted.len()]; self.shares.len()];
        for (slot, &last) in self.halted.iter().enumerate() {
            let remainder = share_gradients[last - 1][slot] + ponder[slot];
            for step in 0..last - 1 {
                let share = self.shares[step][slot];
                logits[step][slot] = (share_gradients[step][slot] - remainder) * share * (1.0 - share);
            }
        }
        logits
    }
}

vectorised! {
    /// value += share × state, row by row.
    pub(super) fn mix<'a>(value: &'a mut [f32], state: &'a [f32], shares: &'a [f32], width: usize) {
        for ((value, state), share) in value.chunks_exact_mut(width).zip(state.chunks_exact(width)).zip(shares) {
            for (value, state) in value.iter_mut().zip(state) {
                *value = share.mul_add(*state, *value);
            }
        }
    }
}

vectorised! {
    /// The gradient of each row's share.
    pub(super) fn unmix<'a>(gradient: &'a [f32], state: &'a [f32], width: usize) -> Vec<f32> {
        gradient.chunks_exact(width).zip(state.chunks_exact(width)).map(|(g, s)| dot(g, s)).collect()
    }
}
