//! All kinds of requests for a long time: nothing grows, nothing gets slower.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{runtime::Runtime, task::JoinSet, time::sleep};

use crate::{
    Ran, demo,
    load::{Answered, Load, Service, bodies, count, percentile},
    report::{Form, Report},
    server::{Server, Setup, models},
};

/// What was measured in one slice of time.
#[derive(Debug, Clone, Copy)]
struct Slice {
    p50: f64,
    p99: f64,
    megabytes: f64,
    descriptors: usize,
    threads: usize,
    requests: usize,
}

pub fn run(form: Form) -> Ran {
    /// Callers that complete outfits, and callers that send everything else.
    const COMPLETING: usize = 4;
    const OTHERS: usize = 2;
    let (slices, each) = form.pick((5, Duration::from_secs(2)), (60, Duration::from_mins(1)));
    let setup = Setup::sqlite()?;
    let server = setup.start()?;
    let service = Service::new(setup.url());
    let methods: Vec<String> = demo::methods().into_iter().map(String::from).collect();
    let bodies = Arc::new(bodies(&models().join("demo"), &methods, 20)?);
    Runtime::new()?.block_on(async {
        let load = Load::start(&service, &bodies, COMPLETING, usize::MAX);
        let (done, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut others = JoinSet::new();
        for number in 0..OTHERS {
            let (service, done, made) = (service.clone(), Arc::clone(&done), Arc::clone(&made));
            let body = bodies[number].clone();
            others.spawn(async move {
                let mut failed = Vec::new();
                for round in 0.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    match everything_else(&service, &body, number, round).await {
                        Ok(requests) => _ = made.fetch_add(requests, Ordering::Relaxed),
                        Err(error) => failed.push(format!("{error:#}")),
                    }
                    sleep(Duration::from_millis(20)).await;
                }
                failed
            });
        }
        let (mut seen, mut answered, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..slices {
            sleep(each).await;
            let answers = load.take();
            let slice = slice(&server, &answers)?;
            answered.extend(answers.into_iter().filter(|answer| !answer.is_whole()));
            if form == Form::Long {
                eprintln!("minute {}: {slice:?}", number + 1);
            }
            seen.push(slice);
        }
        done.store(true, Ordering::Relaxed);
        while let Some(other) = others.join_next().await {
            failed.extend(other?);
        }
        answered.extend(load.stop().await);
        let mut report = Report::default();
        report.figure("seconds", (each * slices).as_secs());
        report.figure("completions", seen.iter().map(|slice| slice.requests).sum::<usize>());
        report.figure("other_requests", made.load(Ordering::Relaxed));
        report.promise_whole("completions", &answered);
        let first = failed.first();
        report.promise(first.is_none(), format!("{} others failed, the first: {first:?}", failed.len()));
        hold(&mut report, form, &seen);
        Ok(report)
    })
}

type Of = fn(&Slice) -> f64;

/// Compares the second sixth of the time, when everything is open that ever will be, with the last.
fn hold(report: &mut Report, form: Form, seen: &[Slice]) {
    let part = (seen.len() / 6).max(1);
    let (early, late) = (&seen[part..2 * part], &seen[seen.len() - part..]);
    let middle = |slices: &[Slice], of: Of| {
        let mut values: Vec<f64> = slices.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let kinds: [(&str, Of, f64); 5] = [
        ("megabytes", |slice| slice.megabytes, 1.05),
        ("descriptors", |slice| count(slice.descriptors), 1.2),
        ("threads", |slice| count(slice.threads), 1.2),
        ("p50_ms", |slice| slice.p50, 1.3),
        ("p99_ms", |slice| slice.p99, 1.5),
    ];
    for (name, of, most) in kinds {
        let (early, late) = (middle(early, of), middle(late, of));
        report.decimal(&format!("{name}_early"), early);
        report.decimal(&format!("{name}_late"), late);
        report.measured_promise(form, late <= early * most, format!("{name} went from {early} to {late}"));
    }
}

fn slice(server: &Server, answers: &[Answered]) -> Result<Slice> {
    let mut times: Vec<Duration> = answers.iter().map(|answer| answer.took).collect();
    let (descriptors, threads) = server.descriptors_and_threads()?;
    let mut time = |percent| percentile(&mut times, percent).unwrap_or_default();
    let (p50, p99) = (time(50), time(99));
    Ok(Slice { p50, p99, megabytes: server.resident()?, descriptors, threads, requests: answers.len() })
}

/// Sends some of every other request; returns how many.
async fn everything_else(service: &Service, body: &Value, caller: usize, round: usize) -> Result<usize> {
    let id = format!("mixed-{caller}-{}", round % 500);
    let sent = Instant::now();
    let customer = json!({"features": {"age": 18 + round % 60, "gender": "female"}});
    let features = json!({"customer": id, "outfit": body["outfit"], "k": 5});
    service.json(Method::PUT, &format!("/customers/{id}"), &customer).await?;
    let export = format!("/customers/{id}/export");
    for path in [&*export, "/articles?n=50&search=coat", "/customers?n=20", "/metrics", "/readyz"] {
        service.get(path).await?;
    }
    service.post("/compare", &features).await?;
    let completion = service.post("/complete", &features).await?;
    let event = json!({
        "id": format!("m-{caller}-{round}-{}", sent.elapsed().as_nanos()),
        "completion_id": completion["completion_id"], "kind": "accepted", "slot": completion["blanks"][0]["slot"],
        "article": completion["blanks"][0]["suggestions"][0]["article"]["id"], "customer": id,
    });
    service.post("/feedback", &event).await?;
    if round % 100 == 99 {
        service.json(Method::DELETE, &format!("/customers/{id}"), &Value::Null).await?;
    }
    if round % 2000 == 1999 {
        let (status, answer) = service.activate("demo").await?;
        ensure!(status == 200, "activating: {status}: {answer}");
    }
    Ok(9)
}
