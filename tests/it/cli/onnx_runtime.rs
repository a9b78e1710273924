//! What comes with ONNX Runtime: its telemetry, and how its library is fetched and checked.

use std::{
    env, fs,
    io::{Read, Write},
    net::TcpListener,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc,
    thread,
};

use atelier::config::Cache;
use atelier_engine::onnx_runtime::VERSION;

use crate::{
    cli::{atelier, path, refused, serve::Served},
    harness::{Html, ONNX_RUNTIME, TestDatabase, apply, models, on_sqlite, tools, until},
};

/// The library in the cache folder, unless the variable names another.
async fn cached_library() -> PathBuf {
    tokio::task::spawn_blocking(|| ONNX_RUNTIME.clone()).await.unwrap();
    if let Some(path) = env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()) {
        return path.into();
    }
    let files = files_in(&Cache::default().folder.join("onnxruntime").join(VERSION));
    files.into_iter().find(|path| path.to_string_lossy().contains("libonnxruntime")).unwrap()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

/// In an empty home, watched by strace.
#[apply(on_sqlite)]
#[needs(tools::strace)]
async fn sends_and_stores_nothing_unasked(db: TestDatabase) {
    let [home, calls] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let calls = calls.path().join("calls");
    let mut command = Command::new("strace");
    // The process is the program's, not that of strace (`-D`).
    command.args(["-D", "-f", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o"]).arg(&calls);
    command.args([env!("CARGO_BIN_EXE_atelier"), "--database", &db.url]);
    command.args(["serve", "--address", "127.0.0.1:0", "--device", "cpu", "--models", path(&models())]);
    for name in ["DATABASE_URL", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
        command.env_remove(name);
    }
    command.env("HOME", home.path()).env("ORT_DYLIB_PATH", cached_library().await);
    // What the library takes for a wish to send.
    command.env("ORT_DISABLE_TELEMETRY", "0");
    let served = Served::launch(command).await;
    served.get("readyz").await.has(["\"release\":\"demo\""]);
    let end = format!("{} +++ exited with 0 +++", served.id());
    served.stop().await;
    let called = || fs::read_to_string(&calls).unwrap();
    // strace ends a moment after the program.
    until!(called().lines().any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") == end));
    called().lacks(["sa_family=AF_INET"]);
    assert_eq!(files_in(home.path()), Vec::<PathBuf>::new());
}

/// `atelier serve` with an empty cache folder, and an index that has no packages. Sends the requests that the index got.
fn with_index(db: &TestDatabase, cache: &Path) -> (Command, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let index = format!("http://{}/shop/simple", listener.local_addr().unwrap());
    let (send, requests) = mpsc::channel();
    // Ends with the test process.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).unwrap_or(0);
            let _ = send.send(String::from_utf8_lossy(&bytes[..read]).into_owned());
            let _ =
                stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    let mut command = atelier(db, &["serve", "--address", "127.0.0.1:0"]);
    command.env("ATELIER__CACHE__FOLDER", cache).env_remove("ORT_DYLIB_PATH");
    command.env("PIP_INDEX_URL", index).env("PIP_NO_CACHE_DIR", "1");
    command.env("PIP_NO_PROXY", "*").env("NO_PROXY", "*");
    for name in ["PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"] {
        command.env_remove(name);
    }
    (command, requests)
}

#[apply(on_sqlite)]
#[needs(tools::pip)]
async fn pip_runs_no_module_from_elsewhere(db: TestDatabase) {
    for module in ["pip", "zipfile", "shutil", "sitecustomize"] {
        let [folder, cache] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mark = "import os\nopen(os.path.join(os.path.dirname(__file__), 'ran'), 'w')\n";
        fs::write(folder.path().join(format!("{module}.py")), mark).unwrap();
        let (mut command, requests) = with_index(&db, cache.path());
        command.current_dir(folder.path()).env("PYTHONPATH", folder.path());
        let said = refused(command).await;
        assert!(!folder.path().join("ran").exists(), "{module}.py of the working folder ran");
        said.has(["missing or damaged in the cache", "pip failed: "]);
        let request = requests.try_recv().expect("pip asks the index of its settings");
        assert!(request.starts_with("GET /shop/simple/onnxruntime/ "), "{request}");
    }
}

#[apply(on_sqlite)]
#[needs(tools::pip)]
async fn a_damaged_library_is_not_loaded(db: TestDatabase) {
    let cache = tempfile::tempdir().unwrap();
    let sound = cached_library().await;
    let damaged = cache.path().join("onnxruntime").join(VERSION).join(sound.file_name().unwrap());
    fs::create_dir_all(damaged.parent().unwrap()).unwrap();
    let mut bytes = fs::read(&sound).unwrap();
    // One letter of a message, which changes nothing that a start would notice.
    let place = bytes.windows(12).position(|window| window == b"Non-zero sta").unwrap();
    bytes[place] = b'M';
    fs::write(&damaged, bytes).unwrap();
    let (mut command, _requests) = with_index(&db, cache.path());
    command.current_dir(cache.path());
    let said = refused(command).await;
    let digest = format!("the file there is damaged: the SHA-256 of {} is ", damaged.display());
    said.has([&digest, "missing or damaged in the cache", "pip failed: "]);
}

/// As a wheel and the package for Debian install it: nothing is fetched, and the demo's release is there.
#[apply(on_sqlite)]
async fn a_package_brings_library_and_release(_: TestDatabase) {
    let library = cached_library().await;
    for place in ["lib/python3.12/site-packages/onnxruntime/capi", "lib/atelier"] {
        let prefix = tempfile::tempdir().unwrap();
        let within = |place: &str| {
            let folder = prefix.path().join(place);
            fs::create_dir_all(&folder).unwrap();
            folder
        };
        let program = within("bin").join("atelier");
        let built = env!("CARGO_BIN_EXE_atelier");
        fs::hard_link(built, &program).or_else(|_| fs::copy(built, &program).map(drop)).unwrap();
        symlink(&library, within(place).join(library.file_name().unwrap())).unwrap();
        symlink(models(), within("share/atelier").join("models")).unwrap();
        let home = within("home");
        let mut command = Command::new(program);
        command.args(["serve", "--address", "127.0.0.1:0"]).current_dir(&home);
        command.env("XDG_DATA_HOME", &home).env("ATELIER__CACHE__FOLDER", home.join("cache"));
        command.env_remove("ORT_DYLIB_PATH").env_remove("DATABASE_URL");
        let served = Served::launch(command).await;
        served.get("readyz").await.has(["\"release\":\"demo\""]);
        served.stop().await;
        assert!(!home.join("cache").exists(), "the library was fetched although the package has it");
    }
}
