//! An outfit's purpose, and "What if": changed features of the customer, and the form that changes one.

use atelier_core::domain::{Feature, FeatureValue, Features, Kind, Schema};

use super::View;
use crate::{
    platform::page::wording::{self, spaced, value_words},
    platform::page::{Address, address},
};

pub(super) struct WhatIf {
    /// The features that override the profile.
    pub(super) changes: Vec<Change>,
    /// Every feature: name, label, and whether its value is being chosen.
    pub(super) features: Vec<(String, String, bool)>,
    /// The feature whose value is being chosen.
    pub(super) control: Option<Control>,
}

pub(super) struct Change {
    pub(super) label: String,
    pub(super) now: String,
    /// The value of the outfit or, if it has none, of the profile.
    pub(super) before: String,
    /// Whether it belongs to the outfit and is saved with it.
    pub(super) own: bool,
    /// The view without the change.
    pub(super) undone: String,
    /// The view with the change as the outfit's own feature.
    pub(super) kept: Option<String>,
}

/// A feature's values to choose from.
pub(super) struct Control {
    pub(super) field: String,
    pub(super) label: String,
    /// Empty for a number.
    pub(super) options: Vec<Choice>,
    pub(super) many: bool,
    pub(super) unit: String,
    pub(super) value: String,
    /// The value for "not given".
    pub(super) nothing: &'static str,
}

pub(super) struct Choice {
    pub(super) value: String,
    pub(super) words: String,
    pub(super) chosen: bool,
}

/// A feature of outfits, with a link for each value that sets it or takes it back.
pub(super) struct Purpose {
    pub(super) label: String,
    pub(super) choices: Vec<(Choice, String)>,
}

/// The most values of a purpose, so that they fit in a line or two.
const MOST_PURPOSES: usize = 12;

/// The features of outfits, such as the occasion.
pub(super) fn purposes(view: &View, schema: &Schema) -> Vec<Purpose> {
    let short = |feature: &&Feature| {
        feature.of_outfit && feature.kind == Kind::Category && feature.values.len() <= MOST_PURPOSES
    };
    schema.features().iter().filter(short).map(|feature| purpose(view, feature)).collect()
}

fn purpose(view: &View, feature: &Feature) -> Purpose {
    let choice = |value: &String| {
        let chosen = view.own.get(&feature.name).is_some_and(|words| words.contains(value));
        let toggled = view.with(|view| {
            view.skipped_sets = 0;
            view.own.remove(&feature.name);
            if !chosen {
                view.own.insert(feature.name.clone(), vec![value.clone()]);
            }
        });
        (Choice { words: spaced(value), chosen, value: value.clone() }, toggled.href())
    };
    Purpose { label: feature.label.clone(), choices: feature.values.iter().map(choice).collect() }
}

pub(super) fn what_if(view: &View, stored: &Features, schema: &Schema) -> WhatIf {
    let own = view.own.iter().map(|(name, words)| (name, words, true));
    let hypothetical = view.changed.iter().map(|(name, words)| (name, words, false));
    let changes =
        own.chain(hypothetical).map(|(name, words, own)| change(view, stored, schema, name, words, own));
    let feature = |feature: &Feature| {
        (feature.name.clone(), feature.label.clone(), view.changing.as_ref() == Some(&feature.name))
    };
    WhatIf {
        changes: changes.collect(),
        features: schema.features().iter().map(feature).collect(),
        control: view.changing.as_deref().and_then(|name| control(view, stored, schema, name)),
    }
}

fn change(
    view: &View,
    stored: &Features,
    schema: &Schema,
    name: &str,
    words: &[String],
    own: bool,
) -> Change {
    let feature = schema.feature(name);
    let in_words = |value: &FeatureValue| match feature {
        Some(feature) => value_words(feature, value),
        None => words.join("/"),
    };
    let value = address::features(&[(name.to_owned(), words.to_vec())].into(), schema);
    let own_features = address::features(&view.own, schema);
    let before = own_features.get(name).filter(|_| !own).or_else(|| stored.get(name));
    Change {
        label: wording::label(name, schema),
        now: if words.iter().any(|word| word == address::NOT_GIVEN) {
            "not given".into()
        } else {
            value.get(name).map(in_words).unwrap_or_default()
        },
        before: before.map_or_else(|| "not given".into(), in_words),
        own,
        undone: view
            .with(|view| {
                if own {
                    view.own.remove(name)
                } else {
                    view.changed.remove(name)
                };
            })
            .href(),
        kept: (!own).then(|| {
            view.with(|view| {
                view.changed.remove(name);
                view.own.insert(name.to_owned(), words.to_vec());
            })
            .href()
        }),
    }
}

fn control(view: &View, stored: &Features, schema: &Schema, name: &str) -> Option<Control> {
    let feature = schema.feature(name)?;
    let profile = address::values(stored);
    let current = view.changed.get(name).or_else(|| view.own.get(name)).or_else(|| profile.get(name));
    let current = current.cloned().unwrap_or_default();
    Some(control_for(feature, format!("if.{name}"), &current))
}

/// A feature's field with these values.
pub(super) fn control_for(feature: &Feature, field: String, current: &[String]) -> Control {
    let option = |value: &String| Choice {
        words: spaced(value),
        chosen: current.contains(value),
        value: value.clone(),
    };
    let nothing =
        Choice { value: address::NOT_GIVEN.into(), words: "not given".into(), chosen: current.is_empty() };
    Control {
        field,
        label: feature.label.clone(),
        options: match feature.kind {
            Kind::Category => std::iter::once(nothing).chain(feature.values.iter().map(option)).collect(),
            _ => feature.values.iter().map(option).collect(),
        },
        many: feature.kind == Kind::Set,
        unit: match &feature.kind {
            Kind::Number { unit, .. } => unit.clone(),
            _ => String::new(),
        },
        value: current.last().filter(|value| *value != address::NOT_GIVEN).cloned().unwrap_or_default(),
        nothing: address::NOT_GIVEN,
    }
}
