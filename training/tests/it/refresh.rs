//! A shop whose tastes and catalogue move, from its events to a release that suggests better: through the service's database and
//! deploy/refresh, as cron runs it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::SystemTime,
};

use atelier_core::domain::{ArticleId, Timestamp};
use atelier_engine::release::Release;
use atelier_files::{EventRow, OrderLine};
use atelier_training::{
    refresh::{Card, acceptance},
    weeks::{Shop, Size},
};

use super::{Home, evaluation::RUNTIME};

/// Narrow and quick.
const SETTINGS: &str = "[fit]\nepochs = 6\nbatch = 32\nlearning_rate = 0.003\nwarm_up = 0.5\n\
    [model]\nwidth = 16\nheads = 2\nhidden = 32\nblocks = 2\nfeature_width = 8\nmatching = 16\nmemory = 8\n";
const SIZE: Size =
    Size { seed: 1, articles: 800, customers: 300, outfits: 300, orders: 250, asked: 150, weeks: 4 };

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

fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// What a line of an order is as events: the purchase, and its return.
fn events(lines: &[OrderLine], shift: i64) -> Vec<EventRow> {
    let event = |line: &OrderLine, number: usize, kind: &str| EventRow {
        id: format!("{}/{number}/{kind}", line.order),
        kind: kind.to_owned(),
        customer: line.customer.clone(),
        visitor: None,
        consent: false,
        article: ArticleId::new(line.article.as_deref().unwrap()).unwrap(),
        order: Some(line.order.clone()),
        value: Some(10.0),
        time: Some(Timestamp::from_millis(line.time.millis() + shift)),
        is_date: false,
        ticket: None,
    };
    let mut rows: Vec<EventRow> =
        lines.iter().enumerate().map(|(number, line)| event(line, number, "bought")).collect();
    let returned = lines.iter().enumerate().filter(|(_, line)| line.returned);
    rows.extend(returned.map(|(number, line)| event(line, number, "returned")));
    rows
}

fn card(output: &Output, folder: &Path) -> Card {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    serde_json::from_str(&fs::read_to_string(folder.join("model-card.json")).unwrap()).unwrap()
}

#[test]
fn a_shop_whose_tastes_move_gets_a_better_release() {
    let Some(atelier) = atelier() else { return };
    let home = Home::new();
    let shop = Shop::new(SIZE).unwrap();
    home.write("settings.toml", SETTINGS);
    shop.write(&home.at("first"), 0).unwrap();
    shop.write_table(&home.at("first"), shop.first_outfits()).unwrap();
    home.output_of("import first --out data");
    home.output_of("fit --data data --config settings.toml --run run");
    home.output_of("release --name first --data data --runs run");

    // The service serves it, and four weeks go by.
    let serve = |release: &str, arguments: &[&str]| {
        let mut command = Command::new(&atelier);
        let release = format!("models.release={release}");
        command.args(["--database", "sqlite:shop.db", "--set", &release]).args(arguments);
        let output = run(command.current_dir(home.0.path()));
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let service = |arguments: &[&str]| serve("first", arguments);
    service(&["import", "first"]);
    let now = Timestamp::from(SystemTime::now()).millis();
    let shift = now - Shop::begin(SIZE.weeks + 1).millis();
    let mut lines = Vec::new();
    for week in 1..=SIZE.weeks {
        let folder = home.at(&format!("week-{week}"));
        shop.write(&folder, week).unwrap();
        service(&["import", "--articles", &format!("week-{week}/articles.jsonl")]);
        lines.extend(shop.orders(week));
    }
    fs::create_dir(home.at("shop")).unwrap();
    shop.write_table(&home.at("shop"), events(&lines, shift)).unwrap();
    service(&["import", "--events", "shop/events.jsonl"]);
    service(&["import", "--mirror", "--articles", "week-4/articles.jsonl"]);

    let programs = atelier.parent().unwrap().display().to_string();
    let refresh = |flags: &[&str]| {
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/refresh"));
        command.arg("models").args(flags).current_dir(home.0.path());
        command.env("PATH", format!("{programs}:{}", env::var("PATH").unwrap()));
        command.env("DATABASE_URL", "sqlite:shop.db").env("ATELIER__MODELS__RELEASE", "first");
        command.env("TMPDIR", home.0.path());
        run(&mut command)
    };
    let before = fs::read(home.at("models/first/release.json")).unwrap();
    let output = refresh(&["--weeks", "1", "--minutes", "9"]);
    let candidates: Vec<PathBuf> =
        fs::read_dir(home.at("models")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let candidate = candidates.iter().find(|path| !path.ends_with("first"));
    let said = String::from_utf8_lossy(&output.stderr);
    let candidate = candidate.unwrap_or_else(|| panic!("{}: {said}", output.status));
    let card = card(&output, candidate);
    assert_eq!(card.live.name, "first");
    let returned = lines.iter().filter(|line| line.returned).count();
    assert_eq!((card.data.order_lines, card.data.returned_lines), (lines.len() as u64, returned as u64));
    assert!(card.figures.iter().any(|segment| segment.value == "new to the live release"));
    assert!(card.figures[0].of_type_at_5.low > 0.0 && card.training.is_some(), "{card:?}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("A candidate to follow the release first (match")
    );

    // It is better in a week that neither knows.
    shop.write(&home.at("asked"), 5).unwrap();
    shop.write_table(&home.at("asked"), shop.asked(5)).unwrap();
    let accepted = |folder: &Path| {
        let release = Release::open(folder).unwrap();
        acceptance(&RUNTIME, &release, &home.at("asked")).unwrap().0
    };
    let [first, refreshed] = [&home.at("models/first"), candidate].map(|folder| accepted(folder));
    assert!(refreshed > first + 0.02, "{refreshed} with refresh, {first} without");

    // Activated, it is the one that the next refresh begins at.
    let name = candidate.file_name().unwrap().to_str().unwrap();
    serve(name, &["export", "after"]);
    assert_eq!(fs::read_to_string(home.at("after/release.txt")).unwrap(), format!("{name}\n"));

    // The live release is as it was, and the candidate names no customer.
    assert_eq!(fs::read(home.at("models/first/release.json")).unwrap(), before);
    let text = fs::read_to_string(candidate.join("outfits.jsonl")).unwrap()
        + &fs::read_to_string(candidate.join("customers.jsonl")).unwrap();
    assert!(text.is_empty() && !candidate.join("ranks.parquet").exists(), "{text}");
    let left = fs::read_dir(home.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<String> = left.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.starts_with("tmp.")), "{left:?}");
    let again = refresh(&["--weeks", "1"]);
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
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(reason) && !home.at("models/next").exists(), "{reason:?} is not in {said}");
        assert!(String::from_utf8(output.stdout).unwrap().contains("**No candidate**: "));
    };
    refuse("", "neither orders nor saved outfits");
    let lines = shop.orders(1);
    let few = lines.iter().position(|line| line.order == "1-20").unwrap();
    shop.write_table(&home.at("first"), lines[..few].iter().cloned()).unwrap();
    refuse("", "fewer than 200 say too little");
    shop.write_table(&home.at("first"), lines).unwrap();
    refuse(" --minutes 0.00001", "raise --minutes");
    let error = home.error_of("refresh --from first --release models/first --out models/first");
    assert!(error.contains("exists already"), "{error}");
    // What it wrote of customers is gone.
    let left = fs::read_dir(home.at("first")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.map(|name| name.to_string_lossy().into_owned()).any(|name| name.starts_with(".refresh")));
}
