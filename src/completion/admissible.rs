//! Turns filters into sets of articles.

use std::{collections::BTreeMap, sync::Arc};

use atelier_core::domain::Mask;
use atelier_core::util::text::abbreviate;
use atelier_engine::catalogue::Catalogue;

use super::{
    prepare::{Blank, Draft, Slots},
    reading::Reading,
    steer::Counted,
};
use crate::platform::fault::Field;

/// Limits on the types for one slot and on the excluded articles: more than any shop's page needs.
const MAX_TYPES: usize = 100;
const MAX_EXCLUDED: usize = 1000;

/// The articles that pass for any blank, and the blanks with their admissible articles. `known` are the articles that may
/// be suggested at all, `by_rules` those that the shop's rules exclude, and `counted` the rules for which feedback counts.
pub(super) fn blanks(
    draft: &mut Draft<'_>,
    known: &Mask,
    slots: &Slots,
    reading: &Reading,
    by_rules: Option<Arc<Mask>>,
    counted: Option<&Counted>,
) -> (Arc<Mask>, Vec<Blank>) {
    let types = types(draft, known, slots);
    let mut limits = Limits::new(draft, known, slots, reading);
    let before_rules = counted.map(|counted| (counted, limits.admissible()));
    limits.excluded.extend(by_rules.map(|articles| ("rules", articles)));
    let common = Arc::new(limits.admissible());
    let blank = |&(slot, position): &(usize, usize)| {
        let admissible = match types.get(&slot) {
            None => Arc::clone(&common),
            Some(of_types) => {
                let mut admissible = of_types.clone();
                admissible.intersect(&common);
                Arc::new(admissible)
            }
        };
        let mut alternatives = Vec::new();
        if admissible.is_empty() {
            alternatives = limits.widened(types.get(&slot));
            let detail = nothing_admissible(draft, known, slot, &alternatives);
            draft.warn("nothing-admissible", detail, []);
        }
        let counted = before_rules.as_ref().map_or_else(Vec::new, |(counted, before)| {
            let mut before = before.clone();
            types.get(&slot).into_iter().for_each(|of_types| before.intersect(of_types));
            counted.could_change(&before)
        });
        Blank { slot, position, admissible, alternatives, counted }
    };
    let blanks = slots.blanks.iter().map(blank).collect();
    (common, blanks)
}

/// The articles that the filters leave, whatever a blank's type.
struct Limits {
    /// The articles that the method knows, without those of the outfit and those that the request excludes.
    all: Mask,
    /// The articles that each filter excludes, under its name.
    excluded: Vec<(&'static str, Arc<Mask>)>,
}

impl Limits {
    fn new(draft: &mut Draft<'_>, known: &Mask, slots: &Slots, reading: &Reading) -> Self {
        let (catalogue, filters) = (draft.served.catalogue, &draft.request.filters);
        let mut all = catalogue.sets().present().clone();
        all.intersect(known);
        for position in &slots.articles {
            all.remove(*position);
            if draft.request.one_per_type {
                remove_type(catalogue, *position, &mut all);
            }
        }
        exclude(draft, &mut all);
        if let Some(only) = &filters.only {
            let mut these = Mask::none(all.length());
            for position in only.iter().filter_map(|id| catalogue.position_of(id.as_str())) {
                these.insert(position);
            }
            all.intersect(&these);
        }
        let mut excluded = Vec::new();
        if !filters.words.is_empty() {
            let (mut others, mut these) = (all.clone(), all.clone());
            for (attribute, word) in &filters.words {
                these.intersect(&catalogue.sets().with_word(attribute, word));
            }
            others.subtract(&these);
            excluded.push(("words", others.into()));
        }
        excluded.extend(outside_price(draft).map(|articles| ("price", articles.into())));
        if !filters.no_gos {
            let mut ruled_out = catalogue.sets().ruled_out(&reading.no_gos);
            reading.owned.iter().for_each(|position| ruled_out.articles.insert(*position));
            for (attribute, no_go) in ruled_out.unmatched {
                let detail = format!(
                    "no article has the {attribute} {no_go:?}, so this no-go excludes nothing; check its spelling"
                );
                draft.warn("no-go-without-articles", detail, [attribute.as_str(), no_go.as_str()]);
            }
            excluded.push(("no_gos", ruled_out.articles.into()));
        }
        let length = all.length();
        if !filters.unfit {
            let unfit = catalogue.sets().supply().unfit(&reading.needs, length);
            for (label, attribute, words) in unfit.unmet {
                let words = words.join(", ");
                let detail = format!(
                    "no article fits this customer's {label}: none has {attribute} {words}; check the spelling, or set \
                     filters.fit to false"
                );
                draft.warn("nothing-fits", detail, [label.as_str(), words.as_str()]);
            }
            excluded.push(("fit", unfit.articles.into()));
        }
        let fitting = (!filters.unfit).then_some(&reading.needs);
        if !filters.sold_out {
            excluded.push(("in_stock", catalogue.sets().unavailable(fitting)));
        }
        if let Some(store) = &filters.store {
            if filters.sold_out {
                let detail = "a store limits what is in stock: leave out `store`, or `in_stock: false`";
                draft.refuse("filters.store", detail);
            }
            if !catalogue.sets().supply().has_store(store) {
                let mut detail = format!("no article has stock in the store {store:?}; check its spelling");
                abbreviate(&mut detail, 200);
                draft.warn("unknown-store", detail, [store.as_str()]);
            }
            excluded.push(("store", catalogue.sets().supply().sold_out(fitting, Some(store), length).into()));
        }
        Self { all, excluded }
    }

    fn admissible(&self) -> Mask {
        self.without(0)
    }

    /// Passes without some of the filters: a bit for each of `excluded`.
    fn without(&self, filters: usize) -> Mask {
        let mut mask = self.all.clone();
        for (position, (_, articles)) in self.excluded.iter().enumerate() {
            if filters >> position & 1 == 0 {
                mask.subtract(articles);
            }
        }
        mask
    }

    /// Which filters to leave out so that there is something to suggest, each alternative with its number of articles: as
    /// few filters as possible.
    fn widened(&self, of_types: Option<&Mask>) -> Vec<(Vec<&'static str>, usize)> {
        let bit = |name: &str| {
            self.excluded.iter().position(|(other, _)| *other == name).map_or(0, |position| 1 << position)
        };
        // A store limits what is in stock, so a request cannot leave out `in_stock` alone.
        let (in_stock, store) = (bit("in_stock"), bit("store"));
        let is_allowed = move |filters: &usize| store == 0 || filters & in_stock == 0 || filters & store != 0;
        let subsets = || (1..1usize << self.excluded.len()).filter(is_allowed);
        for size in 1..=self.excluded.len() {
            let of_size = subsets().filter(|filters| filters.count_ones() as usize == size);
            let admitted = of_size.filter_map(|filters| {
                let mut mask = self.without(filters);
                if let Some(of_types) = of_types {
                    mask.intersect(of_types);
                }
                let names = (0..).zip(&self.excluded).filter(|(position, _)| filters >> position & 1 == 1);
                let names = names.map(|(_, (name, _))| *name).collect();
                Some((names, mask.count())).filter(|(_, count)| *count > 0)
            });
            let admitted: Vec<_> = admitted.collect();
            if !admitted.is_empty() {
                return admitted;
            }
        }
        Vec::new()
    }
}

/// Removes all articles of an article's type.
pub(super) fn remove_type(catalogue: &Catalogue, position: u32, from: &mut Mask) {
    let article = catalogue.any_article(position);
    if let Some(same) = article.and_then(|article| catalogue.sets().of_named_type(article.kind())) {
        from.subtract(&same);
    }
}

fn exclude(draft: &mut Draft<'_>, all: &mut Mask) {
    let (served, request) = (draft.served, draft.request);
    let excluded = &request.filters.exclude;
    if excluded.len() > MAX_EXCLUDED {
        let detail = format!("at most {MAX_EXCLUDED} articles can be excluded, found {}", excluded.len());
        draft.refuse("filters.exclude", detail);
    }
    for (index, id) in excluded.iter().enumerate() {
        if let Some(article) = served.catalogue.position_of(id.as_str()) {
            all.remove(article);
        } else {
            let detail = format!("filters.exclude has {id} at index {index}, which is not an article");
            draft.warn("unknown-article-excluded", detail, []);
        }
    }
    let refused = request.filters.refused.iter();
    for article in refused.filter_map(|id| served.catalogue.position_of(id.as_str())) {
        all.remove(article);
    }
}

/// The articles without a price within the limits; None without limits.
fn outside_price(draft: &mut Draft<'_>) -> Option<Mask> {
    let (served, request) = (draft.served, draft.request);
    let (least, most) = (request.filters.least_price, request.filters.most_price);
    let valid =
        [("filters.price.min", least), ("filters.price.max", most)].into_iter().all(|(field, price)| {
            let valid = price.is_none_or(|price| price.is_finite() && price >= 0.0);
            if !valid {
                draft.refuse(field, "a price is a number of 0 or more");
            }
            valid
        });
    if let (true, Some(least), Some(most)) = (valid, least, most)
        && least > most
    {
        let detail = format!("the lowest price {least} is above the highest, {most}");
        draft.refuse("filters.price", detail);
    }
    (least.is_some() || most.is_some()).then(|| {
        let mut others = served.catalogue.sets().present().clone();
        others.subtract(&served.catalogue.sets().priced(least, most));
        others
    })
}

fn types(draft: &mut Draft<'_>, known: &Mask, slots: &Slots) -> BTreeMap<usize, Mask> {
    let (served, request) = (draft.served, draft.request);
    let mut found = BTreeMap::new();
    for (&slot, types) in &request.filters.types {
        let field = || Field::from("filters.types").item(&slot);
        if !slots.blanks.iter().any(|(blank, _)| *blank == slot) {
            draft.refuse(field(), format!("slot {slot} is not a blank of the outfit"));
            continue;
        }
        if types.len() > MAX_TYPES {
            let detail = format!("a slot takes at most {MAX_TYPES} types, found {}", types.len());
            draft.refuse(field(), detail);
            continue;
        }
        if types.is_empty() {
            draft.refuse(field(), "a list of types needs at least one; omit the slot to allow all");
            continue;
        }
        let mut mask = Mask::none(served.catalogue.sets().present().length());
        for (index, kind) in types.iter().enumerate() {
            match served.catalogue.sets().of_named_type(kind) {
                Some(articles) if articles.meets(known) => mask.unite(&articles),
                found => {
                    let detail = missing_type(draft, known, kind, found.as_ref());
                    draft.refuse(field().item(&index), detail);
                }
            }
        }
        found.insert(slot, mask);
    }
    found
}

/// Says whether the catalogue or the method lacks the type. `found` are the catalogue's articles of the type.
fn missing_type(draft: &Draft<'_>, known: &Mask, kind: &str, found: Option<&Mask>) -> String {
    let (served, method) = (draft.served, draft.request.method);
    let all = served.catalogue.sets().types();
    let can_be = all
        .into_iter()
        .filter(|kind| served.catalogue.sets().of_type(kind).is_some_and(|of| of.meets(known)));
    let types = can_be.collect::<Vec<_>>().join(", ");
    match found {
        None => {
            format!("the catalogue has no articles of type {kind:?}; types that can be suggested are {types}")
        }
        Some(articles) => format!(
            "release {} was trained with none of the catalogue's articles of type {kind:?} ({}), and {method} suggests no new \
             ones; types that can be suggested are {types}",
            served.serving.release().manifest().name,
            articles.count()
        ),
    }
}

fn nothing_admissible(
    draft: &Draft<'_>,
    known: &Mask,
    slot: usize,
    alternatives: &[(Vec<&'static str>, usize)],
) -> String {
    let (served, method) = (draft.served, draft.request.method);
    let present = served.catalogue.sets().present();
    if present.count() > 0 && !present.meets(known) {
        return format!(
            "release {} was trained with none of the catalogue's articles ({}), and {method} suggests no new ones, so there is \
             nothing to suggest for slot {slot}",
            served.serving.release().manifest().name,
            present.count()
        );
    }
    let alternative = |(filters, count): &(Vec<&str>, usize)| {
        let names: Vec<String> = filters.iter().map(|name| format!("`{name}` ({})", words(name))).collect();
        format!("{count} without {}", names.join(" and "))
    };
    let alternatives: Vec<String> = alternatives.iter().map(alternative).collect();
    let none = format!("no article passes the filters for slot {slot}");
    if alternatives.is_empty() { none } else { format!("{none}; there are {}", alternatives.join(", or ")) }
}

/// A filter for people who know it from a page.
fn words(filter: &str) -> &'static str {
    match filter {
        "fit" => "what fits",
        "in_stock" => "what is in stock",
        "store" => "what is in the store",
        "no_gos" => "no no-gos, nothing owned",
        "rules" => "the shop's rules",
        "words" => "the values of attributes",
        _ => "the price",
    }
}
