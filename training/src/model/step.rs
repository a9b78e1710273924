//! The loss, its gradients, and one step of training.

use std::sync::Arc;

use atelier_engine::outfit_memory::{Candidates, OutfitMemory};
use rayon::prelude::*;

use super::{Batch, Model, Needs, Output, PairBatch};
use crate::{
    engine::{
        AdamW, AdamWConfig, Dropout, Gradients, Halting, Head, HeadGradients, Memory, Shard, Tape, ValueRows,
        number,
    },
    random::{Stream, Table},
};

/// Outfits per shard. Fixed, so that results do not depend on the number of threads.
const SHARD: usize = 64;
/// Outfits whose logits are in memory at once.
const OUTFITS_AT_ONCE: usize = 1024;
/// Rows of the last dense layer per task of its gradient.
const STRIPE: usize = 1024;

/// The loss of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Loss {
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
pub(crate) struct Trainer {
    pub(super) model: Model,
    pub(super) adamw: AdamW,
    pub(super) scratch: Vec<f32>,
    /// The probability of an article's own vectors to be left out of a step.
    drop_own: f64,
}

impl Trainer {
    pub(crate) fn new(model: Model, config: AdamWConfig) -> Self {
        let adamw = AdamW::new(config, &model.weights, &model.structure.unmoved());
        Self::resumed(model, adamw)
    }

    pub(super) fn resumed(model: Model, adamw: AdamW) -> Self {
        Self { model, adamw, scratch: Vec::new(), drop_own: 0.0 }
    }

    /// The model as it is after the last step.
    pub(crate) fn model(&mut self) -> &Model {
        self.model.compose(Needs::default());
        &self.model
    }

    /// Says which values the articles have, and which share of the articles is made of them alone at each step.
    pub(crate) fn share(&mut self, rows: Arc<ValueRows>, drop_own: f64) {
        self.model.set_values(rows);
        self.drop_own = drop_own;
    }

    /// Gives the model's memory whole outfits.
    pub(crate) fn set_outfits(&mut self, outfits: Arc<OutfitMemory>) {
        self.model.set_outfits(outfits);
    }

    /// Steps made so far.
    pub(crate) fn steps(&self) -> u32 {
        self.adamw.steps
    }

    /// Learns from a batch, and from pairs, whose loss is multiplied by the number next to them. Dropout depends on
    /// `seed` and the number of the step alone.
    ///
    /// # Panics
    /// If there are pairs and the model was not made for them.
    pub(crate) fn step(
        &mut self,
        batch: &Batch,
        pairs: Option<(&PairBatch, f32)>,
        learning_rate: f32,
        seed: u64,
    ) -> Loss {
        let key = key(seed, self.adamw.steps);
        let kept = (self.drop_own > 0.0).then(|| self.draw_kept(key));
        let pairs = pairs.filter(|(pairs, _)| !pairs.is_empty());
        let readings = pairs.iter().map(|(pairs, _)| &pairs.readings);
        // Without values there are no sums.
        if self.model.values.is_some() {
            let batches = [batch].into_iter().chain(readings);
            let mut visible: Vec<u32> = batches.flat_map(|batch| &batch.packed.slots).copied().collect();
            visible.sort_unstable();
            visible.dedup();
            self.model.compose(Needs { kept, visible: Some(visible) });
        }
        let (mut loss, mut gradients) = self.model.gradients(batch, Some(key), &mut self.scratch);
        if let Some((pairs, weight)) = pairs {
            let (of_pairs, more) = self.model.pair_gradients(pairs, weight, Some(key));
            gradients.add(vec![more]);
            loss.total += of_pairs.total;
            loss.pair = of_pairs.pair;
        }
        self.adamw.step(&mut self.model.weights, &gradients, learning_rate);
        loss
    }

    /// The articles that keep their own vectors in a step.
    fn draw_kept(&self, key: u64) -> Vec<bool> {
        let mut stream = Stream::new(key, Table::Own, self.adamw.steps as usize);
        (0..self.model.config.articles).map(|_| !stream.chance(self.drop_own)).collect()
    }
}

impl Model {
    /// The logits, outfit by outfit: one per article.
    pub fn logits(&self, batch: &Batch) -> Vec<f32> {
        let articles = self.config.articles;
        let mut logits = vec![0.0; batch.len() * articles];
        batch.shards(SHARD).par_iter().zip(logits.par_chunks_mut(SHARD * articles)).for_each(
            |(shard, logits)| {
                let mut tape = self.tape(shard, None);
                let output = self.structure.forward(&mut tape);
                self.fill_logits(&tape, output, shard, None, logits);
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
        self.fold(&mut gradients);
        (self.add_up(&parts, batch.len()), gradients)
    }

    /// Adds the rows that outfits touched to the dense gradients of the articles' and the personas' table, and passes
    /// those of sums on to what they are made of.
    pub(super) fn fold(&self, gradients: &mut Gradients) {
        gradients.fold(self.structure.tables.articles, self.structure.head.personas, &self.weights);
        if let Some(rows) = &self.values {
            for table in &self.structure.composed {
                let only = self.sums.rows(table, self.structure.tables.articles);
                table.pass_on(gradients, &self.weights, rows, self.sums.kept.as_deref(), only);
            }
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
        let dropout = key.map(|key| self.config.dropout(shard_key(key, from)));
        let mut tape = self.tape(shard, dropout);
        let output = self.structure.forward(&mut tape);
        let targets = &batch.targets[outfits.clone()];
        let said = self.fill_logits(&tape, output, shard, Some(targets), logits);
        let weights = &batch.weights[outfits];
        let shares: Vec<f32> = weights.iter().map(|weight| weight / number(batch.len())).collect();
        let losses = Head::loss(logits, targets, &shares);
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
        if let Some(memory) = &self.structure.memory {
            memory.backward(&self.weights, shard, targets, self.sums.kept.as_deref(), logits, &mut gradients);
            memory.backward_outfits(&self.weights, &said, logits, &mut gradients);
        }
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
        let (articles, width) = (self.config.articles, self.config.hidden_width());
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

    /// `targets` are the missing articles, if they are learned from. Returns what remembered outfits say.
    fn fill_logits(
        &self,
        tape: &Tape<'_>,
        output: Output<crate::engine::Node>,
        shard: &Shard,
        targets: Option<&[u32]>,
        logits: &mut [f32],
    ) -> Vec<Candidates> {
        let shares = output.personas.map(|node| tape.value(node));
        self.structure.head.logits(&self.weights, tape.value(output.hidden), shares, logits);
        let Some(memory) = &self.structure.memory else { return Vec::new() };
        let kept = self.sums.kept.as_deref();
        memory.add(&self.weights, shard, targets, kept, logits);
        let outfits = self.outfits.as_deref();
        let said = outfits.map_or_else(Vec::new, |outfits| Memory::describe(outfits, shard, targets, kept));
        memory.add_outfits(&self.weights, &said, logits);
        said
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
