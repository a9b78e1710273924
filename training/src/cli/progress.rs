//! A bar for long work on a terminal, and a line with its seconds when it is done, everywhere.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

/// One piece of work. indicatif draws the bar only where standard error is a terminal.
pub(super) struct Progress {
    name: String,
    bar: ProgressBar,
    began: Instant,
}

impl Progress {
    pub(super) fn new(name: impl Into<String>, total: usize) -> Self {
        let name = name.into();
        let style = ProgressStyle::with_template("{msg:30} {bar:40} {percent:>3} % {eta:>6} left")
            .expect("the template is constant; this is a bug");
        let bar = ProgressBar::new(total as u64).with_style(style).with_message(name.clone());
        Self { name, bar, began: Instant::now() }
    }

    pub(super) fn set(&self, done: usize) {
        self.bar.set_position(done as u64);
    }

    pub(super) fn finish(self) {
        self.bar.finish_and_clear();
        eprintln!("{}: {:.1} s", self.name, self.began.elapsed().as_secs_f64());
    }
}
