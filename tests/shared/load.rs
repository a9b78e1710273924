//! Load on a running service: a release's own outfits, each with one article blanked, sent by many callers.
//!
//! A caller sends its next request when it has the answer to the last, or at a fixed pace. The outcome of each request
//! is kept as an [`Answered`]; experiments and the benchmark judge it.

#[path = "demo.rs"]
pub mod demo;

use std::{
    collections::HashSet,
    fmt,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use atelier_core::domain::{Customer, CustomerId, Outfit};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use demo::rows;

/// A request for each slot of each outfit, blanked, by one of the methods in turn. Outfits vary fastest.
pub fn bodies(release: &Path, methods: &[impl AsRef<str>], k: usize) -> Result<Vec<Value>> {
    let mut bodies = bodies_without_method(release, k)?;
    for (body, method) in bodies.iter_mut().zip(methods.iter().cycle()) {
        body["method"] = json!(method.as_ref());
    }
    Ok(bodies)
}

pub fn bodies_without_method(release: &Path, k: usize) -> Result<Vec<Value>> {
    let customers = rows::<Customer>(release)?;
    let customers: HashSet<&CustomerId> = customers.iter().map(|customer| &customer.id).collect();
    let outfits = rows::<Outfit>(release)?;
    let longest = outfits.iter().map(|outfit| outfit.articles().len()).max().unwrap_or(0);
    let mut bodies = Vec::new();
    for blank in 0..longest {
        for outfit in outfits.iter().filter(|outfit| blank < outfit.articles().len()) {
            let listed = customers.contains(&outfit.customer);
            ensure!(
                listed,
                "an outfit names the customer {}, whom the release does not list",
                outfit.customer
            );
            let mut slots: Vec<Value> = outfit.articles().iter().map(|id| json!(id.as_str())).collect();
            slots[blank] = Value::Null;
            bodies.push(json!({"customer": outfit.customer.as_str(), "outfit": slots, "k": k}));
        }
    }
    ensure!(!bodies.is_empty(), "{} has no outfits", release.display());
    Ok(bodies)
}

/// A running service.
#[derive(Debug, Clone)]
pub struct Service {
    pub url: String,
    pub http: Client,
    /// Where [`Load`] sends its requests: `/complete`, or `/compare` for several methods side by side.
    pub path: &'static str,
}

/// The outcome of one request.
#[derive(Debug, Clone)]
pub struct Answered {
    /// When the answer was complete.
    pub at: Instant,
    pub took: Duration,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// All suggestions that were requested; `stale` if the profile behind them was.
    Whole { stale: bool },
    /// Any status but 200, with the seconds of the Retry-After header.
    Refused { status: u16, retry_after: Option<u64> },
    /// No connection: the request was never sent.
    Unsent,
    /// No answer, or an incomplete one.
    Broken(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole { .. } => f.write_str("a complete answer"),
            Self::Refused { status, .. } => write!(f, "status {status}"),
            Self::Unsent => f.write_str("no connection"),
            Self::Broken(reason) => f.write_str(reason),
        }
    }
}

impl Answered {
    pub fn is_whole(&self) -> bool {
        matches!(self.outcome, Outcome::Whole { .. })
    }

    /// 0 without an answer that can be used.
    pub fn status(&self) -> u16 {
        match self.outcome {
            Outcome::Whole { .. } => 200,
            Outcome::Refused { status, .. } => status,
            Outcome::Unsent | Outcome::Broken(_) => 0,
        }
    }
}

/// What a process has used.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    pub cpu_seconds: f64,
    pub resident_bytes: f64,
}

impl Service {
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), http: Client::new(), path: "/complete" }
    }

    pub async fn send(&self, body: &Value) -> Answered {
        self.request(Method::POST, self.path, body).await
    }

    pub async fn request(&self, method: Method, path: &str, body: &Value) -> Answered {
        let sent = Instant::now();
        let request = self.http.request(method, format!("{}{path}", self.url)).json(body);
        let outcome = match request.send().await {
            Ok(answer) => judge(body, answer).await,
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

    /// Sends JSON, unless it is null; returns the status, and the answer's JSON.
    pub async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<(u16, Value)> {
        let request = self.http.request(method, format!("{}{path}", self.url));
        let request = if body.is_null() { request } else { request.json(body) };
        let answer = request.send().await?;
        let status = answer.status().as_u16();
        Ok((status, serde_json::from_slice(&answer.bytes().await?).unwrap_or_default()))
    }

    /// The answer's JSON. It must be a success.
    pub async fn json(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let (status, answer) = self.ask(method, path, body).await?;
        ensure!((200..300).contains(&status), "{path}: {status}: {answer}");
        Ok(answer)
    }

    pub async fn get(&self, path: &str) -> Result<Value> {
        self.json(Method::GET, path, &Value::Null).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.json(Method::POST, path, body).await
    }

    /// Activates a release; returns status and answer.
    pub async fn activate(&self, release: &str) -> Result<(u16, Value)> {
        self.ask(Method::POST, &format!("/releases/{release}/activate"), &json!({})).await
    }
}

async fn judge(body: &Value, answer: reqwest::Response) -> Outcome {
    let status = answer.status().as_u16();
    let retry_after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    let text = match answer.text().await {
        Ok(text) => text,
        Err(error) => return Outcome::Broken(format!("{error:?}")),
    };
    if status != 200 {
        return Outcome::Refused { status, retry_after };
    }
    match check_suggestions(body, &text) {
        Ok(stale) => Outcome::Whole { stale },
        Err(error) => Outcome::Broken(format!("{error:#}: {text}")),
    }
}

/// Each list must have as many suggestions as there can be. Returns whether the profile was stale.
fn check_suggestions(body: &Value, text: &str) -> Result<bool> {
    let answer: Value = serde_json::from_str(text)?;
    let lists = answer["blanks"].as_array().or_else(|| answer["columns"].as_array());
    let lists = lists.filter(|lists| !lists.is_empty()).context("the answer has no suggestions")?;
    for list in lists {
        let found = list["suggestions"].as_array().map_or(0, Vec::len);
        let admissible =
            list["admissible"].as_u64().context("the answer has no count of admissible articles")?;
        let expected = body["k"].as_u64().unwrap_or(5).min(admissible);
        ensure!(found as u64 == expected, "{found} suggestions, expected {expected}");
    }
    // `/compare` has them in each column.
    let warnings = answer["warnings"].as_array().or_else(|| lists[0]["warnings"].as_array());
    let mut warnings = warnings.context("the answer has no list of warnings")?.iter();
    Ok(warnings.any(|warning| warning["code"] == "profile-stale"))
}

/// Running callers.
pub struct Load {
    answered: Arc<Mutex<Vec<Answered>>>,
    done: Arc<AtomicBool>,
    callers: JoinSet<()>,
}

impl Load {
    /// Sends at most this number of requests, until it is stopped.
    pub fn start(service: &Service, bodies: &Arc<Vec<Value>>, callers: usize, limit: usize) -> Self {
        Self::start_at(service, bodies, callers, limit, None)
    }

    /// With `per_second`, sends requests when they are due, and counts their time from then.
    pub fn start_at(
        service: &Service,
        bodies: &Arc<Vec<Value>>,
        callers: usize,
        limit: usize,
        per_second: Option<f64>,
    ) -> Self {
        let began = Instant::now();
        let (next, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let answered = Arc::new(Mutex::new(Vec::new()));
        let mut running = JoinSet::new();
        for _ in 0..callers {
            let (service, bodies) = (service.clone(), Arc::clone(bodies));
            let (next, done, answered) = (Arc::clone(&next), Arc::clone(&done), Arc::clone(&answered));
            running.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= limit {
                        return;
                    }
                    // A caller that is late because it waited for its last answer kept a customer waiting.
                    let due = per_second.map(|rate| began + Duration::from_secs_f64(count(number) / rate));
                    if let Some(due) = due {
                        tokio::time::sleep_until(due.into()).await;
                    }
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    let mut answer = service.send(&bodies[number % bodies.len()]).await;
                    if let Some(due) = due {
                        answer.took = answer.at - due;
                    }
                    let unsent = answer.outcome == Outcome::Unsent;
                    answered.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
                    if unsent {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
            });
        }
        Self { answered, done, callers: running }
    }

    pub async fn run_for(
        service: &Service,
        bodies: &Arc<Vec<Value>>,
        callers: usize,
        duration: Duration,
    ) -> Vec<Answered> {
        let load = Self::start(service, bodies, callers, usize::MAX);
        tokio::time::sleep(duration).await;
        load.stop().await
    }

    /// Takes the outcomes since the last call.
    pub fn take(&self) -> Vec<Answered> {
        std::mem::take(&mut self.answered.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until all requests are made.
    pub async fn finish(mut self) -> Vec<Answered> {
        while let Some(caller) = self.callers.join_next().await {
            caller.expect("a caller does not panic");
        }
        self.take()
    }

    /// Waits for the answers that are on their way.
    pub async fn stop(self) -> Vec<Answered> {
        self.done.store(true, Ordering::Relaxed);
        self.finish().await
    }
}

/// The time within which `percent` of 100 requests were answered, in milliseconds.
pub fn percentile(times: &mut [Duration], percent: usize) -> Option<f64> {
    times.sort_unstable();
    let place = (times.len() * percent / 100).min(times.len().checked_sub(1)?);
    Some(times[place].as_secs_f64() * 1e3)
}

pub fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
