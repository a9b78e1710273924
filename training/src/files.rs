//! Files and folders that nobody ever sees half-written: made under another name, then renamed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// Writes a file, replacing the one that is there.
pub(crate) fn put(path: &Path, content: &[u8]) -> Result<()> {
    let name = path.file_name().with_context(|| format!("{} names no file", path.display()))?;
    let beside = path.with_file_name(format!(".{}.partial", name.to_string_lossy()));
    let put = || -> io::Result<()> {
        fs::write(&beside, content)?;
        fs::rename(&beside, path)
    };
    put().with_context(|| format!("cannot write {}", path.display()))
}

/// A folder in the making, under its own name in a hidden one. Dropped unfinished, it is gone.
#[derive(Debug)]
pub(crate) struct NewFolder {
    partial: TempDir,
    inner: PathBuf,
    out: PathBuf,
}

impl NewFolder {
    /// Refuses a place where something is already.
    pub(crate) fn begin(out: &Path) -> Result<Self> {
        if let Ok(mut entries) = fs::read_dir(out)
            && entries.next().is_some()
        {
            bail!("{} is not empty: choose another name, or remove it first", out.display());
        }
        let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = out.file_name().with_context(|| format!("{} names no folder", out.display()))?;
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        let partial = tempfile::Builder::new()
            .prefix(&format!(".{}.", name.to_string_lossy()))
            .suffix(".partial")
            .tempdir_in(parent)
            .with_context(|| format!("cannot write to {}", parent.display()))?;
        let inner = partial.path().join(name);
        fs::create_dir(&inner).with_context(|| format!("cannot make {}", inner.display()))?;
        Ok(Self { partial, inner, out: out.to_owned() })
    }

    /// Where to write meanwhile.
    pub(crate) fn path(&self) -> &Path {
        &self.inner
    }

    /// Puts it in its place.
    pub(crate) fn finish(self) -> Result<()> {
        let Self { partial, inner, out } = self;
        let place = || -> io::Result<()> {
            if out.exists() {
                fs::remove_dir(&out)?;
            }
            fs::rename(&inner, &out)?;
            partial.close()
        };
        place().with_context(|| format!("cannot put a folder at {}", out.display()))
    }
}
