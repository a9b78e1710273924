//! Postgres goes away under load and comes back: stopped as in a crash, or frozen, as if its machine or the network
//! hung.

use std::{
    fs,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{runtime::Runtime, task::JoinHandle, time::sleep};

use crate::{
    Ran,
    load::{Answered, Load, Outcome, Service, bodies, percentile},
    private_server::PrivateServer,
    report::{Form, Report},
    server::{Setup, models},
};

const CALLERS: usize = 8;
/// How soon after its return the database serves everybody again.
const BACK: Duration = Duration::from_secs(6);
/// How long a refusal may take.
const PATIENCE: Duration = Duration::from_secs(4);

/// How it goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Stopped,
    Frozen,
}

pub fn stopped(form: Form) -> Ran {
    run(Way::Stopped, form)
}

pub fn frozen(form: Form) -> Ran {
    run(Way::Frozen, form)
}

/// One caller asks about a known customer, again and again: only the first answer waits for the database.
pub fn quiet(form: Form) -> Ran {
    let mut report = Report::default();
    for (name, way) in [("stopped", Way::Stopped), ("frozen", Way::Frozen)] {
        let postgres = Postgres(PrivateServer::start("")?);
        let setup = Setup::new(&postgres.0.url)?;
        let _server = setup.start()?;
        let service = Service::new(setup.url());
        Runtime::new()?.block_on(async {
            let caller = Probe::start(&service, ask_about_a_known_customer);
            sleep(Duration::from_secs(2)).await;
            postgres.leave(way)?;
            let left = Instant::now();
            sleep(Duration::from_secs(form.pick(4, 20))).await;
            let returning = Instant::now();
            postgres.come_back(way)?;
            let spell = Spell { left, returning, returned: Instant::now() };
            sleep(BACK).await;
            let answers = caller.stop().await;
            let unanswered = answers.iter().filter(|answer| !answer.is_whole()).count();
            let mut times: Vec<Duration> = answers
                .iter()
                .filter(|answer| spell.holds(answer.at, answer.took))
                .map(|answer| answer.took)
                .collect();
            let waited = times.iter().filter(|took| **took > Duration::from_millis(500)).count();
            report.figure(&format!("{name}_answered_meanwhile"), times.len());
            report.figure(&format!("{name}_waited"), waited);
            report.figure(&format!("{name}_p99_ms"), percentile(&mut times, 99));
            report.figure(&format!("{name}_slowest_ms"), percentile(&mut times, 100));
            report.promise(unanswered == 0, format!("{name}: {unanswered} failed"));
            report.measured_promise(form, waited <= 1, format!("{name}: {waited} waited"));
            anyhow::Ok(())
        })?;
    }
    Ok(report)
}

fn run(way: Way, form: Form) -> Ran {
    let away = Duration::from_secs(form.pick(4, 30));
    // Acknowledged writes must survive a crash, so a commit waits for the log.
    let postgres = Postgres(PrivateServer::start("-c synchronous_commit=on")?);
    let setup = Setup::new(&postgres.0.url)?;
    let _server = setup.start()?;
    let service = Service::new(setup.url());
    let bodies = Arc::new(bodies(&models().join("demo"), &["gsu"], 5)?);
    Runtime::new()?.block_on(async {
        let before = Load::start(&service, &bodies, CALLERS, bodies.len()).finish().await;
        let whole = Outcome::Whole { stale: false };
        ensure!(before.iter().all(|answer| answer.outcome == whole), "everybody is known before");
        let known = Load::start(&service, &bodies, CALLERS, usize::MAX);
        let strangers = Probe::start(&service, ask_about_a_stranger);
        let writes = Probe::start(&service, write);
        sleep(Duration::from_secs(1)).await;
        postgres.leave(way)?;
        // Until then some of its processes may still have answered.
        let left = Instant::now();
        sleep(away).await;
        // It answers before `pg_ctl` returns.
        let returning = Instant::now();
        postgres.come_back(way)?;
        let returned = Instant::now();
        sleep(BACK + Duration::from_secs(2)).await;
        let spell = Spell { left, returning, returned };
        let mut report = Report::default();
        report.decimal("seconds_away", (returned - left).as_secs_f64());
        judge_known(&mut report, form, &known.stop().await, &spell);
        judge_probe(&mut report, form, "strangers", &strangers.stop().await, 422, &spell);
        let writes = writes.stop().await;
        judge_probe(&mut report, form, "writes", &writes, 201, &spell);
        let acknowledged: Vec<usize> =
            (0..writes.len()).filter(|&number| writes[number].status() == 201).collect();
        let mut lost = Vec::new();
        for number in &acknowledged {
            if service.get(&format!("/customers/w-{number}")).await.is_err() {
                lost.push(*number);
            }
        }
        report.figure("writes_acknowledged", acknowledged.len());
        report.figure("writes_lost", lost.len());
        report.promise(lost.is_empty(), format!("acknowledged and lost: {lost:?}"));
        Ok(report)
    })
}

/// While the database was away.
struct Spell {
    left: Instant,
    returning: Instant,
    returned: Instant,
}

impl Spell {
    /// Sent and answered while it was away.
    fn holds(&self, at: Instant, took: Duration) -> bool {
        at > self.left + took && at < self.returning
    }

    /// Sent after it was back for long enough.
    fn is_over(&self, at: Instant, took: Duration) -> bool {
        at > self.returned + BACK + took
    }
}

/// Cached customers are always served: from the cache while the database is away.
fn judge_known(report: &mut Report, form: Form, answered: &[Answered], spell: &Spell) {
    let during: Vec<_> = answered.iter().filter(|answer| spell.holds(answer.at, answer.took)).collect();
    let stale = Outcome::Whole { stale: true };
    let told = during.iter().filter(|answer| answer.outcome == stale).count();
    let mut times: Vec<Duration> = during.iter().map(|answer| answer.took).collect();
    let before = answered.iter().filter(|answer| answer.at < spell.left);
    let mut usual: Vec<Duration> = before.map(|answer| answer.took).collect();
    let is_still = |answer: &&Answered| answer.outcome == stale && spell.is_over(answer.at, answer.took);
    let still = answered.iter().filter(is_still).count();
    report.figure("known_answered_meanwhile", during.len());
    report.figure("known_told_the_age", told);
    report.figure("known_p99_ms_before", percentile(&mut usual, 99));
    report.figure("known_p99_ms_meanwhile", percentile(&mut times, 99));
    report.figure("known_slowest_ms_meanwhile", percentile(&mut times, 100));
    report.promise_whole("known customers", answered);
    report.promise(told > 0, "no answer said that its profile is stale");
    report.measured_promise(form, still == 0, format!("{still} answers were stale after its return"));
}

/// Requests that need the database are refused soon while it is away, with a Retry-After.
fn judge_probe(report: &mut Report, form: Form, name: &str, answers: &[Answered], usual: u16, spell: &Spell) {
    let during: Vec<_> = answers.iter().filter(|answer| spell.holds(answer.at, answer.took)).collect();
    let is_refusal =
        |answer: &Answered| matches!(answer.outcome, Outcome::Refused { status: 503, retry_after: Some(_) });
    let refused = during.iter().filter(|answer| is_refusal(answer)).count();
    let statuses = answers.iter().map(Answered::status);
    let odd: Vec<u16> = statuses.filter(|status| ![usual, 503].contains(status)).collect();
    let is_late = |answer: &&Answered| spell.is_over(answer.at, answer.took) && answer.status() != usual;
    let late = answers.iter().filter(is_late).count();
    let slowest = answers.iter().map(|answer| answer.took).max().unwrap_or_default();
    report.figure(&format!("{name}_asked_meanwhile"), during.len());
    report.figure(&format!("{name}_refused_with_retry_after"), refused);
    report.decimal(&format!("{name}_slowest_ms"), slowest.as_secs_f64() * 1e3);
    // A write in progress waits for the database's return: in the four seconds of a short form that may be all.
    report.measured_promise(form, refused > 0, format!("{name}: nothing was refused"));
    report.promise(refused == during.len(), format!("{name}: {refused} of {} were refused", during.len()));
    report.promise(odd.is_empty(), format!("{name}: unexpected answers {odd:?}"));
    report.measured_promise(form, late == 0, format!("{name}: {late} were refused after its return"));
    report.measured_promise(form, slowest < PATIENCE, format!("{name}: one waited {slowest:?}"));
}

/// Sends requests one after the other.
struct Probe {
    done: Arc<AtomicBool>,
    running: JoinHandle<Vec<Answered>>,
}

/// A probe's request: its method, path and body.
type Request = (Method, String, Value);

impl Probe {
    fn start(service: &Service, request: fn(usize) -> Request) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let (service, stop) = (service.clone(), Arc::clone(&done));
        let running = tokio::spawn(async move {
            let mut answers = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let (method, path, body) = request(answers.len());
                answers.push(service.request(method, &path, &body).await);
                sleep(Duration::from_millis(10)).await;
            }
            answers
        });
        Self { done, running }
    }

    async fn stop(self) -> Vec<Answered> {
        self.done.store(true, Ordering::Relaxed);
        self.running.await.expect("a probe does not panic")
    }
}

fn ask_about_a_stranger(number: usize) -> Request {
    let body = json!({"customer": format!("nobody-{number}"), "outfit": [null]});
    (Method::POST, "/complete".to_owned(), body)
}

fn ask_about_a_known_customer(_: usize) -> Request {
    let body = json!({"customer": "c-014871", "outfit": ["a-00315", null], "k": 1});
    (Method::POST, "/complete".to_owned(), body)
}

fn write(number: usize) -> Request {
    (Method::PUT, format!("/customers/w-{number}"), json!({"features": {"gender": "female"}}))
}

/// A private server. It stops when it is dropped.
struct Postgres(PrivateServer);

impl Postgres {
    fn leave(&self, way: Way) -> Result<()> {
        match way {
            Way::Stopped => Ok(self.0.stop()?),
            Way::Frozen => self.signal("STOP"),
        }
    }

    fn come_back(&self, way: Way) -> Result<()> {
        match way {
            Way::Stopped => Ok(self.0.resume()?),
            Way::Frozen => self.signal("CONT"),
        }
    }

    /// To the server and each of its children.
    fn signal(&self, name: &str) -> Result<()> {
        let file = fs::read_to_string(self.0.folder.path().join("data/postmaster.pid"))?;
        let parent = file.lines().next().context("its process")?;
        // First the parent, so that a stopped one makes no further child.
        send(name, &[parent.to_owned()])?;
        send(name, &children(parent)?)
    }
}

fn children(parent: &str) -> Result<Vec<String>> {
    let processes = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(processes.filter(|id| state_and_parent(id).is_some_and(|(_, its)| its == parent)).collect())
}

/// `None` after its end.
fn state_and_parent(process: &str) -> Option<(String, String)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // They follow the name in parentheses.
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
}

/// Returns when all have stopped, if that is what the signal says.
fn send(name: &str, processes: &[String]) -> Result<()> {
    // A child may have ended.
    Command::new("kill").arg(format!("-{name}")).args(processes).stderr(Stdio::null()).status()?;
    let runs =
        |process: &String| state_and_parent(process).is_some_and(|(state, _)| !"TtZX".contains(&state));
    let started = Instant::now();
    while name == "STOP" && processes.iter().any(runs) {
        ensure!(started.elapsed() < PATIENCE, "Postgres does not stop");
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // A stopped server has no such file.
        let _ = self.signal("CONT");
        let _ = self.0.stop();
    }
}
