//! Settings from variables and flags, which override the file.

use std::{collections::BTreeMap, ffi::OsString};

use super::ConfigError;

pub const PREFIX: &str = "ATELIER__";
const DATABASE_URL: &str = "DATABASE_URL";

/// The origin and the text of each setting, by section and key.
#[derive(Default)]
#[expect(missing_debug_implementations, reason = "a URL may contain a password")]
pub struct Overrides(BTreeMap<(String, String), (String, String)>);

impl Overrides {
    /// Reads `ATELIER__SECTION__KEY`, and `DATABASE_URL`, which many hosts set. Ignores empty variables, except those that
    /// should name the database.
    pub fn from_variables(
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut found = Self::default();
        let mut ours = Vec::new();
        for (name, text) in variables {
            let Ok(name) = name.into_string() else { continue };
            let names_database = name == DATABASE_URL || name == "ATELIER__DATABASE__URL";
            if names_database || (name.starts_with(PREFIX) && !text.is_empty()) {
                let text = text.into_string().map_err(|_| ConfigError::Encoding(name.clone()))?;
                ours.push((name, text));
            }
        }
        // The prefixed name comes last, so it overrides `DATABASE_URL`.
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

    /// `origin` names the variable or the flag in messages.
    pub fn set(&mut self, section: &str, key: &str, origin: &str, text: impl Into<String>) {
        self.0.insert((section.into(), key.into()), (origin.into(), text.into()));
    }

    /// Reads `section.key=value`, the argument of `--set`.
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
