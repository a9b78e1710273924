use std::fs;

use super::{atelier, path, run, said, write_tables};
use crate::harness::{TestDatabase, contracts};

contracts!(
    gives_back_what_was_imported,
    every_format_leads_back,
    does_not_write_over_files,
    another_companys_schema_goes_along,
    a_mistyped_database_is_not_made,
);

const TABLES: [&str; 3] = ["articles", "customers", "outfits"];

async fn gives_back_what_was_imported(db: TestDatabase) {
    let (given, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_tables(given.path(), 300);
    assert!(run(atelier(&db, &["import", path(given.path())])).await.status.success());
    let output = run(atelier(&db, &["export", path(back.path())])).await;
    assert!(output.status.success(), "{}", said(&output));
    for table in TABLES {
        let file = format!("{table}.jsonl");
        let read = |folder: &tempfile::TempDir| fs::read_to_string(folder.path().join(&file)).unwrap();
        assert_eq!(read(&back), read(&given), "{table}");
    }
}

/// Out as CSV or Parquet, in again, out as JSON Lines: still the same bytes.
async fn every_format_leads_back(db: TestDatabase) {
    let given = tempfile::tempdir().unwrap();
    write_tables(given.path(), 100);
    assert!(run(atelier(&db, &["import", path(given.path())])).await.status.success());
    for format in ["csv", "parquet"] {
        let (flat, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let output = run(atelier(&db, &["export", path(flat.path()), "--format", format])).await;
        assert!(output.status.success(), "{}", said(&output));
        let other = format!("sqlite:{}", back.path().join("other.db").display());
        let mut import = atelier(&db, &["import", path(flat.path())]);
        import.args(["--database", &other]);
        let output = run(import).await;
        assert!(output.status.success(), "{}", said(&output));
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

async fn does_not_write_over_files(db: TestDatabase) {
    db.open().await.close().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("articles.jsonl");
    fs::write(&file, "mine").unwrap();
    let output = run(atelier(&db, &["export", path(folder.path())])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("articles.jsonl already exists"), "{}", said(&output));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let output = run(atelier(&db, &["export", path(folder.path()), "--force"])).await;
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::read_to_string(&file).unwrap(), "");
    let output = run(atelier(&db, &["export", path(folder.path()), "--force", "--format", "csv"])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("articles.jsonl has another format"), "{}", said(&output));
}

/// What is a number by the built-in schema is a word by this one.
async fn another_companys_schema_goes_along(db: TestDatabase) {
    let (given, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let schema = "name = \"ours\"\n[[feature]]\nname = \"age\"\nkind = \"category\"\nvalues = [\"young\"]\n";
    let file = given.path().join("schema.toml");
    fs::write(&file, schema).unwrap();
    let customers = "{\"id\":\"c-1\",\"features\":{\"age\":\"young\"}}\n";
    fs::write(given.path().join("customers.jsonl"), customers).unwrap();
    assert!(run(atelier(&db, &["import", path(given.path())])).await.status.success());
    let output = run(atelier(&db, &["export", path(back.path()), "--schema", path(&file)])).await;
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::read_to_string(back.path().join("schema.toml")).unwrap(), schema);
    let again = run(atelier(&db, &["import", path(back.path())])).await;
    assert!(again.status.success(), "{}", said(&again));
    assert_eq!(fs::read_to_string(back.path().join("customers.jsonl")).unwrap(), customers);
}

async fn a_mistyped_database_is_not_made(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nothere.db");
    let mut export = atelier(&db, &["export", path(folder.path())]);
    export.args(["--database", &format!("sqlite:{}", file.display())]);
    let output = run(export).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).starts_with("atelier: there is no database at "), "{}", said(&output));
    assert!(!file.exists() && !folder.path().join("articles.jsonl").exists());
}
