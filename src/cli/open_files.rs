//! Fits the limits of the service to the files that its process may open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Limits;

/// For the database, the log, streams that are stored, and models.
const OTHERS: u64 = 128;

/// Lowers the limit of connections to what the process may open.
pub(super) fn fit_open_files(limits: Limits) -> Limits {
    let wanted = u64::from(limits.connections);
    let files = raise_limit(wanted + OTHERS);
    let most = files.saturating_sub(OTHERS).max(files / 2).max(1);
    if wanted <= most {
        return limits;
    }
    tracing::warn!(
        "limits.connections is {wanted}, but the process may open {files} files; serving at most {most} connections. \
         Raise the limit of open files (ulimit -n) or lower the setting"
    );
    Limits { connections: u32::try_from(most).unwrap_or(limits.connections), ..limits }
}

/// Raises the limit to `needed` as far as the process may, and returns it.
fn raise_limit(needed: u64) -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` is no limit.
    let current = current.unwrap_or(u64::MAX);
    if current >= needed {
        return current;
    }
    let raised = maximum.map_or(needed, |maximum| maximum.min(needed));
    match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        Ok(()) => raised,
        Err(_) => current,
    }
}
