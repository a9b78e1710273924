//! Ends the runs of sessions at their deadlines: a model can loop for ever. ONNX Runtime asks between operators whether to go on.

use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
    time::Instant,
};

use ort::session::RunOptions;

/// A thread ends the runs; it starts with the first one.
static RUNS: LazyLock<(Mutex<Runs>, Condvar)> = LazyLock::new(|| {
    let started = thread::Builder::new().name("model-deadlines".to_owned()).spawn(|| watch());
    started.expect("the system starts one more thread");
    <(Mutex<Runs>, Condvar)>::default()
});

#[derive(Default)]
struct Runs {
    by_deadline: BTreeMap<(Instant, u64), Arc<RunOptions>>,
    count: u64,
    /// When the thread looks again; if None, it waits to be told.
    looks: Option<Instant>,
    /// The process ends.
    ended: bool,
}

/// A run in progress.
pub(super) struct Watched((Instant, u64));

/// Ends the run at the deadline, unless the guard is dropped before.
pub(super) fn end_at(deadline: Instant, run: Arc<RunOptions>) -> Watched {
    let mut runs = lock();
    let deadline = if runs.ended { Instant::now() } else { deadline };
    runs.count += 1;
    let key = (deadline, runs.count);
    runs.by_deadline.insert(key, run);
    if runs.looks.is_none_or(|looks| deadline < looks) {
        RUNS.1.notify_one();
    }
    Watched(key)
}

/// Ends all runs now, and those that begin later at once, so that no model delays the end of the process.
pub fn end_runs() {
    let mut runs = lock();
    runs.ended = true;
    for run in std::mem::take(&mut runs.by_deadline).values() {
        end(run);
    }
}

/// Whether the process ends.
pub fn are_runs_ended() -> bool {
    lock().ended
}

impl Drop for Watched {
    fn drop(&mut self) {
        lock().by_deadline.remove(&self.0);
    }
}

fn watch() -> ! {
    let mut runs = lock();
    loop {
        let now = Instant::now();
        while let Some(first) = runs.by_deadline.first_entry().filter(|first| first.key().0 <= now) {
            end(&first.remove());
        }
        runs.looks = runs.by_deadline.keys().next().map(|(deadline, _)| *deadline);
        runs = match runs.looks {
            Some(looks) => RUNS.1.wait_timeout(runs, looks - now).unwrap_or_else(PoisonError::into_inner).0,
            None => RUNS.1.wait(runs).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

fn end(run: &RunOptions) {
    if let Err(error) = run.terminate() {
        tracing::error!(%error, "cannot end a run of a model");
    }
}

/// Locked only to note, find and forget runs.
fn lock() -> MutexGuard<'static, Runs> {
    RUNS.0.lock().unwrap_or_else(PoisonError::into_inner)
}
