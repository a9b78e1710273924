//! Whole outfits that were imported, saved in the studio, or accepted from suggestions. The catalogue may no longer have
//! their articles. `saved_outfits.rs` has those that stylists work with: named, drafts, deleted.

use atelier_core::{
    domain::{ArticleId, CustomerId, OpenOutfit, Outfit, Split, Timestamp},
    named,
};
use futures_util::Stream;
use serde_json::json;
use sha2::{Digest, Sha256};
use sqlx::{AnyConnection, Arguments, any::AnyArguments};

use super::{
    Conflict, Entry, PersonId, Put, Store, StoreError,
    customers::customer_id,
    json,
    pages::{self, PAGE},
    search::name_key,
    upsert,
};

/// The outfits of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct Outfits<'a> {
    pub(super) store: &'a Store,
}

/// A stored outfit.
#[derive(Debug, Clone, PartialEq)]
pub struct OutfitRecord {
    /// The outfit's place in the order of arrival, which is the cursor of lists.
    pub seq: i64,
    pub outfit: Outfit,
    pub origin: Origin,
    /// The person who saved it, if any.
    pub person: Option<PersonId>,
    pub created_at: Timestamp,
}

/// Where an outfit came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    Imported,
    Saved,
    Accepted,
}

impl<'a> Outfits<'a> {
    /// Stores the outfit, and gives its place. Outfits with the same customer, articles and features are the same: saving
    /// one again keeps its place, and moves it to the new split, if given. An imported one that a person saves is theirs.
    ///
    /// # Errors
    /// If there is no such customer (`Conflict`), or the database fails.
    pub async fn save(
        self,
        outfit: &Outfit,
        origin: Origin,
        person: Option<PersonId>,
        now: Timestamp,
    ) -> Result<(i64, Put), StoreError> {
        let row = OutfitRow::new(outfit, origin, person, now.millis())?;
        self.save_row(row, false, now).await
    }

    /// The same for a draft.
    pub(super) async fn save_row(
        self,
        row: OutfitRow<'_>,
        is_draft: bool,
        now: Timestamp,
    ) -> Result<(i64, Put), StoreError> {
        let (digest, customer, origin, person) = (row.digest, row.customer, row.origin, row.person);
        let articles = row.articles.iter().filter(|id| !id.is_empty()).count();
        let mut transaction = self.store.write().await?;
        let mut put = upsert::write_one(&mut transaction, self.store.dialect, row).await?;
        let mut is_new = put == Put::Added;
        if put != Put::Added && origin == Origin::Saved {
            let taken_over = sqlx::query(
                "update outfits set origin = 'saved', person_id = $2, created_at = $3, revision = revision + 1
                 where digest = $1 and origin = 'imported'",
            )
            .bind(&digest[..])
            .bind(person.map(|person| person.0))
            .bind(now.millis())
            .execute(&mut *transaction)
            .await?;
            if taken_over.rows_affected() > 0 {
                (put, is_new) = (Put::Changed, true);
            }
        }
        let seq = sqlx::query_scalar("select seq from outfits where digest = $1")
            .bind(&digest[..])
            .fetch_one(&mut *transaction)
            .await?;
        if is_new {
            sqlx::query(
                "update outfits set draft = $2, changed_at = created_at, name_key = $3 || coalesce(
                    (select ' ' || people.name_key from people where people.id = outfits.person_id), '')
                 where seq = $1",
            )
            .bind(seq)
            .bind(i64::from(is_draft))
            .bind(name_key(std::iter::once(customer.as_str())))
            .execute(&mut *transaction)
            .await?;
        }
        if put != Put::Unchanged {
            let subject = i64::to_string(&seq);
            let entry = Entry::new("outfit.save", &subject, json!({"articles": articles})).about(customer);
            entry.write(&mut transaction, self.store.author, now).await?;
        }
        transaction.commit().await?;
        Ok((seq, put))
    }

    pub async fn get(self, seq: i64) -> Result<Option<OutfitRecord>, StoreError> {
        let row = sqlx::query_as(
            "select seq, customer_id, articles, split, features, origin, person_id, created_at
             from outfits where seq = $1 and draft = 0 and deleted_at is null",
        )
        .bind(seq)
        .fetch_optional(&self.store.readers)
        .await?;
        row.map(record).transpose()
    }

    /// The first `n` outfits.
    pub async fn first(self, n: u32) -> Result<Vec<OutfitRecord>, StoreError> {
        self.after(0, n).await
    }

    /// Up to `n` of the customer's outfits after the place `after` (0 for the first ones).
    pub async fn for_customer(
        self,
        customer: &CustomerId,
        after: i64,
        n: u32,
    ) -> Result<Vec<OutfitRecord>, StoreError> {
        sqlx::query_as(
            "select seq, customer_id, articles, split, features, origin, person_id, created_at
             from outfits where customer_id = $1 and seq > $2 and draft = 0 and deleted_at is null
             order by seq limit $3",
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

    /// Deletes an outfit or a draft for good. False if there is none.
    pub async fn delete(self, seq: i64, now: Timestamp) -> Result<bool, StoreError> {
        let mut transaction = self.store.write().await?;
        let deleted: Option<(String, String, String, Vec<u8>)> = sqlx::query_as(
            "delete from outfits where seq = $1 and deleted_at is null
             returning customer_id, articles, features, digest",
        )
        .bind(seq)
        .fetch_optional(&mut *transaction)
        .await?;
        let Some((customer, articles, features, freed)) = deleted else { return Ok(false) };
        let damaged = |reason| StoreError::Damaged { table: "outfits", id: seq.to_string(), reason };
        let articles: Vec<String> = json::parse(&articles).map_err(damaged)?;
        let first = digest(&customer, articles.iter().map(String::as_str), &features);
        close_gap(&mut transaction, first, &freed).await?;
        let (subject, customer) = (seq.to_string(), customer_id(customer)?);
        let entry = Entry::new("outfit.delete", &subject, json!({})).about(&customer);
        entry.write(&mut transaction, self.store.author, now).await?;
        transaction.commit().await?;
        Ok(true)
    }

    pub async fn count(self) -> Result<u64, StoreError> {
        self.store.count("select count(*) from outfits where draft = 0 and deleted_at is null").await
    }

    /// Every outfit in order of arrival, read page by page as needed.
    pub fn all(self) -> impl Stream<Item = Result<OutfitRecord, StoreError>> + Send + use<'a> {
        pages::stream(0, move |after| async move {
            let page = self.after(after, PAGE).await?;
            Ok(page.into_iter().map(|record| (record.seq, record)).collect())
        })
    }

    async fn after(self, seq: i64, n: u32) -> Result<Vec<OutfitRecord>, StoreError> {
        sqlx::query_as(
            "select seq, customer_id, articles, split, features, origin, person_id, created_at
             from outfits where seq > $1 and draft = 0 and deleted_at is null order by seq limit $2",
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

/// Gives a deleted outfit's digest to its last repetition, because an import finds repetitions by their numbers.
async fn close_gap(connection: &mut AnyConnection, first: [u8; 32], freed: &[u8]) -> Result<(), StoreError> {
    let mut last = None;
    for times in 1.. {
        let digest = repeated_digest(first, times);
        if digest == freed {
            // Only a later one leaves a gap.
            last = None;
            continue;
        }
        let found: Option<i64> = sqlx::query_scalar("select seq from outfits where digest = $1")
            .bind(&digest[..])
            .fetch_optional(&mut *connection)
            .await?;
        if found.is_none() {
            break;
        }
        last = found;
    }
    if let Some(seq) = last {
        let update = sqlx::query("update outfits set digest = $2 where seq = $1").bind(seq).bind(freed);
        update.execute(connection).await?;
    }
    Ok(())
}

pub(super) struct OutfitRow<'a> {
    customer: &'a CustomerId,
    /// Empty ids are blanks.
    articles: Vec<&'a str>,
    split: Option<Split>,
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
        let articles: Vec<&str> = outfit.articles().iter().map(ArticleId::as_str).collect();
        let digest = digest(outfit.customer.as_str(), articles.iter().copied(), &features);
        let (customer, split) = (&outfit.customer, outfit.split);
        Ok(Self { customer, articles, split, features, digest, origin, person, millis })
    }

    /// A saved outfit that may have blanks.
    pub(super) fn open(
        outfit: &'a OpenOutfit,
        person: Option<PersonId>,
        millis: i64,
    ) -> Result<Self, StoreError> {
        let features = json::features_text(&outfit.features)?;
        let articles = slot_ids(outfit);
        let digest = digest(outfit.customer.as_str(), articles.iter().copied(), &features);
        let (customer, origin) = (&outfit.customer, Origin::Saved);
        Ok(Self { customer, articles, split: None, features, digest, origin, person, millis })
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// A repetition of the outfit as an outfit of its own, because an import keeps repetitions. `times` counts the earlier
    /// ones, so that importing the same file again finds the same rows.
    pub(super) fn repeated(self, times: u32) -> Self {
        Self { digest: repeated_digest(self.digest, times), ..self }
    }
}

pub(super) fn repeated_digest(digest: [u8; 32], times: u32) -> [u8; 32] {
    Sha256::new_with_prefix(digest).chain_update(times.to_be_bytes()).finalize().into()
}

impl upsert::Row for OutfitRow<'_> {
    const INSERT: &'static str = "insert into outfits
        (digest, customer_id, articles, split, features, origin, person_id, created_at) values";
    const COLUMNS: usize = 8;
    const ON_CONFLICT: &'static str = "
        on conflict (digest) do update set
            split = excluded.split,
            revision = outfits.revision + 1
        where excluded.split is not null and outfits.split is distinct from excluded.split";
    const NAME: &'static str = "''";
    type Key = [u8; 32];

    fn key(&self) -> [u8; 32] {
        self.digest
    }

    fn bind(self, values: &mut AnyArguments) -> Result<(), sqlx::error::BoxDynError> {
        values.add(&self.digest[..])?;
        values.add(self.customer.as_str())?;
        values.add(json::text(&self.articles))?;
        values.add(self.split.map(Split::as_str))?;
        values.add(self.features)?;
        values.add(self.origin.as_str())?;
        values.add(self.person.map(|person| person.0))?;
        values.add(self.millis)
    }

    fn missing_reference() -> StoreError {
        StoreError::Conflict(Conflict::UnknownCustomer)
    }
}

/// The articles' ids, and an empty text for each blank.
pub(super) fn slot_ids(outfit: &OpenOutfit) -> Vec<&str> {
    outfit.slots.as_slice().iter().map(|slot| slot.article().map_or("", ArticleId::as_str)).collect()
}

/// Identifies an outfit. No field contains an unescaped control character, so NUL separates them.
pub(super) fn digest<'a>(
    customer: &'a str,
    articles: impl Iterator<Item = &'a str>,
    features: &'a str,
) -> [u8; 32] {
    let mut articles: Vec<&str> = articles.collect();
    articles.sort_unstable();
    let mut hash = Sha256::new();
    for field in std::iter::once(customer).chain(articles).chain([features]) {
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
    let outfit = Outfit::new(customer, articles, split, json::parse_features(&features)?)
        .map_err(|error| error.to_string())?;
    Ok(OutfitRecord {
        seq,
        outfit,
        origin: origin.parse()?,
        person: person.map(PersonId),
        created_at: Timestamp::from_millis(created_at),
    })
}

named!(
    Origin,
    "an origin is imported, saved or accepted",
    Imported = "imported",
    Saved = "saved",
    Accepted = "accepted",
);
