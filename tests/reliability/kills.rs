//! The server is killed while profiles, feedback and events are written: everything acknowledged is stored.
//!
//! Only the process dies, so the kernel still writes what it took. Against power cuts the store sets `SQLite` to
//! `synchronous = full`, which no test here can check.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::{runtime::Runtime, task::JoinSet};

use crate::{
    Ran,
    report::{Form, Report},
    server::{Setup, on_postgres},
};

const WRITERS: usize = 8;
/// Concurrent requests that check what is stored.
const LOOKING: usize = 8;
/// Events in a list.
const TOGETHER: usize = 10;

pub fn sqlite(form: Form) -> Ran {
    run(&Setup::sqlite()?, form)
}

pub fn postgres(form: Form) -> Ran {
    on_postgres(|setup| run(setup, form))
}

/// What one writer wrote: the last profile acknowledged, the last profile sent, and the feedback and events acknowledged.
#[derive(Debug, Default)]
struct Written {
    profile: Option<u64>,
    sent: u64,
    feedback: Vec<Value>,
    /// Lists of events.
    events: Vec<Value>,
}

fn run(setup: &Setup, form: Form) -> Ran {
    let kills = form.pick(5, 50);
    let runtime = Runtime::new()?;
    let (url, http) = (setup.url(), Client::builder().timeout(Duration::from_secs(10)).build()?);
    let written: Vec<Arc<Mutex<Written>>> = (0..WRITERS).map(|_| Arc::default()).collect();
    let counter = Arc::new(AtomicU64::new(0));
    let (mut back, mut report) = (Vec::new(), Report::default());
    for kill in 0..kills {
        let began = Instant::now();
        let server = setup.start()?;
        back.push(began.elapsed());
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = JoinSet::new();
        for (number, written) in written.iter().enumerate() {
            let (url, http, stop) = (url.clone(), http.clone(), Arc::clone(&stop));
            let (written, counter) = (Arc::clone(written), Arc::clone(&counter));
            writers.spawn_on(
                async move {
                    while !stop.load(Ordering::Relaxed) {
                        let next = counter.fetch_add(1, Ordering::Relaxed);
                        // The kill: what was sent then need not be stored.
                        let _ = write(&http, &url, number, next, &written).await;
                    }
                },
                runtime.handle(),
            );
        }
        // At a random moment.
        thread::sleep(Duration::from_millis(300 + 37 * (kill % 19)));
        server.kill()?;
        stop.store(true, Ordering::Relaxed);
        runtime.block_on(async { while writers.join_next().await.is_some() {} });
    }
    let _server = setup.start()?;
    let (mut profiles, mut feedback, mut events, mut lost) = (0, 0, 0, Vec::new());
    for (number, written) in written.iter().enumerate() {
        let written = written.lock().unwrap_or_else(PoisonError::into_inner);
        profiles += usize::from(written.profile.is_some());
        feedback += written.feedback.len();
        events += written.events.len() * TOGETHER;
        lost.extend(runtime.block_on(missing(&http, &url, number, &written))?);
    }
    back.sort();
    report.figure("kills", kills);
    report.figure("rounds_of_writes", counter.load(Ordering::Relaxed));
    report.figure("feedback_events_looked_for", feedback);
    report.figure("shop_events_looked_for", events);
    report.figure("profiles_looked_for", profiles);
    report.figure("lost", lost.len());
    report.decimal("start_to_ready_ms_median", back[back.len() / 2].as_secs_f64() * 1e3);
    report.promise(profiles == WRITERS && feedback > WRITERS && events > WRITERS, "too little was written");
    report.promise(lost.is_empty(), format!("acknowledged and lost: {lost:?}"));
    Ok(report)
}

fn customer(number: usize) -> String {
    format!("k-{number}")
}

/// Writes a profile, a feedback event about it, and events of the customer.
async fn write(http: &Client, url: &str, number: usize, next: u64, written: &Mutex<Written>) -> Result<()> {
    let lock = || written.lock().unwrap_or_else(PoisonError::into_inner);
    lock().sent = next;
    let body = json!({"features": {"weight": next}});
    let put = http.put(format!("{url}/customers/{}", customer(number))).json(&body).send().await?;
    ensure!(put.status().is_success(), "{}", put.status());
    lock().profile = Some(next);
    let asked = json!({"customer": customer(number), "outfit": [null], "k": 1});
    let answer = http.post(format!("{url}/complete")).json(&asked).send().await?;
    let answer: Value = answer.error_for_status()?.json().await?;
    let event = json!({
        "id": format!("e-{next}"), "completion_id": answer["completion_id"], "kind": "shown", "slot": 0,
        "article": answer["blanks"][0]["suggestions"][0]["article"]["id"], "customer": customer(number),
    });
    let taken = http.post(format!("{url}/feedback")).json(&event).send().await?;
    ensure!(taken.status().is_success(), "{}", taken.status());
    lock().feedback.push(event);
    let article = answer["blanks"][0]["suggestions"][0]["article"]["id"].clone();
    let event = |part: usize| {
        json!({"id": format!("s-{next}-{part}"), "kind": if part == 0 { "bought" } else { "viewed" }, "article": article,
               "customer": customer(number), "value": 10})
    };
    let events: Value = (0..TOGETHER).map(event).collect();
    let taken = http.post(format!("{url}/events")).json(&events).send().await?;
    ensure!(taken.status().is_success(), "{}", taken.status());
    lock().events.push(events);
    Ok(())
}

/// What is missing of it.
async fn missing(http: &Client, url: &str, number: usize, written: &Written) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    let path = format!("{url}/customers/{}", customer(number));
    let found: Value = http.get(path).send().await?.error_for_status()?.json().await?;
    let weight = found["features"]["weight"].as_f64().context("the profile's weight")?;
    #[expect(clippy::cast_precision_loss, reason = "as many writes as there are seconds")]
    let (least, most) = (written.profile.unwrap_or_default() as f64, written.sent as f64);
    if !(least..=most).contains(&weight) {
        missing.push(format!("profile {number}: {weight} instead of {least} or {most}"));
    }
    for events in &written.events {
        let answer: Value =
            http.post(format!("{url}/events")).json(events).send().await?.error_for_status()?.json().await?;
        let answers = answer.as_array().context("a list of results")?;
        // A stored event is not recorded again.
        missing.extend(answers.iter().filter(|answer| answer["recorded"] != false).map(ToString::to_string));
    }
    // What they bought is counted as often as it was acknowledged, or once more for the last kill.
    let path = format!("{url}/customers/{}/export", customer(number));
    let export: Value = http.get(path).send().await?.error_for_status()?.json().await?;
    let purchases = export["purchases"].as_array().context("a list of purchases")?;
    let bought: u64 = purchases.iter().filter_map(|purchase| purchase["bought"].as_u64()).sum();
    if bought < written.events.len() as u64 {
        missing.push(format!("purchases of {number}: {bought} of {}", written.events.len()));
    }
    for events in written.feedback.chunks(LOOKING) {
        let sent = events.iter().map(async |event| {
            let answer = http.post(format!("{url}/feedback")).json(event).send().await?;
            let answer: Value = answer.error_for_status()?.json().await?;
            // A stored event is not recorded again.
            Ok::<_, anyhow::Error>((answer["recorded"] == false, event))
        });
        for (there, event) in futures_util::future::try_join_all(sent).await? {
            if !there {
                missing.push(event["id"].to_string());
            }
        }
    }
    Ok(missing)
}
