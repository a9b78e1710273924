//! The questions that one request asks the models: those reserved in the queue, and what they cost.

use std::time::{Duration, Instant};

use atelier_core::domain::Method;
use atelier_engine::{
    inference::{Admission, Answer, AskError, Question, Reply, Reservation, Serving},
    outfit_memory::Alike,
};

use super::prepare::Prepared;
use crate::telemetry::Stopwatch;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    pub queued: Duration,
    pub inferred: Duration,
    pub questions: usize,
    /// The number of questions in the largest run.
    pub batch: usize,
}

/// A request whose first questions have been answered.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    serving: &'a Serving,
    method: Method,
    deadline: Instant,
    reservation: Reservation,
    cost: Cost,
}

impl<'a> Conversation<'a> {
    /// Asks the first questions. The follow-up questions of a new request are reserved until the conversation is
    /// dropped.
    pub(super) async fn open(
        serving: &'a Serving,
        method: Method,
        deadline: Instant,
        admission: Admission,
        questions: Vec<Question>,
    ) -> Result<(Self, Vec<Answer>), AskError> {
        let (count, watch) = (questions.len(), Stopwatch::start());
        let (reply, reservation) = serving.ask_as(admission, method, questions, deadline).await?;
        let mut conversation = Self { serving, method, deadline, reservation, cost: Cost::default() };
        let answers = conversation.add(&watch, method, count, reply);
        Ok((conversation, answers))
    }

    /// Asks follow-up questions that were reserved.
    pub(super) async fn follow_up(&mut self, questions: Vec<Question>) -> Result<Vec<Answer>, AskError> {
        let (method, count, watch) = (self.method, questions.len(), Stopwatch::start());
        self.reservation.spend(count);
        let asked = self.serving.ask_as(Admission::FollowUp, method, questions, self.deadline);
        let (reply, _) = asked.await?;
        Ok(self.add(&watch, method, count, reply))
    }

    /// The remembered outfits that speak for a suggestion.
    pub(super) fn outfits_with(&self, prepared: &Prepared, article: u32) -> Option<Alike> {
        self.serving.outfits_with(self.method, &prepared.articles, &prepared.slots, article)
    }

    pub(super) fn cost(&self) -> Cost {
        self.cost
    }

    /// Adds to the cost and, with tracing enabled, to the request's trace.
    fn add(&mut self, watch: &Stopwatch, method: Method, questions: usize, reply: Reply) -> Vec<Answer> {
        let Reply { answers, queued, inferred, batch } = reply;
        let counts = [("questions", questions), ("batch", batch)];
        watch.record(format_args!("queue {method}"), Duration::ZERO, queued, &counts[..1]);
        watch.record(format_args!("model {method}"), queued, inferred, &counts);
        self.cost.queued += queued;
        self.cost.inferred += inferred;
        self.cost.questions += questions;
        self.cost.batch = self.cost.batch.max(batch);
        answers
    }
}
