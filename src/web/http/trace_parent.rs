//! A caller's trace (W3C Trace Context): its id stands in the request's log lines, and the header goes back
//! with the answer, so that whoever reads either finds the other. Spans of its own are [`trace`](super::trace)'s.

use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue},
    response::Response,
};

use crate::util::telemetry::Trace;

static HEADER: HeaderName = HeaderName::from_static("traceparent");

/// A `traceparent` that is what the standard says, in the request's extensions.
#[derive(Debug, Clone)]
pub(crate) struct TraceParent(HeaderValue);

impl TraceParent {
    /// `None` for what the standard says to ignore.
    fn new(value: &HeaderValue) -> Option<Self> {
        let text = value.to_str().ok()?;
        let parts: Vec<&str> = text.splitn(5, '-').collect();
        let hex = |part: &str, length: usize| {
            part.len() == length && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let [version, trace, parent, flags, rest @ ..] = &parts[..] else { return None };
        let known = hex(version, 2) && *version != "ff" && (rest.is_empty() || *version != "00");
        let set = |part: &str| part.bytes().any(|b| b != b'0');
        let sound = hex(trace, 32) && set(trace) && hex(parent, 16) && set(parent) && hex(flags, 2);
        (known && sound).then(|| Self(value.clone()))
    }

    /// Of a trace that begins here.
    pub(crate) fn of(trace: &Trace) -> Self {
        let value = HeaderValue::try_from(trace.trace_parent());
        Self(value.expect("numbers in hexadecimal are a header's value; this is a bug"))
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().expect("checked when it was taken; this is a bug")
    }

    pub(crate) fn trace_id(&self) -> &str {
        self.as_str().split('-').nth(1).expect("checked when it was taken; this is a bug")
    }

    pub(crate) fn put_on(self, response: &mut Response) {
        response.headers_mut().insert(HEADER.clone(), self.0);
    }
}

/// The request's, which it keeps among its extensions.
pub(crate) fn take(request: &mut Request) -> Option<TraceParent> {
    let parent = request.headers().get(&HEADER).and_then(TraceParent::new)?;
    request.extensions_mut().insert(parent.clone());
    Some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_trace_parent_and_what_is_not() {
        let taken = |text: &str| TraceParent::new(&HeaderValue::from_str(text).unwrap());
        let sound = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(taken(sound).unwrap().trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(taken(&format!("01{}-more", &sound[2..])).is_some(), "a later version may say more");
        for unsound in [
            String::new(),
            format!("{sound}-more"),
            format!("ff{}", &sound[2..]),
            sound.to_uppercase(),
            sound.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            sound.replace("00f067aa0ba902b7", "00f067"),
        ] {
            assert!(taken(&unsound).is_none(), "{unsound}");
        }
    }
}
