//! Pairs of halves through the program: a shop whose outfits have one colour, from its files to a release that
//! judges pairs.

use std::{fmt::Write, fs};

use atelier_core::domain::Method;
use atelier_engine::release::Release;
use serde_json::Value;

use super::Home;

const SCHEMA: &str =
    "name = \"one\"\n[[feature]]\nname = \"gender\"\nkind = \"category\"\nvalues = [\"female\", \"male\"]\n";
/// Narrow and quick.
const SETTINGS: &str = "[fit]\nbatch = 32\nepochs = 10\nlearning_rate = 0.01\nwarm_up = 0.5\n\
    [model]\nwidth = 16\nheads = 2\nhidden = 16\nblocks = 1\nfeature_width = 4\npersonas = 3\ndropout = 0.0\n\
    [model.universal]\nblocks = 1\nmost_steps = 2\n";
const COLOURS: usize = 6;

/// Four types in six colours, three of each; an outfit has one of each type, in one colour.
pub(crate) fn shop() -> Home {
    let home = Home::new();
    let kinds = ["hat", "coat", "shoe", "bag"];
    let mut articles = String::new();
    for kind in kinds {
        for colour in 0..COLOURS {
            for number in 0..3 {
                writeln!(articles, "{{\"id\":\"{kind}-{colour}-{number}\",\"type\":\"{kind}\"}}").unwrap();
            }
        }
    }
    let mut outfits = String::new();
    for place in 0..600_usize {
        let colour = place % COLOURS;
        let ids: Vec<String> = kinds
            .iter()
            .zip([1, 5, 7, 11])
            .map(|(kind, step)| format!("\"{kind}-{colour}-{}\"", place / COLOURS * step / 3 % 3))
            .collect();
        let split = if place / COLOURS % 6 == 5 { "validation" } else { "train" };
        writeln!(
            outfits,
            "{{\"customer\":\"c-{}\",\"articles\":[{}],\"split\":\"{split}\"}}",
            place % 2,
            ids.join(",")
        )
        .unwrap();
    }
    let customers =
        "{\"id\":\"c-0\",\"features\":{\"gender\":\"female\"}}\n{\"id\":\"c-1\",\"features\":{}}\n";
    for (name, text) in [
        ("shop/schema.toml", SCHEMA),
        ("shop/articles.jsonl", &articles),
        ("shop/customers.jsonl", customers),
        ("shop/outfits.jsonl", &outfits),
        ("plain.toml", SETTINGS),
        ("pairs.toml", &format!("{SETTINGS}[pair]\nweight = 2.0\n")),
        ("wrong.toml", "[pair]\nweight = -1.0\n"),
    ] {
        home.write(name, text);
    }
    home
}

#[test]
fn pairs_that_match_by_colour_are_recognised_from_fit_to_release() {
    let home = shop();
    for method in ["gsu", "latent-universal"] {
        home.output_of(&format!("fit --method {method} --data shop --config pairs.toml"));
        let lines = fs::read_to_string(home.at(&format!("runs/shop/{method}-1/metrics.jsonl"))).unwrap();
        let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert!(last["training"]["pair"].as_f64().unwrap() < 0.6, "{method}: {last}");
        assert_eq!(last["pair"]["pairs"], 102);
    }
    home.output_of("fit --method none --data shop --config plain.toml --epochs 1");
    let runs = "runs/shop/gsu-1 runs/shop/latent-universal-1 runs/shop/none-1";
    let answer = home.output_of(&format!("evaluate --data shop --runs {runs}"));
    assert!(answer.contains("192 pairs of halves") && answer.contains("| latent-universal | "), "{answer}");
    assert!(answer.contains("\n| gsu, by the likelihood of the halves | 1 | "), "{answer}");
    for method in ["gsu", "latent-universal"] {
        let pair = &home.json(&format!("runs/shop/{method}-1/evaluation.json"))["pair"];
        assert_eq!(pair["figures"]["pairs"], 192);
        // One stranger's half in six has the colour by chance and cannot be recognised.
        let auc = pair["figures"]["auc"].as_f64().unwrap();
        assert!(auc > 0.8, "{method}: {pair}");
        assert!(pair["figures"]["accuracy"].as_f64().unwrap() > 0.75, "{method}: {pair}");
        assert!(pair["cooccurrence"]["auc"].as_f64().unwrap() > 0.8, "{method}: {pair}");
        // The masked model learned the colours, too.
        assert!(pair["likelihood"]["auc"].as_f64().unwrap() > 0.8, "{method}: {pair}");
        assert_eq!(pair["likelihood"]["pairs"], 192);
    }
    assert!(home.json("runs/shop/none-1/evaluation.json").get("pair").is_none());
    assert!(!home.at("runs/shop/none-1/none.pair.onnx").exists());

    let answer = home.output_of("export --run runs/shop/gsu-1 --out there");
    assert!(answer.starts_with("there/gsu.onnx: "), "{answer}");
    assert!(answer.ends_with("\nthere/gsu.safetensors\nthere/gsu.pair.onnx\n"), "{answer}");
    home.output_of(&format!("release --name spring --data shop --runs {runs} --customers 1"));
    let release = Release::open(&home.at("models/spring")).unwrap();
    let entries = &release.manifest().methods;
    let pairs: Vec<(Method, Option<&str>)> =
        entries.iter().map(|entry| (entry.method, entry.pair.as_deref())).collect();
    let expected = [
        (Method::None, None),
        (Method::Gsu, Some("gsu.pair.onnx")),
        (Method::LatentUniversal, Some("latent-universal.pair.onnx")),
    ];
    assert_eq!(pairs, expected);
    assert_eq!(
        entries[1].metrics["pair"]["auc"],
        home.json("runs/shop/gsu-1/evaluation.json")["pair"]["figures"]["auc"]
    );
    let commands = &release.manifest().commands;
    assert!(commands.iter().any(|c| c.contains("gsu") && c.contains(" --set pair.weight=")), "{commands:?}");
    let answer = home.output_of("evaluate --data shop --release models/spring");
    assert!(answer.contains("192 pairs of halves"), "{answer}");
}

#[test]
fn a_negative_weight_is_refused() {
    let home = shop();
    let error = home.error_of("fit --method none --data shop --config wrong.toml");
    assert!(error.contains("the pairs' weight must be at least 0, found -1"), "{error}");
}
