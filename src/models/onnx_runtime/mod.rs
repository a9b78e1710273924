//! ONNX Runtime's library: found, fetched once, loaded.
//!
//! The library comes out of its official PyPI wheel, pinned by version and SHA-256, through the
//! machine's own pip. That happens when a program first needs it, never in a build script, so that a
//! build needs no network beyond Cargo's. Knows nothing of models or releases.

mod wheel;

use std::{
    env,
    path::{Path, PathBuf},
};

use ort::environment::Environment;

pub use wheel::{FetchError, VERSION};

/// Where an operator says that the library is; it wins over everything.
pub const LIBRARY_VARIABLE: &str = "ORT_DYLIB_PATH";

/// Why there is no ONNX Runtime.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error(
        "{LIBRARY_VARIABLE} says that ONNX Runtime's library is {0}, but there is no such file; correct it, \
         or unset it to have the library fetched"
    )]
    NotThere(PathBuf),
    #[error(
        "ONNX Runtime {VERSION} is not in the cache ({cache}) and could not be fetched: {source}. Let \
         `python3 -m pip` reach a package index once, or put the library from the wheel \
         onnxruntime=={VERSION} anywhere on this machine and set {LIBRARY_VARIABLE} to its path",
        cache = .cache.display()
    )]
    Fetch { cache: PathBuf, source: FetchError },
    #[error(
        "{path} is not an ONNX Runtime library that can be used ({reason}); expected version {VERSION} for \
         this machine. {advice}",
        path = .path.display()
    )]
    Load { path: PathBuf, reason: String, advice: &'static str },
}

/// ONNX Runtime, loaded into this process. It can be loaded once; clones share it.
#[derive(Debug, Clone)]
pub struct OnnxRuntime {
    environment: Environment,
}

impl OnnxRuntime {
    /// Finds the library, fetching it into `cache` if need be, and loads it. May take as long as a
    /// download of 24 MB; `notice` is told before one begins.
    pub fn load(cache: &Path, notice: impl FnOnce(&str)) -> Result<Self, LibraryError> {
        let named = env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        let advice = match named {
            Some(_) => "Set ORT_DYLIB_PATH to another, or unset it to have the library fetched",
            None => "Delete it to have it fetched again",
        };
        let library = find(named, cache, notice)?;
        let refuse = |reason: String| LibraryError::Load { path: library.clone(), reason, advice };
        let environment = ort::init_from(&library)
            .map_err(|error| refuse(error.to_string()))?
            .with_name("atelier")
            .with_telemetry(false)
            .build()
            .map_err(|error| refuse(error.to_string()))?;
        Ok(Self { environment })
    }

    /// What sessions are built in.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The library's own words about its version and build.
    pub fn build_info(&self) -> &'static str {
        ort::info()
    }
}

fn find(named: Option<PathBuf>, cache: &Path, notice: impl FnOnce(&str)) -> Result<PathBuf, LibraryError> {
    if let Some(path) = named {
        return if path.is_file() { Ok(path) } else { Err(LibraryError::NotThere(path)) };
    }
    wheel::fetch(cache, notice).map_err(|source| LibraryError::Fetch { cache: cache.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_library_that_is_not_there_is_said_so() {
        let error =
            find(Some("/nowhere/libonnxruntime.so".into()), Path::new("/unused"), |_| {}).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ORT_DYLIB_PATH says that ONNX Runtime's library is /nowhere/libonnxruntime.so, but there is no \
             such file; correct it, or unset it to have the library fetched"
        );
    }
}
