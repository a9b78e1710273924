//! A private Postgres server, from the machine's own binaries, for as long as tests run.
//!
//! It must end with the tests, however they end. So it is not the test process that owns it but a
//! watchdog: this very binary, started again in a process group of its own. Every test process holds a
//! shared lock on `users.lock`, which the kernel releases when the process ends, killed or not; the
//! watchdog waits until it can lock the file alone, then stops the server and removes its folder. Test
//! processes that overlap share one server, so nextest, which starts a process a test, does not pay for a
//! start each time.
//!
//! The server listens on a unix socket in its own folder and on a free port of 127.0.0.1. It never syncs
//! to disk: its data is worth nothing.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File, TryLockError},
    io::{self, BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::OnceLock,
    thread,
    time::Duration,
};

use tempfile::TempDir;

const WATCHDOG: &str = "ATELIER_TESTS_POSTGRES_WATCHDOG";
/// How long the server outlives the last test process: longer than nextest's pause between two.
const GRACE: Duration = Duration::from_secs(1);

/// The URL of a database in which others can be created, or why there is none.
pub fn url() -> Result<String, String> {
    static URL: OnceLock<Result<String, String>> = OnceLock::new();
    URL.get_or_init(|| match env::var("DATABASE_URL") {
        Ok(url) => Ok(url),
        Err(_) => private().map_err(|error| format!("Postgres: {error}")),
    })
    .clone()
}

/// The private server's URL; it is started unless another test process did so.
fn private() -> io::Result<String> {
    // Held until this process ends; the watchdog waits for that.
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
    // Looked for here, so that the reason is ours to tell.
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

/// The watchdog's life.
pub fn watch() -> ExitCode {
    let started = Shared::open().and_then(|shared| Ok((PrivateServer::start()?, shared)));
    let (server, shared) = match started {
        Ok(started) => started,
        Err(error) => {
            println!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let watched = shared.announce(&server.url).and_then(|()| {
        // Nobody may be left to read it.
        let _ = writeln!(io::stdout(), "ready {}", server.url);
        shared.wait_until_unused()
    });
    shared.withdraw();
    server.stop();
    if watched.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The folder through which test processes and the watchdog know of each other.
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

    /// The server that was announced, if it is still there: its watchdog may have been killed.
    fn running(&self) -> Option<String> {
        let url = fs::read_to_string(self.0.join("server")).ok()?;
        let address = url.split_once('@')?.1.split('/').next()?;
        TcpStream::connect(address).is_ok().then_some(url)
    }

    /// Returns with the lock held until this process ends: whoever comes now waits, and starts afresh.
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

struct PrivateServer {
    binaries: PathBuf,
    folder: TempDir,
    owner: Option<Owner>,
    url: String,
}

/// Whom to run Postgres as: it refuses to run as root.
#[derive(Clone, Copy)]
struct Owner {
    user: u32,
    group: u32,
}

impl PrivateServer {
    fn start() -> io::Result<Self> {
        let binaries = binaries()?;
        // Not in the target folder: a socket's path has at most 107 characters, and the target folder
        // may be closed to the user whom Postgres runs as.
        let folder = tempfile::Builder::new().prefix("atelier-postgres-").tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
        let owner = owner(folder.path())?;
        if let Some(Owner { user, group }) = owner {
            chown(folder.path(), Some(user), Some(group))?;
        }
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let url = format!("postgres://atelier@127.0.0.1:{port}/postgres");
        let server = Self { binaries, folder, owner, url };
        server.initialise()?;
        let settings = format!(
            "-h 127.0.0.1 -p {port} -k {} -c fsync=off -c synchronous_commit=off -c full_page_writes=off \
             -c max_connections=200 -c shared_buffers=64MB",
            server.folder.path().display()
        );
        server.call("pg_ctl", &["-D", "data", "-l", "log", "-w", "-t", "60", "-o", &settings, "start"])?;
        Ok(server)
    }

    /// With a locale that does not sort by bytes, where this Postgres has ICU: what the migrations say
    /// about collation is then really tested.
    fn initialise(&self) -> io::Result<()> {
        let common = ["-D", "data", "-U", "atelier", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"];
        let icu = ["--locale-provider=icu", "--icu-locale=en-US"];
        let with_icu: Vec<&str> = common.iter().chain(&icu).copied().collect();
        self.call("initdb", &with_icu).or_else(|_| self.call("initdb", &common))
    }

    fn stop(self) {
        // Immediate: nothing in it is worth a checkpoint. The folder goes with `self`.
        let _ = self.call("pg_ctl", &["-D", "data", "-m", "immediate", "-w", "stop"]);
    }

    fn call(&self, program: &str, arguments: &[&str]) -> io::Result<()> {
        let mut command = Command::new(self.binaries.join(program));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        if let Some(Owner { user, group }) = self.owner {
            command.uid(user).gid(group);
        }
        // Files rather than pipes: the server inherits them and would keep a pipe open.
        let output = self.folder.path().join(format!("{program}.output"));
        command.stdout(File::create(&output)?).stderr(File::options().append(true).open(&output)?);
        if command.status()?.success() {
            return Ok(());
        }
        let said = fs::read_to_string(output)?;
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        Err(io::Error::other(format!("{program} failed: {last}")))
    }
}

/// None if we may run Postgres ourselves.
fn owner(ours: &Path) -> io::Result<Option<Owner>> {
    if fs::metadata(ours)?.uid() != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let find = |name: &str| {
        let mut fields =
            users.lines().map(|line| line.split(':')).find(|fields| fields.clone().next() == Some(name))?;
        Some(Owner { user: fields.nth(2)?.parse().ok()?, group: fields.next()?.parse().ok()? })
    };
    let owner = find("postgres").or_else(|| find("nobody"));
    owner.map(Some).ok_or_else(|| io::Error::other("it refuses to run as root, and there is no user nobody"))
}

/// Where `initdb` and its kin are: on the `PATH`, or where Debian puts them, the newest first.
fn binaries() -> io::Result<PathBuf> {
    let mut installed: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|version| {
            let path = version.ok()?.path();
            Some((path.file_name().and_then(OsStr::to_str)?.parse().ok()?, path.join("bin")))
        })
        .collect();
    installed.sort();
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(installed.into_iter().rev().map(|(_, folder)| folder))
        .find(|folder| folder.join("initdb").is_file() && folder.join("pg_ctl").is_file())
        .ok_or_else(|| io::Error::other("no initdb found in PATH or /usr/lib/postgresql"))
}
