//! What a view says where the release has nothing to show.

use askama::Template;
use axum::response::Html;

use super::Tab;
use crate::{
    service::evaluation::{Lack, RANKS},
    web::{http::Problem, pages::shell::Shell},
};

#[derive(Template)]
#[template(path = "evaluation/lack.html")]
struct LackPage {
    shell: Shell,
    tab: Tab,
    title: &'static str,
    detail: String,
    /// Whether it is a file that could be made; else it is there and cannot be used, or there is no release.
    missing: bool,
}

pub(super) fn page(shell: Shell, tab: Tab, lack: &Lack) -> Result<Html<String>, Problem> {
    let (title, missing) = match lack {
        Lack::Missing { file, .. } if *file == RANKS => ("No single answers to look into", true),
        Lack::Missing { .. } => ("This release brings no evaluation", true),
        Lack::Changed(_) | Lack::Damaged { .. } => ("The release's evaluation cannot be read", false),
    };
    if !missing {
        tracing::warn!(error = %lack, "a release's evaluation cannot be read");
    }
    Ok(Html(LackPage { shell, tab, title, detail: lack.to_string(), missing }.render()?))
}

pub(super) fn no_release(shell: Shell, tab: Tab) -> Result<Html<String>, Problem> {
    let detail = "Once a release is served, its figures stand here. An admin activates one under Operations.";
    let page = LackPage { shell, tab, title: "No release is served", detail: detail.into(), missing: false };
    Ok(Html(page.render()?))
}
