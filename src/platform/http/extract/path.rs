//! The parameter of a path, such as the id in `/customers/{id}`.

use std::{fmt::Display, str::FromStr};

use atelier_engine::release::check_name;
use axum::{
    extract::{FromRequestParts, MatchedPath, RawPathParams},
    http::request::Parts,
};

use crate::platform::http::{Finding, Kind, Problem};

/// The only parameter of the route's path, percent-decoded: `%2F` is a slash in the id. On a route without one
/// ([`Routes::also_at`](crate::platform::http::routes::Routes::also_at)) it is the last segment.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

pub(crate) trait PathParameter: Sized {
    fn parse(text: &str) -> Result<Self, String>;
}

impl<T: FromStr<Err: Display>> PathParameter for T {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: T::Err| error.to_string())
    }
}

impl<S: Send + Sync, T: PathParameter> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let parameters = RawPathParams::from_request_parts(parts, state).await.map_err(|_| {
            Problem::new(Kind::Malformed, "the path is not valid UTF-8 after percent-decoding")
        })?;
        let fixed = parts.extensions.get::<MatchedPath>().and_then(|path| path.as_str().rsplit('/').next());
        let (name, text) = parameters
            .iter()
            .next()
            .or_else(|| Some(("id", fixed?)))
            .expect("the handler's route has a parameter or a last segment");
        T::parse(text).map(Self).map_err(|reason| Problem::invalid(vec![Finding::parameter(name, reason)]))
    }
}

/// A release's name, which is also its folder's name.
#[derive(Debug)]
pub(crate) struct ReleaseName(pub(crate) String);

impl PathParameter for ReleaseName {
    fn parse(text: &str) -> Result<Self, String> {
        check_name(text).map(|()| Self(text.to_owned()))
    }
}
