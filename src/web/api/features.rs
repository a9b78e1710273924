//! A request's features, and those of an answer.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::domain::{FeatureWarning, Features, Schema, feature_to_json, read_features};
use crate::util::json_pointer::step;
use crate::web::http::Finding;

/// Features, and warnings about them.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) features: Features,
    pub(crate) warnings: Vec<Finding>,
}

/// `pointer` is the place of the features in the body, such as `/features`. Null means "not given".
pub(crate) fn read(given: Map<String, Value>, schema: &Schema, pointer: &str) -> Result<Read, Vec<Finding>> {
    let at = |name: &str| format!("{pointer}{}", step(name));
    match read_features(given, schema) {
        Ok((features, warnings)) => {
            let warning = |warning: FeatureWarning| Finding::at(at(warning.feature()), warning.to_string());
            Ok(Read { features, warnings: warnings.into_iter().map(warning).collect() })
        }
        Err(wrong) => {
            Err(wrong.into_iter().map(|wrong| Finding::at(at(&wrong.name), wrong.reason)).collect())
        }
    }
}

pub(crate) fn write(features: &Features) -> Map<String, Value> {
    let written = features.iter().map(|(name, value)| (name, feature_to_json(Cow::Borrowed(value))));
    written.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn findings_have_pointers() {
        let read = |given: Value| {
            let Value::Object(given) = given else { panic!("features are an object") };
            super::read(given, &Schema::default_schema(), "/features")
        };
        let Read { features, warnings } =
            read(json!({"shoe_size": 38, "gender": null, "x/y": ["a"]})).unwrap();
        assert_eq!(Value::Object(write(&features)), json!({"shoe_size": "38", "x/y": ["a"]}));
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].pointer.as_deref(), Some("/features/x~1y"));
        assert_eq!(warnings[0].detail, "the schema has no feature \"x/y\"; models do not see it");
        let wrong = read(json!({"age": "old", "fit": true})).unwrap_err();
        let pointers: Vec<_> = wrong.iter().map(|finding| finding.pointer.as_deref().unwrap()).collect();
        assert_eq!(pointers, ["/features/fit", "/features/age"]);
    }
}
