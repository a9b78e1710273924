//! Features in JSON: how a request's become those of the domain, and back.
//!
//! The schema judges them, as it does in a file: a wrong type is an error at its place, what the schema does
//! not know is kept and warned of.

use serde_json::{Map, Value};

use crate::domain::{Feature, FeatureValue, FeatureWarning, Features, Schema, json_number, whole_word};
use crate::util::json_pointer::step;
use crate::web::http::Finding;

/// Features with what is odd about them.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) features: Features,
    pub(crate) warnings: Vec<Finding>,
}

/// `pointer` is where the features stand in the body, such as `/features`. A null is "not given".
pub(crate) fn read(given: Map<String, Value>, schema: &Schema, pointer: &str) -> Result<Read, Vec<Finding>> {
    let at = |name: &str| format!("{pointer}{}", step(name));
    let mut features = Features::default();
    let mut errors = Vec::new();
    for (name, value) in given {
        match feature(&name, value, schema) {
            Ok(Some(value)) => features.insert(name, value),
            Ok(None) => {}
            Err(reason) => errors.push(Finding::at(at(&name), reason)),
        }
    }
    let encoding = schema.encode(&features).map_err(|wrong| {
        wrong.iter().map(|error| Finding::at(at(&error.feature), error.to_string())).collect::<Vec<_>>()
    });
    match encoding {
        Ok(encoding) if errors.is_empty() => {
            let warning = |warning: FeatureWarning| {
                let (FeatureWarning::UnknownFeature { feature }
                | FeatureWarning::UnknownValue { feature, .. }) = &warning;
                Finding::at(at(feature), warning.to_string())
            };
            Ok(Read { features, warnings: encoding.warnings.into_iter().map(warning).collect() })
        }
        Ok(_) => Err(errors),
        Err(wrong) => {
            errors.extend(wrong);
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
    features.iter().filter_map(|(name, given)| Some((name.to_owned(), value(given)?))).collect()
}

fn feature(name: &str, value: Value, schema: &Schema) -> Result<Option<FeatureValue>, String> {
    if name.is_empty() {
        return Err("a feature needs a name, found an empty one".into());
    }
    if name.contains('\0') {
        return Err("a feature's name cannot hold the character NUL".into());
    }
    let known = schema.feature(name);
    let expected = known.map_or("a text, a number or a list of texts", |feature| feature.expected());
    let refuse = |found: &str| format!("feature {name:?} takes {expected}, found {found}");
    let kept = |value| match known {
        Some(feature) => feature.kept(value),
        None => value,
    };
    let value = match value {
        Value::Null => return Ok(None),
        Value::String(text) => kept(FeatureValue::Text(text)),
        // By its digits, which a float would round where there are many.
        Value::Number(number) if !number.is_f64() && known.is_some_and(Feature::takes_words) => {
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

    fn read_json(given: Value) -> Result<Read, Vec<Finding>> {
        let Value::Object(given) = given else { panic!("features are an object") };
        read(given, &Schema::default_schema(), "/features")
    }

    #[test]
    fn what_comes_in_goes_out() {
        let given =
            json!({"age": 28, "preferred_colours": "red", "gender": null, "x/y": ["a"], "shoe_size": 38});
        let Read { features, warnings } = read_json(given).unwrap();
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
    fn every_wrong_type_is_found_at_its_place() {
        let given =
            json!({"age": "old", "gender": {"a": 1}, "fit": true, "preferred_colours": [true], "x": "\0"});
        let found: Vec<(String, String)> = read_json(given)
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
