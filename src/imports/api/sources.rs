//! `/feeds`: stored sources, which the service fetches by itself.

use atelier_core::domain::FeedName;
use axum::{extract::State, response::Response};
use utoipa_axum::routes;

use super::{feeds::refuse, imports::accepted};
use crate::{
    imports::{
        ImportRecord,
        feeds::{FeedSource, FeedStatus, FetchOptions},
    },
    people::{Scope, gate::Caller},
    platform::http::{
        AppState, Problem,
        extract::{Path, Query},
        routes::Routes,
        uncancelled::uncancelled,
    },
    steering::{
        api::documents::{self, About, ApiDocument, NoQuery, unknown},
        documents::Changed,
    },
};

pub(crate) fn router() -> Routes {
    documents::router::<FeedSource>().scoped(Scope::Admin, routes!(fetch))
}

impl ApiDocument for FeedSource {
    const ABOUT: About = About {
        plural: "feeds",
        one: "a feed",
        example: "shop",
        scope: Scope::Admin,
        is_long: false,
        put: "Adds or replaces it. The service fetches it when its schedule says so, one replica at a time; `POST /feeds/{name}/fetch` does at \
              once. The `ETag` changes when it is stored, not when it is fetched.",
        patch: (
            "Change a feed",
            "A JSON Merge Patch (RFC 7396): fields that the body leaves out stay, and null removes one. `{\"has_credentials\": false}` \
             removes the stored credentials.",
        ),
        patch_example: r#"{"schedule": {"every": "6h"}}"#,
        delete: ("Delete a feed", "What it imported stays, and a running import continues."),
    };
    type Query = NoQuery;
    type Answer = Self;

    async fn answer(state: &AppState, changed: Changed<Self>, _query: NoQuery) -> Result<Self, Problem> {
        changed.document.shown(state).await
    }

    fn received(self, state: &AppState) -> Self {
        Self { reach: state.feeds().reach(), ..self }
    }

    async fn shown(self, state: &AppState) -> Result<Self, Problem> {
        let name = self.name.as_deref().unwrap_or_default();
        let status = state.store.feeds().get(name).await?.map(|feed| FeedStatus::new(feed, state.now()));
        Ok(Self { state: status, ..self.without_secrets() })
    }
}

/// Fetch a feed
///
/// At once, besides its schedule. If it is being fetched already, the answer is that import. A file that has not changed since the
/// last time on the same day is not read again, unless `again=true`.
#[utoipa::path(post, path = "/feeds/{name}/fetch", operation_id = "fetchFeed", tag = "feeds",
    params(
        ("name" = String, Path, description = "The feed's name", example = "shop", min_length = 1, max_length = 128),
        FetchOptions,
    ),
    responses(
        (status = 202, description = "The import waits or runs", body = ImportRecord,
            headers(("location" = String, description = "The import's path"))),
        (status = 404, description = "There is no such feed"),
        (status = 409, description = "Another replica has just begun to fetch it"),
    ),
)]
async fn fetch(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(name): Path<FeedName>,
    Query(how): Query<FetchOptions>,
) -> Result<Response, Problem> {
    uncancelled(async move {
        let begun = state.feeds().fetch_now(author, &name, how).await.map_err(refuse)?;
        accepted(&state, begun.ok_or_else(|| unknown(&name))?).await
    })
    .await
}
