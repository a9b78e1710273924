//! `atelier sign-in-link`: a way in for the first admin, and for whoever lost the password.

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
    /// Whom it signs in; without it, the first admin.
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
            let known =
                if names.is_empty() { "nobody yet: start the service once".into() } else { names.join(", ") };
            bail!("there is no {} who may sign in; there is {known}", self.name.as_deref().unwrap_or("admin"))
        };
        let token = Access::new(store.clone()).link(person.id, SystemTime::now().into()).await?;
        println!("{}", sign_in_link(&config.server.address, person, token.as_str()));
        store.close().await;
        Ok(ExitCode::SUCCESS)
    }
}

/// The line that hands a link over.
pub(super) fn sign_in_link(address: &str, person: &Person, token: &str) -> String {
    let hours = LINK.as_secs() / 3600;
    let (address, elsewhere) = reachable(address);
    format!(
        "Atelier is at http://{address}/sign-in/{token} (signs {} in, once, within {hours} hours{elsewhere})",
        person.name
    )
}

/// An address that a browser of the machine's can open, and what to do elsewhere. All of a machine's addresses at once,
/// as in a container, are none of them.
pub(super) fn reachable(address: &str) -> (String, &'static str) {
    let all = ["0.0.0.0:", "[::]:"].into_iter().find_map(|all| address.strip_prefix(all));
    match all {
        Some(port) => (
            format!("localhost:{port}"),
            "; from another machine, with this one's name in the place of localhost",
        ),
        None => (address.to_owned(), ""),
    }
}
