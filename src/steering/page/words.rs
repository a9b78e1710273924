//! A rule in words.

use atelier_core::util::notation::Notation;

use crate::completion::rules::{Conditions, Range, Rule, When};

pub(super) fn describe(rule: &Rule, notation: &Notation) -> String {
    let json = serde_json::to_value(rule).unwrap_or_default();
    let value = |field: &str| match field {
        "articles" => articles(&rule.articles, notation),
        "others" => articles(&rule.others, notation),
        number => json[number].as_f64().unwrap_or(1.0).to_string(),
    };
    // Every second part is the name of a field.
    let parts = rule.effect.about().words.split(['{', '}']).enumerate();
    let does: String =
        parts.map(|(at, part)| if at % 2 == 1 { value(part) } else { part.to_owned() }).collect();
    let requests = requests(&rule.when, notation);
    let concerns = if requests.is_empty() {
        "Concerns all requests.".to_owned()
    } else {
        format!("Concerns requests {}.", requests.join(", and "))
    };
    format!("{does} {concerns}")
}

fn articles(conditions: &Conditions, notation: &Notation) -> String {
    let Conditions { types, ids, attributes, price, numbers, new } = conditions;
    let mut all = Vec::new();
    if !types.is_empty() {
        all.push(format!("of type {}", any(types)));
    }
    match &ids[..] {
        [] => {}
        few if few.len() <= 5 => all.push(format!("named {}", any(few))),
        many => all.push(format!("named in a list of {} from {}", many.len(), many[0])),
    }
    all.extend(attributes.iter().map(|(name, values)| format!("with {name} {}", any(values))));
    if let Some(limits) = limits(*price, |price| notation.price(price, None)) {
        all.push(format!("that cost {limits}"));
    }
    all.extend(numbers.iter().filter_map(|(name, range)| {
        Some(format!("with {name} {}", limits(*range, |number| number.to_string())?))
    }));
    all.extend(
        new.map(|new| if new { "new to the models" } else { "that the models were trained with" }.to_owned()),
    );
    if all.is_empty() { "all articles".to_owned() } else { format!("the articles {}", all.join(" and ")) }
}

pub(super) fn requests(when: &When, notation: &Notation) -> Vec<String> {
    let When { features, numbers, outfit, methods, stores } = when;
    let mut all: Vec<String> =
        features.iter().map(|(name, values)| format!("whose {name} is {}", any(values))).collect();
    all.extend(numbers.iter().filter_map(|(name, range)| {
        Some(format!("whose {name} is {}", limits(*range, |number| number.to_string())?))
    }));
    if !outfit.is_empty() {
        all.push(format!("whose outfit has one of {}", articles(outfit, notation)));
    }
    if !methods.is_empty() {
        let methods: Vec<String> = methods.iter().map(ToString::to_string).collect();
        all.push(format!("to {}", any(&methods)));
    }
    if !stores.is_empty() {
        all.push(format!("for the store {}", any(stores)));
    }
    all
}

/// `a, b or c`
fn any(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

fn limits(range: Range, write: impl Fn(f64) -> String) -> Option<String> {
    Some(match (range.min.map(&write), range.max.map(&write)) {
        (Some(min), Some(max)) => format!("from {min} to {max}"),
        (Some(min), None) => format!("{min} or more"),
        (None, Some(max)) => format!("{max} or less"),
        (None, None) => return None,
    })
}
