//! The server is killed while profiles, feedback and events are written: everything acknowledged is stored.
//!
//! Only the process dies, so the kernel still writes what it took. Against power cuts the store sets `SQLite` to
//! `synchronous = full`, which no test here can check.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::{runtime::Runtime, task::JoinSet};

use crate::{
    Ran,
    load::Service,
    report::{Form, Report},
    server::{Setup, on_postgres},
};

const WRITERS: usize = 8;
/// Concurrent requests that check what is stored.
const LOOKING: usize = 8;
/// How long a server may take to store what each writer sends twice.
const PATIENCE: Duration = Duration::from_mins(1);
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
    let http = Client::builder().timeout(Duration::from_secs(10)).build()?;
    let service = Service { http, ..Service::new(setup.url()) };
    let written: Vec<Arc<Mutex<Written>>> = (0..WRITERS).map(|_| Arc::default()).collect();
    let counter = Arc::new(AtomicU64::new(0));
    let (mut back, mut report) = (Vec::new(), Report::default());
    for kill in 0..kills {
        let began = Instant::now();
        let server = setup.start()?;
        back.push(began.elapsed());
        let (stop, whole) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut writers = JoinSet::new();
        for (number, written) in written.iter().enumerate() {
            let (service, stop, whole) = (service.clone(), Arc::clone(&stop), Arc::clone(&whole));
            let (written, counter) = (Arc::clone(written), Arc::clone(&counter));
            writers.spawn_on(
                async move {
                    while !stop.load(Ordering::Relaxed) {
                        let next = counter.fetch_add(1, Ordering::Relaxed);
                        // The kill: what was sent then need not be stored.
                        let is_whole = write(&service, number, next, &written).await.is_ok();
                        whole.fetch_add(usize::from(is_whole), Ordering::Relaxed);
                    }
                },
                runtime.handle(),
            );
        }
        // At a random moment after enough was written, however slow the machine is.
        while whole.load(Ordering::Relaxed) < 2 * WRITERS && began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(10));
        }
        thread::sleep(Duration::from_millis(37 * (kill % 19)));
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
        lost.extend(runtime.block_on(missing(&service, number, &written))?);
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
async fn write(service: &Service, number: usize, next: u64, written: &Mutex<Written>) -> Result<()> {
    let lock = || written.lock().unwrap_or_else(PoisonError::into_inner);
    lock().sent = next;
    let body = json!({"features": {"weight": next}});
    service.json(Method::PUT, &format!("/customers/{}", customer(number)), &body).await?;
    lock().profile = Some(next);
    let asked = json!({"customer": customer(number), "outfit": [null], "k": 1});
    let answer = service.post("/complete", &asked).await?;
    let article = &answer["blanks"][0]["suggestions"][0]["article"]["id"];
    let event = json!({
        "id": format!("e-{next}"), "completion_id": answer["completion_id"], "kind": "shown", "slot": 0,
        "article": article, "customer": customer(number),
    });
    service.post("/feedback", &event).await?;
    lock().feedback.push(event);
    let event = |part: usize| {
        json!({"id": format!("s-{next}-{part}"), "kind": if part == 0 { "bought" } else { "viewed" }, "article": article,
               "customer": customer(number), "value": 10})
    };
    let events: Value = (0..TOGETHER).map(event).collect();
    service.post("/events", &events).await?;
    lock().events.push(events);
    Ok(())
}

/// What is missing of it.
async fn missing(service: &Service, number: usize, written: &Written) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    let found = service.get(&format!("/customers/{}", customer(number))).await?;
    let weight = found["features"]["weight"].as_f64().context("the profile's weight")?;
    #[expect(clippy::cast_precision_loss, reason = "as many writes as there are seconds")]
    let (least, most) = (written.profile.unwrap_or_default() as f64, written.sent as f64);
    if !(least..=most).contains(&weight) {
        missing.push(format!("profile {number}: {weight} instead of {least} or {most}"));
    }
    for events in &written.events {
        let answer = service.post("/events", events).await?;
        let answers = answer.as_array().context("a list of results")?;
        // A stored event is not recorded again.
        missing.extend(answers.iter().filter(|answer| answer["recorded"] != false).map(ToString::to_string));
    }
    // What they bought is counted as often as it was acknowledged, or once more for the last kill.
    let export = service.get(&format!("/customers/{}/export", customer(number))).await?;
    let purchases = export["purchases"].as_array().context("a list of purchases")?;
    let bought: u64 = purchases.iter().filter_map(|purchase| purchase["bought"].as_u64()).sum();
    if bought < written.events.len() as u64 {
        missing.push(format!("purchases of {number}: {bought} of {}", written.events.len()));
    }
    for events in written.feedback.chunks(LOOKING) {
        let sent = events.iter().map(async |event| {
            let answer = service.post("/feedback", event).await?;
            // A stored event is not recorded again.
            anyhow::Ok((answer["recorded"] == false, event))
        });
        for (there, event) in futures_util::future::try_join_all(sent).await? {
            if !there {
                missing.push(event["id"].to_string());
            }
        }
    }
    Ok(missing)
}
