//! The folder of releases: which there are, whether their files are complete, and how the last attempt to load each ended.
//!
//! Listing must be cheap, so it reads manifests and the sizes of files only. What loading has found is remembered for as
//! long as the files stay as they were.
//!
//! Must not know which release is live.

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use atelier_core::util::digest;
use atelier_engine::{
    inference::{Engine, LoadError, Serving},
    release::{FolderState, MANIFEST, Manifest, ReleaseError, glance},
};
use tempfile::TempDir;

use super::{packed_release::unpack, trial::Trial};
use crate::platform::db::StoreError;

/// How the names of folders in which archives are unpacked begin. Hidden, so they are not listed. The process that
/// unpacks locks the folder: one without a lock is left over from a process that was killed.
const UNPACKING: &str = ".upload-";
/// Longer than a new folder is without its lock.
const UNLOCKED: Duration = Duration::from_secs(10);
/// After this time such a folder is left over whatever its lock says: some file systems have none.
const LEFT_OVER: Duration = Duration::from_hours(24);

/// The memory of a model and its tables, in sizes of their files, and of an article of the catalogue in bytes. Measured with the
/// models of a demo, one, five and eleven of them: 107 %, 89 % and 103 % of what the process grew by.
const PER_MODEL: u64 = 4;
const PER_TABLES: u64 = 3;
const PER_ARTICLE: u64 = 2000;

#[derive(Debug)]
pub(crate) struct ReleaseFolder {
    path: PathBuf,
    /// None if this process may try releases itself.
    trial: Option<Trial>,
    /// How loading ended, by the release's name.
    loaded: Mutex<HashMap<String, Loaded>>,
}

#[derive(Debug, Clone)]
struct Loaded {
    state: FolderState,
    /// The bytes that it took in its trial.
    memory: Option<u64>,
    /// The reason if it was refused.
    refused: Option<String>,
    /// Whether it is refused again for as long as the files stay as they are.
    for_good: bool,
}

/// A release in the folder.
#[derive(Debug)]
pub struct Listed {
    pub name: String,
    /// An error says why the release cannot be loaded.
    pub manifest: Result<Manifest, ReleaseError>,
    /// None if its models have not been tried since its files last changed. An error says why they were refused.
    pub tried: Option<Result<(), String>>,
}

/// A packed release that a caller sent.
#[derive(Debug)]
pub struct Packed {
    /// Without a name, at its start.
    pub file: File,
    /// Its SHA-256 by the caller, in lower-case hexadecimal.
    pub sha256: String,
    /// The most bytes of its files.
    pub most: u64,
}

/// Why a packed release was not added. Nothing is left of it.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    #[error("the body has the SHA-256 {found}; send it again")]
    Digest { found: String },
    #[error("{0}")]
    Archive(String),
    #[error("there is a release {0} already, and releases never change; give it another name")]
    Exists(String),
    /// By the checks of loading.
    #[error("{reason}")]
    Refused { name: String, reason: String },
    #[error("cannot write to the models folder: {0}")]
    Disk(io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An unpacked release that is not in the folder yet. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Unpacked {
    folder: TempDir,
    _lock: File,
    pub(crate) name: String,
}

impl Listed {
    /// Why the release cannot be served, as far as this is known.
    pub fn refused(&self) -> Option<String> {
        match (&self.manifest, &self.tried) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(_), Some(Err(reason))) => Some(reason.clone()),
            (Ok(_), _) => None,
        }
    }
}

impl ReleaseFolder {
    pub(crate) fn new(path: PathBuf, trial: Option<Trial>) -> Self {
        Self { path, trial, loaded: Mutex::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a release. The name must not contain path separators.
    pub(crate) fn find(&self, name: &str) -> Option<PathBuf> {
        let release = self.path.join(name);
        let plain = Path::new(name).file_name().is_some_and(|file_name| file_name == name);
        (plain && release.join(MANIFEST).is_file()).then_some(release)
    }

    /// Why loading would fail again, if its files are the same as when it failed for good.
    pub(crate) fn find_refusal(&self, name: &str) -> Option<String> {
        let (_, state) = glance(&self.path.join(name)).ok()?;
        self.remembered(name, &state).filter(|loaded| loaded.for_good)?.refused
    }

    fn remembered(&self, name: &str, state: &FolderState) -> Option<Loaded> {
        let all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(name).filter(|loaded| loaded.state == *state).cloned()
    }

    /// The bytes that a release took in the trial that it passed with the same files.
    fn taken(&self, name: &str) -> Option<u64> {
        let (_, state) = glance(&self.path.join(name)).ok()?;
        self.remembered(name, &state).filter(|loaded| loaded.refused.is_none())?.memory
    }

    /// Loads a release, unless it is the first after a trial, or if there is the memory that it took in one. Remembers how that ended.
    pub(crate) fn load(
        &self,
        engine: &Engine,
        name: &str,
        release: &Path,
        is_first: bool,
    ) -> Result<Serving, LoadError> {
        let loaded = self.remember(engine, name, release, || {
            let trial = self.trial.as_ref().filter(|_| !is_first);
            let memory_bytes = trial.map(|trial| trial.run(release, self.taken(name))).transpose()?;
            if memory_bytes.is_some() {
                tracing::info!(release = name, memory_bytes, "a release passed its trial");
            }
            Ok((engine.load(release)?, memory_bytes))
        });
        loaded.map(|(serving, _)| serving)
    }

    /// `load` also gives the bytes that it took in its trial.
    fn remember<T>(
        &self,
        engine: &Engine,
        name: &str,
        release: &Path,
        load: impl FnOnce() -> Result<(T, Option<u64>), LoadError>,
    ) -> Result<(T, Option<u64>), LoadError> {
        let before = glance(release);
        let loaded = load();
        if let Ok((_, state)) = before {
            let error = loaded.as_ref().err();
            let (refused, for_good) =
                (error.map(ToString::to_string), error.is_some_and(|error| engine.fails_again(error)));
            let mut all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            let memory = loaded.as_ref().ok().and_then(|(_, taken)| *taken);
            all.insert(name.to_owned(), Loaded { state, memory, refused, for_good });
        }
        loaded
    }

    /// About how many bytes of memory a release needs besides the shop's `articles`, by the sizes of its files.
    pub(crate) fn estimate_memory(&self, name: &str, articles: usize) -> Result<u64, ReleaseError> {
        let (manifest, _) = glance(&self.path.join(name))?;
        let size = |file: &String| manifest.files.get(file).map_or(0, |entry| entry.bytes);
        let models = manifest.methods.iter().map(|method| {
            PER_MODEL * size(&method.file) + PER_TABLES * method.tables.as_ref().map_or(0, size)
        });
        let catalogue = PER_ARTICLE * u64::try_from(articles).unwrap_or(u64::MAX / PER_ARTICLE);
        Ok(models.sum::<u64>() + size(&manifest.articles) + catalogue)
    }

    /// A file without a name next to the releases, of which nothing is left even if the process is killed.
    pub(crate) fn make_file(&self) -> io::Result<File> {
        fs::create_dir_all(&self.path)?;
        tempfile::tempfile_in(&self.path)
    }

    /// Unpacks a release next to the others.
    pub(crate) fn unpack(&self, packed: &Packed) -> Result<Unpacked, AddError> {
        let found = digest::sha256_of(&packed.file).map_err(AddError::Disk)?;
        if found != packed.sha256 {
            return Err(AddError::Digest { found });
        }
        self.remove_left_over().map_err(AddError::Disk)?;
        let folder = tempfile::Builder::new().prefix(UNPACKING).tempdir_in(&self.path);
        let folder = folder.map_err(AddError::Disk)?;
        let lock = File::open(folder.path()).map_err(AddError::Disk)?;
        // Without a lock only the removal of what is left over comes later.
        let _ = lock.try_lock();
        let name = unpack(&packed.file, folder.path(), packed.most).map_err(|error| match error {
            AddError::Archive(reason) => AddError::Archive(shorten(&reason, folder.path())),
            error => error,
        })?;
        Ok(Unpacked { folder, _lock: lock, name })
    }

    /// Tries an unpacked release as activating it does. Returns the bytes of memory that it took, if they were measured.
    pub(crate) fn try_out(&self, engine: &Engine, unpacked: &Unpacked) -> Result<Option<u64>, AddError> {
        let Unpacked { folder, name, .. } = unpacked;
        if self.path.join(name).exists() {
            return Err(AddError::Exists(name.clone()));
        }
        let release = folder.path().join(name);
        let tried = self.remember(engine, name, &release, || match &self.trial {
            Some(trial) => trial.run(&release, None).map(|bytes| ((), Some(bytes))),
            None => engine.load(&release).map(|_| ((), None)),
        });
        tried.map(|((), bytes)| bytes).map_err(|error| {
            let reason = shorten(&error.to_string(), folder.path());
            AddError::Refused { name: name.clone(), reason }
        })
    }

    /// Moves an unpacked release into the folder, complete.
    pub(crate) fn take(&self, unpacked: &Unpacked) -> Result<Listed, AddError> {
        let name = &unpacked.name;
        match fs::rename(unpacked.folder.path().join(name), self.path.join(name)) {
            // Another caller was faster.
            Err(_) if self.path.join(name).exists() => return Err(AddError::Exists(name.clone())),
            moved => moved.map_err(AddError::Disk)?,
        }
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(AddError::Disk)?;
        Ok(self.look_at(name.clone()))
    }

    /// Removes what killed processes left of packed releases.
    pub(crate) fn remove_left_over(&self) -> io::Result<()> {
        for entry in self.path.read_dir()? {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().starts_with(UNPACKING) {
                continue;
            }
            let modified = || entry.metadata().ok()?.modified().ok();
            let is_older = |age| modified().is_some_and(|modified| modified + age < SystemTime::now());
            let is_free = || File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok());
            if is_older(LEFT_OVER) || is_older(UNLOCKED) && is_free() {
                // Another replica may have removed it, and an upload does not need it to go.
                if let Err(error) = fs::remove_dir_all(entry.path()) {
                    tracing::warn!(%error, "cannot remove what is left over from a packed release");
                }
            }
        }
        Ok(())
    }

    /// The releases, by name. A folder without a manifest is one that cannot be served, unless its name says that it is
    /// for something else.
    pub(crate) fn list(&self) -> io::Result<Vec<Listed>> {
        let mut names = Vec::new();
        let entries = match self.path.read_dir() {
            // A service may start without releases.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            if let Some(name) = path.file_name().and_then(|name| name.to_str())
                && path.is_dir()
                && !name.starts_with('.')
                && name != "lost+found"
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names.into_iter().map(|name| self.look_at(name)).collect())
    }

    fn look_at(&self, name: String) -> Listed {
        let (manifest, state) = match glance(&self.path.join(&name)) {
            Ok((manifest, state)) => (Ok(manifest), Some(state)),
            Err(error) => (Err(error), None),
        };
        let same = state.and_then(|state| self.remembered(&name, &state));
        let tried = same.map(|loaded| loaded.refused.map_or(Ok(()), Err));
        Listed { name, manifest, tried }
    }
}

/// An error without the folder in which a release was unpacked.
fn shorten(error: &str, folder: &Path) -> String {
    error.replace(&format!("{}/", folder.display()), "")
}
