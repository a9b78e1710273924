//! Reads JSON that must have this form: a test that finds another one fails with the value.

use std::borrow::Borrow;

use serde_json::Value;

#[track_caller]
pub fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

#[track_caller]
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[track_caller]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// The codes of warnings, in their order.
#[track_caller]
pub fn codes(warnings: &Value) -> Vec<&str> {
    list(warnings).iter().map(|warning| text(&warning["code"])).collect()
}

/// An object with the members of another one, too.
#[track_caller]
pub fn with(mut object: Value, more: impl Borrow<Value>) -> Value {
    let Value::Object(more) = more.borrow() else { panic!("no object: {}", more.borrow()) };
    object.as_object_mut().expect("an object").extend(more.clone());
    object
}
