//! An OS thread that owns a model and answers one method's questions.

use std::{io, sync::Arc, thread};

use atelier_core::{domain::Method, util::memory::ReturnMemoryOnDrop};

use super::{AskError, LoadError, ModelError, metrics::MethodMetrics, model::Model, queue::Queue};

/// A thread's state without its model. Clones are for further threads of the same method.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    method: Method,
    queue: Arc<Queue>,
    metrics: MethodMetrics,
    /// Shared by all threads of a release. The last one to end gives the memory of its models back.
    _return_memory: Arc<ReturnMemoryOnDrop>,
}

impl Worker {
    pub(super) fn new(
        method: Method,
        queue: Arc<Queue>,
        metrics: MethodMetrics,
        return_memory: Arc<ReturnMemoryOnDrop>,
    ) -> Self {
        Self { method, queue, metrics, _return_memory: return_memory }
    }

    /// Starts the thread. It ends when the queue is closed and empty.
    pub(super) fn start(self, model: Model) -> io::Result<()> {
        // Before the thread runs, so that the method has a worker from the first moment.
        self.queue.add_worker();
        self.spawn(move |worker| worker.work(model))
    }

    /// Starts a thread that opens its model once more questions wait than one run takes while all workers are busy.
    /// Most methods never need a second copy, and each copy costs the memory of the whole model. One thread opens its
    /// copy at a time.
    pub(super) fn start_reserve(
        self,
        open: impl FnOnce() -> Result<Model, LoadError> + Send + 'static,
    ) -> io::Result<()> {
        self.spawn(move |worker| {
            if !worker.queue.wait_for_overflow() {
                return;
            }
            match open() {
                Ok(model) => {
                    worker.queue.add_worker();
                    worker.work(model);
                }
                Err(error) => {
                    worker.queue.opening_failed();
                    let method = worker.method;
                    tracing::error!(%method, %error, "cannot open another session; continuing with the open ones");
                }
            }
        })
    }

    fn spawn(self, work: impl FnOnce(&Self) + Send + 'static) -> io::Result<()> {
        let name = format!("model-{}", self.method);
        thread::Builder::new().name(name).spawn(move || work(&self)).map(drop)
    }

    fn work(&self, mut model: Model) {
        while let Some(run) = self.queue.pop() {
            let questions = run.questions.len();
            let answered = model.answer(&run.questions, run.deadline(), run.had_pause);
            let took = run.began.elapsed();
            self.metrics.add_run(questions, took);
            run.waits().for_each(|wait| self.metrics.add_wait(wait));
            match answered {
                Ok(answers) => {
                    let failed = |error: ModelError| AskError::Failed(error.to_string());
                    run.finish(answers.into_iter().map(|answer| answer.map_err(failed)), took);
                }
                Err(error) => {
                    let method = self.method;
                    // Too much load or a slow model server; callers get `deadline`, which has its own alert.
                    if let ModelError::Timeout { .. } = error {
                        tracing::warn!(%method, %error, questions, "a run reached its deadline");
                    } else {
                        tracing::error!(%method, %error, questions, "a run failed");
                    }
                    let reason = |waited| match &error {
                        ModelError::Remote { .. } => AskError::Unreachable(error.to_string()),
                        ModelError::Timeout { .. } => AskError::Deadline { waited },
                        _ => AskError::Failed(error.to_string()),
                    };
                    run.fail(reason, took);
                }
            }
        }
    }
}
