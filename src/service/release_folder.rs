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

use crate::models::{
    engine::{Engine, LoadError, Serving},
    release::{FolderState, MANIFEST, Manifest, ReleaseError, glance},
};

#[derive(Debug)]
pub(super) struct ReleaseFolder {
    path: PathBuf,
    /// How loading ended, by the release's name: the reason if it was refused.
    loaded: Mutex<HashMap<String, (FolderState, Option<String>)>>,
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

    /// Loads a release, and remembers how that ended.
    pub(super) fn load(&self, engine: &Engine, name: &str, release: &Path) -> Result<Serving, LoadError> {
        let before = glance(release);
        let loaded = engine.load(release);
        if let Ok((_, state)) = before {
            let reason = loaded.as_ref().err().map(ToString::to_string);
            let mut all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(name.to_owned(), (state, reason));
        }
        loaded
    }

    /// The releases, by name.
    pub(super) fn list(&self) -> io::Result<Vec<Listed>> {
        let mut names = Vec::new();
        let entries = match self.path.read_dir() {
            // A service may start without releases.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            if path.join(MANIFEST).is_file()
                && let Some(name) = path.file_name().and_then(|name| name.to_str())
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
        let same = loaded.get(&name).filter(|(then, _)| Some(then) == state.as_ref());
        let tried = same.map(|(_, reason)| reason.clone().map_or(Ok(()), Err));
        Listed { name, manifest, tried }
    }
}
