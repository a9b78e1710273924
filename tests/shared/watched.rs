//! Runs a program under strace, in an empty home, to see what it sends and stores unasked.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// What a program did.
pub struct Watched {
    home: TempDir,
    calls: TempDir,
}

impl Watched {
    pub fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), calls: tempfile::tempdir().unwrap() }
    }

    /// The program with its arguments, and ONNX Runtime from the library given. Its process is the child itself, not
    /// strace (`-D`).
    pub fn command(&self, program: &str, library: &Path) -> Command {
        let mut command = Command::new("strace");
        command.args(["-D", "-f", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o"]);
        command.arg(self.log()).arg(program).env("HOME", self.home.path()).env("ORT_DYLIB_PATH", library);
        for name in ["XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
            command.env_remove(name);
        }
        // What the library takes for a wish to send.
        command.env("ORT_DISABLE_TELEMETRY", "0");
        command
    }

    fn log(&self) -> PathBuf {
        self.calls.path().join("calls")
    }

    /// Panics if the program, which has ended, called a network address or left a file in its home.
    pub fn assert_silent(&self, process: u32) {
        let calls = self.calls(process);
        let sent: Vec<&str> = calls.lines().filter(|line| line.contains("sa_family=AF_INET")).collect();
        assert!(sent.is_empty(), "it called {sent:#?}");
        let left: Vec<PathBuf> = files_in(self.home.path());
        assert!(left.is_empty(), "it left {left:#?}");
    }

    /// strace ends a moment after the program.
    fn calls(&self, process: u32) -> String {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let calls = fs::read_to_string(self.log()).unwrap_or_default();
            let is_end = |line: &str| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words[..] == [&*process.to_string(), "+++", "exited", "with", "0", "+++"]
            };
            if calls.lines().any(is_end) {
                return calls;
            }
            assert!(Instant::now() < until, "strace has not seen the program's end: {calls}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

/// The library in a cache folder that a test has filled, unless the variable names another.
pub fn library(cache: &Path, version: &str) -> PathBuf {
    if let Some(path) = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()) {
        return path.into();
    }
    let folder = cache.join("onnxruntime").join(version);
    files_in(&folder).into_iter().find(|path| path.to_string_lossy().contains("libonnxruntime")).unwrap()
}
