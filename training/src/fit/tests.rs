use std::{cell::Cell, fs, path::Path, sync::atomic::AtomicBool};

use atelier_core::domain::Method;
use tempfile::TempDir;

use super::*;
use crate::{
    baselines::{Logit, evaluate},
    testing::{assert_has, near, on_threads, patterned_data, run_config},
};

/// Four epochs of a narrow model.
fn config(data: &Data, method: Method) -> RunConfig {
    run_config(data, method, |fit| {
        *fit = FitConfig { epochs: 4, batch: 16, learning_rate: 5e-3, warm_up: 0.5, ..FitConfig::default() };
    })
}

fn with_pairs(mut config: RunConfig, weight: f32) -> RunConfig {
    config.pair.weight = weight;
    config.model.pair = weight > 0.0;
    config
}

/// Runs until it ends by itself or has made this many steps.
fn run(data: &Data, config: &RunConfig, folder: &RunFolder, resume: bool, steps: u32) -> Outcome {
    let stop = AtomicBool::new(steps == 0);
    let made = Cell::new(0);
    let mut on_event = |event: Event<'_>| {
        if let Event::Step { .. } = event {
            made.set(made.get() + 1);
            stop.store(made.get() >= steps, Ordering::Relaxed);
        }
    };
    let mut watch = Watch { clock: &|| 0.0, stop: &stop, on_event: &mut on_event };
    fit(data, config, folder, resume, &mut watch).unwrap()
}

fn new_folder() -> (TempDir, RunFolder) {
    let home = tempfile::tempdir().unwrap();
    let folder = RunFolder::new(home.path().join("run"));
    (home, folder)
}

/// The folder of a whole run.
fn finish(data: &Data, config: &RunConfig) -> (TempDir, RunFolder) {
    let (home, folder) = new_folder();
    run(data, config, &folder, false, u32::MAX);
    (home, folder)
}

fn refusal(data: &Data, config: &RunConfig, folder: &RunFolder, resume: bool) -> String {
    let stop = AtomicBool::new(false);
    let mut watch = Watch { clock: &|| 0.0, stop: &stop, on_event: &mut |_| {} };
    fit(data, config, folder, resume, &mut watch).unwrap_err().to_string()
}

fn read(folder: &RunFolder, name: &str) -> Vec<u8> {
    fs::read(folder.path().join(name)).unwrap()
}

/// A checkpoint's tensors, sorted: the order in the file is not fixed.
fn tensors(folder: &RunFolder, name: &str) -> Vec<(String, Vec<u8>)> {
    let bytes = read(folder, name);
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap().tensors();
    let mut tensors: Vec<_> =
        tensors.into_iter().map(|(name, tensor)| (name, tensor.data().to_vec())).collect();
    tensors.sort_unstable();
    tensors
}

#[test]
fn an_interrupted_run_resumes_to_the_same_bits() {
    let data = patterned_data(100);
    for (method, pairs, attributes) in [(Method::Gsu, 0.0, true), (Method::LatentUniversal, 0.5, false)] {
        let mut config = with_pairs(config(&data, method), pairs);
        config.fit.attributes = attributes;
        config.data.attributes = attributes.then(|| data.attributes().fingerprint().to_owned());
        config.fit.mixture = method == Method::LatentUniversal;
        let (_home, whole) = new_folder();
        assert_eq!(run(&data, &config, &whole, false, u32::MAX), Outcome::Finished);
        let (_home, parts) = new_folder();
        // Interrupted after two epochs, in the middle of the third, and before the next step.
        let an_epoch = u32::try_from(data.training().len().div_ceil(16)).unwrap();
        assert_eq!(run(&data, &config, &parts, false, 2 * an_epoch), Outcome::Interrupted);
        assert!(parts.unfinished().unwrap().unwrap().contains("has not ended: 2 of"));
        assert_eq!(run(&data, &config, &parts, true, 5), Outcome::Interrupted);
        assert_eq!(run(&data, &config, &parts, true, 0), Outcome::Interrupted);
        assert_eq!(run(&data, &config, &parts, true, u32::MAX), Outcome::Finished);
        assert_eq!(parts.unfinished().unwrap(), None);
        for name in ["metrics.jsonl", "best.safetensors", "state.json", "curves.svg"] {
            assert!(read(&whole, name) == read(&parts, name), "{method}: {name} differs");
        }
        let checkpoint = whole.state().unwrap().checkpoint;
        assert!(tensors(&whole, &checkpoint) == tensors(&parts, &checkpoint), "{method}: the last weights");
        assert_eq!(run(&data, &config, &parts, true, u32::MAX), Outcome::Finished, "nothing is left to do");
    }
}

/// Each step has two shards of outfits, and several of pairs.
#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let data = patterned_data(100);
    for (method, pairs) in [(Method::Gsu, 0.0), (Method::LatentUniversal, 0.5)] {
        let mut config = with_pairs(config(&data, method), pairs);
        config.fit.batch = 70;
        let [one, four] = [1, 4].map(|threads| {
            let (_home, folder) = on_threads(threads, || finish(&data, &config));
            ["metrics.jsonl", "best.safetensors"].map(|name| read(&folder, name))
        });
        assert!(one == four, "{method}");
    }
}

#[test]
fn a_run_stops_early_without_improvement() {
    let data = patterned_data(100);
    let mut config = config(&data, Method::None);
    config.fit = FitConfig { epochs: 100, learning_rate: 2e-2, warm_up: 0.0, patience: 2, ..config.fit };
    let (_home, folder) = new_folder();
    assert_eq!(run(&data, &config, &folder, false, u32::MAX), Outcome::StoppedEarly { epochs: 2 });
    let best: Vec<bool> = folder.epochs().unwrap().iter().map(|epoch| epoch.best).collect();
    assert!(best.ends_with(&[true, false, false]), "{best:?}");
    assert!(!best[..best.len() - 2].windows(2).any(|two| two == [false, false]), "{best:?}");
}

#[test]
fn a_folder_belongs_to_one_run_and_one_process() {
    let data = patterned_data(100);
    let mut config = config(&data, Method::None);
    config.fit.epochs = 1;
    let (_home, folder) = new_folder();
    assert_eq!(run(&data, &config, &folder, false, 1), Outcome::Interrupted);
    let lock = folder.lock().unwrap();
    assert_has(&refusal(&data, &config, &folder, true), &["another process trains in"]);
    drop(lock);
    assert_has(&refusal(&data, &config, &folder, false), &["already holds a run: resume it with --resume"]);
    config.fit.batch = 7;
    let other = "was started with other settings (fit.batch was 16, now 7)";
    assert_has(&refusal(&data, &config, &folder, true), &[other]);
    config.fit.batch = 16;
    config.data.fingerprint = "another".to_owned();
    assert_has(&refusal(&data, &config, &folder, true), &["now it is another"]);
    config.data.fingerprint = folder.config().unwrap().data.fingerprint;
    assert_eq!(run(&data, &config, &folder, true, u32::MAX), Outcome::Finished);
    let readme = String::from_utf8(read(&folder, "README.md")).unwrap();
    assert_has(&readme, &["# Method none, seed 1\n", "--data shop"]);
}

#[test]
fn flags_override_the_files_settings() {
    let data = patterned_data(100);
    let file = tempfile::NamedTempFile::new().unwrap();
    let try_reading = |set: &[&str], change: fn(&mut FitConfig)| {
        let set: Vec<String> = set.iter().map(|&setting| setting.to_owned()).collect();
        let overrides = Overrides { file: Some(file.path()), set: &set };
        RunConfig::new(Method::C, &data, Path::new("shop"), overrides, change)
    };
    let settings = "[fit]\nepochs = 9\nbatch = 33\n[task_weights]\nshoe = 2.5\n[pair]\nweight = 0.75\n\
                    [model]\nwidth = 64\n[model.initial]\nlinear = 0.25\n";
    fs::write(file.path(), settings).unwrap();
    let config = try_reading(&[], |fit| fit.batch = 44).unwrap();
    assert_eq!((config.fit.epochs, config.fit.batch, config.model.width), (9, 44, 64));
    assert!((config.model.initial.linear - 0.25).abs() < 1e-9 && config.model.heads == 8);
    assert_eq!(config.weights(&data), [1.0, 1.0, 1.0, 2.5]);
    assert!((config.pair.weight - 0.75).abs() < 1e-9 && config.model.pair);
    let set = ["model.initial.linear=0.5", "task_weights.\"shoe\"=3", "pair.weight=0"];
    let set = try_reading(&set, |fit| fit.batch = 44).unwrap();
    let differences: Vec<String> =
        set.differences(&config).into_iter().map(|difference| difference.key).collect();
    let changed = ["model.initial.linear", "pair.weight", "task_weights.shoe"];
    assert_eq!(differences, changed, "the rest is the file's, or follows from these");
    let own = toml::to_string(&config).unwrap();
    for (text, set, expected) in [
        (settings, &["model.initial.linear"][..], "--set takes TABLE.KEY=VALUE"),
        (settings, &["model.initial.lines=0.5"], "lines"),
        (settings, &["data.name=\"x\""], "the data is set by --data"),
        ("[fit]\nepoch = 9\n", &[], "epoch"),
        ("[fit]\nbatch = 0\n", &[], "at least 1"),
        ("[task_weights]\nshoes = 2.5\n", &[], "\"shoes\", which no article has; the types are bag, coat"),
        ("[pair]\nweight = -1.0\n", &[], "the pairs' weight must be at least 0, found -1"),
    ] {
        fs::write(file.path(), text).unwrap();
        assert_has(&format!("{:#}", try_reading(set, |_| {}).unwrap_err()), &[expected]);
    }
    fs::write(file.path(), own).unwrap();
    assert_eq!(try_reading(&[], |_| {}).unwrap(), config, "a run's own configuration gives the same run");
}

#[test]
fn task_weights_scale_the_loss() {
    let data = patterned_data(100);
    let mut config = config(&data, Method::None);
    config.fit.epochs = 1;
    config.task_weights = data.types().iter().map(|name| (name.clone(), 0.0)).collect();
    let (_home, folder) = finish(&data, &config);
    let training = folder.epochs().unwrap()[0].training;
    assert!(training.cross_entropy > 1.0 && training.total.abs() < 1e-12, "{training:?}");
}

fn match_at_logit(data: &Data) -> RunConfig {
    let mut config = config(data, Method::Match);
    (config.fit.begin_at_logit, config.fit.attributes) = (true, true);
    config
}

/// The counts of so few articles fit the model's tables.
#[test]
fn a_match_starts_as_the_logit_and_may_stay_there() {
    let data = patterned_data(300);
    let mut config = match_at_logit(&data);
    // Nothing moves at such a rate, so no epoch is better.
    (config.fit.epochs, config.fit.learning_rate) = (1, 1e-30);
    let (_home, folder) = finish(&data, &config);
    let start = folder.state().unwrap().start.unwrap();
    let score = |logit: &Logit<'_>| evaluate(&data, data.development(), logit).any.summary();
    let logit = score(&Logit::fit_without_histories(&data));
    near(start.cross_entropy, logit.cross_entropy.mean, 1e-3);
    near(start.recall_at_1, logit.recall_at_1.mean, 1e-3);
    near(start.recall_at_5, logit.recall_at_5.mean, 1e-3);
    assert!(!folder.epochs().unwrap()[0].best);
    let mut best = folder.best().unwrap();
    best.set_outfits(remembered(&data));
    let development = Development::new(&data, &config.model);
    assert_eq!(development.evaluate(&best), start, "the start is kept");
    // Another trainer begins at the logit that does without whole outfits, as it does itself.
    let handed_over = first_model_at(Logit::fit_for_file, &data, &config);
    let ours = development.evaluate(&handed_over).cross_entropy;
    near(ours, score(&Logit::fit_for_file(&data)).cross_entropy.mean, 1e-3);
    assert!(ours > start.cross_entropy + 1e-3, "whole outfits help: {ours}");
}

/// Of many outfits, too: only the vectors are drawn.
#[test]
fn memory_and_biases_of_a_match_start_at_the_logit() {
    let data = patterned_data(300);
    let mut config = match_at_logit(&data);
    let mut whole = first_model(&data, &config);
    config.fit.begin_at_logit = false;
    let mut drawn = first_model(&data, &config);
    for (table, is_same) in [
        ("memory.weights", true),
        ("memory.outfits", true),
        ("vocabulary.own_bias", true),
        ("vocabulary.value_biases", true),
        ("vocabulary.values", false),
    ] {
        let [drawn, whole] =
            [&mut drawn, &mut whole].map(|model| model.named_mut(table).unwrap().data.clone());
        assert_eq!(drawn == whole, is_same, "{table}: {drawn:?}, {whole:?}");
        assert!(whole.iter().any(|weight| *weight != 0.0), "{table}");
    }
}

#[test]
fn a_finished_match_goes_back_towards_its_start_once() {
    let data = patterned_data(300);
    let config = match_at_logit(&data);
    let (_home, folder) = finish(&data, &config);
    assert!(folder.epochs().unwrap().iter().any(|epoch| epoch.best));
    let part = folder.state().unwrap().shrunk.unwrap();
    // Nothing is between the start and what the last step left if nothing was moved.
    let mut kept = folder.best().unwrap();
    kept.set_values(value_rows(&data));
    kept.set_outfits(remembered(&data));
    let development = Development::new(&data, &config.model);
    let loss = |model: &Model| development.losses(model).iter().sum::<f64>();
    assert!(loss(&kept) <= loss(&first_model(&data, &config)) + 1e-9, "{part} of the way back");
    let before = read(&folder, "best.safetensors");
    assert_eq!(run(&data, &config, &folder, true, u32::MAX), Outcome::Finished);
    assert!(before == read(&folder, "best.safetensors"), "it goes back once");
}
