//! The few requests that Atelier itself makes: to itself for a health check, and to a server of models.
//!
//! One connection at a time over plain HTTP/1.1, kept open between requests, for threads that may wait: every wait
//! ends at the caller's deadline. No TLS, no redirects, no proxies: both ends are the operator's own. Must not know
//! what is asked or why.

mod response;
#[cfg(test)]
mod tests;

use std::{
    fmt, io,
    io::Write,
    net::{TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

pub use response::Response;

/// Asks one server. Not shared: whoever asks has a connection of their own.
#[derive(Debug)]
pub struct Client {
    origin: Origin,
    /// Open since the last answer, where the server left it so.
    kept: Option<TcpStream>,
}

/// A server's `http://host:port`, and a path that it may be mounted under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    authority: String,
    /// What is connected to: the authority, with the port that goes without saying.
    address: String,
    base: String,
}

/// The text is no server that can be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected http://HOST:PORT, found {0:?}")]
pub struct NoOrigin(String);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("{origin} cannot be reached: {source}")]
    Unreachable { origin: Origin, source: io::Error },
    #[error("{origin} did not answer in time")]
    Late { origin: Origin },
    #[error("{origin} answered with what is no HTTP: {reason}")]
    Answer { origin: Origin, reason: String },
}

impl Client {
    pub fn new(origin: Origin) -> Self {
        Self { origin, kept: None }
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    pub fn get(&mut self, path: &str, deadline: Instant) -> Result<Response, HttpError> {
        self.send("GET", path, &[], &[], deadline)
    }

    /// Sends a request that may be sent twice: where a connection that was kept turns out to be closed, a new one is
    /// tried.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        deadline: Instant,
    ) -> Result<Response, HttpError> {
        let head = self.head(method, path, headers, body.len());
        if let Some(stream) = self.kept.take() {
            match self.exchange(stream, &head, body, deadline) {
                // The server may have closed it meanwhile: only a new one tells.
                Err(Failed::Connection(_)) => {}
                settled => return settled.map_err(|failed| self.error(failed)),
            }
        }
        let stream = self.connect(deadline).map_err(|error| self.error(Failed::Connection(error)))?;
        self.exchange(stream, &head, body, deadline).map_err(|failed| self.error(failed))
    }

    fn head(&self, method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> String {
        let Origin { authority, base, .. } = &self.origin;
        let mut head =
            format!("{method} {base}{path} HTTP/1.1\r\nHost: {authority}\r\nContent-Length: {length}\r\n");
        for (name, value) in headers {
            for part in [name, ": ", value, "\r\n"] {
                head.push_str(part);
            }
        }
        head.push_str("\r\n");
        head
    }

    fn connect(&self, deadline: Instant) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
        for address in self.origin.address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left(deadline)?) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn exchange(
        &mut self,
        mut stream: TcpStream,
        head: &str,
        body: &[u8],
        deadline: Instant,
    ) -> Result<Response, Failed> {
        stream.set_write_timeout(Some(left(deadline)?))?;
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let (response, keep) = response::read(&mut stream, deadline)?;
        if keep {
            self.kept = Some(stream);
        }
        Ok(response)
    }

    fn error(&self, failed: Failed) -> HttpError {
        let origin = self.origin.clone();
        match failed {
            Failed::Connection(error)
                if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) =>
            {
                HttpError::Late { origin }
            }
            Failed::Connection(source) => HttpError::Unreachable { origin, source },
            Failed::Answer(reason) => HttpError::Answer { origin, reason },
        }
    }
}

/// Why an exchange came to nothing.
#[derive(Debug)]
enum Failed {
    Connection(io::Error),
    Answer(String),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

/// The time until then; none left is an error, as a wait of nought is one to the system.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

impl Origin {
    /// `http://host`, `http://host:port`, either with a path after it.
    pub fn parse(url: &str) -> Result<Self, NoOrigin> {
        let refuse = || NoOrigin(url.to_owned());
        let rest = url.strip_prefix("http://").ok_or_else(refuse)?;
        let (authority, base) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = authority.rsplit_once(']').map_or(authority, |(_, after)| after);
        let port = host.split_once(':').map(|(_, port)| port);
        let plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !b"@?#\\".contains(&byte));
        let named = !authority.starts_with(':') && !authority.is_empty();
        if !named || !plain(rest) || port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(refuse());
        }
        let address = if port.is_some() { authority.to_owned() } else { format!("{authority}:80") };
        Ok(Self { authority: authority.to_owned(), address, base: base.trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.base)
    }
}
