//! The methods that Atelier can answer with.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A method. Files, answers and pages use the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Method {
    None,
    C,
    Np,
    Gs,
    Gsu,
    Latent,
    Universal,
    LatentUniversal,
    Match,
    /// A shop's own, in a release that was made elsewhere.
    Own(OwnName),
}

/// The name of a shop's own method, in place: methods are copied everywhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnName {
    /// Zeros follow the name, so that the order is the alphabet's.
    text: [u8; MAX_LENGTH],
    length: u8,
}

const MAX_LENGTH: usize = 31;

/// A text that is no method's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a method's name has 1 to {MAX_LENGTH} lower-case letters, digits and hyphens, found {0:?}")]
pub struct InvalidMethod(String);

impl OwnName {
    fn as_str(&self) -> &str {
        str::from_utf8(&self.text[..usize::from(self.length)]).expect("a name is ASCII")
    }
}

impl fmt::Debug for OwnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Method {
    /// Those that the training tool makes.
    pub const ALL: [Method; 9] = [
        Method::None,
        Method::C,
        Method::Np,
        Method::Gs,
        Method::Gsu,
        Method::Latent,
        Method::Universal,
        Method::LatentUniversal,
        Method::Match,
    ];

    pub fn as_str(&self) -> &str {
        match self {
            Method::None => "none",
            Method::C => "c",
            Method::Np => "np",
            Method::Gs => "gs",
            Method::Gsu => "gsu",
            Method::Latent => "latent",
            Method::Universal => "universal",
            Method::LatentUniversal => "latent-universal",
            Method::Match => "match",
            Method::Own(name) => name.as_str(),
        }
    }

    /// The method in a sentence.
    pub fn about(&self) -> &'static str {
        match self {
            Method::None => "Reads the outfit alone.",
            Method::C => "Reads the customer with each article of the outfit.",
            Method::Np => "Reads the customer as one more position of the outfit.",
            Method::Gs => "Adds the customer, as a state, to each position in each block.",
            Method::Gsu => "As gs, and the state changes from block to block.",
            Method::Latent => "Reads the outfit alone, as a mixture of eight personas.",
            Method::Universal => "Reads the outfit alone, one block again and again until it is sure.",
            Method::LatentUniversal => "As universal, with the mixture of personas of latent.",
            Method::Match => {
                "As gsu, with articles by their attributes, and a memory of articles and outfits worn together."
            }
            Method::Own(_) => "The shop’s own.",
        }
    }
}

/// Their names in a sentence.
pub fn list_methods(methods: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let names: Vec<String> = methods.into_iter().map(|method| method.to_string()).collect();
    names.join(", ")
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Method {
    type Err = InvalidMethod;

    fn from_str(text: &str) -> Result<Self, InvalidMethod> {
        if let Some(method) = Method::ALL.into_iter().find(|method| method.as_str() == text) {
            return Ok(method);
        }
        let is_plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        let length =
            u8::try_from(text.len()).ok().filter(|length| (1..=MAX_LENGTH).contains(&usize::from(*length)));
        match length {
            Some(length) if text.bytes().all(is_plain) => {
                let mut own = OwnName { text: [0; MAX_LENGTH], length };
                own.text[..text.len()].copy_from_slice(text.as_bytes());
                Ok(Method::Own(own))
            }
            _ => Err(InvalidMethod(text.chars().take(2 * MAX_LENGTH).collect())),
        }
    }
}

impl TryFrom<String> for Method {
    type Error = InvalidMethod;

    fn try_from(text: String) -> Result<Self, InvalidMethod> {
        text.parse()
    }
}

impl From<Method> for String {
    fn from(method: Method) -> Self {
        method.as_str().to_owned()
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
        let own: Method = "2-towers".parse().unwrap();
        assert_eq!((own.as_str(), serde_json::to_value(own).unwrap()), ("2-towers", "2-towers".into()));
        assert_eq!(serde_json::from_value::<Method>("2-towers".into()).unwrap(), own);
        assert!(own > Method::Match && own < "a".parse().unwrap());
        assert_eq!(format!("{own:?}"), "Own(\"2-towers\")");
        let longest = "x".repeat(MAX_LENGTH);
        assert_eq!(longest.parse::<Method>().unwrap().as_str(), longest);
        for wrong in ["GSU", "", "two towers", "ü", &"x".repeat(MAX_LENGTH + 1), &"x".repeat(300)] {
            assert!(wrong.parse::<Method>().is_err(), "{wrong}");
        }
    }
}
