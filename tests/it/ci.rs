//! `.ci/advisories`, with cargo-deny and git as they are, and an advisory database of the test's own.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Output},
};

use crate::harness::{TestDatabase, apply, on_sqlite, tools};

/// Runs the check with git sent to another place for the database.
async fn check(database: &str, seconds: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("deny.toml");
    let cloned = folder.path().join("cloned");
    fs::write(&config, format!("[advisories]\ndb-path = \"{}\"\n", cloned.display())).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(root.join(".ci/advisories"));
    command.arg(&config).arg(seconds).current_dir(root);
    command.envs([
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", &format!("url.{database}.insteadOf")),
        ("GIT_CONFIG_VALUE_0", "https://github.com/RustSec/advisory-db"),
    ]);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned()
}

/// Commits an advisory about every version of a crate.
fn publish(repository: &Path, package: &str) {
    let folder = repository.join("crates").join(package);
    fs::create_dir_all(&folder).unwrap();
    let advisory = format!(
        "```toml\n[advisory]\nid = \"RUSTSEC-2026-9999\"\npackage = \"{package}\"\ndate = \"2026-01-01\"\n\n\
         [versions]\npatched = [\">= 999.0.0\"]\n```\n\n# Made up\n\nFor a test.\n"
    );
    fs::write(folder.join("RUSTSEC-2026-9999.md"), advisory).unwrap();
    let author = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    for arguments in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "advisory"]]
    {
        let mut git = Command::new("git");
        git.args(author).args(arguments).current_dir(repository);
        assert!(git.status().unwrap().success(), "{arguments:?}");
    }
}

#[apply(on_sqlite)]
#[needs(tools::cargo_deny)]
async fn an_advisory_about_a_dependency_fails_the_run(_: TestDatabase) {
    for (package, found) in [("serde", true), ("atelier-has-no-such-dependency", false)] {
        let repository = tempfile::tempdir().unwrap();
        publish(repository.path(), package);
        let output = check(&format!("file://{}", repository.path().display()), "60").await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), !found, "{errors}");
        assert_eq!(errors.contains("RUSTSEC-2026-9999"), found, "{errors}");
        assert_eq!(last_line(&output) == "advisories: checked", !found);
    }
}

#[apply(on_sqlite)]
#[needs(tools::cargo_deny)]
async fn without_the_advisory_database_the_run_says_so(_: TestDatabase) {
    // One place that is not there, and one that takes the connection and never says anything.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for place in ["file:///nowhere".to_owned(), format!("git://{}/x", silent.local_addr().unwrap())] {
        let output = check(&place, "2").await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{place}: {errors}");
        assert!(last_line(&output).starts_with("advisories: NOT CHECKED"), "{place}: {errors}");
    }
}
