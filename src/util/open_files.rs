//! The process's limit of open files, which sockets count towards.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit to `needed` as far as the process may, and returns it.
pub(crate) fn raise_limit(needed: u64) -> u64 {
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
