//! Outfits as stylists keep them: with a name and a note, perhaps with blanks, changed in place, deleted and brought back,
//! and shown to the customer by a link.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    time::Duration,
};

use atelier_core::{
    domain::{Article, ArticleId, CustomerId, OpenOutfit, Slot, Slots, Split, Timestamp},
    named,
};
use futures_util::Stream;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use sqlx::{
    Any, AnyConnection, AssertSqlSafe, FromRow, Row,
    any::{AnyArguments, AnyRow},
    query::Query,
};

use super::outfits::{Origin, OutfitRow, digest, features_text, parse_slot, salted_digest, slot_ids};
use crate::{
    customers::customer_id,
    people::PersonId,
    platform::db::{
        Conflict, Entry, Name, Note, Put, Store, StoreError, TokenHash, json, pages,
        record::Record,
        search::{self, name_key},
        upsert,
    },
};

/// How long a deleted outfit can be brought back.
pub const KEPT: Duration = Duration::from_hours(24 * 30);

crate::platform::db::part! {
    /// The saved outfits of a [`Store`].
    SavedOutfits, saved_outfits
}

/// An outfit or a draft of one.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedOutfit {
    pub seq: i64,
    pub outfit: OpenOutfit,
    /// Whether it had blanks or too few articles when it was saved. An activation may change how many are enough.
    pub is_draft: bool,
    pub split: Option<Split>,
    pub name: Option<Name>,
    pub note: Note,
    pub origin: Origin,
    /// The name of the person who saved it, if a person did.
    pub author: Option<String>,
    pub created_at: Timestamp,
    /// When it was changed last, or created.
    pub changed_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
    /// When the customer's link expires, if there is one.
    pub link_until: Option<Timestamp>,
    /// Counts the changes.
    pub revision: i64,
    /// By slot, the name of the suggestion that a piece came from.
    pub suggested: BTreeMap<usize, String>,
    /// Text above the outfit at the customer's link.
    pub message: Note,
    /// The customer's answers there, the first one first.
    pub replies: Vec<Reply>,
    /// When they answered last, until a stylist has seen to it.
    pub replied_at: Option<Timestamp>,
    /// Its articles when it was saved, with the attributes that pages show.
    pub pieces: Vec<Article>,
}

/// A customer's answer to an outfit that they see by their link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// In milliseconds since 1970.
    pub at: i64,
    pub kind: ReplyKind,
    /// The piece that they dislike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub article: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

named! {
    "a reply likes, dislikes or asks"
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ReplyKind {
        Likes = "likes",
        Dislikes = "dislikes",
        Asks = "asks",
    }
}

/// The most replies to an outfit; the latest stay.
const REPLIES: usize = 50;

#[derive(Debug, Clone, Default)]
pub struct SavedFilter<'a> {
    /// Words that the name, the customer's id or the author's name contains.
    pub search: &'a str,
    /// All outfits of this customer, also imported ones.
    pub customer: Option<&'a CustomerId>,
    pub only_drafts: bool,
    /// Those that can be brought back, instead of the others.
    pub only_deleted: bool,
    /// Those whose customers answered, until a stylist has seen to it.
    pub only_replied: bool,
    pub by: Option<PersonId>,
}

/// Begins a statement that gives [`SavedOutfit`]s.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select seq, customer_id, articles, split, features, origin, name, note,
                (select people.name from people where people.id = person_id) as author,
                created_at, changed_at, deleted_at, link_expires_at, revision, draft, suggested, message,
                replies, replied_at, pieces
             from visible_outfits ",
            $rest
        )
    };
}
pub(crate) use select;

impl SavedOutfits<'_> {
    /// Stores an outfit or a draft, and gives its number. Outfits with the same customer, articles and features are the same:
    /// the second one changes nothing, but an imported one, and a draft that is now whole, become the person's.
    /// `Conflict` if there is no such customer.
    pub async fn save(
        self,
        outfit: &OpenOutfit,
        is_draft: bool,
        person: Option<PersonId>,
        now: Timestamp,
    ) -> Result<(i64, Put), StoreError> {
        let mut transaction = self.store.write().await?;
        if let Some(customer) = &outfit.customer {
            crate::customers::check_known(&mut transaction, customer, "").await?;
        }
        let author = match person {
            Some(person) => Some(crate::people::find_person(&mut transaction, person).await?.name),
            None => None,
        };
        let customer = outfit.customer.iter().map(CustomerId::as_str);
        let key = name_key(customer.chain(author.iter().map(Name::as_str)));
        let row = OutfitRow::saved((outfit, is_draft), person, &key, self.store.row_bytes, now.millis())?;
        let digest = row.digest();
        let mut put = upsert::write_one(&mut transaction, self.store.dialect, row).await?;
        let taken_over = sqlx::query(
            "update outfits set origin = 'saved', person_id = $2, name_key = $3, created_at = $4, changed_at = $4,
                draft = draft * $5, revision = revision + 1
             where digest = $1 and (origin = 'imported' or draft > $5)",
        )
        .bind(&digest[..])
        .bind(person.map(|person| person.0))
        .bind(&key)
        .bind(now.millis())
        .bind(i64::from(is_draft))
        .execute(&mut *transaction)
        .await?;
        if put == Put::Unchanged && taken_over.rows_affected() > 0 {
            put = Put::Changed;
        }
        let seq: i64 = sqlx::query_scalar("select seq from outfits where digest = $1")
            .bind(&digest[..])
            .fetch_one(&mut *transaction)
            .await?;
        if put != Put::Unchanged {
            let (subject, details) = (seq.to_string(), json!({"articles": outfit.slots.articles().count()}));
            let entry = Entry::new("outfit.save", &subject, details).about(outfit.customer.as_ref());
            entry.write(&mut transaction, self.store.author, now).await?;
        }
        transaction.commit().await?;
        Ok((seq, put))
    }

    /// An outfit, even a deleted one.
    pub async fn get(self, seq: i64) -> Result<Option<SavedOutfit>, StoreError> {
        Ok(sqlx::query_as(select!("where seq = $1")).bind(seq).fetch_optional(self.store.readers()?).await?)
    }

    /// The customer's outfit with the same articles and features, unless it is deleted.
    pub async fn same_as(self, outfit: &OpenOutfit) -> Result<Option<i64>, StoreError> {
        let seq = sqlx::query_scalar("select seq from visible_outfits where digest = $1")
            .bind(&own_digest(outfit, 0)?[..])
            .fetch_optional(self.store.readers()?)
            .await?;
        Ok(seq)
    }

    /// The outfit of a customer's link, which may have run out.
    pub async fn by_link(self, link: &TokenHash) -> Result<Option<SavedOutfit>, StoreError> {
        Ok(sqlx::query_as(select!("where link_hash = $1 and deleted_at is null"))
            .bind(link.bytes())
            .fetch_optional(self.store.readers()?)
            .await?)
    }

    /// The customer's outfits after the outfit `after` (0 for the first ones), read in parts of up to `part` rows.
    pub fn for_customer(
        self,
        customer: &CustomerId,
        with_drafts: bool,
        after: i64,
        part: u32,
    ) -> impl Stream<Item = Result<SavedOutfit, StoreError>> + Send + use<> {
        const SQL: &str = select!(
            "where customer_id = $1 and seq > $2 and draft <= $4 and deleted_at is null order by seq limit $3"
        );
        let (customer, draft) = (customer.clone(), i64::from(with_drafts));
        let query = move |after: i64| {
            sqlx::query(SQL).bind(customer.to_string()).bind(after).bind(i64::from(part)).bind(draft)
        };
        let seq = |row: &AnyRow| row.try_get("seq");
        pages::stream(self.store, after, part, query, seq, |row| Ok(SavedOutfit::from_row(row)?))
    }

    /// The customer's latest outfits and drafts, the latest first.
    pub async fn latest_for(self, customer: &CustomerId, n: u32) -> Result<Vec<SavedOutfit>, StoreError> {
        Ok(sqlx::query_as(select!(
            "where customer_id = $1 and deleted_at is null order by seq desc limit $2"
        ))
        .bind(customer.as_str())
        .bind(i64::from(n))
        .fetch_all(self.store.readers()?)
        .await?)
    }

    /// The saved outfits of all customers without the first `skip`, up to `n`, the latest change first; and how many there are.
    pub async fn list(
        self,
        filter: &SavedFilter<'_>,
        skip: u32,
        n: u32,
    ) -> Result<(Vec<SavedOutfit>, u64), StoreError> {
        let words = search::patterns(filter.search);
        let condition = format!(
            "where {} and deleted_at is {}{} and draft >= $1 and (person_id = $2 or $2 = 0) {}",
            if filter.customer.is_some() { "customer_id = $3" } else { "origin <> 'imported' and $3 = ''" },
            if filter.only_deleted { "not null" } else { "null" },
            if filter.only_replied { " and replied_at is not null" } else { "" },
            search::condition(4, words.len())
        );
        let (count, page) = (
            format!("select count(*) from visible_outfits {condition}"),
            format!("{} {condition} order by changed_at desc, seq desc limit {n} offset {skip}", select!("")),
        );
        let mut counting = sqlx::query_scalar(AssertSqlSafe(count));
        let mut listing = sqlx::query_as(AssertSqlSafe(page));
        let (least, person) = (i64::from(filter.only_drafts), filter.by.map_or(0, |person| person.0));
        for number in [least, person] {
            (counting, listing) = (counting.bind(number), listing.bind(number));
        }
        let customer = filter.customer.map_or("", CustomerId::as_str);
        (counting, listing) = (counting.bind(customer), listing.bind(customer));
        for word in words {
            (counting, listing) = (counting.bind(word.clone()), listing.bind(word));
        }
        let count: i64 = counting.persistent(false).fetch_one(self.store.readers()?).await?;
        let found = listing.persistent(false).fetch_all(self.store.readers()?).await?;
        Ok((found, count.unsigned_abs()))
    }

    /// Customers whose last saved outfit is the oldest, with its time.
    pub async fn longest_ago(self, n: u32) -> Result<Vec<(CustomerId, Timestamp)>, StoreError> {
        self.customers(
            "select customer_id, max(created_at) from outfits
             where origin <> 'imported' and deleted_at is null and draft = 0
             group by customer_id order by max(created_at), customer_id limit $1",
            n,
        )
        .await
    }

    /// Customers without a saved outfit, and when they were added. The newest come first.
    pub async fn never(self, n: u32) -> Result<Vec<(CustomerId, Timestamp)>, StoreError> {
        self.customers(
            "select id, created_at from visible_customers where not exists (
                select 1 from outfits
                where customer_id = visible_customers.id and origin <> 'imported' and deleted_at is null and draft = 0)
             order by created_at desc, id desc limit $1",
            n,
        )
        .await
    }

    async fn customers(self, sql: &'static str, n: u32) -> Result<Vec<(CustomerId, Timestamp)>, StoreError> {
        let rows: Vec<(String, i64)> =
            sqlx::query_as(sql).bind(i64::from(n)).fetch_all(self.store.readers()?).await?;
        rows.into_iter().map(|(id, at)| Ok((customer_id(id)?, Timestamp::from_millis(at)))).collect()
    }

    /// Changes an outfit in place, if it has this revision. Its customer may be another one.
    /// `NotFound` if there is none; `Conflict` if it was imported or has another revision, there is no such customer, or the customer
    /// has the changed outfit already.
    pub async fn change(
        self,
        seq: i64,
        revision: i64,
        edit: impl FnOnce(&mut SavedOutfit) + Send,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        let before = self.lock(&mut transaction, seq).await?;
        if before.origin == Origin::Imported {
            return Err(StoreError::Conflict(Conflict::ImportedOutfit));
        }
        let mut after = before.clone();
        edit(&mut after);
        // A double click sends a change twice.
        if after == before {
            return Ok(());
        }
        if before.revision != revision || before.deleted_at.is_some() {
            return Err(StoreError::Conflict(Conflict::OutfitChanged));
        }
        let outfit = &after.outfit;
        let (features, ids) = (features_text(&outfit.features, self.store.row_bytes)?, slot_ids(outfit));
        let named = after.name.as_ref().map_or("", Name::as_str);
        let author = after.author.as_deref();
        let customer = outfit.customer.as_ref();
        // With another name it is still the same.
        let digest = (*outfit != before.outfit).then(|| own_digest(outfit, seq)).transpose()?;
        if let Some(customer) = customer.filter(|_| after.outfit.customer != before.outfit.customer) {
            crate::customers::check_known(&mut transaction, customer, "").await?;
        }
        let key = name_key([named].into_iter().chain(customer.map(CustomerId::as_str)).chain(author));
        sqlx::query(
            "update outfits set articles = $2, features = $3, digest = coalesce($4, digest), draft = $5, name = $6, note = $7, name_key = $8,
                changed_at = $9, customer_id = $10, message = $11, revision = revision + 1
             where seq = $1",
        )
        .bind(seq)
        .bind(json::text(&ids))
        .bind(&features)
        .bind(digest.as_ref().map(|digest| &digest[..]))
        .bind(i64::from(after.is_draft))
        .bind(named)
        .bind(after.note.as_str())
        .bind(key)
        .bind(now.millis())
        .bind(customer.map(CustomerId::as_str))
        .bind(after.message.as_str())
        .execute(&mut *transaction)
        .await
        .map_err(StoreError::for_missing_reference(StoreError::Conflict(Conflict::UnknownCustomer)))?;
        let (subject, details) = (seq.to_string(), changes(&before, &after));
        if before.outfit.customer.is_none() {
            // The draft had no customer. Its earlier entries in the audit log now belong to this one.
            sqlx::query(
                "update audit_log set customer_id = $2
                 where customer_id is null and subject = $1 and substr(action, 1, 7) = 'outfit.'",
            )
            .bind(&subject)
            .bind(customer.map(CustomerId::as_str))
            .execute(&mut *transaction)
            .await?;
        }
        let entry = Entry::new("outfit.change", &subject, details).about(customer);
        self.store.commit(transaction, &entry, now).await
    }

    /// Keeps what its articles are now.
    pub async fn keep_pieces(self, seq: i64, articles: &[Article]) -> Result<(), StoreError> {
        let columns = |article: &Article| {
            (article.id.to_string(), article.kind().to_owned(), article.attributes().clone())
        };
        let pieces: Vec<Piece> = articles.iter().map(columns).collect();
        let update =
            sqlx::query("update outfits set pieces = $2 where seq = $1").bind(seq).bind(json::text(&pieces));
        self.store.execute(update).await.map(drop)
    }

    /// Keeps which suggestions the pieces came from.
    pub async fn keep_suggested(self, seq: i64, names: &BTreeMap<usize, String>) -> Result<(), StoreError> {
        let update =
            sqlx::query("update outfits set suggested = $2 where seq = $1").bind(seq).bind(json::text(names));
        self.store.execute(update).await.map(drop)
    }

    /// Deletes an outfit, which can be brought back for [`KEPT`], and withdraws its link.
    /// `NotFound` if there is none, and `Conflict` if it was imported.
    pub async fn delete(self, seq: i64, now: Timestamp) -> Result<(), StoreError> {
        self.update(seq, "outfit.delete", now, |outfit| {
            if outfit.origin == Origin::Imported {
                return Err(StoreError::Conflict(Conflict::ImportedOutfit));
            }
            // A number is used once, so no other outfit has this digest.
            let digest = Sha256::new_with_prefix(own_digest(&outfit.outfit, seq)?)
                .chain_update("deleted")
                .chain_update(seq.to_be_bytes());
            let update = sqlx::query(
                "update outfits set deleted_at = $2, digest = $3, link_hash = null, link_expires_at = null,
                    revision = revision + 1
                 where seq = $1",
            );
            let update = update.bind(seq).bind(now.millis()).bind(digest.finalize().to_vec());
            Ok(outfit.deleted_at.is_none().then_some(update))
        })
        .await
    }

    /// Removes for good what was deleted longer than [`KEPT`] ago, and counts it.
    pub async fn remove_deleted(self, now: Timestamp) -> Result<u64, StoreError> {
        let over = sqlx::query("delete from outfits where deleted_at < $1").bind((now - KEPT).millis());
        self.store.execute(over).await
    }

    /// Brings a deleted outfit back.
    /// `NotFound` if there is none, and `Conflict` if it was saved again since then.
    pub async fn restore(self, seq: i64, now: Timestamp) -> Result<(), StoreError> {
        self.update(seq, "outfit.restore", now, |outfit| {
            let update = sqlx::query(
                "update outfits set deleted_at = null, digest = $2, revision = revision + 1 where seq = $1",
            );
            let update = update.bind(seq).bind(own_digest(&outfit.outfit, seq)?.to_vec());
            Ok(outfit.deleted_at.is_some().then_some(update))
        })
        .await
    }

    /// Keeps what the customer says about an outfit, for the stylists' queue.
    /// `NotFound` if there is none, or if it is deleted.
    pub async fn reply(self, seq: i64, reply: Reply, now: Timestamp) -> Result<(), StoreError> {
        self.update(seq, "outfit.reply", now, |outfit| {
            if outfit.deleted_at.is_some() {
                return Err(StoreError::NotFound("outfit"));
            }
            // A double click sends a reply twice.
            if outfit.replies.last().is_some_and(|last| Reply { at: reply.at, ..last.clone() } == reply) {
                return Ok(None);
            }
            let mut replies = outfit.replies.clone();
            replies.push(reply);
            let first = replies.len().saturating_sub(REPLIES);
            let update = sqlx::query("update outfits set replies = $2, replied_at = $3 where seq = $1");
            Ok(Some(update.bind(seq).bind(json::text(&&replies[first..])).bind(now.millis())))
        })
        .await
    }

    /// Takes the outfit out of the queue of replies, unless another one came after `seen`.
    pub async fn answer(self, seq: i64, seen: Timestamp, now: Timestamp) -> Result<(), StoreError> {
        self.update(seq, "outfit.answer", now, |outfit| {
            let update = sqlx::query("update outfits set replied_at = null where seq = $1").bind(seq);
            Ok((outfit.replied_at == Some(seen)).then_some(update))
        })
        .await
    }

    /// Sets the customer's link, which replaces an earlier one, or withdraws it.
    /// `NotFound` if there is none, or if it is deleted.
    pub async fn set_link(
        self,
        seq: i64,
        link: Option<(&TokenHash, Timestamp)>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let action = if link.is_some() { "outfit.share" } else { "outfit.withdraw" };
        self.update(seq, action, now, |outfit| {
            if outfit.deleted_at.is_some() {
                return Err(StoreError::NotFound("outfit"));
            }
            let update =
                sqlx::query("update outfits set link_hash = $2, link_expires_at = $3 where seq = $1")
                    .bind(seq)
                    .bind(link.map(|(hash, _)| hash.bytes().to_vec()))
                    .bind(link.map(|(_, until)| until.millis()));
            Ok((link.is_some() || outfit.link_until.is_some()).then_some(update))
        })
        .await
    }

    /// Reads an outfit that no other transaction changes before this one ends.
    async fn lock(self, connection: &mut AnyConnection, seq: i64) -> Result<SavedOutfit, StoreError> {
        let sql = format!("{}{}", select!("where seq = $1"), self.store.dialect.for_update());
        let found = sqlx::query_as(AssertSqlSafe(sql)).bind(seq).fetch_optional(connection).await?;
        found.ok_or(StoreError::NotFound("outfit"))
    }

    /// Changes an outfit by a statement, if there is one, and keeps that in the audit log.
    async fn update(
        self,
        seq: i64,
        action: &str,
        now: Timestamp,
        statement: impl FnOnce(&SavedOutfit) -> Result<Option<Query<'static, Any, AnyArguments>>, StoreError>
        + Send,
    ) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        let outfit = self.lock(&mut transaction, seq).await?;
        let Some(statement) = statement(&outfit)? else { return Ok(()) };
        statement.execute(&mut *transaction).await?;
        let subject = seq.to_string();
        let entry = Entry::new(action, &subject, json!({})).about(outfit.outfit.customer.as_ref());
        self.store.commit(transaction, &entry, now).await
    }
}

/// An article as an outfit keeps it: its id, its type and its attributes.
type Piece = (String, String, Map<String, Value>);

fn parse_pieces(pieces: &str) -> Result<Vec<Article>, String> {
    let article = |(id, kind, attributes): Piece| {
        let id = ArticleId::new(id).map_err(|error| error.to_string())?;
        Article::new(id, kind, attributes).map_err(|error| error.to_string())
    };
    json::parse::<Vec<Piece>>(pieces)?.into_iter().map(article).collect()
}

/// The digest of a saved outfit. Each draft without a customer has its own.
fn own_digest(outfit: &OpenOutfit, seq: i64) -> Result<[u8; 32], StoreError> {
    let features = json::features_text(&outfit.features)?;
    let digest = digest(outfit.customer.as_ref(), slot_ids(outfit).into_iter(), &features);
    Ok(if outfit.customer.is_some() { digest } else { salted_digest(digest, "outfit", seq) })
}

/// A change's effects, for the history.
fn changes(before: &SavedOutfit, after: &SavedOutfit) -> serde_json::Value {
    let ids = |outfit: &SavedOutfit| -> HashSet<String> {
        outfit.outfit.slots.articles().map(ToString::to_string).collect()
    };
    let (was, is) = (ids(before), ids(after));
    let mut details = json!({});
    for (name, mut articles) in [
        ("added", is.difference(&was).cloned().collect::<Vec<_>>()),
        ("removed", was.difference(&is).cloned().collect()),
    ] {
        articles.sort_unstable();
        if !articles.is_empty() {
            details[name] = articles.into();
        }
    }
    if before.name != after.name {
        details["name"] = after.name.as_ref().map(Name::as_str).into();
    }
    if before.outfit.customer != after.outfit.customer {
        details["given"] = true.into();
    }
    for (name, is_changed) in
        [("note", before.note != after.note), ("message", before.message != after.message)]
    {
        if is_changed {
            details[name] = true.into();
        }
    }
    let (was, is) = (&before.outfit.features, &after.outfit.features);
    let named: BTreeSet<&str> = was.iter().chain(is.iter()).map(|(name, _)| name).collect();
    let changed: Vec<&str> = named.into_iter().filter(|name| was.get(name) != is.get(name)).collect();
    if !changed.is_empty() {
        details["features"] = changed.into();
    }
    details
}

impl FromRow<'_, AnyRow> for SavedOutfit {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let seq = row.try_get("seq")?;
        let row = Record::new(row, "outfits", &seq);
        let slots: Vec<Slot> = row.parse("articles", |articles: String| {
            json::parse::<Vec<String>>(&articles)?.into_iter().map(parse_slot).collect::<Result<_, _>>()
        })?;
        Ok(Self {
            seq,
            outfit: OpenOutfit {
                customer: row.parse_optional("customer_id", |id: &str| CustomerId::new(id))?,
                slots: Slots::new(slots).map_err(|error| row.damaged(&error))?,
                features: row.parse("features", json::parse_features)?,
            },
            is_draft: row.get::<i64>("draft")? > 0,
            split: row.parse_optional("split", str::parse)?,
            name: row.parse("name", |name: &str| (!name.is_empty()).then(|| Name::new(name)).transpose())?,
            note: row.parse("note", Note::new)?,
            origin: row.parse("origin", str::parse)?,
            author: row.get("author")?,
            created_at: row.time("created_at")?,
            changed_at: row.time("changed_at")?,
            deleted_at: row.optional_time("deleted_at")?,
            link_until: row.optional_time("link_expires_at")?,
            revision: row.get("revision")?,
            suggested: row.parse("suggested", |names: String| json::parse(&names))?,
            message: row.parse("message", Note::new)?,
            replies: row.parse("replies", |replies: String| json::parse(&replies))?,
            replied_at: row.optional_time("replied_at")?,
            pieces: row.parse("pieces", parse_pieces)?,
        })
    }
}
