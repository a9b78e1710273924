//! "What if": the customer as they would be with another feature, and the form that changes one.

use super::{View, view};
use crate::{
    domain::{FeatureValue, Features, Kind, Schema},
    web::pages::profile::{spaced, value_words},
};

pub(super) struct WhatIf {
    /// What the address says over the profile.
    pub(super) changes: Vec<Change>,
    /// Every feature: name, label, and whether its value is being chosen.
    pub(super) features: Vec<(String, String, bool)>,
    /// The one whose value is being chosen.
    pub(super) control: Option<Control>,
}

pub(super) struct Change {
    pub(super) label: String,
    pub(super) now: String,
    /// What the profile says.
    pub(super) before: String,
    /// It belongs to the outfit and is kept with it.
    pub(super) own: bool,
    pub(super) undone: String,
    /// The same as the outfit's own.
    pub(super) kept: Option<String>,
}

/// A feature's values to choose from.
pub(super) struct Control {
    /// The form's field.
    pub(super) field: String,
    pub(super) label: String,
    /// Empty for a number.
    pub(super) options: Vec<Choice>,
    pub(super) many: bool,
    pub(super) unit: String,
    pub(super) value: String,
    /// What stands for no value.
    pub(super) nothing: &'static str,
}

pub(super) struct Choice {
    pub(super) value: String,
    pub(super) words: String,
    pub(super) chosen: bool,
}

pub(super) fn what_if(view: &View, stored: &Features, schema: &Schema) -> WhatIf {
    let own = view.own.iter().map(|(name, words)| (name, words, true));
    let supposed = view.changed.iter().map(|(name, words)| (name, words, false));
    let changes =
        own.chain(supposed).map(|(name, words, own)| change(view, stored, schema, name, words, own));
    let feature = |feature: &crate::domain::Feature| {
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
    let given = view::features(&[(name.to_owned(), words.to_vec())].into(), schema);
    Change {
        label: feature.map_or_else(|| spaced(name), |feature| feature.label.clone()),
        now: if words.iter().any(|word| word == view::NOT_GIVEN) {
            "not given".into()
        } else {
            given.get(name).map(in_words).unwrap_or_default()
        },
        before: stored.get(name).map_or_else(|| "not given".into(), in_words),
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
            let kept = view.with(|view| {
                view.changed.remove(name);
                view.own.insert(name.to_owned(), words.to_vec());
            });
            kept.href()
        }),
    }
}

fn control(view: &View, stored: &Features, schema: &Schema, name: &str) -> Option<Control> {
    let feature = schema.feature(name)?;
    let from_profile = view::own(stored);
    let given = view.changed.get(name).or_else(|| view.own.get(name)).or_else(|| from_profile.get(name));
    let given = given.cloned().unwrap_or_default();
    let option =
        |value: &String| Choice { words: spaced(value), chosen: given.contains(value), value: value.clone() };
    let nothing =
        Choice { value: view::NOT_GIVEN.into(), words: "not given".into(), chosen: given.is_empty() };
    Some(Control {
        field: format!("if.{name}"),
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
        value: given.last().filter(|given| *given != view::NOT_GIVEN).cloned().unwrap_or_default(),
        nothing: view::NOT_GIVEN,
    })
}
