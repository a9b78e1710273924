//! Converts features between JSON and the domain.
//!
//! The schema checks them, as it does in a file: a wrong type is an error at its place, an unknown feature is kept with
//! a warning.

use serde_json::{Map, Value};

use crate::{
    domain::{Feature, FeatureValue, FeatureWarning, Features, Schema, json_number, whole_word},
    util::json_pointer::step,
    web::http::Finding,
};

/// Valid features, and warnings about them.
#[derive(Debug)]
pub(crate) struct ReadFeatures {
    pub(crate) features: Features,
    pub(crate) warnings: Vec<Finding>,
}

/// Reads features. `pointer` is their place in the body, such as `/features`. A feature that is null is left out.
pub(crate) fn read(
    json: Map<String, Value>,
    schema: &Schema,
    pointer: &str,
) -> Result<ReadFeatures, Vec<Finding>> {
    let at = |name: &str| format!("{pointer}{}", step(name));
    let mut features = Features::default();
    let mut errors = Vec::new();
    for (name, value) in json {
        match read_value(&name, value, schema) {
            Ok(Some(value)) => features.insert(name, value),
            Ok(None) => {}
            Err(reason) => errors.push(Finding::at(at(&name), reason)),
        }
    }
    match schema.encode(&features) {
        Ok(encoding) if errors.is_empty() => {
            let warning = |warning: FeatureWarning| {
                let (FeatureWarning::UnknownFeature { feature }
                | FeatureWarning::UnknownValue { feature, .. }) = &warning;
                Finding::at(at(feature), warning.to_string())
            };
            Ok(ReadFeatures { features, warnings: encoding.warnings.into_iter().map(warning).collect() })
        }
        Ok(_) => Err(errors),
        Err(invalid) => {
            errors.extend(invalid.iter().map(|error| Finding::at(at(&error.feature), error.to_string())));
            Err(errors)
        }
    }
}

pub(crate) fn write(features: &Features) -> Map<String, Value> {
    let value = |value: &FeatureValue| match value {
        FeatureValue::Text(text) => Some(Value::from(text.as_str())),
        FeatureValue::Number(number) => json_number(*number).map(Value::Number),
        FeatureValue::Many(words) => Some(Value::from(words.as_slice())),
    };
    features.iter().filter_map(|(name, feature)| Some((name.to_owned(), value(feature)?))).collect()
}

fn read_value(name: &str, value: Value, schema: &Schema) -> Result<Option<FeatureValue>, String> {
    if name.is_empty() {
        return Err("a feature needs a name, found an empty one".into());
    }
    if name.contains('\0') {
        return Err("a feature's name cannot hold the character NUL".into());
    }
    let feature = schema.feature(name);
    let expected = feature.map_or("a text, a number or a list of texts", |feature| feature.expected());
    let refuse = |found: &str| format!("feature {name:?} takes {expected}, found {found}");
    let kept = |value| match feature {
        Some(feature) => feature.kept(value),
        None => value,
    };
    let value = match value {
        Value::Null => return Ok(None),
        Value::String(text) => kept(FeatureValue::Text(text)),
        // Keep the digits: a float would round large integers.
        Value::Number(number) if !number.is_f64() && feature.is_some_and(Feature::takes_words) => {
            kept(FeatureValue::Text(number.to_string()))
        }
        Value::Number(number) => {
            kept(FeatureValue::Number(number.as_f64().expect("JSON numbers are floats; this is a bug")))
        }
        Value::Array(values) => {
            let word = |value| match value {
                Value::String(word) => Some(word),
                Value::Number(number) if !number.is_f64() => Some(number.to_string()),
                Value::Number(number) => number.as_f64().and_then(whole_word),
                _ => None,
            };
            let words = values.into_iter().map(word).collect::<Option<_>>();
            FeatureValue::Many(words.ok_or_else(|| refuse("a list with something else in it"))?)
        }
        Value::Bool(truth) => return Err(refuse(if truth { "true" } else { "false" })),
        Value::Object(_) => return Err(refuse("an object")),
    };
    let holds_nul = match &value {
        FeatureValue::Text(text) => text.contains('\0'),
        FeatureValue::Many(words) => words.iter().any(|word| word.contains('\0')),
        FeatureValue::Number(_) => false,
    };
    if holds_nul {
        return Err(format!("feature {name:?} holds the character NUL (\\u0000): take it out"));
    }
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_json(json: Value) -> Result<ReadFeatures, Vec<Finding>> {
        let Value::Object(json) = json else { panic!("features are an object") };
        read(json, &Schema::default_schema(), "/features")
    }

    #[test]
    fn features_that_are_read_are_written() {
        let json =
            json!({"age": 28, "preferred_colours": "red", "gender": null, "x/y": ["a"], "shoe_size": 38});
        let ReadFeatures { features, warnings } = read_json(json).unwrap();
        let out = write(&features);
        assert_eq!(
            Value::Object(out),
            json!({"age": 28, "preferred_colours": ["red"], "shoe_size": "38", "x/y": ["a"]})
        );
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].pointer.as_deref(), Some("/features/x~1y"));
        assert_eq!(warnings[0].detail, "the schema has no feature \"x/y\"; models do not see it");
    }

    #[test]
    fn every_wrong_type_is_located() {
        let json =
            json!({"age": "old", "gender": {"a": 1}, "fit": true, "preferred_colours": [true], "x": "\0"});
        let found: Vec<(String, String)> = read_json(json)
            .unwrap_err()
            .into_iter()
            .map(|finding| (finding.pointer.unwrap(), finding.detail))
            .collect();
        let expected = [
            ("/features/fit", "feature \"fit\" takes a text or a whole number, found true"),
            ("/features/gender", "feature \"gender\" takes a text or a whole number, found an object"),
            (
                "/features/preferred_colours",
                "feature \"preferred_colours\" takes a list of texts or whole numbers, found a list with something else in it",
            ),
            ("/features/x", "feature \"x\" holds the character NUL (\\u0000): take it out"),
            ("/features/age", "feature \"age\" takes a finite number, found the text \"old\""),
        ];
        assert_eq!(found, expected.map(|(place, reason)| (place.to_owned(), reason.to_owned())));
    }
}
