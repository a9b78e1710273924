//! Programs that some tests need: whether they are installed, or fetched where possible.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// What examples in Python are tested with.
const EXPORTER: &str = include_str!("../../../docs/examples/requirements.txt");
const AGENT: &str = include_str!("../../../docs/examples/requirements-agent.txt");

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

/// Makes certificates.
pub fn openssl() -> Result<(), String> {
    answers("openssl", "version")
}

pub fn cargo_deny() -> Result<(), String> {
    there("cargo-deny").and_then(|()| there("git"))
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

/// numpy and onnx for the installed Python, installed once under the target folder.
pub fn onnx() -> Result<(), String> {
    onnx_packages().map(drop)
}

/// Python that finds numpy and onnx.
pub fn python_with_onnx() -> Command {
    python_with(onnx_packages().expect("the test declares that it needs onnx"))
}

fn onnx_packages() -> Result<&'static Path, String> {
    static PACKAGES: Installed = Installed::new();
    once(&PACKAGES, "numpy and onnx for Python", || install(EXPORTER))
}

/// The official client of the Model Context Protocol for the installed Python, installed once under the target folder.
pub fn mcp() -> Result<(), String> {
    mcp_packages().map(drop)
}

/// Python that finds that client.
pub fn python_with_mcp() -> Command {
    python_with(mcp_packages().expect("the test declares that it needs mcp"))
}

fn mcp_packages() -> Result<&'static Path, String> {
    static PACKAGES: Installed = Installed::new();
    once(&PACKAGES, "mcp for Python", || install(AGENT))
}

fn python_with(packages: &Path) -> Command {
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// axe-core's script, installed once under the target folder.
pub fn axe() -> Result<&'static Path, String> {
    static SCRIPT: Installed = Installed::new();
    once(&SCRIPT, "axe-core by npm", install_axe)
}

type Installed = OnceLock<Result<PathBuf, String>>;

fn once(
    installed: &'static Installed,
    what: &str,
    install: impl FnOnce() -> Result<PathBuf, String>,
) -> Result<&'static Path, String> {
    let install = || install().map_err(|reason| format!("{what}: {reason}"));
    installed.get_or_init(install).as_deref().map_err(Clone::clone)
}

fn install_axe() -> Result<PathBuf, String> {
    const AXE: &str = "axe-core@4.14.1";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(AXE);
    let script = |folder: &Path| folder.join("node_modules/axe-core/axe.min.js");
    if !script(&folder).is_file() {
        let failed = |error: std::io::Error| error.to_string();
        let work = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).map_err(failed)?;
        let flags = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
        run(Command::new("npm").args(flags).arg(work.path()).arg(AXE))?;
        match fs::rename(work.path(), &folder) {
            Err(error) if !folder.is_dir() => return Err(failed(error)),
            _ => {}
        }
    }
    Ok(script(&folder))
}

/// A wheel is for one version of Python and one machine, so the folder names them.
fn install(list: &str) -> Result<PathBuf, String> {
    const PYTHON: &str =
        "import sys, sysconfig; print(sys.implementation.cache_tag, sysconfig.get_platform())";
    let python = run(Command::new("python3").args(["-c", PYTHON]))?;
    let packages: Vec<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
    let digest = hex::encode(&Sha256::digest(list)[..6]);
    let name = format!("python-{digest}-{}", python.trim().replace(' ', "-"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.is_dir() {
        return Ok(folder);
    }
    let failed = |error: std::io::Error| error.to_string();
    // Other test processes may do the same: the first to finish names the folder.
    let work = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).map_err(failed)?;
    let flags = "-m pip install --quiet --disable-pip-version-check --no-input --only-binary=:all: --no-deps";
    run(Command::new("python3").args(flags.split(' ')).arg("--target").arg(work.path()).args(packages))?;
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
