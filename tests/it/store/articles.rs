use atelier::{
    catalogue::ArticleFilter,
    platform::db::{Put, Store},
};
use atelier_core::domain::{Article, ArticleId};
use futures_util::TryStreamExt;
use serde_json::json;
use sqlx::AssertSqlSafe;

use super::{LATER, NOW, ODD_IDS, article, article_id, coat};
use crate::harness::{TestDatabase, apply, contract};

#[apply(contract)]
async fn put_then_get(db: TestDatabase) {
    let store = db.open().await;
    let odd = article(
        "a-'\"\\😀",
        "robe d'été",
        json!({"name": "x\u{0}y\n\"'\\%_ 😀", "price": 79.9, "big": 9_007_199_254_740_993_i64, "tiny": 1e-7,
               "nested": {"a": [null, true, 1.5]}, "empty": "", "separators": "\u{1e}\u{1f}"}),
    );
    assert_eq!(store.articles().get(&odd.id).await, Ok(None));
    store.articles().put(&odd, NOW).await.unwrap();
    assert_eq!(store.articles().all().try_collect::<Vec<_>>().await.unwrap(), std::slice::from_ref(&odd));
    assert_eq!(store.articles().get(&odd.id).await, Ok(Some(odd)));
    assert_eq!(store.articles().count().await, Ok(1));
}

#[apply(contract)]
async fn many_can_be_read_at_once(db: TestDatabase) {
    let store = db.open().await;
    let articles: Vec<_> = (0..1201).map(|n| coat(&format!("a-{n:04}"))).collect();
    let mut import = store.import(NOW).await.unwrap();
    import.put(&articles).await.unwrap();
    import.commit().await.unwrap();
    let asked = ["a-0007", "gone", "a-0003", "a-0007"].map(article_id);
    let found = store.articles().get_many(&asked).await.unwrap();
    assert_eq!(found, [articles[7].clone(), articles[3].clone()]);
    assert_eq!(store.articles().get_many(&[]).await, Ok(vec![]));
    // More than fit into one statement.
    let all: Vec<_> = articles.iter().rev().map(|article| article.id.clone()).collect();
    assert!(store.articles().get_many(&all).await.unwrap().iter().eq(articles.iter().rev()));
}

#[apply(contract)]
async fn put_returns_created_or_updated(db: TestDatabase) {
    let store = db.open().await;
    let articles = store.articles();
    assert_eq!(articles.put(&coat("a"), NOW).await, Ok(Put::Added));
    assert_eq!(articles.put(&coat("a"), LATER).await, Ok(Put::Unchanged));
    let dearer = article("a", "coat", json!({"price": 99}));
    assert_eq!(articles.put(&dearer, LATER).await, Ok(Put::Changed));
    assert_eq!(articles.put(&dearer, LATER).await, Ok(Put::Unchanged));
    assert_eq!(articles.get(&dearer.id).await, Ok(Some(dearer)));
    assert_eq!(articles.count().await, Ok(1));
}

#[apply(contract)]
async fn a_deleted_article_is_gone(db: TestDatabase) {
    let store = db.open().await;
    store.articles().put(&coat("a"), NOW).await.unwrap();
    assert_eq!(store.articles().delete(&article_id("b"), NOW).await, Ok(false));
    assert_eq!(store.articles().delete(&article_id("a"), NOW).await, Ok(true));
    assert_eq!(store.articles().get(&article_id("a")).await, Ok(None));
    assert_eq!(store.articles().count().await, Ok(0));
}

#[apply(contract)]
async fn ids_order_by_bytes(db: TestDatabase) {
    let store = db.open().await;
    for id in ODD_IDS.iter().rev() {
        store.articles().put(&coat(id), NOW).await.unwrap();
    }
    let listed = find(&store, "", None).await;
    assert_eq!(ids(&listed), ODD_IDS);
    let all: Vec<_> = store.articles().all().try_collect().await.unwrap();
    assert_eq!(ids(&all), ODD_IDS);
}

#[apply(contract)]
async fn a_list_continues_at_its_cursor(db: TestDatabase) {
    let store = db.open().await;
    for id in ODD_IDS {
        store.articles().put(&coat(id), NOW).await.unwrap();
    }
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
async fn all_reads_every_page(db: TestDatabase) {
    let store = db.open().await;
    let articles: Vec<_> = (0..2000).map(|n| coat(&format!("a-{n:05}"))).collect();
    let mut import = store.import(NOW).await.unwrap();
    import.put(&articles).await.unwrap();
    import.commit().await.unwrap();
    let all: Vec<_> = store.articles().all().try_collect().await.unwrap();
    assert_eq!(all, articles);
}

#[apply(contract)]
async fn search_ignores_case(db: TestDatabase) {
    let store = db.open().await;
    store.articles().put(&article("X-Ä1", "Mantel", json!({"brand": "ÖKO-Straße"})), NOW).await.unwrap();
    store.articles().put(&article("x-2", "Hose", json!({"tags": ["Übergröße"], "n": 7})), NOW).await.unwrap();
    for (search, found) in [
        ("x-ä", &["X-Ä1"][..]),
        ("MANTEL", &["X-Ä1"]),
        ("öko", &["X-Ä1"]),
        ("ÜBERGRÖ", &["x-2"]),
        ("X-", &["X-Ä1", "x-2"]),
        ("7", &[]),
    ] {
        assert_eq!(ids(&find(&store, search, None).await), found, "{search}");
    }
}

#[apply(contract)]
async fn search_takes_words_in_any_order(db: TestDatabase) {
    let store = db.open().await;
    store.articles().put(&coat("a-1"), NOW).await.unwrap();
    store.articles().put(&article("a-2", "coat", json!({"colour": "blue"})), NOW).await.unwrap();
    for (search, found) in
        [("red coat", &["a-1"][..]), ("coat  blu", &["a-2"]), (" a- ", &["a-1", "a-2"]), ("red blue", &[])]
    {
        assert_eq!(ids(&find(&store, search, None).await), found, "{search}");
    }
}

#[apply(contract)]
async fn search_is_literal(db: TestDatabase) {
    let store = db.open().await;
    for id in ["100%", "100x", "a_b", "axb", "back\\slash", "quo'te"] {
        store.articles().put(&coat(id), NOW).await.unwrap();
    }
    for (search, found) in [
        ("100%", &["100%"][..]),
        ("%", &["100%"]),
        ("a_b", &["a_b"]),
        ("_", &["a_b"]),
        ("\\", &["back\\slash"]),
        ("'", &["quo'te"]),
        ("\0", &["100%", "100x", "a_b", "axb", "back\\slash", "quo'te"]),
    ] {
        assert_eq!(ids(&find(&store, search, None).await), found, "{search}");
    }
    let endless = "%".repeat(100_000);
    assert_eq!(find(&store, &endless, None).await, []);
}

async fn find(store: &Store, search: &str, after: Option<&ArticleId>) -> Vec<Article> {
    let filter = ArticleFilter { search: search.to_owned(), ..ArticleFilter::default() };
    store.articles().find(filter, after, 9).try_collect().await.unwrap()
}

fn ids(articles: &[Article]) -> Vec<&str> {
    articles.iter().map(|article| article.id.as_str()).collect()
}

#[apply(contract)]
async fn the_revision_grows_with_every_change(db: TestDatabase) {
    let store = db.open().await;
    let articles = store.articles();
    let mut revisions = vec![articles.revision().await.unwrap()];
    let mut changed = async |change: bool| {
        let revision = articles.revision().await.unwrap();
        assert_eq!(revision > *revisions.last().unwrap(), change, "{revisions:?} then {revision}");
        revisions.push(revision);
    };
    articles.put(&coat("a"), NOW).await.unwrap();
    changed(true).await;
    articles.put(&coat("a"), LATER).await.unwrap();
    changed(false).await;
    articles.put(&article("a", "hat", json!({})), NOW).await.unwrap();
    changed(true).await;
    articles.delete(&article_id("b"), NOW).await.unwrap();
    changed(false).await;
    articles.delete(&article_id("a"), NOW).await.unwrap();
    changed(true).await;
    let mut import = store.import(NOW).await.unwrap();
    import.put(&[coat("b"), coat("c")]).await.unwrap();
    changed(false).await;
    import.put(&[coat("d")]).await.unwrap();
    import.commit().await.unwrap();
    changed(true).await;
    let mut import = store.import(NOW).await.unwrap();
    import.put(&[coat("b")]).await.unwrap();
    import.commit().await.unwrap();
    changed(false).await;
}

#[apply(contract)]
async fn changes_are_named_while_they_are_few(db: TestDatabase) {
    let store = db.open().await;
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
    articles.put(&coat("b"), NOW).await.unwrap();
    articles.put(&coat("a"), NOW).await.unwrap();
    articles.put(&article("b", "hat", json!({})), NOW).await.unwrap();
    let middle = articles.revision().await.unwrap();
    articles.delete(&article_id("a"), NOW).await.unwrap();
    assert_eq!(changes(start).await.as_deref(), Some("a gone, b hat"));
    assert_eq!(changes(middle).await.as_deref(), Some("a gone"));
    let mut import = store.import(NOW).await.unwrap();
    import.put(&[coat("c"), coat("d")]).await.unwrap();
    import.commit().await.unwrap();
    assert_eq!(changes(middle).await.as_deref(), Some("a gone, c coat, d coat"));
    // More than the caller would read.
    let before_many = articles.revision().await.unwrap();
    let many: Vec<Article> = (0..20_001).map(|number| coat(&format!("many-{number}"))).collect();
    let import = async |articles: &[Article]| {
        let mut import = store.import(NOW).await.unwrap();
        // The service imports in slices, too.
        for slice in articles.chunks(2000) {
            import.put(slice).await.unwrap();
        }
        import.commit().await.unwrap();
    };
    import(&many[..1001]).await;
    assert_eq!(changes(before_many).await, None);
    let now = articles.revision().await.unwrap();
    assert_eq!(
        articles.changes(before_many, now, 1001, |article| article).await.unwrap().map(|found| found.len()),
        Some(1001)
    );
    // Another feed of the same articles, of which one has another price.
    let mut feed = many[..1001].to_vec();
    feed[700] = article("many-700", "coat", json!({"price": 20}));
    import(&feed).await;
    assert_eq!(changes(now).await.as_deref(), Some("many-700 coat"));
    // A steady writer: an article that changes again and again is read once.
    for number in 0..300 {
        articles.put(&article("e", "coat", json!({"price": number})), NOW).await.unwrap();
    }
    assert_eq!(changes(now).await.as_deref(), Some("e coat, many-700 coat"));
    // Too many to name them.
    let now = articles.revision().await.unwrap();
    import(&many).await;
    assert_eq!(articles.revision().await, Ok(now + 19_001), "those that are new, and many-700");
    let now = articles.revision().await.unwrap();
    import(
        &(0..20_001).map(|number| article(&format!("many-{number}"), "hat", json!({}))).collect::<Vec<_>>(),
    )
    .await;
    assert_eq!(articles.changes(now, now + 1, usize::MAX, |article| article).await.unwrap(), None);
    assert_eq!(articles.revision().await, Ok(now + 1));
    articles.put(&coat("e"), NOW).await.unwrap();
    assert_eq!(changes(now + 1).await.as_deref(), Some("e coat"));
}

#[apply(contract)]
async fn old_changes_are_removed(db: TestDatabase) {
    let store = db.open().await;
    let articles = store.articles();
    articles.put(&coat("a"), NOW).await.unwrap();
    let start = articles.revision().await.unwrap();
    articles.put(&coat("b"), NOW).await.unwrap();
    let mut raw = db.raw().await;
    let mut skip = async |changes: i64| {
        let sql = format!("update revisions set value = value + {changes} where name = 'articles'");
        sqlx::query(AssertSqlSafe(sql)).execute(&mut raw).await.unwrap();
        articles.put(&article("c", "hat", json!({"price": changes})), NOW).await.unwrap();
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
async fn concurrent_changes_are_serialised(db: TestDatabase) {
    let store = db.open().await;
    let before = store.articles().revision().await.unwrap();
    let put = |n: u32| {
        let store = store.clone();
        async move {
            for id in ["a", "b", "c"] {
                let changed = article(id, "coat", json!({"n": n}));
                store.articles().put(&changed, NOW).await.unwrap();
            }
            let mut import = store.import(NOW).await.unwrap();
            let rows = ["c", "a", "b"].map(|id| article(id, "hat", json!({"n": n})));
            import.put(&rows).await.unwrap();
            import.commit().await.unwrap();
        }
    };
    tokio::join!(put(1), put(2), put(3), put(4));
    assert!(store.articles().revision().await.unwrap() >= before + 8);
}

/// A reader of many holds about a megabyte of the database's text at a time.
#[apply(contract)]
async fn large_articles_are_read_in_parts(db: TestDatabase) {
    let store = db.open().await;
    let rows: Vec<Article> = (0..60)
        .map(|n| article(&format!("a-{n:02}"), "coat", json!({"notes": "x".repeat(60_000)})))
        .collect();
    let mut import = store.import(NOW).await.unwrap();
    import.put(&rows).await.unwrap();
    import.commit().await.unwrap();
    let parts: Vec<_> = store.articles().all_unparsed().try_collect().await.unwrap();
    let read: Vec<Vec<Article>> =
        parts.iter().map(|part| part.rows().map(|row| row.parse().unwrap()).collect()).collect();
    assert!(read.len() >= 4 && read.iter().all(|part| part.len() <= 18), "{}", read.len());
    assert_eq!(read.concat(), rows);
    assert_eq!(store.articles().all().try_collect::<Vec<_>>().await.unwrap(), rows);
}
