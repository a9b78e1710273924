//! Adaptive computation time (Graves 2016), per slot: every step's state says how likely it is the
//! last; states are mixed by those chances, the last step taking what is left.

use super::simd::{dot, number, vectorised};

/// When adaptive computation ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Halting {
    /// A slot halts when its chances reach one less this.
    pub(crate) epsilon: f32,
    pub(crate) most_steps: usize,
}

/// The halting of one shard's slots, as it goes.
#[derive(Debug)]
pub(super) struct Course {
    halting: Halting,
    /// Chances spent so far, per slot.
    spent: Vec<f32>,
    /// The step at which each slot halted, from 1; 0 while it runs.
    pub(super) halted: Vec<usize>,
    /// Each step's share in the mixture, per slot.
    pub(super) shares: Vec<Vec<f32>>,
}

impl Course {
    pub(super) fn new(halting: Halting, slots: usize) -> Self {
        Self { halting, spent: vec![0.0; slots], halted: vec![0; slots], shares: Vec::new() }
    }

    /// Takes one step's halting logits; false when all have halted.
    pub(super) fn step(&mut self, logits: &[f32]) -> bool {
        let step = self.shares.len() + 1;
        let mut shares = vec![0.0; logits.len()];
        for (slot, share) in shares.iter_mut().enumerate() {
            if self.halted[slot] > 0 {
                continue;
            }
            let chance = sigmoid(logits[slot]);
            let spent = self.spent[slot] + chance;
            if step == self.halting.most_steps || spent >= 1.0 - self.halting.epsilon {
                self.halted[slot] = step;
                *share = 1.0 - self.spent[slot];
            } else {
                self.spent[slot] = spent;
                *share = chance;
            }
        }
        self.shares.push(shares);
        self.halted.contains(&0)
    }

    /// Steps and remainder of each slot: what pondering costs.
    pub(super) fn ponder(&self) -> impl Iterator<Item = f32> {
        self.halted.iter().zip(&self.spent).map(|(&steps, spent)| number(steps) + 1.0 - spent)
    }

    /// Turns the shares' gradients, step by step, into those of the halting logits. `ponder` is what one
    /// unit of a slot's pondering adds to the loss.
    pub(super) fn backward(&self, share_gradients: &[Vec<f32>], ponder: &[f32]) -> Vec<Vec<f32>> {
        let mut logits = vec![vec![0.0; self.halted.len()]; self.shares.len()];
        for (slot, &last) in self.halted.iter().enumerate() {
            let remainder = share_gradients[last - 1][slot] + ponder[slot];
            for step in 0..last - 1 {
                let chance = self.shares[step][slot];
                logits[step][slot] = (share_gradients[step][slot] - remainder) * chance * (1.0 - chance);
            }
        }
        logits
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
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
    /// Each row's share's gradient.
    pub(super) fn unmix<'a>(gradient: &'a [f32], state: &'a [f32], width: usize) -> Vec<f32> {
        gradient.chunks_exact(width).zip(state.chunks_exact(width)).map(|(g, s)| dot(g, s)).collect()
    }
}
