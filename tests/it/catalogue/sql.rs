use atelier::{catalogue::ArticleFilter, platform::db::Store};
use atelier_core::domain::{Article, ArticleId};
use serde_json::json;
use sqlx::AssertSqlSafe;

use crate::harness::{
    NOW, ODD_IDS, TestDatabase, Unconditional, all, apply, article, article_id, coat, contract, import,
};

#[apply(contract)]
async fn many_are_read_in_statements_and_pages(store: Store) {
    let articles: Vec<_> = (0..2000).map(|n| coat(&format!("a-{n:05}"))).collect();
    import(&store, &articles).await;
    assert_eq!(all(store.articles().all()).await, articles);
    let asked = ["a-00007", "gone", "a-00003", "a-00007"].map(article_id);
    let found = store.articles().get_many(&asked).await.unwrap();
    assert_eq!(found, [articles[7].clone(), articles[3].clone()]);
    assert_eq!(store.articles().get_many(&[]).await, Ok(vec![]));
    // More than fit into one statement.
    let ids: Vec<_> = articles.iter().rev().map(|article| article.id.clone()).collect();
    assert!(store.articles().get_many(&ids).await.unwrap().iter().eq(articles.iter().rev()));
}

#[apply(contract)]
async fn ids_order_by_bytes_in_every_page(store: Store) {
    for id in ODD_IDS.iter().rev() {
        store.articles().set(&coat(id), NOW).await.unwrap();
    }
    assert_eq!(ids(&find(&store, "", None).await), ODD_IDS);
    assert_eq!(ids(&all(store.articles().all()).await), ODD_IDS);
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let mut page = find(&store, "COAT", after.as_ref()).await;
        page.truncate(2);
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        seen.extend(page);
    }
    assert_eq!(ids(&seen), ODD_IDS);
}

#[apply(contract)]
async fn a_search_has_words_of_any_case_and_no_patterns(store: Store) {
    for (id, kind, attributes) in [
        ("X-Ä1", "Mantel", json!({"brand": "ÖKO-Straße"})),
        ("x-2", "Hose", json!({"tags": ["Übergröße"], "n": 7})),
        ("blue", "coat", json!({"colour": "blue"})),
        ("100%", "coat", json!({"colour": "red"})),
        ("100x", "coat", json!({})),
        ("a_b", "coat", json!({})),
        ("axb", "coat", json!({})),
        ("back\\slash", "hat", json!({})),
        ("quo'te", "hat", json!({})),
    ] {
        store.articles().set(&article(id, kind, attributes), NOW).await.unwrap();
    }
    let endless = "%".repeat(100_000);
    for (search, found) in [
        ("x-ä", &["X-Ä1"][..]),
        ("MANTEL", &["X-Ä1"]),
        ("öko", &["X-Ä1"]),
        ("ÜBERGRÖ", &["x-2"]),
        ("X-", &["X-Ä1", "x-2"]),
        ("7", &[]),
        ("red coat", &["100%"]),
        ("coat  blu", &["blue"]),
        ("red blue", &[]),
        ("100%", &["100%"]),
        ("%", &["100%"]),
        ("a_b", &["a_b"]),
        ("_", &["a_b"]),
        ("\\", &["back\\slash"]),
        ("'", &["quo'te"]),
        ("\0", &["100%", "100x", "X-Ä1", "a_b", "axb", "back\\slash", "blue", "quo'te", "x-2"]),
        (&endless, &[]),
    ] {
        let beginning: String = search.chars().take(10).collect();
        assert_eq!(ids(&find(&store, search, None).await), found, "{beginning}");
    }
}

async fn find(store: &Store, search: &str, after: Option<&ArticleId>) -> Vec<Article> {
    let filter = ArticleFilter { search: search.to_owned(), ..ArticleFilter::default() };
    all(store.articles().find(filter, after, 9)).await
}

fn ids(articles: &[Article]) -> Vec<&str> {
    articles.iter().map(|article| article.id.as_str()).collect()
}

#[apply(contract)]
async fn changes_are_named_while_they_are_few(store: Store) {
    let articles = store.articles();
    let start = articles.revision().await.unwrap();
    let changes = async |since: i64| {
        let now = articles.revision().await.unwrap();
        let changes = articles.changes(since, now, 1000, |article| article).await.unwrap()?;
        let change = |(id, article): &(_, Option<Article>)| {
            format!("{id} {}", article.as_ref().map_or("gone", |article| article.kind()))
        };
        Some(changes.iter().map(change).collect::<Vec<_>>().join(", "))
    };
    assert_eq!(changes(start).await.as_deref(), Some(""));
    articles.set(&coat("b"), NOW).await.unwrap();
    articles.set(&coat("a"), NOW).await.unwrap();
    articles.set(&article("b", "hat", json!({})), NOW).await.unwrap();
    let middle = articles.revision().await.unwrap();
    articles.remove(&article_id("a"), NOW).await.unwrap();
    assert_eq!(changes(start).await.as_deref(), Some("a gone, b hat"));
    assert_eq!(changes(middle).await.as_deref(), Some("a gone"));
    import(&store, &[coat("c"), coat("d")]).await;
    assert_eq!(changes(middle).await.as_deref(), Some("a gone, c coat, d coat"));
    // More than the caller would read.
    let before_many = articles.revision().await.unwrap();
    let many: Vec<Article> = (0..20_001).map(|number| coat(&format!("many-{number}"))).collect();
    let import_slices = async |articles: &[Article]| {
        let mut import = store.import(NOW).await.unwrap();
        // The service imports in slices, too.
        for slice in articles.chunks(2000) {
            import.put(slice).await.unwrap();
        }
        import.commit().await.unwrap();
    };
    import_slices(&many[..1001]).await;
    assert_eq!(changes(before_many).await, None);
    let now = articles.revision().await.unwrap();
    let found = articles.changes(before_many, now, 1001, |article| article).await.unwrap();
    assert_eq!(found.map(|found| found.len()), Some(1001));
    // Another feed of the same articles, of which one has another price.
    let mut feed = many[..1001].to_vec();
    feed[700] = article("many-700", "coat", json!({"price": 20}));
    import_slices(&feed).await;
    assert_eq!(changes(now).await.as_deref(), Some("many-700 coat"));
    // A steady writer: an article that changes again and again is read once.
    for number in 0..300 {
        articles.set(&article("e", "coat", json!({"price": number})), NOW).await.unwrap();
    }
    assert_eq!(changes(now).await.as_deref(), Some("e coat, many-700 coat"));
    // Too many to name them.
    let now = articles.revision().await.unwrap();
    import_slices(&many).await;
    assert_eq!(articles.revision().await, Ok(now + 19_001), "those that are new, and many-700");
    let now = articles.revision().await.unwrap();
    let hats = (0..20_001).map(|number| article(&format!("many-{number}"), "hat", json!({})));
    import_slices(&hats.collect::<Vec<_>>()).await;
    assert_eq!(articles.changes(now, now + 1, usize::MAX, |article| article).await.unwrap(), None);
    assert_eq!(articles.revision().await, Ok(now + 1));
    articles.set(&coat("e"), NOW).await.unwrap();
    assert_eq!(changes(now + 1).await.as_deref(), Some("e coat"));
}

#[apply(contract)]
async fn old_changes_are_removed(db: TestDatabase) {
    let store = db.open().await;
    let articles = store.articles();
    articles.set(&coat("a"), NOW).await.unwrap();
    let start = articles.revision().await.unwrap();
    articles.set(&coat("b"), NOW).await.unwrap();
    let mut raw = db.raw().await;
    let mut skip = async |changes: i64| {
        let sql = format!("update revisions set value = value + {changes} where name = 'articles'");
        sqlx::query(AssertSqlSafe(sql)).execute(&mut raw).await.unwrap();
        articles.set(&article("c", "hat", json!({"price": changes})), NOW).await.unwrap();
        let kept: Vec<(String,)> = sqlx::query_as("select article_id from article_changes order by revision")
            .fetch_all(&mut raw)
            .await
            .unwrap();
        kept.into_iter().map(|(id,)| id).collect::<String>()
    };
    assert_eq!(skip(49_990).await, "abc");
    assert_eq!(skip(20).await, "abcc", "many are removed together");
    assert_eq!(skip(485).await, "ccc");
    let now = articles.revision().await.unwrap();
    assert_eq!(articles.changes(start, now, 1000, |article| article).await.unwrap(), None);
}

/// Every writer increments the revision last, so none waits for the rows of another while it holds the revision.
#[apply(contract)]
async fn concurrent_changes_are_serialised(store: Store) {
    let before = store.articles().revision().await.unwrap();
    let put = |n: u32| {
        let store = store.clone();
        async move {
            for id in ["a", "b", "c"] {
                store.articles().set(&article(id, "coat", json!({"n": n})), NOW).await.unwrap();
            }
            import(&store, &["c", "a", "b"].map(|id| article(id, "hat", json!({"n": n})))).await;
        }
    };
    tokio::join!(put(1), put(2), put(3), put(4));
    assert!(store.articles().revision().await.unwrap() >= before + 8);
}

/// A reader of many holds about a megabyte of the database's text at a time.
#[apply(contract)]
async fn large_articles_are_read_in_parts(store: Store) {
    let large = |n| article(&format!("a-{n:02}"), "coat", json!({"notes": "x".repeat(60_000)}));
    let rows: Vec<Article> = (0..60).map(large).collect();
    import(&store, &rows).await;
    let read: Vec<Vec<Article>> = all(store.articles().all_unparsed())
        .await
        .iter()
        .map(|part| part.rows().map(|row| row.parse().unwrap()).collect())
        .collect();
    assert!(read.len() >= 4 && read.iter().all(|part| part.len() <= 18), "{}", read.len());
    assert_eq!(read.concat(), rows);
    assert_eq!(all(store.articles().all()).await, rows);
}
