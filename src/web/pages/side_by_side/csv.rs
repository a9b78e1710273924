//! The columns as a file for a spreadsheet.

use super::{columns::sought, view::View};
use crate::{service::comparison::Column, web::pages::csv::Lines};

/// A line a suggestion; the true article has its own where it is not among them.
pub(super) fn write(view: &View, columns: &[Column]) -> String {
    let mut lines = Lines::new(&[
        "method",
        "customer",
        "rank",
        "article",
        "name",
        "type",
        "probability",
        "share",
        "true",
    ]);
    for column in columns {
        let customer = column.customer.as_ref().map(ToString::to_string).unwrap_or_default();
        let [truth, _] = sought(view, column);
        let truth = truth.as_ref();
        for (suggestion, rank) in column.blank.suggestions.iter().zip(1..) {
            let article = &suggestion.article;
            let is_true = truth.is_some_and(|(id, _)| *id == article.id);
            lines.push(&[
                column.method.as_str(),
                &customer,
                &usize::to_string(&rank),
                article.id.as_str(),
                article.words("name").next().unwrap_or_default(),
                article.kind(),
                &suggestion.probability.to_string(),
                &suggestion.share.to_string(),
                if is_true { "true" } else { "" },
            ]);
        }
        let shown = |id: &crate::domain::ArticleId| {
            column.blank.suggestions.iter().any(|suggestion| suggestion.article.id == *id)
        };
        if let Some((id, Some(stands))) = truth.filter(|(id, _)| !shown(id)) {
            // What the filters left out has no rank among what they let through.
            let rank = if stands.admissible { stands.rank.to_string() } else { String::new() };
            let probability = stands.probability.to_string();
            let line =
                [column.method.as_str(), &customer, &rank, id.as_str(), "", "", &probability, "", "true"];
            lines.push(&line);
        }
    }
    lines.into_text()
}
