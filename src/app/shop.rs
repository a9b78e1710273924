//! `/demo/shop`: the product page of docs/examples as a visitor of the demo sees it.

use std::sync::LazyLock;

use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};

use crate::platform::http::{
    AppState, Kind, Problem,
    conditions::{Conditions, Document},
};

/// On the service's own address, and without a key, which the demo does not need.
static SHOP: LazyLock<(Document, HeaderValue)> = LazyLock::new(|| {
    let page = include_str!("../../docs/examples/shop.html");
    let page = page.replace("http://127.0.0.1:8080", "").replace(" publishable-key=\"atlp_YOUR_KEY\"", "");
    let [style, script] = [("<style>", "</style>"), ("<script>", "</script>")].map(|(begin, end)| {
        let inside = page.split_once(begin).and_then(|(_, rest)| rest.split_once(end));
        let (inside, _) = inside.expect("the page has a style and a script");
        format!("'sha256-{}'", STANDARD.encode(Sha256::digest(inside)))
    });
    let policy = format!(
        "default-src 'none'; script-src 'self' {script}; style-src {style}; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let policy = HeaderValue::try_from(policy).expect("it is ASCII");
    (Document::new("text/html; charset=utf-8", page), policy)
});

pub(super) async fn page(State(state): State<AppState>, conditions: Conditions) -> Result<Response, Problem> {
    if !state.is_demo() {
        let detail = "only the demo has a shop; start it with `atelier` without a database";
        return Err(Problem::new(Kind::NotFound, detail));
    }
    let (document, policy) = &*SHOP;
    let mut response = document.answer("no-cache", &conditions)?;
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy.clone());
    Ok(response)
}
