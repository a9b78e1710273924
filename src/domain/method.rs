//! The methods that Atelier can answer with.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A method. Files, answers and pages use the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    None,
    C,
    Np,
    Gs,
    Gsu,
    Latent,
    Universal,
    LatentUniversal,
    Gsx,
    GsxLatent,
    Match,
}

/// A name that no method has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no method {0:?}; the methods are none, c, np, gs, gsu, latent, universal, latent-universal, gsx, gsx-latent, match"
)]
pub struct UnknownMethod(String);

impl Method {
    pub const ALL: [Method; 11] = [
        Method::None,
        Method::C,
        Method::Np,
        Method::Gs,
        Method::Gsu,
        Method::Latent,
        Method::Universal,
        Method::LatentUniversal,
        Method::Gsx,
        Method::GsxLatent,
        Method::Match,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Method::None => "none",
            Method::C => "c",
            Method::Np => "np",
            Method::Gs => "gs",
            Method::Gsu => "gsu",
            Method::Latent => "latent",
            Method::Universal => "universal",
            Method::LatentUniversal => "latent-universal",
            Method::Gsx => "gsx",
            Method::GsxLatent => "gsx-latent",
            Method::Match => "match",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, UnknownMethod> {
        Method::ALL
            .into_iter()
            .find(|method| method.as_str() == text)
            .ok_or_else(|| UnknownMethod(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_have_one_name_each() {
        for method in Method::ALL {
            assert_eq!(method.as_str().parse::<Method>(), Ok(method));
            assert_eq!(serde_json::to_value(method).unwrap(), method.as_str());
        }
        assert!("GSU".parse::<Method>().is_err());
    }
}
