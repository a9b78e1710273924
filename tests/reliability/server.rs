//! The built `atelier serve` as a process: started, measured, killed.

use std::{
    cell::Cell,
    fs::{self, File},
    io::{BufRead, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub use crate::demo::models;
use crate::{Ran, database::Kind};

/// How to start it.
pub struct Setup {
    database: String,
    models: PathBuf,
    address: String,
    variables: Vec<(String, String)>,
    filled: Cell<bool>,
    /// Has the log and the experiment's files.
    pub folder: TempDir,
}

impl Setup {
    /// With the demo release, on an address that stays the same after a restart.
    pub fn new(database: impl Into<String>) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        Ok(Self {
            database: database.into(),
            models: models(),
            address: format!("127.0.0.1:{port}"),
            variables: Vec::new(),
            filled: Cell::new(false),
            folder: TempDir::new()?,
        })
    }

    /// With a new `SQLite` database.
    pub fn sqlite() -> Result<Self> {
        let mut setup = Self::new(String::new())?;
        setup.database = format!("sqlite:{}", setup.folder.path().join("atelier.db").display());
        Ok(setup)
    }

    pub fn models(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.models);
        self
    }

    /// Sets `ATELIER__SECTION__KEY`.
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.variables.push((format!("ATELIER__{key}"), value.to_string()));
        self
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn database(&self) -> &str {
        &self.database
    }

    pub fn command(&self) -> Command {
        let mut command = self.atelier("serve");
        command.arg("--models").arg(&self.models).args(["--address", &self.address, "--device", "cpu"]);
        command
    }

    /// Imports the tables of a folder.
    pub fn import(&self, folder: &Path) -> Command {
        let mut command = self.atelier("import");
        command.arg(folder).stderr(Stdio::null());
        command
    }

    fn atelier(&self, verb: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atelier"));
        command.args(["--database", &self.database, verb]);
        command
            .current_dir(self.folder.path())
            .env_remove("DATABASE_URL")
            .env("RUST_LOG", "warn,ort=error")
            // Callers without keys.
            .env("ATELIER__ACCESS__REQUIRE_KEY", "false");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// The log of all starts so far.
    pub fn read_log(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// Starts it, the first time with the demo world, and waits until it answers.
    pub fn start(&self) -> Result<Server> {
        let log = File::options().create(true).append(true).open(self.log())?;
        if !self.filled.replace(true) {
            self.import(&self.models.join("demo")).status()?;
        }
        let mut child = self.command().stdout(Stdio::piped()).stderr(log).spawn()?;
        let stdout = child.stdout.take().context("piped just above")?;
        let server = Server { child };
        let mut first = String::new();
        // The line is empty if it ends before it is ready.
        BufReader::new(stdout).read_line(&mut first)?;
        if first.is_empty() {
            bail!("atelier did not start: {}", self.read_log());
        }
        Ok(server)
    }
}

/// Runs an experiment with a new database on the Postgres server that tests share.
pub fn on_postgres(run: impl FnOnce(&Setup) -> Ran) -> Ran {
    let server = Kind::Postgres.server().map_err(anyhow::Error::msg)?;
    let runtime = Runtime::new()?;
    let database = runtime.block_on(server.fresh()).map_err(anyhow::Error::from_boxed)?;
    let report = run(&Setup::new(&database.url)?);
    runtime.block_on(database.remove()).map_err(anyhow::Error::from_boxed)?;
    report
}

/// A running service. It is killed when it is dropped.
pub struct Server {
    child: Child,
}

impl Server {
    /// SIGKILL, as the kernel does when memory runs out.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// SIGTERM.
    pub fn terminate(&self) -> Result<()> {
        let status = Command::new("kill").arg(self.child.id().to_string()).status()?;
        anyhow::ensure!(status.success(), "kill: {status}");
        Ok(())
    }

    /// Its exit status, if it ended in time.
    pub fn wait(&mut self, most: Duration) -> Result<Option<ExitStatus>> {
        let began = Instant::now();
        while began.elapsed() < most {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(None)
    }

    /// Resident memory in megabytes.
    pub fn resident(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kilobytes / 1024.0)
    }

    /// The number of open files and sockets, and of threads.
    pub fn descriptors_and_threads(&self) -> Result<(usize, usize)> {
        let count = |what| anyhow::Ok(fs::read_dir(format!("/proc/{}/{what}", self.child.id()))?.count());
        Ok((count("fd")?, count("task")?))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
