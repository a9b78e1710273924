//! What was suggested to whom, for as long as feedback on it is taken.

use sqlx::{Any, query::QueryAs};

use super::{Conflict, Store, StoreError, Timestamp, json, text::short_line};
use crate::domain::{ArticleId, CustomerId};

/// The completions of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct Completions<'a> {
    pub(super) store: &'a Store,
}

/// An answered request to complete an outfit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    pub id: String,
    pub release: String,
    pub method: String,
    /// The experiment's arm, if one was running.
    pub arm: Option<String>,
    /// None if it was for nobody known, and once the customer is erased.
    pub customer: Option<CustomerId>,
    /// The outfit that was asked about, a blank being `None`.
    pub outfit: Vec<Option<ArticleId>>,
    pub suggestions: Vec<Suggested>,
    pub at: Timestamp,
}

/// One article that was suggested for one blank. Blanks that were filled jointly may have an article at
/// several ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggested {
    /// The blank's place in the outfit, from 0.
    pub slot: u32,
    /// Its place among the suggestions, from 1.
    pub rank: u32,
    pub article: ArticleId,
}

impl Completions<'_> {
    /// # Errors
    /// Among others if there is no such customer (`Conflict`).
    pub async fn record(self, completion: &Completion) -> Result<(), StoreError> {
        let Completion { id, release, method, arm, customer, outfit, suggestions, at } = completion;
        let outfit: Vec<Option<&str>> =
            outfit.iter().map(|slot| slot.as_ref().map(ArticleId::as_str)).collect();
        let suggestions: Vec<(u32, u32, &str)> =
            suggestions.iter().map(|one| (one.slot, one.rank, one.article.as_str())).collect();
        let mut transaction = self.store.write().await?;
        sqlx::query(
            "insert into completions (id, release, method, arm, customer_id, outfit, suggestions, at)
             values ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(short_line("a completion's id", id)?)
        .bind(short_line("a release", release)?)
        .bind(short_line("a method", method)?)
        .bind(arm.as_deref().map(|arm| short_line("an arm", arm)).transpose()?)
        .bind(customer.as_ref().map(CustomerId::as_str))
        .bind(json::text(&outfit))
        .bind(json::text(&suggestions))
        .bind(at.millis())
        .execute(&mut *transaction)
        .await
        .map_err(StoreError::naming(StoreError::Conflict(Conflict::UnknownCustomer)))?;
        transaction.commit().await?;
        Ok(())
    }

    pub async fn get(self, id: &str) -> Result<Option<Completion>, StoreError> {
        let id = short_line("a completion's id", id)?;
        let query = sqlx::query_as(
            "select id, release, method, arm, customer_id, outfit, suggestions, at from completions
             where id = $1",
        );
        Ok(self.read(query.bind(id)).await?.pop())
    }

    /// All that are about one customer, in the order of time.
    pub async fn of_customer(self, customer: &CustomerId) -> Result<Vec<Completion>, StoreError> {
        let query = sqlx::query_as(
            "select id, release, method, arm, customer_id, outfit, suggestions, at from completions
             where customer_id = $1 order by at, id",
        );
        self.read(query.bind(customer.as_str())).await
    }

    /// Up to `n` completions for known customers of which something was accepted or bought, in the order of
    /// their ids, after the one called `after` (empty: from the first).
    pub async fn accepted(self, after: &str, n: u32) -> Result<Vec<Completion>, StoreError> {
        let query = sqlx::query_as(
            "select id, release, method, arm, customer_id, outfit, suggestions, at from completions
             where id > $1 and customer_id is not null and exists (
                select 1 from feedback_events
                where completion_id = completions.id and kind in ('accepted', 'bought'))
             order by id limit $2",
        );
        self.read(query.bind(short_line("a completion's id", after)?).bind(i64::from(n))).await
    }

    /// Forgets the completions before that moment, and says how many. Feedback on them stays.
    pub async fn delete_before(self, moment: Timestamp) -> Result<u64, StoreError> {
        let mut transaction = self.store.write().await?;
        let deleted = sqlx::query("delete from completions where at < $1")
            .bind(moment.millis())
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(deleted.rows_affected())
    }

    async fn read(self, query: Query<'_>) -> Result<Vec<Completion>, StoreError> {
        query.fetch_all(&self.store.readers).await?.into_iter().map(completion).collect()
    }
}

type Query<'q> = QueryAs<'q, Any, Columns, sqlx::any::AnyArguments>;

type Columns = (String, String, String, Option<String>, Option<String>, String, String, i64);

fn completion(row: Columns) -> Result<Completion, StoreError> {
    let id = row.0.clone();
    parse(row).map_err(|reason| StoreError::Damaged { table: "completions", id, reason })
}

fn parse(
    (id, release, method, arm, customer, outfit, suggestions, at): Columns,
) -> Result<Completion, String> {
    let article = |id: String| ArticleId::new(id).map_err(|error| error.to_string());
    let outfit = json::parse::<Vec<Option<String>>>(&outfit)?;
    let suggestions = json::parse::<Vec<(u32, u32, String)>>(&suggestions)?;
    Ok(Completion {
        id,
        release,
        method,
        arm,
        customer: customer.map(CustomerId::new).transpose().map_err(|error| error.to_string())?,
        outfit: outfit.into_iter().map(|slot| slot.map(article).transpose()).collect::<Result<_, _>>()?,
        suggestions: suggestions
            .into_iter()
            .map(|(slot, rank, id)| Ok(Suggested { slot, rank, article: article(id)? }))
            .collect::<Result<_, String>>()?,
        at: Timestamp::from_millis(at),
    })
}
