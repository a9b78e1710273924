//! `/metrics` and `Server-Timing`.

use std::{
    collections::{HashMap, HashSet},
    time::{Instant, SystemTime},
};

use atelier_core::domain::Method;
use atelier_engine::inference::{AskError, BLANK, Question};
use serde_json::json;

use crate::harness::{Demo, Service, TestDatabase, apply, json::number, on_sqlite};

/// A scrape: each sample by its name and labels as written.
struct Scrape {
    text: String,
    samples: HashMap<String, f64>,
}

impl Scrape {
    async fn read(service: &Service) -> Self {
        // As a Prometheus server asks.
        let accepted =
            "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        let answer = service.get("/metrics").header("accept", accepted).is(200).await;
        let content_type = answer.header("content-type");
        assert_eq!(content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
        let text = answer.text();
        Self { samples: parse(&text), text }
    }

    fn value(&self, sample: &str) -> f64 {
        *self.samples.get(sample).unwrap_or_else(|| panic!("{sample} is missing in\n{}", self.text))
    }

    #[track_caller]
    fn has(&self, expected: &[(&str, u32)]) {
        for &(sample, value) in expected {
            let found = self.value(sample);
            assert!((found - f64::from(value)).abs() < 1e-9, "{sample} is {found}");
        }
    }
}

/// What the library that writes the text leaves to the service: every family is described once, no sample occurs twice, and
/// each value is a finite number.
fn parse(text: &str) -> HashMap<String, f64> {
    let body = text.strip_suffix("# EOF\n").expect("it ends as OpenMetrics does");
    let (mut samples, mut families) = (HashMap::new(), HashSet::new());
    for line in body.lines() {
        if let Some(about) = line.strip_prefix("# ") {
            let [what, family, rest] = about.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            assert!(family.starts_with("atelier_") || family.starts_with("process_"), "{line}");
            assert!(families.insert((what, family)) && !rest.is_empty(), "{line}");
            assert!(what != "UNIT" || family.ends_with(&format!("_{rest}")), "{line}");
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').expect(line);
        let value: f64 = value.parse().expect(line);
        assert!(value.is_finite() && value >= 0.0, "{line}");
        assert!(samples.insert(sample.to_owned(), value).is_none(), "twice: {line}");
    }
    samples
}

/// Articles that all methods know.
const OUTFIT: [&str; 4] = ["a-00315", "a-01317", "a-00587", "a-00170"];

#[apply(on_sqlite)]
async fn counts_requests_and_inference(db: TestDatabase) {
    // With its own models: shared ones count elsewhere.
    crate::harness::fill(&db).await;
    let service = Service::start(&db).await;
    service.releases.serve("demo").await.unwrap();
    let request = json!({"outfit": [OUTFIT[0], null, null], "method": "gsu"});
    for _ in 0..3 {
        service.complete(&request).await;
    }
    service.ask_ok("/score", json!({"outfit": OUTFIT, "method": "none"})).await;
    service.send("/complete", json!({"outfit": 1})).is(422).await;
    service.get("/customers/a-particular-customer").is(404).await;
    service.get("/a/page/of/mine").is(404).await;
    let made_up = reqwest::Method::from_bytes(b"BREW").unwrap();
    service.call(made_up, "/livez").is(405).await;

    // Asked of the engine itself: the deadline is over before a model is free.
    let live = service.releases.current().unwrap();
    let serving = &live.serving;
    let context = vec![Vec::new(); serving.release().schema().features().len()].into();
    let question = Question { k: 1, ..Question::new(live.rows.clone(), vec![BLANK], 0, context) };
    let late = serving.ask(Method::Np, vec![question], Instant::now()).await.unwrap_err();
    assert!(matches!(late, AskError::Deadline { .. }), "{late}");

    let scrape = Scrape::read(&service).await;
    scrape.has(&[
        (r#"atelier_http_request_duration_seconds_count{method="POST",route="/complete",status="200"}"#, 3),
        (r#"atelier_http_request_duration_seconds_bucket{le="10.0",method="POST",route="/complete",status="200"}"#, 3),
        (r#"atelier_http_request_duration_seconds_count{method="POST",route="/complete",status="422"}"#, 1),
        (r#"atelier_http_request_duration_seconds_count{method="POST",route="/score",status="200"}"#, 1),
        (r#"atelier_http_request_duration_seconds_count{method="GET",route="/customers/{id}",status="404"}"#, 1),
        (r#"atelier_http_request_duration_seconds_count{method="GET",route="none",status="404"}"#, 1),
        (r#"atelier_http_request_duration_seconds_count{method="other",route="/livez",status="405"}"#, 1),
        // Three requests with two blanks each, and one score, which asks about all articles at once.
        (r#"atelier_queue_duration_seconds_count{method="gsu"}"#, 3),
        (r#"atelier_inference_duration_seconds_count{method="gsu",release="demo",device="cpu"}"#, 3),
        (r#"atelier_batch_size_count{method="gsu"}"#, 3),
        (r#"atelier_batch_size_sum{method="gsu"}"#, 6),
        (r#"atelier_batch_size_bucket{le="1.0",method="gsu"}"#, 0),
        (r#"atelier_batch_size_bucket{le="2.0",method="gsu"}"#, 3),
        (r#"atelier_batch_size_sum{method="none"}"#, 4),
        (r#"atelier_queue_size{method="gsu"}"#, 0),
        (r#"atelier_queue_limit{method="gsu"}"#, 1024),
        (r#"atelier_workers{method="c"}"#, 1),
        (r#"atelier_requests_rejected_total{method="np",reason="deadline"}"#, 1),
        (r#"atelier_requests_rejected_total{method="gsu",reason="queue-full"}"#, 0),
        (r#"atelier_model_info{release="demo",method="gsu",device="cpu"}"#, 1),
    ]);
    for sent in ["a-particular-customer", "a/page/of/mine", "BREW"] {
        assert!(!scrape.text.contains(sent), "{sent} came from a caller");
    }
    let inferred =
        scrape.value(r#"atelier_inference_duration_seconds_sum{method="gsu",release="demo",device="cpu"}"#);
    assert!(inferred > 0.0 && inferred < 60.0, "{inferred}");
    let plain = service.get("/metrics").await;
    assert_eq!(plain.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert!(scrape.text.contains(&format!("atelier_build_info{{version=\"{}\"", env!("CARGO_PKG_VERSION"))));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    let began = scrape.value("process_start_time_seconds");
    assert!(began > now - 86_400.0 && began <= now + 1.0, "{began} {now}");
    assert!(scrape.value("process_resident_memory_bytes") > 1e6);
    assert!(scrape.value("process_cpu_seconds_total") > 0.0);

    // Counting continues after a swap.
    service.releases.serve("demo").await.unwrap();
    service.complete(request).await;
    Scrape::read(&service).await.has(&[(r#"atelier_batch_size_count{method="gsu"}"#, 4)]);
}

#[apply(on_sqlite)]
async fn nothing_is_counted_before_it_happens(service: Service) {
    let scrape = Scrape::read(&service).await;
    // The scrape itself is not done yet, no release is served, and no method could turn anything away.
    for part in ["route=", "atelier_model_info", "reason="] {
        assert!(!scrape.text.contains(part), "{part} in {}", scrape.text);
    }
    let scraped =
        r#"atelier_http_request_duration_seconds_count{method="GET",route="/metrics",status="200"}"#;
    Scrape::read(&service).await.has(&[(scraped, 1)]);
}

#[apply(on_sqlite)]
async fn answers_report_their_timing(Demo(service): Demo) {
    let (outfit, blanked) = (json!({"outfit": OUTFIT}), json!({"outfit": [OUTFIT[0], null]}));
    for (path, request) in [("/complete", &blanked), ("/compare", &blanked), ("/score", &outfit)] {
        let answer = service.send(path, request).is(200).await;
        let timing = answer.json()["timing"].take();
        let [queue, inference, total] =
            ["queue_ms", "inference_ms", "total_ms"].map(|name| number(&timing[name]));
        let told = format!("queue;dur={queue}, inference;dur={inference}, total;dur={total}");
        assert_eq!(answer.header("server-timing"), told, "{path}");
        assert!(inference > 0.0 && total >= inference, "{path}: {told}");
    }
    let refused = service.send("/complete", json!({})).await;
    assert_eq!(refused.header("server-timing"), "", "a problem used no model");
}
