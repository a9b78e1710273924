//! The pages for people: what a stylist, an analyst and an admin see of the service.
//!
//! Each page is a private template struct with its handler, in the module of its name; its template mirrors the
//! URL. All of a view's state is in its address, so that every view is a link and works without a script; htmx only
//! spares the reader the whole page's loading. Pages are made of what `completion`, `offer` and `store` say, as the
//! JSON endpoints are; they are no part of `/openapi.json`.

mod access;
mod article_view;
mod csv;
mod evaluation;
mod figures;
mod form;
mod operations;
mod personas;
mod profile;
mod side_by_side;
mod sign_in;
mod studio;
mod visitor;

use axum::{
    Router,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};

use super::{AppState, Problem, assets};
use crate::store::Role;
use visitor::{Guest, Visitor};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/", get(home))
        .merge(access::router())
        .merge(assets::router())
        .merge(operations::router())
        .merge(side_by_side::router())
        .merge(sign_in::router())
        .merge(evaluation::router())
        .merge(personas::router())
        .merge(studio::router())
}

/// There is no page of its own: whoever is signed in begins in the studio.
async fn home(Guest(visitor): Guest) -> Result<Response, Problem> {
    let path = if visitor.is_some() { Page::Studio.path() } else { "/sign-in" };
    Ok(Redirect::to(path).into_response())
}

/// The pages that the head of each page leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) enum Page {
    Studio,
    SideBySide,
    Evaluation,
    Personas,
    Operations,
    Access,
}

impl Page {
    const ALL: [Self; 6] =
        [Self::Studio, Self::SideBySide, Self::Evaluation, Self::Personas, Self::Operations, Self::Access];

    pub(in crate::web) fn path(self) -> &'static str {
        match self {
            Self::Studio => "/studio",
            Self::SideBySide => "/side-by-side",
            Self::Evaluation => "/evaluation",
            Self::Personas => "/personas",
            Self::Operations => "/operations",
            Self::Access => "/access",
        }
    }

    pub(in crate::web) fn title(self) -> &'static str {
        match self {
            Self::Studio => "Studio",
            Self::SideBySide => "Side by side",
            Self::Evaluation => "Evaluation",
            Self::Personas => "Personas",
            Self::Operations => "Operations",
            Self::Access => "Access",
        }
    }

    /// Whether it is the one that the frame is around.
    pub(in crate::web) fn is_shown(self, shell: &Shell) -> bool {
        shell.page == Some(self)
    }

    /// Whoever may see it.
    fn role(self) -> Role {
        match self {
            Self::Studio | Self::Personas => Role::Stylist,
            Self::SideBySide | Self::Evaluation => Role::Analyst,
            Self::Operations | Self::Access => Role::Admin,
        }
    }
}

/// The frame around a page: what `layout.html` needs. Every page's struct has one as its field `shell`.
#[derive(Debug)]
pub(in crate::web) struct Shell {
    page: Option<Page>,
    pub(in crate::web) signed_in: Option<SignedIn>,
}

#[derive(Debug)]
pub(in crate::web) struct SignedIn {
    pub(in crate::web) name: String,
    pub(in crate::web) role: Role,
    /// What each form of the page carries in its field `csrf`.
    pub(in crate::web) csrf: String,
}

impl Shell {
    /// For whoever is not signed in, or not known to be.
    pub(in crate::web) fn outside() -> Self {
        Self { page: None, signed_in: None }
    }

    fn of(visitor: &Visitor, page: Option<Page>) -> Self {
        let signed_in = SignedIn {
            name: visitor.person.name.to_string(),
            role: visitor.person.role,
            csrf: visitor.csrf(),
        };
        Self { page, signed_in: Some(signed_in) }
    }

    /// The pages that this person may see.
    pub(in crate::web) fn pages(&self) -> impl Iterator<Item = Page> {
        let role = self.signed_in.as_ref().map(|signed_in| signed_in.role);
        Page::ALL.into_iter().filter(move |page| role.is_some_and(|role| role >= page.role()))
    }

    pub(in crate::web) fn csrf(&self) -> &str {
        self.signed_in.as_ref().map_or("", |signed_in| &signed_in.csrf)
    }
}
