//! The secret of a session or a link: 244 random bits as text.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::store::TokenHash;

/// It grants access, so it has no `Debug` and never appears in a log.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_debug_implementations, reason = "a secret must reach no log")]
pub struct Token(String);

impl Token {
    pub(in crate::service) fn draw() -> Self {
        let drawn = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
        Self(hex::encode(drawn))
    }

    /// The secret that a filled form in a session makes, such as a key. A double click sends the form twice, and the browser
    /// shows the second answer: it has the same secret. As hard to guess as the session's token.
    pub fn of_form(session: &Self, form: &str) -> Self {
        Self(hex::encode(Sha256::digest(format!("a secret of {}, by the form {form}", session.0))))
    }

    /// None if the text does not have a token's form.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        plain.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(in crate::service) fn hash(&self) -> TokenHash {
        TokenHash::new(&self.0)
    }

    /// The CSRF token of this session's forms: only the session's pages know it, and it does not reveal the session.
    pub fn form_token(&self) -> String {
        hex::encode(Sha256::digest(format!("a form of {}", self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_their_form_tokens_differ() {
        let (one, other) = (Token::draw(), Token::draw());
        assert!(one.as_str() != other.as_str() && one.form_token() != other.form_token());
        assert_eq!(Token::parse(one.as_str()).map(|token| token.form_token()), Some(one.form_token()));
        for text in ["", "abc", &"g".repeat(64), &"a".repeat(65)] {
            assert!(Token::parse(text).is_none(), "{text}");
        }
    }
}
