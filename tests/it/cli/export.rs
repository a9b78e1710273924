use std::{fs, path::Path, time::SystemTime};

use atelier_core::{domain::ArticleId, util::digest};
use serde_json::{Value, json};

use super::{atelier, path, run, stderr, write_tables};
use crate::harness::{TestDatabase, apply, contract};

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

/// It may name customers who are erased by now.
#[apply(contract)]
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
#[apply(contract)]
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

#[apply(contract)]
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

#[apply(contract)]
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
#[apply(contract)]
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
    assert_eq!(fs::read_to_string(back.path().join("schema.toml")).unwrap(), schema);
    let again = run(atelier(&db, &["import", path(back.path())])).await;
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!(fs::read_to_string(back.path().join("customers.jsonl")).unwrap(), customers);
}

/// Without a schema of its own, the folder gets the one that the service reads customers with.
#[apply(contract)]
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

#[apply(contract)]
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
