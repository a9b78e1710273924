//! The verbs of the built program, run as from a shell.

pub mod backup;
pub mod complete;
pub mod demo;
pub mod export;
pub mod feeds;
pub mod import;
pub mod key;
pub mod looks;
pub mod migrate;
pub mod onnx_runtime;
pub mod privacy;
pub mod reference;
pub mod serve;
pub mod shop_files;
pub mod sign_in_link;
pub mod sign_ins;
pub mod tls;
pub mod traces;

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use atelier_core::domain::Schema;
use atelier_files::{Format, Table, TableColumns, Writer};
use tempfile::TempDir;

pub use crate::harness::fill;
use crate::{
    demo::copy,
    harness::{TestDatabase, models},
};

pub const REQUIRE_KEY: &str = "ATELIER__ACCESS__REQUIRE_KEY";

/// The built `atelier`, on the test's database. Its service needs no keys, unless the test removes the variable.
pub fn atelier(db: &TestDatabase, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atelier"));
    command.args(["--database", &db.url]).args(arguments).env_remove("DATABASE_URL");
    command.env(REQUIRE_KEY, "false");
    command
}

/// Its service, on a free port.
pub fn serve(db: &TestDatabase, flags: &[&str]) -> Command {
    atelier(db, &[&["serve", "--address", "127.0.0.1:0"], flags].concat())
}

/// The same with the demo release.
pub fn serve_demo(db: &TestDatabase, flags: &[&str]) -> Command {
    let mut command = serve(db, flags);
    command.arg("--models").arg(models()).args(["--device", "cpu"]);
    command
}

pub async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// What it says on stderr if it ends well, as it must.
pub async fn done(command: Command) -> String {
    ended(command, 0).await
}

/// What it says on stderr if it refuses, as it must.
pub async fn refused(command: Command) -> String {
    ended(command, 1).await
}

/// What it says on stderr if it ends with this code, as it must.
pub async fn ended(command: Command, code: i32) -> String {
    stderr(&run_to(command, code).await)
}

async fn run_to(command: Command, code: i32) -> Output {
    let words = format!("{command:?}");
    let output = run(command).await;
    assert_eq!(output.status.code(), Some(code), "{words}: {}", stderr(&output));
    output
}

/// What it prints on stdout if it ends well, as it must.
pub async fn printed(command: Command) -> String {
    String::from_utf8(run_to(command, 0).await.stdout).unwrap()
}

pub fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A file with this text.
pub fn file(folder: &TempDir, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

/// A Parquet file with these rows.
pub fn write_parquet<T: Table>(path: &Path, rows: &[T]) {
    let mut columns = TableColumns::new(&Schema::default_schema());
    for row in rows {
        columns.include(row);
    }
    let mut writer = Writer::create(path, Format::Parquet, &columns).unwrap();
    for row in rows {
        writer.write(row).unwrap();
    }
    writer.finish().unwrap();
}

/// A folder of releases with a copy of the demo's, and that release's own folder.
pub fn copy_demo() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let release = folder.path().join("demo");
    copy(&models().join("demo"), &release).unwrap();
    (folder, release)
}

/// Writes three small tables in canonical form, with one more outfit than customers.
pub fn write_tables(folder: &Path, customers: usize) {
    let (mut articles, mut rows, mut outfits) = (String::new(), String::new(), String::new());
    for n in 0..20 {
        let kind = ["coat", "boot", "scarf", "jeans"][n % 4];
        let (in_stock, price) = (n % 3 == 0, n + 10);
        writeln!(
            articles,
            r#"{{"id":"a-{n:02}","type":"{kind}","brand":"Fjell & Söhne","in_stock":{in_stock},"price":{price}.95,"sizes":["S","M"]}}"#
        )
        .unwrap();
    }
    for n in 0..customers {
        let (age, last, split) = (18 + n % 60, 3 + n % 17, if n % 5 == 0 { "validation" } else { "train" });
        writeln!(
            rows,
            r#"{{"id":"c-{n:05}","features":{{"age":{age},"gender":"female","preferred_colours":["grey"],"shoe_size":"38"}}}}"#
        )
        .unwrap();
        writeln!(
            outfits,
            r#"{{"customer":"c-{n:05}","articles":["a-00","a-01","a-02","a-{last:02}"],"split":"{split}","features":{{"occasion":"office"}}}}"#
        )
        .unwrap();
    }
    // A stylist may save the same outfit twice.
    let again = outfits.lines().next().unwrap_or_default().replace("validation", "train");
    writeln!(outfits, "{again}").unwrap();
    for (name, text) in [("articles", articles), ("customers", rows), ("outfits", outfits)] {
        fs::write(folder.join(format!("{name}.jsonl")), text).unwrap();
    }
}

/// Imports such tables.
pub async fn import_tables(db: &TestDatabase, customers: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path(), customers);
    done(atelier(db, &["import", path(folder.path())])).await;
    folder
}
