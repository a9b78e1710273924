//! What waits: questions, until when, and where their answers go.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::models::engine::{Answer, Question};

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    #[error(
        "{waiting} questions wait for this method already and take {takes:?} at its present pace; the limit is {limit}, \
         or what takes a third of the deadline"
    )]
    Full {
        waiting: usize,
        limit: usize,
        /// How long those that wait take, at the pace of the last runs.
        takes: Duration,
        /// How long it takes until half of those that wait are answered.
        retry_after: Duration,
    },
    #[error("no answer within the deadline: {waited:?} were spent waiting for a free model")]
    Deadline { waited: Duration },
    /// The model failed on it. The log has the reason.
    #[error("the model failed: {0}")]
    Failed(String),
    /// The server of models does not answer, or not as it should. The log has the reason.
    #[error("the server of models: {0}")]
    Unreachable(String),
    #[error("the release has no method {0}")]
    NoMethod(crate::domain::Method),
}

/// Questions that belong together, and where their answers go.
#[derive(Debug)]
pub(in crate::models::engine) struct Job {
    pub(in crate::models::engine) questions: Vec<Question>,
    pub(in crate::models::engine) since: Instant,
    pub(in crate::models::engine) deadline: Instant,
    pub(in crate::models::engine) reply: oneshot::Sender<Result<Reply, AskError>>,
}

/// After so long nobody who came later goes before a job, however much time it has.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

impl Job {
    /// What jobs are ordered by.
    pub(super) fn due(&self) -> Instant {
        self.deadline.min(self.since + PATIENCE)
    }

    /// Nothing where its caller is gone, or is told now that it is too late.
    pub(super) fn still_wanted(self) -> Option<Self> {
        if self.reply.is_closed() {
            return None;
        }
        let now = Instant::now();
        if now >= self.deadline {
            // Whoever left in this very moment needs no answer.
            let _ = self.reply.send(Err(AskError::Deadline { waited: now - self.since }));
            return None;
        }
        Some(self)
    }
}

/// Answers, and what it took.
#[derive(Debug)]
pub(in crate::models::engine) struct Reply {
    pub(in crate::models::engine) answers: Vec<Answer>,
    pub(in crate::models::engine) queued: Duration,
    pub(in crate::models::engine) inferred: Duration,
    /// Questions that were answered in the same run.
    pub(in crate::models::engine) batch: usize,
}
