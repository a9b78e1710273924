//! Where each setting came from, so that a message about it says what to correct.

use std::{collections::BTreeMap, path::Path};

use toml::Table;

/// The origin of each setting that is not a default: a variable, a flag or the file.
#[derive(Debug, Clone, Default)]
pub struct Origins(BTreeMap<String, String>);

impl Origins {
    pub(super) fn of_file(path: &Path, text: &str, table: &Table) -> Self {
        let sections = table.iter().filter_map(|(section, value)| Some((section, value.as_table()?)));
        let names =
            sections.flat_map(|(section, keys)| keys.keys().map(move |key| format!("{section}.{key}")));
        let origin = |name: String| {
            let origin = file(path, text, &name);
            (name, origin)
        };
        Self(names.map(origin).collect())
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

/// The file, and the line of a setting or section in it, as an origin.
pub(super) fn file(path: &Path, text: &str, setting: &str) -> String {
    let line = line_of(text, setting).map_or_else(String::new, |line| format!(", line {line}"));
    format!("the configuration file {}{line}", path.display())
}

/// None if the setting is written in another way than in a line under its section's header.
fn line_of(text: &str, setting: &str) -> Option<usize> {
    let (section, key) = setting.split_once('.').unwrap_or(("", setting));
    // A setting may be within a list.
    let key = key.split(['.', '[']).next().unwrap_or_default();
    let mut current = "";
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if let Some(header) = line.strip_prefix('[') {
            current = header.trim_matches(['[', ']', ' ']);
            if section.is_empty() && current == key {
                return Some(number);
            }
        } else if current == section
            && line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
        {
            return Some(number);
        }
    }
    None
}
