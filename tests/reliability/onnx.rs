//! Damaged ONNX files, opened as the service opens a release. The manifest has the digest of the damaged file, so that
//! the file reaches its readers: the search for NaNs, the cut before the last layer, ONNX Runtime, the check of its
//! inputs and outputs, and the trial outfits.
//!
//! A crash in ONNX Runtime, which is C++, ends its process. So child processes open the files, many each; if one
//! crashes, hangs or panics, its file is kept, and another child continues after it. The seed is that of `fuzz`.

use std::{
    collections::BTreeMap,
    env, fs,
    io::Write,
    ops::Range,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use anyhow::{Context, Result};
use atelier_core::domain::Method;
use atelier_engine::{
    inference::{DeviceChoice, Engine, LoadError, ModelError, Settings},
    onnx_runtime::OnnxRuntime,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    Ran,
    chance::Chance,
    demo,
    fuzz::seed,
    report::{Form, Report},
    server::models,
    spoilt::Whole,
};

/// Tells a child its cases: seed, first case, and the one after the last.
const CHILD: &str = "ATELIER_FUZZ_ONNX";
/// Cases of one child: starting a child takes as long as a few cases.
const AT_ONCE: u64 = 100;
/// A child takes no more seconds.
const PATIENCE: u32 = 900;
/// Most address space of a child in KiB: a file that asks for more gets an error.
const MOST_MEMORY: u64 = 16 << 20;
/// A run with this many findings ends.
const MOST_FINDINGS: usize = 20;

pub fn run(form: Form) -> Ran {
    let (seed, cases) = (seed()?, form.pick(200, 40_000));
    println!("\nseed {seed}");
    let (next, found) = (AtomicU64::new(0), Mutex::new(Found::default()));
    let began = Instant::now();
    thread::scope(|scope| -> Result<()> {
        let work = || -> Result<()> {
            loop {
                let first = next.fetch_add(AT_ONCE, Ordering::Relaxed);
                let enough =
                    found.lock().unwrap_or_else(PoisonError::into_inner).findings.len() >= MOST_FINDINGS;
                if first >= cases || enough {
                    return Ok(());
                }
                open_all(seed, first..(first + AT_ONCE).min(cases), &found)?;
            }
        };
        let threads = form.pick(2, thread::available_parallelism()?.get());
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    let Found { outcomes, findings } = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut report = Report::default();
    report.figure("seed", seed);
    report.figure("cases", outcomes.values().sum::<u64>());
    report.decimal("seconds", began.elapsed().as_secs_f64());
    for (outcome, count) in outcomes {
        report.figure(&outcome, count);
    }
    report.figure("findings", findings.clone());
    report.promise(findings.is_empty(), findings.join("\n"));
    Ok(report)
}

/// How many files ended in which way, and those that ended their process.
#[derive(Default)]
struct Found {
    outcomes: BTreeMap<String, u64>,
    findings: Vec<String>,
}

/// Opens the cases in a child, and in a new one after each case that a child did not survive.
fn open_all(seed: u64, cases: Range<u64>, found: &Mutex<Found>) -> Result<()> {
    let mut first = cases.start;
    while first < cases.end {
        // This program again, with limited memory. A panic is printed on stdout; ONNX Runtime would print thousands of
        // lines on stderr.
        let limited = format!("ulimit -v {MOST_MEMORY} -c 0; exec timeout {PATIENCE} \"$0\"");
        let mut command = Command::new("bash");
        command.arg("-c").arg(limited).arg(env::current_exe()?);
        command.env(CHILD, format!("{seed} {first} {}", cases.end)).stderr(Stdio::null());
        let output = command.stdin(Stdio::null()).output()?;
        let (mut last, mut ended, mut said) = (None, true, String::new());
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            match line.split_once(' ') {
                Some(("case", number)) => (last, ended) = (Some(number.parse::<u64>()?), false),
                Some(("ended", outcome)) => {
                    ended = true;
                    *found.outcomes.entry(outcome.to_owned()).or_default() += 1;
                }
                _ => line.clone_into(&mut said),
            }
        }
        if output.status.success() && ended {
            return Ok(());
        }
        // 124 is that of `timeout`. Damage may show only when the threads end.
        let status = output.status;
        let case = last.with_context(|| format!("a child ended with {status} before any file: {said}"))?;
        let when = if ended { "after" } else { "at" };
        let finding = format!("{when} case {case}: {status} {said}; {}", keep(seed, case)?.display());
        println!("{finding}");
        found.findings.push(finding);
        if !ended {
            *found.outcomes.entry("ended_their_process".to_owned()).or_default() += 1;
        }
        first = case + 1;
    }
    Ok(())
}

/// Makes the file of a case.
fn case(seed: u64, case: u64, corpus: &[(Method, Whole)]) -> (Method, Vec<u8>) {
    let mut chance = Chance::for_case(seed, case);
    let (method, whole) = &corpus[chance.below(corpus.len())];
    (*method, whole.spoilt(&mut chance))
}

fn keep(seed: u64, number: u64) -> Result<PathBuf> {
    let (method, bytes) = case(seed, number, &corpus()?);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{method}-{seed}-{number}.onnx"));
    fs::write(&path, bytes)?;
    Ok(path)
}

fn corpus() -> Result<Vec<(Method, Whole)>> {
    let read = |method: Method| -> Result<(Method, Whole)> {
        Ok((method, Whole::new(fs::read(models().join("demo").join(format!("{method}.onnx")))?)))
    };
    demo::methods().into_iter().map(read).collect()
}

pub fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// The main function of a child.
pub fn open_cases() -> ExitCode {
    match try_open_cases() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn try_open_cases() -> Result<()> {
    let given = env::var(CHILD)?;
    let numbers: Vec<u64> = given.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    let [seed, first, end] = numbers[..] else { anyhow::bail!("{CHILD}={given}") };
    let runtime = OnnxRuntime::load(&atelier::config::Cache::default().folder, |_| {})?;
    let settings = Settings { workers: 1, batch: 64, queue: 64, device: DeviceChoice::Cpu };
    let engine = Engine::new(runtime, settings);
    let (corpus, scratch) = (corpus()?, TempDir::new()?);
    // A release and its folder have the same name.
    let folder = scratch.path().join("demo");
    demo::copy(&models().join("demo"), &folder)?;
    let manifest = serde_json::from_slice(&fs::read(folder.join("release.json"))?)?;
    for number in first..end {
        let (method, bytes) = case(seed, number, &corpus);
        put(&folder, &manifest, method, &bytes)?;
        say(&format!("case {number}"))?;
        let outcome = match engine.load(&folder) {
            Ok(_) => "served",
            Err(LoadError::Model(ModelError::Runtime { .. })) => "refused_by_onnx_runtime",
            Err(LoadError::Model(ModelError::Contract { .. })) => "refused_by_contract",
            Err(LoadError::Model(ModelError::Output { .. })) => "refused_by_trial",
            Err(LoadError::Model(ModelError::Weights { .. })) => "refused_by_weights",
            Err(error) => return Err(error.into()),
        };
        say(&format!("ended {outcome}"))?;
    }
    Ok(())
}

/// Flushed at once, because the process may die next.
fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// The files of a release that are not a method's.
const SHARED: [&str; 3] = ["articles.jsonl", "schema.toml", "encoder.json"];

/// Leaves the release one method, with this model.
fn put(release: &Path, manifest: &Value, method: Method, model: &[u8]) -> Result<()> {
    demo::edit(release, |changed| {
        changed.clone_from(manifest);
        changed["default_method"] = json!(method.as_str());
        let methods = changed["methods"].as_array_mut().expect("a list of methods");
        methods.retain(|entry| entry["method"] == method.as_str());
        let files = changed["files"].as_object_mut().expect("files by their names");
        let tables = format!("{method}.safetensors");
        files.retain(|name, _| SHARED.contains(&name.as_str()) || *name == tables);
    })?;
    demo::put(release, &format!("{method}.onnx"), model)
}
