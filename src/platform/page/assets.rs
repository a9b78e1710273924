//! The pages' static files. They are part of the binary, so it runs from any folder.

use std::sync::LazyLock;

use axum::{
    Router,
    http::{HeaderValue, header},
    response::Response,
    routing::get,
};
use serde::Deserialize;

use crate::platform::http::{
    AppState, Kind, Problem,
    conditions::{Conditions, Document},
    extract::Query,
};

struct Asset {
    name: &'static str,
    document: Document,
}

impl Asset {
    /// A digest of its bytes. A changed file has a new address, so browsers may cache each for ever.
    fn version(&self) -> &str {
        &self.document.version().as_str()[..12]
    }
}

macro_rules! assets {
    ($($name:literal: $media_type:literal),+ $(,)?) => {
        LazyLock::new(|| vec![$({
            let bytes: &[u8] = include_bytes!(concat!("../../../static/", $name));
            Asset { name: $name, document: Document::new($media_type, bytes) }
        }),+])
    };
}

static ASSETS: LazyLock<Vec<Asset>> = assets! {
    "atelier.css": "text/css; charset=utf-8",
    "atelier.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "figtree.woff2": "font/woff2",
    "instrument-serif.woff2": "font/woff2",
    "favicon.svg": "image/svg+xml",
    "widget.js": "text/javascript; charset=utf-8",
};

/// The element for pages of shops, at an address of its own: their pages name it.
const WIDGET: &str = "widget.js";

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/static/{name}", get(asset)).route("/widget.js", get(widget))
}

pub(crate) fn path(name: &str) -> String {
    let asset = find(name).expect("pages name existing assets");
    format!("/static/{name}?v={}", asset.version())
}

fn find(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

#[derive(Deserialize)]
struct Version {
    v: Option<String>,
}

async fn asset(
    axum::extract::Path(name): axum::extract::Path<String>,
    Query(version): Query<Version>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    answer(&name, version, &conditions)
}

async fn widget(Query(version): Query<Version>, conditions: Conditions) -> Result<Response, Problem> {
    let mut response = answer(WIDGET, version, &conditions)?;
    // A page that checks a script's digest (`integrity`) reads it as another site's.
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    Ok(response)
}

fn answer(name: &str, Version { v }: Version, conditions: &Conditions) -> Result<Response, Problem> {
    let Some(asset) = find(name) else {
        return Err(Problem::new(Kind::NotFound, format!("there is no file /static/{name}")));
    };
    let caching = if v.as_deref() == Some(asset.version()) {
        "public, max-age=31536000, immutable"
    } else {
        "public, max-age=300"
    };
    asset.document.answer(caching, conditions)
}
