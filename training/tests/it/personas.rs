//! Latent personas on outfits with planted groups.

use std::fs;

use atelier_training::data::Data;

use super::Home;

#[test]
fn personas_begin_at_a_mixture_of_outfits_with_planted_groups() {
    let home = Home::new();
    home.output_of(
        "synthesise --out all --articles 150 --customers 60 --outfits 300 --validation 30 --format jsonl",
    );
    home.vary("--data all --groups 2 --out planted");
    let groups = home.json("planted/planted-groups.json");
    let outfits = fs::read_to_string(home.at("planted/outfits.jsonl")).unwrap();
    let (mut own, mut other) = (0, 0);
    for (outfit, group) in outfits.lines().zip(groups["outfits"].as_array().unwrap()) {
        let outfit: serde_json::Value = serde_json::from_str(outfit).unwrap();
        for article in outfit["articles"].as_array().unwrap() {
            let is_own = &groups["articles"][article.as_str().unwrap()] == group;
            *(if is_own { &mut own } else { &mut other }) += 1;
        }
    }
    // Four of five are exchanged on average, and half of the others are of the group anyway.
    assert!(own > 4 * other && other > 0, "{own} and {other}");

    let data = Data::load(&home.at("planted")).unwrap();
    assert!(data.known() < data.articles().len(), "some articles are in no training outfit");
    let settings =
        "--epochs 1 --set model.width=16 --set model.heads=2 --set model.hidden=32 --set model.personas=2";
    home.output_of(&format!("fit --method latent --data planted {settings} --set fit.mixture=true"));
    home.output_of("evaluate --data planted --runs runs/planted/latent-1 --out all.json");
}
