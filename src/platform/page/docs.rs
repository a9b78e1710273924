//! `/docs`: the `OpenAPI` document as a page, without a script.

use std::sync::LazyLock;

use askama::Template;
use axum::{extract::State, response::Response};
use serde_json::{Map, Value};
use utoipa_axum::routes;

use super::shell::Shell;
use crate::platform::http::{
    AppState, Kind, Problem,
    conditions::{ASK_AGAIN, Conditions, Document, ReadHeaders},
    extract::Path,
    routes::Routes,
};

pub(crate) fn router() -> Routes {
    Routes::new().open(routes!(docs)).open(routes!(document)).open(routes!(list))
}

/// The inputs and answers of every route, as a page
#[utoipa::path(get, path = "/docs", operation_id = "getDocsPage", tag = "documents",
    params(ReadHeaders),
    responses(
        (status = 200, description = "The page", body = String, content_type = "text/html"),
    ),
)]
async fn docs(State(state): State<AppState>, conditions: Conditions) -> Result<Response, Problem> {
    state.published().page.answer(ASK_AGAIN, &conditions)
}

pub(crate) fn render(document: &Value, demo: bool) -> Document {
    Document::new("text/html; charset=utf-8", page(document, demo))
}

const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// A page of the documentation, or a file that a page links to
///
/// Pages are Markdown, for people and language models; other files are plain text.
#[utoipa::path(get, path = "/docs/{name}", operation_id = "getDocument", tag = "documents",
    params(("name" = String, Path, description = "The page's name; `/llms.txt` lists them", example = "api.md"), ReadHeaders),
    responses(
        (status = 200, description = "The page or file", content((String = "text/markdown"), (String = "text/plain"))),
    ),
)]
async fn document(Path(name): Path<String>, conditions: Conditions) -> Result<Response, Problem> {
    let page = PAGES.iter().chain(&*FILES).find(|page| page.name == name);
    let unknown = || Problem::new(Kind::NotFound, format!("there is no page {name:?}; /llms.txt lists them"));
    page.ok_or_else(unknown)?.document.answer(ASK_AGAIN, &conditions)
}

/// The list of these documents
///
/// For language models, as [llms.txt](https://llmstxt.org) has it.
#[utoipa::path(get, path = "/llms.txt", operation_id = "listDocuments", tag = "documents",
    params(ReadHeaders),
    responses(
        (status = 200, description = "The list", body = String, content_type = "text/markdown"),
    ),
)]
async fn list(conditions: Conditions) -> Result<Response, Problem> {
    static LIST: LazyLock<Document> = LazyLock::new(|| Document::new(MARKDOWN, list_pages()));
    LIST.answer(ASK_AGAIN, &conditions)
}

/// A document of this repository, served by the last part of its path.
struct DocPage {
    name: &'static str,
    text: &'static str,
    document: Document,
}

impl DocPage {
    fn new(path: &'static str, text: &'static str) -> Self {
        let name = last_part(path);
        let document = if name.rsplit('.').next() == Some("md") {
            Document::new(MARKDOWN, mend_links(text))
        } else {
            // A page among the examples is to be read, not run.
            Document::new("text/plain; charset=utf-8", text)
        };
        Self { name, text, document }
    }
}

macro_rules! documents {
    ($folder:literal: $($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../../", $folder, $path)))),+]
    };
}

static PAGES: LazyLock<Vec<DocPage>> =
    LazyLock::new(|| PAGE_TEXTS.iter().map(|(path, text)| DocPage::new(path, text)).collect());
static FILES: LazyLock<Vec<DocPage>> =
    LazyLock::new(|| FILE_TEXTS.iter().map(|(path, text)| DocPage::new(path, text)).collect());

/// In the order of the site.
const PAGE_TEXTS: &[(&str, &str)] = documents!["docs/":
    "start.md",
    "guide.md",
    "feeds.md",
    "orders.md",
    "events.md",
    "widget.md",
    "agents.md",
    "training.md",
    "steering.md",
    "experiments.md",
    "operations.md",
    "security.md",
    "api.md",
    "model-contract.md",
    "reference.md",
    "faq.md",
    "results.md",
    "performance.md",
    "reliability.md",
    "world.md",
    "decisions.md",
    "alternatives.md",
];

/// The pages' links, for readers who have no repository.
const FILE_TEXTS: &[(&str, &str)] = documents!["":
    "CHANGELOG.md",
    "crates/core/src/domain/schema.toml",
    "deploy/alerts.yml",
    "deploy/grafana/atelier.json",
    "deploy/haproxy.cfg",
    "deploy/kubernetes/complete-job.yaml",
    "deploy/kubernetes/refresh-job.yaml",
    "deploy/kubernetes/secret-template.yaml",
    "deploy/kubernetes/service.yaml",
    "deploy/prometheus.yml",
    "deploy/refresh",
    "docs/atelier.toml",
    "docs/examples/agent-session.txt",
    "docs/examples/agent.py",
    "docs/examples/api.py",
    "docs/examples/api.ts",
    "docs/examples/experiment.ipynb",
    "docs/examples/export_open_release.py",
    "docs/examples/export_release.py",
    "docs/examples/mlserver_runtime.py",
    "docs/examples/ray_nightly.py",
    "docs/examples/shop.html",
    "docs/examples/spark_nightly.py",
    "docs/examples/try_model_server.py",
    "docs/examples/try_nightly.py",
    "docs/results/complete-journey.md",
    "docs/results/demo.json",
    "docs/results/fifth.json",
    "docs/results/paper.json",
    "docs/results/refresh-2.json",
    "docs/results/refresh-3.json",
    "docs/results/refresh.json",
    "docs/synonyms.txt",
];

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Links to served documents name their last part. Other links become words with the file's path in the repository, and
/// pictures their description.
fn mend_links(text: &str) -> String {
    let mend = |(number, part): (usize, &str)| {
        if number % 2 == 0 { mend_links_of_prose(part) } else { part.to_owned() }
    };
    text.split("```").enumerate().map(mend).collect::<Vec<_>>().join("```")
}

fn mend_links_of_prose(text: &str) -> String {
    let mut parts = text.split("](");
    let mut mended = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (target, rest) = part.split_once(')').expect("a link has an end");
        let (path, anchor) = target.find('#').map_or((target, ""), |at| target.split_at(at));
        let name = last_part(path);
        let is_served = || PAGE_TEXTS.iter().chain(FILE_TEXTS).any(|(path, _)| last_part(path) == name);
        let link = if path.is_empty() || path.contains(':') || path.starts_with('/') {
            format!("]({target})")
        } else if is_served() {
            format!("]({name}{anchor})")
        } else {
            let start = mended.rfind('[').expect("a link has a beginning");
            let words = mended.split_off(start).split_off(1);
            if mended.ends_with('!') {
                mended.pop();
                format!("*Picture: {words}*")
            } else {
                format!("{words} (`{}`)", path.trim_start_matches("../"))
            }
        };
        mended += &link;
        mended += rest;
    }
    mended
}

/// The first lines of a page say who reads it, and what they can do afterwards.
fn list_pages() -> String {
    let about = "Personalised outfit completion: a service that suggests the articles that belong in a customer's outfit.";
    let pages = PAGES.iter().map(|DocPage { name, text, .. }| {
        let mut parts = text.trim_start_matches("# ").split("\n\n");
        let (title, about) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let about = about.replace('\n', " ");
        let promise = about.find("After this page").unwrap_or(about.len());
        let end = about[promise..].find(". ").map_or(about.len(), |end| promise + end + 1);
        format!("- [{title}](/docs/{name}): {}\n", &about[..end])
    });
    let programs = "- [OpenAPI document](/openapi.json): every operation of the JSON API\n";
    format!(
        "# Atelier\n\n> {about}\n\n## Documents\n\n{}\n## For programs\n\n{programs}",
        pages.collect::<String>()
    )
}

#[derive(Template)]
#[template(path = "platform/docs/index.html")]
struct DocsTemplate<'a> {
    shell: Shell,
    document: &'a Value,
}

/// A parameter or a field.
struct Line<'a> {
    name: &'a str,
    kind: Type,
    required: bool,
    about: &'a str,
}

/// A type in words, and the schema that describes it, if any.
struct Type {
    words: String,
    schema: Option<String>,
}

fn page(document: &Value, demo: bool) -> String {
    let page = DocsTemplate { shell: Shell::outside(demo), document };
    page.render().expect("writing to a String never fails")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The operations of a tag, each with its path and its method.
fn operations<'a>(document: &'a Value, tag: &Value) -> Vec<(&'a str, String, &'a Value)> {
    let all = entries(&document["paths"]).flat_map(|(path, item)| {
        entries(item).map(move |(method, operation)| (path.as_str(), method.to_ascii_uppercase(), operation))
    });
    all.filter(|(_, _, operation)| operation["tags"][0] == tag["name"]).collect()
}

/// The scopes of which an API key needs one; none if the operation takes no key.
fn scopes(operation: &Value) -> Vec<&str> {
    items(&operation["security"]).filter_map(|scheme| scheme["bearer"][0].as_str()).collect()
}

fn parameters<'a>(operation: &'a Value) -> Vec<Line<'a>> {
    let line = |parameter: &'a Value| Line {
        name: text(&parameter["name"]),
        kind: kind(&parameter["schema"]),
        required: parameter["required"] == true,
        about: text(&parameter["description"]),
    };
    items(&operation["parameters"]).map(line).collect()
}

fn fields<'a>(document: &'a Value, schema: &'a Value) -> Vec<Line<'a>> {
    let parts = parts(document, schema).into_iter();
    let fields =
        parts.flat_map(|part| entries(&part["properties"]).map(move |(name, field)| (part, name, field)));
    let line = |(part, name, field): (&'a Value, &'a String, &'a Value)| Line {
        name,
        kind: kind(field),
        required: items(&part["required"]).any(|required| required == name),
        about: text(&field["description"]),
    };
    fields.map(line).collect()
}

/// The objects that a schema is made of.
fn parts<'a>(document: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    if let Some(name) = reference(schema) {
        return parts(document, &document["components"]["schemas"][name]);
    }
    match schema["allOf"].as_array() {
        Some(all) => all.iter().flat_map(|part| parts(document, part)).collect(),
        None => vec![schema],
    }
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

fn kind(schema: &Value) -> Type {
    if let Some(name) = reference(schema) {
        return Type { words: name.to_owned(), schema: Some(name.to_owned()) };
    }
    let choices = [&schema["oneOf"], &schema["anyOf"]].into_iter().find_map(Value::as_array);
    let types: Vec<Type> = if let Some(choices) = choices {
        choices.iter().map(kind).collect()
    } else {
        let names: Vec<&str> = match &schema["type"] {
            Value::Array(types) => types.iter().map(text).collect(),
            name => vec![text(name)],
        };
        let parse = |name: &&str| match *name {
            "array" => {
                let Type { words, schema } = kind(&schema["items"]);
                Type { words: format!("list of {words}"), schema }
            }
            name => Type { words: name.to_owned(), schema: None },
        };
        names.iter().map(parse).collect()
    };
    let words = types.iter().map(|kind| kind.words.as_str()).filter(|words| !words.is_empty());
    let words = words.collect::<Vec<_>>().join(" or ");
    Type { words, schema: types.into_iter().find_map(|kind| kind.schema) }
}

/// An example of a body; empty if its schema has none.
fn body_example(document: &Value, schema: &Value) -> String {
    let example = example(document, schema);
    if example.is_null() { String::new() } else { format!("{example:#}") }
}

/// An example value for a schema, from the examples in the schema and its parts.
fn example(document: &Value, schema: &Value) -> Value {
    if let Some(said) = said_example(schema) {
        return said.clone();
    }
    if schema["type"] == "array" {
        return Value::Array(vec![example(document, &schema["items"])]);
    }
    let mut object = Map::new();
    for part in parts(document, schema) {
        if let Some(said) = said_example(part) {
            return said.clone();
        }
        for (name, field) in entries(&part["properties"]) {
            let value = example(document, field);
            if !value.is_null() {
                object.insert(name.clone(), value);
            }
        }
    }
    if object.is_empty() { Value::Null } else { Value::Object(object) }
}

fn said_example(schema: &Value) -> Option<&Value> {
    [&schema["example"], &schema["examples"][0]].into_iter().find(|said| !said.is_null())
}
