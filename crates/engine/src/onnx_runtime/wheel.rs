//! Fetches the pinned wheel with pip and extracts the library.

use std::{
    fs::{self, File},
    io, iter,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use atelier_core::util::digest;

/// The ONNX Runtime that Atelier is built and tested against.
pub const VERSION: &str = "1.31.1";

/// One platform's wheel. The interpreter tag is pinned too, so that the digest does not depend on the machine's Python.
/// pip can fetch a wheel for another interpreter, and the shared library inside is the same.
struct Wheel {
    os: &'static str,
    arch: &'static str,
    platform: &'static str,
    sha256: &'static str,
    library: &'static str,
    /// The SHA-256 of the library inside.
    library_sha256: &'static str,
}

const WHEELS: [Wheel; 3] = [
    Wheel {
        os: "linux",
        arch: "x86_64",
        platform: "manylinux_2_28_x86_64",
        sha256: "1f3dea47f2f0e5117c2404cea7d21fd253ae7836a3bf167a501cdfbb2600d536",
        library: "libonnxruntime.so.1.31.1",
        library_sha256: "fc44112fbe06d7d689c57e11d3862031f64711007e4ee020f8eed5185fd2c1d3",
    },
    Wheel {
        os: "linux",
        arch: "aarch64",
        platform: "manylinux_2_28_aarch64",
        sha256: "0b9a492176886992e0e875f06bc0367e333f5fff11711a2d642e18b02f3009cc",
        library: "libonnxruntime.so.1.31.1",
        library_sha256: "8aa3b76b28c778a2b1dd660d34161adb1d508c9ccd04ff9dc80e26eca5df8467",
    },
    Wheel {
        os: "macos",
        arch: "aarch64",
        platform: "macosx_14_0_arm64",
        sha256: "96dd2564b10ea7153ad9c207e7cd8e5917cb3ba521e0e0a62ac03486fdc8d56c",
        library: "libonnxruntime.1.31.1.dylib",
        library_sha256: "d586cbe89effc085a09d3341b3cfbd5c322517f9d397aeb20814af21433f2b36",
    },
];

/// Extracts one member of a wheel, which is a zip file. pip needs Python anyway, so its `zipfile` saves a dependency.
const EXTRACT: &str = "import shutil, sys, zipfile
wheel, member, target = sys.argv[1:]
with zipfile.ZipFile(wheel).open(member) as source, open(target, 'wb') as sink:
    shutil.copyfileobj(source, sink)
";

/// Why the library could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("there is no pinned wheel for {os} on {arch}")]
    Platform { os: &'static str, arch: &'static str },
    #[error("python3 was not found")]
    NoPython,
    #[error("pip failed: {0}")]
    Pip(String),
    #[error("the SHA-256 of {path} is {found}, expected {expected}", path = .path.display())]
    Digest { path: PathBuf, found: String, expected: &'static str },
    #[error("the wheel could not be unpacked: {0}")]
    Unpack(String),
    #[error("{path}: {source}", path = .path.display())]
    File { path: PathBuf, source: io::Error },
}

/// The library that a package installed next to the program: Debian's own, or the wheel of ONNX Runtime that Atelier's wheel
/// requires.
pub(super) fn installed(prefix: &Path) -> Option<PathBuf> {
    let library = this_platform().ok()?.library;
    let lib = prefix.join("lib");
    let pythons = fs::read_dir(&lib).ok()?.flatten().map(|entry| entry.path());
    let packages = pythons
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3")))
        .flat_map(|python| ["site-packages", "dist-packages"].map(|folder| python.join(folder)))
        .map(|packages| packages.join("onnxruntime/capi"));
    iter::once(lib.join("atelier"))
        .chain(packages)
        .map(|folder| folder.join(library))
        .find(|path| path.is_file())
}

fn this_platform() -> Result<&'static Wheel, FetchError> {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let is_ours = |wheel: &&Wheel| wheel.os == os && wheel.arch == arch;
    WHEELS.iter().find(is_ours).ok_or(FetchError::Platform { os, arch })
}

/// Returns the library's path in the cache, and fetches it first if necessary. Processes may do this at the same time:
/// each works in a folder of its own, and they rename the same bytes.
pub(super) fn fetch(cache: &Path, notice: impl FnOnce(&str)) -> Result<PathBuf, FetchError> {
    let wheel = this_platform()?;
    let folder = cache.join("onnxruntime").join(VERSION);
    let library = folder.join(wheel.library);
    let why = match library.is_file().then(|| check(&library, wheel.library_sha256)) {
        Some(Ok(())) => return Ok(library),
        Some(Err(error)) => format!("; the file there is damaged: {error}"),
        None => String::new(),
    };
    fs::create_dir_all(&folder).map_err(file_error(&folder))?;
    let work = tempfile::tempdir_in(&folder).map_err(file_error(&folder))?;
    notice(&format!("fetching ONNX Runtime {VERSION} with pip into {} (24 MB, once){why}", folder.display()));
    let downloaded = wheel.download(work.path())?;
    // pip may be configured not to check it.
    check(&downloaded, wheel.sha256)?;

    let unpacked = work.path().join(wheel.library);
    let member = format!("onnxruntime/capi/{}", wheel.library);
    let output = python(|python| python.args(["-c", EXTRACT]).arg(&downloaded).arg(member).arg(&unpacked))?;
    if !output.status.success() {
        return Err(FetchError::Unpack(last_line(&output.stderr)));
    }
    check(&unpacked, wheel.library_sha256)?;
    // Synced before it is renamed, so that a power failure cannot leave a partial library.
    File::open(&unpacked).and_then(|file| file.sync_all()).map_err(file_error(&unpacked))?;
    fs::rename(&unpacked, &library).map_err(file_error(&library))?;
    Ok(library)
}

impl Wheel {
    fn download(&self, folder: &Path) -> Result<PathBuf, FetchError> {
        let requirements = folder.join("requirements.txt");
        fs::write(&requirements, format!("onnxruntime=={VERSION} --hash=sha256:{}\n", self.sha256))
            .map_err(file_error(&requirements))?;
        // A network that drops packets must not delay the start for ever.
        let options = "--quiet --disable-pip-version-check --timeout=20 --retries=2 --no-deps --require-hashes \
                       --only-binary=:all: --implementation=cp --python-version=312 --abi=cp312 --no-input";
        let output = python(|python| {
            python.args(["-m", "pip", "download"]).args(options.split(' '));
            python.args(["--platform", self.platform, "--dest"]).arg(folder);
            python.arg("--requirement").arg(&requirements)
        })?;
        if !output.status.success() {
            return Err(FetchError::Pip(last_line(&output.stderr)));
        }
        let name = format!("onnxruntime-{VERSION}-cp312-cp312-{}.whl", self.platform);
        let wheel = folder.join(name);
        if wheel.is_file() {
            Ok(wheel)
        } else {
            Err(FetchError::Pip(format!("it succeeded without writing {}", wheel.display())))
        }
    }
}

fn check(path: &Path, expected: &'static str) -> Result<(), FetchError> {
    let found = digest::sha256_of_file(path).map_err(file_error(path))?;
    if found == expected {
        return Ok(());
    }
    Err(FetchError::Digest { path: path.to_owned(), found, expected })
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> FetchError {
    move |source| FetchError::File { path: path.to_owned(), source }
}

/// `-I` keeps modules of the working folder, of `PYTHONPATH` and of the user's own packages from being run as part of
/// pip. pip still reads its configuration, which names the index.
fn python(add_arguments: impl FnOnce(&mut Command) -> &mut Command) -> Result<Output, FetchError> {
    add_arguments(Command::new("python3").arg("-I")).output().map_err(|_| FetchError::NoPython)
}

/// The last line of an error message, which usually says what is wrong.
fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_packages_pin_the_same_library() {
        let pinned = include_str!("../../../../deploy/onnxruntime-cpu.txt");
        assert!(pinned.contains(&format!("onnxruntime=={VERSION} ")));
        for wheel in WHEELS.iter().filter(|wheel| wheel.os == "linux") {
            assert!(pinned.contains(wheel.sha256), "{}", wheel.platform);
        }
        assert!(
            include_str!("../../../../deploy/onnxruntime-gpu.txt")
                .contains(&format!("onnxruntime-gpu=={VERSION} "))
        );
        let wheel = include_str!("../../../../deploy/wheel/pyproject.toml");
        assert!(wheel.contains(&format!("\"onnxruntime=={VERSION}\"")));
        let debian = include_str!("../../../../Cargo.toml");
        assert!(debian.contains(&format!("/libonnxruntime.so.{VERSION}\"")));
    }
}
