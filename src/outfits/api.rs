//! `/outfits`: the stored outfits.

use atelier_core::domain::{
    ArticleId, Customer, CustomerId, OpenOutfit, OutfitError, OutfitSize, Schema, Slot, Slots, Split,
    Timestamp,
};
use axum::{
    extract::State,
    http::{HeaderName, StatusCode, header},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::{
    Change,
    sql::saved_outfits::{Reply, SavedOutfit},
};
use crate::{
    catalogue::resource::Resource,
    customers::features,
    outfits,
    people::{Scope, gate::Caller},
    platform::{
        db::{Name, Note, Put},
        http::{
            AppState, Finding, Kind, Problem,
            extract::{Json, JsonText, MergePatch, Path, PathParameter, Query, parse_stored},
            fault,
            paging::{self, Page},
            problem::value_or_finding,
            routes::Routes,
            schema::{ArticleIdSchema, CustomerIdSchema, FeaturesSchema, outfit_slots},
        },
    },
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Catalogue, routes!(save))
        .scoped(Scope::Catalogue, routes!(list_of))
        .scoped(Scope::Catalogue, routes!(get, patch, delete))
}

/// A stored outfit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Outfit)]
pub(crate) struct OutfitBody {
    /// The id of the outfit.
    #[schema(examples(17))]
    id: i64,
    /// Null for a draft without a customer.
    #[schema(value_type = Option<CustomerIdSchema>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    customer: Option<String>,
    /// Article ids, as many as the schema that was live allowed; their order carries no meaning. A draft has fewer, or nulls as blanks.
    #[schema(value_type = Vec<Option<ArticleIdSchema>>)]
    articles: Vec<Option<String>>,
    /// Whether it has no customer, blanks or too few articles. Training and exports leave drafts out.
    draft: bool,
    /// Its name, which the customer sees if the outfit is shown to them.
    #[schema(examples("Autumn office"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// For the shop's own people.
    #[schema(examples("Try the boots in 38"))]
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
    /// The split of an imported outfit: `train`, `validation` or `test`.
    #[schema(examples("train"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    split: Option<&'static str>,
    /// Features of this outfit, such as the occasion, in contrast to the customer's.
    #[schema(value_type = FeaturesSchema)]
    features: Map<String, Value>,
    /// `imported`, `saved`, or `accepted` from a suggestion.
    #[schema(examples("saved"))]
    origin: &'static str,
    /// When it was stored first.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    created_at: String,
    /// When it was changed last.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    changed_at: String,
    /// When it was deleted in Studio, where it can be brought back for 30 days. Only an export has deleted outfits.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_at: Option<String>,
    /// When the customer's link expires, if there is one.
    #[schema(examples("2026-12-05T14:34:00Z"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    link_expires_at: Option<String>,
    /// The text above the outfit at the customer's link.
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    /// The customer's answers at the link.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replies: Vec<ReplyBody>,
}

/// A customer's answer to an outfit that they see by their link.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Reply)]
struct ReplyBody {
    /// When they answered.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    at: String,
    /// `likes`, `dislikes` or `asks`.
    #[schema(examples("asks"))]
    kind: &'static str,
    /// The piece that they dislike.
    #[schema(examples("a-00568"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    article: Option<String>,
    /// The customer's text.
    #[schema(examples("Is it warm?"))]
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
}

impl From<Reply> for ReplyBody {
    fn from(Reply { at, kind, article, text }: Reply) -> Self {
        Self { at: Timestamp::from_millis(at).to_string(), kind: kind.as_str(), article, text }
    }
}

impl From<SavedOutfit> for OutfitBody {
    fn from(saved: SavedOutfit) -> Self {
        let OpenOutfit { customer, slots, features } = saved.outfit;
        Self {
            id: saved.seq,
            customer: customer.map(|customer| customer.to_string()),
            draft: saved.is_draft,
            articles: slots.as_slice().iter().map(|slot| slot.article().map(ToString::to_string)).collect(),
            name: saved.name.map(|name| name.to_string()),
            note: saved.note.as_str().to_owned(),
            split: saved.split.map(Split::as_str),
            features: features::write(&features),
            origin: saved.origin.as_str(),
            created_at: saved.created_at.to_string(),
            changed_at: saved.changed_at.to_string(),
            deleted_at: saved.deleted_at.map(|at| at.to_string()),
            link_expires_at: saved.link_until.map(|at| at.to_string()),
            message: saved.message.as_str().to_owned(),
            replies: saved.replies.into_iter().map(ReplyBody::from).collect(),
        }
    }
}

/// An outfit to store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = OutfitSave, example = json!({
    "customer": "c-000010", "articles": ["a-00134", "a-01243", "a-00568", "a-00259"],
    "features": {"occasion": "office"},
}))]
struct OutfitSave {
    /// Without it, the outfit is a draft that can be given to a customer later.
    #[schema(value_type = Option<CustomerIdSchema>)]
    customer: Option<String>,
    #[schema(schema_with = outfit_slots)]
    articles: Vec<Option<String>>,
    /// A name, which the customer sees if the outfit is shown to them. Without it, the stored one stays.
    #[schema(
        examples("Autumn office"),
        min_length = 1,
        max_length = 128,
        pattern = r"^[^\u0000-\u0020\u007F-\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]([^\u0000-\u001F\u007F-\u009F]*[^\u0000-\u0020\u007F-\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000])?$"
    )]
    name: Option<String>,
    /// A note for the shop's own people. Without it, the stored one stays.
    #[schema(
        examples("Try the boots in 38"),
        max_length = 2000,
        pattern = r"^([^\u0000-\u001F\u007F-\u009F]|\r?\n)*$"
    )]
    note: Option<String>,
    /// Features of this outfit, such as the occasion, in contrast to the customer's.
    #[serde(default)]
    #[schema(value_type = FeaturesSchema)]
    features: Map<String, Value>,
}

/// A stored outfit, and warnings about it.
#[derive(Debug, Serialize, ToSchema)]
struct OutfitStored {
    #[serde(flatten)]
    outfit: OutfitBody,
    /// Features that the schema does not have. They are stored, but models do not see them.
    warnings: Vec<Finding>,
}

/// Save an outfit
///
/// Outfits with the same customer, articles and features are the same outfit; it is stored once. With blanks, or without a customer,
/// it is a draft. An imported outfit becomes a saved one.
#[utoipa::path(post, path = "/outfits", operation_id = "saveOutfit",
    tag = "outfits", request_body = OutfitSave, responses(
    (status = 200, description = "The outfit already exists", body = OutfitStored),
    (status = 201, description = "The outfit is new; Location has its path", body = OutfitStored,
        headers(("location" = String, description = "The outfit's path"))),
    (status = 409, description = "Somebody changed the outfit"),
))]
async fn save(
    State(state): State<AppState>,
    Caller(author): Caller,
    JsonText(text): JsonText,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<OutfitStored>), Problem> {
    let body: OutfitSave = parse_stored(&text)?;
    let schema = state.schema();
    let (outfit, words, warnings) = body.read(&schema)?;
    let (size, now) = (schema.outfit_size(), state.now());
    let (seq, put) = outfits::save(&state.store, author, size, &outfit, now).await.map_err(fault::problem)?;
    if words.name.is_some() || words.note.is_some() {
        let (store, stored) = (state.store.by(author), find(&state, OutfitId(seq)).await?);
        outfits::change(&store, &stored, words, size, now).await.map_err(fault::problem)?;
    }
    let stored = find(&state, OutfitId(seq)).await?;
    let status = if put == Put::Added { StatusCode::CREATED } else { StatusCode::OK };
    let location = [(header::LOCATION, format!("/outfits/{seq}"))];
    Ok((status, location, Json(OutfitStored { outfit: stored.into(), warnings })))
}

impl OutfitSave {
    /// The outfit, its name and note, and warnings.
    fn read(self, schema: &Schema) -> Result<(OpenOutfit, Change, Vec<Finding>), Problem> {
        let mut errors = Vec::new();
        let customer = read_customer(self.customer, &mut errors);
        let slot = |(place, id): (usize, &Option<String>)| match id {
            None => Some(Slot::Blank),
            Some(id) => {
                let id = value_or_finding(ArticleId::new(id), || format!("/articles/{place}"), &mut errors);
                id.map(Slot::Article)
            }
        };
        let slots: Vec<Slot> = self.articles.iter().enumerate().filter_map(slot).collect();
        let (name, note) = (read_name(self.name, &mut errors), read_note(self.note, &mut errors));
        let words = Change { customer: None, name, note };
        let read = features::read(self.features, schema, "/features").map_err(|wrong| errors.extend(wrong));
        let (Ok(read), true) = (read, errors.is_empty()) else {
            return Err(Problem::invalid(errors));
        };
        let slots = read_slots(slots, schema.outfit_size()).map_err(|error| {
            let place = match &error {
                OutfitError::Duplicate(twice) => {
                    let last = self.articles.iter().rposition(|id| id.as_deref() == Some(twice.as_str()));
                    format!("/articles/{}", last.unwrap_or_default())
                }
                _ => "/articles".to_owned(),
            };
            Problem::invalid(vec![Finding::at(place, error.to_string())])
        })?;
        let outfit = OpenOutfit { customer, slots, features: read.features };
        Ok((outfit, words, read.warnings))
    }
}

fn read_customer(text: Option<String>, errors: &mut Vec<Finding>) -> Option<CustomerId> {
    text.and_then(|id| value_or_finding(CustomerId::new(&id), || "/customer".into(), errors))
}

fn read_name(text: Option<String>, errors: &mut Vec<Finding>) -> Option<Name> {
    text.and_then(|name| value_or_finding(Name::new(name), || "/name".into(), errors))
}

fn read_note(text: Option<String>, errors: &mut Vec<Finding>) -> Option<Note> {
    text.and_then(|note| value_or_finding(Note::new(&note), || "/note".into(), errors))
}

/// Without blanks it must be a whole outfit, so that a caller who forgot an article learns it.
fn read_slots(slots: Vec<Slot>, size: OutfitSize) -> Result<Slots, OutfitError> {
    if slots.contains(&Slot::Blank) {
        size.check_slots(slots.len())?;
    } else {
        size.check(slots.len())?;
    }
    Slots::new(slots)
}

/// An outfit's id, a number that the service assigns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutfitId(pub(crate) i64);

impl PathParameter for OutfitId {
    fn parse(text: &str) -> Result<Self, String> {
        let id = text.parse().ok().filter(|id| *id > 0);
        id.map(Self).ok_or_else(|| "an outfit's id is a whole number above 0".into())
    }
}

/// One outfit
#[utoipa::path(get, path = "/outfits/{id}", operation_id = "getOutfit", tag = "outfits",
    params(("id" = i64, Path, description = "The outfit's id", minimum = 1, example = 17)),
    responses(
        (status = 200, description = "The outfit", body = OutfitBody),
    ),
)]
async fn get(State(state): State<AppState>, Path(id): Path<OutfitId>) -> Result<Json<OutfitBody>, Problem> {
    Ok(Json(find(&state, id).await?.into()))
}

async fn find(state: &AppState, id: OutfitId) -> Result<SavedOutfit, Problem> {
    let found = state.store.saved_outfits().get(id.0).await?;
    found.filter(|saved| saved.deleted_at.is_none()).ok_or_else(|| unknown(id))
}

/// A change to an outfit: fields that are omitted or null stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = OutfitPatch, example = json!({"note": "Try the boots in 38"}))]
struct OutfitChange {
    /// The customer of an outfit that has none yet.
    #[schema(value_type = Option<CustomerIdSchema>)]
    customer: Option<String>,
    /// A name, which the customer sees if the outfit is shown to them.
    #[schema(examples("Autumn office"), min_length = 1, max_length = 128)]
    name: Option<String>,
    /// A note for the shop's own people.
    #[schema(examples("Try the boots in 38"), max_length = 2000)]
    note: Option<String>,
}

/// Change an outfit
///
/// Gives a draft to a customer, names it, or sets its note.
#[utoipa::path(patch, path = "/outfits/{id}", operation_id = "patchOutfit", tag = "outfits",
    params(("id" = i64, Path, description = "The outfit's id", minimum = 1, example = 17)),
    request_body(content(
        (OutfitChange = "application/merge-patch+json"),
        (OutfitChange = "application/json"),
    )),
    responses(
        (status = 200, description = "The outfit as it is now", body = OutfitBody),
        (status = 409, description = "The outfit was imported, the customer has it already, or somebody changed it"),
    ),
)]
async fn patch(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(id): Path<OutfitId>,
    MergePatch(body): MergePatch<OutfitChange>,
) -> Result<Json<OutfitBody>, Problem> {
    let mut errors = Vec::new();
    let change = Change {
        customer: read_customer(body.customer, &mut errors),
        name: read_name(body.name, &mut errors),
        note: read_note(body.note, &mut errors),
    };
    if !errors.is_empty() {
        return Err(Problem::invalid(errors));
    }
    let (saved, size) = (find(&state, id).await?, state.schema().outfit_size());
    let store = state.store.by(author);
    outfits::change(&store, &saved, change, size, state.now()).await.map_err(fault::problem)?;
    Ok(Json(find(&state, id).await?.into()))
}

/// Delete an outfit
///
/// For good: only Studio can bring back what it deletes.
#[utoipa::path(delete, path = "/outfits/{id}", operation_id = "deleteOutfit", tag = "outfits",
    params(("id" = i64, Path, description = "The outfit's id", minimum = 1, example = 17)),
    responses(
        (status = 204, description = "The outfit is deleted"),
    ),
)]
async fn delete(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(id): Path<OutfitId>,
) -> Result<StatusCode, Problem> {
    let deleted = state.store.by(author).outfits().delete(id.0, state.now()).await?;
    if deleted { Ok(StatusCode::NO_CONTENT) } else { Err(unknown(id)) }
}

fn unknown(id: OutfitId) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no outfit {}", id.0))
}

/// The query for a page of outfits.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OutfitsQuery {
    /// Drafts too, whose articles have nulls as blanks.
    #[serde(default)]
    drafts: bool,
    /// `next_cursor` of the previous page; without it, the first page.
    #[param(pattern = "^after:[0-9]{1,18}$")]
    cursor: Option<String>,
    /// Maximum number of items.
    n: Option<u32>,
}

/// A customer's outfits
///
/// In the order in which they were stored.
#[utoipa::path(get, path = "/customers/{id}/outfits", operation_id = "listCustomerOutfits", tag = "customers",
    params(("id" = CustomerIdSchema, Path, description = "The customer's id", example = "c-000010"), OutfitsQuery),
    responses(
        (status = 200, description = "A page of outfits", body = Page<OutfitBody>),
    ),
)]
async fn list_of(
    State(state): State<AppState>,
    Path(id): Path<CustomerId>,
    Query(query): Query<OutfitsQuery>,
) -> Result<Json<Page<OutfitBody>>, Problem> {
    let n = paging::size(query.n, state.limits)?;
    let after = paging::cursor(query.cursor.as_deref(), |seq| seq.parse().ok())?;
    let found = state.store.saved_outfits().for_customer(&id, query.drafts, after.unwrap_or(0), n + 1);
    let page = Page::collect(found, n, |record| record.seq.to_string(), OutfitBody::from).await?;
    if page.items.is_empty() && state.store.customers().get(&id).await?.is_none() {
        return Err(Customer::unknown(&id));
    }
    Ok(Json(page))
}
