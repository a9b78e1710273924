//! A small synthetic world in words, the oracle and the baselines.

use std::{path::Path, process::Command, sync::Arc};

use atelier_engine::{
    catalogue::ArticleIndex,
    inference::{BLANK, Question, Scorer},
    release::Release,
};
use serde_json::Value;

use super::{Home, assert_has, evaluation::RUNTIME, mean};

#[test]
fn a_small_world_goes_through_every_verb() {
    let home = Home::new();
    let synthesise = "synthesise --out world --articles 300 --customers 200 --outfits 3000 --validation 150";
    let made = home.output_of(synthesise);
    assert!(made.starts_with("world version 1 in "), "{made}");
    assert_eq!(made.lines().count(), 5, "the version and four digests:\n{made}");
    home.assert_refused(synthesise, &["is not empty"]);

    let survey = home.output_of("import world --out again --show 3");
    assert_has(&survey, &["3,650 rows, 0 bad rows skipped\n\n300 articles, 200 customers, 3150 outfits"]);
    assert_eq!(survey.lines().filter(|line| line.starts_with("c-")).count(), 3);

    let research = Path::new(env!("CARGO_BIN_EXE_atelier-training")).with_file_name("examples/research");
    let ask = |arguments: &str| {
        let arguments = format!("oracle --slots 60 --customers 64 --json oracle.json --data {arguments}");
        let output = Command::new(&research).args(arguments.split(' ')).current_dir(home.at("")).output();
        let output = output.expect("the example is built with all tests, else by --example research");
        let [answers, said] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        if output.status.success() { Ok(answers) } else { Err(said) }
    };
    assert_has(&ask(".").unwrap_err(), &["the oracle needs a folder made by `synthesise`"]);
    assert_has(&ask("world").unwrap(), &["overstates the cross-entropy"]);
    home.output_of("evaluate --data world --out baselines.json");

    let (oracle, baselines) = (home.json("oracle.json"), home.json("baselines.json"));
    assert_eq!(oracle["world_version"], "1");
    assert_eq!(oracle["plan"]["articles"], 300);
    let loss = |answers: &Value| mean(&answers["cross_entropy"]);
    let best = loss(&oracle["report"]["known"]);
    assert_eq!(oracle["report"]["known"]["slots"], 60);
    let rows = baselines["baselines"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    assert!(rows[0]["baseline"].as_str().unwrap().starts_with("popularity (+"));
    let losses: Vec<f64> = rows.iter().map(|row| loss(&row["answers"])).collect();
    assert!(losses[..6].iter().all(|loss| best < *loss), "oracle {best}, baselines {losses:?}");
    assert!(losses[1] < losses[0], "co-occurrence helps: {losses:?}");
    assert!(losses[7] < losses[6], "gender and price help: {losses:?}");
}

#[test]
fn whole_files_of_a_release_are_a_release_of_format_1() {
    let home = Home::new();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let demo = repository.join("models/demo");
    let said = home.output_of(&format!("export --whole {} --out whole", demo.display()));
    let open = Release::open(&demo).unwrap();
    let files: Vec<String> =
        open.manifest().methods.iter().map(|entry| format!("whole/{}.onnx", entry.method)).collect();
    assert_eq!(said.lines().collect::<Vec<_>>(), files);
    let made = Command::new("python3")
        .arg(repository.join("docs/examples/whole_release.py"))
        .args([&demo, &home.at("whole"), &home.at("closed/demo")])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

    let closed = Release::open(&home.at("closed/demo")).unwrap();
    assert_eq!((closed.manifest().format, closed.articles().len()), (1, open.vocabulary().len()));
    let score = |release: &Release, place: usize| {
        let index = ArticleIndex::of_release(release);
        let mut scorer = Scorer::open(&RUNTIME, release, &release.manifest().methods[place], index).unwrap();
        let context = vec![vec![1]; release.schema().features().len()].into();
        let question = Question::new(Arc::clone(scorer.articles()), vec![7, BLANK, 900, 1200], 1, context);
        (scorer.is_open(), scorer.scores(&[question]).unwrap().remove(0).logits)
    };
    for (place, entry) in closed.manifest().methods.iter().enumerate() {
        let ((_, ours), (is_open, whole)) = (score(&open, place), score(&closed, place));
        assert!(!is_open, "{}", entry.method);
        assert_eq!(ours.len(), whole.len());
        let off = ours.iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        // The service's last layer rounds.
        assert!(off < 5e-3, "{}: {off}", entry.method);
    }
}

#[test]
fn errors_say_what_to_do() {
    let home = Home::new();
    home.write("shop/articles.csv", "id,type\n");
    home.write("shop/schema.toml", "[[feature]]\nname = \"area\"\nkind = \"numbr\"\n");
    let few = "10 articles are too few: a world needs at least 43, one of each type";
    for (command, reasons) in [
        ("evaluate --data .", &["has no articles.jsonl, articles.csv or articles.parquet"][..]),
        ("evaluate --data . --ranks ranks.parquet", &["--runs <DIR>...|--release <DIR>"]),
        ("synthesise --out tiny --articles 10", &[few]),
        ("import shop --out data", &["atelier-training: shop/schema.toml: ", "at line 3"]),
    ] {
        let said = home.assert_refused(command, reasons);
        assert!(said.matches("at line 3").count() <= 1, "causes are not repeated: {said}");
    }
    assert!(!home.at("tiny").exists());
}
