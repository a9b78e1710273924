//! Reading a body that may be too long, too slow, or incomplete.

use std::time::Duration;

use axum::{
    body::{BodyDataStream, Bytes},
    extract::Request,
    http::{HeaderMap, header},
};
use futures_util::StreamExt;
use tokio::time::{Instant, timeout};

use super::{Kind, Problem};
use crate::config::{Limits, TRANSFER_BYTES};

/// A body as it arrives, up to a limit.
pub(crate) struct Incoming {
    chunks: BodyDataStream,
    limit: u64,
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
        let chunks = request.into_body().into_data_stream();
        let patience = limits.transfer();
        Self { chunks, limit, read: 0, patience, waited: Duration::ZERO, arrived: 0, content_length }
    }

    /// The next chunk; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        if self.content_length.is_some_and(|length| length > self.limit) {
            return Err(self.too_large());
        }
        let Some(bytes) = self.chunk().await? else { return Ok(None) };
        self.read += bytes.len() as u64;
        if self.read > self.limit {
            return Err(self.too_large());
        }
        Ok(Some(bytes))
    }

    /// Reads the complete body into memory.
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
            Err(Problem::new(Kind::Malformed, detail))
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
                Err(Problem::new(Kind::Malformed, detail))
            }
        }
    }

    fn too_large(&self) -> Problem {
        let limit = self.limit;
        Problem::new(Kind::TooLarge, format!("the body is longer than this path's limit of {limit} bytes"))
    }
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
