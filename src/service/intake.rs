//! From the rows of a file into the database: what `atelier import` and the bulk routes have in common.
//!
//! It knows `exchange` and `store`, and neither knows it. Rows come in checked, slices go out into one
//! [`store::Import`], and whoever called says what becomes of that.

use crate::{
    domain::{Article, Customer, Outfit},
    files::{Checker, ExchangeError, Rows, Table},
    store::{self, Counts, StoreError},
};

/// Rows that go to the database at once: enough to keep it busy, few enough to stay small in memory.
const SLICE: usize = 2000;

/// Why a table could not be brought in to its end.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads, checks and stores a table; bad rows are left to the checker's report. `tell` hears how much is
/// read, as [`Rows::progress`] counts it.
///
/// Parsing blocks, so this needs a runtime of several threads, and lets the others go on meanwhile.
pub async fn table<T: Intake>(
    import: &mut store::Import,
    checker: &mut Checker,
    rows: Rows<T>,
    tell: impl Fn(u64),
) -> Result<Counts, IntakeError> {
    let mut read = checker.check(rows);
    let mut counts = Counts::default();
    loop {
        let slice = tokio::task::block_in_place(|| read.by_ref().take(SLICE).collect::<Result<Vec<T>, _>>())?;
        if slice.is_empty() {
            return Ok(counts);
        }
        counts += T::put(import, &slice).await?;
        tell(read.progress().0);
    }
}

/// A table that can be brought in.
pub trait Intake: Table + Send + Sync {
    /// Whether its rows name rows of other tables.
    const REFERS: bool;

    fn put(
        import: &mut store::Import,
        rows: &[Self],
    ) -> impl Future<Output = Result<Counts, StoreError>> + Send;
}

impl Intake for Article {
    const REFERS: bool = false;

    async fn put(import: &mut store::Import, rows: &[Self]) -> Result<Counts, StoreError> {
        import.articles(rows).await
    }
}

impl Intake for Customer {
    const REFERS: bool = false;

    async fn put(import: &mut store::Import, rows: &[Self]) -> Result<Counts, StoreError> {
        import.customers(rows).await
    }
}

impl Intake for Outfit {
    const REFERS: bool = true;

    async fn put(import: &mut store::Import, rows: &[Self]) -> Result<Counts, StoreError> {
        import.outfits(rows).await
    }
}
