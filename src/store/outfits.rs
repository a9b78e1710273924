//! Outfits that are kept: brought by an import, saved in the studio, or accepted from a suggestion.
//!
//! An outfit is a value. It names articles without a promise that the catalogue still has them.

use std::{fmt, str::FromStr};

use futures_util::Stream;
use sha2::{Digest, Sha256};
use sqlx::{Arguments, any::AnyArguments};

use super::{
    Conflict, PersonId, Put, Store, StoreError, json,
    pages::{self, PAGE},
    upsert,
};
use crate::domain::Timestamp;
use crate::domain::{ArticleId, CustomerId, Outfit, Split};

/// The outfits of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct Outfits<'a> {
    pub(super) store: &'a Store,
}

/// An outfit as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct OutfitRecord {
    /// Its place in the order in which outfits came; the cursor of lists.
    pub seq: i64,
    pub outfit: Outfit,
    pub origin: Origin,
    /// Who saved it, if a person did.
    pub person: Option<PersonId>,
    pub created_at: Timestamp,
}

/// How an outfit came here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    Imported,
    Saved,
    Accepted,
}

impl<'a> Outfits<'a> {
    /// Keeps the outfit and says where. The same articles for the same customer with the same features
    /// are the same outfit: a repetition keeps its place, and moves it to the split that it gives, if any.
    ///
    /// # Errors
    /// Among others if there is no such customer (`Conflict`).
    pub async fn save(
        self,
        outfit: &Outfit,
        origin: Origin,
        person: Option<PersonId>,
        now: Timestamp,
    ) -> Result<(i64, Put), StoreError> {
        let row = OutfitRow::new(outfit, origin, person, now.millis())?;
        let digest = row.digest;
        let mut transaction = self.store.write().await?;
        let put = upsert::one(&mut transaction, self.store.dialect, row).await?;
        let seq = sqlx::query_scalar("select seq from outfits where digest = $1")
            .bind(&digest[..])
            .fetch_one(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok((seq, put))
    }

    pub async fn get(self, seq: i64) -> Result<Option<OutfitRecord>, StoreError> {
        let row = sqlx::query_as(
            "select seq, customer_id, articles, split, features, origin, person_id, created_at
             from outfits where seq = $1",
        )
        .bind(seq)
        .fetch_optional(&self.store.readers)
        .await?;
        row.map(record).transpose()
    }

    /// Up to `n` outfits, those that came first.
    pub async fn first(self, n: u32) -> Result<Vec<OutfitRecord>, StoreError> {
        self.after(0, n).await
    }

    /// Up to `n` of the customer's outfits after the one numbered `after` (0: from the first).
    pub async fn of_customer(
        self,
        customer: &CustomerId,
        after: i64,
        n: u32,
    ) -> Result<Vec<OutfitRecord>, StoreError> {
        sqlx::query_as(
            "select seq, customer_id, articles, split, features, origin, person_id, created_at
             from outfits where customer_id = $1 and seq > $2 order by seq limit $3",
        )
        .bind(customer.as_str())
        .bind(after)
        .bind(i64::from(n))
        .fetch_all(&self.store.readers)
        .await?
        .into_iter()
        .map(record)
        .collect()
    }

    /// False if there was none.
    pub async fn delete(self, seq: i64) -> Result<bool, StoreError> {
        let mut transaction = self.store.write().await?;
        let deleted =
            sqlx::query("delete from outfits where seq = $1").bind(seq).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(deleted.rows_affected() > 0)
    }

    pub async fn count(self) -> Result<u64, StoreError> {
        let count: i64 =
            sqlx::query_scalar("select count(*) from outfits").fetch_one(&self.store.readers).await?;
        Ok(count.unsigned_abs())
    }

    /// Every outfit, in the order in which they came. Each page is read when it is needed.
    pub fn all(self) -> impl Stream<Item = Result<OutfitRecord, StoreError>> + Send + use<'a> {
        pages::all(0, move |after| async move {
            let page = self.after(after, PAGE).await?;
            Ok(page.into_iter().map(|record| (record.seq, record)).collect())
        })
    }

    async fn after(self, seq: i64, n: u32) -> Result<Vec<OutfitRecord>, StoreError> {
        sqlx::query_as(
            "select seq, customer_id, articles, split, features, origin, person_id, created_at
             from outfits where seq > $1 order by seq limit $2",
        )
        .bind(seq)
        .bind(i64::from(n))
        .fetch_all(&self.store.readers)
        .await?
        .into_iter()
        .map(record)
        .collect()
    }
}

pub(super) struct OutfitRow<'a> {
    outfit: &'a Outfit,
    features: String,
    digest: [u8; 32],
    origin: Origin,
    person: Option<PersonId>,
    millis: i64,
}

impl<'a> OutfitRow<'a> {
    pub(super) fn new(
        outfit: &'a Outfit,
        origin: Origin,
        person: Option<PersonId>,
        millis: i64,
    ) -> Result<Self, StoreError> {
        let features = json::features_text(&outfit.features)?;
        let digest = digest(outfit, &features);
        Ok(Self { outfit, features, digest, origin, person, millis })
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The same outfit once more, as an outfit of its own: a stylist may lay one twice. `times` is how
    /// often it came before, so that the same file brought in again meets the same rows.
    pub(super) fn again(self, times: u32) -> Self {
        let mut hash = Sha256::new_with_prefix(self.digest);
        hash.update(times.to_be_bytes());
        Self { digest: hash.finalize().into(), ..self }
    }
}

impl upsert::Row for OutfitRow<'_> {
    const INSERT: &'static str = "insert into outfits
        (digest, customer_id, articles, split, features, origin, person_id, created_at) values";
    const COLUMNS: usize = 8;
    const ON_CONFLICT: &'static str = "
        on conflict (digest) do update set
            split = excluded.split,
            revision = outfits.revision + 1
        where excluded.split is not null and outfits.split is distinct from excluded.split
        returning revision";
    type Key = [u8; 32];

    fn key(&self) -> [u8; 32] {
        self.digest
    }

    fn bind(self, values: &mut AnyArguments) -> Result<(), sqlx::error::BoxDynError> {
        let articles: Vec<&str> = self.outfit.articles().iter().map(ArticleId::as_str).collect();
        values.add(&self.digest[..])?;
        values.add(self.outfit.customer.as_str())?;
        values.add(json::text(&articles))?;
        values.add(self.outfit.split.map(Split::as_str))?;
        values.add(self.features)?;
        values.add(self.origin.as_str())?;
        values.add(self.person.map(|person| person.0))?;
        values.add(self.millis)
    }

    fn absent() -> StoreError {
        StoreError::Conflict(Conflict::UnknownCustomer)
    }
}

/// What makes an outfit that outfit. No field holds a control character unescaped, so NUL parts them.
fn digest(outfit: &Outfit, features: &str) -> [u8; 32] {
    let mut articles: Vec<&str> = outfit.articles().iter().map(ArticleId::as_str).collect();
    articles.sort_unstable();
    let mut hash = Sha256::new();
    for field in std::iter::once(outfit.customer.as_str()).chain(articles).chain([features]) {
        hash.update(field);
        hash.update([0]);
    }
    hash.finalize().into()
}

type Columns = (i64, String, String, Option<String>, String, String, Option<i64>, i64);

fn record(row: Columns) -> Result<OutfitRecord, StoreError> {
    let seq = row.0;
    parse(row).map_err(|reason| StoreError::Damaged { table: "outfits", id: seq.to_string(), reason })
}

fn parse(
    (seq, customer, articles, split, features, origin, person, created_at): Columns,
) -> Result<OutfitRecord, String> {
    let articles = json::parse::<Vec<String>>(&articles)?
        .into_iter()
        .map(ArticleId::new)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let customer = CustomerId::new(customer).map_err(|error| error.to_string())?;
    let split = split.map(|split| split.parse::<Split>()).transpose().map_err(|error| error.to_string())?;
    let outfit = Outfit::new(customer, articles, split, json::features(&features)?)
        .map_err(|error| error.to_string())?;
    Ok(OutfitRecord {
        seq,
        outfit,
        origin: origin.parse()?,
        person: person.map(PersonId),
        created_at: Timestamp::from_millis(created_at),
    })
}

impl Origin {
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Imported => "imported",
            Origin::Saved => "saved",
            Origin::Accepted => "accepted",
        }
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Origin::Imported, Origin::Saved, Origin::Accepted]
            .into_iter()
            .find(|origin| origin.as_str() == text)
            .ok_or_else(|| format!("an origin is imported, saved or accepted, not {text:?}"))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
