//! Returning freed memory to the operating system.
//!
//! glibc keeps freed memory for later allocations, in about one arena per thread. When a release is replaced, many threads
//! free the weights of its models, and little of that memory is reused: the service would hold the memory of two
//! releases, and more with each replacement (docs/reliability.md has the figures). Requests are also freed by other
//! threads than those that allocate the next ones, so that within an hour the arenas hold some unused megabytes.

use std::time::Duration;

/// Returns free memory when it is dropped. Owners of large memory share one.
#[derive(Debug)]
pub(crate) struct ReturnMemoryOnDrop;

impl Drop for ReturnMemoryOnDrop {
    fn drop(&mut self) {
        return_memory();
    }
}

/// Returns free memory every few minutes.
pub(crate) async fn return_memory_periodically() {
    const EVERY: Duration = Duration::from_mins(5);
    loop {
        tokio::time::sleep(EVERY).await;
        // After a panic, the next round returns the memory.
        let _ = tokio::task::spawn_blocking(return_memory).await;
    }
}

/// Takes milliseconds, in which allocations of other threads may wait.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn return_memory() {
    #[expect(unsafe_code, reason = "no crate wraps this C function")]
    // SAFETY: it takes no pointer, glibc documents it as thread-safe, and it only returns unused memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other allocators return memory themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn return_memory() {}
