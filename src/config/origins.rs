//! Where each setting came from, so that a message about it says what to correct.

use std::{collections::BTreeMap, path::Path};

use toml::Table;

/// The origin of each setting that is not a default: a variable, a flag or the file.
#[derive(Debug, Clone, Default)]
pub struct Origins(BTreeMap<String, String>);

impl Origins {
    /// All settings of the file.
    pub(super) fn of_file(path: &Path, table: &Table) -> Self {
        let sections = table.iter().filter_map(|(section, value)| Some((section, value.as_table()?)));
        let names =
            sections.flat_map(|(section, keys)| keys.keys().map(move |key| format!("{section}.{key}")));
        Self(names.map(|name| (name, file(path))).collect())
    }

    pub(super) fn insert(&mut self, name: String, origin: String) {
        self.0.insert(name, origin);
    }

    /// A setting with its origin, such as `server.address (--address)`.
    pub fn name(&self, setting: &str) -> String {
        format!("{setting} ({})", self.0.get(setting).map_or("the default", String::as_str))
    }

    /// Adds the origins of the settings that a message names.
    pub(super) fn annotate(&self, message: &str) -> String {
        let words = message.split(|letter: char| !letter.is_ascii_alphanumeric() && !"._".contains(letter));
        let named: Vec<String> = self
            .0
            .iter()
            .filter(|(name, _)| words.clone().any(|word| word == *name))
            .map(|(name, origin)| format!("{name} is from {origin}"))
            .collect();
        if named.is_empty() { message.to_owned() } else { format!("{message} ({})", named.join(", ")) }
    }
}

/// The file as an origin.
pub(super) fn file(path: &Path) -> String {
    format!("the configuration file {}", path.display())
}
