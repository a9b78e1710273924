//! The service gets SIGTERM under load, while some callers send their requests slowly: accepted requests are answered,
//! and the slow callers do not delay the stop.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tokio::runtime::Runtime;

use crate::{
    Ran,
    load::{Load, Outcome, Service, bodies},
    report::{Form, Report},
    server::{Setup, models},
};

/// How long a stop may take while slow callers hold on.
const PATIENCE: Duration = Duration::from_secs(8);

pub fn run(form: Form) -> Ran {
    let (times, callers) = form.pick((2, 8), (20, 64));
    let bodies = Arc::new(bodies(&models().join("demo"), &["gsu"], 5)?);
    let runtime = Runtime::new()?;
    let (mut answered, mut turned_away, mut lost, mut took) = (0, 0, Vec::new(), Vec::new());
    let mut report = Report::default();
    for time in 0..times {
        let setup = Setup::sqlite()?;
        let mut server = setup.start()?;
        let service = Service::new(setup.url());
        let slow = slow_callers(setup.address())?;
        let load = {
            let _inside = runtime.enter();
            Load::start(&service, &bodies, callers, usize::MAX)
        };
        thread::sleep(Duration::from_millis(700 + 53 * time));
        let began = Instant::now();
        server.terminate()?;
        let ended = server.wait(PATIENCE)?;
        took.push(began.elapsed());
        report.promise(
            ended.is_some_and(|status| status.success()),
            format!("it ended with {ended:?} after {:?}: {}", began.elapsed(), setup.read_log()),
        );
        for answer in runtime.block_on(load.stop()) {
            match answer.outcome {
                Outcome::Whole { .. } => answered += 1,
                Outcome::Unsent => turned_away += 1,
                other => lost.push(other.to_string()),
            }
        }
        drop(slow);
    }
    took.sort();
    report.figure("stops", times);
    report.figure("answered", answered);
    report.figure("not_accepted", turned_away);
    report.figure("accepted_and_lost", lost.len());
    report.decimal("slowest_stop_ms", took.last().context("a stop")?.as_secs_f64() * 1e3);
    report.promise(answered > 0 && turned_away > 0, "there was no load");
    report.promise(lost.is_empty(), format!("accepted and lost: {lost:?}"));
    Ok(report)
}

/// One that never ends its request's head, one that never ends its body, and an idle one.
fn slow_callers(address: &str) -> Result<Vec<TcpStream>> {
    let half_a_head = "POST /complete HTTP/1.1\r\nHost: x\r\n";
    let half_a_body = "POST /complete HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
                       Content-Length: 100\r\n\r\n{\"outfit\"";
    let mut slow = Vec::new();
    for text in [half_a_head, half_a_body, ""] {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(text.as_bytes())?;
        slow.push(stream);
    }
    let mut idle = TcpStream::connect(address)?;
    idle.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")?;
    let read = idle.read(&mut [0; 1024])?;
    anyhow::ensure!(read > 0, "it answers");
    slow.push(idle);
    Ok(slow)
}
