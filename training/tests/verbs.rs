//! The program as people run it: makes a small world, surveys it, runs the oracle and the baselines.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_atelier-training")).args(arguments).output().unwrap()
}

fn output_of(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn figures(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_small_world_goes_through_every_verb() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let (data, oracle, baselines) = (at("world"), at("oracle.json"), at("baselines.json"));
    let data = data.to_str().unwrap();
    let sizes = ["--articles", "300", "--customers", "200", "--outfits", "3000", "--validation", "150"];
    let made = output_of(&run(&[&["synthesise", "--out", data][..], &sizes].concat()));
    assert!(made.starts_with("world version 1 in "), "{made}");
    assert_eq!(made.lines().count(), 5, "the version and four digests:\n{made}");

    let again = run(&[&["synthesise", "--out", data][..], &sizes].concat());
    assert!(!again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("is not empty"));

    let survey = output_of(&run(&["survey", "--data", data, "--outfits", "3"]));
    assert!(survey.starts_with("300 articles, 200 customers, 3150 outfits"), "{survey}");
    assert_eq!(survey.lines().filter(|line| line.starts_with("c-")).count(), 3);

    let answers =
        ["oracle", "--data", data, "--slots", "60", "--customers", "64", "--json", oracle.to_str().unwrap()];
    let answers = output_of(&run(&answers));
    assert!(answers.contains("overstates the cross-entropy"), "explains the finite draw:\n{answers}");
    let counted = ["baselines", "--data", data, "--json", baselines.to_str().unwrap()];
    output_of(&run(&counted));

    let (oracle, baselines) = (figures(&oracle), figures(&baselines));
    assert_eq!(oracle["world_version"], "1");
    assert_eq!(oracle["plan"]["articles"], 300);
    let loss = |answers: &Value| answers["cross_entropy"]["mean"].as_f64().unwrap();
    let best = loss(&oracle["report"]["known"]);
    assert_eq!(oracle["report"]["known"]["slots"], 60);
    let rows = baselines.as_array().unwrap();
    assert_eq!(rows.len(), 4);
    let row_loss = |row: usize| loss(&rows[row]["answers"]);
    assert!(rows[0]["baseline"].as_str().unwrap().starts_with("popularity (+"));
    assert!(
        best < row_loss(1) && row_loss(1) < row_loss(0),
        "oracle {best}, co-occurrence {}, popularity {}",
        row_loss(1),
        row_loss(0)
    );
    assert!(row_loss(3) < row_loss(2), "gender and price help: {} {}", row_loss(3), row_loss(2));
}

#[test]
fn errors_say_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let empty = home.path().to_str().unwrap();
    let assert_fails = |arguments: &[&str], text: &str| {
        let output = run(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(text), "{error}");
    };
    assert_fails(&["oracle", "--data", empty], "the oracle needs a folder that `synthesise` made");
    assert_fails(&["baselines", "--data", empty], "has no articles.jsonl, articles.csv or articles.parquet");
    let out = home.path().join("tiny");
    let tiny = ["synthesise", "--out", out.to_str().unwrap(), "--articles", "10"];
    assert_fails(&tiny, "a world needs at least 43 articles, one of each type; 10 were asked for");
    assert!(!out.exists());
}
