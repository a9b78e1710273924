use std::{fs, sync::atomic::AtomicBool};

use atelier_core::domain::Method;
use tempfile::TempDir;

use super::*;
use crate::{
    export::{Metadata, Storage},
    fit::{self, FitConfig, RunConfig, RunFolder, Watch, fit},
    release::{assemble, export_run},
    testing::{change, difference, patterned, run_config},
};

/// Outfits with a pattern, of articles in three colours.
fn shop() -> TempDir {
    let home = patterned(100);
    change(&home, "articles", |(number, line)| {
        let colour = ["blue", "green", "red"][number % 3];
        line.replace('}', &format!(",\"colour\":\"{colour}\"}}"))
    });
    home
}

/// Writes the articles' file in the opposite order.
fn reverse(home: &TempDir) {
    let path = home.path().join("articles.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.lines().rev().collect::<Vec<_>>().join("\n")).unwrap();
}

fn config(data: &Data, method: Method, attributes: bool) -> RunConfig {
    run_config(data, method, |fit| {
        let default = FitConfig { attributes, calibrate: false, ..FitConfig::default() };
        *fit = FitConfig { epochs: 15, batch: 16, learning_rate: 1e-2, warm_up: 0.5, ..default };
    })
}

/// A release of a run, with what the run learned.
fn release(
    home: &TempDir,
    data: &Data,
    method: Method,
    attributes: bool,
    storage: Storage,
) -> (Release, MethodEntry, Model) {
    let config = config(data, method, attributes);
    let run = RunFolder::new(home.path().join(format!("{method}-{attributes}")));
    let stop = AtomicBool::new(false);
    let mut watch = Watch { clock: &|| 0.0, stop: &stop, on_event: &mut |_| {} };
    fit(data, &config, &run, false, &mut watch).unwrap();
    let metadata = Metadata { release: String::new(), storage };
    let entry = export_run(&run, &config, data, &metadata, run.path()).unwrap();
    let release = assemble(run.path(), "", data, entry.clone()).unwrap();
    (release, entry, run.best_for(data).unwrap())
}

fn begin(data: &Data, live: &Release, entry: &MethodEntry, attributes: bool) -> (Model, Model) {
    let mut config = config(data, entry.method, attributes);
    config.fit.seed = 2;
    let mut new = fit::first_model(data, &config);
    let mut warm = new.clone();
    begin_at(&mut warm, live, entry, data).unwrap();
    // With the logit's weights a new model knows so regular a shop, too.
    for table in ["memory.weights", "memory.outfits"] {
        new.named_mut(table).into_iter().for_each(|table| table.data.fill(0.0));
    }
    (new, warm)
}

/// With and without vectors of values, in each storage, also if the catalogue's file has another order.
#[test]
fn a_model_begins_at_what_a_release_knows() {
    for (method, attributes, storage) in [
        (Method::Gsu, false, Storage::Float32),
        (Method::Gsu, true, Storage::Float16),
        (Method::Np, true, Storage::Int8),
        (Method::Latent, true, Storage::Float32),
        (Method::Universal, false, Storage::Float32),
        (Method::Match, true, Storage::Float32),
    ] {
        let home = shop();
        let data = Data::load(home.path()).unwrap();
        let (live, entry, learned) = release(&home, &data, method, attributes, storage);
        let learned = fit::score(&learned, &data);
        reverse(&home);
        for data in [data, Data::load(home.path()).unwrap()] {
            let (new, warm) = begin(&data, &live, &entry, attributes);
            let [new, found] = [&new, &warm].map(|model| fit::score(model, &data));
            assert!(learned + 0.05 < new, "{method}: nothing was learned: {learned}, {new} before");
            let tolerance = match storage {
                // A release has the memory's strengths, not the weights that they were computed with.
                _ if method == Method::Match => (new - learned) / 2.0,
                Storage::Float32 => 1e-4,
                _ => 0.02,
            };
            assert!(
                (found - learned).abs() < tolerance,
                "{method}: {found}, learned {learned}, {new} before"
            );
        }
    }
}

/// Articles come and leave, a colour is new and one is gone: what stayed keeps its vector, what is new has none of its own.
#[test]
fn what_stayed_is_found_by_its_name() {
    let home = shop();
    let data = Data::load(home.path()).unwrap();
    let (live, entry, mut learned) = release(&home, &data, Method::Gsu, true, Storage::Float32);
    let names = |data: &Data| {
        data.articles()[..data.count_known()].iter().map(|article| article.id.to_string()).collect::<Vec<_>>()
    };
    let (old_names, old_words) = (names(&data), words(Some(data.attributes().encoder())));
    change(&home, "outfits", |(_, line)| {
        line.replace("\"hat-8\"", "\"cap\"").replace("\"bag-0\"", "\"bag-1\"")
    });
    change(&home, "articles", |(number, row)| {
        let row = row.replace("\"hat-8\"", "\"cap\"").replace("\"blue\"", "\"orange\"");
        match number {
            0 => row.replace("\"orange\"", "\"green\""),
            _ if row.contains("\"bag-0\"") => String::new(),
            _ => row,
        }
    });
    reverse(&home);
    let data = Data::load(home.path()).unwrap();
    let (_, mut warm) = begin(&data, &live, &entry, true);

    let check = |learned: &mut Model, warm: &mut Model, table: &str, rows: &Rows| {
        let [learned, warm] = [learned, warm].map(|model| model.named_mut(table).unwrap().clone());
        let width = warm.shape[1];
        for (new, old) in warm.data.chunks(width).zip(rows) {
            let expected =
                old.map_or_else(|| vec![0.0; width], |old| learned.data[old * width..][..width].to_vec());
            assert!(difference(new, &expected) < 1e-5, "{table}, a row that was {old:?}: {new:?}");
        }
    };
    let new_names = names(&data);
    let articles = match_by_hand(&old_names, &new_names);
    let was = |name: &str| articles[new_names.iter().position(|other| other == name).unwrap()];
    assert!(
        was("cap").is_none() && was("hat-7").is_some() && articles[0] > Some(0),
        "new, and in another order"
    );
    check(&mut learned, &mut warm, "articles.own", &articles);
    check(&mut learned, &mut warm, "vocabulary.own", &articles);
    let new_words = words(Some(data.attributes().encoder()));
    let values = match_by_hand(&old_words, &new_words);
    let orange = new_words.iter().position(|(_, word)| word == "orange").unwrap();
    assert!(values[orange].is_none(), "{values:?}");
    assert!(values.iter().enumerate().any(|(new, old)| old.is_some_and(|old| old != new)), "other places");
    check(&mut learned, &mut warm, "articles.values", &values);
}

fn match_by_hand<T: PartialEq>(old: &[T], new: &[T]) -> Rows {
    new.iter().map(|name| old.iter().position(|other| other == name)).collect()
}
