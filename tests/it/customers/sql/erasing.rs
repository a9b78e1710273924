use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use atelier::{
    outcomes::{Event, FeedbackEvent, FeedbackKind, SuggestedArticle},
    platform::db::{AuditFilter, Conflict, Entry, Note, Store, StoreError, TokenHash},
    privacy::PersonalData,
};
use atelier_core::domain::{Customer, Features, Role};
use futures_util::StreamExt;
use serde_json::{Map, json};
use sqlx::{AnyConnection, AssertSqlSafe};

use crate::harness::{
    Kind, LATER, NOW, TestDatabase, Unconditional, add_person, apply, contract, customer_id, entries, event,
    feedback, import, on_postgres, on_sqlite, open_outfit, outfit, with_customers,
};

/// The tables with data of customers.
const PERSONAL_TABLES: [&str; 8] = [
    "audit_log",
    "customer_notes",
    "customers",
    "events",
    "experiment_customers",
    "feedback_events",
    "outfits",
    "purchases",
];

/// Occurs nowhere else; awkward for JSON.
const ERASED: &str = "Erna \"100%\"\\_Müller";
const OTHER: &str = "Erna";

#[apply(contract)]
async fn leaves_no_byte_of_the_id(db: TestDatabase) {
    let store = fill(&db).await;
    let mut raw = db.raw().await;
    let everything = everything(&db, &mut raw).await;
    assert!(everything.contains("100%") && everything.contains("Müller"), "the search finds what is there");
    assert_eq!(store.customers().remove(&customer_id(ERASED), NOW).await, Ok(true));
    let everything = self::everything(&db, &mut raw).await;
    for trace in ["100%", "Müller"] {
        assert!(!everything.contains(trace), "{trace} is still in {everything}");
    }
    // On SQLite the files have no trace either, while it is open and afterwards.
    sqlx::Connection::close(raw).await.unwrap();
    assert_eq!(db.folder().map_or(0, |folder| count(folder, "Müller")), 0);
    store.close().await;
    assert_eq!(db.folder().map_or(0, |folder| count(folder, "Müller")), 0);
}

#[apply(on_postgres)]
async fn the_documented_vacuum_has_these_tables(db: TestDatabase) {
    let docs = include_str!("../../../../docs/security.md");
    let begin = docs.find("vacuum (full").expect("a statement for Postgres");
    let statement = docs[begin..].split('`').next().unwrap();
    for table in PERSONAL_TABLES {
        assert!(statement.contains(table), "{table}");
    }
    sqlx::raw_sql(statement).execute(&mut db.raw().await).await.unwrap();
}

/// Walks the schema, so that a table of a later migration cannot be forgotten.
#[apply(contract)]
async fn every_table_about_customers_is_exported_and_erased(db: TestDatabase) {
    let store = fill(&db).await;
    let mut raw = db.raw().await;
    let mut tables: Vec<String> = sqlx::query_scalar(match db.kind {
        Kind::Sqlite => {
            "select m.name from sqlite_schema m join pragma_table_info(m.name) c
             where m.type = 'table' and (m.name like '%customer%' or c.name like '%customer%')
             union select m.name from sqlite_schema m join pragma_foreign_key_list(m.name) k
             where m.type = 'table' and k.\"table\" = 'customers'"
        }
        Kind::Postgres => {
            "select table_name::text from information_schema.columns join information_schema.tables
                using (table_schema, table_name)
             where table_schema = 'public' and table_type = 'BASE TABLE'
                and (table_name like '%customer%' or column_name like '%customer%')
             union select conrelid::regclass::text from pg_constraint where confrelid = 'customers'::regclass"
        }
    })
    .fetch_all(&mut raw)
    .await
    .unwrap();
    tables.sort();
    assert_eq!(tables, PERSONAL_TABLES, "add the table here, and its rows to privacy::PersonalData");

    let data = store.customers().personal_data(&customer_id(ERASED)).await.unwrap().expect("the customer");
    // Naming all fields makes a new one an error here.
    let PersonalData {
        customer,
        created_at,
        updated_at,
        outfits,
        notes,
        feedback,
        events,
        purchases,
        arms,
        audit,
    } = data;
    assert_eq!((customer.id.as_str(), created_at, updated_at), (ERASED, NOW, NOW));
    let (outfits, notes) = (outfits.count().await, notes.count().await);
    let (feedback, audit) = (feedback.count().await, audit.count().await);
    let (events, purchases, arms) = (events.count().await, purchases.count().await, arms.count().await);
    assert_eq!(outfits, 3, "with a draft and a deleted one");
    let exported = [audit, notes, 1, events, arms, feedback, outfits, purchases];
    for (table, exported) in PERSONAL_TABLES.into_iter().zip(exported) {
        let column = if table == "customers" { "id" } else { "customer_id" };
        let sql = format!("select count(*) from {table} where {column} = $1");
        let stored: i64 =
            sqlx::query_scalar(AssertSqlSafe(sql)).bind(ERASED).fetch_one(&mut raw).await.unwrap();
        assert!(stored > 0, "{table} has something to find");
        assert_eq!(i64::try_from(exported), Ok(stored), "{table}");
    }
    assert_eq!(store.customers().remove(&customer_id(ERASED), NOW).await, Ok(true));
    assert!(store.customers().personal_data(&customer_id(ERASED)).await.unwrap().is_none());
}

/// `secure_delete` does not overwrite the copies of rows that a split leaves in a page.
#[apply(on_sqlite)]
async fn copies_in_the_file_are_overwritten(db: TestDatabase) {
    let folder = db.folder().unwrap();
    let store = db.open().await;
    // In no order, because that splits pages in the middle.
    let id = |n| format!("{:04}-{}", n * 3557 % 6000, if n % 5 == 0 { "gone" } else { "kept" });
    let ids: Vec<String> = (0..6000).map(id).collect();
    let customer = |id: &String| Customer { id: customer_id(id), features: Features::default() };
    import(&store, &ids.iter().map(customer).collect::<Vec<_>>()).await;
    for id in ids.iter().filter(|id| id.ends_with("gone")) {
        assert_eq!(store.customers().remove(&customer_id(id), NOW).await, Ok(true));
    }
    let found = count(folder, "-gone");
    assert!(found > 0, "without copies there is nothing to show: change the ids");
    let completing = tokio::spawn(store.clone().complete_erasures());
    let began = Instant::now();
    while count(folder, "-gone") > 0 {
        assert!(began.elapsed() < Duration::from_mins(1), "{found} copies stay");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    completing.abort();
    assert_eq!(store.customers().count().await, Ok(4800));
}

/// How often the text is in the files of the folder. Another process reads them: closing a file would release the locks
/// that `SQLite` holds for this one.
pub fn count(folder: &Path, text: &str) -> usize {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let bytes = Command::new("cat").args(files).output().unwrap().stdout;
    bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
}

#[apply(contract)]
async fn an_erasure_does_not_wait_for_an_import_about_the_customer(db: TestDatabase) {
    let store = fill(&db).await;
    let mut import = store.import(LATER).await.unwrap();
    let added = Customer { id: customer_id("Müller"), features: Features::default() };
    import.put(std::slice::from_ref(&added)).await.unwrap();
    import.outfits(&[outfit(ERASED, ["a", "b", "c", "e"], None)]).await.unwrap();
    assert_eq!(store.customers().remove(&customer_id(ERASED), NOW).await, Ok(true));
    assert_eq!(store.customers().remove(&added.id, NOW).await, Ok(false), "not there yet");
    import.put(&[added, Customer { id: customer_id(ERASED), features: Features::default() }]).await.unwrap();
    assert!(!everything(&db, &mut db.raw().await).await.contains("Müller"));
    import.commit().await.unwrap();
    assert_eq!(store.outfits().count().await, Ok(1), "the other customer's");
    assert!(!everything(&db, &mut db.raw().await).await.contains("Müller"));
}

/// The import has read the ids of all customers already.
#[apply(contract)]
async fn an_import_after_an_erasure_stores_no_outfit(db: TestDatabase) {
    let store = fill(&db).await;
    let mut import = store.import(LATER).await.unwrap();
    assert_eq!(import.customer_ids().await.unwrap().len(), 2);
    assert_eq!(store.customers().remove(&customer_id(ERASED), NOW).await, Ok(true));
    let refused = import.outfits(&[outfit(ERASED, ["a", "b", "c", "e"], None)]).await;
    assert_eq!(refused, Err(StoreError::Conflict(Conflict::UnknownCustomer)));
    drop(import);
    assert!(!everything(&db, &mut db.raw().await).await.contains("Müller"));
}

#[apply(contract)]
async fn keeps_entries_about_others(db: TestDatabase) {
    let store = fill(&db).await;
    store.customers().remove(&customer_id(ERASED), NOW).await.unwrap();
    assert_eq!(store.customers().count().await, Ok(1));
    let outfits = store.outfits().for_customer(&customer_id(OTHER), 0, 10).await.unwrap();
    assert_eq!((outfits.len(), store.outfits().count().await), (1, Ok(1)));
    let events = store.feedback().for_training("k").await.unwrap();
    let of: Vec<_> = events.into_iter().map(|event| event.customer).collect();
    let other = Some(customer_id(OTHER));
    assert_eq!(of, [None, None, other.clone(), other], "accepted and therefore shown, twice");
    assert_eq!(store.feedback().counts().await.unwrap()[0].outcomes.accepted, 2, "the events still count");
    let log = entries(&store, 10).await;
    assert_eq!((log[0].action.as_str(), log[0].subject.as_str()), ("customer.erase", "erased customer"));
    let about = &log[1..5];
    let subjects: Vec<_> = about.iter().map(|entry| entry.subject.as_str()).collect();
    assert_eq!(subjects, ["Erna", "erased customer", OTHER, "erased customer"]);
    assert_eq!((&about[1].details, &about[1].customer), (&Map::new(), &None));
    assert_eq!(about[2].customer, Some(customer_id(OTHER)));
    for kept in [&about[0], &about[2]] {
        assert_eq!(kept.details["note"], "Erna");
    }
    assert!(about.iter().all(|entry| entry.action == "customer.put" && entry.at == NOW));
}

/// Ids are any text; other texts that look like the id stay.
#[apply(contract)]
async fn keeps_entries_whose_subject_has_the_same_name(store: Store) {
    with_customers(&store, &["demo", "1", "%"]).await;
    let details = json!({"blanks": 1, "from": "demo"});
    store.audit().append(&Entry::new("release.method", "demo", details), NOW).await.unwrap();
    let before = entries(&store, 1).await;
    for id in ["demo", "1", "%"] {
        assert_eq!(store.customers().remove(&customer_id(id), NOW).await, Ok(true));
    }
    let filter = AuditFilter { action: "release.method".into(), actor: None };
    assert_eq!(store.audit().list(&filter, None, 10).await, Ok(before));
}

/// Two customers with an outfit and feedback each, and audit entries about one, the other and neither.
async fn fill(db: &TestDatabase) -> Store {
    let store = db.open().await;
    with_customers(&store, &[ERASED, OTHER]).await;
    let ada = add_person(&store, "Ada", Role::Stylist).await.id;
    let saved = store.saved_outfits();
    let draft = |ids: &[&str]| open_outfit(ERASED, ids);
    saved.save(&draft(&["a", ""]), true, Some(ada), NOW).await.unwrap();
    let (deleted, _) = saved.save(&draft(&["b"]), true, Some(ada), NOW).await.unwrap();
    saved.set_link(deleted, Some((&TokenHash::new("link"), LATER)), NOW).await.unwrap();
    saved.delete(deleted, NOW).await.unwrap();
    let note = Note::new("Likes Müller’s shop").unwrap();
    store.notes().add(&customer_id(ERASED), &note, ada, NOW).await.unwrap();
    for customer in [ERASED, OTHER] {
        saved.save(&open_outfit(customer, &["a", "b", "c", "d"]), false, None, NOW).await.unwrap();
        let accepted = FeedbackEvent {
            slot: u32::from(customer == OTHER),
            arm: Some("autumn/a".into()),
            customer: Some(customer_id(customer)),
            ..feedback(FeedbackKind::Accepted, "k", "a")
        };
        let (key, article) = (format!("{customer} 1"), SuggestedArticle::default());
        store.feedback().record(&key, &accepted, &article).await.unwrap();
    }
    let bought = |customer: &str| Event {
        order: Some(format!("order of {customer}")),
        value: Some(64_500),
        ..event(&format!("{customer} 2"), FeedbackKind::Bought, Some(customer), "a")
    };
    let events = [bought(ERASED), bought(OTHER)];
    let recorded = store.events().record(&events, Duration::from_hours(1)).await.unwrap();
    assert!(recorded.iter().all(Result::is_ok));
    for (about, subject, details) in [
        (Some(ERASED), ERASED, json!({})),
        (Some(OTHER), OTHER, json!({"note": "Erna"})),
        (Some(ERASED), "a profile", json!({"of": [{"id": ERASED}]})),
        (None, "Erna", json!({"note": "Erna"})),
    ] {
        let about = about.map(customer_id);
        let entry = Entry { customer: about.as_ref(), ..Entry::new("customer.put", subject, details) };
        store.audit().append(&entry, NOW).await.unwrap();
    }
    store
}

/// Every value of every column of every table, as text; digests in hexadecimal.
pub async fn everything(db: &TestDatabase, raw: &mut AnyConnection) -> String {
    let columns: Vec<(String, String)> = sqlx::query_as(match db.kind {
        Kind::Sqlite => {
            "select m.name, c.name from sqlite_schema m join pragma_table_info(m.name) c where m.type = 'table'"
        }
        Kind::Postgres => {
            "select table_name::text, column_name::text from information_schema.columns
             where table_schema = 'public'"
        }
    })
    .fetch_all(&mut *raw)
    .await
    .unwrap();
    assert!(columns.len() > 40, "found the tables");
    let mut everything = String::new();
    for (table, column) in columns {
        let text = match db.kind {
            Kind::Sqlite => format!("iif(typeof({column}) = 'blob', hex({column}), cast({column} as text))"),
            Kind::Postgres => format!("{column}::text"),
        };
        let sql = format!("select coalesce({text}, '') from {table}");
        let values: Vec<String> = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut *raw).await.unwrap();
        everything.push_str(&values.join("\n"));
    }
    everything
}
