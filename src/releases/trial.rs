//! Tries a release in a process of its own, which ends before it takes memory that this one needs.
//!
//! A model may allocate more than there is, while its file is read or in any run. If this process did that, the system would
//! end it, and with it the live release.

use std::{
    env, fs,
    io::{self, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{self, Child, Command, ExitStatus, Stdio},
    thread::{self, sleep},
    time::{Duration, Instant},
};

use atelier_engine::inference::{LoadError, are_runs_ended};

use crate::config::{PREFIX, memory::Memory};

/// How often the memory of the process is read: it takes a few megabytes between.
const LOOK: Duration = Duration::from_millis(5);
/// For reading a large release from a slow disk. Each model has a deadline of its own.
const DEADLINE: Duration = Duration::from_mins(10);
/// Of what is left, in percent. Requests need the rest.
const SHARE: u64 = 90;

/// How the process ends if the release cannot be served: it would be refused again, or perhaps not.
pub(crate) const REFUSED_FOR_GOOD: u8 = 3;
pub(crate) const REFUSED: u8 = 4;

/// How to start the process.
#[derive(Debug, Clone)]
pub struct Trial {
    /// `atelier`, and what it needs before the release.
    pub program: PathBuf,
    pub arguments: Vec<String>,
}

impl Trial {
    /// The bytes that the release took at most. It is not run again if it passed a trial in which it took so many. Blocks.
    pub(super) fn run(&self, release: &Path, before: Option<u64>) -> Result<u64, LoadError> {
        let left = Memory::now().map_or(u64::MAX, |memory| memory.left / 100 * SHARE);
        if let Some(taken) = before {
            let [needs, left_now] = [taken, left].map(megabytes);
            let reason = format!(
                "it took {needs} in its trial run, and {left_now} are left for it; expected more memory"
            );
            return if taken <= left { Ok(taken) } else { Err(refuse(reason)) };
        }
        let mut command = Command::new(&self.program);
        // It reads models of others, so it gets no passwords. Its settings are its arguments.
        let settings = env::vars_os().map(|(name, _)| name);
        for name in settings.filter(|name| name.to_string_lossy().starts_with(PREFIX)) {
            command.env_remove(name);
        }
        let mut child = command
            .env_remove("DATABASE_URL")
            .args(&self.arguments)
            .arg(release)
            // A signal to this process's group ends the trial in order, as the end of its input does.
            .process_group(0)
            // The process ends when this one does, which closes it.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let ended = watch(&mut child, left);
        let mut said = String::new();
        if ended.is_err() {
            let _ = child.kill();
            child.wait()?;
        } else if let Some(mut stdout) = child.stdout.take() {
            stdout.read_to_string(&mut said)?;
        }
        let (status, peak) = ended?;
        match status.code().and_then(|code| u8::try_from(code).ok()) {
            Some(0) => Ok(peak),
            Some(code @ (REFUSED_FOR_GOOD | REFUSED)) => {
                Err(LoadError::Trial { reason: said.trim().to_owned(), for_good: code == REFUSED_FOR_GOOD })
            }
            _ => {
                let taken = megabytes(peak);
                Err(refuse(format!(
                    "its trial run ended with {status} when it had taken {taken}; expected a model that runs"
                )))
            }
        }
    }
}

/// How the process ended, and its memory at most.
fn watch(child: &mut Child, left: u64) -> Result<(ExitStatus, u64), LoadError> {
    let (began, mut peak) = (Instant::now(), 0);
    loop {
        peak = peak.max(read_memory(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait()? {
            return Ok((status, peak));
        }
        if peak > left {
            return Err(refuse(format!(
                "its trial run took more than {}, which is what is left for it; expected a model that needs less, or a service \
                 with more memory",
                megabytes(left)
            )));
        }
        if are_runs_ended() {
            return Err(refuse("the service stops".to_owned()));
        }
        if began.elapsed() > DEADLINE {
            return Err(refuse(format!("its trial run did not end in {} s", DEADLINE.as_secs())));
        }
        sleep(LOOK);
    }
}

/// Without the pages of files, which make room when they must.
fn read_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(kilobytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn refuse(reason: String) -> LoadError {
    LoadError::Trial { reason, for_good: false }
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}

/// Ends this process with the one that started it, and before it if the system lacks memory.
pub(crate) fn follow_parent() {
    // Not every system has it.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        process::exit(i32::from(REFUSED));
    });
}
