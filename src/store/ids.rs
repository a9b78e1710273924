//! Rewrites the ids of rows from before ids had one form.
//!
//! Migration 9 leaves a mark. The first program that opens the database takes it away and rewrites every id in the same
//! transaction. Two rows whose ids become one are merged: of two articles the one that has the id already stays, and so do
//! that customer's features, with those that only the other one has. Outfits and feedback of both are kept. An outfit keeps one
//! of two articles that are one now, and is deleted if too few are left.

use std::collections::HashSet;

use atelier_core::domain::{ArticleId, CustomerId, MIN_ARTICLES};
use sqlx::{AnyConnection, query, query_as, query_scalar};

use super::{
    Store, StoreError, articles, customers, json, outfits,
    pages::PAGE,
    revisions::{self, Changed},
};

const MARK: &str = "ids_to_normalise";

pub(super) async fn normalise(store: &Store) -> Result<(), StoreError> {
    if store.settings().get(MARK).await?.is_none() {
        return Ok(());
    }
    let mut transaction = store.write().await?;
    let taken = query("delete from settings where name = $1").bind(MARK).execute(&mut *transaction).await?;
    if taken.rows_affected() == 0 {
        // Another program took it while this one waited.
        return Ok(());
    }
    let articles = rewrite_articles(&mut transaction).await?;
    let customers = rewrite_customers(&mut transaction).await?;
    if articles > 0 {
        revisions::change_articles(&mut transaction, store.dialect, Changed::Everything).await?;
    }
    transaction.commit().await?;
    if articles + customers > 0 {
        tracing::info!(articles, customers, "ids are stored in NFC and without invisible characters now");
    }
    Ok(())
}

/// Ids that may not be in their one form. ASCII ids are.
async fn odd_ids(connection: &mut AnyConnection, sql: &'static str) -> Result<Vec<String>, StoreError> {
    Ok(query_scalar(sql).fetch_all(connection).await?)
}

async fn rewrite_articles(connection: &mut AnyConnection) -> Result<u64, StoreError> {
    let mut rewritten = 0;
    let odd = odd_ids(connection, "select id from articles where octet_length(id) > length(id)").await?;
    for id in odd {
        let normal = normal_article(&id);
        if normal == id {
            continue;
        }
        rewritten += 1;
        let row: (String, String) = query_as("select type, attributes from articles where id = $1")
            .bind(&id)
            .fetch_one(&mut *connection)
            .await?;
        let article = articles::parse((normal.clone(), row.0, row.1))?;
        query(
            "update articles set id = $2, name_key = $3
             where id = $1 and not exists (select 1 from articles where id = $2)",
        )
        .bind(&id)
        .bind(&normal)
        .bind(articles::name_key(&article))
        .execute(&mut *connection)
        .await?;
        query("delete from articles where id = $1").bind(&id).execute(&mut *connection).await?;
    }
    let odd =
        "select distinct article_id from feedback_events where octet_length(article_id) > length(article_id)";
    for id in odd_ids(connection, odd).await? {
        if let Ok(normal) = ArticleId::new(&id) {
            query("update feedback_events set article_id = $2 where article_id = $1 and article_id <> $2")
                .bind(&id)
                .bind(normal.as_str())
                .execute(&mut *connection)
                .await?;
        }
    }
    Ok(rewritten)
}

async fn rewrite_customers(connection: &mut AnyConnection) -> Result<u64, StoreError> {
    let odd = odd_ids(connection, "select id from customers where octet_length(id) > length(id)").await?;
    let moved: Vec<(String, String)> =
        odd.into_iter().map(|id| (normal_customer(&id), id)).filter(|(normal, id)| normal != id).collect();
    for (normal, id) in &moved {
        add_customer(connection, id, normal).await?;
    }
    // Outfits go to their new customers before the old ones go: the database deletes those of a deleted customer.
    rewrite_outfits(connection).await?;
    for (normal, id) in &moved {
        for sql in [
            "update feedback_events set customer_id = $2 where customer_id = $1",
            "update audit_log set customer_id = $2 where customer_id = $1",
        ] {
            query(sql).bind(id).bind(normal).execute(&mut *connection).await?;
        }
        query("delete from customers where id = $1").bind(id).execute(&mut *connection).await?;
    }
    Ok(moved.len() as u64)
}

/// Copies a customer to the new id, or adds their features to the customer who has it.
async fn add_customer(connection: &mut AnyConnection, id: &str, normal: &str) -> Result<(), StoreError> {
    let read = "select id, features from customers where id = $1";
    let (_, features): (String, String) = query_as(read).bind(id).fetch_one(&mut *connection).await?;
    let mut customer = customers::parse((normal.to_owned(), features))?;
    let existing: Option<(String, String)> =
        query_as(read).bind(normal).fetch_optional(&mut *connection).await?;
    if let Some(existing) = existing {
        customer.features = customer.features.overridden_by(customers::parse(existing)?.features);
        query("update customers set features = $2, name_key = $3, revision = revision + 1 where id = $1")
            .bind(normal)
            .bind(json::features_text(&customer.features)?)
            .bind(customers::name_key(&customer))
            .execute(connection)
            .await?;
        return Ok(());
    }
    query(
        "insert into customers (id, features, name_key, revision, created_at, updated_at)
         select $2, features, $3, revision, created_at, updated_at from customers where id = $1",
    )
    .bind(id)
    .bind(normal)
    .bind(customers::name_key(&customer))
    .execute(connection)
    .await?;
    Ok(())
}

async fn rewrite_outfits(connection: &mut AnyConnection) -> Result<(), StoreError> {
    let mut after = 0;
    loop {
        let rows: Vec<(i64, String, String, String)> = query_as(
            "select seq, customer_id, articles, features from outfits
             where seq > $1 and (octet_length(articles) > length(articles)
                 or octet_length(customer_id) > length(customer_id))
             order by seq limit $2",
        )
        .bind(after)
        .bind(i64::from(PAGE))
        .fetch_all(&mut *connection)
        .await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.0;
        for row in rows {
            rewrite_outfit(connection, row).await?;
        }
    }
}

/// What cannot be read stays as it is.
async fn rewrite_outfit(
    connection: &mut AnyConnection,
    (seq, customer, articles, features): (i64, String, String, String),
) -> Result<(), StoreError> {
    let normal_customer = normal_customer(&customer);
    let mut ids: Vec<String> = json::parse(&articles).unwrap_or_default();
    for id in &mut ids {
        *id = normal_article(id);
    }
    let stored = ids.len();
    let mut seen = HashSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    if ids.len() < MIN_ARTICLES && ids.len() < stored {
        // Without the articles that it has twice it is no outfit.
        query("delete from outfits where seq = $1").bind(seq).execute(connection).await?;
        return Ok(());
    }
    let normal_articles = if stored > 0 { json::text(&ids) } else { articles.clone() };
    if normal_articles == articles && normal_customer == customer {
        return Ok(());
    }
    let first = outfits::digest(&normal_customer, ids.iter().map(String::as_str), &features);
    for times in 0.. {
        let digest = if times == 0 { first } else { outfits::repeated_digest(first, times) };
        let done = query(
            "update outfits set customer_id = $2, articles = $3, digest = $4
             where seq = $1 and not exists (select 1 from outfits where digest = $4 and seq <> $1)",
        )
        .bind(seq)
        .bind(&normal_customer)
        .bind(&normal_articles)
        .bind(&digest[..])
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() > 0 {
            break;
        }
    }
    Ok(())
}

fn normal_article(id: &str) -> String {
    ArticleId::new(id).map_or_else(|_| replacement(id), |id| id.to_string())
}

fn normal_customer(id: &str) -> String {
    CustomerId::new(id).map_or_else(|_| replacement(id), |id| id.to_string())
}

/// An id in place of one that is none any more: one of invisible characters alone, say.
fn replacement(id: &str) -> String {
    let characters: Vec<String> = id.chars().take(16).map(|c| format!("{:x}", u32::from(c))).collect();
    format!("renamed-{}", characters.join("-"))
}
