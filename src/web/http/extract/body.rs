//! Reading a body that may be too long, too slow, or incomplete.

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
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// How much of a too large body is read and discarded, so that a caller that writes everything before it reads gets
/// the answer and not a broken connection.
const MAX_DISCARDED: u64 = 32 << 20;

/// A body as it arrives, up to a limit.
pub(crate) struct Incoming {
    chunks: BodyDataStream,
    limit: u64,
    read: u64,
    content_length: Option<u64>,
    /// The caller waits for `100 Continue`, so it has sent nothing that needs to be discarded.
    expects_continue: bool,
}

impl Incoming {
    pub(crate) fn new(request: Request, limit: u64) -> Self {
        let headers = request.headers();
        let length = headers.get(header::CONTENT_LENGTH);
        let content_length = length.and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
        let expects_continue = headers.contains_key(header::EXPECT);
        let chunks = request.into_body().into_data_stream();
        Self { chunks, limit, read: 0, content_length, expects_continue }
    }

    /// The next chunk; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        if self.content_length.is_some_and(|length| length > self.limit) {
            return Err(self.too_large().await);
        }
        let Some(bytes) = self.chunk().await? else { return Ok(None) };
        self.read += bytes.len() as u64;
        if self.read > self.limit {
            return Err(self.too_large().await);
        }
        Ok(Some(bytes))
    }

    /// Reads the complete body into memory.
    pub(super) async fn read_all(mut self, deadline: Duration) -> Result<Vec<u8>, Problem> {
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
        match timeout(MAX_PAUSE, self.chunks.next()).await {
            Ok(None) => Ok(None),
            Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
            Ok(Some(Err(error))) => {
                Err(Problem::new(Kind::Malformed, format!("the body is incomplete: {error}; send it again")))
            }
            Err(_) => {
                let seconds = MAX_PAUSE.as_secs();
                let detail = format!("no more of the body arrived for {seconds} seconds; send it again");
                Err(Problem::new(Kind::Malformed, detail))
            }
        }
    }

    async fn too_large(&mut self) -> Problem {
        let most = self.limit + MAX_DISCARDED;
        let discard = !self.expects_continue && self.content_length.is_none_or(|length| length <= most);
        while discard && self.read <= most {
            let Ok(Some(bytes)) = self.chunk().await else { break };
            self.read += bytes.len() as u64;
        }
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
