//! Schemas that several bodies in `/openapi.json` share. They accept nothing that the service refuses for its form.

use std::borrow::Cow;

use atelier_core::domain::MAX_SLOTS;
use serde_json::{Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        self, ObjectBuilder, RefOr,
        extensions::Extensions,
        schema::{AdditionalProperties, KnownFormat, Schema, SchemaFormat, SchemaType, Type},
    },
};

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
const LARGEST_COUNT: f64 = 9_999_999_999_999_998.0;

/// Schemas with a name of their own in the document.
macro_rules! named {
    ($($type:ident $name:literal $schema:expr;)*) => {$(
        pub(crate) enum $type {}

        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                RefOr::T($schema.into())
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
    ArticleIdSchema "ArticleId" id_text().description(Some("The shop's id of an article.")).examples(["a-00134"]);
    CustomerIdSchema "CustomerId" id_text().description(Some("The shop's id of a customer.")).examples(["c-000010"]);
    CursorSchema "Cursor" id_text();
    ArticleTypeSchema "ArticleType" text(&format!("^{END}]({MIDDLE}*{END}])?$")).description(Some("What an article is.")).examples(["coat"]);
    ConditionSchema "Condition" text("^[^:]+:[^\\u0000]")
        .description(Some("An attribute of an article and a value of it."))
        .examples(["colour:navy"]);
    MethodNameSchema "MethodName" method_name();
    FeaturesSchema "Features" features();
    PriceSchema "ArticlePrice" price();
    InStockSchema "InStock" in_stock();
    StockSchema "Stock" stock();
    VariantSchema "Variant" variant();
    EmbeddingSchema "Embedding" embedding();
    BytesSchema "Bytes" ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
        .description(Some("The bytes of a file."));
}

fn text(pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern))
}

fn number() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Number)
}

fn integer() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer)
}

fn count() -> ObjectBuilder {
    let format = SchemaFormat::KnownFormat(KnownFormat::Int64);
    integer().format(Some(format)).minimum(Some(-LARGEST_COUNT)).maximum(Some(LARGEST_COUNT))
}

/// The schema of an article's or a customer's id, which is neither `.` nor `..`.
fn id_text() -> ObjectBuilder {
    text(&format!("^({END}.]({MIDDLE}*{END}])?|\\.({END}.]|{MIDDLE}+{END}]))$"))
        .min_length(Some(1))
        .max_length(Some(128))
}

/// The schema of the articles of an outfit to score.
pub(crate) fn scored_ids() -> Schema {
    ids(2).description(Some("Article ids, without a blank, each once.")).into()
}

fn ids(least: usize) -> openapi::ArrayBuilder {
    let items = openapi::Ref::from_schema_name(ArticleIdSchema::name());
    let ids = openapi::ArrayBuilder::new().items(items).min_items(Some(least)).max_items(Some(MAX_SLOTS));
    ids.examples([json!(["a-00134", "a-01243", "a-00568", "a-00259"])])
}

/// The schema of the attributes that an answer has of each article.
pub(crate) fn field_names() -> Schema {
    let names = openapi::ArrayBuilder::new()
        .items(ObjectBuilder::new().schema_type(Type::String))
        .max_items(Some(50))
        .unique_items(true);
    let says = "The attributes that the answer has of each article and variant; all by default. `id` and `type` are always there, of a \
                variant `id` and `in_stock`.";
    names.description(Some(says)).examples([json!(["id", "price"])]).into()
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
    let blank = id_text().schema_type(SchemaType::from_iter([Type::String, Type::Null]));
    let slots = openapi::ArrayBuilder::new().items(blank).min_items(Some(least)).max_items(Some(MAX_SLOTS));
    slots.description(Some(about)).examples([json!(["a-00134", null, "a-00568", "a-00259"])]).into()
}

/// The schema of the types that may fill each blank.
pub(crate) fn types_by_slot() -> Schema {
    let types = openapi::ArrayBuilder::new().items(text(TEXT)).min_items(Some(1)).max_items(Some(100));
    let about = "The types that may fill a blank, by its place in the outfit, from 0.";
    ObjectBuilder::new()
        .additional_properties(Some(RefOr::T(Schema::from(types))))
        .property_names(Some(text("^([0-9]|1[01])$")))
        .description(Some(about))
        .into()
}

/// The schema of an object with any fields.
pub(crate) fn free_object(about: &str) -> Schema {
    let any = AdditionalProperties::FreeForm(true);
    ObjectBuilder::new().additional_properties(Some(any)).description(Some(about)).into()
}

fn method_name() -> ObjectBuilder {
    text("^[a-z0-9-]{1,31}$")
        .description(Some("A method of the release: GET /methods lists them."))
        .examples([json!("gsu")])
}

/// Features by name. The release's schema has more rules: which values a feature has, and what is a number.
fn features() -> ObjectBuilder {
    let word =
        json!({"type": ["string", "integer"], "pattern": TEXT, "minimum": i64::MIN, "maximum": u64::MAX});
    let value = several([Type::String, Type::Number, Type::Array, Type::Null])
        .pattern(Some(TEXT))
        .extensions(Some(Extensions::from_iter([("items", word), ("maxItems", json!(1000))])));
    ObjectBuilder::new()
        .additional_properties(Some(RefOr::T(Schema::from(value))))
        .property_names(Some(text(NAME)))
        .max_properties(Some(1000))
        .description(Some(
            "Features by name: a text, a number, or a list of texts, as the release's schema says. A null is left out.",
        ))
        .examples([json!({"gender": "female", "age": 34})])
}

/// A value of one of several types, with the rules of each.
fn several<const N: usize>(types: [Type; N]) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter(types))
}

fn price() -> ObjectBuilder {
    several([Type::Number, Type::String])
        .minimum(Some(0.0))
        .maximum(Some(999_999_999_999.0))
        .pattern(Some(PRICE))
        .description(Some("A number of 0 or more, or a text such as `64,55` or `1.299,00`."))
}

fn in_stock() -> ObjectBuilder {
    several([Type::Boolean, Type::Integer, Type::String])
        .minimum(Some(0.0))
        .maximum(Some(1.0))
        .pattern(Some("^(true|yes|ja|oui|1|false|no|nein|non|0)$"))
        .description(Some("True or false, 0 or 1, or a word for it."))
}

/// A count, or an object of counts.
fn counts<const N: usize>(types: [Type; N], names: &str) -> ObjectBuilder {
    several(types)
        .minimum(Some(-LARGEST_COUNT))
        .maximum(Some(LARGEST_COUNT))
        .additional_properties(Some(RefOr::T(Schema::from(count()))))
        .property_names(Some(text(names)))
}

/// Generators of clients make nothing usable of a choice between a list and an object.
fn embedding() -> ObjectBuilder {
    let single = || number().minimum(Some(f64::from(f32::MIN))).maximum(Some(f64::from(f32::MAX)));
    let list = openapi::ArrayBuilder::new().items(single()).min_items(Some(1)).max_items(Some(4096));
    let single = serde_json::to_value(single().build()).expect("a schema is plain JSON; this is a bug");
    several([Type::Array, Type::Object])
        .additional_properties(Some(list))
        .property_names(Some(text("^[A-Za-z0-9_-]{1,40}$")))
        .min_properties(Some(1))
        .max_properties(Some(8))
        .extensions(Some(Extensions::from_iter([
            ("items", single),
            ("minItems", json!(1)),
            ("maxItems", json!(4096)),
        ])))
        .description(Some(
            "What an encoder of images or texts makes of the article, or up to 8 such lists by name; at most 4096 numbers.",
        ))
}

fn stock() -> ObjectBuilder {
    const WORD: &str = "[A-Za-z0-9]";
    let entry = ObjectBuilder::new()
        .property("size", text(WORD).description(Some("The size.")))
        .property("store", text(WORD).description(Some("The store.")))
        .property("count", count().description(Some("How many there are.")))
        .required("count")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
    let entry = serde_json::to_value(entry.build()).expect("a schema is plain JSON; this is a bug");
    counts([Type::Integer, Type::Object, Type::Array], WORD)
        .extensions(Some(Extensions::from_iter([("items", entry)])))
        .description(Some("A count, counts by size, or a list of counts by size and store."))
        .examples([json!({"M": 3, "L": 0}), json!([{"size": "M", "store": "zurich", "count": 3}])])
}

fn variant() -> ObjectBuilder {
    let word = || ObjectBuilder::new().schema_type(Type::String);
    let described = |what| word().description(Some(what));
    let options = ObjectBuilder::new().additional_properties(Some(RefOr::T(Schema::from(word()))));
    let stock = counts([Type::Integer, Type::Boolean, Type::Object], NAME)
        .description(Some("A count, counts by store, or true or false if it is not counted."));
    ObjectBuilder::new()
        .property(
            "id",
            id_text().description(Some(
                "The shop's own key, such as its SKU. No other variant or article has it.",
            )),
        )
        .property("size", described("Its size."))
        .property(
            "options",
            options.property_names(Some(text(NAME))).description(Some("What the customer chooses, by name.")),
        )
        .property("price", price())
        .property("stock", stock)
        .property("gtin", described("Its Global Trade Item Number."))
        .property("link", described("The address of its page."))
        .property("image", described("The address of its picture."))
        .required("id")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true)))
        .property_names(Some(text(TEXT)))
        .description(Some("What a basket holds of an article. Other fields are kept as they are."))
        .examples([
            json!({"id": "TSH-1-NV-M", "size": "M", "options": {"Farbe": "Navy"}, "price": 19.9, "stock": 3}),
        ])
}

/// What no text in the names of an object may be.
pub(crate) fn names() -> Value {
    json!({"type": "string", "pattern": NAME})
}
