//! A private Postgres server that all tests share while they run.
//!
//! It must end with the tests, however they end. So its owner is not the test process but a watchdog: this same binary,
//! started again in its own process group. Every test process holds a shared lock on `users.lock`, which the kernel
//! releases when the process ends, killed or not; the watchdog waits until it can lock the file alone, then stops the
//! server and removes its folder. Overlapping test processes share one server, so nextest, which starts a process for
//! each test, does not start a server each time.
//!
//! `private_server.rs` is the server itself.

use std::{
    env,
    fs::{self, File, TryLockError},
    io::{self, BufRead, BufReader, Write},
    net::TcpStream,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::OnceLock,
    thread,
    time::Duration,
};

use super::private_server::{PrivateServer, binaries};

const WATCHDOG: &str = "ATELIER_TESTS_POSTGRES_WATCHDOG";
/// How long the server outlives the last test process: longer than nextest's pause between two.
const GRACE: Duration = Duration::from_secs(1);
/// Its data does not outlive the tests, so nothing waits for a disk.
const FAST: &str = "-c synchronous_commit=off";

/// The URL of a database in which others can be created, or why there is none.
pub fn url() -> Result<String, String> {
    static URL: OnceLock<Result<String, String>> = OnceLock::new();
    URL.get_or_init(|| match env::var("DATABASE_URL") {
        Ok(url) => Ok(url),
        Err(_) => private().map_err(|error| format!("Postgres: {error}")),
    })
    .clone()
}

/// The private server's URL. Starts the server unless another test process did.
fn private() -> io::Result<String> {
    // Held until this process ends, which the watchdog waits for.
    static IN_USE: OnceLock<File> = OnceLock::new();
    let shared = Shared::open()?;
    let in_use = File::create(shared.0.join("users.lock"))?;
    in_use.lock_shared()?;
    IN_USE.set(in_use).map_err(|_| io::Error::other("asked for twice"))?;

    let starting = File::create(shared.0.join("start.lock"))?;
    starting.lock()?;
    if let Some(url) = shared.running() {
        return Ok(url);
    }
    // Checked here, so that the reason can be reported.
    binaries()?;
    let mut watchdog = Command::new(env::current_exe()?)
        .env(WATCHDOG, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let mut answer = String::new();
    let stdout = watchdog.stdout.take().expect("piped just above");
    BufReader::new(stdout).read_line(&mut answer)?;
    match answer.trim().strip_prefix("ready ") {
        Some(url) => Ok(url.to_owned()),
        None => Err(io::Error::other(format!("the private server did not start: {}", answer.trim()))),
    }
}

pub fn is_watchdog() -> bool {
    env::var_os(WATCHDOG).is_some()
}

/// The main function of the watchdog.
pub fn watch() -> ExitCode {
    let started = Shared::open().and_then(|shared| Ok((PrivateServer::start(FAST)?, shared)));
    let (server, shared) = match started {
        Ok(started) => started,
        Err(error) => {
            println!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let watched = shared.announce(&server.url).and_then(|()| {
        // The reader may be gone.
        let _ = writeln!(io::stdout(), "ready {}", server.url);
        shared.wait_until_unused()
    });
    shared.withdraw();
    // This removes its folder, too.
    let _ = server.stop();
    if watched.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The folder that test processes and the watchdog share.
struct Shared(PathBuf);

impl Shared {
    fn open() -> io::Result<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("postgres");
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    fn announce(&self, url: &str) -> io::Result<()> {
        let unfinished = self.0.join("server.new");
        fs::write(&unfinished, url)?;
        fs::rename(unfinished, self.0.join("server"))
    }

    fn withdraw(&self) {
        let _ = fs::remove_file(self.0.join("server"));
    }

    /// The announced server, if it still runs: its watchdog may have been killed.
    fn running(&self) -> Option<String> {
        let url = fs::read_to_string(self.0.join("server")).ok()?;
        let address = url.split_once('@')?.1.split('/').next()?;
        TcpStream::connect(address).is_ok().then_some(url)
    }

    /// Returns with the lock held until this process ends: new test processes wait, and start a new server.
    fn wait_until_unused(&self) -> io::Result<()> {
        let users = File::create(self.0.join("users.lock"))?;
        loop {
            users.lock()?;
            users.unlock()?;
            thread::sleep(GRACE);
            match users.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        std::mem::forget(users);
        Ok(())
    }
}
