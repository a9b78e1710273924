//! All tests from outside, in one binary whose files mirror what they test.
//!
//! `cargo test` needs no preparation: `harness` says how a test gets its database, and what happens if a tool is
//! missing. To add a test, write an `async fn` and name it in its file's `contracts!`; to add a file, name it in the
//! list below.

#![expect(unreachable_pub, reason = "a test binary exports nothing")]

mod browser;
mod ci;
mod cli;
#[path = "../shared/demo.rs"]
mod demo;
mod harness;
mod store;
mod web;

use std::process::ExitCode;

use harness::on_sqlite;

fn main() -> ExitCode {
    if harness::is_watchdog() {
        return harness::watch();
    }
    harness::run(&[
        on_sqlite(browser::admin::contracts()),
        on_sqlite(browser::analyst::contracts()),
        on_sqlite(browser::every_page::contracts()),
        on_sqlite(browser::saved_outfits::contracts()),
        on_sqlite(browser::studio::contracts()),
        on_sqlite(browser::stylist::contracts()),
        on_sqlite(ci::contracts()),
        cli::complete::contracts(),
        cli::export::contracts(),
        cli::feeds::contracts(),
        cli::import::contracts(),
        cli::key::contracts(),
        on_sqlite(cli::onnx_runtime::contracts()),
        cli::privacy::contracts(),
        cli::serve::contracts(),
        cli::sign_in_link::contracts(),
        cli::sign_ins::contracts(),
        on_sqlite(cli::tls::contracts()),
        on_sqlite(cli::traces::contracts()),
        store::articles::contracts(),
        store::audit::contracts(),
        store::customers::contracts(),
        store::erasing::contracts(),
        store::feedback::contracts(),
        store::import::contracts(),
        store::keys::contracts(),
        store::opening::contracts(),
        store::outfits::contracts(),
        store::people::contracts(),
        store::saved_outfits::contracts(),
        store::sessions::contracts(),
        store::settings::contracts(),
        store::writing::contracts(),
        web::access::contracts(),
        on_sqlite(web::api_guide::contracts()),
        web::articles::contracts(),
        web::attempts::contracts(),
        web::audit::contracts(),
        web::comparing::contracts(),
        web::completing::contracts(),
        web::contract::contracts(),
        web::coverage::contracts(),
        web::customers::contracts(),
        web::erasing::contracts(),
        on_sqlite(web::evaluation::contracts()),
        on_sqlite(web::evaluation::cases::contracts()),
        on_sqlite(web::evaluation::lack::contracts()),
        on_sqlite(web::evaluation::new_articles::contracts()),
        web::feedback::contracts(),
        web::fitting::contracts(),
        web::filtering::contracts(),
        on_sqlite(web::foreign_release::contracts()),
        web::new_articles::contracts(),
        web::health::contracts(),
        web::keyless::contracts(),
        web::keys::contracts(),
        on_sqlite(web::limits::contracts()),
        on_sqlite(web::metrics::contracts()),
        web::odd_addresses::contracts(),
        web::offering::contracts(),
        web::operations::contracts(),
        web::operations::acceptance::contracts(),
        web::operations::releases::contracts(),
        web::operations::routing::contracts(),
        web::monitoring::contracts(),
        web::outfits::contracts(),
        web::patching::contracts(),
        web::personas::contracts(),
        web::pictures::contracts(),
        web::problems::contracts(),
        web::refusing::contracts(),
        web::releases::contracts(),
        on_sqlite(web::remote::contracts()),
        web::routes::contracts(),
        web::saved_outfits::contracts(),
        web::scoring::contracts(),
        web::side_by_side::contracts(),
        web::sign_in::contracts(),
        web::studio::contracts(),
        web::tickets::contracts(),
        web::uses::contracts(),
        web::unsound_release::contracts(),
    ])
}
