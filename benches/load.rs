//! Load on a running service: so many `POST /complete` (with several methods: `/compare`) from so many callers, with
//! the demo release's own outfits. Says how many were answered a second and how long they took; anything but a whole
//! answer is an error, and one error makes the run fail.
//!
//! ```sh
//! cargo run --release -- --database sqlite:/tmp/load.db serve &
//! cargo bench --bench load -- --callers 64 --requests 10000
//! cargo bench --bench load -- --callers 64 --requests 10000 --swap
//! ```
//!
//! Each caller sends its next request when it has the answer to the last; with `--rate` requests are sent at that
//! pace whether or not answers come, and each one's time counts from when it was due. Callers and service share the
//! machine, so requests a second say less than completions a CPU-second, which count the service's own
//! processor time alone: `/metrics` tells it, or with `--pid` the kernel, of that process and all its children.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use atelier::{
    domain::{Customer, Outfit},
    files::{self, Table},
};
use clap::Parser;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;

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
    /// Several are asked side by side, in one `/compare`.
    #[arg(long, value_delimiter = ',', default_value = "gsu")]
    methods: Vec<String>,
    #[arg(long, default_value_t = 20)]
    k: usize,
    /// Only outfits of so many articles.
    #[arg(long)]
    slots: Option<usize>,
    /// Requests a second, sent when they are due instead of when a caller is free.
    #[arg(long)]
    rate: Option<f64>,
    /// The server's process, for servers without `/metrics`.
    #[arg(long)]
    pid: Option<u32>,
    /// One JSON object instead of sentences.
    #[arg(long)]
    json: bool,
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
    ensure!(arguments.rate.is_none_or(|rate| rate > 0.0), "--rate is above nought");
    let path = if arguments.methods.len() == 1 { "/complete" } else { "/compare" };
    let service = Service { url: arguments.url.clone(), path, http: Client::new(), pid: arguments.pid };
    let service = Arc::new(service);
    let bodies = Arc::new(bodies(&arguments)?);
    // What is slow once, and not the next time, is not measured.
    for body in bodies.iter().take(arguments.callers) {
        service.ask(body, arguments.k).await.context("the first requests")?;
    }

    let before = service.process().await?;
    let began = Instant::now();
    let (next, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let swapping = arguments.swap.then(|| tokio::spawn(swap(Arc::clone(&service), Arc::clone(&done))));
    let mut callers = JoinSet::new();
    for _ in 0..arguments.callers {
        let (service, bodies, next) = (Arc::clone(&service), Arc::clone(&bodies), Arc::clone(&next));
        let (requests, k, rate) = (arguments.requests, arguments.k, arguments.rate);
        callers.spawn(async move {
            let mut outcomes = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= requests {
                    return outcomes;
                }
                let mut sent = Instant::now();
                if let Some(rate) = rate {
                    // Late or not: a caller that had to wait for its own last answer has kept a customer waiting.
                    sent = began + Duration::from_secs_f64(count(number) / rate);
                    tokio::time::sleep_until(sent.into()).await;
                }
                let answered = service.ask(&bodies[number % bodies.len()], k).await;
                outcomes.push(answered.map(|()| sent.elapsed()));
            }
        });
    }
    let outcomes: Vec<Result<Duration>> = callers.join_all().await.into_iter().flatten().collect();
    let took = began.elapsed();
    done.store(true, Ordering::Relaxed);
    let swaps = match swapping {
        Some(swapping) => Some(swapping.await??),
        None => None,
    };
    let after = service.process().await?;
    report(outcomes, took, swaps, (before, after), arguments.json)
}

/// A request for each place of each outfit, blanked; outfits vary fastest.
fn bodies(arguments: &Arguments) -> Result<Vec<Value>> {
    let customers = rows::<Customer>(arguments)?;
    let known: HashSet<&str> = customers.iter().map(|customer| customer.id.as_str()).collect();
    let mut outfits = rows::<Outfit>(arguments)?;
    outfits.retain(|outfit| arguments.slots.is_none_or(|slots| outfit.articles().len() == slots));
    let longest = outfits.iter().map(|outfit| outfit.articles().len()).max().unwrap_or(0);
    let mut bodies = Vec::new();
    for blank in 0..longest {
        for outfit in outfits.iter().filter(|outfit| blank < outfit.articles().len()) {
            ensure!(
                known.contains(outfit.customer.as_str()),
                "the customer {} of an outfit is not there",
                outfit.customer
            );
            let mut slots: Vec<Value> = outfit.articles().iter().map(|id| json!(id.as_str())).collect();
            slots[blank] = Value::Null;
            let mut body = json!({ "customer": outfit.customer.as_str(), "outfit": slots, "k": arguments.k });
            match &*arguments.methods {
                [method] => body["method"] = json!(method),
                methods => body["methods"] = json!(methods),
            }
            bodies.push(body);
        }
    }
    ensure!(!bodies.is_empty(), "{} has no outfits", arguments.release.display());
    Ok(bodies)
}

fn rows<T: Table>(arguments: &Arguments) -> Result<Vec<T>> {
    let schema = files::read_folder_schema(&arguments.release)?;
    let path = arguments.release.join(format!("{}.jsonl", T::NAME));
    let rows = files::read::<T>(&path, &schema)?;
    rows.map(|row| Ok(row.context("a row")?.value)).collect()
}

struct Service {
    url: String,
    path: &'static str,
    http: Client,
    pid: Option<u32>,
}

/// What the service's process has used.
struct Process {
    cpu_seconds: f64,
    resident_bytes: f64,
}

impl Process {
    /// Of a process and all that it started.
    fn of(pid: u32) -> Result<Self> {
        /// Of a second, in which the kernel counts; the same on every Linux.
        const TICKS: f64 = 100.0;
        const PAGE: f64 = 4096.0;
        let mut parents = HashMap::new();
        let mut used = HashMap::new();
        for entry in fs::read_dir("/proc")? {
            let path = entry?.path();
            // What is no process has no such file, and a process may end meanwhile.
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
        let ours =
            |&id: &u32| std::iter::successors(Some(id), |id| parents.get(id).copied()).any(|id| id == pid);
        let mut whole = Self { cpu_seconds: 0.0, resident_bytes: 0.0 };
        for (_, (seconds, bytes)) in used.iter().filter(|(id, _)| ours(id)) {
            whole.cpu_seconds += seconds;
            whole.resident_bytes += bytes;
        }
        Ok(whole)
    }
}

impl Service {
    /// All is well if there are as many suggestions as were asked for, in each column.
    async fn ask(&self, body: &Value, k: usize) -> Result<()> {
        let answer = self.http.post(format!("{}{}", self.url, self.path)).json(body).send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        ensure!(status == 200, "{status}: {text}");
        let answer: Value = serde_json::from_str(&text)?;
        let lists = answer["blanks"].as_array().or_else(|| answer["columns"].as_array());
        let lists = lists.filter(|lists| !lists.is_empty()).context("suggestions")?;
        for list in lists {
            let found = list["suggestions"].as_array().map_or(0, Vec::len);
            let admissible = list["admissible"].as_u64().context("how many are admissible")?;
            ensure!(
                found == k.min(usize::try_from(admissible)?),
                "{found} suggestions instead of {k}: {text}"
            );
        }
        Ok(())
    }

    async fn process(&self) -> Result<Process> {
        if let Some(pid) = self.pid {
            return Process::of(pid);
        }
        let text = self.http.get(format!("{}/metrics", self.url)).send().await?.text().await?;
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            Ok::<f64, anyhow::Error>(line.with_context(|| format!("/metrics has no {name}"))?.parse()?)
        };
        Ok(Process {
            cpu_seconds: value("process_cpu_seconds_total")?,
            resident_bytes: value("process_resident_memory_bytes")?,
        })
    }
}

/// How often it was done by the end.
async fn swap(service: Arc<Service>, done: Arc<AtomicBool>) -> Result<usize> {
    let releases: Value = service.http.get(format!("{}/releases", service.url)).send().await?.json().await?;
    let active = releases["active"].as_str().context("no release is active")?;
    let mut swaps = 0;
    while !done.load(Ordering::Relaxed) {
        let path = format!("{}/releases/{active}/activate", service.url);
        let answer = service.http.post(path).json(&json!({})).send().await?;
        let status = answer.status();
        ensure!(status == 200, "activating {active}: {status}: {}", answer.text().await?);
        swaps += 1;
    }
    Ok(swaps)
}

fn report(
    outcomes: Vec<Result<Duration>>,
    took: Duration,
    swaps: Option<usize>,
    (before, after): (Process, Process),
    as_json: bool,
) -> Result<()> {
    let asked = outcomes.len();
    let (mut times, mut errors) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok(time) => times.push(time.as_secs_f64() * 1e3),
            Err(error) => errors.push(error),
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    let percentile = |percent: usize| times.get((times.len() * percent / 100).min(times.len().max(1) - 1));
    let used = after.cpu_seconds - before.cpu_seconds;
    if as_json {
        let line = json!({
            "requests": asked, "errors": errors.len(), "seconds": took.as_secs_f64(), "cpu_seconds": used,
            "per_second": count(asked) / took.as_secs_f64(), "per_cpu_second": count(asked) / used,
            "p50_ms": percentile(50), "p95_ms": percentile(95), "p99_ms": percentile(99),
            "resident_mb": after.resident_bytes / 1e6,
        });
        println!("{line}");
        return failed(&errors, asked);
    }
    println!(
        "{asked} requests in {:.2} s: {} errors, {:.0} requests/s",
        took.as_secs_f64(),
        errors.len(),
        count(asked) / took.as_secs_f64()
    );
    if let (Some(p50), Some(p95), Some(p99), Some(most)) =
        (percentile(50), percentile(95), percentile(99), times.last())
    {
        println!("latency: p50 {p50:.1} ms, p95 {p95:.1} ms, p99 {p99:.1} ms, longest {most:.1} ms");
    }
    println!("the service: {used:.1} CPU-seconds, {:.0} requests a CPU-second", count(asked) / used);
    println!(
        "its memory: {:.0} MB before, {:.0} MB after",
        before.resident_bytes / 1e6,
        after.resident_bytes / 1e6
    );
    if let Some(swaps) = swaps {
        println!("{swaps} times the release was activated anew meanwhile");
    }
    failed(&errors, asked)
}

fn failed(errors: &[anyhow::Error], asked: usize) -> Result<()> {
    match errors.first() {
        Some(first) => bail!("{} of {asked} requests failed, the first: {first:#}", errors.len()),
        None => Ok(()),
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
