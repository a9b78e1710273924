//! The program as people run it, and evaluation through the real ONNX Runtime.

#![expect(unreachable_pub, reason = "a test binary exports nothing")]

mod evaluation;
mod few_outfits;
mod new_articles;
mod orders;
mod pairs;
mod pytorch;
mod refresh;
mod shop;
mod telemetry;
mod verbs;
#[path = "../../../tests/shared/watched.rs"]
mod watched;

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

/// A folder in which commands run.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes a variant of a data folder with `vary.py`.
    fn vary(&self, arguments: &str) {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("research/vary.py");
        let made = Command::new("python3")
            .arg(script)
            .args(arguments.split(' '))
            .current_dir(self.0.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.at(name)).unwrap()).unwrap()
    }

    fn run(&self, command: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_atelier-training"))
            .args(command.split(' '))
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }

    /// The standard output of a command that must succeed.
    fn output_of(&self, command: &str) -> String {
        let output = self.run(command);
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The standard error of a command that must fail.
    fn error_of(&self, command: &str) -> String {
        let output = self.run(command);
        assert!(!output.status.success(), "{command} must fail");
        String::from_utf8(output.stderr).unwrap()
    }
}

/// The mean of a figure in an evaluation.
fn mean(figure: &Value) -> f64 {
    figure["mean"].as_f64().unwrap_or_else(|| panic!("{figure} is no figure"))
}
