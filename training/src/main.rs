//! The training tool's binary; its code is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    atelier_training::cli::main()
}
