//! The dashboard in `deploy/grafana` and the alerts in `deploy/` use only metrics that the service exports.

use std::{collections::HashSet, fs, path::Path, time::SystemTime};

use serde_json::{Value, json};

use crate::harness::{Service, TestDatabase, apply, on_sqlite};

/// Prometheus adds the first three; the others are there while an experiment needs a second release, whose tests see them.
const ELSEWHERE: &str = "up job instance atelier_second_release_loaded experiment";
/// Other words of queries.
const WORDS: &str = "sum min max by and on count rate increase changes histogram_quantile __rate_interval m";

#[apply(on_sqlite)]
async fn every_query_uses_existing_metrics(service: Service) {
    service.bring_in_demo().await;
    // Loaded by this service's own engine, which counts the runs of its models.
    service.releases.serve("demo").await.unwrap();
    let outfit = json!({"customer": "c-014871", "outfit": ["a-00315", "a-01317", "a-00587", null]});
    service.complete(outfit).await;
    // Never fetched, for want of a schedule.
    service.put("/feeds/shop", json!({"url": "https://shop.example/feed.xml"})).await;
    service.state.feeds().fetch_due(SystemTime::now().into()).await.unwrap();
    let text = service.get("/metrics").await.text();
    let told: HashSet<&str> = text.lines().filter(|line| !line.starts_with('#')).flat_map(words).collect();

    let queries = queries();
    let nothing = queries.iter().find(|query| query.contains("(atelier_suggestible_articles) == 0")).unwrap();
    assert!(nothing.ends_with("{state=\"new\"}) > 0"), "not with an empty catalogue: {nothing}");
    assert!(queries.len() > 25, "{queries:?}");
    let elsewhere: Vec<&str> = [ELSEWHERE, WORDS].into_iter().flat_map(|words| words.split(' ')).collect();
    for query in queries {
        for word in words(&query) {
            assert!(told.contains(word) || elsewhere.contains(&word), "{word} of the query {query}");
        }
    }
}

/// Grafana asks which Prometheus to read, and an alert links to what to do about it.
#[apply(on_sqlite)]
async fn dashboard_and_alerts_suit_any_installation(_: TestDatabase) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/atelier.json")).unwrap();
    assert_eq!(dashboard["templating"]["list"][0]["name"], "datasource");
    let (of_panels, of_annotations) = (&dashboard["panels"], &dashboard["annotations"]["list"]);
    for part in [of_panels, of_annotations].into_iter().flat_map(|list| list.as_array().unwrap()) {
        assert_eq!(part["datasource"]["uid"], "${datasource}", "{part}");
    }
    let (alerts, operations) = (read("deploy/alerts.yml"), read("docs/operations.md"));
    let advice = operations.split("\n## Alerts\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let alerts: Vec<&str> = alerts.split("- alert: ").skip(1).collect();
    assert!(alerts.len() > 8, "{alerts:?}");
    for alert in alerts {
        let name = alert.lines().next().unwrap();
        assert!(alert.contains("runbook_url: \"{{ $externalLabels.docs }}/operations/#alerts\""), "{alert}");
        let rows = advice.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
        assert!(rows.flat_map(|names| names.split(", ")).any(|row| row == name), "no advice about {name}");
    }
    assert!(read("deploy/prometheus.yml").contains("\n  external_labels:\n"));
}

/// Names of metrics and labels, but not quoted texts and numbers.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let unquoted = text.split('"').step_by(2);
    let words = unquoted.flat_map(|part| part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

fn queries() -> Vec<String> {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    let dashboard: Value =
        serde_json::from_slice(&fs::read(deploy.join("grafana/atelier.json")).unwrap()).unwrap();
    let of_panels = dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| {
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{panel}");
        targets.iter().map(|target| target["expr"].as_str().unwrap().to_owned())
    });
    let alerts = fs::read_to_string(deploy.join("alerts.yml")).unwrap();
    // An expression continues over indented lines.
    let of_alerts = alerts.split("expr:").skip(1).map(|rest| {
        let end = ["\n        for:", "\n        labels:"].into_iter().filter_map(|key| rest.find(key)).min();
        rest[..end.unwrap()].replace(">-", "").trim().to_owned()
    });
    of_panels.chain(of_alerts).collect()
}
