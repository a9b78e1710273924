//! Google's numbers for what people wear, from its product taxonomy of 2021-09-21.

/// The name of a category: the last part of its path. `None` if it is not listed here.
pub(super) fn category_name(number: u64) -> Option<&'static str> {
    let mut categories = include_str!("categories.tsv").lines().filter_map(|line| line.split_once('\t'));
    categories.find(|(other, _)| other.parse() == Ok(number)).map(|(_, name)| name)
}
