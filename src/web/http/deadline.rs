//! No request takes for ever, whatever it waits for.

use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::time::timeout;

use crate::config::Limits;
use crate::web::http::{Kind, Problem};

/// Whole tables and whole releases take as long as they take; what they wait for has limits of its own.
const LONG: [&str; 4] = ["/bulk", "/activate", "/export", "/import"];

pub(crate) async fn hold(limits: Limits, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    if route.is_some_and(|route| LONG.iter().any(|end| route.as_str().ends_with(end))) {
        return next.run(request).await;
    }
    let most = limits.request();
    timeout(most, next.run(request)).await.unwrap_or_else(|_| {
        let detail = format!("the request was not done within {} ms; try again", most.as_millis());
        Problem::new(Kind::Deadline, detail).into_response()
    })
}
