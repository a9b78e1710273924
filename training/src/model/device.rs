//! One step of training on a device: weights, activations, gradients and the optimiser's memory stay there;
//! a batch goes in, the losses come out.

use super::{
    Batch, Learner, Loss, PairBatch, Trainer,
    step::{SHARD, key, mixed},
};
use crate::engine::{
    DeviceError,
    device::{Device, DeviceTape, Hidden, Learned, Learning, Packed, Parameters, ShardKeys, countable},
    number,
};

/// A trainer whose numbers live on a device.
#[derive(Debug)]
pub(crate) struct DeviceTrainer<D: Device> {
    pub(super) device: D,
    pub(super) parameters: Parameters<D>,
    /// As it was when it was last fetched; its model's structure and configuration always hold.
    pub(super) fetched: Trainer,
}

impl<D: Device> DeviceTrainer<D> {
    /// # Errors
    /// If the model has too many weights for a device.
    pub(crate) fn new(device: D, trainer: Trainer) -> Result<Self, DeviceError> {
        let (model, articles) = (&trainer.model, trainer.model.structure.tables.articles);
        let weights = model.weights.0.iter().map(|tensor| tensor.data.len() + 64).sum();
        countable("the model", weights)?;
        let parameters = Parameters::new(&device, &model.weights, &trainer.adamw, articles);
        Ok(Self { device, parameters, fetched: trainer })
    }

    /// Losses and gradients, still on the device; with dropout from `key`, or without.
    pub(super) fn gradients(
        &self,
        batch: &Batch,
        key: Option<u64>,
    ) -> Result<(Learned<D>, Learning<D>), DeviceError> {
        self.check(batch)?;
        let model = &self.fetched.model;
        let (tables, head) = (&model.structure.tables, &model.structure.head);
        let weights: Vec<f32> = batch.weights.iter().map(|weight| weight / number(batch.len())).collect();
        let personas = (tables, head.personas);
        let asked = (&batch.targets[..], &weights[..]);
        let learning = Learning::new(&self.device, &self.parameters, personas, &batch.packed, asked);
        let packed = self.packed(batch, key.unwrap_or_default());
        let (tape, output) = self.forward(&packed, key.map(|_| model.config.dropout));
        let ponder = model.config.universal.ponder_weight / number(batch.len());
        Ok((tape.learn(head, output, &learning, ponder), learning))
    }

    /// The loss of what was learned, when the device has got there.
    pub(super) fn loss(&self, batch: &Batch, learned: &Learned<D>) -> Result<Loss, DeviceError> {
        let losses = self.device.download(&learned.losses)?;
        let model = &self.fetched.model;
        let mean = |sum: f64| sum / f64::from(number(batch.len()));
        let weighted = losses.iter().zip(&batch.weights).map(|(loss, weight)| f64::from(loss * weight));
        let ponder = f64::from(model.config.universal.ponder_weight) * mean(learned.ponder);
        Ok(Loss {
            cross_entropy: mean(losses.iter().copied().map(f64::from).sum()),
            total: mean(weighted.sum()) + ponder,
            steps: model.structure.halting.map(|_| mean(learned.steps)),
            pair: None,
        })
    }

    fn packed(&self, batch: &Batch, key: u64) -> Packed<D> {
        let keys = (0..batch.len()).step_by(SHARD).map(|from| mixed(key, from));
        let keys = ShardKeys { size: SHARD, keys: keys.collect() };
        let tables = &self.fetched.model.structure.tables;
        Packed::new(&self.device, &self.parameters, tables, &batch.packed, &keys)
    }

    fn forward<'a>(&'a self, packed: &'a Packed<D>, dropout: Option<f32>) -> (DeviceTape<'a, D>, Hidden) {
        let model = &self.fetched.model;
        let (tables, halting) = (&model.structure.tables, model.halting());
        let mut tape = DeviceTape::new(&self.device, &self.parameters, tables, packed, halting, dropout);
        let output = model.structure.forward(&mut tape);
        (tape, Hidden { hidden: output.hidden, personas: output.personas })
    }

    /// The largest pieces of memory that a step fills.
    fn check(&self, batch: &Batch) -> Result<(), DeviceError> {
        let config = &self.fetched.model.config;
        let positions = batch.packed.slots.len() + batch.len();
        let context = config.features.len() * config.feature_width;
        let longest = batch.packed.starts.windows(2).map(|ends| ends[1] - ends[0] + 1).max();
        let scores = config.heads * longest.unwrap_or_default();
        let widest = (2 * config.width).max(config.hidden).max(context).max(scores);
        countable("a step", (batch.len() * config.articles).max(positions * widest))
    }
}

impl<D: Device> Learner for DeviceTrainer<D> {
    fn device(&self) -> &str {
        self.device.name()
    }

    fn steps(&self) -> u32 {
        self.parameters.steps()
    }

    fn step(
        &mut self,
        batch: &Batch,
        pairs: Option<(&PairBatch, f32)>,
        learning_rate: f32,
        seed: u64,
    ) -> Result<Loss, DeviceError> {
        if pairs.is_some() {
            return Err(DeviceError::Pairs);
        }
        let key = key(seed, self.steps());
        let (learned, learning) = self.gradients(batch, Some(key))?;
        self.parameters.step(&self.device, &learning, &learned.gradients, learning_rate);
        self.loss(batch, &learned)
    }

    fn logits(&self, batch: &Batch) -> Result<Vec<f32>, DeviceError> {
        self.check(batch)?;
        let packed = self.packed(batch, 0);
        let (tape, output) = self.forward(&packed, None);
        tape.logits(&self.fetched.model.structure.head, output)
    }

    fn trainer(&mut self) -> Result<&Trainer, DeviceError> {
        let Trainer { model, adamw, .. } = &mut self.fetched;
        self.parameters.fetch(&self.device, &mut model.weights, adamw)?;
        Ok(&self.fetched)
    }
}
