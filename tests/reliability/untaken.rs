//! Callers over HTTP/2 ask for as many answers as they may, compressed, and take none of them: others are served, memory is
//! bounded, and a stop is not delayed.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use tokio::{runtime::Runtime, time::timeout};

use crate::{
    Ran,
    http2::{Caller, issue_certificate, take},
    report::{Form, Report},
    server::Setup,
};

/// The most requests that a connection may have at once.
const STREAMS: usize = 128;
/// Most megabytes for all that is not taken.
const MOST_MB: f64 = 400.0;
/// How long a stop may take.
const PATIENCE: Duration = Duration::from_secs(8);

pub fn run(form: Form) -> Ran {
    let (connections, seconds) = form.pick((40, 4), (100, 600));
    let folder = tempfile::TempDir::new()?;
    issue_certificate(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let setup = Setup::sqlite()?
        .set("SERVER__CERTIFICATE", &path("certificate.pem"))
        .set("SERVER__KEY", &path("key.pem"));
    let mut server = setup.start()?;
    let (address, authority) = (setup.address().to_owned(), folder.path().join("ca.pem"));
    let before = server.resident()?;
    let runtime = Runtime::new()?;
    let (stop, cut) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    for _ in 0..connections {
        let (stop, cut, address, authority) =
            (Arc::clone(&stop), Arc::clone(&cut), address.clone(), authority.clone());
        runtime.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let Ok(caller) = Caller::connect(&address, &authority, 0).await else { continue };
                let mut untaken = Vec::new();
                for _ in 0..STREAMS {
                    let Ok(body) = caller.get("/openapi.json").await else { break };
                    untaken.push(body);
                }
                let _ = caller.connection.await;
                cut.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let (mut most, mut slowest, mut answered, mut asked) = (0_f64, Duration::ZERO, 0, 0);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        let asking = Instant::now();
        asked += 1;
        let ask = async { timeout(Duration::from_secs(20), ask(&address, &authority)).await };
        let answer = runtime.block_on(ask);
        answered += usize::from(matches!(answer, Ok(Ok(()))));
        slowest = slowest.max(asking.elapsed());
        most = most.max(server.resident()?);
        thread::sleep(Duration::from_millis(100));
    }
    stop.store(true, Ordering::Relaxed);
    let stopping = Instant::now();
    server.terminate()?;
    let ended = server.wait(2 * PATIENCE)?;
    let mut report = Report::default();
    report.figure("connections", connections);
    report.figure("cut", cut.load(Ordering::Relaxed));
    report.figure("asked_by_another", asked);
    report.decimal("slowest_answer_ms", slowest.as_secs_f64() * 1e3);
    report.decimal("before_mb", before);
    report.decimal("most_mb", most);
    report.decimal("stop_ms", stopping.elapsed().as_secs_f64() * 1e3);
    report.promise(
        answered == asked,
        format!("{answered} of {asked} requests of another caller were answered"),
    );
    report.promise(most < before + MOST_MB, format!("{before:.0} MB grew to {most:.0}"));
    report.promise(
        ended.is_some_and(|status| status.success()),
        format!("it ended with {ended:?}: {}", setup.read_log()),
    );
    report.measured_promise(form, stopping.elapsed() < PATIENCE, "the stop took too long");
    Ok(report)
}

/// A caller that takes its answer.
async fn ask(address: &str, authority: &Path) -> Result<()> {
    let caller = Caller::connect(address, authority, 1 << 16).await?;
    take(caller.get("/livez").await?).await?;
    Ok(())
}
