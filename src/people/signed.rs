//! Customers on a shop's pages. Visitors can read and change what their page sends, so a customer's id comes with the signature of
//! the shop's backend and an end: `ID|END|SIGNATURE`.
//!
//! The end is in seconds since 1970. The signature is the HMAC-SHA256 of `ID|END` with the secret of the page's key, in
//! hexadecimal. No id contains `|`.

use std::time::Duration;

use atelier_core::domain::{CustomerId, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::sql::keys::SigningSecret;

/// The longest validity. Anyone who copies a signed id can use it until it expires.
const LONGEST: Duration = Duration::from_hours(24);

/// Why a customer is refused. It says nothing of whether the service knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignedError {
    #[error(
        "a page sends a customer as the shop's backend signed them, ID|END|SIGNATURE, with the secret of the page's key"
    )]
    Unsigned,
    #[error(
        "this key's secret was left out of the backup that was restored; ask an admin for another publishable key"
    )]
    NoSecret,
    #[error("the customer's signed id has expired; the shop's backend signs one for each page")]
    Expired,
    #[error("the customer's signed id is valid for more than a day; sign one for each page, for an hour")]
    TooLong,
}

pub fn read_signed(text: &str, secret: &SigningSecret, now: Timestamp) -> Result<CustomerId, SignedError> {
    // Anyone can sign with an empty secret.
    if secret.0.is_empty() {
        return Err(SignedError::NoSecret);
    }
    let parts = text.rsplit_once('|').and_then(|(signed, signature)| {
        let (id, end) = signed.split_once('|')?;
        Some((signed, hex::decode(signature).ok()?, id, end.parse::<u32>().ok()?))
    });
    let (signed, signature, id, end) = parts.ok_or(SignedError::Unsigned)?;
    let mac = Hmac::<Sha256>::new_from_slice(secret.0.as_bytes()).expect("HMAC takes keys of any length");
    // In constant time, so that a forger learns nothing from it.
    mac.chain_update(signed).verify_slice(&signature).map_err(|_| SignedError::Unsigned)?;
    let end = Timestamp::from_millis(i64::from(end) * 1000);
    if end <= now {
        return Err(SignedError::Expired);
    }
    if end > now + LONGEST {
        return Err(SignedError::TooLong);
    }
    CustomerId::new(id).map_err(|_| SignedError::Unsigned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by another program: `printf %s 'c-1|1000' | openssl dgst -sha256 -hmac atls_x`.
    const SIGNED: &str = "c-1|1000|5f4319a932bec10273d2fc125ab7b7bc1d55e19468453639a8e9e3f8b4c169e4";

    #[test]
    fn only_what_the_secret_signed_is_read_until_its_end() {
        let (secret, at) =
            (SigningSecret("atls_x".into()), |seconds: i64| Timestamp::from_millis(seconds * 1000));
        let read = |text: &str, seconds| read_signed(text, &secret, at(seconds)).map(|id| id.to_string());
        assert_eq!(read(SIGNED, 999), Ok("c-1".to_owned()));
        assert_eq!(read(SIGNED, 1000), Err(SignedError::Expired));
        let forged = [
            SIGNED.replace("c-1", "c-2"),
            SIGNED.replace("1000", "1001"),
            SIGNED.replace("c-1|1000|", "c-1|1000|0"),
            SIGNED[..SIGNED.len() - 2].to_owned(),
            format!("{SIGNED}|"),
            "c-1".to_owned(),
            "c-1|1000|".to_owned(),
            String::new(),
        ];
        for forged in forged {
            assert_eq!(read(&forged, 999), Err(SignedError::Unsigned), "{forged}");
        }
        let signed_with_none = "c-1|1000|1c60644a0042469558e7ece7a06cdf4323ea38d8649b468afb499646e326c9e0";
        assert_eq!(
            read_signed(signed_with_none, &SigningSecret(String::new()), at(999)),
            Err(SignedError::NoSecret)
        );
        assert!(!format!("{secret:?}").contains("atls_x"), "a secret reaches no log");
    }
}
