//! Filters as sets of articles.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Request, Served,
    prepare::{Blank, Slots, Warning},
};
use crate::domain::{Features, Mask};
use crate::service::fault::{Fault, Field};

/// Most types asked for in one slot, and most articles excluded: more than any catalogue's page needs.
const MOST_TYPES: usize = 100;
const MOST_EXCLUDED: usize = 1000;

/// The blanks, and who may fill each.
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
            let detail = format!("no article passes the filters for slot {slot}");
            warnings.push(Warning { code: "nothing-admissible", detail });
        }
        Blank { slot, place, admissible }
    };
    slots.blanks.iter().map(blank).collect()
}

/// What every blank may be filled with, its type aside.
fn common(
    served: Served<'_>,
    request: &Request,
    slots: &Slots,
    features: &Features,
    warnings: &mut Vec<Warning>,
    errors: &mut Vec<Fault>,
) -> Mask {
    let (catalogue, filters) = (served.catalogue, &request.filters);
    let vocabulary = served.serving.release().vocabulary();
    let mut mask = catalogue.present().clone();
    for index in slots.known.iter().flatten() {
        mask.remove(*index);
    }
    if filters.exclude.len() > MOST_EXCLUDED {
        let detail =
            format!("at most {MOST_EXCLUDED} articles are excluded, found {}", filters.exclude.len());
        errors.push(Fault::new(Field::Excluded, detail));
    }
    for (place, id) in filters.exclude.iter().enumerate() {
        match vocabulary.index_of(id.as_str()) {
            Some(index) => mask.remove(index),
            None if catalogue.unknown(id).is_some() => {}
            None => {
                let detail = format!("filters.exclude names {id} at {place}, which is no article");
                warnings.push(Warning { code: "unknown-article-excluded", detail });
            }
        }
    }
    let (least, most) = (filters.least_price, filters.most_price);
    let sound = [(Field::PriceMin, least), (Field::PriceMax, most)].into_iter().all(|(field, price)| {
        let sound = price.is_none_or(|price| price.is_finite() && price >= 0.0);
        if !sound {
            let detail = "a price is a number from 0 up";
            errors.push(Fault::new(field, detail));
        }
        sound
    });
    if let (true, Some(least), Some(most)) = (sound, least, most)
        && least > most
    {
        let detail = format!("the least price {least} is above the most {most}");
        errors.push(Fault::new(Field::Price, detail));
    }
    if least.is_some() || most.is_some() {
        mask.intersect(&catalogue.priced(least, most));
    }
    if filters.in_stock {
        mask.subtract(catalogue.out_of_stock());
    }
    if filters.no_gos {
        mask.subtract(&catalogue.ruled_out(served.serving.release().schema(), features));
    }
    mask
}

/// By slot, the articles of the types asked for there.
fn types(
    served: Served<'_>,
    request: &Request,
    slots: &Slots,
    errors: &mut Vec<Fault>,
) -> BTreeMap<usize, Mask> {
    let mut found = BTreeMap::new();
    for (&slot, types) in &request.filters.types {
        let field = Field::TypesOf(slot);
        if !slots.blanks.iter().any(|(blank, _)| *blank == slot) {
            errors.push(Fault::new(field, format!("slot {slot} is no blank of the outfit")));
            continue;
        }
        if types.len() > MOST_TYPES {
            let detail = format!("at most {MOST_TYPES} types are named for a slot, found {}", types.len());
            errors.push(Fault::new(field, detail));
            continue;
        }
        if types.is_empty() {
            errors.push(Fault::new(field, "a list of types names at least one; leave the slot out for all"));
            continue;
        }
        let mut mask = Mask::none(served.catalogue.present().length());
        for (place, kind) in types.iter().enumerate() {
            if let Some(articles) = served.catalogue.of_type(kind) {
                mask.unite(articles);
                continue;
            }
            let types = served.catalogue.types().join(", ");
            let detail = format!("no article of the catalogue is of the type {kind:?}; there are {types}");
            errors.push(Fault::new(Field::TypeAt { slot, place }, detail));
        }
        found.insert(slot, mask);
    }
    found
}
