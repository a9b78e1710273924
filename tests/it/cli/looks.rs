//! Looks in files: `atelier import` and `atelier export`, and `atelier looks`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::Path,
    process::Command,
};

use atelier::platform::db::Entry;
use atelier_core::domain::Article;
use parquet::{file::reader::SerializedFileReader, record::RowAccessor};
use serde_json::{Value, json};

use crate::{
    cli::{atelier, done, file, path, refused},
    harness::{
        self, Demo, Html, NOW, TestDatabase, apply, contract, entries, models, on_sqlite, pick, rows,
        with_customers,
    },
    releases::operations::releases::two_releases,
};

/// Published; of a blouse, a coat, trousers and ballerinas.
const CSV: &str = "look;article;position;title;tags;state;when\n\
    autumn;a-00259;4;Autumn office;office|rain;published;\"{\"\"features\"\": {\"\"gender\"\": [\"\"female\"\"]}}\"\n\
    autumn;a-00134;1;;;;\nautumn;a-01243;2;;;;\nautumn;a-00568;3;;;;\n\
    pair;a-00134;1;Pair;;published;\npair;a-00568;2;;;;\n";

fn import(db: &TestDatabase, file: &Path, flags: &[&str]) -> Command {
    atelier(db, &[&["import", "--looks", path(file)], flags].concat())
}

#[apply(contract)]
async fn looks_are_imported_and_exported(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let looks = file(&folder, "lookbook.csv", CSV);
    let said = done(import(&db, &looks, &["--delimiter", ";"])).await;
    said.has(["looks: 2 new, 0 changed, 0 unchanged"]);
    for format in ["jsonl", "csv", "parquet"] {
        let back = tempfile::tempdir().unwrap();
        done(atelier(&db, &["export", path(back.path()), "--format", format])).await;
        if format == "jsonl" {
            let text = fs::read_to_string(back.path().join("looks.jsonl")).unwrap();
            let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            let articles = json!(["a-00134", "a-01243", "a-00568", "a-00259"]);
            assert_eq!((&first["look"], &first["articles"]), (&json!("autumn"), &articles));
            assert_eq!(first["when"], json!({"features": {"gender": ["female"]}}));
        }
        let again = done(atelier(&db, &["import", path(back.path())])).await;
        again.has(["looks: 0 new, 0 changed, 2 unchanged"]);
    }
    // A look that is too long stops all tables.
    let articles = file(&folder, "articles.csv", "id,type\na-1,coat\n");
    fs::write(&looks, format!("look,articles,note\nlong,a|b,{}\n", "x".repeat(1100))).unwrap();
    let flags = ["--articles", path(&articles), "--set", "limits.row_bytes=1024"];
    refused(import(&db, &looks, &flags)).await.has(["limits.row_bytes"]);
    assert_eq!(db.open().await.articles().count().await, Ok(0), "nothing is half imported");
    // All or none, unless bad looks are skipped.
    fs::write(&looks, "look,articles\nnew,a|b\nlonely,a\n").unwrap();
    let bad = "row 3: look \"lonely\": articles: a look has 2 to 12 articles, found 1";
    refused(import(&db, &looks, &[])).await.has([bad]);
    let store = db.open().await;
    assert_eq!(store.looks().list().await.unwrap().len(), 2, "nothing was imported");
    done(import(&db, &looks, &["--skip-bad"])).await.has(["looks: 1 new"]);
    let entries = entries(&store, 9).await;
    let imports = entries.iter().filter(|entry| entry.action == "look.import").count();
    assert_eq!(imports, 2, "what changed nothing has no entry");
}

/// What becomes of a stored look is asked of `/looks`.
#[apply(on_sqlite)]
async fn an_imported_look_is_served(Demo(service): Demo, db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    done(import(&db, &file(&folder, "looks.csv", CSV), &[])).await;
    service.releases.refresh().await.unwrap();
    let looks = service.json("/articles/a-01243/looks?customer=c-000867&n=1").await;
    assert_eq!(pick(&looks, "looks/0/look looks/0/title"), json!(["autumn", "Autumn office"]), "{looks}");
}

#[apply(on_sqlite)]
async fn looks_of_all_articles_are_written_in_parts(db: TestDatabase) {
    let store = db.open().await;
    let few = |one: &Article| one.id.as_str() < "a-00009" || CSV.contains(one.id.as_str());
    harness::import(&store, &rows().into_iter().filter(few).collect::<Vec<_>>()).await;
    store.close().await;
    let folder = tempfile::tempdir().unwrap();
    done(import(&db, &file(&folder, "looks.csv", CSV), &[])).await;
    let write = async |output: &Path, flags: &[&str]| {
        let mut command = atelier(&db, &["looks", "--output", path(output), "--part", "5", "--n", "2"]);
        command.args(["--models", path(&models()), "--device", "cpu"]).args(flags);
        done(command).await
    };
    let output = tempfile::tempdir().unwrap();
    write(output.path(), &["--share", "0/2"]).await.has(["of 5 articles"]);
    write(output.path(), &["--share", "1/2"]).await;
    assert!(write(output.path(), &[]).await.contains("already exists"));
    let mut by_article: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for part in fs::read_dir(output.path()).unwrap() {
        for line in fs::read_to_string(part.unwrap().path()).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            by_article.entry(row["article"].as_str().unwrap().to_owned()).or_default().push(row);
        }
    }
    assert_eq!(by_article.len(), 12);
    for (article, rows) in &by_article {
        let pieces: BTreeSet<&str> =
            rows.iter().filter(|row| row["rank"] == 1).map(|row| row["piece"].as_str().unwrap()).collect();
        assert!(pieces.contains(article.as_str()), "{rows:?}");
        assert!(rows.iter().all(|row| row["total"].is_number()), "{rows:?}");
    }
    // The published look is for women, and nobody is named.
    let first: Vec<&Value> = by_article["a-00134"].iter().filter(|row| row["rank"] == 1).collect();
    assert_eq!(first.iter().map(|row| &row["look"]).collect::<Vec<_>>(), ["pair", "pair"]);
    let columns = tempfile::tempdir().unwrap();
    write(columns.path(), &["--format", "parquet", "--total-max", "150"]).await;
    let mut count = 0;
    for part in fs::read_dir(columns.path()).unwrap() {
        for row in SerializedFileReader::new(File::open(part.unwrap().path()).unwrap()).unwrap() {
            let row = row.unwrap();
            let names: Vec<&str> = row.get_column_iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names.join(" "), "article rank look position piece variant replaces total");
            assert!(row.get_double(7).unwrap() <= 150.0);
            count += 1;
        }
    }
    assert!(count > 0, "some are as cheap");
    // A release that was activated since, or the one that a flag names.
    let releases = two_releases();
    let store = db.open().await;
    with_customers(&store, &["c"]).await;
    let entry = Entry::new("release.activate", "less", json!({}));
    store.settings().set("release", "less", &entry, NOW).await.unwrap();
    for (flags, said) in [(&[][..], "gsu of less on"), (&["--release", "demo"], "match of demo on")] {
        let output = tempfile::tempdir().unwrap();
        let mut command =
            atelier(&db, &["looks", "--output", path(output.path()), "--share", "1/3", "--n", "1"]);
        command.args(["--models", path(releases.path()), "--device", "cpu"]).args(flags);
        done(command).await.has([said]);
        let (parts, completed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        file(&parts, "part-00000.jsonl", "{\"customer\": \"c\", \"articles\": [\"a-00134\", \"\"]}\n");
        let mut command =
            atelier(&db, &["complete", "--input", path(parts.path()), "--output", path(completed.path())]);
        command.args(["--models", path(releases.path()), "--device", "cpu"]).args(flags);
        done(command).await.has([said]);
    }
}
