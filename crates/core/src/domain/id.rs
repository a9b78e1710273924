//! The identifiers of articles, customers, rules, looks, experiments and feeds, as the shop writes them.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

/// The longest identifier, in characters: long enough for any shop's keys, short enough to index.
const MAX_CHARS: usize = 128;

/// Why an identifier is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("an id cannot be empty")]
    Empty,
    #[error("an id has at most {MAX_CHARS} characters, found {0}")]
    TooLong(usize),
    /// Postgres refuses some control characters; terminals and logs misread the others. A bar joins ids in a
    /// CSV cell.
    #[error("an id cannot contain control characters or '|', found {0:?}")]
    Character(char),
    #[error("an id cannot begin or end with a space")]
    Padded,
    /// Programs take these segments out of addresses, even percent-encoded.
    #[error("an id cannot be {0:?}, which addresses lose")]
    Dots(String),
}

/// The text in NFC, without invisible characters: soft hyphen, zero-width space, word joiner and byte order
/// mark. So an id is one however a program writes it.
fn normalise(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let visible = text.chars().filter(|c| !matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}'));
    visible.nfc().collect::<String>().into()
}

fn check(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    let chars = text.chars().count();
    if chars > MAX_CHARS {
        return Err(IdError::TooLong(chars));
    }
    if let Some(bad) = text.chars().find(|c| c.is_control() || *c == '|') {
        return Err(IdError::Character(bad));
    }
    if text.trim() != text {
        return Err(IdError::Padded);
    }
    if matches!(text, "." | "..") {
        return Err(IdError::Dots(text.into()));
    }
    Ok(())
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        ///
        /// Cheap to clone: many outfits share an id.
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text in NFC and without invisible characters.
            pub fn new(text: impl AsRef<str>) -> Result<Self, IdError> {
                let text = normalise(text.as_ref());
                check(&text)?;
                Ok(Self(text.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

ids! {
    /// The id of an article in the shop's catalogue.
    ArticleId
    /// The id of a customer in the shop's records.
    CustomerId
    /// The name of one of the shop's rules.
    RuleName
    /// The name of one of the shop's looks.
    LookName
    /// The name of one of the shop's experiments.
    ExperimentName
    /// The caller's name for a feed.
    FeedName
}

/// The first bytes of SHA-256 of a rule's name: all that tickets and counts have of it.
pub type RuleDigest = [u8; 6];

impl RuleName {
    pub fn digest(&self) -> RuleDigest {
        let digest: [u8; 32] = Sha256::digest(self.as_str()).into();
        *digest.first_chunk().expect("it is shorter")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_short_and_printable() {
        assert_eq!(ArticleId::new("a-1").unwrap().as_str(), "a-1");
        assert_eq!(ArticleId::new("Mäntel/17 b").unwrap().as_str(), "Mäntel/17 b");
        assert_eq!(ArticleId::new("Ma\u{308}ntel\u{200b}/17").unwrap().as_str(), "Mäntel/17");
        assert_eq!(CustomerId::new("\u{feff}c-1"), CustomerId::new("c-1"));
        assert_eq!(CustomerId::new("👩\u{200d}🚀").unwrap().as_str(), "👩\u{200d}🚀");
        assert_eq!(CustomerId::new("\u{200b} c"), Err(IdError::Padded));
        assert_eq!(CustomerId::new(""), Err(IdError::Empty));
        assert_eq!(CustomerId::new("c\u{0}"), Err(IdError::Character('\u{0}')));
        assert_eq!(CustomerId::new("a|b"), Err(IdError::Character('|')));
        assert_eq!(CustomerId::new(" c"), Err(IdError::Padded));
        for dots in [".", "..", "\u{200b}.."] {
            assert!(matches!(ArticleId::new(dots), Err(IdError::Dots(_))), "{dots:?}");
        }
        assert!(["...", ".a", "a.", "%2e"].into_iter().all(|id| ArticleId::new(id).is_ok()));
        assert_eq!(CustomerId::new("x".repeat(129)), Err(IdError::TooLong(129)));
        assert!(CustomerId::new("x".repeat(128)).is_ok());
    }
}
