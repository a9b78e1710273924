//! A Postgres server of this process, from the installed binaries.
//!
//! It listens on a unix socket in its own folder and on a free port of 127.0.0.1. It never syncs to disk, because its
//! data need not outlive the machine. The process that starts it stops it.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    io,
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

pub struct PrivateServer {
    binaries: PathBuf,
    pub folder: TempDir,
    owner: Option<Owner>,
    pub url: String,
    options: String,
}

/// The user to run Postgres as: it refuses to run as root.
#[derive(Clone, Copy)]
struct Owner {
    user: u32,
    group: u32,
}

impl PrivateServer {
    /// `settings` are further options of `postgres`.
    pub fn start(settings: &str) -> io::Result<Self> {
        let binaries = binaries()?;
        // Not in the target folder: a socket's path has at most 107 characters, and the target folder
        // may be closed to that user.
        let folder = tempfile::Builder::new().prefix("atelier-postgres-").tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
        let owner = owner(folder.path())?;
        if let Some(Owner { user, group }) = owner {
            chown(folder.path(), Some(user), Some(group))?;
        }
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let url = format!("postgres://atelier@127.0.0.1:{port}/postgres");
        let options = format!(
            "-h 127.0.0.1 -p {port} -k {} -c fsync=off -c full_page_writes=off -c max_connections=200 \
             -c shared_buffers=64MB {settings}",
            folder.path().display()
        );
        let server = Self { binaries, folder, owner, url, options };
        server.initialise()?;
        server.resume()?;
        Ok(server)
    }

    /// Starts it again with its data.
    pub fn resume(&self) -> io::Result<()> {
        self.call("pg_ctl", &["-D", "data", "-l", "log", "-w", "-t", "60", "-o", &self.options, "start"])
    }

    /// With a locale that does not sort by bytes, if this Postgres has ICU: that tests the migrations' collations.
    fn initialise(&self) -> io::Result<()> {
        let common = ["-D", "data", "-U", "atelier", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"];
        let icu = ["--locale-provider=icu", "--icu-locale=en-US"];
        let with_icu: Vec<&str> = common.iter().chain(&icu).copied().collect();
        self.call("initdb", &with_icu).or_else(|_| self.call("initdb", &common))
    }

    /// At once, as in a crash: its data needs no checkpoint.
    pub fn stop(&self) -> io::Result<()> {
        self.call("pg_ctl", &["-D", "data", "-m", "immediate", "-w", "stop"])
    }

    fn call(&self, program: &str, arguments: &[&str]) -> io::Result<()> {
        let mut command = Command::new(self.binaries.join(program));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        if let Some(Owner { user, group }) = self.owner {
            command.uid(user).gid(group);
        }
        // Files instead of pipes: the server inherits them and would keep a pipe open.
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

/// `None` if this user may run Postgres.
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

/// The folder of `initdb`: on the `PATH`, or where Debian puts it, newest first.
pub fn binaries() -> io::Result<PathBuf> {
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
