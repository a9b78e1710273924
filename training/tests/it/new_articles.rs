//! Articles that no training outfit has, from their data to the figures that the service shows.

use atelier_core::domain::Method;
use atelier_engine::evaluation::Stored;
use atelier_training::data::Data;
use serde_json::Value;

use super::{Home, assert_has, mean};

/// Narrow and quick.
const SETTINGS: &str = "[fit]\nepochs = 2\nlearning_rate = 0.003\nwarm_up = 0.5\n\
    [model]\nwidth = 16\nheads = 2\nhidden = 32\nblocks = 2\nfeature_width = 8\npersonas = 3\nmatching = 8\nmemory = 4\n";

#[test]
fn new_articles_have_figures_of_their_own() {
    let home = Home::new();
    home.write("settings.toml", SETTINGS);
    home.output_of("synthesise --out all --articles 120 --customers 60 --outfits 250 --validation 50");
    home.python("research/vary.py", "--data all --withhold 0.1 --out part");
    for (method, data) in [("none", "part"), ("match", "part"), ("match", "all")] {
        home.output_of(&format!("fit --method {method} --data {data} --config settings.toml"));
    }
    let runs = "--runs runs/part/none-1 runs/part/match-1";
    let text = home.output_of(&format!("evaluate --data part {runs} --out part.json"));
    let expected = [
        "\nnone cannot suggest new articles: ",
        " slots have a new article as their answer.\n",
        " slots have another article as their answer.\n",
        "\n| *co-occurrence; new as their neighbours* | ",
    ];
    assert_has(&text, &expected);

    let evaluation = |run: &str| home.json(&format!("runs/{run}/evaluation.json"));
    let (none, ours) = (evaluation("part/none-1"), evaluation("part/match-1"));
    assert!(none.get("new_articles").is_none(), "a closed method has none");
    let figures = &ours["new_articles"];
    // Methods and baselines are compared among learned articles. Beside new ones an answer is less likely.
    let (alone, beside_new) = (&ours["summary"], &figures["known"]["any"]);
    assert_eq!(alone["slots"], beside_new["slots"]);
    assert!(mean(&alone["cross_entropy"]) + 0.001 < mean(&beside_new["cross_entropy"]), "{ours}");
    assert!(mean(&alone["mean_rank"]) < mean(&beside_new["mean_rank"]), "{ours}");
    let bins = ours["calibration"]["bins"].as_array().unwrap();
    let asked: u64 = bins.iter().map(|bin| bin["slots"].as_u64().unwrap()).sum();
    assert_eq!(asked, ours["all_slots"], "customers are told of new articles, too");
    let slots_of = |answers: &Value| answers["any"]["slots"].as_u64().unwrap();
    let (of_new, of_known) = (slots_of(&figures["new"]), slots_of(&figures["known"]));
    assert!(of_new > 10, "{of_new}");
    let shares = &figures["shares"];
    let share = |name: &str| shares[name].as_f64().unwrap();
    let data = Data::load(&home.at("part")).unwrap();
    let new = (data.articles().len() - data.count_known()) as u64;
    assert!(new >= 12, "a tenth of 120, and those that no outfit has anyway");
    for (name, part, whole) in [("of_answers", of_new, of_new + of_known), ("of_articles", new, 120)] {
        #[expect(clippy::cast_precision_loss, reason = "slots and articles are few")]
        let expected = part as f64 / whole as f64;
        assert!((share(name) - expected).abs() < 1e-9, "{name}: {shares}");
    }
    assert_has(&text, &[&format!("\n| match | {:.2} | ", 100.0 * share("of_articles"))]);
    for name in ["of_probability", "of_probability_within_type", "of_first_five"] {
        assert!((0.0..0.5).contains(&share(name)), "{name}: {}", share(name));
    }
    assert!(share("of_probability") > 0.001, "{shares}");
    let (any, told) = (&figures["new"]["any"], &figures["new"]["told_type"]);
    assert!(mean(&told["mean_rank"]) < mean(&any["mean_rank"]) && mean(&any["mean_rank"]) <= 120.0);
    assert!(mean(&told["cross_entropy"]) < mean(&any["cross_entropy"]));

    let all = home.json("part.json");
    let baselines = all["new_article_baselines"].as_array().unwrap();
    assert_eq!(baselines.len(), 4);
    assert!(
        baselines.iter().all(|one| slots_of(&one["new"]) == of_new && slots_of(&one["known"]) == of_known)
    );
    // An article without a count is as likely as the rarest, or as the mean of its type.
    let entropy = |place: usize| mean(&baselines[place]["new"]["any"]["cross_entropy"]);
    assert!(entropy(1) < entropy(0), "{} and {}", entropy(1), entropy(0));
    let table = home.output_of(&format!("table {runs} --baselines part.json"));
    let section = |text: &str| {
        let (_, after) = text.split_once("\nNew articles are those").unwrap();
        after.split_once(" cannot suggest").unwrap().0.to_owned()
    };
    assert_eq!(section(&table), section(&text));

    // A run that was trained with all articles is asked about the same slots.
    home.output_of("evaluate --data all --runs runs/all/match-1 --new-in part");
    let with_all = &evaluation("all/match-1")["new_articles"];
    assert_eq!((slots_of(&with_all["new"]), slots_of(&with_all["known"])), (of_new, of_known));
    assert_ne!(with_all["new"]["any"], figures["new"]["any"]);

    // Without profiles, a method that does not see them answers the same.
    home.output_of(&format!("evaluate --data part {runs} --without-profiles"));
    let summary = |run: &str| home.json(&format!("runs/part/{run}/without-profiles.json"))["summary"].clone();
    assert_eq!(summary("none-1"), none["summary"]);
    assert_ne!(summary("match-1"), ours["summary"]);
    assert_eq!(evaluation("part/match-1"), ours, "the figures with profiles stay");

    home.output_of(&format!("release --name spring --data part {runs} --storage int8"));
    let comparison = Stored::read(&home.at("models/spring")).unwrap().figures.unwrap().comparison;
    let published = |method: Method| {
        comparison.methods.iter().find(|result| result.method == method).unwrap().new_articles
    };
    assert_eq!(published(Method::None), None);
    let published = published(Method::Match).unwrap();
    assert_eq!(published.new.any.slots, of_new);
    let rank = published.new.any.mean_rank.mean;
    assert!((rank - mean(&any["mean_rank"])).abs() < 3.0, "{rank} in eight bits, {any} in thirty-two");
    assert_eq!(comparison.new_article_baselines.len(), 4);
}
