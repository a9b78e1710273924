//! Faults around the service: a full disk, a read-only data folder, another service on the same file.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{runtime::Runtime, task::JoinSet};

use crate::{
    Ran,
    load::{Outcome, Service},
    report::{Form, Report},
    server::Setup,
};

/// A small file system, unmounted when dropped.
struct Disk(TempDir);

impl Disk {
    fn new(megabytes: u32) -> Result<Self> {
        let folder = TempDir::new()?;
        mount(&["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "none"], folder.path())?;
        Ok(Self(folder))
    }

    fn set(&self, mode: &str) -> Result<()> {
        // With its source, or mount also passes on the old options, whose ids a user namespace does not know.
        mount(&["-o", &format!("remount,{mode}"), "none"], self.0.path())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn database(&self) -> String {
        format!("sqlite:{}", self.path().join("data/atelier.db").display())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a server that is being killed may still have an open file.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn mount(options: &[&str], at: &Path) -> Result<()> {
    let output = Command::new("mount").args(options).arg(at).output()?;
    ensure!(output.status.success(), "mount: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// Whether a file system can be mounted here: by root, or by a user who is root in a namespace of their own.
pub fn mounting() -> Result<(), String> {
    if is_root() {
        return Disk::new(1).map(drop).map_err(|error| error.to_string());
    }
    let output = as_root("mount").args(["-t", "tmpfs", "none", "/tmp"]).output();
    let output = output.map_err(|error| format!("unshare: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(said) }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn as_root(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount"]).arg(program);
    command
}

/// Runs the experiment in such a namespace, in a process that prints its figures.
fn run_as_root(name: &str, form: Form) -> Ran {
    let mut command = as_root(env::current_exe()?);
    command.args(["--exact", name]).args(form.pick(None, Some("--long")));
    ensure!(command.status()?.success(), "it failed, as is said above");
    Ok(Report::default())
}

/// The status of storing a customer, and whether it says when to come back.
async fn put(service: &Service, id: &str, words: usize) -> (u16, bool) {
    let body = json!({"features": {"note": "x".repeat(words)}});
    let answer = service.request(Method::PUT, &format!("/customers/{id}"), &body).await;
    (answer.status(), matches!(answer.outcome, Outcome::Refused { retry_after: Some(_), .. }))
}

/// How many of these customers are not stored.
async fn count_lost(service: &Service, ids: &[String]) -> Result<usize> {
    let mut lost = 0;
    for id in ids {
        let (status, _) = service.ask(Method::GET, &format!("/customers/{id}"), &Value::Null).await?;
        lost += usize::from(status != 200);
    }
    Ok(lost)
}

pub fn disk_full(form: Form) -> Ran {
    const WORDS: usize = 20_000;
    if !is_root() {
        return run_as_root("disk-full", form);
    }
    let disk = Disk::new(24)?;
    let setup = Setup::new(disk.database())?;
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![1; 4 << 20])?;
    let server = setup.start()?;
    let service = Service::new(setup.url());
    let mut report = Report::default();
    Runtime::new()?.block_on(async {
        let (mut stored, mut refusal) = (Vec::new(), None);
        while refusal.is_none() && stored.len() < 4000 {
            let id = format!("full-{}", stored.len());
            match put(&service, &id, WORDS).await {
                (201, _) => stored.push(id),
                other => refusal = Some(other),
            }
        }
        report.figure("stored_before_it_was_full", stored.len());
        let expected = refusal == Some((503, true));
        report.promise(expected, format!("a full disk should be a 503 with Retry-After, not {refusal:?}"));
        let completion = service.send(&json!({"outfit": [null], "k": 1})).await;
        report.promise(completion.is_whole(), "a completion failed, although it needs no disk");
        fs::remove_file(&ballast)?;
        let (status, _) = put(&service, "room", WORDS).await;
        report.promise(status == 201, format!("with room a write gets {status}: {}", setup.read_log()));
        server.kill()?;
        let _server = setup.start()?;
        stored.push("room".to_owned());
        let lost = count_lost(&service, &stored).await?;
        report.figure("lost", lost);
        report.promise(lost == 0, format!("{lost} acknowledged writes are lost"));
        Ok(report)
    })
}

pub fn read_only(form: Form) -> Ran {
    if !is_root() {
        return run_as_root("read-only", form);
    }
    let disk = Disk::new(24)?;
    let setup = Setup::new(disk.database())?;
    let server = setup.start()?;
    drop(server);
    disk.set("ro")?;
    let mut report = Report::default();
    let said = refusal(&setup)?;
    report.figure("said", said.clone());
    let is_said = said.contains("is read-only") || said.contains("cannot be opened");
    report.promise(is_said, format!("a folder that can only be read should be said so: {said}"));
    // The attempt damaged nothing.
    disk.set("rw")?;
    let _server = setup.start()?;
    Runtime::new()?.block_on(async {
        let (status, _) = put(&Service::new(setup.url()), "writable", 1).await;
        report.promise(status == 201, format!("writes should work again, found {status}"));
        Ok(report)
    })
}

/// The message of a service that does not start.
fn refusal(setup: &Setup) -> Result<String> {
    let mut child = setup.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    for _ in 0..200 {
        if child.try_wait()?.is_some() {
            let output = child.wait_with_output()?;
            ensure!(!output.status.success(), "it ended well");
            let said = String::from_utf8(output.stderr)?;
            return Ok(said.lines().last().unwrap_or_default().to_owned());
        }
        thread::sleep(Duration::from_millis(100));
    }
    let _ = child.kill();
    let _ = child.wait();
    anyhow::bail!("it started, or waits for something")
}

pub fn two_on_one_file(form: Form) -> Ran {
    let each = form.pick(40, 1000);
    let one = Setup::sqlite()?;
    let other = Setup::new(one.database())?;
    let _servers = (one.start()?, other.start()?);
    let services = [&one, &other].map(|setup| Service::new(setup.url()));
    let mut report = Report::default();
    Runtime::new()?.block_on(async {
        let mut writers = JoinSet::new();
        for writer in 0..8 {
            let service = services[writer % 2].clone();
            writers.spawn(async move {
                let (mut stored, mut busy, mut odd) = (Vec::new(), 0, Vec::new());
                for number in 0..each {
                    let id = format!("two-{writer}-{number}");
                    match put(&service, &id, 10).await {
                        (201, _) => stored.push(id),
                        (503, true) => busy += 1,
                        other => odd.push(format!("{other:?}")),
                    }
                }
                (stored, busy, odd)
            });
        }
        let (mut stored, mut busy, mut odd) = (Vec::new(), 0, Vec::new());
        while let Some(written) = writers.join_next().await {
            let (some, waited, strange) = written?;
            stored.extend(some);
            busy += waited;
            odd.extend(strange);
        }
        let half = stored.len() / 2;
        let lost = count_lost(&services[0], &stored[..half]).await?
            + count_lost(&services[1], &stored[half..]).await?;
        let seen = change_is_seen(&services).await?;
        report.figure("writes_acknowledged", stored.len());
        report.figure("told_to_come_back", busy);
        report.figure("lost", lost);
        report.figure("a_change_was_seen_by_the_other_after_ms", u64::try_from(seen.as_millis())?);
        report.promise(odd.is_empty(), format!("unexpected answers: {odd:?}"));
        report.promise(lost == 0, format!("{lost} acknowledged writes are lost"));
        report.measured_promise(
            form,
            seen < Duration::from_secs(2),
            format!("a change became visible after {seen:?}"),
        );
        Ok(report)
    })
}

/// How long one service still completes with a profile that the other one erased.
async fn change_is_seen([one, other]: &[Service; 2]) -> Result<Duration> {
    let body = json!({"customer": "two-0-0", "outfit": [null], "k": 1});
    ensure!(other.send(&body).await.is_whole(), "the customer is there");
    one.json(Method::DELETE, "/customers/two-0-0", &Value::Null).await?;
    let began = std::time::Instant::now();
    while other.send(&body).await.is_whole() {
        ensure!(began.elapsed() < Duration::from_secs(30), "an erased customer is served for half a minute");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(began.elapsed())
}
