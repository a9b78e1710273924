//! A progress bar on terminals; elsewhere the verbs only print their lines.

use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar, which indicatif draws only if standard error is a terminal.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// `total` has the unit of [`Progress::set`].
    pub(super) fn new(path: &Path, total: u64) -> Self {
        let style = ProgressStyle::with_template("{msg:30} {bar:40} {percent:>3} % {eta:>6} left")
            .expect("the template is constant");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self(ProgressBar::new(total).with_style(style).with_message(name))
    }

    pub(super) fn set(&self, done: u64) {
        self.0.set_position(done);
    }

    /// For a total that is known only later.
    pub(super) fn set_with_total(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    pub(super) fn finish(self) {
        self.0.finish_and_clear();
    }
}
