//! What each method is made of: three axes.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The methods that Atelier knows, by the names that files, answers and pages use.
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
}

/// No method has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no method {0:?}; the methods are none, c, np, gs, gsu, latent, universal, latent-universal, gsx, gsx-latent"
)]
pub struct UnknownMethod(String);

impl Method {
    pub const ALL: [Method; 10] = [
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

/// How a model learns of the customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conditioning {
    /// It does not.
    None,
    /// The context stands beside each article.
    Concat,
    /// The context is one more position.
    Position,
    /// A global state, read in every block.
    State,
    /// A global state, read in every block and updated between blocks.
    StateUpdate,
    /// A global state that also reads the sequence before each update.
    StateExchange,
}

/// What carries the positions through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trunk {
    /// Blocks of their own weights, one after the other.
    Stacked,
    /// One recurrent unit, applied as often as each slot needs.
    Universal,
}

/// A method's choice on each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axes {
    pub conditioning: Conditioning,
    pub trunk: Trunk,
    pub personas: bool,
}

impl Axes {
    pub fn of(method: Method) -> Self {
        let (conditioning, trunk, personas) = match method {
            Method::None => (Conditioning::None, Trunk::Stacked, false),
            Method::C => (Conditioning::Concat, Trunk::Stacked, false),
            Method::Np => (Conditioning::Position, Trunk::Stacked, false),
            Method::Gs => (Conditioning::State, Trunk::Stacked, false),
            Method::Gsu => (Conditioning::StateUpdate, Trunk::Stacked, false),
            Method::Latent => (Conditioning::None, Trunk::Stacked, true),
            Method::Universal => (Conditioning::None, Trunk::Universal, false),
            Method::LatentUniversal => (Conditioning::None, Trunk::Universal, true),
            Method::Gsx => (Conditioning::StateExchange, Trunk::Stacked, false),
            Method::GsxLatent => (Conditioning::StateExchange, Trunk::Stacked, true),
        };
        Self { conditioning, trunk, personas }
    }
}
