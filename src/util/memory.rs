//! Giving freed memory back to the machine.
//!
//! glibc keeps what is freed for the next to ask, in one arena for about each thread that ever ran. A release that
//! is swapped frees the weights of all its models from as many threads, and hardly any of it would come back: the
//! service would go on holding the memory of two releases, and a little more with each swap
//! (docs/reliability.md has the figures). Requests, too, are freed by other threads than those that the next ones are
//! made by, so that within an hour the arenas hold some megabytes in nobody's use. Knows nothing of what was freed.

use std::time::Duration;

/// Gives back what is free when the last of those that share it is dropped.
#[derive(Debug)]
pub(crate) struct GivesBack;

impl Drop for GivesBack {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives back what is free every few minutes, for as long as it is polled.
pub(crate) async fn give_back_now_and_then() {
    const EVERY: Duration = Duration::from_mins(5);
    loop {
        tokio::time::sleep(EVERY).await;
        // If it panics, what is free is given back some other time.
        let _ = tokio::task::spawn_blocking(give_back).await;
    }
}

/// Takes milliseconds, during which other threads' allocations may wait.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn give_back() {
    #[expect(unsafe_code, reason = "a call into the C library, which no crate wraps")]
    // SAFETY: it takes no pointer, glibc's documentation calls it safe between threads, and what it gives back
    // is in nobody's use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other allocators see to it themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}
