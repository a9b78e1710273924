//! Features as JSON: the one reader and the one writer that files, requests and the database share.
//!
//! The schema decides what a value means. Each caller adds where the features were found: a JSON pointer, a line.

use std::borrow::Cow;

use serde_json::{Number, Value};

use super::{Feature, FeatureValue, FeatureWarning, Features, Schema, json_number, number::integer_word};

/// The outermost layer of a JSON value, whichever type holds it. Texts and lists are moved, not copied.
#[derive(Debug)]
pub enum JsonLayer<V> {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<V>),
    Object,
}

impl From<Value> for JsonLayer<Value> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(truth),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(text),
            Value::Array(values) => Self::List(values),
            Value::Object(_) => Self::Object,
        }
    }
}

/// A feature that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct WrongFeature {
    pub name: String,
    pub reason: String,
}

/// Reads the fields of a JSON object as features. Null means that a feature is not given.
///
/// # Errors
/// Every feature whose value has the wrong type, or whose name or text no database would store.
pub fn read_features<N: Into<String>, V: Into<JsonLayer<V>>>(
    fields: impl IntoIterator<Item = (N, V)>,
    schema: &Schema,
) -> Result<(Features, Vec<FeatureWarning>), Vec<WrongFeature>> {
    let mut features = Features::default();
    let mut wrong = Vec::new();
    for (name, value) in fields {
        let name = name.into();
        match read_value(&name, value.into(), schema) {
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
            let reason = |error: super::FeatureError| {
                let reason = error.to_string();
                WrongFeature { name: error.feature, reason }
            };
            wrong.extend(errors.into_iter().map(reason));
            Err(wrong)
        }
    }
}

fn read_value<V: Into<JsonLayer<V>>>(
    name: &str,
    value: JsonLayer<V>,
    schema: &Schema,
) -> Result<Option<FeatureValue>, String> {
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
        JsonLayer::Null => return Ok(None),
        JsonLayer::Text(text) => FeatureValue::Text(text),
        // By its digits: a float would round a long number.
        JsonLayer::Number(number) if !number.is_f64() && feature.is_some_and(Feature::takes_words) => {
            FeatureValue::Text(number.to_string())
        }
        JsonLayer::Number(number) => FeatureValue::Number(
            number.as_f64().expect("every JSON number has a nearest float; this is a bug"),
        ),
        JsonLayer::List(values) => {
            let word = |value: V| match value.into() {
                JsonLayer::Text(text) => Ok(text),
                JsonLayer::Number(number) if !number.is_f64() => Ok(number.to_string()),
                JsonLayer::Number(number) => number
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

fn describe<V>(value: &JsonLayer<V>) -> &'static str {
    match value {
        JsonLayer::Null => "null",
        JsonLayer::Bool(true) => "true",
        JsonLayer::Bool(false) => "false",
        JsonLayer::Number(_) => "a number",
        JsonLayer::Text(_) => "a string",
        JsonLayer::List(_) => "a list",
        JsonLayer::Object => "an object",
    }
}

/// A feature's value as JSON of any type. `None` for NaN and the infinities, which JSON cannot express.
pub fn feature_to_json<'a, V>(value: Cow<'a, FeatureValue>) -> Option<V>
where
    V: From<Cow<'a, str>> + From<Number> + From<Vec<V>>,
{
    Some(match value {
        Cow::Borrowed(FeatureValue::Text(word)) => Cow::Borrowed(word.as_str()).into(),
        Cow::Owned(FeatureValue::Text(word)) => Cow::<str>::Owned(word).into(),
        Cow::Borrowed(FeatureValue::Many(words)) => {
            words.iter().map(|word| Cow::Borrowed(word.as_str()).into()).collect::<Vec<V>>().into()
        }
        Cow::Owned(FeatureValue::Many(words)) => {
            words.into_iter().map(|word| Cow::<str>::Owned(word).into()).collect::<Vec<V>>().into()
        }
        Cow::Borrowed(&FeatureValue::Number(number)) | Cow::Owned(FeatureValue::Number(number)) => {
            json_number(number)?.into()
        }
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

    fn read(given: Value) -> Result<(Features, Vec<FeatureWarning>), Vec<WrongFeature>> {
        let Value::Object(given) = given else { panic!("features are an object") };
        read_features(given, &Schema::default_schema())
    }

    #[test]
    fn what_is_read_is_written() {
        let given =
            json!({"age": 28, "preferred_colours": "red", "gender": null, "x/y": ["a"], "shoe_size": 38});
        let (features, warnings) = read(given).unwrap();
        let written: Value = features
            .iter()
            .map(|(name, value)| (name.to_owned(), feature_to_json(Cow::Borrowed(value)).unwrap()))
            .collect::<serde_json::Map<_, _>>()
            .into();
        assert_eq!(
            written,
            json!({"age": 28, "preferred_colours": ["red"], "shoe_size": "38", "x/y": ["a"]})
        );
        let warned: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warned, ["the schema has no feature \"x/y\"; models do not see it"]);
        for (name, value) in features.iter() {
            assert_eq!(feature_from_json(written[name].clone()).as_ref(), Ok(value));
        }
        assert_eq!(feature_to_json::<Value>(Cow::Owned(FeatureValue::Number(f64::NAN))), None);
    }

    #[test]
    fn every_wrong_type_is_found() {
        let given =
            json!({"age": "old", "gender": {"a": 1}, "fit": true, "preferred_colours": [true], "x": "\0"});
        let found: Vec<(String, String)> =
            read(given).unwrap_err().into_iter().map(|wrong| (wrong.name, wrong.reason)).collect();
        let expected = [
            ("fit", "feature \"fit\" takes a string or a whole number, found true"),
            ("gender", "feature \"gender\" takes a string or a whole number, found an object"),
            (
                "preferred_colours",
                "feature \"preferred_colours\" takes a list of strings or whole numbers, found a list that contains true",
            ),
            ("x", "feature \"x\" contains the character NUL (\\u0000); remove it"),
            ("age", "feature \"age\" takes a finite number, found the string \"old\""),
        ];
        assert_eq!(found, expected.map(|(name, reason)| (name.to_owned(), reason.to_owned())));
    }
}
