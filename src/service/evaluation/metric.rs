//! What methods are compared by.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One way to say how good a method's answers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    CrossEntropy,
    #[serde(rename = "recall_at_1")]
    RecallAt1,
    #[serde(rename = "recall_at_5")]
    RecallAt5,
    #[serde(rename = "recall_at_250")]
    RecallAt250,
    Mrr,
}

impl Metric {
    pub const ALL: [Metric; 5] =
        [Metric::CrossEntropy, Metric::RecallAt1, Metric::RecallAt5, Metric::RecallAt250, Metric::Mrr];

    /// As files and addresses write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CrossEntropy => "cross_entropy",
            Self::RecallAt1 => "recall_at_1",
            Self::RecallAt5 => "recall_at_5",
            Self::RecallAt250 => "recall_at_250",
            Self::Mrr => "mrr",
        }
    }

    /// As people read it.
    pub fn label(self) -> &'static str {
        match self {
            Self::CrossEntropy => "cross-entropy",
            Self::RecallAt1 => "recall@1",
            Self::RecallAt5 => "recall@5",
            Self::RecallAt250 => "recall@250",
            Self::Mrr => "MRR",
        }
    }

    pub fn lower_is_better(self) -> bool {
        self == Self::CrossEntropy
    }

    /// Shares of all slots, which people read in percent.
    pub fn is_share(self) -> bool {
        matches!(self, Self::RecallAt1 | Self::RecallAt5 | Self::RecallAt250)
    }

    /// Whether the first of two figures is the better one.
    pub fn better(self, one: f64, other: f64) -> bool {
        if self.lower_is_better() { one < other } else { one > other }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
