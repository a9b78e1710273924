//! `atelier sign-in-link`: signs in the first admin, or a person who lost their password.

use std::{
    process::ExitCode,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Result, bail};
use atelier_core::{
    domain::Role,
    util::http_client::{Client, Origin},
};
use clap::Args;
use serde_json::{Value, json};
use tokio::task;

use super::Settings;
use crate::{
    people::{Access, LINK, Person},
    platform::db::Store,
};

#[derive(Debug, Args)]
pub(super) struct SignInLink {
    /// Person to sign in [default: the first admin].
    name: Option<String>,
}

impl SignInLink {
    pub(super) async fn run(&self, settings: &Settings) -> Result<ExitCode> {
        let store = settings.open_existing(&settings.config.database.url_or_demo()).await?;
        let people: Vec<Person> =
            store.people().list().await?.into_iter().filter(|person| person.disabled_at.is_none()).collect();
        let wanted = |person: &&Person| match &self.name {
            Some(name) => person.name.as_str().eq_ignore_ascii_case(name),
            None => person.role == Role::Admin,
        };
        let Some(person) = people.iter().find(wanted) else {
            let names: Vec<&str> = people.iter().map(|person| person.name.as_str()).collect();
            let wanted = self.name.as_deref().unwrap_or("admin");
            if names.is_empty() {
                bail!("cannot sign in {wanted}: there are no people yet; start the service once");
            }
            bail!("cannot sign in {wanted}; people who can are {}", names.join(", "))
        };
        let token = Access::new(store.clone()).link(person.id, SystemTime::now().into()).await?;
        let running = running_address(&store).await?;
        let server = &settings.config.server;
        let (scheme, address) = match running.as_deref().and_then(|url| url.split_once("://")) {
            Some(running) => running,
            None => (server.scheme(), server.address.as_str()),
        };
        println!("{}", sign_in_link(scheme, address, person, token.as_str()));
        store.close().await;
        Ok(ExitCode::SUCCESS)
    }
}

/// The setting that holds the URL of the service that started last.
pub(super) const ADDRESS: &str = "address";
/// How long a running service may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes of its answer.
const MOST_BYTES: u64 = 1 << 10;

/// The URL of the service that started last, if it still answers there: its port may come from a flag, or be any free
/// one.
async fn running_address(store: &Store) -> Result<Option<String>> {
    let Some(url) = store.settings().get(ADDRESS).await? else { return Ok(None) };
    let (scheme, address) = url.split_once("://").unwrap_or(("http", &url));
    let Ok(origin) = Origin::parse(&format!("{scheme}://{}", reachable(address).0)) else { return Ok(None) };
    let asked = task::spawn_blocking(move || {
        Client::without_verification(origin).get("/livez", MOST_BYTES, Instant::now() + PATIENCE)
    });
    // Another program may have the port by now.
    let answer = asked.await?.ok().and_then(|answer| serde_json::from_slice::<Value>(answer.body()).ok());
    Ok((answer == Some(json!({"status": "alive"}))).then_some(url))
}

/// The line that shows a link.
pub(super) fn sign_in_link(scheme: &str, address: &str, person: &Person, token: &str) -> String {
    let hours = LINK.as_secs() / 3600;
    let (address, elsewhere) = reachable(address);
    format!(
        "Atelier is at {scheme}://{address}/sign-in/{token} (signs {} in once, within {hours} hours{elsewhere})",
        person.name
    )
}

/// An address that a browser on this machine can open, and advice for other machines. A service that listens on all
/// addresses, as in a container, has no address of its own.
pub(super) fn reachable(address: &str) -> (String, &'static str) {
    let all = ["0.0.0.0:", "[::]:"].into_iter().find_map(|all| address.strip_prefix(all));
    match all {
        Some(port) => {
            (format!("localhost:{port}"), "; from another machine, replace localhost by this machine's name")
        }
        None => (address.to_owned(), ""),
    }
}
