//! Origins of other sites' pages.

use std::{fmt, str::FromStr};

use url::Url;

/// An origin as browsers send it: in lower case, without a path or the scheme's own port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageOrigin(String);

impl FromStr for PageOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_origin = text.starts_with("http")
            && Url::parse(text).is_ok_and(|url| url.origin().ascii_serialization() == text);
        if is_origin {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "expected an origin such as https://shop.example, without a slash at the end; found {text:?}"
        ))
    }
}

impl fmt::Display for PageOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
