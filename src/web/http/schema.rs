//! Schemas that several bodies in `/openapi.json` share.

use serde_json::json;
use utoipa::openapi::{
    self, ObjectBuilder,
    schema::{Schema, Type},
};

use crate::domain::{MAX_SLOTS, MIN_ARTICLES, Method};

/// The ids that `domain` accepts: 1 to 128 characters, none of them a control character or a vertical bar, and no
/// space at either end.
const ID: &str = "^[^\\s\\u0000-\\u001F\\u007F-\\u009F|]([^\\u0000-\\u001F\\u007F-\\u009F|]*[^\\s\\u0000-\\u001F\\u007F-\\u009F|])?$";

/// The schema of the shop's id of an article or customer.
pub(crate) fn id_text() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(128))
        .pattern(Some(ID))
        .examples(["c-17"])
}

/// The schema of a complete outfit's articles.
pub(crate) fn article_ids() -> Schema {
    openapi::ArrayBuilder::new()
        .items(id_text())
        .min_items(Some(MIN_ARTICLES))
        .max_items(Some(MAX_SLOTS))
        .unique_items(true)
        .examples([json!(["a-3", "a-12", "a-9", "a-40"])])
        .into()
}

/// The schema of an object with any fields.
pub(crate) fn free_object() -> Schema {
    let any = openapi::schema::AdditionalProperties::FreeForm(true);
    ObjectBuilder::new().additional_properties(Some(any)).into()
}

/// The schema of a method's name.
pub(crate) fn method_name() -> Schema {
    let names = Method::ALL.map(Method::as_str);
    openapi::ObjectBuilder::new().schema_type(openapi::schema::Type::String).enum_values(Some(names)).into()
}
