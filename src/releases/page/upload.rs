//! The archive of a release, which a script sends from `/operations/releases`: a form would wrap it.

use axum::{
    extract::{Request, State},
    http::StatusCode,
};

use crate::{
    people::page::visitor::Admin,
    platform::http::{AppState, Kind, Problem},
    releases::api::releases::receive,
};

/// Proves that a page of the same session sent it, as a form's field `csrf` does.
const CSRF: &str = "x-csrf-token";

pub(crate) async fn send(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    request: Request,
) -> Result<StatusCode, Problem> {
    let sent = request.headers().get(CSRF).and_then(|value| value.to_str().ok());
    if !sent.is_some_and(|sent| visitor.token.is_form_token(sent)) {
        let detail = "the archive belongs to another sign-in, so nothing was stored; reload the page and send it again";
        return Err(Problem::new(Kind::Forbidden, detail));
    }
    receive(state, visitor.author(), request).await?;
    Ok(StatusCode::CREATED)
}
