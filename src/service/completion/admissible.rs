//! Turns filters into sets of articles.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Request, Served,
    prepare::{Blank, Slots, Warning, known},
};
use crate::domain::{Features, Mask, Method};
use crate::service::fault::{Fault, Field};

/// Limits on the types for one slot and on the excluded articles: more than any shop's page needs.
const MAX_TYPES: usize = 100;
const MAX_EXCLUDED: usize = 1000;

/// The blanks with their admissible articles.
pub(super) fn blanks(
    served: Served<'_>,
    request: &Request,
    slots: &Slots,
    features: &Features,
    warnings: &mut Vec<Warning>,
    errors: &mut Vec<Fault>,
) -> Vec<Blank> {
    let types = types(served, request, slots, errors);
    let common = Arc::new(common(served, request, slots, features, warnings, errors));
    let blank = |&(slot, place): &(usize, usize)| {
        let admissible = match types.get(&slot) {
            None => Arc::clone(&common),
            Some(of_types) => {
                let mut admissible = of_types.clone();
                admissible.intersect(&common);
                Arc::new(admissible)
            }
        };
        if admissible.count() == 0 {
            let detail = nothing_admissible(served, request.method, slot);
            warnings.push(Warning { code: "nothing-admissible", detail });
        }
        Blank { slot, place, admissible }
    };
    slots.blanks.iter().map(blank).collect()
}

/// The articles admissible for every blank, whatever its type.
fn common(
    served: Served<'_>,
    request: &Request,
    slots: &Slots,
    features: &Features,
    warnings: &mut Vec<Warning>,
    errors: &mut Vec<Fault>,
) -> Mask {
    let (catalogue, filters) = (served.catalogue, &request.filters);
    let mut mask = catalogue.present().clone();
    mask.intersect(known(served, request.method));
    for place in &slots.worn {
        mask.remove(*place);
    }
    if filters.exclude.len() > MAX_EXCLUDED {
        let detail =
            format!("at most {MAX_EXCLUDED} articles can be excluded, found {}", filters.exclude.len());
        errors.push(Fault::new(Field::Excluded, detail));
    }
    for (place, id) in filters.exclude.iter().enumerate() {
        if let Some(article) = catalogue.place_of(id.as_str()) {
            mask.remove(article);
        } else {
            let detail = format!("filters.exclude has {id} at index {place}, which is not an article");
            warnings.push(Warning { code: "unknown-article-excluded", detail });
        }
    }
    let (least, most) = (filters.least_price, filters.most_price);
    let valid = [(Field::PriceMin, least), (Field::PriceMax, most)].into_iter().all(|(field, price)| {
        let valid = price.is_none_or(|price| price.is_finite() && price >= 0.0);
        if !valid {
            errors.push(Fault::new(field, "a price is a number of 0 or more"));
        }
        valid
    });
    if let (true, Some(least), Some(most)) = (valid, least, most)
        && least > most
    {
        let detail = format!("the lowest price {least} is above the highest, {most}");
        errors.push(Fault::new(Field::Price, detail));
    }
    if least.is_some() || most.is_some() {
        mask.intersect(&catalogue.priced(least, most));
    }
    if filters.in_stock {
        mask.subtract(catalogue.out_of_stock());
    }
    if filters.no_gos {
        let ruled_out = catalogue.ruled_out(served.serving.release().schema(), features);
        mask.subtract(&ruled_out.articles);
        warnings.extend(ruled_out.unmatched.into_iter().map(|(attribute, no_go)| {
            let detail = format!(
                "no article has the {attribute} {no_go:?}, so this no-go excludes nothing; check its spelling"
            );
            Warning { code: "no-go-without-articles", detail }
        }));
    }
    mask
}

/// The articles of the requested types, by slot.
fn types(
    served: Served<'_>,
    request: &Request,
    slots: &Slots,
    errors: &mut Vec<Fault>,
) -> BTreeMap<usize, Mask> {
    let (mut found, known) = (BTreeMap::new(), known(served, request.method));
    for (&slot, types) in &request.filters.types {
        let field = Field::TypesOf(slot);
        if !slots.blanks.iter().any(|(blank, _)| *blank == slot) {
            errors.push(Fault::new(field, format!("slot {slot} is not a blank of the outfit")));
            continue;
        }
        if types.len() > MAX_TYPES {
            let detail = format!("a slot takes at most {MAX_TYPES} types, found {}", types.len());
            errors.push(Fault::new(field, detail));
            continue;
        }
        if types.is_empty() {
            errors.push(Fault::new(field, "a list of types needs at least one; omit the slot to allow all"));
            continue;
        }
        let mut mask = Mask::none(served.catalogue.present().length());
        for (place, kind) in types.iter().enumerate() {
            match served.catalogue.of_type(kind) {
                Some(articles) if articles.meets(known) => mask.unite(articles),
                found => {
                    let detail = missing_type(served, request.method, kind, found);
                    errors.push(Fault::new(Field::TypeAt { slot, place }, detail));
                }
            }
        }
        found.insert(slot, mask);
    }
    found
}

/// Says whether the catalogue or the method lacks the type. `found` are the catalogue's articles of the type.
fn missing_type(served: Served<'_>, method: Method, kind: &str, found: Option<&Mask>) -> String {
    let known = known(served, method);
    let all = served.catalogue.types();
    let can_be =
        all.into_iter().filter(|kind| served.catalogue.of_type(kind).is_some_and(|of| of.meets(known)));
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

fn nothing_admissible(served: Served<'_>, method: Method, slot: usize) -> String {
    let present = served.catalogue.present();
    if present.count() == 0 || present.meets(known(served, method)) {
        return format!("no article passes the filters for slot {slot}");
    }
    format!(
        "release {} was trained with none of the catalogue's articles ({}), and {method} suggests no new ones, so there is nothing \
         to suggest for slot {slot}",
        served.serving.release().manifest().name,
        present.count()
    )
}
