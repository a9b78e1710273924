//! Pairs of halves through the program: a shop whose outfits have one colour, from its files to a release that
//! judges pairs.

use atelier_core::domain::Method;
use atelier_engine::release::Release;
use serde_json::json;

use super::{Home, assert_has};

const SCHEMA: &str =
    "name = \"one\"\n[[feature]]\nname = \"gender\"\nkind = \"category\"\nvalues = [\"female\", \"male\"]\n";
/// Narrow and quick.
const SETTINGS: &str = "[fit]\nbatch = 32\nepochs = 10\nlearning_rate = 0.01\nwarm_up = 0.5\n\
    [model]\nwidth = 16\nheads = 2\nhidden = 16\nblocks = 1\nfeature_width = 4\npersonas = 3\ndropout = 0.0\n\
    [model.universal]\nblocks = 1\nmost_steps = 2\n";
const COLOURS: usize = 6;

/// Four types in six colours, three of each; an outfit has one of each type, in one colour.
fn shop() -> Home {
    let home = Home::new();
    let kinds = ["hat", "coat", "shoe", "bag"];
    let article = |(at, kind)| json!({"id": format!("{kind}-{}-{}", at / 3, at % 3), "type": kind});
    let articles = kinds.iter().flat_map(|kind| (0..3 * COLOURS).map(move |at| (at, kind)));
    home.write_rows("shop/articles.jsonl", articles.map(article));
    let outfit = |place: usize| {
        let (number, colour) = (place / COLOURS, place % COLOURS);
        let ids = kinds.iter().zip([1, 5, 7, 11]);
        let ids = ids.map(|(kind, step)| format!("{kind}-{colour}-{}", number * step / 3 % 3));
        let split = if number % 6 == 5 { "validation" } else { "train" };
        json!({"customer": format!("c-{}", place % 2), "articles": ids.collect::<Vec<_>>(), "split": split})
    };
    home.write_rows("shop/outfits.jsonl", (0..600).map(outfit));
    let customers = [json!({"id": "c-0", "features": {"gender": "female"}}), json!({"id": "c-1"})];
    home.write_rows("shop/customers.jsonl", customers);
    home.write("shop/schema.toml", SCHEMA);
    home.write("plain.toml", SETTINGS);
    home.write("pairs.toml", format!("{SETTINGS}[pair]\nweight = 2.0\n"));
    home
}

#[test]
fn pairs_that_match_by_colour_are_recognised_from_fit_to_release() {
    let home = shop();
    let methods = ["gsu", "latent-universal"];
    for method in methods {
        home.output_of(&format!("fit --method {method} --data shop --config pairs.toml"));
        let epochs = home.rows(&format!("runs/shop/{method}-1/metrics.jsonl"));
        let last = epochs.last().unwrap();
        assert!(last["training"]["pair"].as_f64().unwrap() < 0.6, "{method}: {last}");
        assert_eq!(last["pair"]["pairs"], 102);
    }
    home.output_of("fit --method none --data shop --config plain.toml --epochs 1");
    let runs = "runs/shop/gsu-1 runs/shop/latent-universal-1 runs/shop/none-1";
    let answer = home.output_of(&format!("evaluate --data shop --runs {runs}"));
    let likelihood = "\n| gsu, by the likelihood of the halves | 1 | ";
    assert_has(&answer, &["192 pairs of halves", "| latent-universal | ", likelihood]);
    let evaluation = |run: &str| home.json(&format!("runs/shop/{run}-1/evaluation.json"));
    for method in methods {
        let pair = &evaluation(method)["pair"];
        assert_eq!((&pair["figures"]["pairs"], &pair["likelihood"]["pairs"]), (&json!(192), &json!(192)));
        // One stranger's half in six has the colour by chance and cannot be recognised. The masked model learned the
        // colours, too.
        for (by, figure, least) in [
            ("figures", "auc", 0.8),
            ("figures", "accuracy", 0.75),
            ("cooccurrence", "auc", 0.8),
            ("likelihood", "auc", 0.8),
        ] {
            assert!(pair[by][figure].as_f64().unwrap() > least, "{method}, {figure} of {by}: {pair}");
        }
    }
    assert!(evaluation("none").get("pair").is_none());
    assert!(!home.text("runs/shop/none-1/metrics.jsonl").contains("pair"));
    assert!(!home.at("runs/shop/none-1/none.pair.onnx").exists());

    let answer = home.output_of("export --run runs/shop/gsu-1 --out there");
    assert!(answer.starts_with("there/gsu.onnx: "), "{answer}");
    assert!(answer.ends_with("\nthere/gsu.safetensors\nthere/gsu.pair.onnx\n"), "{answer}");
    home.output_of(&format!("release --name spring --data shop --runs {runs} --customers 1"));
    let release = Release::open(&home.at("models/spring")).unwrap();
    let entries = &release.manifest().methods;
    let pairs = entries.iter().map(|entry| (entry.method, entry.pair.as_deref()));
    let expected = [
        (Method::None, None),
        (Method::Gsu, Some("gsu.pair.onnx")),
        (Method::LatentUniversal, Some("latent-universal.pair.onnx")),
    ];
    assert_eq!(pairs.collect::<Vec<_>>(), expected);
    assert_eq!(entries[1].metrics["pair"]["auc"], evaluation("gsu")["pair"]["figures"]["auc"]);
    let commands = &release.manifest().commands;
    assert!(commands.iter().any(|c| c.contains("gsu") && c.contains(" --set pair.weight=")), "{commands:?}");
    let answer = home.output_of("evaluate --data shop --release models/spring");
    assert_has(&answer, &["192 pairs of halves"]);
}
