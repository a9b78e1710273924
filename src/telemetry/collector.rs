//! Where traces go: OTLP over HTTP, as protobuf, through the service's own client.
//!
//! It is asked from the one thread that sends spans, which may wait. A collector that is away is one warning until it is
//! back; what could not be delivered is dropped.

use std::{
    pin::Pin,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use atelier_core::util::http_client::{Client, Origin};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use ureq::http::header::{CONTENT_LENGTH, HOST};

/// How long a collector may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
const PATH: &str = "/v1/traces";

pub(super) fn exporter(origin: Origin) -> SpanExporter {
    SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{origin}{PATH}"))
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(PATIENCE)
        // The next spans are sent soon enough, and a stop does not wait for one that is away.
        .with_retry_policy(RetryPolicy::disabled())
        .with_http_client(Collector::new(origin))
        .build()
        .expect("an origin with a path is an endpoint, and there is a client")
}

/// The most bytes of a collector's answer, which says little.
const MOST_BYTES: u64 = 1 << 20;

#[derive(Debug)]
struct Collector {
    /// Asked by one thread; the lock is what lets it be shared at all.
    client: Mutex<Client>,
    away: AtomicBool,
}

impl Collector {
    fn new(origin: Origin) -> Self {
        Self { client: Mutex::new(Client::new(origin)), away: AtomicBool::new(false) }
    }

    fn send(&self, request: &Request<Bytes>) -> Result<Response<Bytes>, String> {
        let mut headers = request.headers().clone();
        // The client sets these itself.
        headers.remove(HOST);
        headers.remove(CONTENT_LENGTH);
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = client
            .post(PATH, headers, request.body(), MOST_BYTES, Instant::now() + PATIENCE)
            .map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            let status = answer.status().as_u16();
            return Err(format!("{}{PATH} answered with {status}, expected 200", client.origin()));
        }
        Ok(answer.map(Bytes::from))
    }

    fn note(&self, failed: Option<&str>) {
        let was_away = self.away.swap(failed.is_some(), Ordering::Relaxed);
        match failed {
            Some(reason) if !was_away => {
                tracing::warn!(reason, "dropping traces; logged once until the collector accepts them");
            }
            None if was_away => tracing::info!("the collector accepts traces again"),
            _ => {}
        }
    }
}

impl HttpClient for Collector {
    fn send_bytes<'client, 'answer>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'answer>>
    where
        'client: 'answer,
        Self: 'answer,
    {
        let answered = self.send(&request);
        self.note(answered.as_ref().err().map(String::as_str));
        Box::pin(std::future::ready(answered.map_err(HttpError::from)))
    }
}
