//! A collector of OpenTelemetry's: takes spans over HTTP and reads as much of them as tests look at.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, routing::post};
use tokio::net::TcpListener;

/// A span as the collector was told of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Span {
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub name: String,
    pub kind: u64,
    pub began: u64,
    pub ended: u64,
    pub attributes: HashMap<String, Value>,
}

/// A field of a protobuf message.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Value {
    pub fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }

    pub fn number(&self) -> u64 {
        let Self::Number(number) = self else { panic!("a number: {self:?}") };
        *number
    }

    fn bytes(&self) -> &[u8] {
        let Self::Bytes(bytes) = self else { panic!("bytes: {self:?}") };
        bytes
    }
}

/// Takes all that is sent to `/v1/traces`, as a collector does.
pub async fn start() -> (String, Arc<Mutex<Vec<Span>>>) {
    let spans: Arc<Mutex<Vec<Span>>> = Arc::default();
    let take = async |State(spans): State<Arc<Mutex<Vec<Span>>>>, headers: HeaderMap, body: Bytes| {
        assert_eq!(headers["content-type"], "application/x-protobuf");
        spans.lock().unwrap().extend(read(&body));
        Bytes::new()
    };
    let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&spans));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, router).await });
    (url, spans)
}

/// `ExportTraceServiceRequest` → `ResourceSpans` → `ScopeSpans` → `Span`.
fn read(request: &[u8]) -> Vec<Span> {
    let inside = |message: &[u8], wanted: u64| -> Vec<Vec<u8>> {
        let found = fields(message).into_iter().filter(|(field, _)| *field == wanted);
        found.map(|(_, value)| value.bytes().to_vec()).collect()
    };
    let resources = inside(request, 1);
    let scopes = resources.iter().flat_map(|resource| inside(resource, 2));
    scopes.flat_map(|scope| inside(&scope, 2)).map(|span| span_of(&span)).collect()
}

fn span_of(message: &[u8]) -> Span {
    let mut span = Span::default();
    for (field, value) in fields(message) {
        match field {
            1 => span.trace = hex::encode(value.bytes()),
            2 => span.id = hex::encode(value.bytes()),
            4 => span.parent = hex::encode(value.bytes()),
            5 => span.name = value.text(),
            6 => span.kind = value.number(),
            7 => span.began = value.number(),
            8 => span.ended = value.number(),
            9 => {
                let pair = fields(value.bytes());
                let (_, value) = fields(pair[1].1.bytes()).remove(0);
                span.attributes.insert(pair[0].1.text(), value);
            }
            _ => {}
        }
    }
    span
}

fn fields(mut message: &[u8]) -> Vec<(u64, Value)> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut message)),
            1 => Value::Number(u64::from_le_bytes(take(&mut message, 8).try_into().unwrap())),
            2 => {
                let length = varint(&mut message);
                Value::Bytes(take(&mut message, usize::try_from(length).unwrap()).to_vec())
            }
            5 => Value::Number(u32::from_le_bytes(take(&mut message, 4).try_into().unwrap()).into()),
            other => panic!("wire type {other}"),
        };
        found.push((key >> 3, value));
    }
    found
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = take(message, 1)[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

fn take<'a>(message: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = message.split_at(count);
    *message = rest;
    taken
}
