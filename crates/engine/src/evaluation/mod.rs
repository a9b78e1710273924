//! A release's evaluation on the validation outfits: the figures of `evaluation.json` and the single answers of
//! `ranks.parquet`.
//!
//! Data comes in from the two files, which training wrote into the release; figures, and the cases in which two
//! methods differ most, go out. The files are read on first use, off the threads that answer requests, and kept
//! for as long as the release is served. Must not know HTTP, the database, models, or how figures are computed.

mod cases;
mod columns;
mod figures;
mod paired;
mod published;
mod ranks;
#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use atelier_core::domain::Method;
use tokio::{sync::OnceCell, task};

pub use cases::{By, CaseDifference, CustomerDifference, Lead, Selection, Versus};
pub use figures::{
    About, Answered, Baseline, Bin, Calibration, Comparison, Difference, Figure, Figures, MethodEvaluation,
    MethodResult, Metric, NewArticles, NewBaseline, NewScores, Scores, Segment, Shares, Summary, TypeScores,
    pack_segments,
};
pub use paired::{Interval, Pair};
pub use published::{Bounds, PAPER, PaperRow, Published};
pub use ranks::{Case, MAX_RANK, Ranks};

use crate::release::{Manifest, Release, ReleaseError};

/// The file of figures, and the file of single answers.
pub const FIGURES: &str = "evaluation.json";
pub const RANKS: &str = "ranks.parquet";

/// The fewest slots of a published segment. With fewer, recall's standard error exceeds three percentage points.
pub const LEAST_SLOTS: u64 = 150;

/// A release's evaluation, read on first use.
#[derive(Debug)]
pub struct Evaluation {
    release: Arc<Release>,
    figures: OnceCell<Arc<Figures>>,
    ranks: OnceCell<Arc<Ranks>>,
}

/// Why an evaluation is not available.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    #[error("the release {release} has no file {file}")]
    Missing { release: String, file: &'static str },
    #[error(transparent)]
    Changed(#[from] ReleaseError),
    #[error("{file} of the release {release} cannot be read: {reason}")]
    Damaged { release: String, file: &'static str, reason: String },
}

impl Evaluation {
    pub fn new(release: Arc<Release>) -> Self {
        Self { release, figures: OnceCell::new(), ranks: OnceCell::new() }
    }

    pub async fn figures(&self) -> Result<Arc<Figures>, EvaluationError> {
        self.load(&self.figures, FIGURES, Figures::read).await
    }

    pub async fn ranks(&self) -> Result<Arc<Ranks>, EvaluationError> {
        self.load(&self.ranks, RANKS, Ranks::read).await
    }

    /// Reads a file once. After an error the next call tries again: the release's folder may still be copying.
    async fn load<T: Send + Sync + 'static>(
        &self,
        cell: &OnceCell<Arc<T>>,
        file: &'static str,
        read: fn(&Path) -> Result<T, String>,
    ) -> Result<Arc<T>, EvaluationError> {
        let open = async || {
            let release = Arc::clone(&self.release);
            let load = task::spawn_blocking(move || {
                read_file(release.manifest(), release.optional_file(file), file, read).map(Arc::new)
            });
            load.await.expect("reading does not panic")
        };
        cell.get_or_try_init(open).await.cloned()
    }
}

/// The evaluation of a release that is not served.
#[derive(Debug)]
pub struct Stored {
    pub default_method: Method,
    /// Of the data that it was trained on.
    pub fingerprint: String,
    pub figures: Result<Figures, EvaluationError>,
    pub ranks: Result<Ranks, EvaluationError>,
}

impl Stored {
    /// Reads the evaluation of the release in a folder, and nothing else of it.
    pub fn read(folder: &Path) -> Result<Self, ReleaseError> {
        let manifest = Manifest::read(folder)?;
        let file = |name| manifest.optional_file(folder, name);
        Ok(Self {
            figures: read_file(&manifest, file(FIGURES), FIGURES, Figures::read),
            ranks: read_file(&manifest, file(RANKS), RANKS, Ranks::read),
            default_method: manifest.default_method,
            fingerprint: manifest.data.fingerprint,
        })
    }
}

fn read_file<T>(
    manifest: &Manifest,
    path: Result<Option<PathBuf>, ReleaseError>,
    file: &'static str,
    read: fn(&Path) -> Result<T, String>,
) -> Result<T, EvaluationError> {
    let release = || manifest.name.clone();
    let path = path?.ok_or_else(|| EvaluationError::Missing { release: release(), file })?;
    read(&path).map_err(|reason| EvaluationError::Damaged { release: release(), file, reason })
}
