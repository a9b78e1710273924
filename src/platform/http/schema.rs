//! Schemas that several bodies in `/openapi.json` share. They accept nothing that the service refuses for its form.

use std::borrow::Cow;

use atelier_core::domain::MAX_SLOTS;
use serde_json::{Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr,
        extensions::Extensions,
        schema::{Schema, SchemaType},
    },
};

use super::{item::reference, paging::AFTER};

/// Begins the characters that ids and types may begin and end with.
const END: &str = "[^\\s\\u0000-\\u001F\\u007F-\\u009F\\u00AD\\u200B\\u2060\\uFEFF|";
const MIDDLE: &str = "[^\\u0000-\\u001F\\u007F-\\u009F|]";

/// Postgres stores no text with the character NUL.
const TEXT: &str = "^[^\\u0000]*$";
const NAME: &str = "^[^\\u0000]+$";

/// A price without doubt about its separators: `64.55`, `64,55`, `1.299,00`, `1,299.00`, `1 299`, `1'299.50`.
const PRICE: &str = "^([0-9]{1,12}([.,][0-9]{1,2})?|[0-9]{1,3}(\\.[0-9]{3}){1,3},[0-9]{1,2}|\
                     [0-9]{1,3}(,[0-9]{3}){1,3}\\.[0-9]{1,2}|[0-9]{1,3}([ '][0-9]{3}){1,3}([.,][0-9]{1,2})?)$";

/// `domain::json_number` reads a whole number below 10^16 as an integer.
const LARGEST_COUNT: i64 = 9_999_999_999_999_998;

/// Schemas with a name of their own in the document.
macro_rules! named {
    ($($type:ident $name:literal $schema:expr;)*) => {$(
        pub(crate) enum $type {}

        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                RefOr::T(schema($schema))
            }
        }

        impl ToSchema for $type {
            fn name() -> Cow<'static, str> {
                $name.into()
            }
        }
    )*};
}

named! {
    ArticleIdSchema "ArticleId" with(id(), json!({"description": "The shop's id of an article.", "examples": ["a-00134"]}));
    CustomerIdSchema "CustomerId" with(id(), json!({"description": "The shop's id of a customer.", "examples": ["c-000010"]}));
    CursorSchema "Cursor" prefixed_id(AFTER);
    ArticleTypeSchema "ArticleType" json!({
        "type": "string", "pattern": format!("^{END}]({MIDDLE}*{END}])?$"),
        "description": "The kind of article.", "examples": ["coat"],
    });
    ConditionSchema "Condition" json!({
        "type": "string", "pattern": "^[^:]+:[^\\u0000]",
        "description": "An attribute of an article and a value of it.", "examples": ["colour:navy"],
    });
    MethodNameSchema "MethodName" json!({
        "type": "string", "pattern": "^[a-z0-9-]{1,31}$",
        "description": "A method of the release: GET /methods lists them.", "examples": ["gsu"],
    });
    FeaturesSchema "Features" features();
    PriceSchema "ArticlePrice" price();
    InStockSchema "InStock" json!({
        "type": ["boolean", "integer", "string"], "minimum": 0, "maximum": 1,
        "pattern": "^(true|yes|ja|oui|1|false|no|nein|non|0)$", "description": "True or false, 0 or 1, or a word for it.",
    });
    StockSchema "Stock" stock();
    VariantSchema "Variant" variant();
    EmbeddingSchema "Embedding" embedding();
    BytesSchema "Bytes" json!({"type": "string", "format": "binary", "description": "The bytes of a file."});
}

/// A schema by its JSON. Extensions have any name.
pub(crate) fn schema(fields: Value) -> Schema {
    let Value::Object(fields) = fields else { unreachable!("a schema is an object") };
    let any = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
    any.extensions(Some(Extensions::from_iter(fields))).into()
}

/// The schema with further keywords.
fn with(mut schema: Value, keywords: Value) -> Value {
    if let (Value::Object(schema), Value::Object(keywords)) = (&mut schema, keywords) {
        schema.extend(keywords);
    }
    schema
}

/// An article's or a customer's id, which is neither `.` nor `..`.
fn id() -> Value {
    prefixed_id("")
}

fn prefixed_id(prefix: &str) -> Value {
    let pattern = format!("^{prefix}({END}.]({MIDDLE}*{END}])?|\\.({END}.]|{MIDDLE}+{END}]))$");
    json!({"type": "string", "pattern": pattern, "minLength": prefix.len() + 1, "maxLength": prefix.len() + 128})
}

fn count() -> Value {
    json!({"type": "integer", "format": "int64", "minimum": -LARGEST_COUNT, "maximum": LARGEST_COUNT})
}

/// The schema of the articles of an outfit to score.
pub(crate) fn scored_ids() -> Schema {
    schema(json!({
        "type": "array", "items": reference("ArticleId"), "minItems": 2, "maxItems": MAX_SLOTS,
        "description": "Article ids, without a blank, each once.",
        "examples": [["a-00134", "a-01243", "a-00568", "a-00259"]],
    }))
}

/// The schema of the attributes that an answer has of each article.
pub(crate) fn field_names() -> Schema {
    schema(json!({
        "type": "array", "items": {"type": "string"}, "maxItems": 50, "uniqueItems": true,
        "description": "The attributes that the answer has of each article and variant; all by default. `id` and `type` are \
                        always there, of a variant `id` and `in_stock`.",
        "examples": [["id", "price"]],
    }))
}

/// The schema of an outfit with blanks.
pub(crate) fn slots() -> Schema {
    with_blanks(
        0,
        "Article ids, and null for each blank, at most as many as the live schema's `outfit` allows. No article may appear twice.",
    )
}

/// The schema of an outfit to store.
pub(crate) fn outfit_slots() -> Schema {
    with_blanks(
        1,
        "Articles of the catalogue, each once, as many as the live schema's `outfit` allows; or a draft with null for each blank.",
    )
}

fn with_blanks(least: usize, about: &str) -> Schema {
    schema(json!({
        "type": "array", "items": with(id(), json!({"type": ["string", "null"]})),
        "minItems": least, "maxItems": MAX_SLOTS, "description": about,
        "examples": [["a-00134", null, "a-00568", "a-00259"]],
    }))
}

/// The schema of the types that may fill each blank.
pub(crate) fn types_by_slot() -> Schema {
    let types = json!({"type": "array", "items": {"type": "string", "pattern": TEXT}, "minItems": 1, "maxItems": 100});
    schema(json!({
        "type": "object", "additionalProperties": types,
        "propertyNames": {"type": "string", "pattern": "^([0-9]|1[01])$"},
        "description": "The types that may fill a blank, by its place in the outfit, from 0.",
    }))
}

/// The schema of an object with any fields.
pub(crate) fn free_object(about: &str) -> Schema {
    schema(json!({"type": "object", "additionalProperties": true, "description": about}))
}

/// Features by name. The release's schema has more rules: which values a feature has, and what is a number.
fn features() -> Value {
    json!({
        "type": "object", "propertyNames": names(), "maxProperties": 1000,
        "additionalProperties": {
            "type": ["string", "number", "array", "null"], "pattern": TEXT, "maxItems": 1000,
            "items": {"type": ["string", "integer"], "pattern": TEXT, "minimum": i64::MIN, "maximum": u64::MAX},
        },
        "description": "Features by name: a text, a number, or a list of texts, as the release's schema says. A null is left out.",
        "examples": [{"gender": "female", "age": 34}],
    })
}

fn price() -> Value {
    json!({
        "type": ["number", "string"], "minimum": 0, "maximum": 999_999_999_999_u64, "pattern": PRICE,
        "description": "A number of 0 or more, or a text such as `64,55` or `1.299,00`.",
    })
}

/// A count, or an object of counts.
fn counts(types: &[&str], names: &str) -> Value {
    json!({
        "type": types, "minimum": -LARGEST_COUNT, "maximum": LARGEST_COUNT,
        "additionalProperties": count(), "propertyNames": {"type": "string", "pattern": names},
    })
}

/// Generators of clients make nothing usable of a choice between a list and an object.
fn embedding() -> Value {
    let numbers = json!({
        "items": {"type": "number", "minimum": f64::from(f32::MIN), "maximum": f64::from(f32::MAX)},
        "minItems": 1, "maxItems": 4096,
    });
    with(
        numbers.clone(),
        json!({
            "type": ["array", "object"], "additionalProperties": with(numbers, json!({"type": "array"})),
            "propertyNames": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,40}$"}, "minProperties": 1, "maxProperties": 8,
            "description": "The numbers of an encoder of images or texts, or up to 8 such lists by name; at most 4096 numbers.",
        }),
    )
}

fn stock() -> Value {
    const WORD: &str = "[A-Za-z0-9]";
    with(
        counts(&["integer", "object", "array"], WORD),
        json!({
            "items": {
                "type": "object", "required": ["count"], "additionalProperties": false,
                "properties": {
                    "size": {"type": "string", "pattern": WORD, "description": "The size."},
                    "store": {"type": "string", "pattern": WORD, "description": "The store."},
                    "count": with(count(), json!({"description": "How many there are."})),
                },
            },
            "description": "A count, counts by size, or a list of counts by size and store.",
            "examples": [{"M": 3, "L": 0}, [{"size": "M", "store": "zurich", "count": 3}]],
        }),
    )
}

fn variant() -> Value {
    let word = |what| json!({"type": "string", "description": what});
    let by_store = json!({"description": "A count, counts by store, or true or false if it is not counted."});
    let sku =
        json!({"description": "The shop's own key, such as its SKU. No other variant or article has it."});
    json!({
        "type": "object", "required": ["id"], "additionalProperties": true, "propertyNames": {"type": "string", "pattern": TEXT},
        "properties": {
            "id": with(id(), sku),
            "size": word("Its size."),
            "options": {
                "type": "object", "additionalProperties": {"type": "string"}, "propertyNames": names(),
                "description": "The customer's choices, by name.",
            },
            "price": price(),
            "stock": with(counts(&["integer", "boolean", "object"], NAME), by_store),
            "gtin": word("Its Global Trade Item Number."),
            "link": word("The address of its page."),
            "image": word("The address of its picture."),
        },
        "description": "A variant, as baskets hold it. Other fields are kept as they are.",
        "examples": [
            {"id": "TSH-1-NV-M", "size": "M", "options": {"Farbe": "Navy"}, "price": 19.9, "stock": 3},
        ],
    })
}

/// An object's names: not empty, without NUL.
pub(crate) fn names() -> Value {
    json!({"type": "string", "pattern": NAME})
}
