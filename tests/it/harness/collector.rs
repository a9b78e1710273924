//! An OpenTelemetry collector: takes spans over HTTP and keeps the parts of them that tests look at.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value, trace::v1,
};
use prost::Message;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A span as it was sent. Ids are hexadecimal.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub name: String,
    pub kind: v1::span::SpanKind,
    pub began: u64,
    pub ended: u64,
    pub attributes: HashMap<String, Value>,
}

/// Takes all that is sent to `/v1/traces`, as a collector does.
pub async fn start() -> (String, Arc<Mutex<Vec<Span>>>) {
    let spans: Arc<Mutex<Vec<Span>>> = Arc::default();
    let take = async |State(spans): State<Arc<Mutex<Vec<Span>>>>, headers: HeaderMap, body: Bytes| {
        assert_eq!(headers["content-type"], "application/x-protobuf");
        let request = ExportTraceServiceRequest::decode(body).unwrap();
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        spans.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans).map(Span::from));
        Bytes::new()
    };
    let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&spans));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, router).await });
    (url, spans)
}

impl From<v1::Span> for Span {
    fn from(span: v1::Span) -> Self {
        let attributes = span.attributes.into_iter().map(|pair| {
            let value = match pair.value.and_then(|value| value.value) {
                Some(any_value::Value::StringValue(text)) => json!(text),
                Some(any_value::Value::IntValue(number)) => json!(number),
                other => panic!("{other:?}"),
            };
            (pair.key, value)
        });
        Self {
            trace: hex::encode(span.trace_id),
            id: hex::encode(span.span_id),
            parent: hex::encode(span.parent_span_id),
            name: span.name,
            kind: span.kind.try_into().unwrap(),
            began: span.start_time_unix_nano,
            ended: span.end_time_unix_nano,
            attributes: attributes.collect(),
        }
    }
}
