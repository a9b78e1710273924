//! Notices about suggestions, in a shop's words.

use atelier_core::{domain::Schema, util::notation::Notation};

use super::board::Board;
use crate::{
    catalogue::page::article_view::ArticleView,
    completion::Warning,
    platform::page::wording::{self, spaced},
};

/// A line for each warning that a stylist can do something about.
pub(super) fn notices(warnings: &[Warning], board: &Board, schema: &Schema) -> Vec<String> {
    let articles = || board.slots.iter().filter_map(|slot| slot.article.as_ref());
    let piece = |id: &str| {
        let found = articles().find(|article: &&ArticleView| article.id == id);
        found.map_or_else(|| id.to_owned(), |article| article.name.clone())
    };
    let label = |name: &str| wording::label(name, schema);
    let words = |warning: &Warning| {
        let about: Vec<&str> = warning.about.iter().map(String::as_str).collect();
        Some(match (warning.code, &about[..]) {
            ("nothing-fits", [label, value]) => format!(
                "Nothing fits this customer’s {label}, {value}. Check the profile, or include what doesn’t fit."
            ),
            ("unknown-store", [store]) => {
                format!("Nothing is in stock in the store {store}. Check its name.")
            }
            ("no-go-without-articles", [attribute, no_go]) => {
                format!(
                    "No article has the {} “{no_go}”, so this no-go leaves nothing out.",
                    spaced(attribute)
                )
            }
            ("price-unknown", [id]) => {
                format!("{} has no price in the shop’s currency, so the total leaves it out.", piece(id))
            }
            ("article-not-in-release", [id]) => {
                format!("{} is new, so suggestions use the other pieces only.", piece(id))
            }
            ("profile-not-understood" | "unknown-feature" | "unknown-value", [feature]) => {
                format!("The customer’s {} isn’t recognised, so suggestions ignore it.", label(feature))
            }
            ("implausible-number", [feature]) => {
                format!("Check the customer’s {}: this value looks wrong.", label(feature))
            }
            // The blank itself says that nothing matches it, and the board what is gone.
            _ => return None,
        })
    };
    let mut lines: Vec<String> = warnings.iter().filter_map(words).collect();
    lines.dedup();
    lines
}

/// The articles that a blank may take without some filters, or its limits.
pub(super) fn instead(
    alternatives: &[(Vec<&'static str>, usize)],
    most_total: Option<f64>,
    notation: &Notation,
) -> Vec<String> {
    let alternative = |(filters, articles): &(Vec<&'static str>, usize)| {
        let others: Vec<&str> = filters.iter().map(|filter| left_out_by(filter)).collect();
        let unit = if *articles == 1 { "article" } else { "articles" };
        format!("Include {}: {} {unit}.", others.join(" and "), notation.count(*articles as u64))
    };
    match most_total {
        Some(total) if alternatives.is_empty() => {
            vec![format!("Nothing fits the {} budget.", notation.price(total, None))]
        }
        _ => alternatives.iter().map(alternative).collect(),
    }
}

/// The articles that a filter leaves out, in the words of the page's fields.
fn left_out_by(filter: &str) -> &'static str {
    match filter {
        "fit" => "what doesn’t fit",
        "in_stock" => "what is out of stock",
        "store" => "other stores",
        "no_gos" => "no-gos and owned pieces",
        "rules" => "what the shop’s rules exclude",
        "words" => "other brands, colours and sizes",
        _ => "other prices",
    }
}
