//! Reading a body that may be too long, too slow, incomplete, or compressed.

use std::{
    io::{self, Write},
    time::Duration,
};

use axum::{
    body::{BodyDataStream, Bytes},
    extract::Request,
    http::{HeaderMap, header},
};
use flate2::write::MultiGzDecoder;
use futures_util::StreamExt;
use tokio::time::{Instant, timeout};

use crate::{
    config::{Limits, TRANSFER_BYTES},
    platform::http::{Kind, Problem},
};

/// A body as it arrives, inflated, up to a limit.
pub(crate) struct Incoming {
    chunks: BodyDataStream,
    encoding: Encoding,
    limit: u64,
    /// After inflating.
    read: u64,
    /// How long [`TRANSFER_BYTES`] may take, how long it has taken so far, and for how many bytes.
    patience: Duration,
    waited: Duration,
    arrived: usize,
    content_length: Option<u64>,
}

impl Incoming {
    pub(crate) fn new(request: Request, limit: u64, limits: Limits) -> Self {
        let length = request.headers().get(header::CONTENT_LENGTH);
        let content_length = length.and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
        let encoding = Encoding::from_headers(request.headers());
        let chunks = request.into_body().into_data_stream();
        let patience = limits.transfer();
        Self {
            chunks,
            encoding,
            limit,
            read: 0,
            patience,
            waited: Duration::ZERO,
            arrived: 0,
            content_length,
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        if self.content_length.is_some_and(|length| length > self.limit) {
            return Err(self.too_large());
        }
        let Some(bytes) = self.decoded().await? else { return Ok(None) };
        self.read += bytes.len() as u64;
        if self.read > self.limit {
            return Err(self.too_large());
        }
        Ok(Some(bytes))
    }

    /// The next chunk without its encoding. It may be empty.
    async fn decoded(&mut self) -> Result<Option<Bytes>, Problem> {
        /// Bytes inflated at once: at most a thousand times as much comes out.
        const PIECE: usize = 4 << 10;
        match &mut self.encoding {
            Encoding::Identity => return self.chunk().await,
            Encoding::Gzip(_) => {}
            Encoding::Other(found) => {
                let detail = format!("the Content-Encoding must be gzip or none, found {found:?}");
                return Err(Problem::new(Kind::UnsupportedEncoding, detail));
            }
        }
        let has_pending = matches!(&self.encoding, Encoding::Gzip(gzip) if !gzip.pending.is_empty());
        let chunk = if has_pending { None } else { self.chunk().await? };
        let Encoding::Gzip(gzip) = &mut self.encoding else { unreachable!("the encoding stays the same") };
        let Gzip { decoder, pending, ended } = &mut **gzip;
        let arrived = has_pending || chunk.is_some();
        if let Some(bytes) = chunk {
            *pending = bytes;
        }
        if arrived {
            let piece = pending.split_to(pending.len().min(PIECE));
            decoder.write_all(&piece).map_err(|error| not_gzip(&error))?;
        } else if *ended {
            return Ok(None);
        } else {
            *ended = true;
            decoder.try_finish().map_err(|error| not_gzip(&error))?;
        }
        Ok(Some(std::mem::take(decoder.get_mut()).into()))
    }

    pub(crate) async fn read_all(mut self, deadline: Duration) -> Result<Vec<u8>, Problem> {
        let read = async {
            let mut body = Vec::new();
            while let Some(bytes) = self.next().await? {
                body.extend_from_slice(&bytes);
            }
            Ok(body)
        };
        timeout(deadline, read).await.unwrap_or_else(|_| {
            let detail = format!("the body did not arrive within {} ms; send it again", deadline.as_millis());
            Err(Problem::new(Kind::TooSlow, detail))
        })
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, Problem> {
        let began = Instant::now();
        let arrived = timeout(self.patience.saturating_sub(self.waited), self.chunks.next()).await;
        self.waited += began.elapsed();
        match arrived {
            Ok(None) => Ok(None),
            Ok(Some(Ok(bytes))) => {
                self.arrived += bytes.len();
                if self.arrived >= TRANSFER_BYTES {
                    (self.waited, self.arrived) = (Duration::ZERO, 0);
                }
                Ok(Some(bytes))
            }
            Ok(Some(Err(error))) => {
                Err(Problem::new(Kind::Malformed, format!("the body is incomplete: {error}; send it again")))
            }
            Err(_) => {
                let (most, least) = (self.patience.as_millis(), TRANSFER_BYTES >> 10);
                let detail = format!(
                    "the body is too slow: less than {least} KiB of it arrived within {most} ms; send it again"
                );
                Err(Problem::new(Kind::TooSlow, detail))
            }
        }
    }

    fn too_large(&self) -> Problem {
        let limit = self.limit;
        Problem::new(Kind::TooLarge, format!("the body is longer than this path's limit of {limit} bytes"))
    }
}

enum Encoding {
    Identity,
    Gzip(Box<Gzip>),
    Other(String),
}

struct Gzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    /// Received, and not inflated yet.
    pending: Bytes,
    ended: bool,
}

impl Encoding {
    fn from_headers(headers: &HeaderMap) -> Self {
        let mut named = headers.get_all(header::CONTENT_ENCODING).iter();
        let Some(first) = named.next() else { return Self::Identity };
        let name = String::from_utf8_lossy(first.as_bytes()).trim().to_ascii_lowercase();
        match name.as_str() {
            _ if named.next().is_some() => Self::Other("several".to_owned()),
            "" | "identity" => Self::Identity,
            "gzip" | "x-gzip" => Self::Gzip(Box::new(Gzip {
                decoder: MultiGzDecoder::new(Vec::new()),
                pending: Bytes::new(),
                ended: false,
            })),
            _ => Self::Other(name),
        }
    }
}

fn not_gzip(error: &io::Error) -> Problem {
    Problem::new(Kind::Malformed, format!("the body is not complete gzip data: {error}; send it again"))
}

/// Checks the media type, which is passed to `accepts` in lower case and without its parameters.
pub(crate) fn check_media_type(
    headers: &HeaderMap,
    expected: &str,
    accepts: impl FnOnce(&str) -> bool,
) -> Result<(), Problem> {
    let header = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let found = header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if accepts(&found) {
        return Ok(());
    }
    let found = if found.is_empty() { "none".to_owned() } else { format!("{found:?}") };
    let detail = format!("the Content-Type must be {expected}, found {found}");
    Err(Problem::new(Kind::UnsupportedMediaType, detail))
}
