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
    path::Path,
    process::{Command, Output},
};

use crate::harness::TestDatabase;
pub use crate::web::fill;

pub const REQUIRE_KEY: &str = "ATELIER__ACCESS__REQUIRE_KEY";

/// The built `atelier`, on the test's database. Its service needs no keys, unless the test removes the variable.
pub fn atelier(db: &TestDatabase, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atelier"));
    command.args(["--database", &db.url]).args(arguments).env_remove("DATABASE_URL");
    command.env(REQUIRE_KEY, "false");
    command
}

pub async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Writes three small tables in canonical form, with one more outfit than customers.
pub fn write_tables(folder: &Path, customers: usize) {
    let mut articles = String::new();
    for number in 0..20 {
        let kind = ["coat", "boot", "scarf", "jeans"][number % 4];
        writeln!(
            articles,
            "{{\"id\":\"a-{number:02}\",\"type\":\"{kind}\",\"brand\":\"Fjell & Söhne\",\"in_stock\":{},\"price\":{}.95,\"sizes\":[\"S\",\"M\"]}}",
            number % 3 == 0,
            number + 10
        )
        .unwrap();
    }
    let mut rows = String::new();
    let mut outfits = String::new();
    for number in 0..customers {
        writeln!(
            rows,
            "{{\"id\":\"c-{number:05}\",\"features\":{{\"age\":{},\"gender\":\"female\",\"preferred_colours\":[\"grey\"],\"shoe_size\":\"38\"}}}}",
            18 + number % 60
        )
        .unwrap();
        writeln!(
            outfits,
            "{{\"customer\":\"c-{number:05}\",\"articles\":[\"a-00\",\"a-01\",\"a-02\",\"a-{:02}\"],\"split\":\"{}\",\"features\":{{\"occasion\":\"office\"}}}}",
            3 + number % 17,
            if number % 5 == 0 { "validation" } else { "train" }
        )
        .unwrap();
    }
    // A stylist may save the same outfit twice.
    let again = outfits.lines().next().unwrap_or_default().replace("validation", "train");
    writeln!(outfits, "{again}").unwrap();
    fs::write(folder.join("articles.jsonl"), articles).unwrap();
    fs::write(folder.join("customers.jsonl"), rows).unwrap();
    fs::write(folder.join("outfits.jsonl"), outfits).unwrap();
}
