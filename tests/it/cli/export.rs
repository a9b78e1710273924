use std::fs;

use super::{atelier, path, run, stderr, write_tables};
use crate::harness::{TestDatabase, contracts};

contracts!(
    an_export_equals_the_import,
    every_format_can_be_imported_again,
    files_are_not_overwritten,
    the_schema_is_exported_too,
    a_mistyped_database_is_not_created,
    what_a_killed_export_left_is_removed,
);

const TABLES: [&str; 3] = ["articles", "customers", "outfits"];

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
