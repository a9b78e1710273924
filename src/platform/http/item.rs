//! The description of what is read, stored, patched and deleted by its id, in versions.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use utoipa::{
    IntoParams, ToSchema,
    openapi::{RefOr, path::Parameter, schema::Schema},
};

use super::conditions::{ChangeHeaders, PutHeaders, ReadHeaders};

pub(crate) struct Items<'a> {
    /// The tag, and the path of all.
    pub(crate) plural: &'a str,
    /// One, without and with its article.
    pub(crate) what: &'a str,
    pub(crate) one: &'a str,
    /// The name of the path's parameter, what it is of the item, its schema, and an example.
    pub(crate) key: (&'a str, &'a str, Value, &'a str),
    /// Schemas of answers, and of the bodies of PUT and PATCH; of the answer to a change.
    pub(crate) shown: &'a str,
    pub(crate) put_body: &'a str,
    pub(crate) patch_body: &'a str,
    pub(crate) stored: &'a str,
    pub(crate) put: &'a str,
    /// The summary, and the description.
    pub(crate) patch: (&'a str, &'a str),
    pub(crate) delete: (&'a str, &'a str),
    /// The query of a change, and whether that may be only checked.
    pub(crate) query: Vec<Parameter>,
    pub(crate) may_try: bool,
}

impl Items<'_> {
    /// The operations that change no item into another one, and those that do.
    pub(crate) fn describe<T: DeserializeOwned>(&self) -> [T; 2] {
        let Self { plural, what, one, shown, stored, patch_body, .. } = *self;
        let (name, tags) = (capitalised(what), [plural]);
        let (key, about, schema, example) = &self.key;
        // As its summary begins.
        let delete = self.delete.0.split(' ').next().unwrap_or_default().to_lowercase();
        let path = format!("/{plural}/{{{key}}}");
        let in_path = json!({
            "name": key, "in": "path", "required": true, "description": format!("The {what}'s {about}"), "example": example,
            "schema": schema,
        });
        let parameters = |others: [&[Parameter]; 2]| {
            let others = others.into_iter().flatten().map(|other| json!(other));
            [in_path.clone()].into_iter().chain(others).collect::<Vec<Value>>()
        };
        let content = |schema: &str| json!({"schema": reference(schema)});
        let answer = |description: String, schema: &str, version: &str| {
            json!({
                "description": description, "content": {"application/json": content(schema)},
                "headers": {"etag": {"description": version, "schema": {"type": "string"}}},
            })
        };
        let (checked, would) = if self.may_try { (", or checked", ", or would be") } else { ("", "") };
        let reads = json!({&path: {
            "get": {
                "tags": tags, "summary": format!("One {what}"), "operationId": format!("get{name}"),
                "parameters": parameters([&ReadHeaders::into_params(|| None), &[]]),
                "responses": {"200": answer(format!("The {what}"), shown, "Its version")},
            },
            "delete": {
                "tags": tags, "summary": self.delete.0, "description": self.delete.1, "operationId": format!("{delete}{name}"),
                "parameters": parameters([&ChangeHeaders::into_params(|| None), &[]]),
                "responses": {"204": {"description": format!("The {what} is deleted")}},
            },
        }});
        let changes = json!({&path: {
            "put": {
                "tags": tags, "summary": format!("Store {one}"), "description": self.put, "operationId": format!("put{name}"),
                "parameters": parameters([&self.query, &PutHeaders::into_params(|| None)]),
                "requestBody": {"required": true, "content": {"application/json": content(self.put_body)}},
                "responses": {
                    "200": answer(format!("The {what} is replaced{checked}"), stored, "Its new version"),
                    "201": answer(format!("The {what} is added"), stored, "Its version"),
                },
            },
            "patch": {
                "tags": tags, "summary": self.patch.0, "description": self.patch.1, "operationId": format!("patch{name}"),
                "parameters": parameters([&self.query, &ChangeHeaders::into_params(|| None)]),
                "requestBody": {"required": true, "content": {
                    "application/merge-patch+json": content(patch_body), "application/json": content(patch_body),
                }},
                "responses": {"200": answer(format!("The {what} as it is now{would}"), stored, "Its new version")},
            },
        }});
        [from_json(reads), from_json(changes)]
    }
}

/// A schema with its name, and those that it names.
pub(crate) fn add_schema<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

pub(crate) fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

pub(crate) fn from_json<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is a part of an OpenAPI document")
}

/// `rule` as `Rule`
pub(crate) fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}
