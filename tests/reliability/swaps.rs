//! Releases are swapped under load, every third time for a broken one.

use std::{sync::Arc, thread, time::Duration};

use anyhow::{Result, ensure};
use tokio::runtime::Runtime;

use crate::{
    Ran, demo,
    load::{Load, Service, bodies, percentile},
    releases::{self, BROKEN},
    report::{Form, Report},
    server::{Server, Setup, models},
};

/// Swaps before memory is compared: the first ones fill caches and load copies of models.
const WARM_UP: usize = 10;

pub fn run(form: Form) -> Ran {
    let (swaps, callers) = form.pick((15, 4), (100, 16));
    let folder = releases::folder()?;
    let setup = Setup::sqlite()?.models(folder.path());
    let server = setup.start()?;
    let service = Service::new(setup.url());
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let methods: Vec<String> = demo::methods().into_iter().map(String::from).collect();
        let bodies = Arc::new(bodies(&models().join("demo"), &methods, 20)?);
        let load = Load::start(&service, &bodies, callers, usize::MAX);
        let mut report = Report::default();
        for _ in 0..WARM_UP {
            activate(&service, "demo").await?;
        }
        let before = settled(&server)?;
        let (mut broken, mut most) = (0, before);
        for swap in 0..swaps {
            if swap * 3 % 10 < 3 {
                let (name, word) = BROKEN[broken % BROKEN.len()];
                let (status, answer) = service.activate(name).await?;
                let refused = status == 409 && answer["detail"].as_str().unwrap_or_default().contains(word);
                report.promise(refused, format!("{name} is not refused with {word:?}: {status}: {answer}"));
                broken += 1;
            } else {
                activate(&service, "demo").await?;
            }
            most = server.resident()?.max(most);
        }
        let after = settled(&server)?;
        let answered = load.stop().await;
        let mut times: Vec<Duration> = answered.iter().map(|answer| answer.took).collect();
        report.figure("swaps", swaps);
        report.figure("of_them_broken", broken);
        report.figure("requests", answered.len());
        report.figure("p99_ms", percentile(&mut times, 99));
        report.decimal("mb_before", before);
        report.decimal("mb_most", most);
        report.decimal("mb_after", after);
        report.decimal("grown_by_percent", (after / before - 1.0) * 100.0);
        report.promise(!answered.is_empty(), "no request was sent meanwhile");
        report.promise_whole("requests", &answered);
        report.measured_promise(form, after <= before * 1.05, format!("{before:.0} MB became {after:.0}"));
        Ok(report)
    })
}

async fn activate(service: &Service, name: &str) -> Result<()> {
    let (status, answer) = service.activate(name).await?;
    ensure!(status == 200, "activating {name}: {status}: {answer}");
    Ok(())
}

/// Memory after the release before is freed, under continued load: the median of several samples.
fn settled(server: &Server) -> Result<f64> {
    thread::sleep(Duration::from_millis(500));
    let look = |_| {
        thread::sleep(Duration::from_millis(50));
        server.resident()
    };
    let mut looks = (0..9).map(look).collect::<Result<Vec<f64>>>()?;
    looks.sort_by(f64::total_cmp);
    Ok(looks[looks.len() / 2])
}
