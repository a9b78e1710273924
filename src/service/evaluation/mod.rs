//! What was found when a release's methods were asked about every slot of the validation outfits, as pages
//! show it: the figures of `evaluation.json`, and each single answer of `ranks.parquet`.
//!
//! Data comes in from the two files, which training wrote into the release; figures, and the cases where two
//! methods differ most, go out. The files are read when somebody first asks, off the threads that answer
//! requests, and kept for as long as the release is served. Must not know HTTP, the database, models, or how a
//! figure was arrived at.

mod cases;
mod columns;
mod figures;
mod metric;
mod paper;
mod published;
mod ranks;
#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc};

use tokio::{sync::OnceCell, task};

pub use cases::{Apart, By, CustomerApart, Lead, Selection, Versus};
pub use figures::{
    About, Baseline, Bin, Calibration, Comparison, Difference, Figure, Figures, MethodEvaluation,
    MethodResult, Scores, Segment, Summary,
};
pub use metric::Metric;
pub use paper::{PAPER, PaperRow};
pub use published::{Bounds, Published};
pub use ranks::{Case, MOST, Ranks};

use crate::models::release::{Release, ReleaseError};

/// The file of figures, and that of single answers.
pub const FIGURES: &str = "evaluation.json";
pub const RANKS: &str = "ranks.parquet";

/// Fewest slots of a segment that a release tells of: of fewer, a recall's standard error is above three points.
pub const LEAST_SLOTS: u64 = 150;

/// A release's evaluation, read when it is first asked for.
#[derive(Debug)]
pub struct Evaluation {
    release: Arc<Release>,
    figures: OnceCell<Arc<Figures>>,
    ranks: OnceCell<Arc<Ranks>>,
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum Lack {
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

    pub async fn figures(&self) -> Result<Arc<Figures>, Lack> {
        self.read(&self.figures, Figures::of_release).await
    }

    pub async fn ranks(&self) -> Result<Arc<Ranks>, Lack> {
        self.read(&self.ranks, Ranks::of_release).await
    }

    /// What cannot be read now is tried again when it is next asked for: a folder may be on its way.
    async fn read<T: Send + Sync + 'static>(
        &self,
        cell: &OnceCell<Arc<T>>,
        read: fn(&Release) -> Result<T, Lack>,
    ) -> Result<Arc<T>, Lack> {
        let open = async || {
            let release = Arc::clone(&self.release);
            let read = task::spawn_blocking(move || read(&release).map(Arc::new));
            read.await.expect("reading does not panic; this is a bug")
        };
        cell.get_or_try_init(open).await.cloned()
    }
}

impl Figures {
    pub fn of_release(release: &Release) -> Result<Self, Lack> {
        file(release, FIGURES, Self::read)
    }
}

impl Ranks {
    pub fn of_release(release: &Release) -> Result<Self, Lack> {
        file(release, RANKS, Self::read)
    }
}

fn file<T>(
    release: &Release,
    file: &'static str,
    read: impl FnOnce(&Path) -> Result<T, String>,
) -> Result<T, Lack> {
    let name = || release.manifest().name.clone();
    let path = release.optional_file(file)?.ok_or_else(|| Lack::Missing { release: name(), file })?;
    read(&path).map_err(|reason| Lack::Damaged { release: name(), file, reason })
}
