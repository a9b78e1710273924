//! Scores on the development split: every slot with an article of training outfits is masked in turn, as in evaluation, so
//! epochs, methods and seeds are compared on the same questions.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    data::Data,
    judge::{Verdict, judge, judge_within},
    metrics::Tally,
    model::{Batch, Example, Model, ModelConfig},
};

/// Questions whose logits are in memory at once.
const AT_ONCE: usize = 256;

/// The questions in batches.
#[derive(Debug)]
pub(super) struct Development(Vec<Batch>);

/// A model's scores on the development split.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scores {
    pub cross_entropy: f64,
    pub recall_at_1: f64,
    pub recall_at_5: f64,
    pub recall_at_250: f64,
    pub mrr: f64,
}

impl Development {
    pub(super) fn new(data: &Data, config: &ModelConfig) -> Self {
        let mut batches = Vec::new();
        let mut batch = Batch::new(config);
        let mut features = Vec::new();
        for &outfit in data.development() {
            data.features_of(outfit, &mut features);
            let articles = data.outfits().articles(outfit);
            let known = |article: u32| if data.is_known(article) { article } else { config.padding() };
            for (blank, &target) in articles.iter().enumerate().filter(|(_, target)| data.is_known(**target))
            {
                let mut slots: Vec<u32> = articles.iter().copied().map(known).collect();
                slots[blank] = config.blank();
                batch.push(Example { slots: &slots, features: &features, blank, target, weight: 1.0 });
                if batch.len() == AT_ONCE {
                    batches.push(std::mem::replace(&mut batch, Batch::new(config)));
                }
            }
        }
        if !batch.is_empty() {
            batches.push(batch);
        }
        Self(batches)
    }

    pub(super) fn batches(&self) -> &[Batch] {
        &self.0
    }

    /// Slot by slot, as `judge` judges a row of logits.
    pub(super) fn judge(
        &self,
        model: &Model,
        judge: impl Fn(usize, &[f32], u32) -> Verdict + Sync,
    ) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for batch in &self.0 {
            let logits = model.logits(batch);
            let articles = logits.len() / batch.len();
            let rows = logits.par_chunks(articles).zip(batch.targets()).enumerate();
            let before = verdicts.len();
            verdicts.par_extend(rows.map(|(place, (row, &target))| judge(before + place, row, target)));
        }
        verdicts
    }

    /// The cross-entropy of each answer.
    pub(super) fn losses(&self, model: &Model) -> Vec<f64> {
        self.judge(model, |_, row, target| judge(row, target))
            .iter()
            .map(|verdict| verdict.cross_entropy)
            .collect()
    }

    pub(super) fn evaluate(&self, model: &Model) -> Scores {
        let mut tally = Tally::default();
        // In order, so that the sums do not depend on the number of threads.
        for verdict in self.judge(model, |_, row, target| judge(row, target)) {
            tally.add(verdict.probability(), verdict.rank);
        }
        let summary = tally.summary();
        Scores {
            cross_entropy: summary.cross_entropy.mean,
            recall_at_1: summary.recall_at_1.mean,
            recall_at_5: summary.recall_at_5.mean,
            recall_at_250: summary.recall_at_250.mean,
            mrr: summary.mrr.mean,
        }
    }
}

/// The answers of a model to the slots of the development split, also with the type known.
pub(super) fn judge_with_types(model: &Model, data: &Data) -> Vec<Verdict> {
    let outfits: Vec<&[u32]> =
        data.development().iter().map(|&outfit| data.outfits().articles(outfit)).collect();
    let is_asked = |article: &&u32| data.is_known(**article);
    let of_slot: Vec<&[u32]> =
        outfits.iter().flat_map(|articles| articles.iter().filter(is_asked).map(|_| *articles)).collect();
    Development::new(data, model.config()).judge(model, |slot, row, target| {
        let of_type = data.articles_of_type(data.type_of(target)).iter().copied();
        let of_type: Vec<u32> = of_type.filter(|&article| data.is_known(article)).collect();
        let own = row[target as usize];
        let weight = |article: u32| f64::from(row[article as usize] - own).exp();
        Verdict {
            within_type: Some(judge_within(&of_type, of_slot[slot], target, weight)),
            ..judge(row, target)
        }
    })
}
