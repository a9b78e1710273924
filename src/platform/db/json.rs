//! The JSON text of columns. Only the database uses this format; files have their own.

use atelier_core::domain::{FeatureValue, Features, feature_from_json, feature_to_json};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, error::Category};

use super::StoreError;

/// Equal features have equal texts, by which an upsert recognises an unchanged row.
pub(crate) fn features_text(features: &Features) -> Result<String, StoreError> {
    let mut object = Map::new();
    for (name, value) in features.iter() {
        let json = feature_to_json(value).ok_or_else(|| StoreError::Unfit {
            what: "a feature",
            reason: format!("{name:?} is not a finite number"),
        })?;
        object.insert(name.into(), json);
    }
    Ok(text(&object))
}

/// Refuses a row that is longer than any may be.
pub(crate) fn check_row(what: &'static str, length: usize, most: u32) -> Result<(), StoreError> {
    if u32::try_from(length).is_ok_and(|length| length <= most) {
        return Ok(());
    }
    let reason = format!("as JSON it has {length} bytes; expected at most {most} (limits.row_bytes)");
    Err(StoreError::Unfit { what, reason })
}

pub(crate) fn parse_features(text: &str) -> Result<Features, String> {
    let read = |(name, value)| {
        // The error reaches the log, which must not show a customer's data.
        let value = feature_from_json(value)
            .map_err(|_| format!("feature {name:?} is not a string, a number or a list of strings"))?;
        Ok((name, value))
    };
    parse::<Map<String, Value>>(text)?.into_iter().map(read).collect()
}

pub(crate) fn parse_feature(text: &str) -> Result<FeatureValue, String> {
    feature_from_json(parse(text)?)
        .map_err(|_| "it is not a string, a number or a list of strings".to_owned())
}

/// The JSON of a value that always has one.
pub(crate) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("maps, lists and texts are always JSON")
}

pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| match error.classify() {
        // Its text would quote the value.
        Category::Data => format!("the JSON has another type than expected at column {}", error.column()),
        _ => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use atelier_core::domain::FeatureValue;

    #[test]
    fn features_come_back_and_whole_numbers_stay_whole() {
        let text = r#"{"age\u0000":"\u0000","brands":["Ö\"","😀"],"height":172,"weight":58.25}"#;
        let features = parse_features(text).unwrap();
        assert_eq!(features.get("age\u{0}"), Some(&FeatureValue::Text("\u{0}".into())));
        assert_eq!(features.get("height"), Some(&FeatureValue::Number(172.0)));
        assert_eq!(features_text(&features).unwrap(), text);
    }

    #[test]
    fn errors_do_not_quote_values() {
        let damaged = r#""Erna"|{"name":{"first":"Erna"}}|{"name":["Erna",1]}|{"name":"Erna"#;
        for damaged in damaged.split('|') {
            let error = parse_features(damaged).unwrap_err();
            assert!(!error.contains("Erna"), "{error}");
        }
    }
}
