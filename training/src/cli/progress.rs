//! A bar for long work on a terminal, and a line with its seconds when it is done, everywhere.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

/// One piece of work. indicatif draws the bar only if standard error is a terminal.
#[derive(Debug)]
pub struct Progress {
    name: String,
    bar: ProgressBar,
    start: Instant,
}

impl Progress {
    pub fn new(name: impl Into<String>, total: usize) -> Self {
        let name = name.into();
        let bar = bar(total as u64).with_message(name.clone());
        Self { name, bar, start: Instant::now() }
    }

    pub fn set(&self, done: usize) {
        self.bar.set_position(done as u64);
    }

    pub fn finish(self) {
        self.bar.finish_and_clear();
        eprintln!("{}: {:.1} s", self.name, self.start.elapsed().as_secs_f64());
    }
}

/// A bar with its message before it and the time left behind it.
pub(super) fn bar(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:30} {bar:40} {percent:>3} % {eta:>6} left")
        .expect("the template is constant");
    ProgressBar::new(total).with_style(style)
}

/// Shows work that has no steps to count.
pub fn timed<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let progress = Progress::new(name, 1);
    let result = work();
    progress.finish();
    result
}

/// Pieces of work, one after the other.
#[derive(Default)]
pub(super) struct Stages(Option<Progress>);

impl Stages {
    /// Shows how far a stage is; a new name ends the stage before it.
    pub(super) fn set(&mut self, name: &str, done: usize, total: usize) {
        if self.0.as_ref().is_none_or(|stage| stage.name != name)
            && let Some(previous) = self.0.replace(Progress::new(name, total))
        {
            previous.finish();
        }
        if let Some(stage) = &self.0 {
            stage.set(done);
        }
    }

    pub(super) fn finish(self) {
        if let Some(last) = self.0 {
            last.finish();
        }
    }
}
