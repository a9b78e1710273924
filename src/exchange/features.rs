//! How the features of a row become those of the domain, and back.

use super::value::{Fields, Value};
use crate::domain::{FeatureError, FeatureValue, FeatureWarning, Features, Kind, Schema};

pub(super) fn read_features(
    value: Value<'_>,
    schema: &Schema,
) -> Result<(Features, Vec<FeatureWarning>), String> {
    let given = match value {
        Value::Null => return Ok((Features::default(), Vec::new())),
        Value::Object(fields) => fields,
        other => return Err(format!("field \"features\" must be an object, found {}", other.kind())),
    };
    let mut features = Features::default();
    let mut errors = Vec::new();
    for (name, value) in given {
        if name.is_empty() {
            return Err("a feature needs a name, found an empty one".into());
        }
        match feature_value(&name, value, schema) {
            Ok(Some(value)) => features.insert(name, value),
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
    }
    // The encoder judges the types, so that a file and a request are held to the same rule.
    let warnings = match schema.encode(&features) {
        Ok(encoding) => encoding.warnings,
        Err(wrong) => {
            errors.extend(wrong);
            Vec::new()
        }
    };
    if errors.is_empty() {
        Ok((features, warnings))
    } else {
        Err(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }
}

fn feature_value(
    name: &str,
    value: Value<'_>,
    schema: &Schema,
) -> Result<Option<FeatureValue>, FeatureError> {
    let known = schema.feature(name);
    let refuse = |found: String| FeatureError {
        feature: name.to_owned(),
        expected: known.map_or("a text, a number or a list of texts", |feature| feature.expected()),
        found,
    };
    match value {
        Value::Null => Ok(None),
        // One value of a set may stand without its list; inside, a set is a list.
        Value::Text(text) if known.is_some_and(|feature| feature.kind == Kind::Set) => {
            Ok(Some(FeatureValue::Many(vec![text.into_owned()])))
        }
        Value::Text(text) => Ok(Some(FeatureValue::Text(text.into_owned()))),
        Value::Number(number) => Ok(number.as_f64().map(FeatureValue::Number)),
        Value::List(values) => {
            let word = |value| match value {
                Value::Text(text) => Ok(text.into_owned()),
                other => Err(refuse(format!("a list with {} in it", other.kind()))),
            };
            values
                .into_iter()
                .map(word)
                .collect::<Result<_, _>>()
                .map(|words| Some(FeatureValue::Many(words)))
        }
        Value::Bool(truth) => Err(refuse(truth.to_string())),
        Value::Object(_) => Err(refuse("an object".into())),
    }
}

pub(super) fn write_features<'a>(features: &'a Features, schema: &Schema) -> Fields<'a> {
    let written = |(name, value): (&'a str, &'a FeatureValue)| {
        let value = match value {
            FeatureValue::Text(text)
                if schema.feature(name).is_some_and(|feature| feature.kind == Kind::Set) =>
            {
                Value::List(vec![Value::text(text)])
            }
            FeatureValue::Text(text) => Value::text(text),
            // What is no number to JSON is no number to the encoder either: not given.
            FeatureValue::Number(number) => Value::from_f64(*number)?,
            FeatureValue::Many(words) => Value::List(words.iter().map(Value::text).collect()),
        };
        Some((name.into(), value))
    };
    features.iter().filter_map(written).collect()
}
