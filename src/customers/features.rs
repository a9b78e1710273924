//! Converts a request's features, and those of an answer.

use atelier_core::{
    domain::{FeatureWarning, Features, Schema, feature_to_json, read_features},
    util::json_pointer::step,
};
use serde_json::{Map, Value};

use crate::platform::http::Finding;

#[derive(Debug)]
pub(crate) struct ReadFeatures {
    pub(crate) features: Features,
    pub(crate) warnings: Vec<Finding>,
}

/// The most features of a profile, and words of a feature, that a request may give. No schema has nearly as many, and
/// answers warn of each that the schema lacks.
const MOST: usize = 1000;

/// Reads features. `pointer` is their place in the body, such as `/features`. A feature that is null is left out.
pub(crate) fn read(
    json: Map<String, Value>,
    schema: &Schema,
    pointer: &str,
) -> Result<ReadFeatures, Vec<Finding>> {
    let at = |name: &str| format!("{pointer}{}", step(name));
    if json.len() > MOST {
        let detail = format!("at most {MOST} features can be given, found {}", json.len());
        return Err(vec![Finding::at(pointer.to_owned(), detail)]);
    }
    for (name, value) in &json {
        let found = value.as_array().map_or(0, Vec::len);
        if found > MOST {
            let detail = format!("a feature has at most {MOST} values, found {found}");
            return Err(vec![Finding::at(at(name), detail)]);
        }
    }
    match read_features(json, schema) {
        Ok((features, warnings)) => {
            let warning = |warning: FeatureWarning| Finding::at(at(warning.feature()), warning.to_string());
            Ok(ReadFeatures { features, warnings: warnings.into_iter().map(warning).collect() })
        }
        Err(errors) => {
            Err(errors.into_iter().map(|error| Finding::at(at(&error.name), error.reason)).collect())
        }
    }
}

pub(crate) fn write(features: &Features) -> Map<String, Value> {
    let written = features.iter().map(|(name, value)| (name, feature_to_json(value)));
    written.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
