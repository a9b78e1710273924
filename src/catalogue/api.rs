//! `/articles`: the catalogue.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use atelier_core::{
    domain::{Article, ArticleError, ArticleId, ArticlePatch, PatchError, Schema},
    util::json_pointer::step,
};
use atelier_engine::packed_article::PackedArticle;
use atelier_files::{contains_nul, make_canonical};
use axum::extract::State;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::{self, SerializeMap},
};
use serde_json::{Map, Value, json, value::RawValue};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{self, RefOr},
};
use utoipa_axum::routes;

use super::sql::ArticleFilter;
use super::{
    changes,
    page::pictures::drawing_of,
    resource::{self, Resource},
};
use crate::{
    people::Scope,
    platform::http::{
        AppState, Finding, Kind, Problem,
        extract::{ConditionalQuery, Json},
        item::{Items, add_schema, reference},
        paging::{self, ArticleQuery, Page},
        resource::check_id,
        routes::Routes,
        schema::{
            ArticleIdSchema, ArticleTypeSchema, ConditionSchema, EmbeddingSchema, InStockSchema, PriceSchema,
            StockSchema, VariantSchema, schema,
        },
    },
    releases::{
        LiveRelease,
        coverage::{Unknown, find_misfits, find_unknown},
    },
};

pub(crate) fn router() -> Routes {
    resource::router::<Article>().scoped(Scope::Catalogue, routes!(list))
}

#[derive(Debug, Clone)]
pub(crate) struct ArticleBody {
    article: Arc<PackedArticle>,
    /// All, if none are named.
    fields: Option<Arc<[String]>>,
    /// Set if anyone may read it.
    public: Option<Public>,
}

/// The terms of showing an article to anyone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Public {
    /// The store whose stock counts; none for all.
    pub(crate) store: Option<Arc<str>>,
}

/// The address of the article's drawing, which the element for pages of shops shows where there is no photo.
const DRAWING: &str = "drawing";
/// The public fields of a variant that anyone may read.
pub(crate) const PUBLIC_OF_VARIANTS: [&str; 4] = ["id", "size", "options", "in_stock"];

impl ArticleBody {
    pub(crate) fn new(
        article: Arc<PackedArticle>,
        fields: Option<Arc<[String]>>,
        public: Option<Public>,
    ) -> Self {
        Self { article, fields, public }
    }
}

impl Serialize for ArticleBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.fields {
            None => self.article.serialize(serializer),
            Some(fields) => {
                let selection = Selection { object: self.article.json(), fields, always: &["id", "type"] };
                match &self.public {
                    Some(Public { store }) => {
                        selection.serialize_public(&self.article, store.as_deref(), serializer)
                    }
                    None => selection.serialize(serializer),
                }
            }
        }
    }
}

/// Some fields of a JSON object, whose values are copied as they are written.
#[derive(Debug)]
pub(crate) struct Selection<'a> {
    pub(crate) object: &'a RawValue,
    pub(crate) fields: &'a [String],
    pub(crate) always: &'a [&'a str],
}

impl Serialize for Selection<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.chosen()?)
    }
}

impl<'a> Selection<'a> {
    fn chosen<E: ser::Error>(&self) -> Result<impl Iterator<Item = (Cow<'a, str>, &'a RawValue)>, E> {
        let &Self { object, fields, always } = self;
        let Fields(all) = serde_json::from_str(object.get()).map_err(ser::Error::custom)?;
        let is_shown = move |name: &str| always.contains(&name) || fields.iter().any(|field| field == name);
        Ok(all.into_iter().filter(move |(name, _)| is_shown(name)))
    }

    /// An article, with its drawing, the same selection of each variant, and whether it is in stock instead of how many there
    /// are.
    fn serialize_public<S: Serializer>(
        &self,
        packed: &PackedArticle,
        store: Option<&str>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let is_in_stock = packed.stock(store);
        let mut article = serializer.serialize_map(None)?;
        article.serialize_entry(DRAWING, &drawing_of(&packed.unpack()))?;
        for (name, value) in self.chosen()?.filter(|(name, _)| name != DRAWING) {
            if name == "variants" {
                let objects: Vec<&RawValue> =
                    serde_json::from_str(value.get()).map_err(ser::Error::custom)?;
                let variants = objects.into_iter().zip(packed.offers()).map(|(object, offer)| {
                    let own = Self { object, always: &PUBLIC_OF_VARIANTS, ..*self };
                    let own = own.chosen()?.filter(|(name, _)| name != "in_stock");
                    let mut shown: BTreeMap<Cow<'_, str>, Value> = BTreeMap::new();
                    for (name, value) in own {
                        shown.insert(name, serde_json::from_str(value.get()).map_err(ser::Error::custom)?);
                    }
                    shown.insert("in_stock".into(), is_in_stock(offer).into());
                    Ok(shown)
                });
                article.serialize_entry(&name, &variants.collect::<Result<Vec<_>, S::Error>>()?)?;
            } else {
                article.serialize_entry(&name, value)?;
            }
        }
        article.end()
    }
}

/// The fields of an object in their order.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

        struct Visit;

        impl<'de> Visitor<'de> for Visit {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Visit)
    }
}

impl PartialSchema for ArticleBody {
    fn schema() -> RefOr<openapi::Schema> {
        RefOr::T(schema(json!({
            "type": "object", "required": ["id", "type"], "additionalProperties": {},
            "properties": {"id": reference("ArticleId"), "type": reference("ArticleType")},
            "description": "An article: its id, its type, and the shop's other attributes.",
        })))
    }
}

impl ToSchema for ArticleBody {
    fn name() -> Cow<'static, str> {
        "Article".into()
    }
}

impl From<Arc<PackedArticle>> for ArticleBody {
    fn from(article: Arc<PackedArticle>) -> Self {
        Self::new(article, None, None)
    }
}

impl From<Article> for ArticleBody {
    fn from(article: Article) -> Self {
        Self::new(Arc::new((&article).into()), None, None)
    }
}

/// Articles
///
/// Sorted by the bytes of their ids.
#[utoipa::path(get, path = "/articles", operation_id = "listArticles", tag = "articles",
    params(ArticleQuery, (
        "where" = Option<Vec<ConditionSchema>>, Query, max_items = 16, example = json!(["colour:navy"]),
        description = "An attribute and one of its values, ignoring case; all of several conditions must hold",
    )),
    responses((status = 200, description = "A page of articles", body = Page<ArticleBody>)),
)]
async fn list(
    State(state): State<AppState>,
    ConditionalQuery { query, conditions }: ConditionalQuery<ArticleQuery>,
) -> Result<Json<Page<ArticleBody>>, Problem> {
    find(&state, query, conditions).await.map(Json)
}

pub(crate) async fn find(
    state: &AppState,
    query: ArticleQuery,
    conditions: Vec<(String, String)>,
) -> Result<Page<ArticleBody>, Problem> {
    let n = paging::size(query.n, state.limits)?;
    let after = paging::cursor(query.cursor.as_deref(), |id| ArticleId::new(id).ok())?;
    let filter = ArticleFilter { search: query.search, kind: query.r#type, attributes: conditions };
    let found = state.store.articles().find(filter, after.as_ref(), n + 1);
    Page::collect(found, n, |article| article.id.to_string(), ArticleBody::from).await
}

/// A stored article, and warnings about it.
#[derive(Debug)]
pub(crate) struct ArticleStored {
    article: Article,
    warnings: Vec<Finding>,
}

/// A stored article, and warnings about it.
#[derive(ToSchema)]
#[schema(as = ArticleStored)]
#[expect(dead_code, reason = "only the schema of a stored article, which serializes itself")]
struct StoredFields {
    #[schema(value_type = ArticleIdSchema)]
    id: String,
    #[schema(value_type = ArticleTypeSchema)]
    r#type: String,
    /// Values that the live release does not know, if it was not trained with the article. An attribute `warnings` is
    /// stored, but not in this answer.
    warnings: Vec<Finding>,
    #[serde(flatten)]
    attributes: Map<String, Value>,
}

impl Serialize for ArticleStored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { article, warnings } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", article.id.as_str())?;
        map.serialize_entry("type", article.kind())?;
        for (name, value) in article.attributes().iter().filter(|(name, _)| *name != WARNINGS) {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry(WARNINGS, warnings)?;
        map.end()
    }
}

const WARNINGS: &str = "warnings";

impl ArticleStored {
    fn new(article: Article, live: Option<&LiveRelease>) -> Self {
        let warnings = live.map_or_else(Vec::new, |live| {
            let pointer = |unknown: &Unknown| match unknown {
                Unknown::Article | Unknown::Unsaid { .. } => String::new(),
                Unknown::Value(value) => step(&value.attribute),
                Unknown::Embedding(_) | Unknown::FarEmbedding => "/embedding".to_owned(),
                Unknown::Unreadable { attribute } | Unknown::FitsNobody { attribute, .. } => step(attribute),
                Unknown::AnySize { .. } => "/type".to_owned(),
            };
            let release = live.serving.release();
            let found = find_unknown(release, &article).into_iter().chain(find_misfits(release, &article));
            let found: Vec<Unknown> = found.collect();
            found
                .iter()
                .map(|unknown| Finding::at(pointer(unknown), unknown.describe(live.name(), None)))
                .collect()
        });
        Self { article, warnings }
    }
}

/// An article to store: its type, and any attributes.
#[derive(ToSchema)]
#[schema(as = ArticlePut, example = json!({"type": "coat", "colour": "red", "price": 79.9, "in_stock": true}))]
#[expect(dead_code, reason = "only the schema of the body, which is read as a free object")]
struct ArticlePut {
    /// Optional; must be the id in the path.
    #[schema(nullable = false)]
    id: Option<ArticleIdSchema>,
    r#type: ArticleTypeSchema,
    price: Option<PriceSchema>,
    in_stock: Option<InStockSchema>,
    stock: Option<StockSchema>,
    /// Its variants, as baskets hold them. The article's `sizes` and `stock` follow from theirs.
    variants: Option<Vec<VariantSchema>>,
    embedding: Option<EmbeddingSchema>,
    #[schema(additional_properties)]
    #[serde(flatten)]
    attributes: Map<String, Value>,
}

/// The schema of a change: the same attributes, none of them required.
fn describe_change() -> (String, RefOr<openapi::Schema>) {
    let mut change = json!(ArticlePut::schema());
    let about = "A change to an article: set attributes, or remove them with null. An object is merged into a stored object.";
    change["description"] = about.into();
    change["example"] = json!({"in_stock": false, "colour": null});
    change.as_object_mut().and_then(|change| change.remove("required"));
    ("ArticlePatch".to_owned(), RefOr::T(schema(change)))
}

impl Resource for Article {
    type Body = ArticleBody;
    type StoredBody = ArticleStored;
    type PutBody = Map<String, Value>;
    type PatchBody = Map<String, Value>;

    fn describe() -> (Items<'static>, Vec<(String, RefOr<openapi::Schema>)>) {
        let items = Items {
            plural: "articles",
            what: "article",
            one: "an article",
            key: resource::key("ArticleId", "a-00134"),
            shown: "Article",
            put_body: "ArticlePut",
            patch_body: "ArticlePatch",
            stored: "ArticleStored",
            put: "Attributes that the body leaves out are deleted. `price` is a number of 0 or more, or a text such as `64,55` or \
                  `1.299,00`; `in_stock` is true or false, 0 or 1, or a word such as `yes` or `nein`. Both are stored as a number and a \
                  boolean; other values are refused.",
            patch: (
                "Change an article",
                "A JSON Merge Patch (RFC 7396): attributes that the body leaves out stay, and null removes one.",
            ),
            delete: ("Delete an article", "Stored outfits keep the article."),
            query: Vec::new(),
            may_try: false,
        };
        let mut schemas = Vec::new();
        add_schema::<ArticleBody>(&mut schemas);
        add_schema::<ArticlePut>(&mut schemas);
        schemas.push(describe_change());
        add_schema::<StoredFields>(&mut schemas);
        (items, schemas)
    }

    fn unknown(id: &ArticleId) -> Problem {
        Problem::new(Kind::NotFound, format!("there is no article {id:?} in the catalogue"))
    }

    /// Reads an article in the same way as a row of a file: an attribute that is null is left out, numbers are normalized.
    fn read(
        mut body: Map<String, Value>,
        id: ArticleId,
        _: &Schema,
    ) -> Result<(Self, Vec<Finding>), Problem> {
        let kind = take_type(&id, &mut body)?.ok_or_else(|| wrong("", "missing field `type`".into()))?;
        body.retain(|_, value| !value.is_null());
        check_attributes(&mut body)?;
        let mut article = Article::new(id, kind, body).map_err(|error| refuse(&error))?;
        article.normalise().map_err(|error| refuse(&error))?;
        Ok((article, Vec::new()))
    }

    fn read_patch(
        mut body: Map<String, Value>,
        id: ArticleId,
        _: &Schema,
    ) -> Result<(ArticlePatch, Vec<Finding>), Problem> {
        let kind = take_type(&id, &mut body)?;
        check_attributes(&mut body)?;
        Ok((ArticlePatch { id, kind, attributes: body }, Vec::new()))
    }

    fn refuse(error: PatchError) -> Problem {
        match error {
            PatchError::Untyped(id) => Self::unknown(&id),
            PatchError::Article(error) => refuse(&error),
        }
    }

    async fn refresh(state: &AppState, _: &ArticleId) {
        changes::refresh(state.releases()).await;
    }

    fn stored(self, _: Vec<Finding>, live: Option<&LiveRelease>) -> ArticleStored {
        ArticleStored::new(self, live)
    }
}

fn wrong(pointer: &str, detail: String) -> Problem {
    Problem::invalid(vec![Finding::at(pointer, detail)])
}

fn refuse(error: &ArticleError) -> Problem {
    match error {
        ArticleError::Type(_) | ArticleError::LongType(_) => wrong("/type", error.to_string()),
        ArticleError::Reserved(_) => wrong("", error.to_string()),
        ArticleError::Attribute { name, reason } => wrong(&step(name), reason.clone()),
    }
}

/// Takes the fields that are not attributes out of the body.
fn take_type(id: &ArticleId, body: &mut Map<String, Value>) -> Result<Option<String>, Problem> {
    match body.remove("id") {
        None => {}
        Some(Value::String(in_body)) => check_id("/id", Some(&in_body), id)?,
        Some(_) => {
            return Err(wrong("/id", "`id` must be a string; omit it, since the path contains it".into()));
        }
    }
    match body.remove("type") {
        None => Ok(None),
        Some(Value::String(kind)) => Ok(Some(kind)),
        Some(other) => Err(wrong("/type", format!("an article's type must be a string, found {other}"))),
    }
}

fn check_attributes(attributes: &mut Map<String, Value>) -> Result<(), Problem> {
    if attributes.contains_key("") {
        return Err(wrong("/", "an attribute needs a name, found an empty one".into()));
    }
    for (name, value) in attributes {
        make_canonical(value);
        if name.contains('\0') || contains_nul(value) {
            return Err(wrong(&step(name), "it contains the character NUL (\\u0000); remove it".into()));
        }
    }
    Ok(())
}
