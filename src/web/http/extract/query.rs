//! The query of a request: what follows the `?`.

use axum::{extract::FromRequestParts, http::request::Parts};
use serde::de::DeserializeOwned;

use super::{Finding, Problem};

#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

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
    fn a_wrong_query_says_which_parameter() {
        assert_eq!(
            parse::<Page>("search=%C3%84rmel+50%25&n=3").unwrap(),
            Page { n: Some(3), search: Some("Ärmel 50%".into()) }
        );
        let said = |query| {
            let problem = parse::<Page>(query).unwrap_err();
            let finding = &problem.told().2[0];
            (finding.parameter.clone().unwrap(), finding.detail.clone())
        };
        assert_eq!(said("n=-1"), ("n".into(), "invalid digit found in string".into()));
        assert_eq!(said("serach=x").1, "unknown field `serach`, expected `n` or `search`");
        assert_eq!(said("n=1&n=2").1, "duplicate field `n`");
    }
}
