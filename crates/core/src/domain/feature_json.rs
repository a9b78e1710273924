//! Features as JSON: the one reader and the one writer that files, requests and the database share.
//!
//! The schema decides what a value means. Each caller adds where the features were found: a JSON pointer, a line.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Feature, FeatureValue, FeatureWarning, Features, Schema, json_number, number::integer_word};

/// A feature that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct WrongFeature {
    pub name: String,
    pub reason: String,
}

/// Reads the fields of a JSON object as features. Null means that a feature is not given.
pub fn read_features(
    fields: Map<String, Value>,
    schema: &Schema,
) -> Result<(Features, Vec<FeatureWarning>), Vec<WrongFeature>> {
    let mut features = Features::default();
    let mut wrong = Vec::new();
    for (name, value) in fields {
        match read_value(&name, value, schema) {
            Ok(Some(value)) => features.insert(name, value),
            Ok(None) => {}
            Err(reason) => wrong.push(WrongFeature { name, reason }),
        }
    }
    // Models are given what the encoder makes of a profile, so the encoder judges the types.
    match schema.encode(&features) {
        Ok(encoding) if wrong.is_empty() => Ok((features, encoding.warnings)),
        Ok(_) => Err(wrong),
        Err(errors) => {
            wrong.extend(errors);
            Err(wrong)
        }
    }
}

fn read_value(name: &str, value: Value, schema: &Schema) -> Result<Option<FeatureValue>, String> {
    if name.is_empty() {
        return Err("a feature needs a name, found an empty one".into());
    }
    // Postgres stores no text with this character.
    let refuse_nul = |text: &str| {
        if text.contains('\0') {
            return Err(format!("feature {name:?} contains the character NUL (\\u0000); remove it"));
        }
        Ok(())
    };
    refuse_nul(name)?;
    let feature = schema.feature(name);
    let refuse = |found: &str| {
        let expected =
            feature.map_or("a string, a number or a list of strings", |feature| feature.expected());
        format!("feature {name:?} takes {expected}, found {found}")
    };
    let value = match value {
        Value::Null => return Ok(None),
        Value::String(text) => FeatureValue::Text(text),
        // By its digits: a float would round a long number.
        Value::Number(number) if !number.is_f64() && feature.is_some_and(Feature::takes_words) => {
            FeatureValue::Text(number.to_string())
        }
        Value::Number(number) => {
            FeatureValue::Number(number.as_f64().expect("every JSON number has a nearest float"))
        }
        Value::Array(values) => {
            let word = |value: Value| match value {
                Value::String(text) => Ok(text),
                Value::Number(number) if !number.is_f64() => Ok(number.to_string()),
                Value::Number(number) => number
                    .as_f64()
                    .and_then(integer_word)
                    .ok_or_else(|| refuse(&format!("a list that contains the number {number}"))),
                other => Err(refuse(&format!("a list that contains {}", describe(&other)))),
            };
            FeatureValue::Many(values.into_iter().map(word).collect::<Result<_, _>>()?)
        }
        other => return Err(refuse(describe(&other))),
    };
    match &value {
        FeatureValue::Text(text) => refuse_nul(text)?,
        FeatureValue::Many(words) => words.iter().try_for_each(|word| refuse_nul(word))?,
        FeatureValue::Number(_) => {}
    }
    Ok(Some(match feature {
        Some(feature) => feature.normalise(Cow::Owned(value)).into_owned(),
        None => value,
    }))
}

fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(true) => "true",
        Value::Bool(false) => "false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A feature's value as JSON. `None` for NaN and the infinities, which JSON cannot express.
pub fn feature_to_json(value: &FeatureValue) -> Option<Value> {
    Some(match value {
        FeatureValue::Text(word) => word.as_str().into(),
        FeatureValue::Many(words) => words.as_slice().into(),
        FeatureValue::Number(number) => json_number(*number)?.into(),
    })
}

/// Reads back what [`feature_to_json`] wrote.
///
/// # Errors
/// Gives back a value that it never writes.
pub fn feature_from_json(value: Value) -> Result<FeatureValue, Value> {
    match value {
        Value::String(text) => Ok(FeatureValue::Text(text)),
        Value::Number(number) => number.as_f64().map(FeatureValue::Number).ok_or(Value::Number(number)),
        Value::Array(words) if words.iter().all(Value::is_string) => {
            let text = |word| if let Value::String(word) = word { Some(word) } else { None };
            Ok(FeatureValue::Many(words.into_iter().filter_map(text).collect()))
        }
        other => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_read_is_written() {
        let given = json!({"age": 28, "preferred_colours": "red", "nogo_colours": [38, 39.0, "40"], "gender": null,
                           "x/y": ["a"], "shoe_size": 38, "country": 9_007_199_254_740_993_u64});
        let Value::Object(given) = given else { panic!("features are an object") };
        let (features, warnings) = read_features(given, &Schema::default_schema()).unwrap();
        let written: Value = features
            .iter()
            .map(|(name, value)| (name.to_owned(), feature_to_json(value).unwrap()))
            .collect::<serde_json::Map<_, _>>()
            .into();
        assert_eq!(
            written,
            json!({"age": 28, "preferred_colours": ["red"], "nogo_colours": ["38", "39", "40"], "shoe_size": "38",
                   "x/y": ["a"], "country": "9007199254740993"})
        );
        let warned: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warned.last().unwrap(), "the schema has no feature \"x/y\"; models do not see it");
        assert!(warned.contains(
            &"feature \"country\" has no value \"9007199254740993\"; models do not see it".to_owned()
        ));
        for (name, value) in features.iter() {
            assert_eq!(feature_from_json(written[name].clone()).as_ref(), Ok(value));
        }
        assert_eq!(feature_to_json(&FeatureValue::Number(f64::NAN)), None);
    }
}
