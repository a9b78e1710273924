//! What each method is made of: three axes.

use atelier::domain::Method;

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
