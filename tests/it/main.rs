//! All tests from outside, in one binary whose files mirror what they test.
//!
//! `cargo test` needs no preparation: `harness` says how a test gets its database, and what happens if a tool is
//! missing. To add a test, write an `async fn` with `#[apply(contract)]`.

#![expect(unreachable_pub, reason = "a test binary exports nothing")]

mod agents;
mod analysis;
#[path = "../shared/app.rs"]
#[expect(dead_code, reason = "another suite has no harness")]
mod app;
mod browser;
mod catalogue;
mod cli;
mod completion;
mod customers;
#[path = "../shared/demo.rs"]
mod demo;
mod experiments;
mod harness;
#[path = "../shared/http2.rs"]
mod http2;
mod imports;
mod outcomes;
mod outfits;
mod people;
mod platform;
mod releases;
mod steering;
mod studio;

use std::process::ExitCode;

fn main() -> ExitCode {
    if harness::is_watchdog() {
        return harness::watch();
    }
    harness::run()
}
