//! `/metrics` and `Server-Timing`.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::{Instant, SystemTime},
};

use atelier::config::Limits;
use atelier_core::domain::{ArticleId, Method, Outfit};
use atelier_engine::{
    inference::{AskError, BLANK, Question},
    release::Release,
};
use serde_json::json;

use super::{Demo, Service, models, rows};
use crate::harness::{TestDatabase, apply, on_sqlite};

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
        let request = service.get("/metrics").header("accept", accepted);
        let answer = request.is(200).await;
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
            assert!(
                (self.value(sample) - f64::from(value)).abs() < 1e-9,
                "{sample} is {}",
                self.value(sample)
            );
        }
    }
}

/// As strict as a Prometheus server: every sample belongs to the family described just before it, none occurs twice,
/// buckets add up.
fn parse(text: &str) -> HashMap<String, f64> {
    let body = text.strip_suffix("# EOF\n").expect("it ends as OpenMetrics does");
    let (mut samples, mut families) = (HashMap::new(), HashSet::new());
    let (mut family, mut kind) = ("", "");
    let mut buckets: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let [what, name, rest] = comment.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            match what {
                "HELP" => {
                    assert!(families.insert(name) && !rest.is_empty(), "{line}");
                    family = name;
                }
                "TYPE" => {
                    assert!(["counter", "gauge", "histogram"].contains(&rest), "{line}");
                    assert_eq!(name, family);
                    kind = rest;
                }
                "UNIT" => assert!(name == family && name.ends_with(&format!("_{rest}")), "{line}"),
                _ => panic!("{line}"),
            }
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').expect(line);
        let value: f64 = value.parse().expect(line);
        assert!(value.is_finite() && value >= 0.0, "{line}");
        let (name, labels) = sample
            .split_once('{')
            .map_or((sample, ""), |(name, rest)| (name, rest.strip_suffix('}').expect("braces are closed")));
        assert!(family.starts_with("atelier_") || family.starts_with("process_"), "{line}");
        let ending = name.strip_prefix(family).expect("it belongs to the family above");
        let endings: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_sum", "_count", "_bucket"],
            _ => &[""],
        };
        assert!(endings.contains(&ending), "{line}");
        let mut others = Vec::new();
        let mut least = None;
        for (name, value) in pairs(labels) {
            if name == "le" {
                least = Some(value.replace("+Inf", "inf").parse::<f64>().expect(line));
            } else {
                others.push(format!("{name}=\"{value}\""));
            }
        }
        assert_eq!(least.is_some(), ending == "_bucket", "{line}");
        if ending == "_bucket" {
            let series = buckets.entry(format!("{family}{{{}}}", others.join(","))).or_default();
            assert!(series.last().is_none_or(|before| *before <= value), "buckets are cumulative: {line}");
            series.push(value);
        }
        assert!(samples.insert(sample.to_owned(), value).is_none(), "twice: {line}");
    }
    for (series, counts) in buckets {
        let (family, labels) = series.split_once('{').unwrap();
        let labels = if labels == "}" { String::new() } else { format!("{{{labels}") };
        assert_eq!(counts.last(), samples.get(&format!("{family}_count{labels}")), "{series}");
    }
    samples
}

/// `name="value"`, separated by commas; a value ends at a quote without a backslash before it.
fn pairs(mut labels: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    while !labels.is_empty() {
        let (name, rest) = labels.split_once("=\"").expect("a name and a quote");
        assert!(!name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
        let bytes = rest.as_bytes();
        let end = (0..bytes.len()).find(|&at| bytes[at] == b'"' && (at == 0 || bytes[at - 1] != b'\\'));
        let (value, rest) = rest.split_at(end.expect("a quote that closes"));
        found.push((name, value));
        labels = rest[1..].strip_prefix(',').unwrap_or(&rest[1..]);
    }
    found
}

/// With its own models: shared ones count elsewhere.
async fn start(db: &TestDatabase) -> Service {
    crate::web::fill(db).await;
    let service = Service::start_in(db, Limits::default(), models()).await;
    service.releases.serve("demo").await.unwrap();
    service
}

/// An outfit of articles that all methods know.
fn outfit() -> Vec<String> {
    let vocabulary = Release::open(&models().join("demo")).unwrap();
    let is_known = |id: &ArticleId| vocabulary.vocabulary().index_of(id.as_str()).is_some();
    let outfits = rows::<Outfit>();
    let known = outfits.iter().find(|outfit| outfit.articles().iter().all(is_known)).unwrap();
    known.articles().iter().map(ToString::to_string).collect()
}

#[apply(on_sqlite)]
async fn counts_requests_and_inference(db: TestDatabase) {
    let service = start(&db).await;
    let request = |method: &str| json!({"outfit": [outfit()[0], null, null], "method": method});
    for _ in 0..3 {
        service.ask_ok("/complete", &request("gsu")).await;
    }
    service.ask_ok("/score", &json!({"outfit": outfit(), "method": "none"})).await;
    assert_eq!(service.ask("/complete", &json!({"outfit": 1})).await.0, 422);
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
    let scored = u32::try_from(outfit().len()).unwrap();
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
        (r#"atelier_batch_size_sum{method="none"}"#, scored),
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
    service.ask_ok("/complete", &request("gsu")).await;
    Scrape::read(&service).await.has(&[(r#"atelier_batch_size_count{method="gsu"}"#, 4)]);
}

#[apply(on_sqlite)]
async fn nothing_is_counted_before_it_happens(service: Service) {
    let scrape = Scrape::read(&service).await;
    assert!(!scrape.text.contains("route="), "the scrape itself is not done yet: {}", scrape.text);
    assert!(!scrape.text.contains("atelier_model_info"), "no release is served");
    assert!(!scrape.text.contains("reason="), "no method could turn anything away");
    Scrape::read(&service).await.has(&[(
        r#"atelier_http_request_duration_seconds_count{method="GET",route="/metrics",status="200"}"#,
        1,
    )]);
}

#[apply(on_sqlite)]
async fn answers_report_their_timing(Demo(service): Demo) {
    let blanked = json!({"outfit": [outfit()[0], null]});
    for (path, request) in
        [("/complete", &blanked), ("/compare", &blanked), ("/score", &json!({"outfit": outfit()}))]
    {
        let answer = service.send(path, request).await;
        assert_eq!(answer.status(), 200, "{path}");
        let told = answer.header("server-timing").to_owned();
        let timing = answer.json()["timing"].take();
        let of = |name: &str| timing[name].as_f64().unwrap();
        let expected = format!(
            "queue;dur={}, inference;dur={}, total;dur={}",
            of("queue_ms"),
            of("inference_ms"),
            of("total_ms")
        );
        assert_eq!(told, expected, "{path}");
        assert!(of("inference_ms") > 0.0 && of("total_ms") >= of("inference_ms"), "{path}: {told}");
    }
    let refused = service.post("/complete", "application/json", "{}").await;
    assert_eq!(refused.header("server-timing"), "", "a problem used no model");
}
