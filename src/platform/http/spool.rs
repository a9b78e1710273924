//! Bodies that are longer than memory, in files.

use std::{fs::File, io, io::Seek};

use tokio::io::AsyncWriteExt;

use super::{Kind, Problem, extract::Incoming};

/// The media types in use for JSON Lines; none is registered.
pub(crate) const MEDIA_TYPES: [&str; 4] =
    ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"];

/// Writes the body to a file without a name, of which nothing is left even if the process is killed.
pub(crate) async fn spool(body: Incoming) -> Result<File, Problem> {
    spool_to(tempfile::tempfile(), body).await
}

/// The same for a file that was made elsewhere.
pub(crate) async fn spool_to(file: io::Result<File>, mut body: Incoming) -> Result<File, Problem> {
    let full = |error: io::Error| {
        Problem::inside(Kind::Unavailable, format_args!("the body cannot be written to a file: {error}"))
    };
    let mut out = tokio::fs::File::from_std(file.map_err(full)?);
    while let Some(bytes) = body.next().await? {
        out.write_all(&bytes).await.map_err(full)?;
    }
    out.flush().await.map_err(full)?;
    let mut file = out.into_std().await;
    file.rewind().map_err(full)?;
    Ok(file)
}
