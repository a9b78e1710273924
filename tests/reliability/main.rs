//! What must hold while things break: the built `atelier` is killed, starved, overloaded and lied to, and broken
//! promises are counted. docs/reliability.md has the figures.
//!
//! ```sh
//! cargo test --test reliability                              # the short forms, part of `.ci/run`
//! cargo test --release --test reliability -- --long          # the long ones
//! cargo test --release --test reliability -- --long swaps    # one of them
//! ```
//!
//! Each experiment runs alone, prints its figures as a line of JSON, and fails if a promise is broken. Short forms run
//! on any machine, however busy: they check what does not depend on speed. The long forms check time and memory, too.
//! If an experiment lacks something that it needs, it prints NOT RUN, and fails under `ATELIER_TESTS_MUST_RUN=1`.

#![expect(unreachable_pub, reason = "a test binary exports nothing")]

#[path = "../shared/app.rs"]
mod app;
#[path = "../shared/database.rs"]
#[expect(dead_code, reason = "contracts look past the store, experiments do not")]
mod database;
#[path = "../shared/http2.rs"]
#[expect(dead_code, reason = "contracts also ping")]
mod http2;
#[path = "../shared/load.rs"]
#[expect(dead_code, reason = "some of it is the benchmark's")]
mod load;
#[path = "../shared/postgres.rs"]
mod postgres;
#[path = "../shared/private_server.rs"]
mod private_server;

mod chance;
mod faults;
mod fuzz;
mod imports;
mod kills;
mod mixed;
mod onnx;
mod outage;
mod overload;
mod releases;
mod report;
mod requests;
mod server;
mod spoilt;
mod stopping;
mod swaps;
mod untaken;

use std::{env, process::ExitCode};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use load::demo;
use report::{Form, Report};

/// The result of an experiment that could run.
type Ran = anyhow::Result<Report>;

/// An experiment. It does not run if `needs` names something that is missing.
struct Experiment {
    name: &'static str,
    needs: fn() -> Result<(), String>,
    run: fn(Form) -> Ran,
}

impl Experiment {
    const fn new(name: &'static str, run: fn(Form) -> Ran) -> Self {
        Self { name, needs: || Ok(()), run }
    }

    const fn needing(self, needs: fn() -> Result<(), String>) -> Self {
        Self { needs, ..self }
    }
}

const EXPERIMENTS: &[Experiment] = &[
    Experiment::new("swaps", swaps::run),
    Experiment::new("outage-stopped", outage::stopped).needing(private_server),
    Experiment::new("outage-frozen", outage::frozen).needing(private_server),
    Experiment::new("outage-quiet", outage::quiet).needing(private_server),
    Experiment::new("overload", overload::run),
    Experiment::new("overload-batches", overload::batches),
    Experiment::new("stopping", stopping::run),
    Experiment::new("untaken", untaken::run),
    Experiment::new("fuzz", fuzz::run),
    Experiment::new("onnx", onnx::run),
    Experiment::new("mixed", mixed::run),
    Experiment::new("disk-full", faults::disk_full).needing(faults::mounting),
    Experiment::new("read-only", faults::read_only).needing(faults::mounting),
    Experiment::new("two-on-one-file", faults::two_on_one_file),
    Experiment::new("imports-sqlite", imports::sqlite),
    Experiment::new("imports-postgres", imports::postgres).needing(private_server),
    Experiment::new("kills-sqlite", kills::sqlite),
    Experiment::new("kills-postgres", kills::postgres).needing(private_server),
];

/// Whether Postgres can be started here.
fn private_server() -> Result<(), String> {
    private_server::binaries().map(drop).map_err(|error| format!("Postgres: {error}"))
}

fn main() -> ExitCode {
    if postgres::is_watchdog() {
        return postgres::watch();
    }
    if onnx::is_child() {
        return onnx::open_cases();
    }
    let (long, given): (Vec<_>, Vec<_>) = env::args().partition(|argument| argument == "--long");
    let form = if long.is_empty() { Form::Short } else { Form::Long };
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_iter(given) };
    let trials = EXPERIMENTS
        .iter()
        .map(|experiment| Trial::ignorable_test(experiment.name, move || conduct(experiment, form)));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn conduct(experiment: &Experiment, form: Form) -> Result<Completion, Failed> {
    if let Err(reason) = (experiment.needs)() {
        println!("NOT RUN: {} ({reason})", experiment.name);
        return match env::var_os("ATELIER_TESTS_MUST_RUN") {
            Some(value) if value == "1" => Err(format!("NOT RUN: {reason}").into()),
            _ => Ok(Completion::ignored_with(reason)),
        };
    }
    let report = (experiment.run)(form).map_err(|error| format!("{error:?}"))?;
    report.print(experiment.name, form);
    report.verdict().map(|()| Completion::Completed)
}
