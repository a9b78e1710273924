use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use atelier::completion::tickets::{Suggested, SuggestedFor};
use atelier_core::{
    domain::{ArticleId, CustomerId, Schema},
    util::calendar::rfc3339,
};
use atelier_files::{AcceptedOutfit, OrderLine, Table};
use proptest::{collection::vec, prelude::*, sample::select, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Map, Value, json};

use crate::{
    cli::{atelier, copy_demo, done, ended, file, import_tables, path, refused, run, write_tables},
    demo,
    harness::{Html, Service, TestDatabase, Unconditional, apply, contract, on_postgres, on_sqlite},
    outcomes::feedback::suggested,
};

const TABLES: [&str; 3] = ["articles", "customers", "outfits"];

/// Exports into a folder, and gives what was said.
async fn export(db: &TestDatabase, folder: &Path, flags: &[&str]) -> String {
    done(atelier(db, &[&["export", path(folder)], flags].concat())).await
}

/// A table of a folder.
fn rows<T: Table>(folder: &Path, format: &str) -> Vec<T> {
    let file = folder.join(format!("{}.{format}", T::NAME));
    let rows = atelier_files::read::<T>(&file, &Schema::default_schema()).unwrap();
    rows.map(|row| row.unwrap().value).collect()
}

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

async fn erase(service: &Service, customer: &str) {
    let id = CustomerId::new(customer).unwrap();
    assert_eq!(service.store.customers().remove(&id, SystemTime::now().into()).await, Ok(true));
}

#[apply(contract)]
async fn an_export_equals_the_import(db: TestDatabase) {
    let (given, back) = (import_tables(&db, 300).await, tempfile::tempdir().unwrap());
    export(&db, back.path(), &[]).await;
    for table in TABLES.map(|table| format!("{table}.jsonl")) {
        assert_eq!(text(back.path(), &table), text(given.path(), &table), "{table}");
    }
}

/// Otherwise the folder could not be imported. No lock stops the readers of `SQLite`.
#[apply(on_postgres)]
async fn an_outfit_of_a_customer_who_came_during_the_export_waits_for_the_next(db: TestDatabase) {
    import_tables(&db, 3).await;
    let back = tempfile::tempdir().unwrap();
    let mut raw = db.raw().await;
    sqlx::raw_sql("begin; lock table outfits in access exclusive mode").execute(&mut raw).await.unwrap();
    let exporting = tokio::spawn(run(atelier(&db, &["export", path(back.path())])));
    while !back.path().join("customers.jsonl").exists() {
        assert!(!exporting.is_finished(), "it waits for the lock");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let late = "insert into customers select (jsonb_populate_record(customers, '{\"id\": \"late\"}')).* from customers limit 1;
         update outfits set customer_id = 'late' where seq = (select min(seq) from outfits); commit";
    sqlx::raw_sql(late).execute(&mut raw).await.unwrap();
    assert!(exporting.await.unwrap().status.success());
    let tables = || ["customers.jsonl", "outfits.jsonl"].map(|table| text(back.path(), table));
    assert!(tables().iter().all(|table| !table.contains("late")) && tables()[1].lines().count() == 3);
    export(&db, back.path(), &["--force"]).await;
    assert!(tables().iter().all(|table| table.contains("late")));
}

/// A refresh learns from what customers kept, and when.
#[apply(contract)]
async fn purchases_and_the_times_of_saved_outfits_are_exported(db: TestDatabase) {
    let folder = import_tables(&db, 2).await;
    let back = |name: &str| folder.path().join(name);
    let now = rfc3339(SystemTime::now());
    let events = format!(
        "id,kind,customer,article,order,value,time\n1,bought,c-00000,a-01,7,9,{now}\n2,bought,c-00000,a-02,7,9,{now}\n\
         3,returned,c-00000,a-02,7,9,{now}\n4,bought,c-00001,a-02,8,9,{now}\n5,bought,c-00001,a-03,,9,{now}\n\
         6,bought,,a-03,9,9,{now}\n7,viewed,c-00001,a-03,,,{now}\n"
    );
    done(atelier(&db, &["import", "--events", path(&file(&folder, "events.csv", events))])).await;
    let service = Service::start(&db).await;
    let outfit = json!({"customer": "c-00001", "articles": ["a-04", "a-05", "a-06", "a-07"]});
    service.send("/outfits", outfit).is(201).await;
    export(&db, &back("all"), &[]).await;
    let line = |order: &str, customer: &str, article: &str, rest: &str| {
        format!(
            "{{\"order\":\"{order}\",\"customer\":\"{customer}\",\"article\":\"{article}\",\"time\":\"{now}\"{rest}}}\n"
        )
    };
    let alone = format!("c-00001/{}", &now[..10]);
    let of_second = line("8", "c-00001", "a-02", "") + &line(&alone, "c-00001", "a-03", "");
    let of_first = line("7", "c-00000", "a-01", "") + &line("7", "c-00000", "a-02", ",\"returned\":true");
    assert_eq!(text(&back("all"), "orders.jsonl"), of_first + &of_second);
    let times = text(&back("all"), "times.txt");
    let times: Vec<&str> = times.lines().collect();
    assert_eq!((times.len(), &times[..3]), (4, &["", "", ""][..]), "three outfits were imported");
    assert!(times[3][..19] >= now[..19], "{times:?}");

    // Erasing a customer takes outfits and orders out of the next export.
    erase(&service, "c-00000").await;
    export(&db, &back("erased"), &[]).await;
    assert_eq!(text(&back("erased"), "orders.jsonl"), of_second);
    let outfits = text(&back("erased"), "outfits.jsonl");
    assert!(!outfits.contains("c-00000") && outfits.lines().count() == 2, "{outfits}");
    for format in ["csv", "parquet"] {
        export(&db, &back(format), &["--format", format]).await;
        let lines = rows::<OrderLine>(&back(format), format);
        let articles: Vec<String> = lines.into_iter().map(|line| line.article.unwrap()).collect();
        assert_eq!(articles, ["a-02", "a-03"], "{format}");
    }
}

/// A refresh learns from suggestions that customers accepted and neither saved nor bought.
#[apply(contract)]
async fn accepted_suggestions_are_exported_with_the_outfit_that_was_asked_about(db: TestDatabase) {
    let folder = import_tables(&db, 2).await;
    let back = |name: &str| folder.path().join(name);
    let service = Service::start(&db).await;
    let article = |id: &str| ArticleId::new(id).unwrap();
    let complete = |offered: &str| {
        let articles = vec![article(offered)];
        let blank = SuggestedFor { slot: 1, articles, in_sets: Vec::new(), rules: Vec::new() };
        service.state.tickets().issue(Suggested {
            outfit: vec![Some(article("a-01")), None, Some(article("a-02")), Some(article("a-03"))],
            blanks: vec![blank],
            ..suggested("gsu", None)
        })
    };
    let now = rfc3339(SystemTime::now());
    let event = |kind: &str, customer: Option<&str>, article: &str, ticket: Option<&str>| {
        let mut event = json!({"id": format!("{kind} {article}"), "kind": kind, "article": article, "time": now,
                               "order": article, "value": 9});
        for (name, value) in [("customer", customer), ("ticket", ticket)] {
            if let Some(value) = value {
                event[name] = json!(value);
            }
        }
        event
    };
    let (first, second) = (Some("c-00000"), Some("c-00001"));
    // One is accepted, one rejected later, one bought without a ticket and sent back, and one accepted by a stranger.
    let tickets = ["a-04", "a-05", "a-06", "a-07"].map(complete);
    let [kept, rejected, returned, strange] = tickets.each_ref().map(|ticket| Some(ticket.as_str()));
    for events in [
        json!([
            event("added", first, "a-04", kept),
            event("added", second, "a-05", rejected),
            event("added", second, "a-06", returned),
            event("added", None, "a-07", strange),
        ]),
        json!([
            event("rejected", second, "a-05", rejected),
            event("bought", second, "a-06", None),
            event("returned", second, "a-06", None),
        ]),
    ] {
        let answer = service.ask_ok("/events", &events).await;
        assert!(answer.as_array().unwrap().iter().all(|one| one["recorded"] == true), "{answer}");
    }
    export(&db, &back("all"), &[]).await;
    let line = json!({"customer": "c-00000", "articles": ["a-01", "a-02", "a-03", "a-04"], "time": now});
    assert_eq!(serde_json::from_str::<Value>(&text(&back("all"), "accepted.jsonl")).unwrap(), line);
    // An import does not make them outfits.
    done(atelier(&db, &["import", path(&back("all"))])).await;
    assert!(service.store.articles().remove(&article("a-04"), SystemTime::now().into()).await.unwrap());
    export(&db, &back("again"), &[]).await;
    assert_eq!(text(&back("again"), "outfits.jsonl"), text(&back("all"), "outfits.jsonl"));
    assert_eq!(text(&back("again"), "retired.txt"), "a-04\n");
    for format in ["csv", "parquet"] {
        export(&db, &back(format), &["--format", format]).await;
        let [accepted] = &rows::<AcceptedOutfit>(&back(format), format)[..] else {
            panic!("one in {format}")
        };
        let AcceptedOutfit { outfit, .. } = accepted;
        assert_eq!((outfit.customer.as_str(), outfit.articles().len()), ("c-00000", 4));
    }
    erase(&service, "c-00000").await;
    export(&db, &back("erased"), &[]).await;
    assert_eq!(text(&back("erased"), "accepted.jsonl"), "");
}

/// Outfits were stored when a release of smaller and larger ones was live.
#[apply(on_sqlite)]
async fn outfits_of_any_size_can_be_imported_again(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path(), 3);
    let outfit = |articles: usize| {
        let articles: Vec<String> = (0..articles).map(|n| format!("a-{n:02}")).collect();
        json!({"customer": "c-00000", "articles": articles})
    };
    file(&folder, "outfits.jsonl", format!("{}\n{}\n", outfit(2), outfit(12)));
    done(atelier(&db, &["import", path(folder.path())])).await;
    let features = "name = \"n\"\noutfit = {least = 4, most = 8} # ours\n[[feature]]\nname = \"fit\"\nkind = \"category\"\n\
                    values = [\"slim\"]\n";
    let (schema, back) = (file(&folder, "narrow.toml", features), folder.path().join("back"));
    let said = export(&db, &back, &["--schema", path(&schema)]).await;
    said.has(["schema: outfit = {least = 2, most = 12}"]);
    assert_eq!(text(&back, "schema.toml"), features.replace("4, most = 8", "2, most = 12"));
    let said = done(atelier(&db, &["import", path(&back)])).await;
    said.has(["outfits: 0 new, 0 changed, 2 unchanged"]);
}

/// It may name customers who are erased by now.
#[apply(on_sqlite)]
async fn what_a_killed_export_left_is_removed(db: TestDatabase) {
    db.open().await.close().await;
    let folder = tempfile::tempdir().unwrap();
    let left = file(&folder, ".customers.jsonl.aB3dE6.partial", "{\"id\":\"erika\"}\n");
    let of_a_running_export = folder.path().join(".customers.jsonl.xY1zZ2.partial");
    let running = fs::File::create(&of_a_running_export).unwrap();
    running.lock().unwrap();
    export(&db, folder.path(), &[]).await;
    assert!(!left.exists() && of_a_running_export.exists());
    assert!(folder.path().join("customers.jsonl").exists());
}

#[apply(on_sqlite)]
async fn outfits_with_retired_articles_can_be_imported_again(db: TestDatabase) {
    let given = import_tables(&db, 100).await;
    let store = db.open().await;
    for id in ["a-02", "a-01"] {
        let id = ArticleId::new(id).unwrap();
        assert!(store.articles().remove(&id, SystemTime::now().into()).await.unwrap());
    }
    for format in ["jsonl", "csv", "parquet"] {
        let back = tempfile::tempdir().unwrap();
        let said = export(&db, back.path(), &["--format", format]).await;
        let told = "retired.txt: 2 articles that outfits have and the catalogue no longer has";
        said.has([told]);
        assert_eq!(text(back.path(), "retired.txt"), "a-01\na-02\n");
        let other = elsewhere(&db, back.path());
        for count in ["101 new, 0 changed, 0 unchanged", "0 new, 0 changed, 101 unchanged"] {
            let said = done(atelier(&other, &["import", path(back.path())])).await;
            said.has([&format!("outfits: {count}")]);
        }
    }
    // Other ids are still mistakes, and a later export without such outfits leaves no list behind.
    file(&given, "retired.txt", "a-77\n");
    let outfit = "{\"customer\":\"c-00000\",\"articles\":[\"a-00\",\"a-03\",\"a-77\",\"a-78\"]}\n";
    file(&given, "outfits.jsonl", outfit);
    let said = refused(atelier(&db, &["import", path(given.path())])).await;
    said.has(["line 1: article \"a-78\" is not in the catalogue\n"]);
    let articles = given.path().join("articles.jsonl");
    done(atelier(&db, &["import", "--articles", path(&articles)])).await;
    export(&db, given.path(), &["--force"]).await;
    assert!(!given.path().join("retired.txt").exists());
}

/// The same with a new database in the folder.
fn elsewhere(db: &TestDatabase, folder: &Path) -> TestDatabase {
    let mut other = db.clone();
    other.url = format!("sqlite:{}", folder.join("other.db").display());
    other
}

#[apply(on_sqlite)]
async fn files_are_not_overwritten(db: TestDatabase) {
    db.open().await.close().await;
    let folder = tempfile::tempdir().unwrap();
    let articles = file(&folder, "articles.jsonl", "mine");
    let again = ["export", path(folder.path())];
    refused(atelier(&db, &again)).await.has(["articles.jsonl already exists"]);
    assert_eq!(fs::read_to_string(&articles).unwrap(), "mine");
    export(&db, folder.path(), &["--force"]).await;
    assert_eq!(fs::read_to_string(&articles).unwrap(), "");
    let other = refused(atelier(&db, &[&again[..], &["--force", "--format", "csv"]].concat())).await;
    other.has(["articles.jsonl has another format"]);
}

/// A feature is a number in the built-in schema and a word in this one.
#[apply(on_sqlite)]
async fn the_schema_is_exported_too(db: TestDatabase) {
    let (given, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let schema = "name = \"ours\"\n[[feature]]\nname = \"age\"\nkind = \"category\"\nvalues = [\"young\"]\n";
    let ours = file(&given, "schema.toml", schema);
    let customers = "{\"id\":\"c-1\",\"features\":{\"age\":\"young\"}}\n";
    file(&given, "customers.jsonl", customers);
    done(atelier(&db, &["import", path(given.path())])).await;
    export(&db, back.path(), &["--schema", path(&ours)]).await;
    let said = format!("outfit = {{least = 2, most = 12}}\n{schema}");
    assert_eq!(text(back.path(), "schema.toml"), said);
    done(atelier(&db, &["import", path(back.path())])).await;
    assert_eq!(text(back.path(), "customers.jsonl"), customers);
}

/// Without a schema of its own, the folder gets the one that the service reads customers with.
#[apply(on_sqlite)]
async fn the_schema_is_that_of_the_served_release(db: TestDatabase) {
    let (models, release) = copy_demo();
    let ours = text(&release, "schema.toml").replacen("name = \"", "name = \"our-", 1);
    demo::put(&release, "schema.toml", ours.as_bytes()).unwrap();
    let given = import_tables(&db, 10).await;
    let back: PathBuf = given.path().join("back");
    for (models, told) in
        [(models.path(), "schema: that of release demo\n"), (given.path(), "schema: the built-in one\n")]
    {
        let _ = fs::remove_dir_all(&back);
        let setting = format!("models.folder={}", models.display());
        export(&db, &back, &["--set", &setting]).await.has([told]);
        assert_eq!(text(&back, "schema.toml") == ours, told.contains("demo"), "{told}");
    }
}

/// Else a key would be printed that opens nothing.
#[apply(on_sqlite)]
async fn a_mistyped_database_is_not_created(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let other = elsewhere(&db, folder.path());
    for arguments in [
        &["export", path(folder.path())][..],
        &["key", "create", "--label", "Shop", "--scope", "metrics"],
        &["backup", path(&folder.path().join("backup"))],
    ] {
        let said = ended(atelier(&other, arguments), 1).await;
        said.has(["there is no database at "]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{arguments:?}");
    }
}

/// Values of about the sizes at which a row, a body or a cell ends: long texts and lists, which formats write longer or shorter.
fn large() -> impl Strategy<Value = Value> {
    let about =
        prop_oneof![0..100_usize, 64_000..67_000_usize, 130_000..132_000_usize, 1_040_000..1_049_000_usize];
    let texts = ["a", "\"", "\\", "\u{1}", "|", "ﷺ", "\n", "😀", "{\"", "\"["].map(|text| json!(text));
    let Value::Array(items) = json!([0, 1e15, 0.1, "", "\"", [], {}, {"": ""}, null]) else { unreachable!() };
    let text = (select(texts.to_vec()), about.clone())
        .prop_map(|(text, about)| json!(text.as_str().unwrap().repeat(about / (text.to_string().len() - 2))));
    let list = (select(items), about.clone())
        .prop_map(|(item, about)| Value::Array(vec![item.clone(); about / (item.to_string().len() + 1)]));
    let names = about.prop_map(|about| (0..about / 10).map(|n| (format!("n{n:04}"), json!(n % 7))).collect());
    let deep = (0..124).prop_map(|depth| (0..depth).fold(json!(1), |inner, _| json!([inner])));
    prop_oneof![4 => text, 4 => list, 1 => names.prop_map(Value::Object), 1 => deep]
}

/// What an article or a customer may have, and more.
fn fields(names: &'static [&'static str]) -> impl Strategy<Value = Map<String, Value>> {
    let Value::Array(small) = json!(["x", "", 7, 0.5, ["a", "b"], "[1]", null]) else { unreachable!() };
    let small = select(small);
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
    for round in 0..160 {
        let (mut article, customer) = (some(&mut runner, &attributes), some(&mut runner, &features));
        if round % 5 == 0 {
            article.insert("embedding".into(), json!(embedding));
        }
        let id = round % 12;
        let (a, c) = (format!("/articles/a-{id}"), format!("/customers/c-{id}"));
        let customer = json!({"features": customer});
        let way = round / 12 % 4;
        if way != 1 {
            article.insert("type".into(), "coat".into());
        }
        let calls = match way {
            0 => [service.put(&a, json!(article)), service.put(&c, customer)],
            1 => [service.patch(&a, json!(article)), service.patch(&c, customer)],
            way => {
                let mode = if way == 2 { "" } else { "&mode=merge" };
                article.insert("id".into(), json!(format!("a-{id}")));
                let customer = json!({"id": format!("c-{id}"), "features": customer["features"]});
                [("articles", json!(article)), ("customers", customer)].map(|(table, row)| {
                    service.lines(format!("/{table}/bulk?skip_bad=true{mode}"), row.to_string())
                })
            }
        };
        for call in calls {
            let status = call.await.status;
            assert!([200, 201, 404, 413, 422].contains(&status), "round {round}: {status}");
            outcomes[usize::from(status >= 300)] += 1;
        }
        let articles = ["a-0", "a-1", "a-2", "a-3"];
        let customer = format!("c-{id}");
        let outfit =
            json!({"customer": customer, "articles": articles, "features": some(&mut runner, &features)});
        let saved = if round % 2 == 0 {
            service.send("/outfits", outfit).await
        } else {
            service.lines("/outfits/bulk?skip_bad=true", outfit.to_string()).await
        };
        assert!([200, 201, 404, 409, 413, 422].contains(&saved.status), "round {round}: {}", saved.status);
    }
    outcomes
}

/// Every row of a table, as the lists and the row's own address give it.
async fn listed(service: &Service, table: &str) -> BTreeMap<String, Value> {
    let (mut rows, mut cursor) = (BTreeMap::new(), String::new());
    loop {
        let page = service.json(format!("/{table}?n=500{cursor}")).await;
        for row in page["items"].as_array().unwrap() {
            let id = row["id"].as_str().unwrap().to_owned();
            assert_eq!(service.json(format!("/{table}/{id}")).await, *row);
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
        service.put(format!("/articles/a-{number}"), json!({"type": "coat"})).is(201).await;
        service.put(format!("/customers/c-{number}"), json!({"features": {}})).is(201).await;
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
    let read = |folder: &Path| TABLES.map(|table| text(folder, &format!("{table}.jsonl")));
    for format in ["jsonl", "csv", "parquet"] {
        let (files, back) = (given.path().join(format), tempfile::tempdir().unwrap());
        export(&db, &files, &["--format", format]).await;
        let other = elsewhere(&db, back.path());
        done(atelier(&other, &["import", path(&files)])).await;
        export(&other, back.path(), &[]).await;
        for (kept, came_back) in read(&given.path().join("jsonl")).iter().zip(&read(back.path())) {
            let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
            let lost: Vec<String> = lines(kept).difference(&lines(came_back)).cloned().collect();
            let beginnings = lost.iter().map(|line| line.chars().take(300).collect::<String>());
            assert!(kept == came_back, "{format}: {:?}", beginnings.collect::<Vec<_>>());
        }
    }
}
