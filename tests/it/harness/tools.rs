//! Programs that some tests need: whether they are installed, or fetched where possible.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

pub fn curl() -> Result<(), String> {
    there("curl")
}

/// Gives a program a terminal.
pub fn script() -> Result<(), String> {
    there("script")
}

pub fn pip() -> Result<(), String> {
    run(Command::new("python3").args(["-I", "-m", "pip", "--version"])).map(drop)
}

/// Shows a program's system calls. Some containers have it and do not allow it.
pub fn strace() -> Result<(), String> {
    run(Command::new("strace").args(["-o", "/dev/null", "true"]))
        .map(drop)
        .map_err(|error| format!("strace: {error}"))
}

/// Gives a program less memory than the machine has.
pub fn memory_group() -> Result<(), String> {
    MemoryGroup::new(1 << 30).map(drop).map_err(|error| format!("no control group can be made: {error}"))
}

pub fn onnx_in_memory_group() -> Result<(), String> {
    memory_group().and_then(|()| onnx())
}

/// A control group that limits memory. Dropping it removes it, once its programs have ended.
pub struct MemoryGroup(PathBuf);

impl MemoryGroup {
    pub fn new(bytes: u64) -> std::io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("atelier-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let first = Path::new("/sys/fs/cgroup/memory");
        let (root, limit) = if first.is_dir() {
            (first, "memory.limit_in_bytes")
        } else {
            (Path::new("/sys/fs/cgroup"), "memory.max")
        };
        let group = Self(root.join(name));
        group.change(r#"mkdir "$0" && echo "$2" > "$0/$1""#, &[limit, &bytes.to_string()])?;
        Ok(group)
    }

    /// Leaves its programs so many bytes more than they use, without cached files.
    pub fn leave(&self, bytes: u64) -> std::io::Result<()> {
        let is_first = self.0.join("memory.limit_in_bytes").exists();
        let (limit, used, cached) = if is_first {
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
        } else {
            ("memory.max", "memory.current", "inactive_file ")
        };
        let read = |name| fs::read_to_string(self.0.join(name));
        let stat = read("memory.stat")?;
        let cached =
            stat.lines().find_map(|line| line.strip_prefix(cached)).expect("cached files are counted");
        let number = |text: &str| text.trim().parse::<u64>().expect("a number");
        let limit_bytes = number(&read(used)?) - number(cached) + bytes;
        self.change(r#"echo "$2" > "$0/$1""#, &[limit, &limit_bytes.to_string()])
    }

    /// The same program in the group.
    pub fn hold(&self, command: &Command) -> Command {
        let mut held = Command::new("sh");
        let enter = format!(r#"{AS_ROOT} sh -c 'echo "$1" > "$0/cgroup.procs"' "$0" "$$" && exec "$@""#);
        held.args(["-c", &enter]).arg(&self.0);
        held.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => held.env(name, value),
                None => held.env_remove(name),
            };
        }
        held
    }

    /// Runs a script, whose `$0` is the group.
    fn change(&self, script: &str, arguments: &[&str]) -> std::io::Result<()> {
        let run = format!(r#"{AS_ROOT} sh -c "$1" "$0" "$2" "$3""#);
        let output =
            Command::new("sh").args(["-c", &run]).arg(&self.0).arg(script).args(arguments).output()?;
        if output.status.success() { Ok(()) } else { Err(std::io::Error::other(last_line(&output))) }
    }
}

/// Before a command in a script: groups are root's.
const AS_ROOT: &str = r#"$([ "$(id -u)" = 0 ] || echo sudo -n)"#;

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = self.change(r#"rmdir "$0""#, &[]);
    }
}

/// Makes certificates.
pub fn openssl() -> Result<(), String> {
    answers("openssl", "version")
}

pub fn there(program: &str) -> Result<(), String> {
    answers(program, "--version")
}

fn answers(program: &str, argument: &str) -> Result<(), String> {
    let output = Command::new(program).arg(argument).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{program}: {}", last_line(&output))),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

/// numpy and onnx for the installed Python.
static ONNX: Packages = Packages {
    what: "numpy and onnx for Python",
    list: include_str!("../../../docs/examples/requirements.txt"),
    installed: OnceLock::new(),
};
/// The official client of the Model Context Protocol.
static MCP: Packages = Packages {
    what: "mcp for Python",
    list: include_str!("../../../docs/examples/requirements-agent.txt"),
    installed: OnceLock::new(),
};

pub fn onnx() -> Result<(), String> {
    ONNX.folder().map(drop)
}

pub fn python_with_onnx() -> Command {
    ONNX.python()
}

pub fn mcp() -> Result<(), String> {
    MCP.folder().map(drop)
}

pub fn python_with_mcp() -> Command {
    MCP.python()
}

/// What examples in Python are tested with, installed once under the target folder.
struct Packages {
    what: &'static str,
    list: &'static str,
    installed: OnceLock<Result<PathBuf, String>>,
}

impl Packages {
    fn folder(&'static self) -> Result<&'static Path, String> {
        let install = || self.install().map_err(|reason| format!("{}: {reason}", self.what));
        self.installed.get_or_init(install).as_deref().map_err(Clone::clone)
    }

    /// A wheel is for one version of Python and one machine, so the folder names them.
    fn install(&self) -> Result<PathBuf, String> {
        const PYTHON: &str =
            "import sys, sysconfig; print(sys.implementation.cache_tag, sysconfig.get_platform())";
        let python = run(Command::new("python3").args(["-c", PYTHON]))?;
        let packages = self.list.lines().filter(|line| !line.starts_with('#'));
        let digest = hex::encode(&Sha256::digest(self.list)[..6]);
        let flags =
            "-m pip install --quiet --disable-pip-version-check --no-input --only-binary=:all: --no-deps";
        let mut pip = Command::new("python3");
        pip.args(flags.split(' ')).args(packages).arg("--target");
        fill(&format!("python-{digest}-{}", python.trim().replace(' ', "-")), pip)
    }

    /// Python that finds them.
    fn python(&'static self) -> Command {
        let mut command = Command::new("python3");
        let packages = self.folder().expect("the test declares that it needs them");
        command.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// axe-core's script, installed once under the target folder.
pub fn axe() -> Result<&'static Path, String> {
    const AXE: &str = "axe-core@4.14.1";
    static SCRIPT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let script = SCRIPT.get_or_init(|| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", AXE, "--prefix"]);
        let folder = fill(AXE, npm).map_err(|reason| format!("axe-core by npm: {reason}"))?;
        Ok(folder.join("node_modules/axe-core/axe.min.js"))
    });
    script.as_deref().map_err(Clone::clone)
}

/// Fills a folder of this name by the command, whose last argument it becomes, unless it is there.
fn fill(name: &str, mut command: Command) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.is_dir() {
        return Ok(folder);
    }
    let failed = |error: std::io::Error| error.to_string();
    // Other test processes may do the same: the first to finish names the folder.
    let work = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).map_err(failed)?;
    run(command.arg(work.path()))?;
    match fs::rename(work.path(), &folder) {
        Err(error) if !folder.is_dir() => Err(failed(error)),
        _ => Ok(folder),
    }
}

fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(last_line(&output));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn last_line(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim().to_owned()
}
