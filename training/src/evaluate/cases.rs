//! The questions of the validation split, and a file's answers to them.

use std::{
    num::NonZero,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use atelier::models::onnx_runtime::OnnxRuntime;

use super::{About, Refusal, model_file::ModelFile};
use crate::{
    data::Data,
    judge::{Verdict, judge, judge_within},
    number::real,
};

/// One masked slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    pub outfit: u32,
    pub slot: u32,
    /// The article that was there.
    pub target: u32,
}

/// All cases, outfit by outfit in the file's order, slot by slot.
#[derive(Debug)]
pub struct Cases(Vec<Case>);

/// Cases per batch: near ONNX Runtime's fastest on one thread, and small in memory.
const BATCH: usize = 64;

impl Cases {
    pub fn of_validation(data: &Data) -> Self {
        let mut cases = Vec::new();
        for &outfit in data.validation() {
            let articles = data.outfits().articles(outfit);
            cases.extend((0..).zip(articles).map(|(slot, &target)| Case { outfit, slot, target }));
        }
        Self(cases)
    }

    pub fn as_slice(&self) -> &[Case] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The cases of each outfit, in order.
    pub fn by_outfit(&self) -> impl Iterator<Item = &[Case]> {
        self.0.chunk_by(|one, next| one.outfit == next.outfit)
    }

    /// Batches of case indices. The outfits of a batch have one length, so that nothing is padded.
    pub(super) fn batches(&self, data: &Data) -> Vec<Vec<usize>> {
        let length = |index: &usize| data.outfits().articles(self.0[*index].outfit).len();
        let mut indices: Vec<usize> = (0..self.0.len()).collect();
        indices.sort_by_key(length);
        indices
            .chunk_by(|one, next| length(one) == length(next))
            .flat_map(|same| same.chunks(BATCH).map(<[usize]>::to_vec))
            .collect()
    }
}

/// A file's answers.
#[derive(Debug)]
pub struct Answers {
    pub about: About,
    /// In the order of the cases.
    pub(crate) verdicts: Vec<Verdict>,
    /// The mean number of steps of a universal trunk.
    pub(crate) steps: Option<f64>,
}

impl Answers {
    /// The cases of each outfit with their verdicts.
    pub(super) fn by_outfit<'a>(
        &'a self,
        cases: &'a Cases,
    ) -> impl Iterator<Item = (&'a [Case], &'a [Verdict])> {
        let mut rest = self.verdicts.as_slice();
        cases.by_outfit().map(move |outfit| {
            let (verdicts, others) = rest.split_at(outfit.len());
            rest = others;
            (outfit, verdicts)
        })
    }
}

/// One thread's answers: case indices, verdicts and steps.
type Share = Vec<(usize, Verdict, Option<f32>)>;

/// Asks a file about all cases, on all threads. Calls `tell` with the number of cases done.
///
/// Each thread has its own single-threaded session: inference and judging then keep every core busy, which
/// one session with many threads does not.
pub fn ask(
    runtime: &OnnxRuntime,
    path: &Path,
    data: &Data,
    cases: &Cases,
    tell: &(dyn Fn(usize) + Sync),
) -> Result<Answers, Refusal> {
    let about = ModelFile::open(runtime, path)?.about()?;
    let batches = cases.batches(data);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || -> Result<Share, Refusal> {
        let mut model = ModelFile::open(runtime, path)?;
        let mut share = Vec::new();
        while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
            let asked: Vec<_> = batch.iter().map(|&index| cases.as_slice()[index]).collect();
            model.ask(data, &asked, |at, logits, steps| {
                let Case { outfit, target, .. } = asked[at];
                let of_type = data.articles_of_type(data.type_of(target));
                let mut verdict = judge(logits, target);
                let articles = data.outfits().articles(outfit);
                let own = logits[target as usize];
                let weight = |article: u32| f64::from(logits[article as usize] - own).exp();
                verdict.within_type = Some(judge_within(of_type, articles, target, weight));
                share.push((batch[at], verdict, steps));
            })?;
            tell(done.fetch_add(batch.len(), Ordering::Relaxed) + batch.len());
        }
        Ok(share)
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let shares = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined =
            threads.into_iter().map(|thread| thread.join().expect("judging does not panic; this is a bug"));
        joined.collect::<Result<Vec<_>, _>>()
    })?;
    let mut all: Share = shares.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(index, ..)| *index);
    let steps: Option<Vec<f64>> = all.iter().map(|(.., steps)| steps.map(f64::from)).collect();
    Ok(Answers {
        about,
        steps: steps.map(|steps| steps.iter().sum::<f64>() / real(steps.len().max(1))),
        verdicts: all.into_iter().map(|(_, verdict, _)| verdict).collect(),
    })
}
