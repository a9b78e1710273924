//! The secret of a session or a link: 244 random bits as text.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::platform::db::TokenHash;

/// It grants access, so it has no `Debug` and never appears in a log.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_debug_implementations, reason = "a secret must reach no log")]
pub struct Token(String);

impl Token {
    pub(crate) fn draw() -> Self {
        let drawn = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
        Self(hex::encode(drawn))
    }

    /// The secret that a filled form in a session makes, such as a key. A double click sends the form twice, and the browser
    /// shows the second answer: it has the same secret. As hard to guess as the session's token.
    pub fn of_form(session: &Self, form: &str) -> Self {
        Self(hex::encode(Sha256::digest(format!("a secret of {}, by the form {form}", session.0))))
    }

    /// Token of a device that has signed in with this password. As hard to guess as the salt of the stored hash, and another
    /// one after a new password.
    pub(crate) fn of_device(password_hash: &str) -> Self {
        Self(hex::encode(Sha256::digest(format!("a device with the password {password_hash}"))))
    }

    /// None if the text does not have a token's form.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        plain.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn hash(&self) -> TokenHash {
        TokenHash::new(&self.0)
    }

    /// The CSRF token of this session's forms: only the session's pages know it, and it does not reveal the session. Each
    /// time under another mask, so that nobody learns it from the lengths of compressed pages (BREACH).
    pub fn form_token(&self) -> String {
        let mask: [u8; 32] = Sha256::digest(Self::draw().0).into();
        format!("{}{}", hex::encode(mask), hex::encode(xor(mask, self.form_secret())))
    }

    pub fn is_form_token(&self, text: &str) -> bool {
        let mut halves = [[0; 32]; 2];
        let [mask, masked] = &mut halves;
        let (first, second) = text.split_at_checked(64).unwrap_or_default();
        let is_read =
            hex::decode_to_slice(first, mask).is_ok() && hex::decode_to_slice(second, masked).is_ok();
        is_read && xor(*mask, *masked) == self.form_secret()
    }

    fn form_secret(&self) -> [u8; 32] {
        Sha256::digest(format!("a form of {}", self.0)).into()
    }
}

fn xor(a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
    std::array::from_fn(|at| a[at] ^ b[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_their_form_tokens_differ() {
        let (one, other) = (Token::draw(), Token::draw());
        assert_ne!(one.as_str(), other.as_str());
        let [first, second] = [one.form_token(), one.form_token()];
        assert!(first[..64] != second[..64] && first[64..] != second[64..], "each has its own mask");
        let parsed = Token::parse(one.as_str()).unwrap();
        assert!(parsed.is_form_token(&first) && parsed.is_form_token(&second));
        assert!(!other.is_form_token(&first));
        for text in ["", &first[1..], &first[..64], &format!("{first}00"), &"g".repeat(128), &"é".repeat(64)]
        {
            assert!(!one.is_form_token(text), "{text}");
        }
        for text in ["", "abc", &"g".repeat(64), &"a".repeat(65)] {
            assert!(Token::parse(text).is_none(), "{text}");
        }
    }
}
