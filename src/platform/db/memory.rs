//! What each replica holds in memory as a whole: the catalogue, and the shop's documents. A change after which it would not fit is
//! refused in its transaction. Knows how the database counts it, and not what it is.

use sqlx::{AnyConnection, AssertSqlSafe};

use super::{Store, StoreError};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Held {
    Catalogue,
    /// Of a table.
    Documents(&'static str),
}

impl Held {
    /// The part of the limit that is for it.
    fn part(self) -> u64 {
        if let Self::Catalogue = self { 1 } else { 8 }
    }

    /// How many bytes it takes in this transaction.
    pub(crate) async fn read(self, connection: &mut AnyConnection) -> Result<i64, StoreError> {
        let Self::Documents(table) = self else {
            return Ok(CatalogueMemory::read(connection).await?.bytes());
        };
        // Parsed and compiled they take about three times their text.
        let sql = format!("select cast(coalesce(sum(octet_length(body)), 0) * 3 as bigint) from {table}");
        Ok(sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(connection).await?)
    }

    /// Refuses a change after which it takes more than it may, and more than `before`. Other changes of it must wait for the
    /// transaction already.
    pub(crate) async fn check(
        self,
        store: &Store,
        connection: &mut AnyConnection,
        before: i64,
    ) -> Result<(), StoreError> {
        let bytes = self.read(connection).await?;
        if bytes <= before { Ok(()) } else { self.fits(store, bytes.unsigned_abs()) }
    }

    fn fits(self, store: &Store, bytes: u64) -> Result<(), StoreError> {
        let most = store.catalogue_bytes / self.part();
        if bytes <= most {
            return Ok(());
        }
        let (what, share) = match self {
            Self::Catalogue => ("the catalogue", "limits.catalogue_bytes"),
            Self::Documents(table) => (table, "an eighth of limits.catalogue_bytes"),
        };
        let [bytes, most] = [bytes, most].map(|bytes| bytes.div_ceil(1_000_000));
        Err(StoreError::TooLarge { what, bytes, most, share })
    }
}

/// What the catalogue takes in memory, by the estimate that limits it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CatalogueMemory {
    /// Without its rows in models.
    bytes: i64,
    articles: i64,
    row_bytes: i64,
}

impl CatalogueMemory {
    async fn read(connection: &mut AnyConnection) -> Result<Self, StoreError> {
        let select = "select (select value from revisions where name = 'catalogue_bytes'),
            (select value from revisions where name = 'catalogue_articles'),
            (select value from revisions where name = 'row_bytes')";
        let (bytes, articles, row_bytes) = sqlx::query_as(select).fetch_one(connection).await?;
        Ok(Self { bytes, articles, row_bytes })
    }

    /// In all.
    pub fn bytes(self) -> i64 {
        self.bytes.saturating_add(self.articles.saturating_mul(self.row_bytes))
    }

    pub fn bytes_per_article(self) -> i64 {
        self.bytes() / self.articles.max(1)
    }
}

impl Store {
    /// What the catalogue takes if each article has so many bytes of rows in a replica's models.
    pub async fn catalogue_memory(&self, row_bytes: i64) -> Result<CatalogueMemory, StoreError> {
        let stored = CatalogueMemory::read(&mut *self.readers()?.acquire().await?).await?;
        Ok(CatalogueMemory { row_bytes, ..stored })
    }

    pub async fn check_memory(&self, row_bytes: i64) -> Result<(), StoreError> {
        let memory = self.catalogue_memory(row_bytes).await?;
        Held::Catalogue.fits(self, memory.bytes().unsigned_abs())
    }

    /// Changes are checked for articles with so many bytes of rows from now on.
    pub async fn set_row_bytes(&self, row_bytes: i64) -> Result<(), StoreError> {
        let set = "update revisions set value = $1 where name = 'row_bytes' and value <> $1";
        self.execute(sqlx::query(set).bind(row_bytes)).await.map(drop)
    }

    pub async fn largest_articles(&self) -> Result<Vec<String>, StoreError> {
        let largest = "select id from articles order by memory desc, id limit 3";
        Ok(sqlx::query_scalar(largest).fetch_all(self.readers()?).await?)
    }

    pub fn catalogue_bytes(&self) -> u64 {
        self.catalogue_bytes
    }
}
