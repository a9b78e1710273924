use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use atelier::completion::tickets::{Suggested, SuggestedFor};
use atelier_core::{
    domain::{ArticleId, CustomerId, Schema, Timestamp},
    util::{calendar::rfc3339, digest},
};
use atelier_files::{AcceptedOutfit, OrderLine};
use proptest::{collection::vec, prelude::*, sample::select, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Map, Value, json};

use super::{atelier, path, run, stderr, write_tables};
use crate::{
    harness::{TestDatabase, apply, contract, on_postgres, on_sqlite},
    web::{Service, feedback::suggested},
};

const TABLES: [&str; 3] = ["articles", "customers", "outfits"];

#[apply(contract)]
async fn an_export_equals_the_import(db: TestDatabase) {
    let (given, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_tables(given.path(), 300);
    assert!(run(atelier(&db, &["import", path(given.path())])).await.status.success());
    let output = run(atelier(&db, &["export", path(back.path())])).await;
    assert!(output.status.success(), "{}", stderr(&output));
    for table in TABLES {
        let file = format!("{table}.jsonl");
        let read = |folder: &tempfile::TempDir| fs::read_to_string(folder.path().join(&file)).unwrap();
        assert_eq!(read(&back), read(&given), "{table}");
    }
}

/// Releases hold the outfits of the data that they were trained on.
#[apply(on_sqlite)]
async fn an_erased_customers_outfits_are_in_no_later_export(db: TestDatabase) {
    let (given, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_tables(given.path(), 3);
    assert!(run(atelier(&db, &["import", path(given.path())])).await.status.success());
    let store = db.open().await;
    assert_eq!(
        store
            .customers()
            .erase(&CustomerId::new("c-00001").unwrap(), Timestamp::from_millis(1_790_000_000_000))
            .await,
        Ok(true)
    );
    store.close().await;
    assert!(run(atelier(&db, &["export", path(back.path())])).await.status.success());
    let outfits = fs::read_to_string(back.path().join("outfits.jsonl")).unwrap();
    // One is there twice.
    assert!(!outfits.contains("c-00001") && outfits.lines().count() == 3, "{outfits}");
}

/// Otherwise the folder could not be imported. No lock stops the readers of `SQLite`.
#[apply(on_postgres)]
async fn an_outfit_of_a_customer_who_came_during_the_export_waits_for_the_next(db: TestDatabase) {
    let (given, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_tables(given.path(), 3);
    assert!(run(atelier(&db, &["import", path(given.path())])).await.status.success());
    let mut raw = db.raw().await;
    sqlx::raw_sql("begin; lock table outfits in access exclusive mode").execute(&mut raw).await.unwrap();
    let export = tokio::spawn(run(atelier(&db, &["export", path(back.path())])));
    while !back.path().join("customers.jsonl").exists() {
        assert!(!export.is_finished(), "it waits for the lock");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let late = "insert into customers select (jsonb_populate_record(customers, '{\"id\": \"late\"}')).* from customers limit 1;
         update outfits set customer_id = 'late' where seq = (select min(seq) from outfits); commit";
    sqlx::raw_sql(late).execute(&mut raw).await.unwrap();
    assert!(export.await.unwrap().status.success());
    let table = |name: &str| fs::read_to_string(back.path().join(name)).unwrap();
    assert!(!table("customers.jsonl").contains("late") && !table("outfits.jsonl").contains("late"));
    assert_eq!(table("outfits.jsonl").lines().count(), 3);
    assert!(run(atelier(&db, &["export", "--force", path(back.path())])).await.status.success());
    assert!(table("customers.jsonl").contains("late") && table("outfits.jsonl").contains("late"));
}

/// A refresh learns from what customers kept, and when.
#[apply(contract)]
async fn purchases_and_the_times_of_saved_outfits_are_exported(db: TestDatabase) {
    let (given, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_tables(given.path(), 2);
    assert!(run(atelier(&db, &["import", path(given.path())])).await.status.success());
    let now = rfc3339(SystemTime::now());
    let events = format!(
        "id,kind,customer,article,order,value,time\n1,bought,c-00000,a-01,7,9,{now}\n2,bought,c-00000,a-02,7,9,{now}\n\
         3,returned,c-00000,a-02,7,9,{now}\n4,bought,c-00001,a-02,8,9,{now}\n5,bought,c-00001,a-03,,9,{now}\n\
         6,bought,,a-03,9,9,{now}\n7,viewed,c-00001,a-03,,,{now}\n"
    );
    let file = given.path().join("events.csv");
    fs::write(&file, events).unwrap();
    let output = run(atelier(&db, &["import", "--events", path(&file)])).await;
    assert!(output.status.success(), "{}", stderr(&output));
    let service = Service::start(&db).await;
    let body = json!({"customer": "c-00001", "articles": ["a-04", "a-05", "a-06", "a-07"]}).to_string();
    assert_eq!(service.post("/outfits", "application/json", body).await.status(), 201);
    let export = async |format: &str| {
        let output = run(atelier(&db, &["export", path(back.path()), "--force", "--format", format])).await;
        assert!(output.status.success(), "{}", stderr(&output));
    };
    export("jsonl").await;
    let read = |name: &str| fs::read_to_string(back.path().join(name)).unwrap();
    let line = |order: &str, customer: &str, article: &str, rest: &str| {
        format!(
            "{{\"order\":\"{order}\",\"customer\":\"{customer}\",\"article\":\"{article}\",\"time\":\"{now}\"{rest}}}\n"
        )
    };
    let alone = format!("c-00001/{}", &now[..10]);
    let of_second = line("8", "c-00001", "a-02", "") + &line(&alone, "c-00001", "a-03", "");
    let of_first = line("7", "c-00000", "a-01", "") + &line("7", "c-00000", "a-02", ",\"returned\":true");
    assert_eq!(read("orders.jsonl"), of_first + &of_second);
    let times = read("times.txt");
    let times: Vec<&str> = times.lines().collect();
    assert_eq!((times.len(), &times[..3]), (4, &["", "", ""][..]), "three outfits were imported");
    assert!(times[3][..19] >= now[..19], "{times:?}");

    // Erasing a customer takes the orders out of the next export.
    let store = db.open().await;
    let id = CustomerId::new("c-00000").unwrap();
    assert_eq!(store.customers().erase(&id, SystemTime::now().into()).await, Ok(true));
    store.close().await;
    export("jsonl").await;
    assert_eq!(read("orders.jsonl"), of_second);
    for table in ["articles", "customers", "outfits", "orders", "accepted"] {
        fs::remove_file(back.path().join(format!("{table}.jsonl"))).unwrap();
    }
    for format in ["csv", "parquet"] {
        export(format).await;
        let file = back.path().join(format!("orders.{format}"));
        let lines = atelier_files::read::<OrderLine>(&file, &Schema::default_schema()).unwrap();
        let articles: Vec<String> = lines.map(|line| line.unwrap().value.article.unwrap()).collect();
        assert_eq!(articles, ["a-02", "a-03"], "{format}");
        for table in ["articles", "customers", "outfits", "orders", "accepted"] {
            fs::remove_file(back.path().join(format!("{table}.{format}"))).unwrap();
        }
    }
}

/// A refresh learns from suggestions that customers accepted and neither saved nor bought.
#[apply(contract)]
async fn accepted_suggestions_are_exported_with_the_outfit_that_was_asked_about(db: TestDatabase) {
    let (given, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_tables(given.path(), 2);
    assert!(run(atelier(&db, &["import", path(given.path())])).await.status.success());
    let service = Service::start(&db).await;
    let article = |id: &str| ArticleId::new(id).unwrap();
    let complete = |offered: &str| {
        let blank = SuggestedFor {
            slot: 1,
            articles: vec![article(offered)],
            in_sets: Vec::new(),
            rules: Vec::new(),
        };
        service.state.tickets().issue(&Suggested {
            outfit: vec![Some(article("a-01")), None, Some(article("a-02")), Some(article("a-03"))],
            blanks: vec![blank],
            ..suggested("gsu", None)
        })
    };
    let now = rfc3339(SystemTime::now());
    let event = |ticket: &str, kind: &str, customer: &str, article: &str| {
        json!({"id": format!("{kind} {article} {}", customer), "kind": kind, "customer": customer, "article": article,
               "ticket": ticket, "time": now, "order": article, "value": 9})
    };
    let send = async |events: Value| {
        let (status, answer) = service.ask("/events", &events).await;
        assert!(
            status == 200 && answer.as_array().unwrap().iter().all(|one| one["recorded"] == true),
            "{answer}"
        );
    };
    // One is accepted, one rejected later, one bought without a ticket and sent back, and one accepted by a stranger.
    let [kept, rejected, returned, strange] = ["a-04", "a-05", "a-06", "a-07"].map(complete);
    let mut bought = [event("", "bought", "c-00001", "a-06"), event("", "returned", "c-00001", "a-06")];
    let mut by_stranger = event(&strange, "added", "", "a-07");
    by_stranger.as_object_mut().unwrap().remove("customer");
    for event in &mut bought {
        event.as_object_mut().unwrap().remove("ticket");
    }
    send(json!([
        event(&kept, "added", "c-00000", "a-04"),
        event(&rejected, "added", "c-00001", "a-05"),
        event(&returned, "added", "c-00001", "a-06"),
        by_stranger,
    ]))
    .await;
    send(json!([event(&rejected, "rejected", "c-00001", "a-05"), bought[0], bought[1]])).await;
    let export = async |format: &str| {
        let output = run(atelier(&db, &["export", path(back.path()), "--force", "--format", format])).await;
        assert!(output.status.success(), "{}", stderr(&output));
    };
    export("jsonl").await;
    let read = |name: &str| fs::read_to_string(back.path().join(name)).unwrap();
    let line = json!({"customer": "c-00000", "articles": ["a-01", "a-02", "a-03", "a-04"], "time": now});
    assert_eq!(serde_json::from_str::<Value>(&read("accepted.jsonl")).unwrap(), line);
    // An import does not make them outfits.
    let outfits = read("outfits.jsonl");
    let again = run(atelier(&db, &["import", path(back.path())])).await;
    assert!(again.status.success(), "{}", stderr(&again));
    assert!(service.store.articles().delete(&article("a-04"), SystemTime::now().into()).await.unwrap());
    export("jsonl").await;
    assert_eq!((read("outfits.jsonl"), read("retired.txt")), (outfits, "a-04\n".to_owned()));
    for format in ["csv", "parquet"] {
        for table in ["articles", "customers", "outfits", "orders", "accepted"] {
            let file = |format: &str| back.path().join(format!("{table}.{format}"));
            let _ = fs::remove_file(file("jsonl")).or_else(|_| fs::remove_file(file("csv")));
        }
        export(format).await;
        let file = back.path().join(format!("accepted.{format}"));
        let rows = atelier_files::read::<AcceptedOutfit>(&file, &Schema::default_schema()).unwrap();
        let rows: Vec<AcceptedOutfit> = rows.map(|row| row.unwrap().value).collect();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].outfit.customer.as_str(), rows[0].outfit.articles().len()), ("c-00000", 4));
    }
    let id = CustomerId::new("c-00000").unwrap();
    assert_eq!(service.store.customers().erase(&id, SystemTime::now().into()).await, Ok(true));
    export("parquet").await;
    let file = back.path().join("accepted.parquet");
    assert_eq!(atelier_files::read::<AcceptedOutfit>(&file, &Schema::default_schema()).unwrap().count(), 0);
}

/// Outfits were stored when a release of smaller and larger ones was live.
#[apply(on_sqlite)]
async fn outfits_of_any_size_can_be_imported_again(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path(), 3);
    let outfits = folder.path().join("outfits.jsonl");
    let customer = fs::read_to_string(folder.path().join("customers.jsonl")).unwrap();
    let customer: Value = serde_json::from_str(customer.lines().next().unwrap()).unwrap();
    let articles = fs::read_to_string(folder.path().join("articles.jsonl")).unwrap();
    let articles: Vec<Value> =
        articles.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    let outfit = |n: usize| json!({"customer": customer["id"], "articles": articles[..n]}).to_string();
    fs::write(&outfits, format!("{}\n{}\n", outfit(2), outfit(12))).unwrap();
    let imported = run(atelier(&db, &["import", path(folder.path())])).await;
    assert!(imported.status.success(), "{}", stderr(&imported));
    let schema = folder.path().join("narrow.toml");
    let features = "name = \"n\"\noutfit = {least = 4, most = 8} # ours\n[[feature]]\nname = \"fit\"\nkind = \"category\"\n\
                    values = [\"slim\"]\n";
    fs::write(&schema, features).unwrap();
    let back = folder.path().join("back");
    let exported = run(atelier(&db, &["export", "--schema", path(&schema), path(&back)])).await;
    assert!(stderr(&exported).contains("schema: outfit = {least = 2, most = 12}"), "{}", stderr(&exported));
    let written = fs::read_to_string(back.join("schema.toml")).unwrap();
    assert_eq!(written, features.replace("4, most = 8", "2, most = 12"));
    let imported = run(atelier(&db, &["import", path(&back)])).await;
    assert!(stderr(&imported).contains("outfits: 0 new, 0 changed, 2 unchanged"), "{}", stderr(&imported));
}

/// It may name customers who are erased by now.
#[apply(on_sqlite)]
async fn what_a_killed_export_left_is_removed(db: TestDatabase) {
    db.open().await.close().await;
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join(".customers.jsonl.aB3dE6.partial");
    let of_a_running_export = folder.path().join(".customers.jsonl.xY1zZ2.partial");
    fs::write(&left, "{\"id\":\"erika\"}\n").unwrap();
    let running = fs::File::create(&of_a_running_export).unwrap();
    running.lock().unwrap();
    let output = run(atelier(&db, &["export", path(folder.path())])).await;
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!left.exists() && of_a_running_export.exists());
    assert!(folder.path().join("customers.jsonl").exists());
}

/// Exported as CSV or Parquet, imported, exported as JSON Lines: the same bytes.
#[apply(on_sqlite)]
async fn every_format_can_be_imported_again(db: TestDatabase) {
    let given = tempfile::tempdir().unwrap();
    write_tables(given.path(), 100);
    assert!(run(atelier(&db, &["import", path(given.path())])).await.status.success());
    for format in ["csv", "parquet"] {
        let (flat, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let output = run(atelier(&db, &["export", path(flat.path()), "--format", format])).await;
        assert!(output.status.success(), "{}", stderr(&output));
        let other = format!("sqlite:{}", back.path().join("other.db").display());
        let mut import = atelier(&db, &["import", path(flat.path())]);
        import.args(["--database", &other]);
        let output = run(import).await;
        assert!(output.status.success(), "{}", stderr(&output));
        let mut export = atelier(&db, &["export", path(back.path())]);
        export.args(["--database", &other]);
        assert!(run(export).await.status.success());
        for table in TABLES {
            let file = format!("{table}.jsonl");
            let read = |folder: &tempfile::TempDir| fs::read_to_string(folder.path().join(&file)).unwrap();
            assert_eq!(read(&back), read(&given), "{table} by way of {format}");
        }
    }
}

#[apply(on_sqlite)]
async fn outfits_with_retired_articles_can_be_imported_again(db: TestDatabase) {
    let given = tempfile::tempdir().unwrap();
    write_tables(given.path(), 100);
    assert!(run(atelier(&db, &["import", path(given.path())])).await.status.success());
    let store = db.open().await;
    for id in ["a-02", "a-01"] {
        let id = ArticleId::new(id).unwrap();
        assert!(store.articles().delete(&id, SystemTime::now().into()).await.unwrap());
    }
    store.close().await;
    for format in ["jsonl", "csv", "parquet"] {
        let back = tempfile::tempdir().unwrap();
        let output = run(atelier(&db, &["export", path(back.path()), "--format", format])).await;
        assert!(output.status.success(), "{}", stderr(&output));
        let told = "retired.txt: 2 articles that outfits have and the catalogue no longer has";
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
        assert_eq!(fs::read_to_string(back.path().join("retired.txt")).unwrap(), "a-01\na-02\n");
        let other = format!("sqlite:{}", back.path().join("other.db").display());
        for count in ["101 new, 0 changed, 0 unchanged", "0 new, 0 changed, 101 unchanged"] {
            let mut import = atelier(&db, &["import", path(back.path())]);
            import.args(["--database", &other]);
            let output = run(import).await;
            assert!(output.status.success(), "{}", stderr(&output));
            assert!(stderr(&output).contains(&format!("outfits: {count}")), "{}", stderr(&output));
        }
    }
    // Other ids are still mistakes, and a later export without such outfits leaves no list behind.
    fs::write(given.path().join("retired.txt"), "a-77\n").unwrap();
    fs::write(
        given.path().join("outfits.jsonl"),
        "{\"customer\":\"c-00000\",\"articles\":[\"a-00\",\"a-03\",\"a-77\",\"a-78\"]}\n",
    )
    .unwrap();
    let output = run(atelier(&db, &["import", path(given.path())])).await;
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.contains("line 1: article \"a-78\" is not in the catalogue\n"), "{told}");
    write_tables(given.path(), 100);
    let mut import = atelier(&db, &["import", "--articles", path(&given.path().join("articles.jsonl"))]);
    import.args(["--outfits", path(&given.path().join("outfits.jsonl"))]);
    assert!(run(import).await.status.success());
    assert!(run(atelier(&db, &["export", path(given.path()), "--force"])).await.status.success());
    assert!(!given.path().join("retired.txt").exists());
}

#[apply(on_sqlite)]
async fn files_are_not_overwritten(db: TestDatabase) {
    db.open().await.close().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("articles.jsonl");
    fs::write(&file, "mine").unwrap();
    let output = run(atelier(&db, &["export", path(folder.path())])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("articles.jsonl already exists"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let output = run(atelier(&db, &["export", path(folder.path()), "--force"])).await;
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&file).unwrap(), "");
    let output = run(atelier(&db, &["export", path(folder.path()), "--force", "--format", "csv"])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("articles.jsonl has another format"), "{}", stderr(&output));
}

/// A feature is a number in the built-in schema and a word in this one.
#[apply(on_sqlite)]
async fn the_schema_is_exported_too(db: TestDatabase) {
    let (given, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let schema = "name = \"ours\"\n[[feature]]\nname = \"age\"\nkind = \"category\"\nvalues = [\"young\"]\n";
    let file = given.path().join("schema.toml");
    fs::write(&file, schema).unwrap();
    let customers = "{\"id\":\"c-1\",\"features\":{\"age\":\"young\"}}\n";
    fs::write(given.path().join("customers.jsonl"), customers).unwrap();
    assert!(run(atelier(&db, &["import", path(given.path())])).await.status.success());
    let output = run(atelier(&db, &["export", path(back.path()), "--schema", path(&file)])).await;
    assert!(output.status.success(), "{}", stderr(&output));
    let said = format!("outfit = {{least = 2, most = 12}}\n{schema}");
    assert_eq!(fs::read_to_string(back.path().join("schema.toml")).unwrap(), said);
    let again = run(atelier(&db, &["import", path(back.path())])).await;
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!(fs::read_to_string(back.path().join("customers.jsonl")).unwrap(), customers);
}

/// Without a schema of its own, the folder gets the one that the service reads customers with.
#[apply(on_sqlite)]
async fn the_schema_is_that_of_the_served_release(db: TestDatabase) {
    let (models, given) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo");
    let release = models.path().join("demo");
    fs::create_dir(&release).unwrap();
    for entry in fs::read_dir(&demo).unwrap() {
        let entry = entry.unwrap();
        if entry.path().is_file() {
            fs::copy(entry.path(), release.join(entry.file_name())).unwrap();
        }
    }
    let ours =
        fs::read_to_string(release.join("schema.toml")).unwrap().replacen("name = \"", "name = \"our-", 1);
    fs::write(release.join("schema.toml"), &ours).unwrap();
    let manifest = release.join("release.json");
    let mut sealed: Value = serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    let digest = digest::sha256(ours.as_bytes());
    sealed["files"]["schema.toml"] = json!({"bytes": ours.len(), "sha256": digest});
    fs::write(&manifest, sealed.to_string()).unwrap();
    write_tables(given.path(), 10);
    assert!(run(atelier(&db, &["import", path(given.path())])).await.status.success());
    let export = async |models: &Path| {
        let back = tempfile::tempdir().unwrap();
        let mut export = atelier(&db, &["export", path(back.path())]);
        export.args(["--set", &format!("models.folder={}", models.display())]);
        let output = run(export).await;
        assert!(output.status.success(), "{}", stderr(&output));
        (fs::read_to_string(back.path().join("schema.toml")).unwrap(), stderr(&output))
    };
    let (schema, told) = export(models.path()).await;
    assert!(schema == ours, "{told}");
    assert!(told.contains("schema: that of release demo\n"), "{told}");
    let (_, told) = export(given.path()).await;
    assert!(told.contains("schema: the built-in one\n"), "{told}");
}

#[apply(on_sqlite)]
async fn a_mistyped_database_is_not_created(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nothere.db");
    let mut export = atelier(&db, &["export", path(folder.path())]);
    export.args(["--database", &format!("sqlite:{}", file.display())]);
    let output = run(export).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is no database at "), "{}", stderr(&output));
    assert!(!file.exists() && !folder.path().join("articles.jsonl").exists());
}

/// Values of about the sizes at which a row, a body or a cell ends: long texts and lists, which formats write longer or shorter.
fn large() -> impl Strategy<Value = Value> {
    let about =
        prop_oneof![0..100_usize, 64_000..67_000_usize, 130_000..132_000_usize, 1_040_000..1_049_000_usize];
    let texts = ["a", "\"", "\\", "\u{1}", "|", "ﷺ", "\n", "😀", "{\"", "\"["].map(|text| json!(text));
    let items = [
        json!(0),
        json!(1e15),
        json!(0.1),
        json!(""),
        json!("\""),
        json!([]),
        json!({}),
        json!({"": ""}),
        json!(null),
    ];
    let text = (select(texts.to_vec()), about.clone())
        .prop_map(|(text, about)| json!(text.as_str().unwrap().repeat(about / (text.to_string().len() - 2))));
    let list = (select(items.to_vec()), about.clone())
        .prop_map(|(item, about)| Value::Array(vec![item.clone(); about / (item.to_string().len() + 1)]));
    let names = about.prop_map(|about| (0..about / 10).map(|n| (format!("n{n:04}"), json!(n % 7))).collect());
    let deep = (0..124).prop_map(|depth| (0..depth).fold(json!(1), |inner, _| json!([inner])));
    prop_oneof![4 => text, 4 => list, 1 => names.prop_map(Value::Object), 1 => deep]
}

/// What an article or a customer may have, and more.
fn fields(names: &'static [&'static str]) -> impl Strategy<Value = Map<String, Value>> {
    let small = select(vec![
        json!("x"),
        json!(""),
        json!(7),
        json!(0.5),
        json!(["a", "b"]),
        json!("[1]"),
        json!(null),
    ]);
    let one = (select(names), prop_oneof![3 => small, 1 => large()]);
    vec(one, 0..6)
        .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn some<T>(runner: &mut TestRunner, strategy: &impl Strategy<Value = T>) -> T {
    strategy.new_tree(runner).expect("nothing is filtered").current()
}

/// Sends random rows by every way, and gives how many were stored and how many refused.
async fn send_rows(service: &Service) -> [usize; 2] {
    let mut runner = TestRunner::deterministic();
    let attributes = fields(&["colour", "a\"b,c", "features", "x.y", "notes", "name", "Größe"]);
    let features =
        fields(&["age", "preferred_colours", "mood", "id", "features.age", "gender", "x", "nogo_types"]);
    let embedding: Vec<f32> = (1..=4096_u16).map(|n| -1.175_494_4e-38 * f32::from(n)).collect();
    let mut outcomes = [0; 2];
    let bulk = "/bulk?skip_bad=true";
    for round in 0..160 {
        let (mut article, mut customer) = (some(&mut runner, &attributes), some(&mut runner, &features));
        if round % 5 == 0 {
            article.insert("embedding".into(), json!(embedding));
        }
        let (a, c) = (format!("a-{}", round % 12), format!("c-{}", round % 12));
        let json = |body: &Value| body.to_string();
        let line = |id: &str, mut fields: Map<String, Value>| {
            fields.insert("id".into(), id.into());
            Value::Object(fields)
        };
        let sent = match round / 12 % 4 {
            0 => {
                article.insert("type".into(), "coat".into());
                let put = service.put(&format!("/articles/{a}"), &json!(article)).await;
                [put, service.put(&format!("/customers/{c}"), &json!({"features": customer})).await]
            }
            1 => {
                let changed = service.patch(format!("/articles/{a}"), json!(article)).await;
                [changed, service.patch(format!("/customers/{c}"), json!({"features": customer})).await]
            }
            way => {
                let mode = if way == 2 { "" } else { "&mode=merge" };
                article.insert("type".into(), "coat".into());
                let article = json(&line(&a, article));
                customer = [("features".to_owned(), json!(customer))].into_iter().collect();
                let customer = json(&line(&c, customer));
                let to = |table: &str| format!("/{table}{bulk}{mode}");
                let articles = service.post(&to("articles"), "application/x-ndjson", article).await;
                [articles, service.post(&to("customers"), "application/x-ndjson", customer).await]
            }
        };
        for answer in sent {
            let status = answer.status;
            assert!([200, 201, 404, 413, 422].contains(&status), "round {round}: {status}");
            outcomes[usize::from(status >= 300)] += 1;
        }
        let articles = ["a-0", "a-1", "a-2", "a-3"];
        let outfit = json!({"customer": c, "articles": articles, "features": some(&mut runner, &features)});
        let saved = if round % 2 == 0 {
            service.ask("/outfits", &outfit).await.0
        } else {
            service.post(&format!("/outfits{bulk}"), "application/x-ndjson", outfit.to_string()).await.status
        };
        assert!([200, 201, 404, 409, 413, 422].contains(&saved), "round {round}: {saved}");
    }
    outcomes
}

/// Every row of a table, as the lists and the row's own address give it.
async fn listed(service: &Service, table: &str) -> BTreeMap<String, Value> {
    let (mut rows, mut cursor) = (BTreeMap::new(), String::new());
    loop {
        let page = service.json(&format!("/{table}?n=500{cursor}")).await;
        for row in page["items"].as_array().unwrap() {
            let id = row["id"].as_str().unwrap().to_owned();
            assert_eq!(service.json(&format!("/{table}/{id}")).await, *row);
            assert!(rows.insert(id, row.clone()).is_none());
        }
        let Some(next) = page["next_cursor"].as_str() else { return rows };
        cursor = format!("&cursor={next}");
    }
}

/// Random rows at the limits are stored or refused. All that was stored is listed, and comes back from files of each format.
#[apply(contract)]
async fn what_is_stored_can_be_listed_exported_and_imported(db: TestDatabase) {
    let service = Service::start(&db).await;
    for number in 0..4 {
        service.put(&format!("/articles/a-{number}"), &json!({"type": "coat"})).await;
        service.put(&format!("/customers/c-{number}"), &json!({"features": {}})).await;
    }
    let [stored, refused] = send_rows(&service).await;
    assert!(stored > 100 && refused > 20, "{stored} stored, {refused} refused");
    let mut counts = BTreeMap::new();
    for table in ["articles", "customers"] {
        let rows = listed(&service, table).await;
        for (id, row) in &rows {
            let bytes = row.to_string().len();
            assert!(bytes < 66_000, "{table} {id} has {bytes} bytes");
        }
        counts.insert(table, rows.len() as u64);
    }
    counts.insert("outfits", service.store.outfits().count().await.unwrap());
    assert!(counts["outfits"] > 20, "{counts:?}");
    let given = tempfile::tempdir().unwrap();
    let read = |folder: &Path| {
        TABLES.map(|table| fs::read_to_string(folder.join(format!("{table}.jsonl"))).unwrap())
    };
    for format in ["jsonl", "csv", "parquet"] {
        let (files, back) = (given.path().join(format), tempfile::tempdir().unwrap());
        let output = run(atelier(&db, &["export", path(&files), "--format", format])).await;
        assert!(output.status.success(), "{format}: {}", stderr(&output));
        let other = format!("sqlite:{}", back.path().join("other.db").display());
        let mut import = atelier(&db, &["import", path(&files)]);
        let output = run({
            import.args(["--database", &other]);
            import
        })
        .await;
        assert!(output.status.success(), "{format}: {}", stderr(&output));
        let mut export = atelier(&db, &["export", path(back.path())]);
        export.args(["--database", &other]);
        assert!(run(export).await.status.success());
        let (kept, came_back) = (read(&given.path().join("jsonl")), read(back.path()));
        for (kept, came_back) in kept.iter().zip(&came_back) {
            let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
            assert!(
                kept == came_back,
                "{format}: {:?}",
                lines(kept)
                    .difference(&lines(came_back))
                    .map(|line| line.chars().take(300).collect::<String>())
                    .collect::<Vec<_>>()
            );
        }
    }
}
