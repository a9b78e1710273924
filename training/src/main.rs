//! The training tool's binary; everything it does is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    atelier_training::cli::main()
}
