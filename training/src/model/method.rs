//! The three axes on which methods differ.

use atelier_core::domain::Method;

/// How a model uses the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conditioning {
    /// Not at all.
    None,
    /// Concatenated to each article.
    Concat,
    /// As one more position.
    Position,
    /// As a global state that every block reads.
    State,
    /// As a global state that every block reads and that is updated between blocks.
    StateUpdate,
}

/// How the blocks are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trunk {
    /// One after the other, each with its own weights.
    Stacked,
    /// A recurrent unit, applied as often as each slot needs.
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
    pub fn new(method: Method) -> Self {
        let (conditioning, trunk, personas) = match method {
            Method::None => (Conditioning::None, Trunk::Stacked, false),
            Method::C => (Conditioning::Concat, Trunk::Stacked, false),
            Method::Np => (Conditioning::Position, Trunk::Stacked, false),
            Method::Gs => (Conditioning::State, Trunk::Stacked, false),
            Method::Gsu | Method::Match => (Conditioning::StateUpdate, Trunk::Stacked, false),
            Method::Latent => (Conditioning::None, Trunk::Stacked, true),
            Method::Universal => (Conditioning::None, Trunk::Universal, false),
            Method::LatentUniversal => (Conditioning::None, Trunk::Universal, true),
            Method::Own(_) => unreachable!("only our own methods are trained"),
        };
        Self { conditioning, trunk, personas }
    }
}
