//! How fast one worker has been of late.

use std::time::Duration;

/// Seconds that it took for so many questions in so many runs: the older a run is, the less it counts. Each is kept
/// apart, because a run of many questions says more than one of few.
#[derive(Debug, Default)]
pub(super) struct Pace {
    took: f64,
    answered: f64,
    runs: f64,
}

impl Pace {
    pub(super) fn ran(&mut self, questions: usize, took: Duration) {
        self.took = 0.8 * self.took + took.as_secs_f64();
        self.answered = 0.8 * self.answered + count(questions);
        self.runs = 0.8 * self.runs + 1.0;
    }

    /// How long so many workers need for these questions, at least; `most` is how many one run takes. A run of many takes
    /// longer than one of few, but not as many times as it has questions.
    pub(super) fn takes(&self, questions: usize, workers: usize, most: usize) -> Duration {
        let took = self.took / count(workers.max(1));
        let by_questions = count(questions) * took / self.answered.max(f64::MIN_POSITIVE);
        let by_runs = count(questions.div_ceil(most)) * took / self.runs.max(f64::MIN_POSITIVE);
        let seconds = by_questions.min(by_runs);
        // A pace may be anything that a clock can say.
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
