//! A request to the service as a value, and its answer, read whole.

use std::{borrow::Borrow, fmt::Display, future::IntoFuture, io::Write, pin::Pin};

use flate2::{Compression, write::GzEncoder};
use reqwest::{
    Body, RequestBuilder,
    header::{HeaderMap, HeaderValue},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::harness::json;

/// A request that is sent when it is awaited.
#[must_use]
pub struct Call(pub RequestBuilder);

impl Call {
    pub fn header(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        Self(self.0.header(name, HeaderValue::from_bytes(value.as_ref()).unwrap()))
    }

    /// With an API key.
    pub fn key(self, key: impl Display) -> Self {
        Self(self.0.bearer_auth(key))
    }

    pub fn json(self, body: impl Borrow<Value>) -> Self {
        Self(self.0.json(body.borrow()))
    }

    pub fn body(self, content_type: &str, body: impl Into<Body>) -> Self {
        Self(self.0.header("content-type", content_type).body(body))
    }

    pub fn form(self, fields: &[(&str, &str)]) -> Self {
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.body("application/x-www-form-urlencoded", form)
    }

    /// The answer, which must have this status.
    #[track_caller]
    pub fn is(self, status: u16) -> impl Future<Output = Answer> + Send {
        let caller = std::panic::Location::caller();
        async move {
            let answer = self.await;
            assert_eq!(answer.status, status, "{caller}: {}: {}", answer.request, answer.text());
            answer
        }
    }

    /// The JSON of an answer that must be a 200.
    #[track_caller]
    pub fn ok(self) -> impl Future<Output = Value> + Send {
        let answer = self.is(200);
        async move { answer.await.json() }
    }
}

impl IntoFuture for Call {
    type Output = Answer;
    type IntoFuture = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async {
            let (client, request) = self.0.build_split();
            let request = request.unwrap();
            let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
            let body: String = std::str::from_utf8(body).unwrap_or("bytes").chars().take(300).collect();
            let sent = format!("{} {} {body}", request.method(), request.url());
            let answer = client.execute(request).await.unwrap_or_else(|error| panic!("{sent}: {error:?}"));
            let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
            let body = answer.bytes().await.unwrap_or_else(|error| panic!("{sent}: {error:?}"));
            Answer { request: sent, status, headers, body: body.into() }
        })
    }
}

/// What the service answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its method, address and the start of its body.
    pub request: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn status(&self) -> u16 {
        self.status
    }

    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn is_refused(&self) -> bool {
        (400..500).contains(&self.status)
    }

    /// Empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn headers(&self, name: &str) -> Vec<&str> {
        self.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Value {
        self.read()
    }

    pub fn read<T: DeserializeOwned>(&self) -> T {
        let read = serde_json::from_slice(&self.body);
        read.unwrap_or_else(|error| panic!("{}: {error}: {} {}", self.request, self.status, self.text()))
    }

    /// A problem of this status about these fields, in any order.
    #[track_caller]
    pub fn assert_problem(&self, status: u16, pointers: &[&str]) -> Value {
        let found = (self.status, self.header("content-type"));
        assert_eq!(found, (status, "application/problem+json"), "{}: {}", self.request, self.text());
        let problem = self.json();
        let errors = problem["errors"].as_array().into_iter().flatten();
        let mut found: Vec<&str> = errors.filter_map(|error| error["pointer"].as_str()).collect();
        let mut expected = pointers.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{}: {problem:#}", self.request);
        problem
    }
}

/// Rows of a stream, one a line.
pub fn json_lines(rows: impl IntoIterator<Item = impl Display>) -> String {
    rows.into_iter().map(|row| format!("{row}\n")).collect::<Vec<_>>().concat()
}

/// Bytes as `gzip` packs them.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// The values at these paths of JSON, as a list: `pick(&import, "state result/added")` is `["done", 2]`.
pub fn pick(value: &Value, paths: &str) -> Value {
    let found = paths.split(' ').map(|path| value.pointer(&format!("/{path}")).cloned());
    found.map(Option::unwrap_or_default).collect()
}

/// What each item of a list has at this path.
pub fn each(list: &Value, path: &str) -> Value {
    json::list(list)
        .iter()
        .map(|item| item.pointer(&format!("/{path}")).cloned().unwrap_or_default())
        .collect()
}

/// The ids of the articles of suggestions, in their order.
pub fn ids(suggestions: &Value) -> Vec<String> {
    json::list(suggestions).iter().map(|one| json::text(&one["article"]["id"]).to_owned()).collect()
}

/// An answer has what is expected of it: each member of an object, where null is also one that is missing, and each
/// item of a list, which has no others.
#[track_caller]
pub fn assert_has(found: &Value, expected: impl Borrow<Value>) {
    let place = differs(found, expected.borrow());
    assert_eq!(place, None, "expected {:#} in {found:#}", expected.borrow());
}

/// Where it is not as expected.
fn differs(found: &Value, expected: &Value) -> Option<String> {
    let below = |name: &dyn Display, found: &Value, expected: &Value| {
        differs(found, expected).map(|place| format!("/{name}{place}"))
    };
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            let mut members = expected.iter();
            members.find_map(|(name, value)| below(name, found.get(name).unwrap_or(&Value::Null), value))
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            let mut items = found.iter().zip(expected).enumerate();
            items.find_map(|(place, (found, expected))| below(&place, found, expected))
        }
        _ => (found != expected).then(String::new),
    }
}
