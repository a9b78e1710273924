//! The log: a line on standard error for each event, as text on a terminal and as JSON elsewhere.
//!
//! Lines are appended to a buffer that one thread writes, so no answer waits for its line. What a request's future logs names the
//! request, without a span: see [`Request`].

use std::{
    cell::RefCell,
    env,
    fmt::{self, Write as _},
    io::{self, IsTerminal, Write as _},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime},
};

use atelier_core::domain::Timestamp;
use tokio::{task::futures::TaskLocalFuture, task_local};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{EnvFilter, layer::Layer, util::SubscriberInitExt};

const DEFAULT: &str = "info,ort=warn";
/// How long lines below warnings are collected before they are written.
const COLLECTED: Duration = Duration::from_millis(10);
/// While so much waits to be written, whoever logs waits, too.
const MOST_WAITING: usize = 1 << 20;

task_local! {
    static REQUEST: Option<Request>;
}

thread_local! {
    /// The line that the thread is making.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What lines about a request say of it: names and texts.
#[derive(Debug, Clone)]
pub(crate) struct Request(Arc<[(&'static str, String)]>);

impl Request {
    pub(crate) fn new(names: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self(names.into_iter().collect())
    }

    /// The one whose future the caller is in.
    pub(crate) fn current() -> Option<Self> {
        REQUEST.try_with(Clone::clone).ok().flatten()
    }
}

/// Does the work as a part of the request.
pub(crate) fn of<F: Future>(request: Option<Request>, work: F) -> TaskLocalFuture<Option<Request>, F> {
    REQUEST.scope(request, work)
}

/// The same for work without a future.
pub(crate) fn within<T>(request: Option<Request>, work: impl FnOnce() -> T) -> T {
    REQUEST.sync_scope(request, work)
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

/// The log, until it is dropped: later lines are written by whoever logs them.
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

/// Lines that wait to be written.
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
        let wakes = waiting.lines.is_empty() || is_urgent && !waiting.is_urgent;
        waiting.lines.extend_from_slice(line);
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

/// There is nobody who could be told that the log cannot be written.
fn write(lines: &[u8]) {
    let _ = io::stderr().lock().write_all(lines);
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
        let metadata = event.metadata();
        let (now, level) = (Timestamp::from(SystemTime::now()), metadata.level());
        let request = Request::current();
        let about = request.iter().flat_map(|request| &*request.0);
        let line = &mut Line(line);
        let written = match self {
            Self::Json => (|| {
                write!(line, r#"{{"timestamp":"{now}","level":"{level}""#)?;
                event.record(&mut Fields { line, form: self });
                write!(line, r#","target":"{}""#, metadata.target())?;
                for (at, (name, text)) in about.enumerate() {
                    line.write_str(if at == 0 { r#","span":{""# } else { r#",""# })?;
                    write!(line, r#"{name}":"{}""#, Escaped(text))?;
                }
                line.write_str(if request.is_some() { "}}\n" } else { "}\n" })
            })(),
            Self::Text { is_coloured } => (|| {
                let colour = match *level {
                    Level::ERROR => "31",
                    Level::WARN => "33",
                    Level::INFO => "32",
                    _ => "34",
                };
                if is_coloured {
                    write!(
                        line,
                        "\x1b[2m{now}\x1b[0m \x1b[{colour}m{level:>5}\x1b[0m {}:",
                        metadata.target()
                    )?;
                } else {
                    write!(line, "{now} {level:>5} {}:", metadata.target())?;
                }
                event.record(&mut Fields { line, form: self });
                for (name, text) in about {
                    write!(line, " {name}={}", Escaped(text))?;
                }
                line.write_str("\n")
            })(),
        };
        written.expect("a line takes any text; this is a bug");
    }
}

struct Line<'a>(&'a mut Vec<u8>);

impl fmt::Write for Line<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// A value in which no character ends a line or a text of JSON.
struct Escaped<T>(T);

impl<T: fmt::Display> fmt::Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c.is_control() || matches!(c, '"' | '\\')) {
            let (before, from) = rest.split_at(at);
            self.0.write_str(before)?;
            let mut chars = from.chars();
            match chars.next() {
                Some(c) if c.is_control() => write!(self.0, "\\u{:04x}", u32::from(c))?,
                Some(c) => write!(self.0, "\\{c}")?,
                None => {}
            }
            rest = chars.as_str();
        }
        self.0.write_str(rest)
    }
}

/// Writes an event's fields.
struct Fields<'a, 'l> {
    line: &'a mut Line<'l>,
    form: Form,
}

impl Fields<'_, '_> {
    fn write(&mut self, field: &Field, value: &dyn fmt::Display, is_text: bool) {
        let name = field.name();
        let written = match self.form {
            Form::Json if is_text => write!(self.line, r#","{name}":"{}""#, Escaped(value)),
            Form::Json => write!(self.line, r#","{name}":{value}"#),
            Form::Text { .. } if name == "message" => write!(self.line, " {}", Escaped(value)),
            Form::Text { .. } => write!(self.line, " {name}={}", Escaped(value)),
        };
        written.expect("a line takes any text; this is a bug");
    }
}

impl Visit for Fields<'_, '_> {
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
