//! Complete outfits, imported or saved, as training, exports and pages of figures read them. The catalogue may no longer
//! have their articles. `saved_outfits.rs` has what stylists work with: names, drafts, deleted outfits.

use atelier_core::{
    domain::{ArticleId, CustomerId, Features, OpenOutfit, Outfit, Slot, Split, Timestamp},
    named,
};
use futures_util::Stream;
use serde_json::json;
use sha2::{Digest, Sha256};
use sqlx::{
    AnyConnection, Arguments, FromRow, Row,
    any::{AnyArguments, AnyRow},
};

use super::saved_outfits::{SavedOutfit, select};
use crate::{
    customers::customer_id,
    people::PersonId,
    platform::db::{
        Conflict, Entry, Store, StoreError, json,
        pages::{self, PART},
        record::Record,
        upsert,
    },
};

crate::platform::db::part! {
    /// The complete outfits of a [`Store`].
    Outfits, outfits
}

/// A stored outfit without blanks.
#[derive(Debug, Clone, PartialEq)]
pub struct OutfitRecord {
    /// Numbers outfits in the order of arrival, and is the cursor of lists.
    pub seq: i64,
    pub outfit: Outfit,
    pub origin: Origin,
    /// When it was saved. An imported outfit may be of any time.
    pub saved_at: Option<Timestamp>,
}

named! {
    "an origin is imported or saved"
    /// Where an outfit came from.
    #[derive(Hash)]
    pub enum Origin {
        Imported = "imported",
        Saved = "saved",
    }
}

impl Outfits<'_> {
    pub async fn get(self, seq: i64) -> Result<Option<OutfitRecord>, StoreError> {
        Ok(sqlx::query_as(select!("where seq = $1 and draft = 0 and deleted_at is null"))
            .bind(seq)
            .fetch_optional(self.store.readers()?)
            .await?)
    }

    pub async fn first(self, n: u32) -> Result<Vec<OutfitRecord>, StoreError> {
        Ok(sqlx::query_as(AFTER).bind(0_i64).bind(i64::from(n)).fetch_all(self.store.readers()?).await?)
    }

    /// Up to `n` of the customer's outfits after the outfit `after` (0 for the first ones).
    pub async fn for_customer(
        self,
        customer: &CustomerId,
        after: i64,
        n: u32,
    ) -> Result<Vec<OutfitRecord>, StoreError> {
        Ok(sqlx::query_as(select!(
            "where customer_id = $1 and seq > $2 and draft = 0 and deleted_at is null order by seq limit $3"
        ))
        .bind(customer.as_str())
        .bind(after)
        .bind(i64::from(n))
        .fetch_all(self.store.readers()?)
        .await?)
    }

    /// Deletes an outfit or a draft for good. False if there is none.
    pub async fn delete(self, seq: i64, now: Timestamp) -> Result<bool, StoreError> {
        let mut transaction = self.store.write().await?;
        let deleted: Option<(Option<String>, String, String, Vec<u8>)> = sqlx::query_as(
            "delete from outfits where seq in (select seq from visible_outfits where seq = $1) and deleted_at is null
             returning customer_id, articles, features, digest",
        )
        .bind(seq)
        .fetch_optional(&mut *transaction)
        .await?;
        let Some((customer, articles, features, freed)) = deleted else { return Ok(false) };
        let damaged = |reason| StoreError::Damaged { table: "outfits", id: seq.to_string(), reason };
        let articles: Vec<String> = json::parse(&articles).map_err(damaged)?;
        let (subject, customer) = (seq.to_string(), customer.map(customer_id).transpose()?);
        let first = digest(customer.as_ref(), articles.iter().map(String::as_str), &features);
        close_gap(&mut transaction, first, &freed).await?;
        let entry = Entry::new("outfit.delete", &subject, json!({})).about(customer.as_ref());
        self.store.commit(transaction, &entry, now).await?;
        Ok(true)
    }

    pub async fn count(self) -> Result<u64, StoreError> {
        self.store.count("select count(*) from visible_outfits where draft = 0 and deleted_at is null").await
    }

    /// Every outfit in order of arrival, read in parts as needed.
    pub fn all(self) -> impl Stream<Item = Result<OutfitRecord, StoreError>> + Send + use<> {
        let query = |after: i64| sqlx::query(AFTER).bind(after).bind(i64::from(PART));
        let seq = |row: &AnyRow| row.try_get("seq");
        pages::stream(self.store, 0, PART, query, seq, |row| Ok(OutfitRecord::from_row(row)?))
    }
}

const AFTER: &str = select!("where seq > $1 and draft = 0 and deleted_at is null order by seq limit $2");

impl FromRow<'_, AnyRow> for OutfitRecord {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let SavedOutfit { seq, outfit, split, origin, created_at, .. } = SavedOutfit::from_row(row)?;
        let OpenOutfit { customer, slots, features } = outfit;
        let articles = slots.articles().cloned().collect();
        // An outfit that is marked as no draft has a customer and no blanks.
        let record = Record::new(row, "outfits", &seq);
        let customer = customer.ok_or_else(|| record.damaged(&"it is no draft, and has no customer"))?;
        let outfit =
            Outfit::new(customer, articles, split, features).map_err(|error| record.damaged(&error))?;
        let saved_at = (origin == Origin::Saved).then_some(created_at);
        Ok(Self { seq, outfit, origin, saved_at })
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

pub(crate) struct OutfitRow<'a> {
    customer: Option<&'a CustomerId>,
    /// Empty ids are blanks.
    articles: Vec<&'a str>,
    is_draft: bool,
    split: Option<Split>,
    features: String,
    digest: [u8; 32],
    origin: Origin,
    person: Option<PersonId>,
    name_key: &'a str,
    millis: i64,
    import: i64,
}

impl<'a> OutfitRow<'a> {
    pub(crate) fn imported(
        outfit: &'a Outfit,
        row_bytes: u32,
        millis: i64,
        import: i64,
    ) -> Result<Self, StoreError> {
        let articles = outfit.articles().iter().map(ArticleId::as_str).collect();
        let features = features_text(&outfit.features, row_bytes)?;
        let row = Self::new(Some(&outfit.customer), articles, features, Origin::Imported, millis);
        Ok(Self { split: outfit.split, import, ..row })
    }

    pub(crate) fn saved(
        (outfit, is_draft): (&'a OpenOutfit, bool),
        person: Option<PersonId>,
        name_key: &'a str,
        row_bytes: u32,
        millis: i64,
    ) -> Result<Self, StoreError> {
        let features = features_text(&outfit.features, row_bytes)?;
        let mut row = Self::new(outfit.customer.as_ref(), slot_ids(outfit), features, Origin::Saved, millis);
        if outfit.customer.is_none() {
            // Two people may begin with the same articles.
            row.digest = salted_digest(row.digest, "person", person.map_or(0, |person| person.0));
        }
        Ok(Self { is_draft, person, name_key, ..row })
    }

    fn new(
        customer: Option<&'a CustomerId>,
        articles: Vec<&'a str>,
        features: String,
        origin: Origin,
        millis: i64,
    ) -> Self {
        let digest = digest(customer, articles.iter().copied(), &features);
        let (is_draft, split, person, name_key, import) = (false, None, None, "", 0);
        Self {
            customer,
            articles,
            is_draft,
            split,
            features,
            digest,
            origin,
            person,
            name_key,
            millis,
            import,
        }
    }

    pub(crate) fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// A repetition of the outfit as an outfit of its own, because an import keeps repetitions. `times` counts the earlier
    /// ones, so that importing the same file again finds the same rows.
    pub(crate) fn repeated(self, times: u32) -> Self {
        Self { digest: repeated_digest(self.digest, times), ..self }
    }
}

pub(crate) fn features_text(features: &Features, row_bytes: u32) -> Result<String, StoreError> {
    let features = json::features_text(features)?;
    json::check_row("the outfit", features.len(), row_bytes)?;
    Ok(features)
}

/// The digest of a draft without a customer. It differs from those of other drafts of the same articles.
pub(crate) fn salted_digest(digest: [u8; 32], of: &str, number: i64) -> [u8; 32] {
    Sha256::new_with_prefix(digest).chain_update(of).chain_update(number.to_be_bytes()).finalize().into()
}

fn repeated_digest(digest: [u8; 32], times: u32) -> [u8; 32] {
    Sha256::new_with_prefix(digest).chain_update(times.to_be_bytes()).finalize().into()
}

impl upsert::Row for OutfitRow<'_> {
    const INSERT: &'static str = "insert into outfits (digest, customer_id, articles, draft, split, features, origin, \
         person_id, name_key, created_at, changed_at, import) values";
    const COLUMNS: usize = 12;
    // A saved outfit has no split, and takes one that the running import added.
    const ON_CONFLICT: &'static str = "
        on conflict (digest) do update set
            split = case when excluded.split = '' then outfits.split else excluded.split end,
            old_split = case when excluded.import = 0 then null
                when outfits.import = excluded.import then outfits.old_split
                else outfits.split end,
            import = excluded.import,
            revision = case when excluded.import = 0 then 1 else outfits.revision + 1 end
        where excluded.split not in ('', outfits.split)
            or excluded.import = 0 and outfits.import = (select number from running_import)
                and outfits.old_split is null";
    const NAME: &'static str = "''";
    type Key = [u8; 32];

    fn key(&self) -> [u8; 32] {
        self.digest
    }

    fn bind(self, values: &mut AnyArguments) -> Result<(), sqlx::error::BoxDynError> {
        values.add(&self.digest[..])?;
        values.add(self.customer.map(CustomerId::as_str))?;
        values.add(json::text(&self.articles))?;
        values.add(i64::from(self.is_draft))?;
        values.add(self.split.map_or("", Split::as_str))?;
        values.add(self.features)?;
        values.add(self.origin.as_str())?;
        values.add(self.person.map(|person| person.0))?;
        values.add(self.name_key)?;
        values.add(self.millis)?;
        values.add(self.millis)?;
        values.add(self.import)
    }

    fn missing_reference() -> StoreError {
        StoreError::Conflict(Conflict::UnknownCustomer)
    }
}

/// The articles' ids, and an empty text for each blank.
pub(crate) fn slot_ids(outfit: &OpenOutfit) -> Vec<&str> {
    outfit.slots.as_slice().iter().map(|slot| slot.article().map_or("", ArticleId::as_str)).collect()
}

/// The reverse of [`slot_ids`], for one slot.
pub(crate) fn parse_slot(id: String) -> Result<Slot, String> {
    if id.is_empty() {
        return Ok(Slot::Blank);
    }
    ArticleId::new(id).map(Slot::Article).map_err(|error| error.to_string())
}

/// Identifies an outfit. No field contains an unescaped control character, so NUL separates them.
pub(crate) fn digest<'a>(
    customer: Option<&'a CustomerId>,
    articles: impl Iterator<Item = &'a str>,
    features: &'a str,
) -> [u8; 32] {
    let mut articles: Vec<&str> = articles.collect();
    articles.sort_unstable();
    let mut hash = Sha256::new();
    // No id is empty.
    let customer = customer.map_or("", CustomerId::as_str);
    for field in std::iter::once(customer).chain(articles).chain([features]) {
        hash.update(field);
        hash.update([0]);
    }
    hash.finalize().into()
}
