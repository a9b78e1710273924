//! The lines that lead an article from one column to the next.

use crate::{domain::ArticleId, service::completion::Blank};

/// A line, in hundredths of a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) class: &'static str,
}

/// A line for each article that both have.
pub(super) fn between(
    left: &Blank,
    right: &Blank,
    truth: Option<&ArticleId>,
    mark: Option<&ArticleId>,
) -> Vec<Link> {
    let line = |(row, suggestion): (usize, &crate::service::completion::Suggestion)| {
        let to = right.suggestions.iter().position(|other| other.index == suggestion.index)?;
        let id = Some(&suggestion.article.id);
        let class = match () {
            () if id == truth => "link-true",
            () if id == mark => "link-marked",
            () => "link",
        };
        Some(Link { from: row * 100 + 50, to: to * 100 + 50, class })
    };
    left.suggestions.iter().enumerate().filter_map(line).collect()
}
