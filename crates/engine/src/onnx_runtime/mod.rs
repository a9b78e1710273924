//! Finds, fetches and loads ONNX Runtime's library.
//!
//! The library comes from its official PyPI wheel. A package of Atelier brings it along; otherwise the machine's own pip
//! fetches the wheel, pinned by version and SHA-256, when a program first needs it. A build script would need a network
//! beyond Cargo's.
//!
//! Must not know models or releases.

mod telemetry;
mod wheel;

use std::{
    convert::Infallible,
    env,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError, mpsc},
    time::Duration,
};

use ort::environment::Environment;

pub use wheel::{FetchError, VERSION};

/// The environment variable with the path of the library. It takes precedence over the cache.
pub const LIBRARY_VARIABLE: &str = "ORT_DYLIB_PATH";

/// Why ONNX Runtime cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error(
        "ONNX Runtime's telemetry is on and could not be turned off on this platform; start the program with the variable \
         ORT_DISABLE_TELEMETRY=1"
    )]
    Telemetry,
    #[error(
        "{LIBRARY_VARIABLE} is {0}, but there is no such file; set it to the path of ONNX Runtime's library, or unset \
         it to have the library fetched"
    )]
    Missing(PathBuf),
    #[error(
        "ONNX Runtime {VERSION} is missing or damaged in the cache ({cache}) and could not be fetched: {source}. Give \
         `python3 -I -m pip` access to a package index once, or copy the library from the wheel onnxruntime=={VERSION} to \
         this machine and set {LIBRARY_VARIABLE} to its path",
        cache = .cache.display()
    )]
    Fetch { cache: PathBuf, source: FetchError },
    #[error(
        "cannot load ONNX Runtime from {path} ({reason}); expected version {VERSION} for this machine. {advice}",
        path = .path.display()
    )]
    Load { path: PathBuf, reason: String, advice: &'static str },
}

/// Disconnected once the last clone of [`OnnxRuntime`] is gone.
static IN_USE: Mutex<Option<mpsc::Receiver<Infallible>>> = Mutex::new(None);

/// ONNX Runtime, loaded into this process. It can be loaded only once; clones share it.
#[derive(Debug, Clone)]
pub struct OnnxRuntime {
    environment: Environment,
    /// After the environment, because fields are dropped in this order.
    _in_use: mpsc::Sender<Infallible>,
}

/// Waits until nothing uses the library any more. A program must do so before it ends: otherwise ONNX Runtime crashes at
/// exit once CUDA was used.
pub fn wait_until_released(at_most: Duration) {
    let Some(in_use) = IN_USE.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    match in_use.recv_timeout(at_most) {
        Err(mpsc::RecvTimeoutError::Disconnected) => tracing::debug!("ONNX Runtime is released"),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            tracing::warn!("ending although a thread still has a model");
        }
    }
}

impl OnnxRuntime {
    /// Finds the library, or fetches it into `cache`, and loads it. Fetching downloads 24 MB; `notice` is called
    /// before. The cached file's digest is checked each time; a package's is its installer's affair.
    pub fn load(cache: &Path, notice: impl FnOnce(&str)) -> Result<Self, LibraryError> {
        if !telemetry::is_off() {
            return Err(LibraryError::Telemetry);
        }
        let named = env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        let (library, advice) = find(named, cache, notice)?;
        let load_error = |reason: String| LibraryError::Load { path: library.clone(), reason, advice };
        let environment = ort::init_from(&library)
            .map_err(|error| load_error(error.to_string()))?
            .with_name("atelier")
            .with_telemetry(false)
            .build()
            .map_err(|error| load_error(error.to_string()))?;
        let (sender, receiver) = mpsc::channel();
        *IN_USE.lock().unwrap_or_else(PoisonError::into_inner) = Some(receiver);
        Ok(Self { environment, _in_use: sender })
    }

    /// The environment in which sessions are built.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The library's description of its version and build.
    pub fn build_info(&self) -> &'static str {
        ort::info()
    }
}

/// The library's path, and what to do if it does not load.
fn find(
    named: Option<PathBuf>,
    cache: &Path,
    notice: impl FnOnce(&str),
) -> Result<(PathBuf, &'static str), LibraryError> {
    if let Some(path) = named {
        let advice = "Set ORT_DYLIB_PATH to another file, or unset it to have the library fetched";
        return if path.is_file() { Ok((path, advice)) } else { Err(LibraryError::Missing(path)) };
    }
    if let Some(path) = installation().and_then(|prefix| wheel::installed(&prefix)) {
        return Ok((path, "Install the package again that brought it"));
    }
    wheel::fetch(cache, notice)
        .map(|path| (path, "Delete the file to have it fetched again"))
        .map_err(|source| LibraryError::Fetch { cache: cache.to_owned(), source })
}

/// The folder that the program is installed in, with `bin` and `lib`: `/usr`, or a virtual environment of Python.
pub fn installation() -> Option<PathBuf> {
    Some(env::current_exe().ok()?.parent()?.parent()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_reported() {
        let error =
            find(Some("/nowhere/libonnxruntime.so".into()), Path::new("/unused"), |_| {}).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ORT_DYLIB_PATH is /nowhere/libonnxruntime.so, but there is no such file; set it to the path of ONNX \
             Runtime's library, or unset it to have the library fetched"
        );
    }
}
