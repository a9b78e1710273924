//! `/merchandising/look`: one look in a form.

use askama::Template;
use atelier_core::{domain::LookName, util::zone::Zone};
use axum::{
    extract::State as Shared,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use serde_json::json;

use super::{
    LOOK, LOOKS, PUT_LOOK, Tab,
    choices::Choices,
    documents::{self, Edit},
    fields::{AUDIENCE, Fields, FormField, Kind, Wrong, field},
    looks::tell,
};
use crate::{
    people::page::visitor::{Merchandiser, Visitor},
    platform::{
        fault::Fault,
        http::{AppState, Kind as ProblemKind, Problem},
        page::{
            change,
            form::{Form, PageQuery, address},
            shell::{Page, Shell},
        },
    },
    steering::{documents::Document, looks::Look},
};

#[derive(Template)]
#[template(path = "steering/look.html")]
struct LookPage {
    shell: Shell,
    tab: Tab,
    edit: Edit,
    choices: Choices,
    warnings: Vec<String>,
    /// The look as it is once it is published.
    shown: Vec<String>,
    zone: &'static str,
}

#[derive(Deserialize)]
pub(super) struct LookQuery {
    name: Option<String>,
    /// A saved outfit that becomes a look.
    outfit: Option<i64>,
}

pub(super) async fn page(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    PageQuery(LookQuery { name, outfit }): PageQuery<LookQuery>,
) -> Result<Html<String>, Problem> {
    let (name, look, version) = match (name, outfit) {
        (_, Some(outfit)) => of_outfit(&state, outfit).await?,
        (Some(name), None) => {
            let name = documents::parse_name(&name)?;
            let (look, version) = documents::find::<Look>(&state, &name).await?;
            (name, look, version.to_string())
        }
        (None, None) => return render(&state, &visitor, Edit::default(), Vec::new()).await,
    };
    let reviewed = state.releases().current().map(|live| look.review(&name, &live).1);
    let warnings = reviewed.into_iter().flatten().map(|warning| warning.detail).collect();
    let edit = Edit::new(name.to_string(), version, write(&look, state.zone));
    render(&state, &visitor, edit, warnings).await
}

/// The look that a saved outfit becomes, or the one that it has become; nothing is stored. A customer's outfit may be named after
/// them.
async fn of_outfit(state: &AppState, outfit: i64) -> Result<(LookName, Look, String), Problem> {
    let gone = || Problem::new(ProblemKind::NotFound, format!("there is no outfit {outfit}"));
    let saved = state.store.saved_outfits().get(outfit).await?;
    let saved = saved.filter(|saved| saved.deleted_at.is_none()).ok_or_else(gone)?;
    let name = LookName::new(format!("outfit-{outfit}")).expect("a number is a name");
    let title = saved.name.filter(|_| saved.outfit.customer.is_none()).map(|name| name.to_string());
    let (look, version) = match state.store.looks().get(&name).await? {
        Some(stored) => (documents::parse(stored.value.body)?, stored.version.to_string()),
        None => (Look::default(), String::new()),
    };
    let articles = saved.outfit.slots.articles().map(ToString::to_string).collect();
    Ok((name, Look { articles, title: look.title.or(title), ..look }, version))
}

async fn render(
    state: &AppState,
    visitor: &Visitor,
    edit: Edit,
    warnings: Vec<String>,
) -> Result<Html<String>, Problem> {
    let look = read(&edit.form, state.zone).ok().filter(|look| !look.articles.is_empty());
    let page = LookPage {
        shell: visitor.shell(Page::Merchandising),
        tab: Tab::Looks,
        choices: Choices::read(state, &edit.form, &["articles"]).await?,
        shown: look.map(|look| tell(&look, state)).unwrap_or_default(),
        edit,
        warnings,
        zone: state.zone.name(),
    };
    Ok(Html(page.render()?))
}

pub(super) async fn store(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    Form(mut form): Form<Fields>,
) -> Result<Response, Problem> {
    let [go, up] = ["go", "up"].map(|field| form.take(field));
    if !up.is_empty() {
        let mut articles = form.lines("articles");
        if let Some(place @ 1..) = articles.iter().position(|id| *id == up) {
            articles.swap(place - 1, place);
        }
        form.set_all("articles", articles);
    }
    let mut edit = Edit::sent(form);
    if go == "more" || !up.is_empty() {
        return Ok(render(&state, &visitor, edit, Vec::new()).await?.into_response());
    }
    let read = read(&edit.form, state.zone);
    let Some(changed) = edit.store((&state, &visitor), read, locate).await? else {
        let page = render(&state, &visitor, edit, Vec::new()).await?;
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    };
    // The look's page says what its warnings are.
    if !changed.warnings.is_empty() {
        return Ok(Redirect::to(&address(LOOK, &[("name", &edit.name)])).into_response());
    }
    Ok(change::made(&state, visitor.author(), PUT_LOOK, LOOKS).await?.into_response())
}

/// The form's field that a fault is about, and its words.
fn locate(Fault { field, detail }: Fault) -> (String, String) {
    let steps = field.steps().iter().filter(|step| *step != "when");
    let steps: Vec<&str> = steps.map(String::as_str).collect();
    match steps[..] {
        [] => (String::new(), detail),
        [field] => (field.to_owned(), detail),
        [field, item, ..] => {
            let item = item.parse().map_or_else(|_| item.to_owned(), |at: usize| format!("no. {}", at + 1));
            (field.to_owned(), format!("{item}: {detail}"))
        }
    }
}

const FIELDS: [(&str, Kind); 11] = [
    ("articles", Kind::Lines),
    ("title", Kind::Text),
    ("season", Kind::Text),
    ("tags", Kind::Words),
    ("order", Kind::Whole),
    ("state", Kind::Text),
    ("if_missing", Kind::Text),
    ("starts_at", Kind::Time),
    ("ends_at", Kind::Time),
    ("pictures", Kind::Lines),
    ("note", Kind::Text),
];

fn write(look: &Look, zone: Zone) -> Fields {
    Fields::fill(&json!(look), &fields(), zone)
}

fn read(form: &Fields, zone: Zone) -> Result<Look, Wrong> {
    form.read(&fields(), zone)
}

fn fields() -> Vec<FormField> {
    FIELDS.into_iter().chain(AUDIENCE).map(field).collect()
}
