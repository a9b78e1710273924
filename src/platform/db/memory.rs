//! The data in each replica's memory as a whole: the catalogue, and the shop's documents. A change after which it would not fit is
//! refused in its transaction. Knows how the database counts it, and not what it is.

use std::ops::Add;

use sqlx::{AnyConnection, AssertSqlSafe};

use super::{Store, StoreError};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Held {
    Catalogue,
    /// Of a table.
    Documents(&'static str),
}

impl Held {
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
        match self {
            Self::Catalogue => CatalogueMemory::read(connection).await?.check(store, before),
            Self::Documents(table) => {
                let (bytes, most) = (self.read(connection).await?, store.catalogue_bytes / 8);
                check((bytes, before, most), table, "an eighth of limits.catalogue_bytes")
            }
        }
    }
}

/// As [`Held::check`], of the catalogue that readers see.
pub(crate) async fn check_visible(
    store: &Store,
    connection: &mut AnyConnection,
    before: i64,
) -> Result<(), StoreError> {
    let copies = CatalogueMemory::read(connection).await?.copies;
    CatalogueMemory::read_visible(connection, copies).await?.check(store, before)
}

fn check(
    (bytes, before, most): (i64, i64, u64),
    what: &'static str,
    share: &'static str,
) -> Result<(), StoreError> {
    if bytes <= before || bytes.unsigned_abs() <= most {
        return Ok(());
    }
    let [bytes, most] = [bytes.unsigned_abs(), most].map(|bytes| bytes.div_ceil(1_000_000));
    Err(StoreError::TooLarge { what, bytes, most, share })
}

/// The memory per article of the releases that a replica holds together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copies {
    /// Each release has its own.
    pub catalogues: i64,
    /// Of an article's rows in the models of all of them.
    pub row_bytes: i64,
}

impl Add for Copies {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { catalogues: self.catalogues + other.catalogues, row_bytes: self.row_bytes + other.row_bytes }
    }
}

/// The catalogue's memory, by the estimate that limits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueMemory {
    /// Once, without its rows in models.
    bytes: i64,
    articles: i64,
    copies: Copies,
}

impl CatalogueMemory {
    async fn read(connection: &mut AnyConnection) -> Result<Self, StoreError> {
        let select = "select (select value from revisions where name = 'catalogue_bytes'),
            (select value from revisions where name = 'catalogue_articles'),
            (select value from revisions where name = 'catalogues'),
            (select value from revisions where name = 'row_bytes')";
        let (bytes, articles, catalogues, row_bytes) = sqlx::query_as(select).fetch_one(connection).await?;
        Ok(Self { bytes, articles, copies: Copies { catalogues, row_bytes } })
    }

    /// Of what readers see, without the rows of an import that runs or was killed.
    async fn read_visible(connection: &mut AnyConnection, copies: Copies) -> Result<Self, StoreError> {
        let select = "select cast(coalesce(sum(memory), 0) as bigint), count(nullif(memory, 0)) from (
            select case when import = (select number from running_import) then coalesce(old_memory, 0) else memory end as memory
            from articles) as visible";
        let (bytes, articles) = sqlx::query_as(select).fetch_one(connection).await?;
        Ok(Self { bytes, articles, copies })
    }

    /// In other releases.
    pub fn with(self, copies: Copies) -> Self {
        Self { copies, ..self }
    }

    /// In all.
    pub fn bytes(self) -> i64 {
        let Copies { catalogues, row_bytes } = self.copies;
        self.bytes.saturating_mul(catalogues).saturating_add(self.articles.saturating_mul(row_bytes))
    }

    fn check(self, store: &Store, before: i64) -> Result<(), StoreError> {
        let what = if self.copies.catalogues > 1 { "the catalogue of two releases" } else { "the catalogue" };
        check((self.bytes(), before, store.catalogue_bytes), what, "limits.catalogue_bytes")
    }

    pub fn bytes_per_article(self) -> i64 {
        self.bytes() / self.articles.max(1)
    }
}

impl Store {
    /// The catalogue's memory in such releases, with the rows of a running import.
    pub async fn catalogue_memory(&self, copies: Copies) -> Result<CatalogueMemory, StoreError> {
        Ok(CatalogueMemory::read(&mut *self.readers()?.acquire().await?).await?.with(copies))
    }

    /// The catalogue's memory in such releases. Checks that a replica has it, unless it is no more than `before`.
    pub async fn check_memory(&self, copies: Copies, before: i64) -> Result<CatalogueMemory, StoreError> {
        let memory = self.catalogue_memory(copies).await?;
        if memory.check(self, before).is_ok() {
            return Ok(memory);
        }
        let visible = CatalogueMemory::read_visible(&mut *self.readers()?.acquire().await?, copies).await?;
        visible.check(self, before).map(|()| visible)
    }

    /// Changes are checked for such releases from now on.
    pub async fn set_copies(&self, Copies { catalogues, row_bytes }: Copies) -> Result<(), StoreError> {
        let set = "update revisions set value = case name when 'catalogues' then $1 else $2 end
            where name = 'catalogues' and value <> $1 or name = 'row_bytes' and value <> $2";
        self.execute(sqlx::query(set).bind(catalogues).bind(row_bytes)).await.map(drop)
    }

    pub async fn largest_articles(&self) -> Result<Vec<String>, StoreError> {
        let largest = "select id from articles order by memory desc, id limit 3";
        Ok(sqlx::query_scalar(largest).fetch_all(self.readers()?).await?)
    }

    pub fn catalogue_bytes(&self) -> u64 {
        self.catalogue_bytes
    }
}
