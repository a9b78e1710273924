//! The service gets ten times the requests that it can answer: it still answers what it can, refuses the rest at once,
//! and recovers afterwards.
//!
//! Callers share the machine with the service. The model has one thread and requests are large (every suggestion is
//! explained), so that the model is the bottleneck and not the network.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::{runtime::Runtime, task::JoinSet, time::sleep};

use crate::{
    Ran,
    load::{Answered, Load, Outcome, Service, bodies, bodies_without_method, count, percentile},
    report::{Form, Report},
    server::{Setup, models},
};

const TIMES: f64 = 10.0;
const CALLERS: usize = 64;
/// Most requests in flight: beyond that the machine runs out of sockets before the service is overloaded.
const ON_THEIR_WAY: usize = 3000;
/// Most seconds that a refusal takes, as the service measures it.
const AT_ONCE: &str = "0.01";

pub fn run(form: Form) -> Ran {
    let (calm, long) = form.pick((2, 5), (10, 60));
    let (calm, long) = (Duration::from_secs(calm), Duration::from_secs(long));
    let setup = Setup::sqlite()?.set("ENGINE__WORKERS", "1").set("ENGINE__QUEUE", "512");
    let server = setup.start()?;
    let service = Service::new(setup.url());
    let mut bodies = bodies(&models().join("demo"), &["gsu"], 20)?;
    for body in &mut bodies {
        body["explain"] = json!(true);
    }
    let bodies = Arc::new(bodies);
    Runtime::new()?.block_on(async {
        Load::start(&service, &bodies, CALLERS, bodies.len().min(500)).finish().await;
        let peak = rate(&Load::run_for(&service, &bodies, CALLERS, calm).await, calm);
        let mut report = Report::default();
        let before = server.resident()?;
        let load = Load::start_at(&service, &bodies, ON_THEIR_WAY, usize::MAX, Some(peak * TIMES));
        let (ended, mut most) = (Instant::now() + long, before);
        while Instant::now() < ended {
            sleep(Duration::from_millis(200)).await;
            most = server.resident()?.max(most);
        }
        let mut answers = load.stop().await;
        let sent = answers.len();
        // A late answer does not count for this time; a refusal counts whenever it comes.
        answers.retain(|answer| !answer.is_whole() || answer.at <= ended);
        let recovered = recovery(&service, &bodies[0]).await?;
        let after = rate(&Load::run_for(&service, &bodies, CALLERS, calm).await, calm);
        let useful = answers.iter().filter(|answer| answer.is_whole()).count();
        let is_refusal = |answer: &&Answered| {
            matches!(answer.outcome, Outcome::Refused { status: 429, retry_after: Some(wait) } if wait > 0)
        };
        let mut refusals: Vec<Duration> = answers.iter().filter(is_refusal).map(|answer| answer.took).collect();
        // Admitted and answered too late: under such a load the pace varies.
        let is_late = |answer: &&Answered| matches!(answer.outcome, Outcome::Refused { status: 504, .. });
        let late = answers.iter().filter(is_late).count();
        let odd: Vec<String> = answers
            .iter()
            .filter(|answer| !answer.is_whole() && !is_refusal(answer) && !is_late(answer))
            .map(|answer| answer.outcome.to_string())
            .collect();
        let useful_rate = count(useful) / long.as_secs_f64();
        let at_once = share_at_once(&service).await?;
        report.decimal("peak_per_second", peak);
        report.decimal("offered_per_second", count(sent) / long.as_secs_f64());
        report.decimal("useful_per_second", useful_rate);
        report.decimal("useful_of_peak_percent", useful_rate / peak * 100.0);
        report.figure("refused", refusals.len());
        report.figure("too_late", late);
        report.figure("neither_answered_nor_refused", odd.len());
        report.decimal("refusals_within_10_ms_percent", at_once * 100.0);
        report.figure("refusal_p99_ms_as_callers_saw_it", percentile(&mut refusals, 99));
        report.decimal("mb_before", before);
        report.decimal("mb_most", most);
        report.decimal("recovered_after_ms", recovered.as_secs_f64() * 1e3);
        report.decimal("per_second_afterwards", after);
        report.promise(!refusals.is_empty(), "nothing was refused");
        report.promise(odd.is_empty(), format!("{} unexpected answers, the first: {:?}", odd.len(), odd.first()));
        report.promise(useful > 10 * late, format!("{late} were answered too late, and {useful} in time"));
        report.measured_promise(form, late == 0, format!("{late} were answered too late"));
        report.measured_promise(form, useful_rate >= 0.9 * peak, "useful throughput fell below 90 % of the peak");
        report.measured_promise(form, at_once >= 0.99, "more than one refusal of a hundred took over 10 ms");
        report.measured_promise(form, most <= before * 1.5 + 100.0, "memory grew by more than half and 100 MB");
        report.measured_promise(form, recovered < Duration::from_secs(1), "it took longer than a second to recover");
        Ok(report)
    })
}

/// Hundreds of callers send batches, again and again: those that are admitted are answered whole and as fast as before, others
/// are refused whole, and health checks are answered at once.
pub fn batches(form: Form) -> Ran {
    let (long, many) = (Duration::from_secs(form.pick(2, 20)), form.pick(100, 900));
    let setup = Setup::sqlite()?;
    let _server = setup.start()?;
    let service = Service::new(setup.url());
    let items = bodies_without_method(&models().join("demo"), 5)?;
    let batch = Arc::new(json!({"items": items.iter().take(64).collect::<Vec<_>>()}).to_string());
    Runtime::new()?.block_on(async {
        send_batches(&service, &batch, 8, long / 4).await?;
        let calm = send_batches(&service, &batch, 8, long).await?;
        let (busy, health) =
            tokio::join!(send_batches(&service, &batch, many, long), check_health(&service, long));
        let (busy, mut health) = (busy?, health?);
        let (calm_rate, busy_rate) = (calm.rate(long), busy.rate(long));
        let (mut report, checks) = (Report::default(), health.len());
        let (p50, p99) = (percentile(&mut health, 50), percentile(&mut health, 99));
        report.decimal("items_per_second_of_8_callers", calm_rate);
        report.decimal("items_per_second_of_many_callers", busy_rate);
        report.figure("callers", many);
        report.figure("refused_batches", busy.refused);
        report.figure("failed_items_in_answers", calm.failed + busy.failed);
        report.figure("health_checks", checks);
        report.figure("health_p50_ms", p50);
        report.figure("health_p99_ms", p99);
        report.promise(busy.refused > 0, "nothing was refused");
        report.promise(busy.items > 0, "nothing was answered");
        report.measured_promise(form, calm.failed + busy.failed == 0, "answers have refused items");
        report.measured_promise(form, busy_rate >= 0.9 * calm_rate, "goodput fell below 90 % of 8 callers'");
        report.measured_promise(form, p50.is_some_and(|ms| ms <= 100.0), "a health check took over 100 ms");
        Ok(report)
    })
}

/// What came of batches.
#[derive(Debug, Default)]
struct Batches {
    items: usize,
    /// Items of answers with the status 200 that were not answered.
    failed: usize,
    refused: usize,
}

impl Batches {
    fn rate(&self, long: Duration) -> f64 {
        count(self.items) / long.as_secs_f64()
    }
}

/// Each caller sends its next batch when it has the answer to the last, or a moment after a refusal.
async fn send_batches(
    service: &Service,
    batch: &Arc<String>,
    callers: usize,
    long: Duration,
) -> Result<Batches> {
    const MOMENT: Duration = Duration::from_millis(100);
    let until = Instant::now() + long;
    let mut running = JoinSet::new();
    for _ in 0..callers {
        let (http, batch) = (service.http.clone(), Arc::clone(batch));
        let url = format!("{}/complete/batch", service.url);
        running.spawn(async move {
            let mut found = Batches::default();
            while Instant::now() < until {
                let request = http.post(&url).header("content-type", "application/json");
                let answer = request.body(batch.to_string()).send().await?;
                if answer.status() == 429 {
                    ensure!(answer.headers().contains_key("retry-after"), "a refusal without Retry-After");
                    found.refused += 1;
                    sleep(MOMENT).await;
                    continue;
                }
                ensure!(answer.status() == 200, "status {}", answer.status());
                let answer: Value = answer.json().await?;
                let items = answer["items"].as_array().context("an answer has items")?;
                let failed = items.iter().filter(|item| !item["blanks"].is_array()).count();
                found.failed += failed;
                // A late answer does not count.
                if Instant::now() < until {
                    found.items += items.len() - failed;
                }
            }
            Ok(found)
        });
    }
    let mut all = Batches::default();
    while let Some(found) = running.join_next().await {
        let found = found??;
        all.items += found.items;
        all.failed += found.failed;
        all.refused += found.refused;
    }
    Ok(all)
}

/// How long health checks take, each over a new connection, as balancers make them.
async fn check_health(service: &Service, long: Duration) -> Result<Vec<Duration>> {
    const PAUSE: Duration = Duration::from_millis(50);
    let (until, mut took) = (Instant::now() + long, Vec::new());
    while Instant::now() < until {
        for path in ["livez", "readyz"] {
            let asked = Instant::now();
            let answer = reqwest::get(format!("{}/{path}", service.url)).await?;
            ensure!(answer.status() == 200, "/{path} answers {}", answer.status());
            took.push(asked.elapsed());
        }
        sleep(PAUSE).await;
    }
    Ok(took)
}

/// The time until a request is answered again.
async fn recovery(service: &Service, body: &Value) -> Result<Duration> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        if service.send(body).await.is_whole() {
            return Ok(began.elapsed());
        }
        sleep(Duration::from_millis(10)).await;
    }
    anyhow::bail!("not one request was answered in 30 seconds after the overload")
}

/// The share of refusals within [`AT_ONCE`] seconds, as the service measured it.
async fn share_at_once(service: &Service) -> Result<f64> {
    let text = service.http.get(format!("{}/metrics", service.url)).send().await?.text().await?;
    let bucket = |le: &str| -> Result<f64> {
        let line = text.lines().find(|line| {
            line.starts_with("atelier_http_request_duration_seconds_bucket{")
                && ["status=\"429\"", "route=\"/complete\""].iter().all(|label| line.contains(label))
                && line.contains(&format!("le=\"{le}\""))
        });
        let line = line.with_context(|| format!("no refusals up to {le} in /metrics"))?;
        Ok(line.rsplit(' ').next().context("a value")?.parse()?)
    };
    Ok(bucket(AT_ONCE)? / bucket("+Inf")?)
}

fn rate(answers: &[Answered], long: Duration) -> f64 {
    count(answers.iter().filter(|answer| answer.is_whole()).count()) / long.as_secs_f64()
}
