//! Features, attributes and lists as the JSON text that columns hold.
//!
//! Files have a format of their own (`exchange`); this one is nobody's contract but the database's.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::StoreError;
use crate::domain::{FeatureValue, Features, json_number};

/// Canonical: names in order, whole numbers without a fraction. Equal features are equal texts, which is
/// how an unchanged row is recognised.
pub(super) fn features_text(features: &Features) -> Result<String, StoreError> {
    let mut object = Map::new();
    for (name, value) in features.iter() {
        let value = match value {
            FeatureValue::Text(text) => Value::from(text.as_str()),
            FeatureValue::Number(number) => Value::Number(json_number(*number).ok_or_else(|| {
                StoreError::Unfit { what: "a feature", reason: format!("{name:?} is {number}") }
            })?),
            FeatureValue::Many(words) => Value::from(words.as_slice()),
        };
        object.insert(name.into(), value);
    }
    Ok(text(&object))
}

pub(super) fn features(text: &str) -> Result<Features, String> {
    parse::<Map<String, Value>>(text)?
        .into_iter()
        .map(|(name, value)| {
            let value = match value {
                Value::String(text) => FeatureValue::Text(text),
                Value::Number(number) => {
                    FeatureValue::Number(number.as_f64().ok_or("a number out of range")?)
                }
                Value::Array(words) => FeatureValue::Many(
                    words
                        .into_iter()
                        .map(|word| match word {
                            Value::String(word) => Ok(word),
                            other => Err(format!("feature {name:?} lists {other}, expected a text")),
                        })
                        .collect::<Result<_, _>>()?,
                ),
                other => {
                    return Err(format!(
                        "feature {name:?} is {other}, expected a text, a number or a list of texts"
                    ));
                }
            };
            Ok((name, value))
        })
        .collect()
}

/// The JSON of something that always has one.
pub(super) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("maps, lists and texts always are JSON; this is a bug")
}

pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_come_back_and_whole_numbers_stay_whole() {
        let given: Features = [
            ("height".into(), FeatureValue::Number(172.0)),
            ("weight".into(), FeatureValue::Number(58.25)),
            ("brands".into(), FeatureValue::Many(vec!["Ö\"".into(), "😀".into()])),
            ("age\u{0}".into(), FeatureValue::Text("\u{0}".into())),
        ]
        .into_iter()
        .collect();
        let text = features_text(&given).unwrap();
        assert_eq!(text, r#"{"age\u0000":"\u0000","brands":["Ö\"","😀"],"height":172,"weight":58.25}"#);
        assert_eq!(features(&text), Ok(given));
    }

    #[test]
    fn what_json_cannot_say_is_refused() {
        let given: Features = [("age".into(), FeatureValue::Number(f64::NAN))].into_iter().collect();
        let refused = features_text(&given).unwrap_err();
        assert_eq!(refused.to_string(), "a feature cannot be stored: \"age\" is NaN");
        assert!(features(r#"{"age":null}"#).unwrap_err().contains("\"age\" is null"));
        assert!(features(r#"{"age":[1]}"#).unwrap_err().contains("lists 1"));
    }
}
