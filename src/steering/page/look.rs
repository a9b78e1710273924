//! `/merchandising/look`: one look in a form.

use std::convert::Infallible;

use askama::Template;
use atelier_core::{
    domain::{ArticleId, LookName},
    util::zone::Zone,
};
use axum::{
    extract::State as Shared,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use super::{
    LOOK, LOOKS, Tab, expected,
    fields::{Fields, Wrong, bars, split, whole},
    looks::load_articles,
};
use crate::{
    catalogue::page::article_view::ArticleView,
    people::page::visitor::{Merchandiser, Visitor},
    platform::{
        db::ChangeError,
        fault::Fault,
        http::{AppState, Kind, Problem, uncancelled::uncancelled},
        page::{
            form::{Form, PageQuery, address},
            shell::{Page, Shell},
        },
    },
    steering::{
        documents::{EditError, change},
        looks::{IfMissing, Look, State, review},
    },
};

#[derive(Template)]
#[template(path = "steering/look.html")]
struct LookPage {
    shell: Shell,
    tab: Tab,
    name: String,
    /// The version that is changed; empty for a new look.
    version: String,
    action: String,
    form: Fields,
    /// The field that the form cannot write as it is.
    unwritable: Option<String>,
    wrong: Problems,
    warnings: Vec<String>,
    articles: Vec<ArticleView>,
    zone: &'static str,
}

/// What is wrong, by the names of fields; what is wrong with the whole look is under an empty name.
#[derive(Default)]
struct Problems(Wrong);

impl Problems {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn with(&self, field: &str) -> Option<String> {
        let details = self.0.iter().filter(|(name, _)| name == field).map(|(_, detail)| &**detail);
        Some(details.collect::<Vec<_>>().join("; ")).filter(|details| !details.is_empty())
    }
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
        return render(&state, &visitor, Edited::default()).await;
    };
    let gone =
        || Problem::new(Kind::NotFound, format!("there is no look {name:?}; it may have been deleted"));
    let look_name = LookName::new(&name).map_err(|_| gone())?;
    let stored = state.store.looks().get(&look_name).await?.ok_or_else(gone)?;
    let look: Look =
        serde_json::from_value(stored.value.body).map_err(|error| Problem::inside(Kind::Internal, error))?;
    let reviewed = state.releases().current().map(|live| review(&look, &live.catalogue).1);
    let (form, unwritable) = match write(&look, state.zone) {
        Ok(form) => (form, None),
        Err(field) => (Fields::default(), Some(field)),
    };
    let edited = Edited {
        name,
        version: stored.version.to_string(),
        form,
        unwritable,
        warnings: reviewed.into_iter().flatten().map(|warning| warning.detail).collect(),
        wrong: Problems::default(),
    };
    render(&state, &visitor, edited).await
}

/// What the page shows of a look.
#[derive(Default)]
struct Edited {
    name: String,
    version: String,
    form: Fields,
    unwritable: Option<String>,
    warnings: Vec<String>,
    wrong: Problems,
}

async fn render(state: &AppState, visitor: &Visitor, edited: Edited) -> Result<Html<String>, Problem> {
    let Edited { name, version, form, unwritable, warnings, wrong } = edited;
    let ids = split(form.get("articles")).into_iter().filter_map(|id| ArticleId::new(id).ok());
    let page = LookPage {
        shell: visitor.shell(Page::Merchandising),
        tab: Tab::Looks,
        articles: load_articles(state, ids.collect()).await?,
        action: if version.is_empty() { LOOK.to_owned() } else { address(LOOK, &[("name", &name)]) },
        name,
        version,
        form,
        unwritable,
        wrong,
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
    let [name, version] = ["name", "version"].map(|field| form.take(field));
    let wrong = match (LookName::new(&name), read(&form, state.zone)) {
        (Ok(look_name), Ok(look)) => {
            let (state, author, expected) = (state.clone(), visitor.author(), expected(&version));
            let changed = uncancelled(async move {
                let (store, make) = (state.store.by(author), |_| Ok::<_, Infallible>(look));
                let releases = state.releases();
                change((&store, releases), &look_name, &expected, false, state.now(), make).await
            });
            match changed.await {
                Ok(changed) if changed.warnings.is_empty() => return Ok(Redirect::to(LOOKS).into_response()),
                // The page says what they are.
                Ok(_) => return Ok(Redirect::to(&address(LOOK, &[("name", &name)])).into_response()),
                Err(EditError::Refused(never)) => match never {},
                Err(EditError::Faults(faults)) => faults.into_iter().map(locate).collect(),
                Err(EditError::Change(ChangeError::Store(error))) => return Err(error.into()),
                Err(EditError::Change(_)) => {
                    let detail = "a look of this name was added, changed or deleted meanwhile; open it again and repeat \
                                  your change";
                    vec![(String::new(), detail.to_owned())]
                }
            }
        }
        (look_name, look) => {
            let name = look_name.err().map(|error| ("name".to_owned(), error.to_string()));
            name.into_iter().chain(look.err().into_iter().flatten()).collect()
        }
    };
    let edited = Edited { name, version, form, wrong: Problems(wrong), ..Edited::default() };
    Ok((StatusCode::UNPROCESSABLE_ENTITY, render(&state, &visitor, edited).await?).into_response())
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

/// The form of a look, or the first field that the form cannot write as it is.
fn write(look: &Look, zone: Zone) -> Result<Fields, String> {
    let mut form = Fields::default();
    for (name, text) in [("title", &look.title), ("note", &look.note), ("season", &look.season)] {
        form.set(name, text.as_deref().unwrap_or_default());
    }
    form.set("articles", &look.articles.join("\n"));
    form.set("pictures", &look.pictures.join("\n"));
    form.set("tags", &bars(&look.tags));
    form.set("order", &look.order);
    form.set("if_missing", if look.if_missing == IfMissing::Withhold { "withhold" } else { "replace" });
    form.set("state", if look.state == State::Published { "published" } else { "draft" });
    form.set_times([&look.starts_at, &look.ends_at], &look.window(), zone);
    form.set_audience(&look.when);
    form.if_faithful(look, |form| read(form, zone))
}

/// The look, which is not checked yet, or what is wrong.
fn read(form: &Fields, zone: Zone) -> Result<Look, Wrong> {
    let mut wrong = Wrong::new();
    let [starts_at, ends_at] = form.read_times(&mut wrong, zone);
    let look = Look {
        name: None,
        articles: split(form.get("articles")),
        title: form.text("title"),
        note: form.text("note"),
        pictures: split(form.get("pictures")),
        season: form.text("season"),
        tags: split(form.get("tags")),
        order: form.value("order", &mut wrong, whole).unwrap_or_default(),
        when: form.read_audience(&mut wrong),
        if_missing: if form.has("if_missing", "withhold") { IfMissing::Withhold } else { IfMissing::Replace },
        state: if form.has("state", "published") { State::Published } else { State::Draft },
        starts_at,
        ends_at,
    };
    if wrong.is_empty() { Ok(look) } else { Err(wrong) }
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
