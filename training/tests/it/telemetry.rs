//! ONNX Runtime's telemetry stays off in this program, too.

use std::process::{Command, ExitStatus, Stdio};

use atelier_core::util::folders::cache_folder;
use atelier_engine::onnx_runtime::VERSION;

use super::{
    evaluation::RUNTIME,
    pairs::shop,
    watched::{Watched, library},
};

#[test]
fn evaluating_sends_and_stores_nothing_unasked() {
    let strace = Command::new("strace").args(["-o", "/dev/null", "true"]).status();
    if !strace.as_ref().is_ok_and(ExitStatus::success) {
        assert_ne!(
            std::env::var("ATELIER_TESTS_MUST_RUN").as_deref(),
            Ok("1"),
            "NOT RUN: strace: {strace:?}"
        );
        println!("NOT RUN: evaluating_sends_and_stores_nothing_unasked (strace: {strace:?})");
        return;
    }
    let _fetched = RUNTIME.clone();
    let home = shop();
    home.output_of("fit --method none --data shop --config plain.toml --epochs 1");
    let watched = Watched::new();
    let library = library(&cache_folder(), VERSION);
    let mut command = watched.command(env!("CARGO_BIN_EXE_atelier-training"), &library);
    command.args(["evaluate", "--data", "shop", "--runs", "runs/shop/none-1"]).current_dir(home.0.path());
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let process = child.id();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    watched.assert_silent(process);
}
