//! Load on a running service: so many `POST /complete` from so many callers, with the demo release's own
//! outfits. Says how many were answered a second and how long they took; anything but a whole answer is an
//! error, and one error makes the run fail.
//!
//! ```sh
//! cargo run --release -- --database sqlite:/tmp/load.db serve &
//! cargo bench --bench load -- --callers 64 --requests 10000
//! cargo bench --bench load -- --callers 64 --requests 10000 --swap
//! ```
//!
//! Callers and service share the machine, so requests a second say less than completions a CPU-second, which
//! count the service's own processor time alone (`/metrics` tells it). The callers themselves are in
//! `tests/shared/load.rs`.

#[path = "../tests/shared/load.rs"]
#[expect(
    unreachable_pub,
    dead_code,
    reason = "nobody is outside of a benchmark's binary; some is for experiments"
)]
mod load;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use serde_json::Value;

use load::{Answered, Load, Outcome, Process, Service, bodies, percentile};

#[derive(Debug, Parser)]
struct Arguments {
    /// Where the service is.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// The release whose outfits are sent; the service must have its articles and customers.
    #[arg(long, default_value = "models/demo")]
    release: PathBuf,
    #[arg(long, default_value_t = 64)]
    callers: usize,
    #[arg(long, default_value_t = 10_000)]
    requests: usize,
    #[arg(long, default_value = "gsu")]
    method: String,
    #[arg(long, default_value_t = 20)]
    k: usize,
    /// Activate the release that answers, again and again, while the requests are made.
    #[arg(long)]
    swap: bool,
    /// Cargo gives it to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(arguments.callers > 0 && arguments.requests > 0, "at least one caller and one request");
    let service = Service::new(&arguments.url);
    let bodies = Arc::new(bodies(&arguments.release, &[&arguments.method], arguments.k)?);
    // What is slow once, and not the next time, is not measured.
    for body in bodies.iter().take(arguments.callers) {
        let Answered { outcome, .. } = service.complete(body).await;
        ensure!(matches!(outcome, Outcome::Whole { .. }), "the first requests: {outcome}");
    }

    let before = service.process().await?;
    let began = Instant::now();
    let done = Arc::new(AtomicBool::new(false));
    let swapping = arguments.swap.then(|| tokio::spawn(swap(service.clone(), Arc::clone(&done))));
    let load = Load::start(&service, &bodies, arguments.callers, arguments.requests);
    let answered = load.finish().await;
    let took = began.elapsed();
    done.store(true, Ordering::Relaxed);
    let swaps = match swapping {
        Some(swapping) => Some(swapping.await??),
        None => None,
    };
    let after = service.process().await?;
    report(&answered, took, swaps, (before, after))
}

/// How often it was done by the end.
async fn swap(service: Service, done: Arc<AtomicBool>) -> Result<usize> {
    let releases: Value = service.http.get(format!("{}/releases", service.url)).send().await?.json().await?;
    let active = releases["active"].as_str().context("no release is active")?;
    let mut swaps = 0;
    while !done.load(Ordering::Relaxed) {
        let (status, answer) = service.activate(active).await?;
        ensure!(status == 200, "activating {active}: {status}: {answer}");
        swaps += 1;
    }
    Ok(swaps)
}

fn report(
    answered: &[Answered],
    took: Duration,
    swaps: Option<usize>,
    (before, after): (Process, Process),
) -> Result<()> {
    let asked = answered.len();
    let is_whole = |came: &&Answered| matches!(came.outcome, Outcome::Whole { .. });
    let mut times: Vec<Duration> = answered.iter().filter(is_whole).map(|came| came.took).collect();
    let errors = asked - times.len();
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    println!(
        "{asked} requests in {:.2} s: {errors} errors, {:.0} requests/s",
        took.as_secs_f64(),
        count(asked) / took.as_secs_f64()
    );
    if let [Some(p50), Some(p95), Some(p99), Some(most)] =
        [50, 95, 99, 100].map(|percent| percentile(&mut times, percent))
    {
        println!("latency: p50 {p50:.1} ms, p95 {p95:.1} ms, p99 {p99:.1} ms, longest {most:.1} ms");
    }
    let used = after.cpu_seconds - before.cpu_seconds;
    println!("the service: {used:.1} CPU-seconds, {:.0} requests a CPU-second", count(asked) / used);
    println!(
        "its memory: {:.0} MB before, {:.0} MB after",
        before.resident_bytes / 1e6,
        after.resident_bytes / 1e6
    );
    if let Some(swaps) = swaps {
        println!("{swaps} times the release was activated anew meanwhile");
    }
    match answered.iter().find(|came| !is_whole(came)) {
        Some(first) => bail!("{errors} of {asked} requests failed, the first: {}", first.outcome),
        None => Ok(()),
    }
}
