//! Load on a running service: requests to `/complete` (with several methods: `/compare`) from many callers, with the
//! demo release's own outfits. Prints requests a second and how long they took. Anything but a complete answer is an
//! error, and one error makes the run fail.
//!
//! ```sh
//! cargo run --profile dist -- --database sqlite:/tmp/load.db demo
//! cargo run --profile dist -- --database sqlite:/tmp/load.db --set access.require_key=false serve &
//! cargo bench --profile dist --bench load -- --callers 64 --requests 10000
//! cargo bench --profile dist --bench load -- --callers 64 --requests 10000 --swap
//! ```
//!
//! Each caller sends its next request when it has the answer to the last; with `--rate` requests are sent at that
//! pace whether or not answers come, and each one's time counts from when it was due. Callers and service share the
//! machine, so requests a second say less than completions a CPU-second, which count the service's own
//! processor time alone: from `/metrics`, or with `--pid` from the kernel, for that process and all its children.

#![expect(unreachable_pub, reason = "a benchmark exports nothing")]

#[path = "../tests/shared/load.rs"]
#[expect(dead_code, reason = "the reliability suite uses the rest")]
mod load;

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use serde_json::{Value, json};

use load::{Answered, Load, Process, Service, bodies_without_method, count, percentile};

#[derive(Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
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
    /// Several are compared in one request to `/compare`.
    #[arg(long, value_delimiter = ',', default_value = "gsu")]
    methods: Vec<String>,
    #[arg(long, default_value_t = 20)]
    k: usize,
    /// Only outfits of this many articles.
    #[arg(long)]
    slots: Option<usize>,
    /// Only suggestions of this type, whatever the customer wants and the shop has in stock.
    #[arg(long = "type")]
    kind: Option<String>,
    /// Ask for `probability`, which takes a pass over all articles.
    #[arg(long)]
    probability: bool,
    /// Requests a second, sent when they are due instead of when a caller is free.
    #[arg(long)]
    rate: Option<f64>,
    /// The server's process, for servers without `/metrics`.
    #[arg(long)]
    pid: Option<u32>,
    /// One JSON object instead of sentences.
    #[arg(long)]
    json: bool,
    /// Activate the live release again and again while the requests are made.
    #[arg(long)]
    swap: bool,
    /// Cargo gives it to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let Arguments { callers, requests, rate, pid, .. } = arguments;
    ensure!(callers > 0 && requests > 0, "--callers and --requests must be at least 1");
    ensure!(rate.is_none_or(|rate| rate > 0.0), "--rate must be above 0");
    let path = if arguments.methods.len() == 1 { "/complete" } else { "/compare" };
    let service = Service { path, ..Service::new(&arguments.url) };
    let bodies = Arc::new(bodies(&arguments)?);
    // The first requests are slower than all others.
    for body in bodies.iter().take(callers) {
        let answer = service.send(body).await;
        ensure!(answer.is_whole(), "the first requests: {}", answer.outcome);
    }

    let before = process(&service, pid).await?;
    let began = Instant::now();
    let done = Arc::new(AtomicBool::new(false));
    let swapping = arguments.swap.then(|| tokio::spawn(swap(service.clone(), Arc::clone(&done))));
    let answers = Load::start_at(&service, &bodies, callers, requests, rate).finish().await;
    let took = began.elapsed();
    done.store(true, Ordering::Relaxed);
    let swaps = match swapping {
        Some(swapping) => Some(swapping.await??),
        None => None,
    };
    let after = process(&service, pid).await?;
    report(&answers, took, swaps, (before, after), arguments.json)
}

fn bodies(arguments: &Arguments) -> Result<Vec<Value>> {
    let mut bodies = bodies_without_method(&arguments.release, arguments.k)?;
    if let Some(slots) = arguments.slots {
        bodies.retain(|body| body["outfit"].as_array().is_some_and(|outfit| outfit.len() == slots));
        ensure!(!bodies.is_empty(), "{} has no outfits of {slots} articles", arguments.release.display());
    }
    for body in &mut bodies {
        match &*arguments.methods {
            [method] => body["method"] = json!(method),
            methods => body["methods"] = json!(methods),
        }
        if let Some(kind) = &arguments.kind {
            let blank = body["outfit"].as_array().and_then(|outfit| outfit.iter().position(Value::is_null));
            let blank = blank.context("an outfit has no blank; this is a bug")?.to_string();
            body["filters"] =
                json!({"types": {blank: [kind]}, "no_gos": false, "fit": false, "in_stock": false});
        }
        if arguments.probability {
            body["probability"] = json!(true);
        }
    }
    Ok(bodies)
}

async fn process(service: &Service, pid: Option<u32>) -> Result<Process> {
    match pid {
        Some(pid) => read_process(pid),
        None => service.process().await,
    }
}

/// A process and all that it started.
fn read_process(pid: u32) -> Result<Process> {
    /// The kernel counts in hundredths of a second on every Linux.
    const TICKS: f64 = 100.0;
    const PAGE: f64 = 4096.0;
    let mut parents = HashMap::new();
    let mut used = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        // Other entries have no such file, and a process may end meanwhile.
        let Ok(text) = fs::read_to_string(path.join("stat")) else { continue };
        let Some((head, rest)) = text.rsplit_once(") ") else { continue };
        let id: u32 = head.split(' ').next().unwrap_or_default().parse()?;
        let words: Vec<&str> = rest.split(' ').collect();
        let number = |place: usize| Ok::<f64, anyhow::Error>(words[place].parse()?);
        parents.insert(id, words[1].parse::<u32>()?);
        // Its own time, and that of children that have ended.
        let ticks = number(11)? + number(12)? + number(13)? + number(14)?;
        used.insert(id, (ticks / TICKS, number(21)? * PAGE));
    }
    ensure!(used.contains_key(&pid), "there is no process {pid}");
    let ours = |&id: &u32| std::iter::successors(Some(id), |id| parents.get(id).copied()).any(|id| id == pid);
    let mut total = Process { cpu_seconds: 0.0, resident_bytes: 0.0 };
    for (_, (seconds, bytes)) in used.iter().filter(|(id, _)| ours(id)) {
        total.cpu_seconds += seconds;
        total.resident_bytes += bytes;
    }
    Ok(total)
}

/// Returns how often the release was activated.
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
    answers: &[Answered],
    took: Duration,
    swaps: Option<usize>,
    (before, after): (Process, Process),
    as_json: bool,
) -> Result<()> {
    let (asked, seconds) = (answers.len(), took.as_secs_f64());
    let mut times: Vec<Duration> =
        answers.iter().filter(|answer| answer.is_whole()).map(|answer| answer.took).collect();
    let errors = asked - times.len();
    let [p50, p95, p99, slowest] = [50, 95, 99, 100].map(|percent| percentile(&mut times, percent));
    let used = after.cpu_seconds - before.cpu_seconds;
    if as_json {
        let line = json!({
            "requests": asked, "errors": errors, "seconds": seconds, "cpu_seconds": used,
            "per_second": count(asked) / seconds, "per_cpu_second": count(asked) / used,
            "p50_ms": p50, "p95_ms": p95, "p99_ms": p99, "resident_mb": after.resident_bytes / 1e6,
        });
        println!("{line}");
        return fail_on_error(answers, errors);
    }
    println!("{asked} requests in {seconds:.2} s: {errors} errors, {:.0} requests/s", count(asked) / seconds);
    if let (Some(p50), Some(p95), Some(p99), Some(slowest)) = (p50, p95, p99, slowest) {
        println!("latency: p50 {p50:.1} ms, p95 {p95:.1} ms, p99 {p99:.1} ms, slowest {slowest:.1} ms");
    }
    println!("service: {used:.1} CPU-seconds, {:.0} requests a CPU-second", count(asked) / used);
    let [before, after] = [before, after].map(|process| process.resident_bytes / 1e6);
    println!("memory: {before:.0} MB before, {after:.0} MB after");
    if let Some(swaps) = swaps {
        println!("the release was activated {swaps} times meanwhile");
    }
    fail_on_error(answers, errors)
}

fn fail_on_error(answers: &[Answered], errors: usize) -> Result<()> {
    match answers.iter().find(|answer| !answer.is_whole()) {
        Some(first) => bail!("{errors} of {} requests failed, the first: {}", answers.len(), first.outcome),
        None => Ok(()),
    }
}
