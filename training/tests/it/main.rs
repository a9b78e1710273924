//! The program as people run it, and evaluation through the real ONNX Runtime.

mod evaluation;
mod few_outfits;
mod new_articles;
#[expect(dead_code, reason = "a part of the example, with its own tests")]
#[path = "../../examples/research/oracle.rs"]
mod oracle;
mod orders;
mod pairs;
mod pytorch;
mod refresh;
mod shop;
mod verbs;
#[expect(dead_code, reason = "a part of the example; tests take the shop alone")]
#[path = "../../examples/research/weeks.rs"]
mod weeks;

use std::{
    fs,
    path::{Path, PathBuf},
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

    /// Runs a script of this crate.
    fn python(&self, script: &str, arguments: &str) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        let mut command = Command::new("python3");
        command.arg(script).args(arguments.split(' ')).current_dir(self.0.path());
        let made = command.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    fn write(&self, name: &str, text: impl AsRef<str>) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.as_ref()).unwrap();
    }

    /// Writes JSON lines.
    fn write_rows(&self, name: &str, rows: impl IntoIterator<Item = Value>) {
        self.write(name, rows.into_iter().map(|row| row.to_string() + "\n").collect::<String>());
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// Reads JSON lines.
    fn rows(&self, name: &str) -> Vec<Value> {
        self.text(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn run(&self, command: &str) -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_atelier-training"));
        program.args(command.split(' ')).current_dir(self.0.path()).output().unwrap()
    }

    /// The standard output and the standard error of a command that must succeed.
    fn outputs_of(&self, command: &str) -> (String, String) {
        let Output { status, stdout, stderr } = self.run(command);
        let [output, said] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(status.success(), "{command}: {said}");
        (output, said)
    }

    fn output_of(&self, command: &str) -> String {
        self.outputs_of(command).0
    }

    /// The standard error of a command that must fail, which has to say all of these.
    #[track_caller]
    fn assert_refused(&self, command: &str, reasons: &[&str]) -> String {
        let output = self.run(command);
        assert!(!output.status.success(), "{command} must fail");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_has(&said, reasons);
        said
    }
}

/// The text has to have all of these parts.
#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

/// The mean of a figure in an evaluation.
fn mean(figure: &Value) -> f64 {
    figure["mean"].as_f64().unwrap_or_else(|| panic!("{figure} is no figure"))
}
