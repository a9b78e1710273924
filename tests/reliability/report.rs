//! What an experiment found: its figures, and the promises that were broken.

use libtest_mimic::Failed;
use serde_json::{Map, Value, json};

/// How much of an experiment is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Seconds; holds what does not depend on how fast the machine is.
    Short,
    /// As long as the promise says.
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

    /// A float with as many decimals as anybody reads.
    pub fn decimal(&mut self, name: &str, value: f64) {
        self.figure(name, (value * 100.0).round() / 100.0);
    }

    /// Something that must hold on every machine.
    pub fn promise(&mut self, kept: bool, otherwise: impl Into<String>) {
        if !kept {
            self.broken.push(otherwise.into());
        }
    }

    /// Something of time or memory, which a busy machine and a debug build cannot be held to.
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
