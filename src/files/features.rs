//! How the features of a row become those of the domain, and back.

use super::value::{Fields, Value};
use crate::domain::{Feature, FeatureError, FeatureValue, FeatureWarning, Features, Schema, whole_word};

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
    let kept = |value| match known {
        Some(feature) => feature.kept(value),
        None => value,
    };
    let refuse = |found: String| FeatureError {
        feature: name.to_owned(),
        expected: known.map_or("a text, a number or a list of texts", |feature| feature.expected()),
        found,
    };
    match value {
        Value::Null => Ok(None),
        Value::Text(text) => Ok(Some(kept(FeatureValue::Text(text.into_owned())))),
        // By its digits, which a float would round where there are many.
        Value::Number(number) if !number.is_f64() && known.is_some_and(Feature::takes_words) => {
            Ok(Some(kept(FeatureValue::Text(number.to_string()))))
        }
        Value::Number(number) => Ok(number.as_f64().map(|number| kept(FeatureValue::Number(number)))),
        Value::List(values) => {
            let word = |value: Value<'_>| match value {
                Value::Text(text) => Ok(text.into_owned()),
                Value::Number(number) if !number.is_f64() => Ok(number.to_string()),
                Value::Number(number) => number
                    .as_f64()
                    .and_then(whole_word)
                    .ok_or_else(|| refuse(format!("a list with the number {number} in it"))),
                other => Err(refuse(format!("a list with {} in it", other.kind()))),
            };
            let words = values.into_iter().map(word).collect::<Result<_, _>>()?;
            Ok(Some(FeatureValue::Many(words)))
        }
        Value::Bool(truth) => Err(refuse(truth.to_string())),
        Value::Object(_) => Err(refuse("an object".into())),
    }
}

pub(super) fn write_features<'a>(features: &'a Features, schema: &Schema) -> Fields<'a> {
    let written = |(name, value): (&'a str, &'a FeatureValue)| {
        let known = schema.feature(name).filter(|feature| feature.takes_words());
        let value = match (value, known) {
            (FeatureValue::Many(words), _) => Value::List(words.iter().map(Value::text).collect()),
            (FeatureValue::Text(text), None) => Value::text(text),
            // What is no number to JSON is no number to the encoder either: not given.
            (FeatureValue::Number(number), None) => Value::from_f64(*number)?,
            // Kept under another schema: written as this one keeps it.
            (one, Some(feature)) => match feature.kept(one.clone()) {
                FeatureValue::Text(text) => Value::text(text),
                FeatureValue::Many(words) => Value::List(words.into_iter().map(Value::text).collect()),
                FeatureValue::Number(number) => Value::from_f64(number)?,
            },
        };
        Some((name.into(), value))
    };
    features.iter().filter_map(written).collect()
}
