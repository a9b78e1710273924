//! The query of a request.

use std::borrow::Cow;

use axum::{extract::FromRequestParts, http::request::Parts};
use serde::de::DeserializeOwned;

use super::{Finding, Problem};

#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

/// A query that also has conditions, each a parameter `where=attribute:value`.
#[derive(Debug)]
pub(crate) struct ConditionalQuery<T> {
    pub(crate) query: T,
    /// Attributes and values.
    pub(crate) conditions: Vec<(String, String)>,
}

/// The most conditions: each is looked for in every row.
const MOST_CONDITIONS: usize = 16;

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for ConditionalQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let pairs = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let (conditions, others): (Vec<_>, Vec<_>) = pairs.partition(|(name, _)| name == "where");
        let refuse = |detail| Problem::invalid(vec![Finding::parameter("where", detail)]);
        if conditions.len() > MOST_CONDITIONS {
            let found = conditions.len();
            return Err(refuse(format!("at most {MOST_CONDITIONS} conditions can be given, found {found}")));
        }
        let condition = |(_, text): (Cow<'_, str>, Cow<'_, str>)| match text.split_once(':') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                Ok((name.to_owned(), value.to_owned()))
            }
            _ => Err(refuse(format!("expected attribute:value, as in colour:navy, found {text:?}"))),
        };
        let conditions = conditions.into_iter().map(condition).collect::<Result<_, _>>()?;
        let others = form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish();
        Ok(Self { query: parse(&others)?, conditions })
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        parse(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

fn parse<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    serde_path_to_error::deserialize(serde_urlencoded::Deserializer::new(pairs)).map_err(|error| {
        let name = error.path().to_string();
        let name = if name == "." { String::new() } else { name };
        Problem::invalid(vec![Finding::parameter(name, error.inner().to_string())])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Page {
        n: Option<u32>,
        search: Option<String>,
    }

    #[test]
    fn errors_in_a_query_name_the_parameter() {
        assert_eq!(
            parse::<Page>("search=%C3%84rmel+50%25&n=3").unwrap(),
            Page { n: Some(3), search: Some("Ärmel 50%".into()) }
        );
        let reject = |query| {
            let problem = parse::<Page>(query).unwrap_err();
            let finding = &problem.shown_to_caller().2[0];
            (finding.parameter.clone().unwrap(), finding.detail.clone())
        };
        assert_eq!(reject("n=-1"), ("n".into(), "invalid digit found in string".into()));
        assert_eq!(reject("serach=x").1, "unknown field `serach`, expected `n` or `search`");
        assert_eq!(reject("n=1&n=2").1, "duplicate field `n`");
    }
}
