//! `/merchandising/look`: one look in a form.

use askama::Template;
use atelier_core::{domain::ArticleId, util::zone::Zone};
use axum::{
    extract::State as Shared,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use super::{
    LOOK, LOOKS, Tab,
    documents::{self, Edit},
    fields::{AUDIENCE, Fields, FormField, Kind, Wrong, field, split},
    looks::load_articles,
};
use crate::{
    catalogue::page::article_view::ArticleView,
    people::page::visitor::{Merchandiser, Visitor},
    platform::{
        fault::Fault,
        http::{AppState, Problem},
        page::{
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
    warnings: Vec<String>,
    articles: Vec<ArticleView>,
    zone: &'static str,
}

#[derive(Deserialize)]
pub(super) struct LookQuery {
    name: Option<String>,
}

pub(super) async fn page(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    PageQuery(LookQuery { name }): PageQuery<LookQuery>,
) -> Result<Html<String>, Problem> {
    let Some(name) = name else {
        return render(&state, &visitor, Edit::default(), Vec::new()).await;
    };
    let look_name = documents::parse_name(&name)?;
    let (look, version) = documents::find::<Look>(&state, &look_name).await?;
    let reviewed = state.releases().current().map(|live| look.review(&look_name, &live).1);
    let warnings = reviewed.into_iter().flatten().map(|warning| warning.detail).collect();
    let edit = Edit::new(name, version.to_string(), write(&look, state.zone));
    render(&state, &visitor, edit, warnings).await
}

async fn render(
    state: &AppState,
    visitor: &Visitor,
    edit: Edit,
    warnings: Vec<String>,
) -> Result<Html<String>, Problem> {
    let ids = split(edit.form.get("articles")).into_iter().filter_map(|id| ArticleId::new(id).ok());
    let page = LookPage {
        shell: visitor.shell(Page::Merchandising),
        tab: Tab::Looks,
        articles: load_articles(state, ids.collect()).await?,
        edit,
        warnings,
        zone: state.zone.name(),
    };
    Ok(Html(page.render()?))
}

pub(super) async fn store(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    Form(form): Form<Fields>,
) -> Result<Response, Problem> {
    let mut edit = Edit::sent(form);
    let read = read(&edit.form, state.zone);
    let Some(changed) = edit.store((&state, &visitor), read, locate).await? else {
        let page = render(&state, &visitor, edit, Vec::new()).await?;
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    };
    // The look's page says what its warnings are.
    let own = address(LOOK, &[("name", &edit.name)]);
    Ok(Redirect::to(if changed.warnings.is_empty() { LOOKS } else { &own }).into_response())
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

/// The form of a look, or the first field that the form cannot write as it is.
fn write(look: &Look, zone: Zone) -> Result<Fields, String> {
    Fields::write(look, &fields(), zone, |form| read(form, zone))
}

fn read(form: &Fields, zone: Zone) -> Result<Look, Wrong> {
    form.read(&fields(), zone)
}

fn fields() -> Vec<FormField> {
    FIELDS.into_iter().chain(AUDIENCE).map(field).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_has_all_of_a_look() {
        let zone = Zone::new("Europe/Zurich").unwrap();
        let look: Look = serde_json::from_value(json!({
            "title": "Autumn, office", "note": "One\nTwo", "articles": ["a b", "c,d"], "pictures": ["/a.jpg", "https://b"],
            "season": "autumn", "tags": ["office", "rain coat"], "order": 7, "if_missing": "withhold", "state": "published",
            "starts_at": "2026-07-01T08:00:00Z", "ends_at": "2026-11-27T22:59:59Z",
            "when": {"features": {"gender": ["female"]}, "numbers": {"age": {"min": 20}}, "stores": ["zurich", "basel"]},
        }))
        .unwrap();
        let form = write(&look, zone).expect("the form can write it");
        assert_eq!(form.get("starts_at"), "2026-07-01T10:00", "by the shop's clock");
        assert_eq!(read(&form, zone).unwrap(), look);
        let odd = Look { tags: vec!["a|b".into()], ..look };
        assert_eq!(write(&odd, zone).unwrap_err(), "tags", "it would come back as two");
    }
}
