//! Whether two methods differ, each with each.

use super::{choice::Choice, written};
use crate::{domain::Method, service::evaluation::Comparison};

/// A row and a column a method.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) methods: Vec<Method>,
    pub(super) rows: Vec<(Method, Vec<Option<Cell>>)>,
}

/// The row's figure less the column's.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) difference: String,
    pub(super) interval: String,
    pub(super) p: String,
    pub(super) verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Better,
    Worse,
    Unsure,
}

impl Verdict {
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Better => "good",
            Self::Worse => "bad",
            Self::Unsure => "quiet",
        }
    }

    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Better => "▲",
            Self::Worse => "▼",
            Self::Unsure => "≈",
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Unsure => "no sure difference",
        }
    }
}

impl Matrix {
    pub(super) fn new(choice: &Choice, comparison: &Comparison) -> Self {
        let cell = |row, column| {
            let difference = comparison.difference(choice.metric, row, column)?;
            let verdict = match () {
                () if !difference.is_sure() => Verdict::Unsure,
                () if choice.metric.better(difference.difference, 0.0) => Verdict::Better,
                () => Verdict::Worse,
            };
            Some(Cell {
                difference: written::signed(choice.metric, difference.difference),
                interval: written::interval(&difference),
                p: format!("{:.3}", difference.p),
                verdict,
            })
        };
        let methods = choice.chosen.clone();
        let rows =
            methods.iter().map(|&row| (row, methods.iter().map(|&column| cell(row, column)).collect()));
        Self { rows: rows.collect(), methods }
    }
}
