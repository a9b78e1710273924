//! The loss, its gradients, and one step of training.

use rayon::prelude::*;

use super::{Batch, Model, Output, PairBatch};
use crate::engine::{
    AdamW, AdamWConfig, Dropout, Gradients, Halting, Head, HeadGradients, RowGradients, Shard, Shared,
    Sharing, Tape, add_to, number,
};

/// Outfits per shard. Fixed, so that results do not depend on the number of threads.
const SHARD: usize = 64;
/// Outfits whose logits are in memory at once.
const OUTFITS_AT_ONCE: usize = 1024;
/// Rows of the last dense layer per task of its gradient.
const STRIPE: usize = 1024;

/// The loss of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// Unweighted mean over the outfits.
    pub cross_entropy: f64,
    /// The training objective: the weighted mean plus the cost of pondering.
    pub total: f64,
    /// Mean steps over slots, then outfits, if the trunk is universal.
    pub steps: Option<f64>,
    /// Mean cross-entropy over the pairs of halves, in nats.
    pub pair: Option<f64>,
}

/// A model with its optimiser, and memory for logits.
#[derive(Debug)]
pub struct Trainer {
    pub(super) model: Model,
    pub(super) adamw: AdamW,
    pub(super) scratch: Vec<f32>,
}

impl Trainer {
    pub fn new(model: Model, config: AdamWConfig) -> Self {
        let adamw = AdamW::new(config, &model.weights, model.structure.tables.articles);
        Self::resumed(model, adamw)
    }

    pub(super) fn resumed(model: Model, adamw: AdamW) -> Self {
        Self { model, adamw, scratch: Vec::new() }
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    /// From now on articles with the same attribute values share what they learn, in all three tables with a row per
    /// article. A loaded trainer keeps its state.
    pub(crate) fn share(&mut self, sharing: Sharing) {
        if self.adamw.shared.is_empty() {
            self.adamw.shared = self.model.new_shared(sharing.count());
        }
        self.adamw.sharing = Some(sharing);
    }

    /// Steps made so far.
    pub fn steps(&self) -> u32 {
        self.adamw.steps
    }

    /// Learns from a batch, and from pairs, whose loss is multiplied by the number beside them. Dropout depends on
    /// `seed` and the number of the step alone.
    ///
    /// # Panics
    /// If there are pairs and the model was not made for them.
    pub fn step(
        &mut self,
        batch: &Batch,
        pairs: Option<(&PairBatch, f32)>,
        learning_rate: f32,
        seed: u64,
    ) -> Loss {
        let key = key(seed, self.adamw.steps);
        let (mut loss, mut gradients) = self.model.gradients(batch, Some(key), &mut self.scratch);
        if let Some((pairs, weight)) = pairs.filter(|(pairs, _)| !pairs.is_empty()) {
            let (of_pairs, more) = self.model.pair_gradients(pairs, weight, Some(key));
            gradients.add(vec![more]);
            loss.total += of_pairs.total;
            loss.pair = of_pairs.pair;
        }
        let articles = self.model.structure.tables.articles;
        self.adamw.step(&mut self.model.weights, articles, &gradients, learning_rate);
        loss
    }
}

impl Model {
    /// Moments of 0 for this many values.
    pub(super) fn new_shared(&self, values: usize) -> Vec<Shared> {
        let (articles, head) = (self.structure.tables.articles, &self.structure.head);
        let tables = [articles, head.weight, head.bias];
        tables.map(|table| Shared::new(table, &self.weights, values)).into()
    }

    /// The logits, outfit by outfit: one per article.
    pub fn logits(&self, batch: &Batch) -> Vec<f32> {
        let articles = self.config.articles;
        let mut logits = vec![0.0; batch.len() * articles];
        batch.shards(SHARD).par_iter().zip(logits.par_chunks_mut(SHARD * articles)).for_each(
            |(shard, logits)| {
                let mut tape = self.tape(shard, None);
                let output = self.structure.forward(&mut tape);
                self.fill_logits(&tape, output, logits);
            },
        );
        logits
    }

    /// The loss and its gradients, with dropout if there is a `key`.
    pub(crate) fn gradients(
        &self,
        batch: &Batch,
        key: Option<u64>,
        scratch: &mut Vec<f32>,
    ) -> (Loss, Gradients) {
        let mut parts = Vec::new();
        let mut gradients = Gradients::new(&self.weights);
        let shards = batch.shards(SHARD);
        let room = OUTFITS_AT_ONCE.min(batch.len()) * self.config.articles;
        if scratch.len() < room {
            scratch.resize(room, 0.0);
        }
        for (place, shards) in shards.chunks(OUTFITS_AT_ONCE / SHARD).enumerate() {
            let first = place * OUTFITS_AT_ONCE;
            let count: usize = shards.iter().map(Shard::outfits).sum();
            let logits = &mut scratch[..count * self.config.articles];
            let learned: Vec<Learned> = shards
                .par_iter()
                .zip(logits.par_chunks_mut(SHARD * self.config.articles))
                .enumerate()
                .map(|(shard_place, (shard, logits))| {
                    let from = first + shard_place * SHARD;
                    self.learn(shard, batch, from, key, logits)
                })
                .collect();
            self.collect(learned, logits, &mut gradients, &mut parts);
        }
        self.fold_personas(&mut gradients);
        (self.add_up(&parts, batch.len()), gradients)
    }

    /// Adds the rows of the personas' table that outfits touched to its dense gradient.
    pub(super) fn fold_personas(&self, gradients: &mut Gradients) {
        let Some(table) = self.structure.head.personas else { return };
        let width = self.config.personas;
        let RowGradients { rows, values } = std::mem::take(&mut gradients.personas);
        let into = gradients.dense_mut(table, &self.weights);
        for (row, values) in rows.into_iter().zip(values.chunks_exact(width)) {
            add_to(&mut into[row as usize * width..][..width], values);
        }
    }

    /// Runs one shard forwards and backwards, and replaces its logits by their gradient.
    fn learn(
        &self,
        shard: &Shard,
        batch: &Batch,
        from: usize,
        key: Option<u64>,
        logits: &mut [f32],
    ) -> Learned {
        let outfits = from..from + shard.outfits();
        let dropout = key.map(|key| Dropout { rate: self.config.dropout, key: shard_key(key, from) });
        let mut tape = self.tape(shard, dropout);
        let output = self.structure.forward(&mut tape);
        self.fill_logits(&tape, output, logits);
        let weights = &batch.weights[outfits.clone()];
        let shares: Vec<f32> = weights.iter().map(|weight| weight / number(batch.len())).collect();
        let losses = Head::loss(logits, &batch.targets[outfits], &shares);
        let part = Part::new(&tape, output, &losses, weights);
        let hidden = tape.value(output.hidden).to_vec();
        let personas = output.personas.map(|node| tape.value(node).to_vec());
        let back = self.structure.head.backward(&self.weights, logits);
        let HeadGradients { hidden: to_hidden, personas: to_personas } = back;
        let mut seeds = vec![(output.hidden, to_hidden)];
        seeds.extend(output.personas.zip(to_personas));
        let mut gradients = Gradients::new(&self.weights);
        let ponder = self.config.universal.ponder_weight / number(batch.len());
        tape.backward(seeds, ponder, &mut gradients);
        Learned { part, hidden, personas, gradients }
    }

    /// Adds the shards' gradients in their order, and those of the last dense layer.
    fn collect(
        &self,
        learned: Vec<Learned>,
        logits: &[f32],
        gradients: &mut Gradients,
        parts: &mut Vec<Part>,
    ) {
        let head = &self.structure.head;
        let (articles, width) = (self.config.articles, self.config.width);
        let (mut hidden, mut personas, mut by_shard) = (Vec::new(), Vec::new(), Vec::new());
        for mut learned in learned {
            parts.push(learned.part);
            hidden.append(&mut learned.hidden);
            personas.extend(learned.personas.into_iter().flatten());
            by_shard.push(learned.gradients);
        }
        gradients.add(by_shard);
        let stripes = gradients.dense_mut(head.weight, &self.weights).par_chunks_mut(STRIPE * width);
        stripes.enumerate().for_each(|(place, rows)| {
            Head::add_table_gradient(rows, place * STRIPE, width, logits, articles, &hidden);
        });
        let stripes = gradients.dense_mut(head.bias, &self.weights).par_chunks_mut(STRIPE);
        stripes.enumerate().for_each(|(place, biases)| {
            Head::add_bias_gradient(biases, place * STRIPE, logits, articles);
        });
        if let Some(table) = head.personas {
            let count = self.config.personas;
            let stripes = gradients.dense_mut(table, &self.weights).par_chunks_mut(STRIPE * count);
            stripes.enumerate().for_each(|(place, rows)| {
                Head::add_table_gradient(rows, place * STRIPE, count, logits, articles, &personas);
            });
        }
    }

    pub(super) fn tape<'a>(&'a self, shard: &'a Shard, dropout: Option<Dropout>) -> Tape<'a> {
        Tape::new(&self.weights, &self.structure.tables, shard, self.halting(), dropout)
    }

    pub(super) fn halting(&self) -> Halting {
        let universal = &self.config.universal;
        Halting { epsilon: universal.epsilon, max_steps: universal.most_steps }
    }

    fn fill_logits(&self, tape: &Tape<'_>, output: Output<crate::engine::Node>, logits: &mut [f32]) {
        let shares = output.personas.map(|node| tape.value(node));
        self.structure.head.logits(&self.weights, tape.value(output.hidden), shares, logits);
    }

    fn add_up(&self, parts: &[Part], outfits: usize) -> Loss {
        let total = |of: fn(&Part) -> f64| parts.iter().map(of).sum::<f64>() / f64::from(number(outfits));
        let universal = self.structure.halting.is_some();
        let ponder = f64::from(self.config.universal.ponder_weight) * total(|part| part.ponder);
        Loss {
            cross_entropy: total(|part| part.cross_entropy),
            total: total(|part| part.weighted) + ponder,
            steps: universal.then(|| total(|part| part.steps)),
            pair: None,
        }
    }
}

/// The result of one shard.
struct Learned {
    part: Part,
    hidden: Vec<f32>,
    personas: Option<Vec<f32>>,
    gradients: Gradients,
}

/// Sums over one shard's outfits.
struct Part {
    cross_entropy: f64,
    weighted: f64,
    ponder: f64,
    steps: f64,
}

impl Part {
    fn new(tape: &Tape<'_>, output: Output<crate::engine::Node>, losses: &[f32], weights: &[f32]) -> Self {
        let steps = output.steps.map_or(&[][..], |node| tape.value(node));
        Self {
            cross_entropy: losses.iter().copied().map(f64::from).sum(),
            weighted: losses.iter().zip(weights).map(|(loss, weight)| f64::from(loss * weight)).sum(),
            ponder: tape.ponder(),
            steps: steps.iter().copied().map(f64::from).sum(),
        }
    }
}

/// The dropout key of a step.
fn key(seed: u64, step: u32) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(step))
}

/// The dropout key of a shard.
pub(super) fn shard_key(key: u64, from: usize) -> u32 {
    let mut mixed = key ^ (from as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed >> 32) as u32
}
