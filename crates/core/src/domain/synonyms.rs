//! Words that a shop takes as the same, in searches, filters, rules and no-gos.

use std::collections::HashMap;

use super::{search_key, singular};

/// Words that mean the same to the shop's people, in the singular, with hyphens.
#[derive(Debug, Clone, Default)]
pub struct Synonyms(Vec<Group>);

#[derive(Debug, Clone)]
struct Group {
    /// The word that finds the others. Without one, each finds all.
    name: Option<String>,
    words: Vec<String>,
}

impl Synonyms {
    /// Reads a group from each line: `sweater, jumper, pullover`, or `shoe: boot, sneaker` where only the first word
    /// finds the others. Blank lines, and those that begin with `#`, are skipped.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut groups, mut lines) = (Vec::<Group>::new(), HashMap::new());
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, words) = match line.split_once(':') {
                Some((name, words)) => (Some(name), words),
                None => (None, line),
            };
            let spelled: Vec<&str> = name.map_or_else(|| words.split(',').collect(), |name| vec![name]);
            let name = name.map(synonym_key);
            let words: Vec<String> = words.split(',').map(synonym_key).collect();
            let is_short = name.is_none() && words.len() < 2;
            if is_short || name.iter().chain(&words).any(String::is_empty) {
                return Err(format!(
                    "line {number}: expected words with commas between them, as in \"sweater, jumper\" or \"shoe: boot, \
                     sneaker\"; found {line:?}"
                ));
            }
            for word in spelled {
                if let Some(before) = lines.insert((name.is_some(), synonym_key(word)), number) {
                    return Err(format!("line {number}: {:?} is already in line {before}", word.trim()));
                }
            }
            groups.push(Group { name, words });
        }
        Ok(Self(groups))
    }

    /// Whether a word, as they are compared, has a group.
    pub fn has(&self, word: &str) -> bool {
        self.same(word).is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A word, as they are compared, and its other names. Where it is a type of the catalogue, no other type is the same.
    pub fn forms(&self, own: String, is_type: impl Fn(&str) -> bool) -> Vec<String> {
        let may_be_same = |other: &&String| **other != own && !(is_type(&own) && is_type(other));
        let same = self.same(&own).unwrap_or_default().iter().filter(may_be_same);
        let others: Vec<String> = same.chain(self.kinds(&own)).cloned().collect();
        std::iter::once(own).chain(others).collect()
    }

    /// The group of words of which each is the same as this one.
    fn same(&self, word: &str) -> Option<&[String]> {
        let group =
            self.0.iter().find(|group| group.name.is_none() && group.words.iter().any(|other| other == word));
        group.map(|group| group.words.as_slice())
    }

    /// The words that only this one finds.
    fn kinds(&self, word: &str) -> &[String] {
        let group = self.0.iter().find(|group| group.name.as_deref() == Some(word));
        group.map_or(&[], |group| &group.words)
    }
}

/// A word as it is compared.
pub fn synonym_key(word: &str) -> String {
    singular(&hyphenated(word))
}

/// The words of a text with a hyphen between them: `t-shirt`.
pub fn hyphenated(text: &str) -> String {
    tokens(text).collect::<Vec<_>>().join("-")
}

/// The words of a text, as they are compared. `Women's` is one word.
pub fn tokens(text: &str) -> impl Iterator<Item = String> {
    let key = search_key(text).replace("'s", "s").replace("’s", "s");
    let tokens: Vec<String> = key
        .split(|c: char| !c.is_alphanumeric())
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect();
    tokens.into_iter()
}
