//! Atomic writes of files and folders: made under another name, then renamed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// Writes or replaces a file.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<()> {
    let name = path.file_name().with_context(|| format!("{} is not a file name", path.display()))?;
    let beside = path.with_file_name(format!(".{}.partial", name.to_string_lossy()));
    let write = || -> io::Result<()> {
        fs::write(&beside, content)?;
        fs::rename(&beside, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// A new folder, made under its own name in a hidden one. If dropped before it is finished, it is deleted.
#[derive(Debug)]
pub(crate) struct NewFolder {
    partial: TempDir,
    inner: PathBuf,
    out: PathBuf,
}

impl NewFolder {
    /// # Errors
    /// If `out` exists and is not empty, or its parent cannot be written.
    pub(crate) fn new(out: &Path) -> Result<Self> {
        if let Ok(mut entries) = fs::read_dir(out)
            && entries.next().is_some()
        {
            bail!("{} is not empty: choose another name, or remove it first", out.display());
        }
        let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = out.file_name().with_context(|| format!("{} is not a folder name", out.display()))?;
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let partial = tempfile::Builder::new()
            .prefix(&format!(".{}.", name.to_string_lossy()))
            .suffix(".partial")
            .tempdir_in(parent)
            .with_context(|| format!("cannot write to {}", parent.display()))?;
        let inner = partial.path().join(name);
        fs::create_dir(&inner).with_context(|| format!("cannot create {}", inner.display()))?;
        Ok(Self { partial, inner, out: out.to_owned() })
    }

    /// The folder to write to.
    pub(crate) fn path(&self) -> &Path {
        &self.inner
    }

    /// Moves the folder to its place.
    pub(crate) fn finish(self) -> Result<()> {
        let Self { partial, inner, out } = self;
        let place = || -> io::Result<()> {
            if out.exists() {
                fs::remove_dir(&out)?;
            }
            fs::rename(&inner, &out)?;
            partial.close()
        };
        place().with_context(|| format!("cannot create the folder {}", out.display()))
    }
}
