//! `atelier sign-in-link`: signs in the first admin, or a person who lost their password.

use std::{process::ExitCode, time::SystemTime};

use anyhow::{Result, bail};
use clap::Args;

use crate::{
    config::Config,
    domain::Role,
    service::access::{Access, LINK},
    store::{Person, Store},
};

#[derive(Debug, Args)]
pub(super) struct SignInLink {
    /// Person to sign in [default: the first admin].
    name: Option<String>,
}

impl SignInLink {
    pub(super) async fn run(&self, config: &Config) -> Result<ExitCode> {
        let store = Store::open_existing(&config.database.url).await?;
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
        println!("{}", sign_in_link(config.server.scheme(), &config.server.address, person, token.as_str()));
        store.close().await;
        Ok(ExitCode::SUCCESS)
    }
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
