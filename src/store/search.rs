//! Searching by text, without a search engine.
//!
//! A row carries a `name_key`: its texts, lower-cased here, because `SQLite`'s `lower()` leaves Ä alone
//! and Postgres's depends on the locale. Every word that was asked for must stand in it somewhere.

use std::fmt::Write;

/// As far as a search is looked at. `SQLite` refuses patterns of 50,000 bytes, and nobody types this much.
const MAX_CHARS: usize = 256;

/// Lower case, on one line.
pub(super) fn fold(text: &str) -> String {
    text.to_lowercase().replace(char::is_control, " ")
}

/// The folded texts of a row.
pub(super) fn name_key<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut key = String::new();
    for text in texts {
        if !key.is_empty() {
            key.push(' ');
        }
        key.push_str(&fold(text));
    }
    key
}

/// What was asked for, as `like` patterns: one a word, with nothing in them meaning more than itself.
pub(super) fn patterns(search: &str) -> Vec<String> {
    let looked_at: String = search.chars().take(MAX_CHARS).collect();
    fold(&looked_at).split_whitespace().map(pattern).collect()
}

fn pattern(word: &str) -> String {
    let mut pattern = String::with_capacity(word.len() + 2);
    pattern.push('%');
    for c in word.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

/// The condition that goes with `count` patterns bound from `$first` on: ` and … like …` for each.
pub(super) fn condition(first: usize, count: usize) -> String {
    let mut condition = String::new();
    for place in first..first + count {
        write!(condition, " and name_key like ${place} escape '\\'")
            .expect("writing to a String never fails; this is a bug");
    }
    condition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_and_literal() {
        assert_eq!(patterns("  ÄRMEL 50%_\\\u{0}x "), ["%ärmel%", "%50\\%\\_\\\\%", "%x%"]);
        assert!(patterns(" \t").is_empty());
        assert_eq!(condition(3, 2), " and name_key like $3 escape '\\' and name_key like $4 escape '\\'");
    }
}
