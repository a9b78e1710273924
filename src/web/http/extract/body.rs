//! Reading a body that may be longer than it should, or stop arriving.

use std::time::Duration;

use axum::{
    body::{BodyDataStream, Bytes},
    extract::Request,
    http::{HeaderMap, header},
};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::{Kind, Problem};

/// How long a body may pause.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much of a body that is too large is read and thrown away, so that a caller who writes before it reads
/// gets to see the answer rather than a broken connection.
const DISCARDED: u64 = 32 << 20;

/// A body as it arrives, up to a limit.
pub(crate) struct Incoming {
    chunks: BodyDataStream,
    limit: u64,
    read: u64,
    /// What the caller says its length is.
    announced: Option<u64>,
    /// The caller waits to be told to go on, so it has sent nothing that would have to be thrown away.
    waits: bool,
}

impl Incoming {
    pub(crate) fn new(request: Request, limit: u64) -> Self {
        let headers = request.headers();
        let announced = headers.get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
        let waits = headers.contains_key(header::EXPECT);
        Self { chunks: request.into_body().into_data_stream(), limit, read: 0, announced, waits }
    }

    /// The next piece; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        if self.announced.is_some_and(|length| length > self.limit) {
            return Err(self.too_large().await);
        }
        let Some(bytes) = self.chunk().await? else { return Ok(None) };
        self.read += bytes.len() as u64;
        if self.read > self.limit {
            return Err(self.too_large().await);
        }
        Ok(Some(bytes))
    }

    /// The whole body in memory.
    pub(super) async fn whole(mut self, most: Duration) -> Result<Vec<u8>, Problem> {
        let read = async {
            let mut whole = Vec::new();
            while let Some(bytes) = self.next().await? {
                whole.extend_from_slice(&bytes);
            }
            Ok(whole)
        };
        timeout(most, read).await.unwrap_or_else(|_| {
            let detail = format!("the body did not arrive within {} ms; send it again", most.as_millis());
            Err(Problem::new(Kind::Malformed, detail))
        })
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, Problem> {
        match timeout(PATIENCE, self.chunks.next()).await {
            Ok(None) => Ok(None),
            Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
            Ok(Some(Err(error))) => {
                Err(Problem::new(Kind::Malformed, format!("the body broke off: {error}; send it again")))
            }
            Err(_) => {
                let seconds = PATIENCE.as_secs();
                let detail = format!("nothing more of the body arrived for {seconds} seconds; send it again");
                Err(Problem::new(Kind::Malformed, detail))
            }
        }
    }

    async fn too_large(&mut self) -> Problem {
        let most = self.limit + DISCARDED;
        let worthwhile = !self.waits && self.announced.is_none_or(|length| length <= most);
        while worthwhile && self.read <= most {
            let Ok(Some(bytes)) = self.chunk().await else { break };
            self.read += bytes.len() as u64;
        }
        let limit = self.limit;
        Problem::new(
            Kind::TooLarge,
            format!("the body is longer than the {limit} bytes that this path takes"),
        )
    }
}

/// The media type that the caller names, in lower case and without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let named = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let named = named.split(';').next().unwrap_or_default().trim();
    (!named.is_empty()).then(|| named.to_ascii_lowercase())
}
