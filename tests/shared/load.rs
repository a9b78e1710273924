//! Load on a running service: a release's own outfits, each with one article blanked, sent by many callers.
//!
//! A caller sends its next request when it has the answer to the last. What came of each request is kept as an
//! [`Answered`]; what that means for a promise is for whoever asked.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use atelier::{
    domain::{Customer, Outfit},
    files::{self, Table},
};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// A request for each place of each outfit, blanked; outfits vary fastest, methods with them.
pub fn bodies(release: &Path, methods: &[&str], k: usize) -> Result<Vec<Value>> {
    let customers = rows::<Customer>(release)?;
    let outfits = rows::<Outfit>(release)?;
    let longest = outfits.iter().map(|outfit| outfit.articles().len()).max().unwrap_or(0);
    let mut bodies = Vec::new();
    for blank in 0..longest {
        for outfit in outfits.iter().filter(|outfit| blank < outfit.articles().len()) {
            let known = customers.iter().any(|customer| customer.id == outfit.customer);
            ensure!(known, "the customer {} of an outfit is not there", outfit.customer);
            let mut slots: Vec<Value> = outfit.articles().iter().map(|id| json!(id.as_str())).collect();
            slots[blank] = Value::Null;
            let method = methods[bodies.len() % methods.len()];
            bodies.push(json!({
                "customer": outfit.customer.as_str(), "outfit": slots, "method": method, "k": k,
            }));
        }
    }
    ensure!(!bodies.is_empty(), "{} has no outfits", release.display());
    Ok(bodies)
}

fn rows<T: Table>(release: &Path) -> Result<Vec<T>> {
    let schema = files::read_folder_schema(release)?;
    let path = release.join(format!("{}.jsonl", T::NAME));
    let rows = files::read::<T>(&path, &schema)?;
    rows.map(|row| Ok(row.context("a row")?.value)).collect()
}

/// A service, from outside.
#[derive(Debug, Clone)]
pub struct Service {
    pub url: String,
    pub http: Client,
}

/// What came of one request.
#[derive(Debug, Clone)]
pub struct Answered {
    /// When its answer was there.
    pub at: Instant,
    pub took: Duration,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// As many suggestions as were asked for, and whether the profile behind them was a stale one.
    Whole { stale: bool },
    /// Any status but 200, with the seconds of its Retry-After.
    Refused { status: u16, retry_after: Option<u64> },
    /// No connection could be had: the request was never sent.
    Unsent,
    /// No answer, or one that is not whole.
    Broken(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole { .. } => f.write_str("a whole answer"),
            Self::Refused { status, .. } => write!(f, "status {status}"),
            Self::Unsent => f.write_str("no connection"),
            Self::Broken(reason) => f.write_str(reason),
        }
    }
}

/// What the service's process has used.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    pub cpu_seconds: f64,
    pub resident_bytes: f64,
}

impl Service {
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), http: Client::new() }
    }

    pub async fn complete(&self, body: &Value) -> Answered {
        let sent = Instant::now();
        let outcome = match self.http.post(format!("{}/complete", self.url)).json(body).send().await {
            Ok(answer) => outcome(body, answer).await,
            Err(error) if error.is_connect() => Outcome::Unsent,
            Err(error) => Outcome::Broken(format!("{error:?}")),
        };
        Answered { at: Instant::now(), took: sent.elapsed(), outcome }
    }

    pub async fn process(&self) -> Result<Process> {
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

    /// The status and the answer of activating a release.
    pub async fn activate(&self, release: &str) -> Result<(u16, Value)> {
        let path = format!("{}/releases/{release}/activate", self.url);
        let answer = self.http.post(path).json(&json!({})).send().await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    }
}

async fn outcome(body: &Value, answer: reqwest::Response) -> Outcome {
    let status = answer.status().as_u16();
    let retry_after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    let text = match answer.text().await {
        Ok(text) => text,
        Err(error) => return Outcome::Broken(format!("{error:?}")),
    };
    if status != 200 {
        return Outcome::Refused { status, retry_after };
    }
    match whole(body, &text) {
        Ok(stale) => Outcome::Whole { stale },
        Err(error) => Outcome::Broken(format!("{error:#}: {text}")),
    }
}

/// Whether it has as many suggestions as there can be, and says that the profile is stale.
fn whole(body: &Value, text: &str) -> Result<bool> {
    let answer: Value = serde_json::from_str(text)?;
    let blank = &answer["blanks"][0];
    let found = blank["suggestions"].as_array().map_or(0, Vec::len);
    let admissible = blank["admissible"].as_u64().context("how many are admissible")?;
    let k = body["k"].as_u64().unwrap_or(5).min(admissible);
    if found as u64 != k {
        bail!("{found} suggestions instead of {k}");
    }
    let warnings = answer["warnings"].as_array().context("warnings")?;
    Ok(warnings.iter().any(|warning| warning["code"] == "profile-stale"))
}

/// Callers at work.
pub struct Load {
    answered: Arc<Mutex<Vec<Answered>>>,
    done: Arc<AtomicBool>,
    callers: JoinSet<()>,
}

impl Load {
    /// At most so many requests, until it is stopped.
    pub fn start(service: &Service, bodies: &Arc<Vec<Value>>, callers: usize, most: usize) -> Self {
        let (next, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let answered = Arc::new(Mutex::new(Vec::new()));
        let mut running = JoinSet::new();
        for _ in 0..callers {
            let (service, bodies) = (service.clone(), Arc::clone(bodies));
            let (next, done, answered) = (Arc::clone(&next), Arc::clone(&done), Arc::clone(&answered));
            running.spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= most {
                        return;
                    }
                    let came = service.complete(&bodies[number % bodies.len()]).await;
                    let unsent = came.outcome == Outcome::Unsent;
                    answered.lock().unwrap_or_else(PoisonError::into_inner).push(came);
                    if unsent {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
            });
        }
        Self { answered, done, callers: running }
    }

    /// So many callers for so long.
    pub async fn run_for(
        service: &Service,
        bodies: &Arc<Vec<Value>>,
        callers: usize,
        long: Duration,
    ) -> Vec<Answered> {
        let load = Self::start(service, bodies, callers, usize::MAX);
        tokio::time::sleep(long).await;
        load.stop().await
    }

    /// What came since this was last asked.
    pub fn taken(&self) -> Vec<Answered> {
        std::mem::take(&mut self.answered.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until all requests are made.
    pub async fn finish(mut self) -> Vec<Answered> {
        while let Some(caller) = self.callers.join_next().await {
            caller.expect("a caller does not panic; this is a bug");
        }
        self.taken()
    }

    /// Waits for the answers that are on their way.
    pub async fn stop(self) -> Vec<Answered> {
        self.done.store(true, Ordering::Relaxed);
        self.finish().await
    }
}

/// The time that so many in a hundred take at most, in milliseconds.
pub fn percentile(times: &mut [Duration], percent: usize) -> Option<f64> {
    times.sort_unstable();
    let place = (times.len() * percent / 100).min(times.len().checked_sub(1)?);
    Some(times[place].as_secs_f64() * 1e3)
}
