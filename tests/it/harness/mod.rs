//! Runs each contract test on both databases, each time in a fresh database, and reports tests that it could not run.
//!
//! A contract is an `async fn` with `#[apply(contract)]`; its arguments are `Fixture`s: the database, or a service on it. It
//! runs twice, as `customers::sql::put_then_get [sqlite]` and `[postgres]`. A test that asks no statement of its own runs
//! once (`on_sqlite`, `in_chromium`), and so does one about what a single database has (`on_postgres`).
//! `#[needs(tools::onnx)]` below says that a test needs an installed tool. Postgres is the server that `DATABASE_URL` names
//! (its user must be able to create databases), or else a private one (`tests/shared/postgres.rs`), started when the first
//! test needs it.
//!
//! Your own server keeps an empty database `atelier_test_template_…` for each set of migrations: later runs, and other
//! processes of the same run, copy it. No process removes it, because another may be about to copy it; drop it
//! whenever no test runs.
//!
//! If Postgres or a tool that a test names is missing, its tests are shown as ignored, each with a line `NOT RUN: …`,
//! and the last line of the run counts them. With `ATELIER_TESTS_MUST_RUN=1` (set by continuous integration), and under
//! nextest, which takes an ignored test for a passed one, they fail instead.

pub mod browser;
mod client;
pub mod collector;
#[path = "../../shared/database.rs"]
mod database;
mod html;
pub mod json;
pub mod model_server;
#[path = "../../shared/postgres.rs"]
mod postgres;
#[path = "../../shared/private_server.rs"]
mod private_server;
mod rows;
mod service;
pub mod tls;
pub mod tools;

use std::{
    env, panic,
    pin::Pin,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use atelier::platform::db::Store;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
pub use macro_rules_attribute::apply;
use tokio::time::timeout;

pub use self::{
    client::{Answer, Call, assert_has, each, gzip, ids, json_lines, pick},
    database::{Kind, TestDatabase},
    html::{Html, assert_page},
    postgres::{is_watchdog, watch},
    rows::*,
    service::*,
};

/// No test runs longer than this.
const DEADLINE: Duration = Duration::from_mins(2);
/// How long what is left of a test may take to end.
const PARTING: Duration = Duration::from_secs(10);

/// A test, which runs once on each of its databases.
pub struct Contract {
    pub name: &'static str,
    pub databases: &'static [Kind],
    /// What is missing for the test, besides a database.
    pub needs: fn() -> Result<(), String>,
    pub run: fn(TestDatabase) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

inventory::collect!(Contract);

/// What a test takes: the database, or something that runs on it.
pub trait Fixture: Sized {
    fn prepare(db: &TestDatabase) -> impl Future<Output = Self> + Send;
}

impl Fixture for TestDatabase {
    async fn prepare(db: &TestDatabase) -> Self {
        db.clone()
    }
}

impl Fixture for Store {
    async fn prepare(db: &TestDatabase) -> Self {
        db.open().await
    }
}

/// Runs the test on both databases.
macro_rules! contract {
    ($($test:tt)*) => { $crate::harness::register!([Sqlite, Postgres] $($test)*); };
}

/// Runs the test once: the database makes no difference to it.
macro_rules! on_sqlite {
    ($($test:tt)*) => { $crate::harness::register!([Sqlite] $($test)*); };
}

/// Runs the test once, on Postgres alone.
macro_rules! on_postgres {
    ($($test:tt)*) => { $crate::harness::register!([Postgres] $($test)*); };
}

/// Runs the test once, in a browser.
macro_rules! in_chromium {
    ($($test:tt)*) => {
        $crate::harness::register!([Sqlite] needs $crate::harness::browser::chromium; $($test)*);
    };
}

/// The same, if there is axe-core, too.
macro_rules! in_chromium_with_axe {
    ($($test:tt)*) => {
        $crate::harness::register!([Sqlite] needs $crate::harness::browser::chromium_with_axe; $($test)*);
    };
}

macro_rules! register {
    (
        [$($kind:ident),*] $(needs $always:path;)?
        $(#[doc = $doc:literal])*
        $(#[needs($need:path)])?
        $(#[expect $expected:tt])?
        async fn $test:ident($($given:tt $(($($part:ident),+))?: $fixture:ty),+ $(,)?) $body:block
    ) => {
        $(#[doc = $doc])*
        $(#[expect $expected])?
        async fn $test($($given $(($($part),+))?: $fixture),+) $body

        inventory::submit! {
            $crate::harness::Contract {
                name: concat!(module_path!(), "::", stringify!($test)),
                databases: &[$($crate::harness::Kind::$kind),*],
                needs: || {
                    $($always()?;)?
                    $($need()?;)?
                    Ok(())
                },
                run: |db| Box::pin(async move {
                    $test($(<$fixture as $crate::harness::Fixture>::prepare(&db).await),+).await;
                }),
            }
        }
    };
}
pub(crate) use {contract, in_chromium, in_chromium_with_axe, on_postgres, on_sqlite, register};

/// A database that tests copy: the first of them to ask has it filled.
pub async fn shared<F>(db: &TestDatabase, fill: impl FnOnce(TestDatabase) -> F) -> TestDatabase
where
    F: Future<Output = ()>,
{
    let mut shared = SHARED[db.kind as usize].lock().await;
    if shared.is_none() {
        let new = db.another().await.unwrap();
        fill(new.clone()).await;
        *shared = Some(new);
    }
    shared.clone().expect("it was filled just now")
}

static SHARED: [tokio::sync::Mutex<Option<TestDatabase>>; 2] =
    [const { tokio::sync::Mutex::const_new(None) }; 2];

pub fn run() -> ExitCode {
    let arguments = Arguments::from_args();
    let not_run = NotRun::default();
    let mut contracts: Vec<&Contract> = inventory::iter().collect();
    contracts.sort_unstable_by_key(|contract| contract.name);
    let quick = env::var("ATELIER_TESTS_QUICK").ok();
    let trials = contracts
        .into_iter()
        .flat_map(|contract| contract.databases.iter().map(move |kind| (contract, *kind)))
        .filter(|(contract, kind)| quick.as_ref().is_none_or(|words| is_quick(contract, *kind, words)))
        .map(|(contract, kind)| trial(contract, kind, &not_run))
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    remove_shared();
    if !arguments.list {
        not_run.print();
    }
    conclusion.exit_code()
}

/// On `SQLite`, without a browser, and named with one of the words.
fn is_quick(contract: &Contract, kind: Kind, words: &str) -> bool {
    kind == Kind::Sqlite
        && !contract.name.contains("::browser::")
        && words.split_whitespace().any(|word| contract.name.contains(word))
}

fn remove_shared() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for shared in &SHARED {
        if let Some(database) = shared.blocking_lock().take() {
            // A server that is gone has removed it.
            let _ = runtime.block_on(database.remove());
        }
    }
}

fn trial(contract: &'static Contract, kind: Kind, not_run: &NotRun) -> Trial {
    let name = contract.name.strip_prefix("it::").unwrap_or(contract.name);
    let name = format!("{name} [{kind}]");
    let not_run = not_run.clone();
    Trial::ignorable_test(name.clone(), move || match (contract.needs)().and_then(|()| kind.server()) {
        Ok(server) => execute(contract, server),
        Err(reason) => {
            not_run.add(name, reason.clone());
            if must_run() {
                return Err(format!("NOT RUN: {reason}").into());
            }
            Ok(Completion::ignored_with(reason))
        }
    })
}

fn execute(contract: &Contract, server: database::Server) -> Result<Completion, Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(async {
        let database = server.fresh().await?;
        // In a task, so that the database is removed after a panic, too.
        let mut test = tokio::spawn((contract.run)(database.clone()));
        let outcome = timeout(DEADLINE, &mut test).await;
        if outcome.is_err() {
            test.abort();
            // It may wait for something that cannot be interrupted.
            let _ = timeout(PARTING, &mut test).await;
        }
        database.remove().await?;
        Ok::<_, Failed>(outcome)
    });
    runtime.shutdown_timeout(PARTING);
    match done? {
        Ok(Ok(())) => Ok(Completion::Completed),
        Err(_) => Err(format!("not done within {} seconds", DEADLINE.as_secs()).into()),
        Ok(Err(error)) => match error.try_into_panic() {
            Ok(panic) => panic::resume_unwind(panic),
            Err(error) => Err(error.into()),
        },
    }
}

fn must_run() -> bool {
    env::var_os("ATELIER_TESTS_MUST_RUN").is_some_and(|value| value == "1")
        || env::var_os("NEXTEST").is_some()
}

/// Tests that could not run, and what they lacked.
#[derive(Clone, Default)]
struct NotRun(Arc<Mutex<Vec<(String, String)>>>);

impl NotRun {
    fn add(&self, test: String, reason: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((test, reason));
    }

    /// One line for each test, and the closing line that `.ci/run` looks for.
    fn print(&self) {
        let mut tests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tests.sort();
        for (test, reason) in tests.iter() {
            println!("NOT RUN: {test} ({reason})");
        }
        let mut reasons: Vec<&str> = tests.iter().map(|(_, reason)| reason.as_str()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        match reasons[..] {
            [] => println!("NOT RUN: 0 tests"),
            _ => println!("NOT RUN: {} tests ({})", tests.len(), reasons.join("; ")),
        }
    }
}
