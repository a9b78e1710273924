//! The folder of releases: which there are, whether their files are complete, and how the last attempt to load each ended.
//!
//! Listing must be cheap, so it reads manifests and the sizes of files only. What loading has found is remembered for as
//! long as the files stay as they were.
//!
//! Must not know which release is live.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use atelier_engine::{
    inference::{Engine, LoadError, Serving},
    release::{FolderState, MANIFEST, Manifest, ReleaseError, glance},
};

#[derive(Debug)]
pub(super) struct ReleaseFolder {
    path: PathBuf,
    /// How loading ended, by the release's name.
    loaded: Mutex<HashMap<String, Loaded>>,
}

#[derive(Debug)]
struct Loaded {
    state: FolderState,
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
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, loaded: Mutex::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a release. The name must not contain path separators.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        let release = self.path.join(name);
        let plain = Path::new(name).file_name().is_some_and(|file_name| file_name == name);
        (plain && release.join(MANIFEST).is_file()).then_some(release)
    }

    /// Whether loading would fail again, as its files are the same as when it failed.
    pub(super) fn refuses(&self, name: &str) -> bool {
        glance(&self.path.join(name)).is_ok_and(|(_, state)| {
            let all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            all.get(name).is_some_and(|loaded| loaded.for_good && loaded.state == state)
        })
    }

    /// Loads a release, and remembers how that ended.
    pub(super) fn load(&self, engine: &Engine, name: &str, release: &Path) -> Result<Serving, LoadError> {
        let before = glance(release);
        let loaded = engine.load(release);
        if let Ok((_, state)) = before {
            let error = loaded.as_ref().err();
            let (refused, for_good) =
                (error.map(ToString::to_string), error.is_some_and(|error| engine.fails_again(error)));
            let mut all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(name.to_owned(), Loaded { state, refused, for_good });
        }
        loaded
    }

    /// The releases, by name. A folder without a manifest is one that cannot be served, unless its name says that it is
    /// for something else.
    pub(super) fn list(&self) -> io::Result<Vec<Listed>> {
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
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let same = loaded.get(&name).filter(|loaded| Some(&loaded.state) == state.as_ref());
        let tried = same.map(|loaded| loaded.refused.clone().map_or(Ok(()), Err));
        Listed { name, manifest, tried }
    }
}
