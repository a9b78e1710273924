//! A shop with few articles and outfits: what `fit` makes by default has to be better than counting.

use std::{fs, process::Output};

use serde_json::Value;

use super::{Home, mean};

/// Narrow and quick; how it learns is the default.
const SETTINGS: &str =
    "[model]\nwidth = 16\nheads = 2\nhidden = 32\nblocks = 2\nfeature_width = 8\nmatching = 32\nmemory = 8\n";

#[test]
fn a_small_shops_model_beats_popularity() {
    let home = Home::new();
    home.write("settings.toml", SETTINGS);
    home.output_of("synthesise --out shop --articles 160 --customers 300 --outfits 600 --validation 100");
    home.output_of("fit --data shop --config settings.toml");
    let config = fs::read_to_string(home.at("runs/shop/match-1/config.toml")).unwrap();
    for line in ["epochs = 60", "shorten = true", "begin_at_logit = true"] {
        assert!(config.contains(&format!("\n{line}\n")), "{line}: {config}");
    }
    let epochs = fs::read_to_string(home.at("runs/shop/match-1/metrics.jsonl")).unwrap();
    let epochs: Vec<Value> = epochs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let figure = |epoch: &Value, split: &str| epoch[split]["cross_entropy"].as_f64().unwrap();
    let is_ahead = |epoch: &Value| figure(epoch, "development") - figure(epoch, "training") > 0.1;
    let waited = |epochs: &[Value]| epochs.iter().rev().take_while(|epoch| epoch["best"] == false).count();
    let ends = |count: usize| {
        let (epochs, last) = (&epochs[..count], &epochs[count - 1]);
        let best = epochs.iter().rfind(|epoch| epoch["best"] == true).unwrap();
        let behind = figure(last, "development") - figure(best, "development");
        match count {
            ..20 => is_ahead(last) && waited(epochs) >= 8,
            20 => is_ahead(last),
            _ => count >= 40 && waited(epochs) >= 20 && behind > 0.05,
        }
    };
    let end = (1..=epochs.len()).find(|count| ends(*count)).unwrap_or(60);
    assert_eq!(
        epochs.len(),
        end,
        "far ahead after twenty epochs or eight without improvement, or far behind later"
    );
    home.output_of("evaluate --data shop --runs runs/shop/match-1 --out all.json");
    let (ours, all) = (home.json("runs/shop/match-1/evaluation.json"), home.json("all.json"));
    let baselines = all["baselines"].as_array().unwrap();
    assert_eq!(baselines.len(), 4, "{all}");
    // A match begins at the logit.
    for baseline in &baselines[..3] {
        for (figures, theirs) in [("summary", "answers"), ("told_type", "told_type")] {
            let (ours, theirs) = (&ours[figures], &baseline[theirs]);
            let told_more = baseline["knows_type"] == true && figures == "summary";
            if told_more {
                continue;
            }
            let name = &baseline["baseline"];
            let entropy = [mean(&ours["cross_entropy"]), mean(&theirs["cross_entropy"])];
            assert!(entropy[0] < 0.95 * entropy[1], "{name}, {figures}: {entropy:?}");
            let recall = [mean(&ours["recall_at_1"]), mean(&theirs["recall_at_1"])];
            assert!(recall[0] > recall[1], "{name}, {figures}: {recall:?}");
        }
    }
}

/// What a command that must succeed says beside its output.
fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn few_slots_are_said_and_every_outfit_is_asked_in_five_folds() {
    let home = Home::new();
    home.write("settings.toml", SETTINGS);
    home.output_of("synthesise --out shop --articles 60 --customers 60 --outfits 99 --validation 1");
    home.output_of("fit --data shop --config settings.toml --epochs 2");
    let first = home.output_of("evaluate --data shop --runs runs/shop/match-1 --out all.json");
    let slots = home.json("all.json")["slots"].as_u64().unwrap();
    assert!(
        first.contains(&format!("\n**Only {slots} slots**: figures of fewer than 200 say little.")),
        "{first}"
    );
    let (few, folds) = first.split_once("\nCross-validation in five folds: all 100 outfits, ").expect(&first);
    let line = |text: &str, name: &str| -> Vec<f64> {
        let line =
            text.lines().rfind(|line| line.starts_with(&format!("| {name} | "))).expect(text).to_owned();
        let numbers =
            line.split(|c: char| !(c.is_ascii_digit() || c == '.')).filter_map(|word| word.parse().ok());
        numbers.collect()
    };
    // Cross-entropy (it has no interval over one outfit), then recall@1 and recall@5, each with an interval.
    let alone = line(few, "match");
    let all = line(folds, "match");
    assert_eq!((alone.len(), all.len()), (7, 9), "{first}");
    assert!(alone[3] - alone[2] > 70.0, "one outfit says next to nothing: {alone:?}");
    for (at, name) in [(3, "recall@1"), (6, "recall@5")] {
        assert!(
            all[at + 1] < all[at] && all[at] < all[at + 2] && all[at + 2] - all[at + 1] < 20.0,
            "{name}: {all:?}"
        );
    }
    assert!(line(folds, "*popularity*")[0] > all[0], "{first}");
    let asked: usize = folds.split_once(" slots.").unwrap().0.rsplit(' ').next().unwrap().parse().unwrap();
    let outfits = fs::read_to_string(home.at("shop/outfits.jsonl")).unwrap();
    let worn: usize = outfits
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["articles"].as_array().unwrap().len())
        .sum();
    assert!(asked <= worn && 100 * asked > 95 * worn, "{asked} of {worn}");

    let weights = home.at("runs/shop/match-1/folds/5/best.safetensors");
    let made = fs::metadata(&weights).unwrap().modified().unwrap();
    let again = home.output_of("evaluate --data shop --runs runs/shop/match-1");
    assert_eq!(again, first);
    assert_eq!(fs::metadata(&weights).unwrap().modified().unwrap(), made, "finished folds are kept");
}

#[test]
fn a_baseline_that_is_better_is_named() {
    let home = Home::new();
    home.write("settings.toml", SETTINGS);
    home.output_of("synthesise --out shop --articles 80 --customers 100 --outfits 400 --validation 60");
    // It learns next to nothing.
    let fitted = said(
        &home.run("fit --method none --data shop --config settings.toml --epochs 1 --learning-rate 0.000001"),
    );
    let better = "co-occurrence is better than none: cross-entropy ";
    assert!(fitted.contains(" slots of the development split:\n") && fitted.contains(better), "{fitted}");
    let offer = "`atelier-training release --baseline co-occurrence` releases co-occurrence as a method";
    assert!(fitted.contains(offer), "{fitted}");
    let evaluated = home.output_of("evaluate --data shop --runs runs/shop/none-1");
    assert!(evaluated.contains(&format!("\n- {better}")), "{evaluated}");
    let told = "popularity, told the type is better than none: cross-entropy with the type known ";
    assert!(evaluated.contains(&format!("\n- {told}")), "{evaluated}");
    assert!(!evaluated.contains("Cross-validation"), "{evaluated}");
    let released = said(&home.run("release --name r --data shop --runs runs/shop/none-1"));
    assert!(released.contains(better), "{released}");

    home.output_of(
        "release --name b --data shop --runs runs/shop/none-1 --baseline co-occurrence --baseline popularity --baseline logit",
    );
    let (manifest, all) = (home.json("models/b/release.json"), home.json("models/b/evaluation.json"));
    assert_eq!(manifest["default_method"], "logit", "the best on the development split");
    assert_eq!(all["comparison"]["methods"].as_array().unwrap().len(), 4);
    home.output_of("evaluate --data shop --release models/b --out served.json");
    let served = home.json("served.json");
    // A file of the logit does not read whole outfits.
    for (name, off) in [("popularity", 1e-3), ("co-occurrence", 1e-3), ("logit", 0.1)] {
        let of = |list: &str, key: &str| {
            let rows = served[list].as_array().unwrap();
            rows.iter().find(|row| row[key] == name).unwrap_or_else(|| panic!("{name}: {served}")).clone()
        };
        let (method, baseline) = (of("methods", "method"), of("baselines", "baseline"));
        for figure in ["cross_entropy", "recall_at_1", "recall_at_5", "mrr"] {
            let ours = mean(&method[figure]);
            let theirs = mean(&baseline["answers"][figure]);
            // The file has no articles without training outfits.
            assert!(
                (ours - theirs).abs() < off * theirs,
                "{name}: {figure} is {ours}, of the baseline {theirs}"
            );
        }
    }
    // No epoch is better than the start where nothing moves.
    let start = "--config settings.toml --epochs 1 --learning-rate 1e-30 --run runs/start";
    let fitted = said(&home.run(&format!("fit --data shop {start}")));
    assert!(fitted.contains("best: the start, at the conditional logit"), "{fitted}");
    home.output_of("release --name s --data shop --runs runs/start");
    assert_eq!(home.json("models/s/release.json")["methods"][0]["metrics"]["epoch"], 0);

    home.output_of("release --name c --data shop --baseline popularity");
    assert_eq!(home.json("models/c/release.json")["methods"].as_array().unwrap().len(), 1);
}
