//! The log: a line on standard error for each event, as text on a terminal and as JSON elsewhere.
//!
//! Lines are appended to a buffer that one thread writes, so no answer waits for its line. What the future of a request logs says
//! which request it is, without a span: see [`Names`].

use std::{
    cell::RefCell,
    env,
    fmt::{self, Write as _},
    io::{self, IsTerminal, Write as _},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use atelier_core::util::calendar;
use tokio::{task::futures::TaskLocalFuture, task_local};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_log::NormalizeEvent;
use tracing_subscriber::{EnvFilter, layer::Layer, util::SubscriberInitExt};

const DEFAULT: &str = "info,ort=warn";
/// How long lines below warnings are collected before they are written.
const COLLECTED: Duration = Duration::from_millis(10);
/// While more bytes wait to be written, the threads that log wait, too.
const MOST_WAITING: usize = 1 << 20;
/// The most bytes that a pipe takes as a whole, if other processes write to it.
const PIPE_BYTES: usize = 4096;

task_local! {
    static REQUEST: Option<Names>;
}

thread_local! {
    /// The line that the thread is making.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Fields of log lines about a request.
#[derive(Debug, Clone)]
pub(crate) struct Names(Arc<[(&'static str, String)]>);

impl Names {
    pub(crate) fn new(names: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Those of the request that the caller is in.
    pub(crate) fn current() -> Option<Self> {
        REQUEST.try_with(Clone::clone).ok().flatten()
    }
}

/// The work as a part of the request.
pub(crate) fn scope<F: Future>(request: Option<Names>, work: F) -> TaskLocalFuture<Option<Names>, F> {
    REQUEST.scope(request, work)
}

/// Starts the log. `RUST_LOG` selects the events. All lines are written when the returned value is dropped.
pub(crate) fn start() -> Log {
    let filter = env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = if filter.is_empty() { DEFAULT } else { &filter };
    let (events, error) = match EnvFilter::try_new(filter) {
        Ok(events) => (events, None),
        Err(error) => (EnvFilter::new(DEFAULT), Some(error)),
    };
    let lines = Arc::new(Lines::default());
    let form = if io::stderr().is_terminal() {
        Form::Text { is_coloured: env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    } else {
        Form::Json
    };
    events.with_subscriber(Logger { form, lines: Arc::clone(&lines) }).init();
    let writer = thread::Builder::new().name("log".to_owned()).spawn({
        let lines = Arc::clone(&lines);
        move || lines.write_all()
    });
    if writer.is_err() {
        lines.lock().is_direct = true;
    }
    if let Some(error) = error {
        tracing::warn!("RUST_LOG={filter} is invalid ({error}); using {DEFAULT}");
    }
    Log { lines, writer: writer.ok() }
}

/// The log, until it is dropped. Then each thread writes the lines that it logs.
#[derive(Debug)]
pub(crate) struct Log {
    lines: Arc<Lines>,
    writer: Option<JoinHandle<()>>,
}

impl Drop for Log {
    fn drop(&mut self) {
        self.lines.lock().is_direct = true;
        self.lines.arrived.notify_one();
        // If it panicked, there is nothing to wait for.
        let _ = self.writer.take().map(JoinHandle::join);
    }
}

#[derive(Debug, Default)]
struct Lines {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    written: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    is_urgent: bool,
    /// There is no thread that writes.
    is_direct: bool,
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, line: &[u8], is_urgent: bool) {
        let is_full = |waiting: &mut Waiting| waiting.lines.len() > MOST_WAITING && !waiting.is_direct;
        let waiting = self.written.wait_while(self.lock(), is_full);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        if waiting.is_direct {
            drop(waiting);
            return write(line);
        }
        let was_empty = waiting.lines.is_empty();
        waiting.lines.extend_from_slice(line);
        let is_urgent = is_urgent || waiting.lines.len() > MOST_WAITING;
        let wakes = was_empty || is_urgent && !waiting.is_urgent;
        waiting.is_urgent |= is_urgent;
        drop(waiting);
        if wakes {
            self.arrived.notify_one();
        }
    }

    /// Writes until there is no more to come.
    fn write_all(&self) {
        let mut lines = Vec::new();
        loop {
            let waits = |waiting: &mut Waiting| waiting.lines.is_empty() && !waiting.is_direct;
            let waiting = self.arrived.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
            let more = |waiting: &mut Waiting| !waiting.is_urgent && !waiting.is_direct;
            let collected = self.arrived.wait_timeout_while(waiting, COLLECTED, more);
            let (mut waiting, _) = collected.unwrap_or_else(PoisonError::into_inner);
            if waiting.lines.is_empty() {
                return;
            }
            mem::swap(&mut lines, &mut waiting.lines);
            waiting.is_urgent = false;
            drop(waiting);
            self.written.notify_all();
            write(&lines);
            lines.clear();
        }
    }
}

/// As many whole lines at a time as a pipe takes. A log that cannot be written cannot say so.
fn write(mut lines: &[u8]) {
    let mut out = io::stderr().lock();
    while !lines.is_empty() {
        let ends_line = |byte: &u8| *byte == b'\n';
        let most = &lines[..lines.len().min(PIPE_BYTES)];
        let end = most.iter().rposition(ends_line).or_else(|| lines.iter().position(ends_line));
        let (now, rest) = lines.split_at(end.map_or(lines.len(), |at| at + 1));
        let _ = out.write_all(now);
        lines = rest;
    }
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Json,
    Text { is_coloured: bool },
}

/// Makes lines of events. There are no spans.
#[derive(Debug)]
struct Logger {
    form: Form,
    lines: Arc<Lines>,
}

impl Subscriber for Logger {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let is_urgent = *event.metadata().level() <= Level::WARN;
        let log = |line: &mut Vec<u8>| {
            line.clear();
            self.form.write(line, event);
            self.lines.add(line, is_urgent);
        };
        // A value that logs while it is written has a line of its own.
        LINE.with(|line| match line.try_borrow_mut() {
            Ok(mut line) => log(&mut line),
            Err(_) => log(&mut Vec::new()),
        });
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

impl Form {
    fn write(self, line: &mut Vec<u8>, event: &Event<'_>) {
        // Of the crate `log`'s events the target is a field.
        let normalized = event.normalized_metadata();
        let metadata = normalized.as_ref().unwrap_or_else(|| event.metadata());
        let (level, target) = (metadata.level(), Escaped(metadata.target(), self));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let second = calendar::moment(i64::try_from(now.as_secs()).unwrap_or(i64::MAX), 1, false);
        let now = format_args!("{second}.{:03}Z", now.subsec_millis());
        let request = Names::current();
        let names = request.iter().flat_map(|Names(names)| &**names);
        // A value that cannot be written leaves a gap.
        let _ = match self {
            Self::Json => write!(line, r#"{{"timestamp":"{now}","level":"{level}""#),
            Self::Text { is_coloured: false } => write!(line, "{now} {level:>5} {target}:"),
            Self::Text { is_coloured: true } => {
                let colour = match *level {
                    Level::ERROR => "31",
                    Level::WARN => "33",
                    Level::INFO => "32",
                    _ => "34",
                };
                write!(line, "\x1b[2m{now}\x1b[0m \x1b[{colour}m{level:>5}\x1b[0m {target}:")
            }
        };
        event.record(&mut Fields { line, form: self });
        if let Self::Json = self {
            let _ = write!(line, r#","target":"{target}""#);
            for (at, (name, text)) in names.enumerate() {
                let open = if at == 0 { r#","span":{"# } else { "," };
                let _ = write!(line, r#"{open}"{name}":"{}""#, Escaped(text, self));
            }
            line.extend_from_slice(if request.is_some() { b"}}\n" } else { b"}\n" });
        } else {
            for (name, text) in names {
                let _ = write!(line, " {name}={}", Escaped(text, self));
            }
            line.push(b'\n');
        }
    }
}

/// A value in which no character ends the line, or a text of JSON.
struct Escaped<T>(T, Form);

impl<T: fmt::Display> fmt::Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f, self.1), "{}", self.0)
    }
}

struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>, Form);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let Self(out, form) = self;
        let is_json = matches!(form, Form::Json);
        let ends = |c: char| c.is_control() || is_json && matches!(c, '"' | '\\');
        let mut rest = text;
        while let Some(at) = rest.find(ends) {
            let (before, from) = rest.split_at(at);
            out.write_str(before)?;
            let mut chars = from.chars();
            match chars.next() {
                Some(c) if is_json && c.is_control() => write!(out, "\\u{:04x}", u32::from(c))?,
                Some(c) => write!(out, "{}", c.escape_default())?,
                None => {}
            }
            rest = chars.as_str();
        }
        out.write_str(rest)
    }
}

struct Fields<'a> {
    line: &'a mut Vec<u8>,
    form: Form,
}

impl Fields<'_> {
    fn write(&mut self, field: &Field, value: &dyn fmt::Display, is_text: bool) {
        let (name, value) = (field.name(), Escaped(value, self.form));
        // Where a crate's own line is.
        if name.starts_with("log.") {
            return;
        }
        let quote = if is_text && matches!(self.form, Form::Json) { "\"" } else { "" };
        let _ = match self.form {
            Form::Json => write!(self.line, r#","{name}":{quote}"#),
            Form::Text { .. } if name == "message" => self.line.write_all(b" "),
            Form::Text { .. } => write!(self.line, " {name}="),
        };
        let _ = write!(self.line, "{value}{quote}");
    }
}

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.write(field, &value, !value.is_finite());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.write(field, &value, false);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.write(field, &value, false);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.write(field, &value, false);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.write(field, &value, true);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.write(field, &format_args!("{value:?}"), true);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(form: Form) -> String {
        let lines = Arc::new(Lines::default());
        tracing::subscriber::with_default(Logger { form, lines: Arc::clone(&lines) }, || {
            REQUEST.sync_scope(Some(Names::new([("id", "r\"1".to_owned())])), || {
                let text = "a\"\\\u{1b}[1m";
                tracing::warn!(text, nan = f64::NAN, most = u128::MAX, count = 3, "two\nlines, {text:?}");
            });
        });
        String::from_utf8(mem::take(&mut lines.lock().lines)).unwrap()
    }

    #[test]
    fn whatever_is_logged_is_one_line() {
        let mut found: Value = serde_json::from_str(&line(Form::Json)).unwrap();
        assert!(found["timestamp"].take().as_str().is_some_and(|time| time.len() == 24), "{found}");
        let expected = json!({
            "timestamp": null, "level": "WARN", "message": "two\nlines, \"a\\\"\\\\\\u{1b}[1m\"", "text": "a\"\\\u{1b}[1m",
            "nan": "NaN", "most": u128::MAX.to_string(), "count": 3, "target": "atelier::telemetry::log::tests",
            "span": {"id": "r\"1"},
        });
        assert_eq!(found, expected);
        let text = line(Form::Text { is_coloured: false });
        let (_, text) = text.split_once(" WARN ").unwrap();
        let words =
            r#"atelier::telemetry::log::tests: two\nlines, "a\"\\\u{1b}[1m" text=a"\\u{1b}[1m nan=NaN most="#;
        assert_eq!(text, format!("{words}{} count=3 id=r\"1\n", u128::MAX));
    }
}
