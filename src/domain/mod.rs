//! What Atelier is about: customers, articles, outfits, and the schema that says how a customer's
//! features become numbers.
//!
//! Everything here is pure: no HTTP, no SQL, no ONNX, no clock, no randomness. Training and serving
//! both call this module and nothing else to turn a profile into indices, so they cannot encode
//! differently. Types validate in their constructors and are not serialisable; each boundary
//! (files, HTTP, database) has wire types of its own.

mod article;
mod customer;
mod features;
mod id;
mod mask;
mod method;
mod number;
mod outfit;
mod role;
mod schema;
mod timestamp;
mod vocabulary;

pub use article::{Article, ArticleError};
pub use customer::Customer;
pub use features::{FeatureValue, Features};
pub use id::{ArticleId, CustomerId, IdError};
pub use mask::Mask;
pub use method::{Method, UnknownMethod};
pub use number::{json_number, whole_word};
pub use outfit::{MAX_SLOTS, MIN_ARTICLES, OpenOutfit, Outfit, OutfitError, Slot, Slots, Split};
pub use role::Role;
pub use schema::{Encoding, FEATURE_WIDTH, Feature, FeatureError, FeatureWarning, Kind, Schema, SchemaError};
pub use timestamp::Timestamp;
pub use vocabulary::{Vocabulary, VocabularyError};
