//! Settings from above the file: variables and flags, as texts with where each came from.

use std::{collections::BTreeMap, ffi::OsString};

use super::ConfigError;

pub(super) const PREFIX: &str = "ATELIER__";
const DATABASE_URL: &str = "DATABASE_URL";

/// Settings from above the file, by section and key: where each came from, and its text. No `Debug`: a
/// database's URL may hold a password.
#[derive(Default)]
#[expect(missing_debug_implementations, reason = "a URL may hold a password")]
pub struct Overrides(BTreeMap<(String, String), (String, String)>);

impl Overrides {
    /// Takes `ATELIER__SECTION__KEY` and, because every host sets it, `DATABASE_URL`. An empty one is
    /// none, as in every shell.
    pub fn from_variables(
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut found = Self::default();
        let mut ours = Vec::new();
        for (name, text) in variables {
            let Ok(name) = name.into_string() else { continue };
            if (name == DATABASE_URL || name.starts_with(PREFIX)) && !text.is_empty() {
                let text = text.into_string().map_err(|_| ConfigError::Encoding(name.clone()))?;
                ours.push((name, text));
            }
        }
        // The prefixed name is the more deliberate one: it comes last and wins.
        ours.sort_by_key(|(name, _)| name.starts_with(PREFIX));
        for (name, text) in ours {
            if name == DATABASE_URL {
                found.set("database", "url", &name, text);
            } else {
                let rest = name[PREFIX.len()..].to_ascii_lowercase();
                let Some((section, key)) = rest.split_once("__") else {
                    return Err(ConfigError::Variable(name));
                };
                found.set(section, key, &name, text);
            }
        }
        Ok(found)
    }

    /// `origin` is how a message names where the value came from: a variable or a flag.
    pub fn set(&mut self, section: &str, key: &str, origin: &str, text: impl Into<String>) {
        self.0.insert((section.into(), key.into()), (origin.into(), text.into()));
    }

    /// `section.key=value`, as `--set` takes it.
    pub fn set_pair(&mut self, pair: &str) -> Result<(), ConfigError> {
        let (name, text) = pair.split_once('=').ok_or(ConfigError::Pair)?;
        let (section, key) = name.split_once('.').ok_or(ConfigError::Pair)?;
        self.set(section, key, &format!("--set {name}"), text);
        Ok(())
    }

    pub(super) fn into_settings(self) -> BTreeMap<(String, String), (String, String)> {
        self.0
    }
}
