//! docs/reference.md: the commands and the metrics, as the built program describes them.

use std::{env, fmt::Write, fs, path::Path, process::Command, time::SystemTime};

use serde_json::json;

use crate::{
    cli::printed,
    harness::{Service, TestDatabase, apply, on_sqlite},
};

#[apply(on_sqlite)]
async fn the_reference_is_what_the_program_says(db: TestDatabase) {
    let service = Service::untouched_demo(&db).await;
    let mut text = "# Commands and metrics\n\nFor operators. Here is every command of `atelier`, and every metric at `/metrics`. \
                    A test writes this page from the program.\n\n## Commands\n"
        .to_owned();
    let mut verbs = vec![vec![]];
    while let Some(verb) = verbs.pop() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atelier"));
        command.args(&verb).arg("--help").env("COLUMNS", "100");
        let help = printed(command).await;
        let of_help = help.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next());
        let mut below: Vec<Vec<String>> = of_help
            .into_iter()
            .flat_map(str::lines)
            .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
            .filter(|name| !["", "help"].contains(name))
            .map(|name| [verb.clone(), vec![name.to_owned()]].concat())
            .collect();
        below.reverse();
        verbs.extend(below);
        let name = [vec!["atelier".to_owned()], verb].concat().join(" ");
        write!(text, "\n### {name}\n\n```text\n{}\n```\n", help.trim()).unwrap();
    }
    // A family without samples is not in the answer.
    service.releases.serve("demo").await.unwrap();
    let outfit = json!({"customer": "c-014871", "outfit": ["a-00315", "a-01317", "a-00587", null]});
    let completion = service.ask_ok("/complete", &outfit).await;
    let suggested = &completion["blanks"][0]["suggestions"][0]["article"]["id"];
    let event = json!([{"id": "1", "completion_id": completion["completion_id"], "kind": "accepted", "slot": 3, "article": suggested}]);
    service.ask_ok("/feedback", &event).await;
    service.put("/feeds/shop", json!({"url": "https://shop.example/feed.xml"})).await;
    service.state.feeds().fetch_due(SystemTime::now().into()).await.unwrap();
    text += "\n## Metrics\n\nA counter's samples end in `_total`.\n\n| metric | type | meaning |\n|---|---|---|\n";
    let metrics = service.get("/metrics").await.text();
    let mut lines = metrics.lines();
    while let Some(line) = lines.next() {
        let Some((name, meaning)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let kind = lines.next().and_then(|line| line.rsplit(' ').next()).unwrap();
        writeln!(text, "| `{name}` | {kind} | {} |", meaning.trim_end_matches('.')).unwrap();
    }
    assert!(
        text.contains("### atelier key create")
            && text.contains("| `atelier_http_request_duration_seconds` |")
    );
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference.md");
    if env::var_os("ATELIER_WRITE_DOCS").is_some() {
        fs::write(&page, &text).unwrap();
    }
    let found = fs::read_to_string(page).unwrap_or_default();
    assert!(found == text, "docs/reference.md is stale: run this test with ATELIER_WRITE_DOCS=1");
}
