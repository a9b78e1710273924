//! An answer as HTTP/1.1 writes it: head, then a body by its length, in chunks, or up to the connection's end.

use std::{
    io::{self, BufRead, BufReader, Read},
    net::TcpStream,
    time::Instant,
};

use super::{Failed, left};

/// No server of ours has longer heads; a larger one is somebody else's.
const LONGEST_HEAD: usize = 1 << 16;
const MOST_HEADERS: usize = 64;
/// Logits of the largest batch over the largest vocabulary as text, and some.
const LONGEST_BODY: u64 = 4 << 30;

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    #[cfg(test)]
    pub(crate) fn new(status: u16, headers: Vec<(String, String)>, body: Vec<u8>) -> Self {
        Self { status, headers, body }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The answer, and whether the connection may be used again.
pub(super) fn read(stream: &mut TcpStream, deadline: Instant) -> Result<(Response, bool), Failed> {
    let mut input = BufReader::with_capacity(1 << 16, Timed { stream, deadline });
    let head = loop {
        let head = head(&mut input)?;
        // What comes before the answer itself (100, 103) is no answer.
        if head.status >= 200 {
            break head;
        }
    };
    let Head { status, headers, persistent } = head;
    let mut response = Response { status, headers, body: Vec::new() };
    let chunked =
        response.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
    let length = response.header("content-length").map(str::parse::<u64>);
    let ends = match length {
        _ if status == 204 || status == 304 => true,
        _ if chunked => {
            chunks(&mut input, &mut response.body)?;
            true
        }
        Some(Ok(length)) => {
            exactly(&mut input, length, &mut response.body)?;
            true
        }
        Some(Err(_)) => return Err(Failed::Answer("its Content-Length is no number".into())),
        None => {
            input.take(LONGEST_BODY).read_to_end(&mut response.body)?;
            false
        }
    };
    let close = response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    Ok((response, ends && persistent && !close))
}

struct Head {
    status: u16,
    headers: Vec<(String, String)>,
    /// HTTP/1.1 keeps connections open unless it says otherwise.
    persistent: bool,
}

fn head(input: &mut impl BufRead) -> Result<Head, Failed> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let before = bytes.len();
        let most = (LONGEST_HEAD - before) as u64;
        if input.take(most).read_until(b'\n', &mut bytes)? == 0 {
            return Err(if bytes.len() == LONGEST_HEAD {
                Failed::Answer(format!("its head is longer than {LONGEST_HEAD} bytes"))
            } else {
                Failed::Connection(io::ErrorKind::UnexpectedEof.into())
            });
        }
    }
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Response::new(&mut headers);
    parsed.parse(&bytes).map_err(|error| Failed::Answer(error.to_string()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = parsed.headers.iter().map(|header| (header.name.to_owned(), text(header.value)));
    Ok(Head {
        status: parsed.code.ok_or_else(|| Failed::Answer("it has no status".into()))?,
        headers: headers.collect(),
        persistent: parsed.version == Some(1),
    })
}

fn exactly(input: &mut impl Read, length: u64, body: &mut Vec<u8>) -> Result<(), Failed> {
    if body.len() as u64 + length > LONGEST_BODY {
        return Err(Failed::Answer(format!("its body is longer than {LONGEST_BODY} bytes")));
    }
    if input.take(length).read_to_end(body)? as u64 == length {
        Ok(())
    } else {
        Err(Failed::Connection(io::ErrorKind::UnexpectedEof.into()))
    }
}

fn chunks(input: &mut impl BufRead, body: &mut Vec<u8>) -> Result<(), Failed> {
    loop {
        let line = line(input)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16)
            .map_err(|_| Failed::Answer(format!("a chunk's size is {size:?}")))?;
        if size == 0 {
            break;
        }
        exactly(input, size, body)?;
        if !self::line(input)?.is_empty() {
            return Err(Failed::Answer("a chunk is longer than it says".into()));
        }
    }
    // What may follow the last chunk are headers that came late.
    while !line(input)?.is_empty() {}
    Ok(())
}

fn line(input: &mut impl BufRead) -> Result<String, Failed> {
    let mut line = Vec::new();
    input.take(LONGEST_HEAD as u64).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(Failed::Connection(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(String::from_utf8_lossy(line.trim_ascii_end()).into_owned())
}

/// Reads until the deadline, however little comes at a time.
struct Timed<'s> {
    stream: &'s mut TcpStream,
    deadline: Instant,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.deadline)?))?;
        self.stream.read(buffer)
    }
}
