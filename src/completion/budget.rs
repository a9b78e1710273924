//! A limit on what a whole outfit costs.
//!
//! A blank may take what leaves enough for the cheapest other articles of the other blanks, so no set of suggestions is above
//! the limit. An article without a price in the shop's currency is never suggested under a limit.

use std::sync::Arc;

use atelier_core::domain::Mask;
use atelier_engine::catalogue::Catalogue;

use super::prepare::{Blank, Draft, Slots};

/// The rest for the blanks of an outfit.
#[derive(Debug)]
pub(super) struct Budget {
    left: f64,
    /// The two cheapest articles that each blank may take, with their prices: another blank may take the first.
    cheapest: Vec<Cheapest>,
}

type Cheapest = Vec<(u32, f64)>;

impl Budget {
    /// Limits the blanks to what the outfit's other articles leave. None without a limit.
    pub(super) fn apply(draft: &mut Draft<'_>, slots: &Slots, blanks: &mut [Blank]) -> Option<Self> {
        let total = draft.request.filters.most_total?;
        if !(total.is_finite() && total >= 0.0) {
            draft.refuse("filters.price.total", "a price is a number of 0 or more");
            return None;
        }
        let catalogue = draft.served.catalogue;
        let mut left = total;
        for &position in &slots.articles {
            let Some(article) = catalogue.any_article(position) else { continue };
            let article = article.unpack();
            if let Some(price) = catalogue.sets().price_of(&article) {
                left -= price;
            } else {
                let what = if article.price().is_some() { "a price in another currency" } else { "no price" };
                let detail = format!("{} has {what}, so the outfit's total leaves it out", article.id);
                draft.warn("price-unknown", detail, [article.id.as_str()]);
            }
        }
        let cheapest = blanks.iter().map(|blank| catalogue.sets().cheapest(&blank.admissible)).collect();
        let budget = Self { left, cheapest };
        for (index, blank) in blanks.iter_mut().enumerate() {
            let others = budget.cheapest.iter().enumerate().filter(|(other, _)| *other != index);
            let others: Vec<&Cheapest> = others.map(|(_, cheapest)| cheapest).collect();
            let before = blank.admissible.count();
            let room = narrow(Arc::make_mut(&mut blank.admissible), budget.left, &others, &[], catalogue);
            if before > 0 && blank.admissible.count() == 0 {
                let detail = format!(
                    "slot {}: nothing that passes the other filters costs {:.2} or less, which is what the total of {total:.2} \
                     leaves",
                    blank.slot,
                    room.max(0.0)
                );
                draft.warn("nothing-admissible", detail, []);
            }
        }
        Some(budget)
    }

    /// Leaves what the next blank may take after the first ones were filled.
    pub(super) fn limit(&self, admissible: &mut Mask, filled: &[u32], catalogue: &Catalogue) {
        let spent: f64 = filled.iter().map(|position| catalogue.sets().price(*position)).sum();
        let later: Vec<&Cheapest> = self.cheapest.iter().skip(filled.len() + 1).collect();
        narrow(admissible, self.left - spent, &later, filled, catalogue);
    }
}

/// Leaves the articles that cost no more than what `others` leave of `left`, and returns how much that is. `taken` are
/// articles that the others cannot have.
fn narrow(
    admissible: &mut Mask,
    left: f64,
    others: &[&Cheapest],
    taken: &[u32],
    catalogue: &Catalogue,
) -> f64 {
    let mut room = left - reserve(others, taken);
    admissible.intersect(&catalogue.sets().priced(None, Some(room)));
    for &(first, price) in others.iter().filter_map(|cheapest| find_free(cheapest, taken)) {
        let rest = left - reserve(others, &[taken, &[first]].concat());
        if price > rest && admissible.contains(first) {
            admissible.remove(first);
            room = room.min(rest);
        }
    }
    room
}

/// Least cost of the blanks without the articles that are taken.
fn reserve(blanks: &[&Cheapest], taken: &[u32]) -> f64 {
    let least = |cheapest: &&Cheapest| {
        find_free(cheapest, taken).or(cheapest.last()).map_or(0.0, |(_, price)| *price)
    };
    blanks.iter().map(least).sum()
}

fn find_free<'c>(cheapest: &'c Cheapest, taken: &[u32]) -> Option<&'c (u32, f64)> {
    cheapest.iter().find(|(position, _)| !taken.contains(position))
}
