//! `evaluation.json`: all figures of a release, for pages.

use anyhow::{Context, Result};
use atelier::service::evaluation::LEAST_SLOTS;
use serde::Serialize;
use serde_json::{Number, Value};

use crate::{
    evaluate::{Comparison, Evaluation},
    fit::RunConfig,
};

/// What `evaluation.json` holds.
#[derive(Debug, Serialize)]
pub(super) struct Figures<'a> {
    pub(super) comparison: &'a Comparison,
    pub(super) evaluations: Vec<&'a Evaluation>,
    /// Every setting of the runs that were chosen.
    pub(super) configurations: Vec<&'a RunConfig>,
}

impl Figures<'_> {
    /// On one line, each with four digits: pages show fewer, and a release is carried about.
    pub(super) fn brief(&self) -> Result<String> {
        fn round(value: &mut Value) {
            match value {
                Value::Number(number) if number.is_f64() => {
                    let rounded = number.as_f64().and_then(|number| format!("{number:.3e}").parse().ok());
                    *value = rounded.and_then(Number::from_f64).map_or(Value::Null, Value::Number);
                }
                Value::Array(values) => values.iter_mut().for_each(round),
                Value::Object(fields) => fields.values_mut().for_each(round),
                _ => {}
            }
        }
        let mut value = serde_json::to_value(self).context("the figures")?;
        // Of fewer, that is no figure to choose a method by.
        let evaluations = value["evaluations"].as_array_mut().into_iter().flatten();
        for segments in evaluations.filter_map(|evaluation| evaluation["segments"].as_array_mut()) {
            segments.retain(|segment| segment["summary"]["slots"].as_u64() >= Some(LEAST_SLOTS));
        }
        round(&mut value);
        Ok(format!("{value}\n"))
    }
}
