use std::{
    fmt::Write,
    fs,
    time::{Duration, SystemTime},
};

use atelier::platform::db::Actor;
use atelier_core::util::calendar::rfc3339;
use serde_json::{Value, json};

use crate::{
    cli::{
        atelier, done, ended, file, path, refused, serve::Served, serve_demo, write_parquet, write_tables,
    },
    harness::{
        Html, NOW, TestDatabase, Unconditional, apply, article, article_id, contract, customer_id, entries,
        json_lines, on_sqlite, with_customers,
    },
};

/// Of 10,000 customers about every 300th is broken in its own way: 30 in all.
#[apply(on_sqlite)]
async fn one_bad_row_rejects_the_import_unless_bad_ones_are_skipped(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path(), 10_000);
    let file = folder.path().join("customers.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines().enumerate().map(|(number, line)| match number / 300 % 3 {
        _ if number % 300 != 17 || number > 9_000 => line.to_owned(),
        0 => line[..20].to_owned(),
        1 => line.replace("\"age\":", "\"age\":\"old\",\"height\":"),
        _ => line.replace(&line[..15], "{\"id\":\"c-00001\""),
    });
    fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let said = refused(atelier(&db, &["import", "--customers", path(&file)])).await;
    let listed = said.lines().filter(|line| line.contains("customers.jsonl, line ")).count();
    assert_eq!(listed, 3, "a line for each kind: {said}");
    let syntax = "line 18: not JSON: it ends too early, after character 20; a row is one object on one line \
                  (10 rows in all; also 918, 1818, ";
    let age = "line 318: feature \"age\" takes a finite number, found the string \"old\" (10 rows in all; also 1218, ";
    let repeated = "line 618: customer \"c-00001\" is already in line 2 (10 rows ";
    said.has([syntax, age, repeated, "customers.jsonl: 10,000 rows read, 30 bad, in "]);
    let proposal = "nothing was imported: 30 of 10,000 rows are bad; fix them, or store the 9,970 good ones with --skip-bad\n";
    assert!(said.ends_with(proposal), "{said}");
    assert!(!said.contains("new"), "nothing is new before it is in the database: {said}");
    let store = db.open().await;
    assert_eq!((store.customers().count().await, entries(&store, 9).await), (Ok(0), vec![]));

    let said = done(atelier(&db, &["import", "--skip-bad", "--customers", path(&file)])).await;
    said.has(["imported into ", "  customers: 9,970 new, 0 changed, 0 unchanged\nskipped: 30 bad rows\n"]);
    assert_eq!(store.customers().count().await, Ok(9970));
    let entries = entries(&store, 9).await;
    let [entry] = &entries[..] else { panic!("one entry: {entries:?}") };
    assert_eq!((entry.actor, entry.action.as_str()), (Actor::Service, "customers.bulk"));
    assert_eq!(Value::from(entry.details.clone()), json!({"added": 9970, "changed": 0, "bad": 30}));
}

#[apply(on_sqlite)]
async fn what_the_release_does_not_know_is_noted(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let articles = "id,type,colour\np-1,poncho,navy\np-2,poncho,navy\np-3,coat,navy\n";
    let articles = file(&folder, "articles.csv", articles);
    let import = async |models: &str| {
        let models = format!("models.folder={models}");
        done(atelier(&db, &["--set", &models, "import", "--articles", path(&articles)])).await
    };
    let said = import("models").await;
    let kind = "note: type \"poncho\" of 2 articles is new to release demo: until a release is trained with it, only \
                the other attributes count";
    said.has([kind, "note: new articles have no brand (3), ", "gender (3)"]);
    assert_eq!(said.matches("note: ").count(), 2, "{said}");
    let said = import(path(folder.path())).await;
    assert!(!said.contains("note: "), "{said}");
}

/// Each row has files, and what is said about them.
#[apply(on_sqlite)]
async fn files_that_cannot_be_imported_are_named(db: TestDatabase) {
    const NOTHING: &str = "atelier: nothing to import: expected files named articles, customers and outfits that end in \
                           .jsonl, .ndjson, .csv or .parquet, but FOLDER";
    const OTHERS: [&str; 4] = ["Articles.csv", "outfits.xlsx", ".hidden", "schema.toml"];
    const SCHEMA: &str = "name = \"x\"\n[[feature]]\nname = \"a\"\nkind = \"set\"\nvalues = [\"b\"]\n";
    let others = OTHERS.map(|name| (name, SCHEMA));
    let numbers: Vec<String> = (0..9).map(|number| format!("{number}.txt")).collect();
    let many: Vec<_> = others.into_iter().chain(numbers.iter().map(|name| (name.as_str(), ""))).collect();
    let tables = [("articles.csv", "id,type\n"), ("articles.jsonl", "")];
    let broken = [("customers.csv", "id,age\nc-1,old\nc-2,28\nc-3,\"29\nc-4,30\n")];
    for (files, said) in [
        (&[][..], "NOTHING is empty\n"),
        (&others, "NOTHING contains Articles.csv, outfits.xlsx\n"),
        (&many, "NOTHING contains 0.txt, 1.txt, 2.txt, 3.txt, 4.txt, 5.txt, 6.txt, 7.txt and 3 more\n"),
        (
            &tables,
            "atelier: FOLDER contains articles more than once: articles.csv, articles.jsonl; keep one file\n",
        ),
        // A bad row is reported before the error that ends reading.
        (
            &broken,
            "note: FOLDER has no file named articles or outfits that ends in .jsonl, .ndjson, .csv or .parquet\n\
             FOLDER/customers.csv, line 2: feature \"age\" takes a finite number, found the string \"old\"\n\
             atelier: nothing was imported: FOLDER/customers.csv: reading stopped at line 4: a quote that opens in \
             this row is never closed\n",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            file(&folder, name, text);
        }
        let expected = said.replace("NOTHING", NOTHING).replace("FOLDER", path(folder.path()));
        assert_eq!(refused(atelier(&db, &["import", path(folder.path())])).await, expected);
    }
    let folder = tempfile::tempdir().unwrap();
    let sheet = file(&folder, "outfits.xlsx", "");
    let old = file(&folder, "customers.csv", "id,age\nc-1,old\n");
    let header = file(&folder, "outfits.csv", "buyer;looks\n");
    let no_good_row = "nothing was imported: 1 of 1 rows are bad; fix them\n";
    for (arguments, said) in [
        (&["--articles", "/nowhere/articles.csv"][..], "cannot read /nowhere/articles.csv: No such file"),
        (
            &[path(&sheet)],
            " is a file, not a folder; name its table with --articles, --customers or --outfits\n",
        ),
        (&["--customers", path(&old)], no_good_row),
        (&["--skip-bad", "--customers", path(&old)], no_good_row),
        // Any header is read before the rows of other files.
        (
            &["--customers", path(&old), "--outfits", path(&header)],
            "outfits need the columns \"customer\" and \"articles\", found \"buyer\", \"looks\"",
        ),
    ] {
        refused(atelier(&db, &[&["import"], arguments].concat())).await.has([said]);
    }
    assert_eq!(db.open().await.customers().count().await, Ok(0));
    write_tables(folder.path(), 3);
    for name in ["outfits.csv", "customers.csv", "outfits.xlsx"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    fs::rename(folder.path().join("outfits.jsonl"), folder.path().join("outfit.jsonl")).unwrap();
    let note = "has no file named outfits that ends in .jsonl, .ndjson, .csv or .parquet; ignored files: outfit.jsonl\n";
    done(atelier(&db, &["import", path(folder.path())])).await.has([note]);
}

/// In CSV and Parquet all of them are texts, as most programs write them.
#[apply(on_sqlite)]
async fn prices_and_stock_are_checked_in_every_format(db: TestDatabase) {
    const STOCK: &str = r#"[{"count":2,"size":"M","store":"zurich"}]"#;
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        ("1.299,00", "FALSE", STOCK),
        ("1.299", "ja", "1"),
        ("64,55", "vielleicht", "1"),
        ("1", "ja", r#"{"M":"three"}"#),
    ];
    let (mut csv, mut json_lines, mut articles) =
        ("id,type,price,in_stock,stock\n".to_owned(), String::new(), Vec::new());
    for (n, (price, in_stock, stock)) in rows.into_iter().enumerate() {
        let quoted = stock.replace('"', "\"\"");
        writeln!(csv, "a-{n},coat,\"{price}\",{in_stock},\"{quoted}\"").unwrap();
        writeln!(
            json_lines,
            "{{\"id\":\"a-{n}\",\"type\":\"coat\",\"price\":\"{price}\",\"in_stock\":\"{in_stock}\",\"stock\":{stock}}}"
        )
        .unwrap();
        let attributes = json!({"price": price, "in_stock": in_stock, "stock": stock});
        articles.push(article(&format!("a-{n}"), "coat", attributes));
    }
    let (csv, json_lines) = (file(&folder, "a.csv", csv), file(&folder, "a.jsonl", json_lines));
    let parquet = folder.path().join("a.parquet");
    write_parquet(&parquet, &articles);

    let store = db.open().await;
    for (path, line) in [(path(&csv), "line 3"), (path(&json_lines), "line 2"), (path(&parquet), "row 2")] {
        let said = refused(atelier(&db, &["import", "--articles", path])).await;
        let ambiguous = format!("{line}: the price \"1.299\" can mean 1299 or 1.2990");
        let size = "the stock of size \"M\" is a whole number; found \"three\"";
        said.has(["4 rows read, 3 bad", &ambiguous, "stock is true or false, 0 or 1", size]);
        done(atelier(&db, &["import", "--articles", path, "--skip-bad"])).await;
        let id = article_id("a-0");
        let stored = serde_json::to_string(&store.articles().get(&id).await.unwrap()).unwrap();
        let expected =
            format!(r#"{{"id":"a-0","type":"coat","in_stock":false,"price":1299,"stock":{STOCK}}}"#);
        assert_eq!(stored, expected, "{path}");
        store.articles().remove(&id, NOW).await.unwrap();
    }
}

#[apply(on_sqlite)]
async fn events_of_a_file_are_recorded_once(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c"]).await;
    store.articles().set(&article("a", "coat", json!({"variants": [{"id": "a-M"}]})), NOW).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let rows = "id,kind,customer,variant,order,value\n1,bought,c,a-M,7,\"64,50\"\n2,viewed,,a-M,,\n2,viewed,,a-M,,\n\
                3,bought,nobody,a-M,,\n4,seen,,a-M,,\n";
    let events = file(&folder, "events.csv", rows);
    let said = refused(atelier(&db, &["import", "--events", path(&events)])).await;
    let customer_of = "events.csv, row 5: field \"customer\": there is no such customer";
    let kind = "events.csv, row 6: field \"kind\": an event is viewed, added";
    said.has([customer_of, kind, "  events: 2 new, 1 known, 2 refused; 0 of unknown articles\n"]);
    let said = done(atelier(&db, &["import", "--skip-bad", "--events", path(&events)])).await;
    assert!(said.ends_with("  events: 0 new, 3 known, 2 refused; 0 of unknown articles\n"), "{said}");
    let (.., bought) = store.customers().get_with_purchases(&customer_id("c")).await.unwrap().unwrap();
    assert_eq!(bought, "a", "the variant's article");
}

/// What the first release was trained on, for a refresh and for what customers own.
#[apply(contract)]
async fn past_orders_become_purchases(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c", "d"]).await;
    for id in ["a", "b"] {
        store
            .articles()
            .set(&article(id, "coat", json!({"variants": [{"id": format!("{id}-M")}]})), NOW)
            .await
            .unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let day = |days: u64| rfc3339(SystemTime::now() - Duration::from_hours(24 * days))[..10].to_owned();
    let (recent, old) = (day(300), day(500));
    let rows = format!(
        "order;customer;article;variant;time;returned\n1;c;a;;{recent};no\n1;c;;b-M;{recent};ja\n2;d;a-M;;{recent};\n\
         3;;a;;{recent};\n4;d;b;;{old};\n5;d;gone;;{recent};\n6;nobody;a;;{recent};\n"
    );
    let orders = file(&folder, "orders.csv", rows);
    let said = refused(atelier(&db, &["import", "--orders", path(&orders)])).await;
    said.has([
        "orders.csv, row 8: field \"customer\": there is no such customer",
        "orders.csv, row 7: the catalogue has no article or variant \"gone\"",
        "  orders: 5 new, 0 known, 1 refused; 1 of unknown articles\n",
        "  orders: left out 1 lines without a customer and 1 older than events.keep_days (400)\n",
    ]);
    let said = done(atelier(&db, &["import", "--skip-bad", "--orders", path(&orders)])).await;
    said.has(["  orders: 0 new, 5 known, 1 refused"]);
    let (.., bought) = store.customers().get_with_purchases(&customer_id("c")).await.unwrap().unwrap();
    assert_eq!(bought, "a", "and what came back is not theirs");
    // The export has them as they were.
    let back = folder.path().join("export");
    done(atelier(&db, &["export", path(&back)])).await;
    let line = |order: &str, customer: &str, article: &str, rest: &str| {
        format!(
            "{{\"order\":\"{order}\",\"customer\":\"{customer}\",\"article\":\"{article}\",\"time\":\"{recent}T00:00:00Z\"{rest}}}\n"
        )
    };
    let expected = [
        line("1", "c", "a", ""),
        line("1", "c", "b", ",\"returned\":true"),
        line("2", "d", "a", ""),
        line("5", "d", "gone", ""),
    ];
    assert_eq!(fs::read_to_string(back.join("orders.jsonl")).unwrap(), expected.concat());
}

/// A replica with less memory, or another release, does not start.
#[apply(on_sqlite)]
async fn a_start_that_does_not_fit_says_what_to_delete(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let row = |number: usize| json!({"id": format!("x-{number:02}"), "type": "coat", "note": "x".repeat(60_000 - number)});
    let articles = file(&folder, "articles.jsonl", json_lines((0..100).map(row)));
    let small = ["--set", "limits.catalogue_bytes=3000000"];
    let tried =
        refused(atelier(&db, &[&["import", "--articles", path(&articles)], &small[..]].concat())).await;
    tried.has(["nothing was imported: the catalogue would take 7 MB", "limits.catalogue_bytes"]);
    assert_eq!(db.open().await.articles().count().await, Ok(0));
    done(atelier(&db, &["import", "--articles", path(&articles)])).await;
    let said = refused(serve_demo(&db, &small)).await;
    said.has([
        "limits.catalogue_bytes (--set limits.catalogue_bytes): the catalogue would take 7 MB of each replica's memory; \
         expected at most 3 MB",
        "`atelier import --delete --articles FILE`",
        "the largest are x-00, x-01, x-02",
    ]);
    let gone = json_lines((0..90).map(|number| format!("x-{number:02}")));
    let gone = file(&folder, "gone.csv", format!("id\nunknown\n{gone}"));
    let said =
        done(atelier(&db, &[&["import", "--delete", "--articles", path(&gone)], &small[..]].concat())).await;
    assert!(said.ends_with("  articles: 90 deleted, 1 absent\n"), "{said}");
    let served = Served::launch(serve_demo(&db, &small)).await;
    served.stop().await;
    let ended = ended(atelier(&db, &["import", "--delete", "--looks", "l.csv"]), 2).await;
    ended.has(["--delete", "--looks"]);
}
