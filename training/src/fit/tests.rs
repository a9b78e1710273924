use std::{cell::Cell, fs, path::Path, sync::atomic::AtomicBool};

use atelier_core::domain::Method;
use tempfile::TempDir;

use super::*;
use crate::{
    baselines::{Logit, evaluate},
    data::tests::{patterned, small_model},
};

/// Four epochs of a narrow model.
fn config(data: &Data, method: Method) -> RunConfig {
    let mut config = RunConfig::new(method, data, Path::new("shop"), Overrides::default(), |fit| {
        *fit = FitConfig { epochs: 4, batch: 16, learning_rate: 5e-3, warm_up: 0.5, ..FitConfig::default() };
    })
    .unwrap();
    small_model(&mut config.model);
    config
}

fn with_pairs(mut config: RunConfig, weight: f32) -> RunConfig {
    config.pair.weight = weight;
    config.model.pair = weight > 0.0;
    config
}

fn with_attributes(mut config: RunConfig, data: &Data, attributes: bool) -> RunConfig {
    config.fit.attributes = attributes;
    config.data.attributes = attributes.then(|| data.attributes().fingerprint().to_owned());
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

fn read(folder: &RunFolder, name: &str) -> Vec<u8> {
    fs::read(folder.path().join(name)).unwrap()
}

/// A checkpoint's tensors, sorted: the order in the file is not fixed.
fn tensors(folder: &RunFolder, name: &str) -> Vec<(String, Vec<u8>)> {
    let bytes = read(folder, name);
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors: Vec<_> =
        tensors.tensors().into_iter().map(|(name, tensor)| (name, tensor.data().to_vec())).collect();
    tensors.sort_unstable();
    tensors
}

fn shop() -> (TempDir, Data) {
    let home = patterned(100);
    let data = Data::load(home.path()).unwrap();
    (home, data)
}

#[test]
fn an_interrupted_run_resumes_to_the_same_bits() {
    let (_shop, data) = shop();
    for (method, pairs, attributes) in [(Method::Gsu, 0.0, true), (Method::LatentUniversal, 0.5, false)] {
        let mut config = with_attributes(with_pairs(config(&data, method), pairs), &data, attributes);
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

#[test]
fn two_processes_cannot_train_in_one_folder() {
    let (_shop, data) = shop();
    let config = config(&data, Method::None);
    let (_home, folder) = new_folder();
    assert_eq!(run(&data, &config, &folder, false, 1), Outcome::Interrupted);
    let lock = folder.lock().unwrap();
    let (stop, mut on_event) = (AtomicBool::new(false), |_: Event<'_>| ());
    let mut watch = Watch { clock: &|| 0.0, stop: &stop, on_event: &mut on_event };
    let refused = fit(&data, &config, &folder, true, &mut watch).unwrap_err().to_string();
    assert!(refused.starts_with("another process trains in"), "{refused}");
    drop(lock);
    assert_eq!(run(&data, &config, &folder, true, u32::MAX), Outcome::Finished);
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let (_shop, data) = shop();
    let config = with_pairs(config(&data, Method::Latent), 0.5);
    let on = |threads: usize| {
        let (home, folder) = new_folder();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&data, &config, &folder, false, u32::MAX));
        (home, read(&folder, "metrics.jsonl"), read(&folder, "best.safetensors"))
    };
    let (_one, metrics, weights) = on(1);
    let (_four, other_metrics, other_weights) = on(4);
    assert!(metrics == other_metrics && weights == other_weights);
}

#[test]
fn another_seed_gives_another_run() {
    let (_shop, data) = shop();
    let mut config = config(&data, Method::None);
    config.fit.epochs = 1;
    let losses = [1, 2].map(|seed| {
        config.fit.seed = seed;
        let (_home, folder) = new_folder();
        run(&data, &config, &folder, false, u32::MAX);
        folder.epochs().unwrap()[0].training.cross_entropy.to_bits()
    });
    assert_ne!(losses[0], losses[1]);
}

#[test]
fn pairs_are_learned_if_the_settings_say_so() {
    let (_shop, data) = shop();
    let mut plain = config(&data, Method::Latent);
    plain.fit.epochs = 1;
    let (_home, without) = new_folder();
    run(&data, &plain, &without, false, u32::MAX);
    let record = &without.epochs().unwrap()[0];
    assert_eq!((record.pair, record.training.pair), (None, None));
    assert!(!String::from_utf8(read(&without, "metrics.jsonl")).unwrap().contains("pair"));
    assert!(without.best().unwrap().structure().pair.is_none());

    let (_home, with) = new_folder();
    run(&data, &with_pairs(plain, 0.5), &with, false, u32::MAX);
    let record = &with.epochs().unwrap()[0];
    assert!(record.training.pair.unwrap() > 0.1);
    assert_eq!(
        record.pair.unwrap().pairs,
        18,
        "nine of ten outfits, each with its own half and another outfit's"
    );
    assert!(record.training.total > record.training.cross_entropy);
    assert!(with.best().unwrap().structure().pair.is_some());
}

/// Outfits and customers follow patterns, which counting articles cannot see.
#[test]
fn gsu_learns_what_popularity_cannot() {
    let home = patterned(300);
    let data = Data::load(home.path()).unwrap();
    let mut config = config(&data, Method::Gsu);
    config.fit.epochs = 10;
    config.fit.learning_rate = 1e-2;
    let (_home, folder) = new_folder();
    run(&data, &config, &folder, false, u32::MAX);
    let mut counts = vec![0.5; data.vocabulary().len()];
    for &outfit in data.training() {
        for &article in data.outfits().articles(outfit) {
            counts[article as usize] += 1.0;
        }
    }
    let total: f64 = counts.iter().sum();
    let targets = data.development().iter().flat_map(|&outfit| data.outfits().articles(outfit));
    let losses: Vec<f64> = targets.map(|&article| -(counts[article as usize] / total).ln()).collect();
    let popularity = losses.iter().sum::<f64>() / crate::number::real(losses.len());
    let best = folder.epochs().unwrap().iter().map(|e| e.development.cross_entropy).fold(f64::MAX, f64::min);
    assert!(best < popularity - 1.0, "gsu {best}, popularity {popularity}");
}

#[test]
fn a_run_stops_early_without_improvement() {
    let (_shop, data) = shop();
    let mut config = config(&data, Method::None);
    config.fit = FitConfig { epochs: 100, learning_rate: 2e-2, warm_up: 0.0, patience: 2, ..config.fit };
    let (_home, folder) = new_folder();
    assert_eq!(run(&data, &config, &folder, false, u32::MAX), Outcome::StoppedEarly { epochs: 2 });
    let epochs = folder.epochs().unwrap();
    let best: Vec<bool> = epochs.iter().map(|epoch| epoch.best).collect();
    assert!(best.ends_with(&[true, false, false]), "{best:?}");
    assert!(!best[..best.len() - 2].windows(2).any(|two| two == [false, false]), "{best:?}");
}

#[test]
fn a_folder_belongs_to_one_run() {
    let (_shop, data) = shop();
    let mut config = config(&data, Method::None);
    config.fit.epochs = 1;
    let (_home, folder) = new_folder();
    run(&data, &config, &folder, false, u32::MAX);
    let refusal = |config: &RunConfig, resume: bool| {
        let stop = AtomicBool::new(false);
        let mut watch = Watch { clock: &|| 0.0, stop: &stop, on_event: &mut |_| {} };
        fit(&data, config, &folder, resume, &mut watch).unwrap_err().to_string()
    };
    assert!(refusal(&config, false).contains("already holds a run: resume it with --resume"));
    config.fit.batch = 7;
    let error = refusal(&config, true);
    assert!(error.contains("was started with other settings (fit.batch was 16, now 7)"), "{error}");
    config.fit.batch = 16;
    config.data.fingerprint = "another".to_owned();
    assert!(refusal(&config, true).contains("now it is another"));
    config.data.fingerprint = folder.config().unwrap().data.fingerprint;
    assert_eq!(run(&data, &config, &folder, true, u32::MAX), Outcome::Finished);
    let readme = String::from_utf8(read(&folder, "README.md")).unwrap();
    assert!(readme.starts_with("# Method none, seed 1\n") && readme.contains("--data shop"), "{readme}");
}

#[test]
fn flags_override_the_files_settings() {
    let (_shop, data) = shop();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(
        file.path(),
        "[fit]\nepochs = 9\nbatch = 33\n[task_weights]\nshoe = 2.5\n[pair]\nweight = 0.75\n[model]\nwidth = 64\n[model.initial]\nlinear = 0.25\n",
    )
    .unwrap();
    let read = |change: fn(&mut FitConfig)| {
        RunConfig::new(
            Method::C,
            &data,
            Path::new("shop"),
            Overrides { file: Some(file.path()), set: &[] },
            change,
        )
    };
    let config = read(|fit| fit.batch = 44).unwrap();
    assert_eq!((config.fit.epochs, config.fit.batch, config.model.width), (9, 44, 64));
    assert!((config.model.initial.linear - 0.25).abs() < 1e-9 && config.model.heads == 8);
    assert_eq!(config.weights(&data), [1.0, 1.0, 1.0, 2.5]);
    assert!((config.pair.weight - 0.75).abs() < 1e-9 && config.model.pair);
    let with = |set: &[&str]| {
        let set: Vec<String> = set.iter().map(|&setting| setting.to_owned()).collect();
        let overrides = Overrides { file: Some(file.path()), set: &set };
        RunConfig::new(Method::C, &data, Path::new("shop"), overrides, |fit| fit.batch = 44)
    };
    let set = with(&["model.initial.linear=0.5", "task_weights.\"shoe\"=3", "pair.weight=0"]).unwrap();
    let differences: Vec<String> =
        set.differences(&config).into_iter().map(|difference| difference.key).collect();
    let changed = ["model.initial.linear", "pair.weight", "task_weights.shoe"];
    assert_eq!(differences, changed, "the rest is the file's, or follows from these");
    for (wrong, expected) in [
        ("model.initial.linear", "--set takes TABLE.KEY=VALUE"),
        ("model.initial.lines=0.5", "lines"),
        ("data.name=\"x\"", "the data is set by --data"),
    ] {
        let error = format!("{:#}", with(&[wrong]).unwrap_err());
        assert!(error.contains(expected), "{error}");
    }
    let text = toml::to_string(&config).unwrap();
    fs::write(file.path(), &text).unwrap();
    assert_eq!(read(|_| {}).unwrap(), config, "a run's own configuration gives the same run");

    let error_of = |text: &str| {
        fs::write(file.path(), text).unwrap();
        format!("{:#}", read(|_| {}).unwrap_err())
    };
    assert!(error_of("[fit]\nepoch = 9\n").contains("epoch"), "names the setting");
    assert!(
        error_of("[task_weights]\nshoes = 2.5\n")
            .contains("\"shoes\", which no article has; the types are bag, coat")
    );
    assert!(error_of("[fit]\nbatch = 0\n").contains("at least 1"));
}

#[test]
fn task_weights_scale_the_loss() {
    let (_shop, data) = shop();
    let mut config = config(&data, Method::None);
    config.fit.epochs = 1;
    config.task_weights = data.types().iter().map(|name| (name.clone(), 0.0)).collect();
    let (_home, folder) = new_folder();
    run(&data, &config, &folder, false, u32::MAX);
    let training = folder.epochs().unwrap()[0].training;
    assert!(training.cross_entropy > 1.0 && training.total.abs() < 1e-12, "{training:?}");
}

/// The counts of so few articles fit the model's tables.
#[test]
fn a_match_starts_as_the_logit_and_may_stay_there() {
    let home = patterned(300);
    let data = Data::load(home.path()).unwrap();
    let mut config = config(&data, Method::Match);
    (config.fit.begin_at_logit, config.fit.attributes) = (true, true);
    // Nothing moves at such a rate, so no epoch is better.
    (config.fit.epochs, config.fit.learning_rate) = (1, 1e-30);
    let (_home, folder) = new_folder();
    run(&data, &config, &folder, false, u32::MAX);
    let start = folder.state().unwrap().start.unwrap();
    let logit = evaluate(&data, data.development(), &Logit::fit_without_histories(&data)).any.summary();
    for (ours, theirs) in [
        (start.cross_entropy, logit.cross_entropy.mean),
        (start.recall_at_1, logit.recall_at_1.mean),
        (start.recall_at_5, logit.recall_at_5.mean),
    ] {
        assert!((ours - theirs).abs() < 1e-3, "{start:?}, the logit {logit:?}");
    }
    assert!(!folder.epochs().unwrap()[0].best);
    let mut best = folder.best().unwrap();
    best.set_outfits(remembered(&data));
    let best = Development::new(&data, &config.model).evaluate(&best);
    assert_eq!(best, start, "the start is kept");
    // Another trainer begins at the logit that does without whole outfits, as it does itself.
    let handed_over = first_model_at(Logit::fit_for_file, &data, &config);
    let ours = Development::new(&data, &config.model).evaluate(&handed_over).cross_entropy;
    let logit = evaluate(&data, data.development(), &Logit::fit_for_file(&data)).any.summary();
    assert!((ours - logit.cross_entropy.mean).abs() < 1e-3, "{ours}, the logit {logit:?}");
    assert!(ours > start.cross_entropy + 1e-3, "whole outfits help: {ours}");
}

/// Of many outfits, too: only the vectors are drawn.
#[test]
fn memory_and_biases_of_a_match_start_at_the_logit() {
    let home = patterned(300);
    let data = Data::load(home.path()).unwrap();
    let mut config = config(&data, Method::Match);
    (config.fit.begin_at_logit, config.fit.attributes) = (false, true);
    let mut drawn = first_model(&data, &config);
    config.fit.begin_at_logit = true;
    let mut whole = first_model(&data, &config);
    for table in ["memory.weights", "memory.outfits", "vocabulary.own_bias", "vocabulary.value_biases"] {
        let [drawn, whole] =
            [&mut drawn, &mut whole].map(|model| model.named_mut(table).unwrap().data.clone());
        assert!(drawn == whole && drawn.iter().any(|weight| *weight != 0.0), "{table}: {drawn:?}, {whole:?}");
    }
    let [drawn, whole] =
        [drawn, whole].map(|mut model| model.named_mut("vocabulary.values").unwrap().data.clone());
    assert_ne!(drawn, whole);
}

#[test]
fn a_finished_match_goes_back_towards_its_start_once() {
    let home = patterned(300);
    let data = Data::load(home.path()).unwrap();
    let mut config = config(&data, Method::Match);
    (config.fit.begin_at_logit, config.fit.attributes) = (true, true);
    let (_home, folder) = new_folder();
    run(&data, &config, &folder, false, u32::MAX);
    assert!(folder.epochs().unwrap().iter().any(|epoch| epoch.best));
    let part = folder.state().unwrap().shrunk.unwrap();
    // Nothing is between the start and what the last step left if nothing was moved.
    let mut kept = folder.best().unwrap();
    kept.set_values(value_rows(&data));
    kept.set_outfits(remembered(&data));
    let development = Development::new(&data, &config.model);
    let losses = |model: &Model| development.losses(model).iter().sum::<f64>();
    let start = first_model(&data, &config);
    assert!(losses(&kept) <= losses(&start) + 1e-9, "{part} of the way back");
    let before = read(&folder, "best.safetensors");
    assert_eq!(run(&data, &config, &folder, true, u32::MAX), Outcome::Finished);
    assert!(before == read(&folder, "best.safetensors"), "it goes back once");
}
