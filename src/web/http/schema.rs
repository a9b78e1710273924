//! Schemas that several bodies in `/openapi.json` share.

use utoipa::openapi::{
    self, ObjectBuilder,
    schema::{Schema, Type},
};

use crate::domain::Method;

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
