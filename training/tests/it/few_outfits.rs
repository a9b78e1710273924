//! A shop with few articles and outfits: what `fit` makes by default has to be better than counting.

use std::fs;

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
    let figure = |split: &str| epochs[19][split]["cross_entropy"].as_f64().unwrap();
    let is_shortened = figure("development") - figure("training") > 0.1;
    assert_eq!(epochs.len() == 20, is_shortened, "as the twentieth epoch shows, not after {}", epochs.len());
    home.output_of("evaluate --data shop --runs runs/shop/match-1 --out all.json");
    let (ours, all) = (home.json("runs/shop/match-1/evaluation.json"), home.json("all.json"));
    let baselines = all["baselines"].as_array().unwrap();
    assert_eq!(baselines.len(), 3, "{all}");
    for baseline in baselines {
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
