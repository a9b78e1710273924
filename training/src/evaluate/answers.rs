//! Asking one file about all cases, on all threads.

use std::{
    num::NonZero,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use atelier::models::onnx_runtime::OnnxRuntime;

use super::{About, Cases, Refusal, model_file::ModelFile};
use crate::{
    data::Data,
    judge::{Verdict, judge},
};

/// What a file answered.
#[derive(Debug)]
pub struct Answers {
    pub about: About,
    /// In the order of the cases.
    pub(crate) verdicts: Vec<Verdict>,
    /// Mean steps of a universal trunk.
    pub(crate) steps: Option<f64>,
}

/// One thread's share: the places of cases, and what was answered.
type Share = Vec<(usize, Verdict, Option<f32>)>;

/// Asks. `tell` hears how many cases are done.
///
/// Each thread has a session of its own that computes on that thread alone: answers and their
/// judgement then keep every core busy, which one session with many threads does not.
///
/// # Errors
/// If the file does not keep the contract, or was made for another vocabulary or schema.
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
        while let Some(places) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
            let asked: Vec<_> = places.iter().map(|&place| cases.as_slice()[place]).collect();
            model.ask(data, &asked, |at, row, steps| {
                share.push((places[at], judge(row, asked[at].target), steps));
            })?;
            tell(done.fetch_add(places.len(), Ordering::Relaxed) + places.len());
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
    all.sort_unstable_by_key(|(place, ..)| *place);
    let steps: Option<Vec<f64>> = all.iter().map(|(.., steps)| steps.map(f64::from)).collect();
    Ok(Answers {
        about,
        steps: steps.map(|steps| steps.iter().sum::<f64>() / crate::number::real(steps.len().max(1))),
        verdicts: all.into_iter().map(|(_, verdict, _)| verdict).collect(),
    })
}
