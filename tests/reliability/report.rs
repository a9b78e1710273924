//! The result of an experiment: its figures, and broken promises.

use libtest_mimic::Failed;
use serde_json::{Map, Value, json};

use crate::load::Answered;

/// How long an experiment runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Seconds; checks what does not depend on the machine's speed.
    Short,
    /// As long as the promise requires.
    Long,
}

impl Form {
    pub fn pick<T>(self, short: T, long: T) -> T {
        match self {
            Self::Short => short,
            Self::Long => long,
        }
    }
}

#[derive(Debug, Default)]
pub struct Report {
    figures: Map<String, Value>,
    broken: Vec<String>,
}

impl Report {
    pub fn figure(&mut self, name: &str, value: impl Into<Value>) {
        self.figures.insert(name.to_owned(), value.into());
    }

    /// Rounded to two decimals.
    pub fn decimal(&mut self, name: &str, value: f64) {
        self.figure(name, (value * 100.0).round() / 100.0);
    }

    /// Must hold on every machine.
    pub fn promise(&mut self, kept: bool, otherwise: impl Into<String>) {
        if !kept {
            self.broken.push(otherwise.into());
        }
    }

    /// Each request was answered whole.
    pub fn promise_whole<'a>(&mut self, what: &str, answered: impl IntoIterator<Item = &'a Answered>) {
        let failed: Vec<_> = answered.into_iter().filter(|answer| !answer.is_whole()).collect();
        self.figure(&format!("{}_failed", what.replace(' ', "_")), failed.len());
        if let Some(first) = failed.first() {
            self.promise(false, format!("{} {what} failed, the first: {}", failed.len(), first.outcome));
        }
    }

    /// About time or memory, which is not checked on a busy machine or in a debug build.
    pub fn measured_promise(&mut self, form: Form, kept: bool, otherwise: impl Into<String>) {
        if form == Form::Long {
            self.promise(kept, otherwise);
        }
    }

    pub fn print(&self, name: &str, form: Form) {
        let form = form.pick("short", "long");
        let line = json!({"experiment": name, "form": form, "figures": self.figures, "broken": self.broken});
        println!("{line}");
    }

    pub fn verdict(self) -> Result<(), Failed> {
        if self.broken.is_empty() { Ok(()) } else { Err(self.broken.join("\n").into()) }
    }
}
