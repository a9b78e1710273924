//! How much memory the process may use, and returning freed memory to the operating system.
//!
//! Replacing a release frees memory on many threads, and an allocator keeps each thread's freed memory for that thread.
//! Little of it is reused: the service would hold the memory of two releases, and more with each replacement
//! (docs/reliability.md has the figures). There are two allocators: mimalloc for our own, and glibc's for ONNX Runtime's.

use std::{fs, path::Path};

/// The bytes that the process may use: the machine's, or fewer by its control groups. Everything if the system does not say.
pub fn most_memory() -> u64 {
    most_memory_below(Path::new("/"))
}

fn most_memory_below(root: &Path) -> u64 {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let machine = read("proc/meminfo").lines().find_map(|line| {
        let kilobytes = line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?;
        Some(kilobytes.trim().parse::<u64>().ok()? << 10)
    });
    let mut most = machine.unwrap_or(u64::MAX);
    for group in read("proc/self/cgroup").lines() {
        let mut fields = group.splitn(3, ':').skip(1);
        let (folder, file) = match fields.next() {
            Some("") => ("sys/fs/cgroup", "memory.max"),
            Some("memory") => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        // A container sees its own group as the root, whatever its name is.
        for group in Path::new(fields.next().unwrap_or_default().trim_start_matches('/')).ancestors() {
            let limit = read(&format!("{folder}/{}/{file}", group.display()));
            most = most.min(limit.trim().parse().unwrap_or(u64::MAX));
        }
    }
    most
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_group_limits_memory() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let most = || most_memory_below(root.path());
        assert_eq!(most(), u64::MAX);
        write("proc/meminfo", "MemTotal:        4096 kB\nMemFree: 1 kB\n");
        assert_eq!(most(), 4 << 20);
        write("proc/self/cgroup", "5:devices:/a\n4:memory:/host/own\n0::/pod/own\n");
        write("sys/fs/cgroup/pod/own/memory.max", "max\n");
        assert_eq!(most(), 4 << 20);
        write("sys/fs/cgroup/pod/memory.max", "3000000\n");
        assert_eq!(most(), 3_000_000, "the limit of the group above");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");
        assert_eq!(most(), 2_000_000, "a container's own, of the first version");
    }
}
