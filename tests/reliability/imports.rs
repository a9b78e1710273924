//! A long import while requests read and write: readers see all of it or nothing, writers do not wait for its end, and what they
//! write is not overwritten. It is killed at several moments, and so is the service that imports.

use std::{
    fmt::Write as _,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::{runtime::Runtime, time::sleep};

use crate::{
    Ran,
    load::Service,
    report::{Form, Report},
    server::{Setup, on_postgres},
};

/// Articles of the file that requests put meanwhile.
const PUT: usize = 10;
/// Far more than a slice takes; the long form checks a second.
const LONGEST: Duration = Duration::from_secs(5);

pub fn sqlite(form: Form) -> Ran {
    run(&Setup::sqlite()?, form)
}

pub fn postgres(form: Form) -> Ran {
    on_postgres(|setup| run(setup, form))
}

/// What requests saw during an import.
#[derive(Default)]
struct Meanwhile {
    puts: usize,
    longest_put: Duration,
    longest_sign_in: Duration,
    /// The last number that was stored under each of the ids.
    stored: [usize; PUT],
    mixed: Vec<String>,
}

fn run(setup: &Setup, form: Form) -> Ran {
    Runtime::new()?.block_on(import(setup, form))
}

async fn import(setup: &Setup, form: Form) -> Ran {
    let (rows, kills) = form.pick((20_000, 4), (200_000, 20));
    let http = Client::builder().timeout(Duration::from_mins(1)).build()?;
    let service = &Service { http, ..Service::new(setup.url()) };
    let mut report = Report::default();
    let articles = |round| anyhow::Ok(setup.import(&write_articles(setup, rows, round)?));
    let mut server = setup.start()?;

    // A new catalogue, then one in which every row changes; outfits last.
    for (name, round) in [("import_1", 1), ("import_2", 2), ("outfits", 2)] {
        let is_outfits = name == "outfits";
        let mut import =
            if is_outfits { setup.import(&write_outfits(setup, rows)?) } else { articles(round)? };
        let began = Instant::now();
        let (success, seen) = watch(service, import.spawn()?).await?;
        report.promise(success, format!("{name} failed"));
        report.decimal(&format!("{name}_s"), began.elapsed().as_secs_f64());
        note(&mut report, form, name, &seen);
        let kept = numbers(service).await?;
        report.promise(kept == seen.stored, format!("stored {:?}, found {kept:?}", seen.stored));
        let found = rounds(service).await?;
        report.promise(is_outfits || found == [round], format!("not all rows are of {round}: {found:?}"));
    }

    // How long it takes by itself, for the moments of the kills.
    let (mut last, mut taken_back) = (3, 0);
    let began = Instant::now();
    report.promise(articles(last)?.status()?.success(), "import 3 failed");
    let took = began.elapsed();
    for kill in 0..kills {
        let round = 4 + kill;
        let mut child = articles(round)?.spawn()?;
        sleep(took * (kill + 1) / (kills + 1)).await;
        child.kill()?;
        child.wait()?;
        let found = rounds(service).await?;
        report.promise(found == [last] || found == [round], format!("{last} or {round}, not {found:?}"));
        taken_back += u32::from(found == [last]);
        last = found.first().copied().context("the catalogue is empty")?;
    }
    // The service itself is killed while it imports.
    let body = fs::read(write_articles(setup, rows, 1000)?.join("articles.jsonl"))?;
    let bulk = service.http.post(format!("{}/articles/bulk", service.url));
    let bulk = bulk.header("content-type", "application/x-ndjson");
    let sent = tokio::spawn(bulk.body(body).send());
    sleep(took / 2).await;
    server.kill()?;
    sent.abort();
    server = setup.start()?;
    let found = rounds(service).await?;
    report.promise(found == [last] || found == [1000], format!("{last} or 1000, not {found:?}"));
    // Likewise while a feed that mirrors runs: its import is known afterwards.
    last = found.first().copied().context("the catalogue is empty")?;
    let body = fs::read(write_articles(setup, rows, 1001)?.join("articles.jsonl"))?;
    let feed = format!("{}/feeds/shop?mode=mirror&mirror_limit=100", service.url);
    let feed = service.http.post(feed).body(body);
    let sent: Value = feed.send().await?.error_for_status()?.json().await?;
    let (id, began) = (sent["id"].as_i64().context("an id")?, Instant::now());
    while state(service, id).await? == "waiting" {
        ensure!(began.elapsed() < Duration::from_mins(1), "the feed's import waits");
        sleep(Duration::from_millis(20)).await;
    }
    sleep(took / 3).await;
    server.kill()?;
    server = setup.start()?;
    let (found, ended) = (rounds(service).await?, state(service, id).await?);
    let old = service.get("/articles/a-00134").await.is_ok();
    let is_old = found == [last] && old && ended == "interrupted";
    let is_new = found == [1001] && !old && ["done", "interrupted"].contains(&ended.as_str());
    report.promise(is_old || is_new, format!("a killed mirror is {ended}, with {found:?}; it was {last}"));
    // And the next import finds everything as it should be.
    let ended = articles(2000)?.status()?;
    let found = rounds(service).await?;
    report.promise(ended.success() && found == [2000], format!("2000 after kills, not {found:?}"));
    report.promise(taken_back > 0, "no import was killed before its end");
    report.figure("rows", rows);
    report.figure("kills", kills + 2);
    report.figure("taken_back", taken_back);
    drop(server);
    Ok(report)
}

fn note(report: &mut Report, form: Form, name: &str, seen: &Meanwhile) {
    let Meanwhile { puts, longest_put, longest_sign_in, mixed, .. } = seen;
    report.figure(&format!("{name}_puts"), *puts);
    report.decimal(&format!("{name}_longest_put_ms"), longest_put.as_secs_f64() * 1e3);
    report.decimal(&format!("{name}_longest_sign_in_ms"), longest_sign_in.as_secs_f64() * 1e3);
    let longest = (*longest_put).max(*longest_sign_in);
    report.promise(longest < LONGEST, format!("a write waited {longest:?} during {name}"));
    report.measured_promise(form, longest < Duration::from_secs(1), format!("a write waited {longest:?}"));
    report.promise(mixed.is_empty(), format!("half of {name} was visible: {mixed:?}"));
    report.promise(*puts >= 2 * PUT, format!("only {puts} writes during {name}"));
}

/// Puts articles, signs in and lists articles until the import ends.
async fn watch(service: &Service, mut import: std::process::Child) -> Result<(bool, Meanwhile)> {
    let mut seen = Meanwhile::default();
    loop {
        let ended = import.try_wait()?;
        for id in 0..PUT {
            seen.puts += 1;
            let body = json!({"type": "put", "number": seen.puts});
            let began = Instant::now();
            service.json(Method::PUT, &format!("/articles/p-{id}"), &body).await?;
            seen.longest_put = seen.longest_put.max(began.elapsed());
            seen.stored[id] = seen.puts;
        }
        let found = rounds(service).await?;
        if found.len() > 1 {
            seen.mixed.push(format!("{found:?}"));
        }
        if let Some(status) = ended {
            return Ok((status.success(), seen));
        }
        // A wrong password is noted in the audit log.
        let began = Instant::now();
        let form = "name=nobody&password=wrong+horse+battery&next=%2F";
        let request = service.http.post(format!("{}/sign-in", service.url));
        let request = request.header("sec-fetch-site", "same-origin");
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
        ensure!(request.send().await?.status().as_u16() < 500, "a sign-in failed");
        seen.longest_sign_in = seen.longest_sign_in.max(began.elapsed());
    }
}

/// The state of a feed's import.
async fn state(service: &Service, id: i64) -> Result<String> {
    let import = service.get(&format!("/imports/{id}")).await?;
    Ok(import["state"].as_str().context("a state")?.to_owned())
}

/// The rounds of the articles that one list shows.
async fn rounds(service: &Service) -> Result<Vec<u32>> {
    let list = service.get("/articles?type=imported&n=500").await?;
    let round = |item: &Value| item["round"].as_u64().and_then(|round| u32::try_from(round).ok());
    let mut rounds: Vec<u32> = list["items"].as_array().context("items")?.iter().filter_map(round).collect();
    rounds.sort_unstable();
    rounds.dedup();
    Ok(rounds)
}

async fn numbers(service: &Service) -> Result<[usize; PUT]> {
    let mut numbers = [0; PUT];
    for (id, number) in numbers.iter_mut().enumerate() {
        let found = service.get(&format!("/articles/p-{id}")).await?;
        *number = found["number"].as_u64().and_then(|number| number.try_into().ok()).unwrap_or_default();
    }
    Ok(numbers)
}

/// A folder with a file of articles. In no order, so that the list of the first ones is written in many slices. Those that requests put are among them.
fn write_articles(setup: &Setup, rows: usize, round: u32) -> Result<PathBuf> {
    let mut lines = String::new();
    for n in 0..rows {
        let n = n * 7919 % rows;
        writeln!(lines, "{{\"id\":\"i-{n:06}\",\"type\":\"imported\",\"round\":{round}}}")?;
        if n < PUT {
            writeln!(lines, "{{\"id\":\"p-{n}\",\"type\":\"imported\",\"round\":{round}}}")?;
        }
    }
    let folder = setup.folder.path().join("articles");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("articles.jsonl"), lines)?;
    Ok(folder)
}

fn write_outfits(setup: &Setup, rows: usize) -> Result<PathBuf> {
    let (mut customers, mut outfits) = (String::new(), String::new());
    for n in 0..1000 {
        writeln!(customers, "{{\"id\":\"i-{n}\",\"features\":{{}}}}")?;
    }
    for n in 0..rows {
        let article = |k: usize| format!("\"i-{:06}\"", (n + k * 17) % rows);
        let articles = [1, 2, 3, 4].map(article).join(",");
        writeln!(outfits, "{{\"customer\":\"i-{}\",\"articles\":[{articles}]}}", n % 1000)?;
    }
    let folder = setup.folder.path().join("outfits");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("customers.jsonl"), customers)?;
    fs::write(folder.join("outfits.jsonl"), outfits)?;
    Ok(folder)
}
