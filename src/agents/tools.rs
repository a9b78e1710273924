//! The tools of agents: operations of the API that only read, with some of their arguments.
//!
//! A tool's name and description are written here. The schemas of its arguments and its result are those of `/openapi.json`, and
//! it behaves like its operation. Texts of the shop are in the fields of results alone, and are cut: an agent reads them all.

use atelier_core::{domain::ArticleId, util::json_pointer::step};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{
    catalogue::api as articles,
    completion::{
        answers::to_json,
        api::{
            compare,
            complete::{CompleteBody, complete_outfit},
            score, similar,
        },
    },
    people::{
        Scope,
        gate::{Reader, Scopes},
    },
    platform::http::{
        AppState, Finding, Kind, Problem,
        extract::{from_value, read_conditions},
        paging::ArticleQuery,
    },
    steering::api::looks,
};

/// The longest answer: about what a model can read besides its task.
const MOST_BYTES: usize = 64 << 10;
/// The most characters of a text.
const MOST_CHARACTERS: usize = 300;
/// The most suggestions for a blank, or items of a list.
const MOST: u32 = 20;
/// As many as there are without a number.
const USUAL: u32 = 5;

struct Tool {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    scope: Scope,
    /// The path and the method of its operation.
    operation: (&'static str, &'static str),
    /// Those of the operation that it takes.
    arguments: &'static [&'static str],
    does: Does,
}

#[derive(Clone, Copy)]
enum Does {
    Search,
    Complete { explain: bool },
    Looks,
    Similar,
    Score,
    Compare,
}

const TOOLS: [Tool; 7] = [
    Tool {
        name: "search_catalogue",
        title: "Search the catalogue",
        description: "Lists the shop's articles by words, type and attributes.",
        scope: Scope::Catalogue,
        operation: ("/articles", "get"),
        arguments: &["search", "type", "where", "cursor", "n"],
        does: Does::Search,
    },
    Tool {
        name: "complete",
        title: "Complete an outfit",
        description: "Suggests articles for each blank (null) of an outfit, for a stored customer or for one described by features.",
        scope: Scope::Complete,
        operation: ("/complete", "post"),
        arguments: &["outfit", "customer", "features", "method", "k", "filters", "sets", "fields"],
        does: Does::Complete { explain: false },
    },
    Tool {
        name: "looks",
        title: "Complete the look",
        description: "Lists whole looks with an article: those that the shop's editors published, then outfits that a model makes.",
        scope: Scope::Complete,
        operation: ("/articles/{id}/looks", "get"),
        arguments: &["id", "customer", "n", "total_max", "store"],
        does: Does::Looks,
    },
    Tool {
        name: "similar",
        title: "Similar articles",
        description: "Lists articles that are like an article and in stock.",
        scope: Scope::Complete,
        operation: ("/articles/{id}/similar", "get"),
        arguments: &["id", "customer", "store", "n"],
        does: Does::Similar,
    },
    Tool {
        name: "score",
        title: "Score an outfit",
        description: "Says how well the articles of an outfit go together for a customer, and which one fits least.",
        scope: Scope::Complete,
        operation: ("/score", "post"),
        arguments: &["outfit", "customer", "features", "method"],
        does: Does::Score,
    },
    Tool {
        name: "explain",
        title: "Explain suggestions",
        description: "Suggests articles as `complete` does, each with the features and articles that changed its share most.",
        scope: Scope::Complete,
        operation: ("/complete", "post"),
        arguments: &["outfit", "customer", "features", "method", "k", "filters", "fields"],
        does: Does::Complete { explain: true },
    },
    Tool {
        name: "compare",
        title: "Compare methods or customers",
        description: "Shows side by side what several methods suggest to one customer, or one method to several customers.",
        scope: Scope::Complete,
        operation: ("/compare", "post"),
        arguments: &[
            "outfit",
            "customer",
            "customers",
            "features",
            "methods",
            "k",
            "filters",
            "true_article",
            "fields",
        ],
        does: Does::Compare,
    },
];

/// The tools as agents see them, of the finished `OpenAPI` document.
pub(crate) fn describe(document: &Value) -> Vec<Value> {
    TOOLS.iter().map(|tool| tool.describe(document)).collect()
}

pub(super) fn list<'t>(described: &'t [Value], scopes: &Scopes) -> Vec<&'t Value> {
    TOOLS.iter().zip(described).filter(|(tool, _)| scopes.have(tool.scope)).map(|(_, tool)| tool).collect()
}

/// None if there is no such tool.
pub(super) async fn call(
    state: &AppState,
    scopes: &Scopes,
    name: &str,
    arguments: Map<String, Value>,
) -> Option<Result<Value, Problem>> {
    let tool = TOOLS.iter().find(|tool| tool.name == name)?;
    Some(tool.answer(state, scopes, arguments).await)
}

impl Tool {
    async fn answer(
        &self,
        state: &AppState,
        scopes: &Scopes,
        mut arguments: Map<String, Value>,
    ) -> Result<Value, Problem> {
        scopes.require(self.scope, &format!("the tool `{}`", self.name))?;
        self.check(&mut arguments)?;
        match self.does {
            Does::Search => {
                let conditions: Option<Vec<String>> = take(&mut arguments, "where")?;
                let conditions = read_conditions(conditions.unwrap_or_default())?;
                let query: ArticleQuery = read(arguments)?;
                query.r#type.as_deref().map_or(Ok(()), |kind| check_type(state, kind))?;
                shorten(&articles::find(state, query, conditions).await?)
            }
            Does::Complete { explain } => {
                let body = CompleteBody { explain, ..read(arguments)? };
                shorten(&complete_outfit(state, scopes, &Reader::Program, body).await?)
            }
            Does::Looks => {
                let id = take_id(&mut arguments)?;
                shorten(&looks::find_fresh(state, &id, read(arguments)?).await?)
            }
            Does::Similar => {
                let id = take_id(&mut arguments)?;
                shorten(&similar::find_fresh(state, &id, read(arguments)?).await?)
            }
            Does::Score => shorten(&score::answer(state, read(arguments)?).await?),
            Does::Compare => shorten(&compare::answer(state, read(arguments)?).await?),
        }
    }

    /// Refuses arguments that the tool does not take, and numbers of which the answer would be long.
    fn check(&self, arguments: &mut Map<String, Value>) -> Result<(), Problem> {
        let known = || self.arguments.iter().copied();
        if let Some(other) = arguments.keys().find(|name| known().all(|known| known != *name)) {
            let known: Vec<&str> = known().collect();
            let detail = format!("`{}` takes {}", self.name, known.join(", "));
            return Err(Problem::invalid(vec![Finding::at(step(other), detail)]));
        }
        for name in known().filter(|name| is_number_of_items(name)) {
            let number = arguments.entry(name).or_insert(USUAL.into());
            // Whole numbers may be written as 5.0.
            if number.as_f64().is_some_and(|number| number > MOST.into()) {
                let detail = format!("for an agent, at most {MOST}, found {number}");
                return Err(Problem::invalid(vec![Finding::at(step(name), detail)]));
            }
        }
        Ok(())
    }

    fn describe(&self, document: &Value) -> Value {
        let (path, method) = self.operation;
        let operation = &document["paths"][path][method];
        let (mut properties, mut required) = (Map::new(), Vec::new());
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        for parameter in parameters {
            let name = parameter["name"].as_str().unwrap_or_default();
            let mut schema = parameter["schema"].clone();
            if parameter["description"].is_string() {
                schema["description"] = parameter["description"].clone();
            }
            properties.insert(name.to_owned(), schema);
            required.extend((parameter["required"] == true).then_some(name));
        }
        let body = resolve(document, &operation["requestBody"]["content"]["application/json"]["schema"]);
        properties.extend(body["properties"].as_object().cloned().into_iter().flatten());
        required.extend(body["required"].as_array().into_iter().flatten().filter_map(Value::as_str));
        properties.retain(|name, _| self.arguments.contains(&name.as_str()));
        assert_eq!(properties.len(), self.arguments.len(), "each argument is a property of the operation");
        for (_, schema) in properties.iter_mut().filter(|(name, _)| is_number_of_items(name)) {
            schema["maximum"] = schema["maximum"].as_u64().unwrap_or(u64::MAX).min(MOST.into()).into();
            schema["default"] = USUAL.into();
        }
        let mut input = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        bring_definitions(document, &mut input);
        leave_out(&mut input, &PARTS_FOR_PROGRAMS);
        let answer = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        let mut output = resolve(document, answer).clone();
        output["type"] = "object".into();
        bring_definitions(document, &mut output);
        leave_out(&mut output, &PARTS_FOR_PROGRAMS);
        leave_out(&mut output, &["description"]);
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": input,
            "outputSchema": output,
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        })
    }
}

/// An agent would take an empty list for all that there is.
fn check_type(state: &AppState, kind: &str) -> Result<(), Problem> {
    let Some(live) = state.releases().current() else { return Ok(()) };
    let sets = live.catalogue.sets();
    if sets.of_named_type(kind).is_some() {
        return Ok(());
    }
    let types = sets.types().join(", ");
    let detail = format!("the catalogue has no articles of type {kind:?}; its types are {types}");
    Err(Problem::invalid(vec![Finding::at("/type", detail)]))
}

fn is_number_of_items(name: &str) -> bool {
    ["k", "n"].contains(&name)
}

const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";

fn resolve<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    match schema["$ref"].as_str().and_then(|path| path.strip_prefix(COMPONENTS)) {
        Some(name) => &document["components"]["schemas"][name],
        None => schema,
    }
}

/// Adds the schemas that a schema names, and those that they name.
fn bring_definitions(document: &Value, schema: &mut Value) {
    let (mut definitions, mut wanted) = (Map::new(), Vec::new());
    rename(schema, &mut wanted);
    while let Some(name) = wanted.pop() {
        if !definitions.contains_key(&name) {
            let mut definition = document["components"]["schemas"][&name].clone();
            rename(&mut definition, &mut wanted);
            definitions.insert(name, definition);
        }
    }
    if !definitions.is_empty() {
        schema["$defs"] = definitions.into();
    }
}

fn rename(schema: &mut Value, found: &mut Vec<String>) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(|part| rename(part, found)),
        Value::Object(fields) => {
            if let Some(Value::String(path)) = fields.get_mut("$ref")
                && let Some(name) = path.strip_prefix(COMPONENTS).map(ToOwned::to_owned)
            {
                *path = format!("{DEFINITIONS}{name}");
                found.push(name);
            }
            fields.values_mut().for_each(|part| rename(part, found));
        }
        _ => {}
    }
}

/// Agents may read all schemas before their first call. They would take an example's ids for the shop's.
const PARTS_FOR_PROGRAMS: [&str; 3] = ["example", "examples", "pattern"];

fn leave_out(schema: &mut Value, parts: &[&str]) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| leave_out(schema, parts)),
        Value::Object(fields) => {
            // A field may have such a name, too: then its value is a schema.
            fields.retain(|name, value| !parts.contains(&name.as_str()) || value["type"].is_string());
            fields.values_mut().for_each(|schema| leave_out(schema, parts));
        }
        _ => {}
    }
}

fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Problem> {
    from_value(arguments.into())
}

fn take<T: DeserializeOwned>(arguments: &mut Map<String, Value>, name: &str) -> Result<Option<T>, Problem> {
    let value = arguments.remove(name).map(serde_json::from_value).transpose();
    value.map_err(|error| Problem::invalid(vec![Finding::at(step(name), error.to_string())]))
}

fn take_id(arguments: &mut Map<String, Value>) -> Result<ArticleId, Problem> {
    let refuse = |detail: String| Problem::invalid(vec![Finding::at("/id", detail)]);
    let id: Option<String> = take(arguments, "id")?;
    let id = id.ok_or_else(|| refuse("the id of an article or of a variant is missing".to_owned()))?;
    ArticleId::new(id).map_err(|error| refuse(error.to_string()))
}

/// An answer for an agent: without what it cannot read, with long texts cut.
fn shorten(body: &impl Serialize) -> Result<Value, Problem> {
    let damaged = |error: serde_json::Error| Problem::inside(Kind::Internal, error);
    let mut answer: Value = serde_json::from_slice(&to_json(body)?).map_err(damaged)?;
    cut(&mut answer);
    if answer.to_string().len() <= MOST_BYTES {
        return Ok(answer);
    }
    let detail = format!(
        "the answer would be longer than {} KiB; ask for fewer items, or with `fields` for fewer attributes",
        MOST_BYTES >> 10
    );
    Err(Problem::new(Kind::Invalid, detail))
}

fn cut(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| name != "embedding");
            // An id that is cut is none.
            let texts = fields.iter_mut().filter(|(name, _)| *name != "completion_id");
            texts.for_each(|(_, part)| cut(part));
        }
        Value::Array(parts) => parts.iter_mut().for_each(cut),
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(MOST_CHARACTERS) {
                text.truncate(end);
                text.push('…');
            }
        }
        _ => {}
    }
}
