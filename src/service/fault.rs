//! What is wrong with a request, part by part, and why a use case has no answer.

use std::fmt;

use atelier_engine::inference::AskError;

use crate::store::StoreError;

/// One thing that is wrong with a request. HTTP turns the field into a JSON pointer, pages and files into words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub field: Field,
    /// What was found, what was expected, what to do.
    pub detail: String,
}

impl Fault {
    pub fn new(field: Field, detail: impl Into<String>) -> Self {
        Self { field, detail: detail.into() }
    }
}

/// The part of a request that a [`Fault`] is about. Places count from 0, as slots do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    Customer,
    /// One of several customers, by its place in the request.
    CustomerAt(usize),
    Feature(String),
    Outfit,
    /// A slot of the outfit.
    Slot(usize),
    /// The article at this place of an outfit to save.
    ArticleAt(usize),
    Method,
    Methods,
    MethodAt(usize),
    Customers,
    K,
    Diversity,
    Sets,
    /// The types that a slot's filter names.
    TypesOf(usize),
    TypeAt {
        slot: usize,
        place: usize,
    },
    Excluded,
    Price,
    PriceMin,
    PriceMax,
    PriceTotal,
    Store,
    EventId,
    EventSlot,
    EventArticle,
    Rank,
    DefaultMethod,
    Experiment,
    ArmMethod(usize),
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Customer => f.write_str("customer"),
            Self::CustomerAt(place) => write!(f, "customer {place}"),
            Self::Customers => f.write_str("customers"),
            Self::Feature(name) => write!(f, "feature {name}"),
            Self::Outfit => f.write_str("outfit"),
            Self::Slot(slot) => write!(f, "slot {slot}"),
            Self::ArticleAt(place) => write!(f, "article {place}"),
            Self::Method | Self::Methods | Self::MethodAt(_) => f.write_str("method"),
            Self::K => f.write_str("k"),
            Self::Diversity => f.write_str("diversity"),
            Self::Sets => f.write_str("sets"),
            Self::TypesOf(slot) | Self::TypeAt { slot, .. } => write!(f, "types of slot {slot}"),
            Self::Excluded => f.write_str("excluded articles"),
            Self::Price => f.write_str("price"),
            Self::PriceMin => f.write_str("lowest price"),
            Self::PriceMax => f.write_str("highest price"),
            Self::PriceTotal => f.write_str("price of the outfit"),
            Self::Store => f.write_str("store"),
            Self::EventId => f.write_str("id"),
            Self::EventSlot => f.write_str("slot"),
            Self::EventArticle => f.write_str("article"),
            Self::Rank => f.write_str("rank"),
            Self::DefaultMethod => f.write_str("default method"),
            Self::Experiment => f.write_str("experiment"),
            Self::ArmMethod(place) => write!(f, "arm {place}"),
        }
    }
}

/// Why a use case has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("the request is invalid in {} places", .0.len())]
    Faults(Vec<Fault>),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Fault> for ServiceError {
    fn from(fault: Fault) -> Self {
        Self::Faults(vec![fault])
    }
}
