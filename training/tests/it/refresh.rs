//! A shop whose tastes and catalogue move, from its events to a release that suggests better: through the service and deploy/refresh,
//! as cron runs it.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use atelier_core::domain::{ArticleId, Features, Outfit};
use atelier_files::AcceptedOutfit;
use atelier_training::refresh::Card;
use serde_json::{Value, json};

use super::{
    Home, assert_has,
    weeks::{Shop, Size},
};

/// Narrow and quick.
const SETTINGS: &str = "[fit]\nepochs = 6\nbatch = 32\nlearning_rate = 0.003\nwarm_up = 0.5\n\
    [model]\nwidth = 16\nheads = 2\nhidden = 32\nblocks = 2\nfeature_width = 8\nmatching = 16\nmemory = 8\n";
const SIZE: Size = Size {
    seed: 1,
    articles: 800,
    customers: 300,
    outfits: 300,
    orders: 250,
    asked: 150,
    weeks: 4,
    movement: 0.2,
};

/// The program of the service, which a test of the whole workspace builds.
fn atelier() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_BIN_EXE_atelier-training")).with_file_name("atelier");
    if path.is_file() {
        return Some(path);
    }
    assert!(
        env::var_os("ATELIER_TESTS_MUST_RUN").is_none(),
        "{} is missing: test --workspace",
        path.display()
    );
    eprintln!("NOT RUN: {} is missing: test --workspace", path.display());
    None
}

fn assert_nothing_left(home: &Home, folder: &str, begin: &str) {
    let left = fs::read_dir(home.at(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<String> = left.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.starts_with(begin)), "{left:?}");
}

/// training/research/loop.py, as a user runs it.
#[test]
fn the_loop_closes() {
    let Some(atelier) = atelier() else { return };
    let home = Home::new();
    let programs = atelier.parent().unwrap().display();
    let path = format!("{programs}:{programs}/examples:{}", env::var("PATH").unwrap());
    let mut command = Command::new("python3");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/research/loop.py")).arg(home.at("loop"));
    let output = command.env("PATH", &path).output().unwrap();
    let said = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said)).concat();
    let log = fs::read_to_string(home.at("loop/log")).unwrap_or_default();
    assert!(output.status.success(), "{said}\n{log}");
    let found = home.json("loop/loop.json");
    let candidate = found["candidate"].as_str().unwrap();
    assert_eq!((&found["decision"]["winner"], &found["live"]), (&json!("new"), &json!(candidate)), "{found}");
    let [first, refreshed, asked] =
        ["first", candidate, "asked"].map(|name| found["after"][name].as_f64().unwrap());
    assert!(refreshed > first + 0.02 * asked, "{refreshed} with refresh, {first} without, of {asked}");

    // The card says what was read.
    let text_of = |file: &str| home.text(&format!("loop/models/{candidate}/{file}"));
    let card: Card = serde_json::from_str(&text_of("model-card.json")).unwrap();
    let events: String =
        (1..=4).map(|week| home.text(&format!("loop/shop/week-{week}/events.jsonl"))).collect();
    let count = |kind: &str| events.matches(&format!("\"kind\":\"{kind}\"")).count() as u64;
    assert_eq!((card.data.order_lines, card.data.returned_lines), (count("bought"), count("returned")));
    assert!(card.data.accepted_outfits > 100 && card.live.name == "first", "{card:?}");
    assert!(card.figures.iter().any(|segment| segment.value == "new to the live release"));
    assert!(card.figures[0].of_type_at_5.low > 0.0 && card.training.is_some(), "{card:?}");
    assert_has(&log, &["A candidate to follow the release first (match"]);

    // The live release is as it was, and the candidate names no customer.
    let manifest = |folder: &str| fs::read(home.at(folder).join("first/release.json")).unwrap();
    assert_eq!(manifest("loop/models"), manifest("loop/elsewhere"));
    assert_eq!((text_of("outfits.jsonl"), text_of("customers.jsonl")), (String::new(), String::new()));
    assert!(!home.at(&format!("loop/models/{candidate}/ranks.parquet")).exists());
    assert_nothing_left(&home, "loop", "tmp.");

    // The next refresh begins at the candidate.
    let run = |program: &mut Command| {
        let program = program.current_dir(home.at("loop")).env("DATABASE_URL", "sqlite:shop.db");
        program.env("PATH", &path).output().unwrap()
    };
    assert!(run(Command::new(&atelier).args(["export", "export"])).status.success());
    assert_eq!(home.text("loop/export/release.txt"), format!("{candidate}\n"));
    let again = run(Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/refresh")).arg("models"));
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists already"));
}

#[test]
fn without_something_new_there_is_no_candidate() {
    let home = Home::new();
    let shop = Shop::new(SIZE).unwrap();
    home.write("settings.toml", SETTINGS);
    shop.write(&home.at("first"), 0).unwrap();
    shop.write_table(&home.at("first"), shop.first_outfits()).unwrap();
    home.output_of("import first --out data");
    home.output_of("fit --data data --config settings.toml --run run");
    home.output_of("release --name first --data data --runs run");
    let refuse = |flags: &str, reason: &str| {
        let output =
            home.run(&format!("refresh --from first --release models/first --out models/next{flags}"));
        let [card, said] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert_has(&said, &[reason]);
        assert_has(&card, &["**No candidate**: "]);
        assert!(!home.at("models/next").exists(), "{said}");
        card
    };
    refuse("", "neither orders nor saved outfits");
    let lines = shop.orders(1);
    let few = lines.iter().position(|line| line.order == "1-20").unwrap();
    shop.write_table(&home.at("first"), lines[..few].iter().cloned()).unwrap();
    refuse("", "fewer than 200 say too little");
    let wanted = " % of the catalogue, at least 99.0 wanted (--least-known, as models.least_known): put earlier orders into the service";
    shop.write_table(&home.at("first"), lines.clone()).unwrap();
    // A feature that lists what customers bought since, as ids or by their brands, tells the answers.
    let (customers, schema) = (home.text("first/customers.jsonl"), home.text("first/schema.toml"));
    let articles = home.rows("first/articles.jsonl");
    let brand_of = |id: &str| articles.iter().find(|row| row["id"] == id).map(|row| row["brand"].clone());
    for (name, word_of) in [
        ("bought_lately", &(|id: &str| Some(json!(id))) as &dyn Fn(&str) -> Option<Value>),
        ("brands_bought", &brand_of),
    ] {
        let all: BTreeSet<String> = articles
            .iter()
            .filter_map(|row| word_of(row["id"].as_str().unwrap()))
            .map(|word| word.to_string())
            .collect();
        let values = all.into_iter().collect::<Vec<_>>().join(", ");
        home.write(
            "first/schema.toml",
            format!("{schema}\n[[feature]]\nname = \"{name}\"\nkind = \"set\"\nvalues = [{values}]\n"),
        );
        let listed = home.rows("first/customers.jsonl").into_iter().map(|mut customer| {
            let of = lines
                .iter()
                .filter(|line| line.customer.as_ref().is_some_and(|id| customer["id"] == id.as_str()));
            let words: Vec<Value> = of.filter_map(|line| word_of(line.article.as_deref()?)).collect();
            customer["features"][name] = json!(words);
            customer
        });
        home.write_rows("first/customers.jsonl", listed.collect::<Vec<_>>());
        refuse(" --weeks 1", &format!("the feature \"{name}\" names the "));
        home.write("first/customers.jsonl", &customers);
    }
    home.write("first/schema.toml", &schema);
    // An accepted outfit is learned once, and not if it was imported, is asked, is of the last weeks, or is too small.
    let before = |week| Shop::begin(week) - Duration::from_hours(24);
    let [imported, .., first, second] = &shop.asked(0)[..] else { panic!("there are questions") };
    let of_order = |order: String| lines.iter().filter(move |line| line.order == order);
    let kept = lines.iter().find(|line| of_order(line.order.clone()).all(|line| !line.returned)).unwrap();
    let articles =
        of_order(kept.order.clone()).map(|line| ArticleId::new(line.article.clone().unwrap()).unwrap());
    let customer = kept.customer.clone().unwrap();
    let bought = Outfit::new(customer, articles.collect(), None, Features::default()).unwrap();
    let one = vec![first.articles()[0].clone()];
    let one = Outfit::new(first.customer.clone(), one, None, Features::default()).unwrap();
    let rows = [(first, 0), (first, 0), (second, 2), (&bought, 0), (imported, 0), (&one, 0)];
    let rows = rows.map(|(outfit, week)| AcceptedOutfit { outfit: outfit.clone(), time: before(week) });
    shop.write_table(&home.at("first"), rows).unwrap();
    assert!(refuse(" --minutes 0.00001", "raise --minutes").contains("; only accepted: 1 |"));
    home.assert_refused(
        "refresh --from first --release models/first --out models/first",
        &["exists already"],
    );
    refuse(" --least-known 0.99", wanted);
    // A release that suggests no new articles is asked about them, too.
    let settings = "[fit]\nepochs = 1\nbatch = 32\n[model]\nwidth = 16\nheads = 2\nhidden = 32\nblocks = 2\nfeature_width = 8\n";
    home.write("closed.toml", settings);
    home.output_of("fit --method gsu --data data --config closed.toml --run closed");
    home.output_of("release --name closed --data data --runs closed");
    shop.write_table(&home.at("first"), (1..4).flat_map(|week| shop.orders(week))).unwrap();
    let compared =
        home.run("refresh --from first --release models/closed --out models/compared --weeks 1 --epochs 1");
    let said = String::from_utf8(compared.stderr).unwrap();
    assert!([Some(0), Some(3)].contains(&compared.status.code()), "{said}");
    assert_has(&said, &["comparing with the live release"]);
    // Orders of the last days alone, as events bring them at first.
    home.write("first/outfits.jsonl", "");
    shop.write_table(&home.at("first"), lines).unwrap();
    refuse(
        "",
        "5 of the catalogue's 562 articles, so a candidate covers 0.9 % of the catalogue, at least 50.0 wanted",
    );
    fs::remove_file(home.at("first/accepted.jsonl")).unwrap();
    refuse("", "put earlier orders into the service with `atelier import --orders`, or lower --weeks");
    // What it wrote of customers is gone.
    assert_nothing_left(&home, "first", ".refresh");
}
