//! How much memory this process may use: the machine's, within the limits of its control groups.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The limit on all that share it together.
    pub limit: u64,
    /// The unused part.
    pub left: u64,
}

impl Memory {
    /// None if the system does not say.
    pub fn now() -> Option<Self> {
        Self::read(Path::new("/"))
    }

    fn read(root: &Path) -> Option<Self> {
        let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let groups = groups.lines().flat_map(|group| of_group(root, group));
        of_machine(root)
            .into_iter()
            .chain(groups)
            .reduce(|one, other| Self { limit: one.limit.min(other.limit), left: one.left.min(other.left) })
    }
}

fn of_machine(root: &Path) -> Option<Memory> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let kilobytes = |name| find(&text, name).map(|kilobytes| kilobytes * 1024);
    Some(Memory { limit: kilobytes("MemTotal:")?, left: kilobytes("MemAvailable:")? })
}

/// The limits of a line of /proc/self/cgroup: a group's, and those of the groups around it.
fn of_group(root: &Path, group: &str) -> Vec<Memory> {
    let (folder, names) = match group.splitn(3, ':').collect::<Vec<_>>()[..] {
        ["0", "", path] => (("sys/fs/cgroup", path), ["memory.max", "memory.current", "inactive_file"]),
        [_, controllers, path] if controllers.split(',').any(|one| one == "memory") => (
            ("sys/fs/cgroup/memory", path),
            ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"],
        ),
        _ => return Vec::new(),
    };
    let (mount, path) = (root.join(folder.0), PathBuf::from(folder.1.trim_start_matches('/')));
    path.ancestors().filter_map(|path| read_limit(&mount.join(path), names)).collect()
}

/// A container may see its own group only, at the mount point. Cached files count as used and make room when they must.
fn read_limit(group: &Path, [limit, used, cached]: [&str; 3]) -> Option<Memory> {
    let number = |name| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let (limit, used) = (number(limit)?, number(used)?);
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let used = used.saturating_sub(find(&stat, cached).unwrap_or(0));
    Some(Memory { limit, left: limit.saturating_sub(used) })
}

/// The number after a name at the start of a line.
fn find(text: &str, name: &str) -> Option<u64> {
    let mut words = text.lines().map(str::split_whitespace);
    words.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_limit_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let read = || Memory::read(root.path()).map(|memory| (memory.limit, memory.left));
        assert_eq!(read(), None);
        write("proc/meminfo", "MemTotal: 4000 kB\nMemFree: 1 kB\nMemAvailable:   3000 kB\n");
        assert_eq!(read(), Some((4_096_000, 3_072_000)));
        write("proc/self/cgroup", "4:cpu,memory:/a/b\n1:cpu:/c\n0::/d/e\n");
        write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2000000\n");
        write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1500000\n");
        assert_eq!(read(), Some((2_000_000, 500_000)), "of the group around its own");
        write("sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 400000\n");
        assert_eq!(read(), Some((2_000_000, 900_000)), "cached files make room");
        write("sys/fs/cgroup/d/e/memory.max", "max\n");
        write("sys/fs/cgroup/d/e/memory.current", "5\n");
        assert_eq!(read(), Some((2_000_000, 900_000)), "no limit");
        write("sys/fs/cgroup/memory.max", "1000000\n");
        write("sys/fs/cgroup/memory.current", "999000\n");
        assert_eq!(read(), Some((1_000_000, 1000)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_says() {
        let Memory { limit, left } = Memory::now().expect("Linux says");
        assert!(0 < left && left < limit, "{left} of {limit}");
    }
}
