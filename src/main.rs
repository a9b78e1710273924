//! The service's binary; everything it does is in the library next to it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Most memory is freed by another thread than the one that allocated it, for which it is faster than glibc's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    atelier::cli::main()
}
