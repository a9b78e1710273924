//! Bringing whole files in, all or nothing.

use std::collections::HashMap;

use sqlx::{Any, Transaction};

use super::{
    Counts, Origin, StoreError, Timestamp, articles::ArticleRow, connect::Dialect, customers::CustomerRow,
    outfits::OutfitRow, upsert,
};
use crate::domain::{Article, Customer, Outfit};

/// An import under way: one transaction. Dropped without [`Import::commit`], it leaves nothing behind; so
/// does a process that is killed meanwhile.
///
/// Give it slices of a few thousand, so that the file need not fit in memory.
pub struct Import {
    transaction: Transaction<'static, Any>,
    dialect: Dialect,
    millis: i64,
    /// How often each outfit, by its digest, came in this import: a file may hold one more than once, and
    /// is to come back as it was.
    repeated: HashMap<[u8; 32], u32>,
}

impl Import {
    pub(super) fn new(transaction: Transaction<'static, Any>, dialect: Dialect, now: Timestamp) -> Self {
        Self { transaction, dialect, millis: now.millis(), repeated: HashMap::new() }
    }

    pub async fn articles(&mut self, articles: &[Article]) -> Result<Counts, StoreError> {
        let rows = articles.iter().map(|article| Ok(ArticleRow { article, millis: self.millis }));
        upsert::many(&mut self.transaction, self.dialect, rows).await
    }

    pub async fn customers(&mut self, customers: &[Customer]) -> Result<Counts, StoreError> {
        let rows = customers.iter().map(|customer| CustomerRow::new(customer, self.millis));
        upsert::many(&mut self.transaction, self.dialect, rows).await
    }

    /// # Errors
    /// Among others if a customer is neither here nor in this import (`Conflict`). Articles are not
    /// looked at: whether an outfit may name one that the catalogue lacks is the caller's to say.
    pub async fn outfits(&mut self, outfits: &[Outfit]) -> Result<Counts, StoreError> {
        let (repeated, millis) = (&mut self.repeated, self.millis);
        let rows = outfits.iter().map(|outfit| {
            let row = OutfitRow::new(outfit, Origin::Imported, None, millis)?;
            let times = repeated.entry(row.digest()).or_insert(0);
            *times += 1;
            Ok(if *times == 1 { row } else { row.again(*times - 1) })
        });
        upsert::many(&mut self.transaction, self.dialect, rows).await
    }

    /// Makes all of it visible at once.
    pub async fn commit(self) -> Result<(), StoreError> {
        Ok(self.transaction.commit().await?)
    }
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}
