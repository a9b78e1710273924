//! An OS thread that owns a session and answers one method's questions.

use std::{sync::Arc, thread, time::Instant};

use super::{
    AskError, LoadError, Question,
    metrics::MethodMetrics,
    model::{Model, ModelError},
    queue::{Job, Queue, Reply},
};
use crate::{domain::Method, util::memory::ReturnMemoryOnDrop};

/// Starts the thread. It ends when the queue is closed and empty; whoever closes the queue need not wait for
/// that.
pub(super) fn start(worker: Worker, model: Model) -> std::io::Result<()> {
    let name = format!("model-{}", worker.method);
    // Before the thread runs: what is served has somebody to answer from the first moment.
    worker.queue.join();
    thread::Builder::new().name(name).spawn(move || worker.work(model)).map(drop)
}

/// Starts a thread that opens its session when more than one run's questions wait while all sessions are busy:
/// most methods of most services never need more than one, and each costs the memory of the whole model. One opens
/// at a time.
pub(super) fn start_reserve(
    worker: Worker,
    open: impl FnOnce() -> Result<Model, LoadError> + Send + 'static,
) -> std::io::Result<()> {
    let name = format!("model-{}", worker.method);
    let work = move || {
        if !worker.queue.wait_for_overflow() {
            return;
        }
        match open() {
            Ok(model) => {
                worker.queue.join();
                worker.work(model);
            }
            Err(error) => {
                worker.queue.gave_up();
                let method = worker.method;
                tracing::error!(%method, %error, "no further copy of a model; those that are open answer alone");
            }
        }
    };
    thread::Builder::new().name(name).spawn(work).map(drop)
}

/// What a thread knows beside its session.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub(super) method: Method,
    pub(super) queue: Arc<Queue>,
    pub(super) counted: MethodMetrics,
    /// Shared by all threads of a release: the last to end gives back the memory of its models.
    pub(super) _return_memory: Arc<ReturnMemoryOnDrop>,
}

impl Worker {
    fn work(&self, mut model: Model) {
        while let Some(mut run) = self.queue.pop() {
            let began = Instant::now();
            let (questions, askers) = apart(std::mem::take(&mut run.jobs));
            // Whoever waits longest decides how long a server is waited for; the others are told in time elsewhere.
            let deadline = askers.iter().map(|asker| asker.deadline).max().unwrap_or(began);
            let answered = model.answer(&questions, deadline);
            let took = began.elapsed();
            self.queue.ran(questions.len(), took);
            self.counted.ran(questions.len(), took);
            for asker in &askers {
                self.counted.queued(began - asker.since);
            }
            match answered {
                Ok(answers) => {
                    let batch = questions.len();
                    let mut answers = answers.into_iter();
                    for asker in askers {
                        let own: Vec<_> = answers.by_ref().take(asker.questions).collect();
                        let queued = began - asker.since;
                        let own: Result<Vec<_>, _> = own.into_iter().collect();
                        let reply = own.map(|answers| Reply { answers, queued, inferred: took, batch });
                        asker.tell(reply.map_err(|error| AskError::Failed(error.to_string())));
                    }
                }
                Err(error) => {
                    tracing::error!(method = %self.method, %error, questions = questions.len(), "a run failed");
                    for asker in askers {
                        let reason = match &error {
                            ModelError::Remote { .. } => AskError::Unreachable(error.to_string()),
                            ModelError::Late { .. } => AskError::Deadline { waited: began - asker.since },
                            _ => AskError::Failed(error.to_string()),
                        };
                        asker.tell(Err(reason));
                    }
                }
            }
        }
    }
}

/// Who waits for how many of a run's answers.
struct Asker {
    questions: usize,
    since: Instant,
    deadline: Instant,
    reply: tokio::sync::oneshot::Sender<Result<Reply, AskError>>,
}

impl Asker {
    fn tell(self, reply: Result<Reply, AskError>) {
        // A caller that left while the model ran needs no answer.
        let _ = self.reply.send(reply);
    }
}

fn apart(jobs: Vec<Job>) -> (Vec<Question>, Vec<Asker>) {
    let mut questions = Vec::new();
    let askers = jobs.into_iter().map(|job| {
        let Job { questions: own, since, deadline, reply } = job;
        let asker = Asker { questions: own.len(), since, deadline, reply };
        questions.extend(own);
        asker
    });
    let askers = askers.collect();
    (questions, askers)
}
