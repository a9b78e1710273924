use std::{fs, io::Write, process::Stdio};

use atelier::platform::db::Actor;
use atelier_core::domain::{Article, ArticleId, Customer, CustomerId, Features, Schema, Timestamp};
use atelier_files::{EventRow, Format, TableColumns, Writer, read};
use serde_json::{Value, json};

use super::{atelier, path, run, stderr, write_tables};
use crate::harness::{TestDatabase, apply, contract, on_sqlite};

/// 10,000 customers, about every 300th broken in its own way: 30 in all.
fn ten_thousand_with_thirty_bad(folder: &std::path::Path) -> std::path::PathBuf {
    write_tables(folder, 10_000);
    let file = folder.join("customers.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines().enumerate().map(|(number, line)| {
        if number % 300 != 17 || number > 9_000 {
            return line.to_owned();
        }
        match number / 300 % 3 {
            0 => line[..20].to_owned(),
            1 => line.replace("\"age\":", "\"age\":\"old\",\"height\":"),
            _ => line.replace(&line[..15], "{\"id\":\"c-00001\""),
        }
    });
    let lines: Vec<String> = lines.collect();
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    file
}

#[apply(on_sqlite)]
async fn one_bad_row_rejects_the_import(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = ten_thousand_with_thirty_bad(folder.path());
    let output = run(atelier(&db, &["import", "--customers", path(&file)])).await;
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let listed: Vec<&str> = stderr.lines().filter(|line| line.contains("customers.jsonl, line ")).collect();
    let [syntax, age, repeated] = &listed[..] else { panic!("a line for each kind: {stderr}") };
    let found = "line 18: not JSON: it ends too early, after character 20; a row is one object on one line \
                 (10 rows in all; also 918, 1818, ";
    assert!(syntax.contains(found), "{syntax}");
    let found = "line 318: feature \"age\" takes a finite number, found the string \"old\" (10 rows in all; also 1218, ";
    assert!(age.contains(found), "{age}");
    assert!(repeated.contains("line 618: customer \"c-00001\" is already in line 2 (10 rows "), "{repeated}");
    assert!(stderr.contains("customers.jsonl: 10,000 rows read, 30 bad, in "), "{stderr}");
    assert!(
        stderr.ends_with(
            "nothing was imported. Fix the 30 bad rows, or import the 9,970 good rows with --skip-bad\n"
        ),
        "{stderr}"
    );
    assert!(!stderr.contains("new"), "nothing is new before it is in the database: {stderr}");
    let store = db.open().await;
    assert_eq!((store.customers().count().await, store.audit().list(None, 9).await), (Ok(0), Ok(vec![])));
}

#[apply(on_sqlite)]
async fn good_rows_are_imported_when_bad_ones_are_skipped(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = ten_thousand_with_thirty_bad(folder.path());
    let output = run(atelier(&db, &["import", "--skip-bad", "--customers", path(&file)])).await;
    let stderr = stderr(&output);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("imported into "), "{stderr}");
    assert!(
        stderr.ends_with("  customers: 9,970 new, 0 changed, 0 unchanged\nskipped: 30 bad rows\n"),
        "{stderr}"
    );
    let store = db.open().await;
    assert_eq!(store.customers().count().await, Ok(9970));
    let entries = store.audit().list(None, 9).await.unwrap();
    let [entry] = &entries[..] else { panic!("one entry: {entries:?}") };
    assert_eq!((entry.actor, entry.action.as_str()), (Actor::Service, "customers.bulk"));
    assert_eq!(Value::from(entry.details.clone()), json!({"added": 9970, "changed": 0, "bad": 30}));
}

/// Half of the file goes through a pipe, so that the import is half done when it is killed.
#[apply(contract)]
async fn a_killed_import_leaves_nothing_and_can_be_repeated(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path(), 20_000);
    let whole = fs::read_to_string(folder.path().join("customers.jsonl")).unwrap();
    let pipe = folder.path().join("pipe.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());

    let mut import = atelier(&db, &["import", "--customers", path(&pipe)]);
    let mut child = import.stderr(Stdio::null()).spawn().unwrap();
    tokio::task::spawn_blocking(move || {
        let mut writer = fs::OpenOptions::new().write(true).open(pipe).unwrap();
        // A pipe holds 64 KiB: when this returns, the rest was read, and most of it stored.
        writer.write_all(&whole.as_bytes()[..whole.len() / 2]).unwrap();
        assert_eq!(child.try_wait().unwrap(), None, "it waits for more");
        child.kill().unwrap();
        child.wait().unwrap();
    })
    .await
    .unwrap();

    assert_eq!(db.open().await.customers().count().await, Ok(0));
    let again = run(atelier(&db, &["import", path(folder.path())])).await;
    assert!(again.status.success(), "{}", stderr(&again));
    let store = db.open().await;
    assert_eq!(store.articles().count().await, Ok(20));
    assert_eq!(store.customers().count().await, Ok(20_000));
    assert_eq!(store.outfits().count().await, Ok(20_001));
}

#[apply(on_sqlite)]
async fn a_second_import_changes_nothing(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path(), 50);
    for expected in [" 50 new, 0 changed, 0 unchanged", " 0 new, 0 changed, 50 unchanged"] {
        let output = run(atelier(&db, &["import", path(folder.path())])).await;
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stderr(&output).matches(expected).count(), 1, "{}", stderr(&output));
    }
    assert_eq!(db.open().await.outfits().count().await, Ok(51));
}

#[apply(on_sqlite)]
async fn an_unknown_value_is_noted(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("customers.csv");
    fs::write(&file, "id,gender,mood\nc-1,female,\nc-2,divers,good\nc-3,divers,\n").unwrap();
    let output = run(atelier(&db, &["import", "--customers", path(&file)])).await;
    let stderr = stderr(&output);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("line 3: feature \"gender\" has no value \"divers\""), "{stderr}");
    assert!(stderr.contains("(2 rows in all)"), "{stderr}");
    assert!(stderr.contains("the schema has no feature \"mood\""), "{stderr}");
    assert_eq!(db.open().await.customers().count().await, Ok(3));
}

#[apply(on_sqlite)]
async fn what_the_release_does_not_know_is_noted(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("articles.csv");
    fs::write(&file, "id,type,colour\np-1,poncho,navy\np-2,poncho,navy\np-3,coat,navy\n").unwrap();
    let import = |models: &str| {
        atelier(&db, &["--set", &format!("models.folder={models}"), "import", "--articles", path(&file)])
    };
    let output = run(import("models")).await;
    let found = stderr(&output);
    let note = "note: type \"poncho\" of 2 articles is new to release demo: until a release is trained with it, only the \
                other attributes count";
    assert!(output.status.success() && found.contains(note), "{found}");
    assert!(
        found.contains("note: new articles have no brand (3), ") && found.contains("gender (3)"),
        "{found}"
    );
    assert_eq!(found.matches("note: ").count(), 2, "{found}");
    let output = run(import(path(folder.path()))).await;
    assert!(output.status.success() && !stderr(&output).contains("note: "), "{}", stderr(&output));
}

#[apply(on_sqlite)]
async fn a_missing_file_is_named(db: TestDatabase) {
    let output = run(atelier(&db, &["import", "--articles", "/nowhere/articles.csv"])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("atelier: cannot read /nowhere/articles.csv: No such file"));
}

#[apply(on_sqlite)]
async fn an_empty_import_is_refused(db: TestDatabase) {
    let empty = tempfile::tempdir().unwrap();
    let output = run(atelier(&db, &["import", path(empty.path())])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("atelier: nothing to import"), "{}", stderr(&output));
}

#[apply(on_sqlite)]
async fn a_folder_without_tables_is_refused_with_its_contents(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let import = || run(atelier(&db, &["import", path(folder.path())]));
    let expected = "expected files named articles, customers and outfits that end in .jsonl, .ndjson, .csv or \
                    .parquet";
    let refusal = |contents: &str| {
        format!("atelier: nothing to import: {expected}, but {} {contents}\n", path(folder.path()))
    };
    assert_eq!(stderr(&import().await), refusal("is empty"));
    for name in ["Articles.csv", "outfits.xlsx", ".hidden", "schema.toml"] {
        fs::write(
            folder.path().join(name),
            "name = \"x\"\n[[feature]]\nname = \"a\"\nkind = \"set\"\nvalues = [\"b\"]\n",
        )
        .unwrap();
    }
    assert_eq!(stderr(&import().await), refusal("contains Articles.csv, outfits.xlsx"));
    for number in 0..9 {
        fs::write(folder.path().join(format!("{number}.txt")), "").unwrap();
    }
    assert!(
        stderr(&import().await)
            .ends_with("contains 0.txt, 1.txt, 2.txt, 3.txt, 4.txt, 5.txt, 6.txt, 7.txt and 3 more\n")
    );
    let file = folder.path().join("outfits.xlsx");
    assert_eq!(
        stderr(&run(atelier(&db, &["import", path(&file)])).await),
        format!(
            "atelier: {} is a file, not a folder; name its table with --articles, --customers or --outfits\n",
            path(&file)
        )
    );
}

#[apply(on_sqlite)]
async fn a_table_in_two_files_is_refused(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path(), 3);
    fs::write(folder.path().join("articles.csv"), "id,type\n").unwrap();
    let output = run(atelier(&db, &["import", path(folder.path())])).await;
    assert_eq!(
        stderr(&output),
        format!(
            "atelier: {} contains articles more than once: articles.csv, articles.jsonl; keep one file\n",
            path(folder.path())
        )
    );
}

#[apply(on_sqlite)]
async fn a_missing_table_is_named(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path(), 3);
    fs::rename(folder.path().join("outfits.jsonl"), folder.path().join("outfit.jsonl")).unwrap();
    let output = run(atelier(&db, &["import", path(folder.path())])).await;
    assert!(output.status.success(), "{}", stderr(&output));
    let note = "has no file named outfits that ends in .jsonl, .ndjson, .csv or .parquet; ignored files: outfit.jsonl\n";
    assert!(stderr(&output).contains(note), "{}", stderr(&output));
}

#[apply(on_sqlite)]
async fn bad_rows_are_reported_before_the_error_that_ends_reading(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("customers.csv");
    fs::write(&file, "id,age\nc-1,old\nc-2,28\nc-3,\"29\nc-4,30\n").unwrap();
    for flags in [&[][..], &["--skip-bad"]] {
        let output = run(atelier(&db, &[&["import", "--customers", path(&file)], flags].concat())).await;
        assert_eq!(output.status.code(), Some(1));
        let name = path(&file);
        assert_eq!(
            stderr(&output),
            format!(
                "{name}, line 2: feature \"age\" takes a finite number, found the string \"old\"\n\
                 atelier: nothing was imported: {name}: reading stopped at line 4: a quote that opens in this \
                 row is never closed\n"
            )
        );
    }
    assert_eq!(db.open().await.customers().count().await, Ok(0));
}

#[apply(on_sqlite)]
async fn a_wrong_header_in_any_file_is_reported_before_reading(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path(), 3);
    fs::remove_file(folder.path().join("outfits.jsonl")).unwrap();
    fs::write(folder.path().join("outfits.csv"), "buyer;looks\n").unwrap();
    let output = run(atelier(&db, &["import", path(folder.path())])).await;
    let stderr = stderr(&output);
    assert!(stderr.starts_with("atelier: "), "{stderr}");
    assert!(
        stderr.contains("outfits need the columns \"customer\" and \"articles\", found \"buyer\", \"looks\""),
        "{stderr}"
    );
}

#[apply(on_sqlite)]
async fn without_a_good_row_nothing_is_imported(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("customers.csv");
    fs::write(&file, "id,age\nc-1,old\n").unwrap();
    for flags in [&[][..], &["--skip-bad"]] {
        let output = run(atelier(&db, &[&["import", "--customers", path(&file)], flags].concat())).await;
        assert_eq!(output.status.code(), Some(1));
        assert!(
            stderr(&output).ends_with("nothing was imported. Fix the bad row; there are no good ones\n"),
            "{}",
            stderr(&output)
        );
    }
}

#[apply(on_sqlite)]
async fn a_repeated_outfit_is_noted(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path(), 3);
    let file = folder.path().join("outfits.jsonl");
    let rows = fs::read_to_string(&file).unwrap();
    fs::write(&file, rows.repeat(2)).unwrap();
    let output = run(atelier(&db, &["import", path(folder.path())])).await;
    let stderr = stderr(&output);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("outfits.jsonl: 8 rows read, in "), "{stderr}");
    assert!(stderr.contains("line 4: this outfit repeats line 1, which is in another split"), "{stderr}");
    assert!(stderr.contains("line 5: this outfit repeats line 1 (3 rows in all)\n"), "{stderr}");
    assert!(stderr.ends_with("  outfits: 8 new, 0 changed, 0 unchanged\n"), "{stderr}");
}

#[apply(on_sqlite)]
async fn a_price_and_stock_are_checked_in_every_format(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let bad = [("€12", "ja"), ("-5", "ja"), ("1.299", "ja"), ("64,55", "vielleicht")];
    let good = [("64,55", "ja"), ("1.299,00", "FALSE")];
    let rows = || good.iter().chain(&bad).zip(1..);

    let csv = folder.path().join("articles.csv");
    let lines = rows().map(|((price, stock), n)| format!("a-{n},coat,\"{price}\",{stock}\n"));
    fs::write(&csv, format!("id,type,price,in_stock\n{}", lines.collect::<String>())).unwrap();
    let json_lines = folder.path().join("articles.jsonl");
    let lines = rows().map(|((price, stock), n)| {
        format!("{{\"id\":\"a-{n}\",\"type\":\"coat\",\"price\":\"{price}\",\"in_stock\":\"{stock}\"}}\n")
    });
    fs::write(&json_lines, lines.collect::<String>()).unwrap();
    let parquet = folder.path().join("articles.parquet");
    let articles: Vec<Article> = rows()
        .map(|((price, stock), n)| {
            let attributes =
                [("price".to_owned(), (*price).into()), ("in_stock".to_owned(), (*stock).into())];
            let id = ArticleId::new(format!("a-{n}")).unwrap();
            Article::new(id, "coat", attributes.into_iter().collect()).unwrap()
        })
        .collect();
    let mut columns = TableColumns::new(&Schema::default_schema());
    for article in &articles {
        columns.include(article);
    }
    let mut writer = Writer::create(&parquet, Format::Parquet, &columns).unwrap();
    for article in &articles {
        writer.write(article).unwrap();
    }
    writer.finish().unwrap();

    for (file, first) in [(&csv, "line 4"), (&json_lines, "line 3"), (&parquet, "row 3")] {
        let arguments = ["import", "--articles", path(file)];
        let refused = run(atelier(&db, &arguments)).await;
        let errors = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{errors}");
        assert!(errors.contains("6 rows read, 4 bad"), "{errors}");
        assert!(errors.contains(&format!("{first}: a price is a number of 0 or more")), "{errors}");
        assert!(errors.contains("the price \"1.299\" can mean 1299 or 1.2990"), "{errors}");
        assert!(errors.contains("stock is true or false, 0 or 1"), "{errors}");
        let skipped = run(atelier(&db, &[&arguments[..], &["--skip-bad"]].concat())).await;
        assert!(skipped.status.success(), "{}", stderr(&skipped));
        let store = db.open().await;
        assert_eq!(store.articles().count().await, Ok(2), "{}", file.display());
        let stored = async |id| {
            let article = store.articles().get(&ArticleId::new(id).unwrap()).await.unwrap().unwrap();
            serde_json::to_string(&article).unwrap()
        };
        assert_eq!(stored("a-1").await, r#"{"id":"a-1","type":"coat","in_stock":true,"price":64.55}"#);
        assert_eq!(stored("a-2").await, r#"{"id":"a-2","type":"coat","in_stock":false,"price":1299}"#);
        for id in ["a-1", "a-2"] {
            store
                .articles()
                .delete(&ArticleId::new(id).unwrap(), std::time::SystemTime::now().into())
                .await
                .unwrap();
        }
        store.close().await;
    }
}

#[apply(on_sqlite)]
async fn stock_by_size_is_read_in_every_format(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let stocks = [r#"{"L":0,"M":3}"#, r#"[{"count":2,"size":"M","store":"zurich"}]"#, r#"{"M":"three"}"#];
    let csv = folder.path().join("articles.csv");
    let quoted = stocks.map(|stock| format!("\"{}\"", stock.replace('"', "\"\"")));
    let rows: Vec<String> = (1..).zip(&quoted).map(|(n, stock)| format!("a-{n},coat,{stock}\n")).collect();
    fs::write(&csv, format!("id,type,stock\n{}a-4,coat,7\n", rows.concat())).unwrap();
    let json_lines = folder.path().join("articles.jsonl");
    let line =
        |(n, stock): (i32, &str)| format!("{{\"id\":\"a-{n}\",\"type\":\"coat\",\"stock\":{stock}}}\n");
    let rows: Vec<String> = (1..).zip(stocks).chain([(4, "7")]).map(line).collect();
    fs::write(&json_lines, rows.concat()).unwrap();
    // A column of texts, as most programs write one.
    let parquet = folder.path().join("articles.parquet");
    let articles = (1..).zip(stocks.into_iter().chain(["7"])).map(|(n, stock)| {
        let attributes = [("stock".to_owned(), stock.into())].into_iter().collect();
        Article::new(ArticleId::new(format!("a-{n}")).unwrap(), "coat", attributes).unwrap()
    });
    let articles: Vec<Article> = articles.collect();
    let mut columns = TableColumns::new(&Schema::default_schema());
    for article in &articles {
        columns.include(article);
    }
    let mut writer = Writer::create(&parquet, Format::Parquet, &columns).unwrap();
    for article in &articles {
        writer.write(article).unwrap();
    }
    writer.finish().unwrap();

    for (file, third) in [(&csv, "line 4"), (&json_lines, "line 3"), (&parquet, "row 3")] {
        let output = run(atelier(&db, &["import", "--articles", path(file), "--skip-bad"])).await;
        let said = stderr(&output);
        assert!(output.status.success(), "{said}");
        let expected = format!("{third}: the stock of size \"M\" is a whole number; found \"three\"");
        assert!(said.contains(&expected), "{said}");
        let store = db.open().await;
        for (id, stock) in [("a-1", stocks[0]), ("a-2", stocks[1]), ("a-4", "7")] {
            let id = ArticleId::new(id).unwrap();
            let article = store.articles().get(&id).await.unwrap().unwrap();
            assert_eq!(article.attribute("stock").unwrap().to_string(), stock, "{}", file.display());
            store.articles().delete(&id, std::time::SystemTime::now().into()).await.unwrap();
        }
        store.close().await;
    }
}

#[apply(on_sqlite)]
async fn events_are_recorded_from_files_of_every_format(db: TestDatabase) {
    let store = db.open().await;
    let customer = Customer { id: CustomerId::new("c").unwrap(), features: Features::default() };
    store.customers().put(&customer, Timestamp::from_millis(0)).await.unwrap();
    let attributes = json!({"variants": [{"id": "a-M"}]}).as_object().unwrap().clone();
    let article = Article::new(ArticleId::new("a").unwrap(), "coat", attributes).unwrap();
    store.articles().put(&article, Timestamp::from_millis(0)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("events.csv");
    let rows = "id,kind,customer,variant,order,value\n1,bought,c,a-M,7,\"64,50\"\n2,viewed,,a-M,,\n2,viewed,,a-M,,\n\
                3,bought,nobody,a-M,,\n4,seen,,a-M,,\n";
    fs::write(&csv, rows).unwrap();
    let output = run(atelier(&db, &["import", "--events", path(&csv)])).await;
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("events.csv, row 5: field \"customer\": there is no such customer"), "{said}");
    assert!(said.contains("events.csv, row 6: field \"kind\": an event is viewed, added"), "{said}");
    assert!(said.ends_with("  events: 2 new, 1 known, 2 refused\n"), "{said}");
    let schema = Schema::default_schema();
    for format in [Format::Parquet, Format::JsonLines] {
        let file = folder.path().join(format!("again.{}", format.extension()));
        let rows: Vec<EventRow> =
            read::<EventRow>(&csv, &schema).unwrap().filter_map(|row| Some(row.ok()?.value)).collect();
        // The writer writes texts.
        let rows: Vec<EventRow> = rows.into_iter().map(|row| EventRow { value: None, ..row }).collect();
        let mut columns = TableColumns::new(&schema);
        for row in &rows {
            columns.include(row);
        }
        let mut writer = Writer::create(&file, format, &columns).unwrap();
        for row in &rows {
            writer.write(row).unwrap();
        }
        writer.finish().unwrap();
        let output = run(atelier(&db, &["import", "--skip-bad", "--events", path(&file)])).await;
        let said = stderr(&output);
        assert!(output.status.success(), "{said}");
        assert!(said.ends_with("  events: 0 new, 3 known, 2 refused\n"), "{said}");
    }
    let (.., bought) = store.customers().get_with_purchases(&customer.id).await.unwrap().unwrap();
    assert_eq!(bought, "a", "the variant's article");
}
