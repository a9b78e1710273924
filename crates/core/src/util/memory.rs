//! Returning freed memory to the operating system.
//!
//! Replacing a release frees memory on many threads, and an allocator keeps each thread's freed memory for that thread.
//! Little of it is reused: the service would hold the memory of two releases, and more with each replacement
//! (docs/reliability.md has the figures). There are two allocators: mimalloc for our own, and glibc's for ONNX Runtime's.

/// Returns free memory when it is dropped. Owners of large memory share one.
#[derive(Debug)]
pub struct ReturnMemoryOnDrop;

impl Drop for ReturnMemoryOnDrop {
    fn drop(&mut self) {
        return_memory();
    }
}

/// Returns free memory now. Takes milliseconds, in which allocations of other threads may wait.
pub fn return_memory() {
    // A thread's memory is returned by the thread itself, and those of the pool sleep from now on.
    rayon::spawn_broadcast(|_| return_memory_of_thread());
    return_memory_of_thread();
    trim();
}

/// Returns what this thread has freed.
pub fn return_memory_of_thread() {
    #[expect(unsafe_code, reason = "no crate wraps this C function")]
    // SAFETY: it takes no pointer, may be called by any thread, and only returns unused memory.
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    #[expect(unsafe_code, reason = "no crate wraps this C function")]
    // SAFETY: it takes no pointer, glibc documents it as thread-safe, and it only returns unused memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other allocators return memory themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}
