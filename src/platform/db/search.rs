//! Text search without a search engine.
//!
//! A row has a `name_key`, its texts as searches compare them, which must contain every word of a search. They are made here,
//! because `SQLite`'s `lower()` does not change Ä and Postgres's depends on the locale.

use std::{fmt::Write, iter};

use atelier_core::domain::search_key;

/// The longest search; the rest is ignored. `SQLite` refuses patterns of 50,000 bytes.
const MAX_CHARS: usize = 256;

pub(crate) fn name_key<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut key = String::new();
    for text in texts {
        if !key.is_empty() {
            key.push(' ');
        }
        key.push_str(&search_key(text));
    }
    key
}

/// A `like` pattern for each word of the search, with wildcards escaped. Commas separate words, too.
pub(crate) fn patterns(search: &str) -> Vec<String> {
    let search: String = search.chars().take(MAX_CHARS).collect();
    let key = search_key(&search);
    let words = key.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
    words.filter(|word| !word.is_empty()).map(pattern).collect()
}

/// A `like` pattern for a text of `name_key`, or for its beginning.
pub(crate) fn part_pattern(text: &str) -> String {
    pattern(&search_key(&text.chars().take(MAX_CHARS).collect::<String>()))
}

pub(crate) fn pattern(word: &str) -> String {
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

/// The condition for `count` patterns bound from `$first`: ` and (… like …)` for each.
pub(crate) fn condition(first: usize, count: usize) -> String {
    any_of(first, iter::repeat_n(1, count))
}

/// The condition for a pattern of each group of so many, bound from `$first`: ` and (… like … or …)` for each.
pub(crate) fn any_of(first: usize, groups: impl IntoIterator<Item = usize>) -> String {
    let mut condition = String::new();
    let mut number = first;
    for size in groups {
        for index in 0..size {
            let before = if index == 0 { " and (" } else { " or " };
            write!(condition, "{before}name_key like ${number} escape '\\'")
                .expect("writing to a String never fails");
            number += 1;
        }
        condition.push(')');
    }
    condition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_and_escaped() {
        assert_eq!(patterns("  ÄRMEL 50%_\\\nx "), ["%armel%", "%50\\%\\_\\\\%", "%x%"]);
        assert_eq!(patterns("autumn, c-1;x"), ["%autumn%", "%c-1%", "%x%"]);
        assert!(patterns(" \t,").is_empty());
    }
}
