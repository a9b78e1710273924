//! A shop with few articles and outfits: what `fit` makes by default has to be better than counting.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::Value;

use super::{Home, assert_has, mean};

/// Narrow and quick; how it learns is the default.
const SETTINGS: &str =
    "[model]\nwidth = 16\nheads = 2\nhidden = 32\nblocks = 2\nfeature_width = 8\nmatching = 32\nmemory = 8\n";

#[test]
fn a_small_shops_model_beats_popularity() {
    let home = Home::new();
    home.write("settings.toml", SETTINGS);
    home.output_of("synthesise --out shop --articles 160 --customers 300 --outfits 600 --validation 100");
    home.output_of("fit --data shop --config settings.toml");
    let config = home.text("runs/shop/match-1/config.toml");
    assert_has(&config, &["\nepochs = 60\n", "\nshorten = true\n", "\nbegin_at_logit = true\n"]);
    let epochs = home.rows("runs/shop/match-1/metrics.jsonl").len();
    assert!((9..60).contains(&epochs), "ahead in training, it ends sooner: {epochs}");
    home.output_of("evaluate --data shop --runs runs/shop/match-1 --out all.json");
    let (ours, all) = (home.json("runs/shop/match-1/evaluation.json"), home.json("all.json"));
    let baselines = all["baselines"].as_array().unwrap();
    assert_eq!(baselines.len(), 4, "{all}");
    // A match begins at the logit, the last of them.
    for baseline in &baselines[..3] {
        let name = &baseline["baseline"];
        for (figures, theirs) in [("summary", "answers"), ("told_type", "told_type")] {
            if figures == "summary" && baseline["knows_type"] == true {
                continue;
            }
            let both =
                |figure: &str| [&ours[figures], &baseline[theirs]].map(|answers| mean(&answers[figure]));
            let (entropy, recall) = (both("cross_entropy"), both("recall_at_1"));
            assert!(entropy[0] < 0.95 * entropy[1], "{name}, {figures}: {entropy:?}");
            assert!(recall[0] > recall[1], "{name}, {figures}: {recall:?}");
        }
    }
}

#[test]
fn few_slots_are_said_and_every_outfit_is_asked_in_five_folds() {
    let home = Home::new();
    home.write("settings.toml", SETTINGS);
    home.output_of("synthesise --out shop --articles 60 --customers 60 --outfits 99 --validation 1");
    home.output_of("fit --data shop --config settings.toml --epochs 2");
    let first = home.output_of("evaluate --data shop --runs runs/shop/match-1 --out all.json");
    let slots = &home.json("all.json")["slots"];
    assert_has(&first, &[&format!("\n**Only {slots} slots**: figures of fewer than 200 say little.")]);
    let (few, folds) = first.split_once("\nCross-validation in five folds: all 100 outfits, ").expect(&first);
    let numbers = |text: &str, name: &str| -> Vec<f64> {
        let line = text.lines().rfind(|line| line.starts_with(&format!("| {name} | "))).expect(text);
        let words = line.split(|c: char| !(c.is_ascii_digit() || c == '.'));
        words.filter_map(|word| word.parse().ok()).collect()
    };
    // Cross-entropy (it has no interval over one outfit), then recall@1 and recall@5, each with an interval.
    let (alone, all) = (numbers(few, "match"), numbers(folds, "match"));
    assert_eq!((alone.len(), all.len()), (7, 9), "{first}");
    assert!(alone[3] - alone[2] > 70.0, "one outfit says next to nothing: {alone:?}");
    for recall in [&all[3..6], &all[6..]] {
        let [found, low, high] = recall else { panic!("{recall:?}") };
        assert!(low < found && found < high && high - low < 20.0, "{recall:?}");
    }
    assert!(numbers(folds, "*popularity*")[0] > all[0], "{first}");
    let asked: usize = folds.split_once(" slots.").unwrap().0.rsplit(' ').next().unwrap().parse().unwrap();
    let outfits = home.rows("shop/outfits.jsonl");
    let worn: usize = outfits.iter().map(|outfit| outfit["articles"].as_array().unwrap().len()).sum();
    assert!(asked <= worn && 100 * asked > 95 * worn, "{asked} of {worn}");

    let weights = home.at("runs/shop/match-1/folds/5/best.safetensors");
    let made = fs::metadata(&weights).unwrap().modified().unwrap();
    assert_eq!(home.output_of("evaluate --data shop --runs runs/shop/match-1"), first);
    assert_eq!(fs::metadata(&weights).unwrap().modified().unwrap(), made, "finished folds are kept");
}

#[test]
fn a_baseline_that_is_better_is_named() {
    let home = Home::new();
    home.write("settings.toml", SETTINGS);
    home.output_of("synthesise --out shop --articles 80 --customers 100 --outfits 400 --validation 60");
    // It learns next to nothing.
    let fit = "fit --data shop --config settings.toml --epochs 1";
    let (_, fitted) = home.outputs_of(&format!("{fit} --method none --learning-rate 0.000001"));
    let better = "co-occurrence is better than none: cross-entropy ";
    let offer = "`atelier-training release --baseline co-occurrence` releases co-occurrence as a method";
    assert_has(&fitted, &[" slots of the development split:\n", better, offer]);
    let evaluated = home.output_of("evaluate --data shop --runs runs/shop/none-1");
    let told = "\n- popularity, told the type is better than none: cross-entropy with the type known ";
    assert_has(&evaluated, &[&format!("\n- {better}"), told]);
    assert!(!evaluated.contains("Cross-validation"), "{evaluated}");
    let (_, released) = home.outputs_of("release --name r --data shop --runs runs/shop/none-1");
    assert_has(&released, &[better]);

    let baselines = "--baseline co-occurrence --baseline popularity --baseline logit";
    home.output_of(&format!("release --name b --data shop --runs runs/shop/none-1 {baselines}"));
    let (manifest, all) = (home.json("models/b/release.json"), home.json("models/b/evaluation.json"));
    assert_eq!(manifest["default_method"], "logit", "the best on the development split");
    assert_eq!(all["comparison"]["methods"].as_array().unwrap().len(), 4);
    home.output_of("evaluate --data shop --release models/b --out served.json");
    let served = home.json("served.json");
    // A file has no articles without training outfits; that of the logit does not read whole outfits, either.
    for (name, off) in [("popularity", 1e-3), ("co-occurrence", 1e-3), ("logit", 0.1)] {
        let row_of = |list: &str, key: &str| {
            let mut rows = served[list].as_array().unwrap().iter();
            rows.find(|row| row[key] == name).unwrap_or_else(|| panic!("{name}: {served}"))
        };
        let (method, baseline) = (row_of("methods", "method"), row_of("baselines", "baseline"));
        for figure in ["cross_entropy", "recall_at_1", "recall_at_5", "mrr"] {
            let (ours, theirs) = (mean(&method[figure]), mean(&baseline["answers"][figure]));
            assert!((ours - theirs).abs() < off * theirs, "{name}: {figure} is {ours}, not {theirs}");
        }
    }
    // No epoch is better than the start where nothing moves.
    let (_, fitted) = home.outputs_of(&format!("{fit} --learning-rate 1e-30 --run runs/start"));
    assert_has(&fitted, &["best: the start, at the conditional logit"]);
    home.output_of("release --name s --data shop --runs runs/start");
    assert_eq!(home.json("models/s/release.json")["methods"][0]["metrics"]["epoch"], 0);

    home.output_of("release --name c --data shop --baseline popularity");
    assert_eq!(home.json("models/c/release.json")["methods"].as_array().unwrap().len(), 1);
}

#[test]
fn looks_of_several_customers_never_cross_a_split_unseen() {
    let home = Home::new();
    home.write("settings.toml", SETTINGS);
    home.output_of("synthesise --out shop --articles 80 --customers 100 --outfits 300 --validation 1");
    let outfits = home.rows("shop/outfits.jsonl");
    let copy = |outfit: &Value, shift: usize| {
        let mut copy = outfit.clone();
        copy.as_object_mut().unwrap().remove("split");
        copy["customer"] = outfits[shift % outfits.len()]["customer"].clone();
        copy
    };
    for table in ["articles", "customers"] {
        fs::create_dir_all(home.at("theirs")).unwrap();
        fs::copy(home.at(&format!("shop/{table}.jsonl")), home.at(&format!("theirs/{table}.jsonl"))).unwrap();
    }
    let numbered = || outfits.iter().enumerate();
    home.write_rows(
        "theirs/outfits.jsonl",
        numbered().flat_map(|(at, outfit)| [copy(outfit, at), copy(outfit, at + 7)]),
    );
    let (_, said) = home.outputs_of("import theirs --out twice --no-history");
    assert_has(
        &said,
        &[" outfits repeat another one (the same articles, or all but one of four or more); each was"],
    );
    // The rows of a look have one split.
    let looks = |folder: &str| {
        let mut splits = BTreeMap::<String, BTreeSet<String>>::new();
        for row in home.rows(&format!("{folder}/outfits.jsonl")) {
            let split = row["split"].as_str().unwrap().to_owned();
            splits.entry(row["articles"].to_string()).or_default().insert(split);
        }
        splits
    };
    let drawn = looks("twice");
    assert!(drawn.values().all(|splits| splits.len() == 1), "{drawn:?}");
    assert!(drawn.values().filter(|splits| splits.contains("validation")).count() >= 15, "{drawn:?}");

    // A split that the shop gave stays, and figures say what it is worth.
    let half = |outfit: &Value, at: usize, split: &str| {
        let mut row = copy(outfit, at);
        row["split"] = split.into();
        row
    };
    home.write_rows(
        "theirs/outfits.jsonl",
        numbered()
            .flat_map(|(at, outfit)| {
                let asked = half(outfit, at + 7, if at < 60 { "validation" } else { "train" });
                [half(outfit, at, if at < 30 { "validation" } else { "train" }), asked]
            })
            .collect::<Vec<_>>(),
    );
    let (_, said) = home.outputs_of("import theirs --out given --no-history");
    assert_has(
        &said,
        &[" of 90 validation outfits repeat one to learn from", "`evaluate` also gives those without them"],
    );
    assert!(looks("given").values().any(|splits| splits.len() == 2));
    home.output_of("fit --data given --config settings.toml --method c --epochs 1");
    let figures = home.output_of("evaluate --data given --runs runs/given/c-1");
    let (with, without) = figures.split_once(" of 90 outfits repeat one to learn from").expect(&figures);
    let logit = |text: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with("| *logit* |")).expect(text);
        let mut words = line.split(['|', ' ']).filter_map(|word| word.parse().ok());
        words.next().expect(line)
    };
    assert!(logit(with) + 0.3 < logit(without), "what was read is known: {figures}");
}
