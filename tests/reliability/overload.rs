//! The service gets ten times the requests that it can answer: it still answers what it can, refuses the rest at once,
//! and recovers afterwards.
//!
//! Callers share the machine with the service. The model has one thread and requests are large (every suggestion is
//! explained), so that the model is the bottleneck and not the network.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::{runtime::Runtime, sync::mpsc, time::sleep};

use crate::{
    Ran,
    load::{Answered, Load, Outcome, Service, bodies, count, percentile},
    report::{Form, Report},
    server::{Setup, models},
};

const TIMES: f64 = 10.0;
const CALLERS: usize = 64;
/// Most requests in flight: beyond that the machine runs out of sockets before the service is overloaded.
const ON_THEIR_WAY: usize = 3000;
const TICK: Duration = Duration::from_millis(2);
/// Most seconds that a refusal takes, as the service measures it.
const AT_ONCE: &str = "0.01";

pub fn run(form: Form) -> Ran {
    let (calm, long) = form.pick((2, 5), (10, 60));
    let (calm, long) = (Duration::from_secs(calm), Duration::from_secs(long));
    let setup = Setup::sqlite()?.set("ENGINE__WORKERS", "1").set("ENGINE__QUEUE", "512");
    let server = setup.start()?;
    let service = Service::new(setup.url());
    let mut bodies = bodies(&models().join("demo"), &["gsx-latent"], 20)?;
    for body in &mut bodies {
        body["explain"] = json!(true);
    }
    let bodies = Arc::new(bodies);
    Runtime::new()?.block_on(async {
        Load::start(&service, &bodies, CALLERS, bodies.len().min(500)).finish().await;
        let peak = rate(&Load::run_for(&service, &bodies, CALLERS, calm).await, calm);
        let mut report = Report::default();
        let before = server.resident()?;
        let flood = flood(&service, &bodies, peak * TIMES, long);
        let (answers, sent, most) = {
            let mut flood = Box::pin(flood);
            let mut most = before;
            loop {
                tokio::select! {
                    (answers, sent) = &mut flood => break (answers, sent, most),
                    () = sleep(Duration::from_millis(200)) => most = server.resident()?.max(most),
                }
            }
        };
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

/// Sends requests at a fixed pace, whatever the answers; returns the answers, and how many were sent.
async fn flood(
    service: &Service,
    bodies: &Arc<Vec<Value>>,
    per_second: f64,
    long: Duration,
) -> (Vec<Answered>, usize) {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let (began, mut sent, mut answers) = (Instant::now(), 0, Vec::new());
    while began.elapsed() < long {
        while let Ok(answered) = receiver.try_recv() {
            answers.push(answered);
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few million")]
        let due = (began.elapsed().as_secs_f64() * per_second) as usize;
        let room = ON_THEIR_WAY - (sent - answers.len());
        let until = due.min(sent + room);
        for number in sent..until {
            let (service, bodies, sender) = (service.clone(), Arc::clone(bodies), sender.clone());
            tokio::spawn(async move {
                let _ = sender.send(service.send(&bodies[number % bodies.len()]).await);
            });
        }
        sent = sent.max(until);
        sleep(TICK).await;
    }
    drop(sender);
    let ended = began + long;
    while let Some(answered) = receiver.recv().await {
        answers.push(answered);
    }
    // A late answer does not count for this time; a refusal counts whenever it comes.
    answers.retain(|answer| !answer.is_whole() || answer.at <= ended);
    (answers, sent)
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
