//! The service's binary; everything it does is in the library beside it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    atelier::cli::main()
}
