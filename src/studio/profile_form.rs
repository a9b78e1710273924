//! `/studio/customers`: adding a customer, and correcting one's profile.

use std::collections::BTreeMap;

use askama::Template;
use atelier_core::domain::{Customer, CustomerId, Features, Schema};
use axum::{
    extract::State,
    response::{Html, IntoResponse, Redirect, Response},
};

use super::{
    View,
    what_if::{Choice, Control, control_for},
};
use crate::{
    people::page::visitor::{Stylist, Visitor},
    platform::{
        db::{ChangeError, Expected, Stored},
        http::{AppState, Kind, Problem, extract::Path, uncancelled::uncancelled},
        page::{
            Form, Page, Refused, Shell,
            address::{self, Address, FeatureWords, Parameter},
            form::expected,
            wording::spaced,
        },
    },
};

/// Before the name of a feature's field.
const FIELD: &str = "is.";

#[derive(Template)]
#[template(path = "studio/profile.html")]
struct ProfilePage {
    shell: Shell,
    /// Empty for a new customer.
    id: String,
    /// The label for people.
    title: String,
    /// The version that is corrected; empty for a new customer.
    version: String,
    /// The typed id of a new customer.
    new_id: String,
    /// Features for people only: field, label and value.
    texts: Vec<(String, String, String)>,
    controls: Vec<Control>,
    refused: Option<String>,
    /// The customer's page, or Studio.
    back: String,
}

/// The fields of a form.
#[derive(Default)]
struct Typed {
    id: String,
    version: String,
    words: FeatureWords,
}

pub(super) async fn add(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    show(&state, &visitor, "", Typed::default(), None)
}

pub(super) async fn correct(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    Path(id): Path<CustomerId>,
) -> Result<Html<String>, Problem> {
    let Stored { value, version } = find(&state, &id).await?;
    let words = address::values(&value.features);
    let typed = Typed { id: String::new(), version: version.to_string(), words };
    show(&state, &visitor, id.as_str(), typed, None)
}

async fn find(state: &AppState, id: &CustomerId) -> Result<Stored<Customer>, Problem> {
    let found = state.store.customers().get_stored(id).await?;
    found.ok_or_else(|| Problem::new(Kind::NotFound, format!("there is no customer {id}")))
}

fn show(
    state: &AppState,
    visitor: &Visitor,
    id: &str,
    Typed { id: new_id, version, words }: Typed,
    refused: Option<String>,
) -> Result<Html<String>, Problem> {
    let schema = state.schema();
    let text = |name: &str| {
        let value = words.get(name).and_then(|words| words.last()).cloned().unwrap_or_default();
        (format!("{FIELD}{name}"), spaced(name), value)
    };
    let plain = schema.for_people().filter(|name| schema.feature(name).is_none());
    let view = View { customer: CustomerId::new(id).ok(), ..View::default() };
    let of_customers = schema.features().iter().filter(|feature| !feature.of_outfit);
    let page = ProfilePage {
        shell: visitor.shell(Page::Studio),
        texts: plain.map(text).collect(),
        controls: of_customers
            .map(|feature| {
                let current = words.get(&feature.name).cloned().unwrap_or_default();
                let mut control = control_for(feature, format!("{FIELD}{}", feature.name), &current);
                // A value that the schema lacks stays until somebody chooses another.
                let others = current.iter().filter(|word| feature.takes_words() && !feature.has_value(word));
                control.options.extend(others.map(|word| Choice {
                    value: word.clone(),
                    words: spaced(word),
                    chosen: true,
                }));
                control
            })
            .collect(),
        title: schema.display_name(&address::features(&words, &schema)).unwrap_or_else(|| id.to_owned()),
        id: id.to_owned(),
        version,
        new_id,
        refused,
        back: view.href(),
    };
    Ok(Html(page.render()?))
}

pub(super) async fn save_new(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let typed = read(&pairs)?;
    let saved = match CustomerId::new(typed.id.trim()) {
        Ok(id) => save(&state, &visitor, (id, Features::default()), &typed, expected("")).await,
        Err(error) => Err(Refused::invalid(error)),
    };
    answer(&state, &visitor, "", typed, saved)
}

pub(super) async fn save_corrected(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    Path(id): Path<CustomerId>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let typed = read(&pairs)?;
    let before = find(&state, &id).await?.value.features;
    let expected = expected(&typed.version);
    let saved = save(&state, &visitor, (id.clone(), before), &typed, expected).await;
    answer(&state, &visitor, id.as_str(), typed, saved)
}

fn read(pairs: &[(String, String)]) -> Result<Typed, Problem> {
    let fields: BTreeMap<&str, &str> =
        pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut words = FeatureWords::new();
    for (name, value) in pairs {
        if let Some(name) = name.strip_prefix(FIELD) {
            words.take(name, value.trim()).map_err(|detail| Problem::new(Kind::Invalid, detail))?;
        }
    }
    words.retain(|_, words| !words.iter().any(|word| word == address::NOT_GIVEN));
    let field = |name: &str| fields.get(name).copied().unwrap_or_default().to_owned();
    Ok(Typed { id: field("id"), version: field("version"), words })
}

/// The customer's page, or the form with why it was not taken.
fn answer(
    state: &AppState,
    visitor: &Visitor,
    id: &str,
    typed: Typed,
    saved: Result<CustomerId, Refused>,
) -> Result<Response, Problem> {
    match saved {
        Ok(id) => {
            let view = View { customer: Some(id), ..View::default() };
            Ok(Redirect::to(&view.href()).into_response())
        }
        Err(refused) => {
            let (status, reason) = refused.for_form()?;
            Ok((status, show(state, visitor, id, typed, Some(reason))?).into_response())
        }
    }
}

/// Stores the profile. What the form has no field for stays as it was.
async fn save(
    state: &AppState,
    visitor: &Visitor,
    (id, before): (CustomerId, Features),
    typed: &Typed,
    expected: Expected,
) -> Result<CustomerId, Refused> {
    let schema = state.schema();
    let mut features = before;
    for name in fields(&schema) {
        features.remove(name);
    }
    let features = features.overridden_by(address::features(&typed.words, &schema));
    if let Err(errors) = schema.encode(&features) {
        let reasons: Vec<String> = errors.iter().map(ToString::to_string).collect();
        return Err(Refused::invalid(reasons.join("; ")));
    }
    let is_new = expected.none_of.is_some();
    let customer = Customer { id: id.clone(), features };
    let (store, now, changed) = (state.store.by(visitor.author()), state.now(), state.clone());
    let saved = uncancelled(async move {
        let put = store.customers().put(&customer, &expected, now).await;
        changed.forget_customer(&customer.id);
        put
    });
    match saved.await {
        Ok(_) => Ok(id),
        Err(ChangeError::Differs(_)) if is_new => {
            Err(Refused::conflict(format!("there is already a customer {id}")))
        }
        Err(ChangeError::Differs(_)) => Err(Refused::conflict(
            "a colleague changed this profile after you opened it; open it again, then correct it",
        )),
        Err(ChangeError::Store(error)) => Err(error.into()),
        Err(error) => Err(Refused::conflict(error)),
    }
}

/// The names of the form's features.
fn fields(schema: &Schema) -> Vec<&str> {
    let of_customers = schema.features().iter().filter(|feature| !feature.of_outfit);
    of_customers.map(|feature| feature.name.as_str()).chain(schema.for_people()).collect()
}
