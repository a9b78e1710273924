//! Customers, articles, outfits, and the schema that turns a customer's features into numbers.
//!
//! Everything here is pure: no HTTP, no SQL, no ONNX, no clock, no randomness. Training and serving both
//! encode profiles with this module, so they cannot encode differently. Types validate in their
//! constructors and are not serialisable; each boundary (files, HTTP, database) has its own wire types.

mod article;
mod article_encoder;
mod customer;
mod embedding;
mod feature_json;
mod features;
mod id;
mod known_attributes;
mod mask;
mod method;
mod named;
mod no_go;
mod number;
mod outfit;
mod patch;
mod price;
mod role;
mod schema;
mod stock;
mod synonyms;
mod timestamp;
mod variant;
mod vocabulary;
mod words;

pub use article::{Article, ArticleError};
pub use article_encoder::{ArticleEncoder, EncodedArticle, Facts, OtherLength, Ranges, UnknownValue};
pub use customer::Customer;
pub use embedding::{Embedding, MOST_PROJECTED, Projection};
pub use feature_json::{WrongFeature, feature_from_json, feature_to_json, read_features};
pub use features::{FeatureValue, Features};
pub use id::{ArticleId, CustomerId, ExperimentName, FeedName, IdError, LookName, RuleDigest, RuleName};
pub use known_attributes::{KNOWN_ATTRIBUTES, Use, attributes_with, is_used};
pub use mask::{Mask, SparseMask};
pub use method::{InvalidMethod, Method, list_methods};
pub use no_go::{no_go_key, no_go_keys};
pub use number::json_number;
pub use outfit::{MAX_SLOTS, OpenOutfit, Outfit, OutfitError, OutfitSize, Slot, Slots, Split};
pub use patch::{ArticlePatch, CustomerPatch, PatchError};
pub use price::{is_ambiguous_price, parse_decimal, parse_price, read_price};
pub use role::Role;
pub use schema::{
    Encoding, FEATURE_WIDTH, Feature, FeatureWarning, HAD, Kind, PHOTO, Requirement, Schema, SchemaError,
};
pub use stock::{Counted, fold_size};
pub use synonyms::{Synonyms, hyphenated, synonym_key, tokens};
pub use timestamp::Timestamp;
pub use variant::Variant;
pub use vocabulary::{Vocabulary, VocabularyError};
pub use words::{fold, fold_for, fold_parts, search_key, singular, size_order};

/// The most bytes of a row, as JSON, unless a setting says otherwise.
pub const ROW_BYTES: u32 = 64 << 10;
