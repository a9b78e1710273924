//! Tickets: a completion's id is a signed record of the suggestions, their method and their time.
//!
//! Feedback returns it hours or days later, perhaps to another replica. So completions need not be stored, most of which
//! never get feedback; the signature prevents made-up completions. A ticket names no customer.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{domain::Method, models::release::VocabularyMark};

/// The number of a blank's first suggestions in a ticket.
pub const REMEMBERED: usize = 20;
const VERSION: u8 = 2;
/// The version before tickets had a vocabulary.
const WITHOUT_VOCABULARY: u8 = 1;
/// Bytes of the signature in a ticket: too many to guess.
const SIGNATURE: usize = 16;
/// The longest name in a ticket.
const NAME: usize = u8::MAX as usize;

/// The key that signs tickets. All replicas share it.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "a secret must reach no log")]
pub struct Secret([u8; 32]);

impl Secret {
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn signature(&self, text: &[u8]) -> Hmac<Sha256> {
        Hmac::<Sha256>::new_from_slice(&self.0)
            .expect("HMAC takes keys of any length; this is a bug")
            .chain_update(text)
    }
}

/// The record of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    pub release: String,
    /// The vocabulary of its article indices; None in tickets of the old version.
    pub vocabulary: Option<VocabularyMark>,
    pub method: Method,
    /// The arm of the experiment that chose the method, if one did.
    pub arm: Option<String>,
    /// The time in milliseconds since 1970.
    pub at: i64,
    /// The outfit by vocabulary indices; None for blanks and articles outside the release.
    pub slots: Vec<Option<u32>>,
    /// Each blank's slot and its first suggestions.
    pub blanks: Vec<(usize, Vec<u32>)>,
}

/// The text is not a ticket of this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is not a completion id of this service; send completion_id unchanged from the completion's answer"
)]
pub struct NoTicket;

impl Ticket {
    /// Signs the ticket and encodes it as a completion id.
    pub fn seal(&self, secret: &Secret) -> String {
        let mut bytes = vec![if self.vocabulary.is_some() { VERSION } else { WITHOUT_VOCABULARY }];
        let method = Method::ALL.iter().position(|method| *method == self.method);
        put(&mut bytes, method.expect("every method is in Method::ALL; this is a bug"));
        put_text(&mut bytes, &self.release);
        bytes.extend(self.vocabulary.iter().flatten());
        put_text(&mut bytes, self.arm.as_deref().unwrap_or_default());
        bytes.extend(self.at.to_be_bytes());
        put(&mut bytes, self.slots.len());
        for slot in &self.slots {
            put(&mut bytes, slot.map_or(0, |index| index as usize + 1));
        }
        put(&mut bytes, self.blanks.len());
        for (slot, suggested) in &self.blanks {
            let suggested = &suggested[..suggested.len().min(REMEMBERED)];
            put(&mut bytes, *slot);
            put(&mut bytes, suggested.len());
            for &index in suggested {
                put(&mut bytes, index as usize);
            }
        }
        let signature = secret.signature(&bytes).finalize().into_bytes();
        bytes.extend(&signature[..SIGNATURE]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a completion id if it was signed with the secret.
    pub fn open(id: &str, secret: &Secret) -> Result<Self, NoTicket> {
        let bytes = URL_SAFE_NO_PAD.decode(id).map_err(|_| NoTicket)?;
        let (body, signature) =
            bytes.split_at_checked(bytes.len().wrapping_sub(SIGNATURE)).ok_or(NoTicket)?;
        // In constant time, so that a forger learns nothing from it.
        secret.signature(body).verify_truncated_left(signature).map_err(|_| NoTicket)?;
        Reader(body).ticket().ok_or(NoTicket)
    }
}

/// Seven bits per byte, the lowest first; the eighth bit means that more follow.
fn put(bytes: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = u8::try_from(number & 0x7f).expect("seven bits; this is a bug");
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let text = &text.as_bytes()[..text.len().min(NAME)];
    put(bytes, text.len());
    bytes.extend(text);
}

/// The bytes left to read. The signature is valid, so only a ticket of another version can be unreadable.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn ticket(mut self) -> Option<Ticket> {
        let version = self.take(1)?[0];
        let method = *Method::ALL.get(self.number()?)?;
        let release = self.text()?;
        let vocabulary = match version {
            VERSION => Some(self.take(size_of::<VocabularyMark>())?.try_into().ok()?),
            WITHOUT_VOCABULARY => None,
            _ => return None,
        };
        let arm = Some(self.text()?).filter(|arm| !arm.is_empty());
        let at = i64::from_be_bytes(self.take(8)?.try_into().ok()?);
        let slots = (0..self.number()?).map(|_| {
            let number = self.number()?;
            number.checked_sub(1).map_or(Some(None), |index| u32::try_from(index).ok().map(Some))
        });
        let slots = slots.collect::<Option<_>>()?;
        let blanks = (0..self.number()?).map(|_| {
            let slot = self.number()?;
            let suggested = (0..self.number()?).map(|_| u32::try_from(self.number()?).ok());
            Some((slot, suggested.collect::<Option<_>>()?))
        });
        let blanks = blanks.collect::<Option<_>>()?;
        Some(Ticket { release, vocabulary, method, arm, at, slots, blanks })
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = self.take(1)?[0];
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ticket() -> Ticket {
        Ticket {
            release: "demo".into(),
            vocabulary: Some([1, 2, 3, 4]),
            method: Method::GsxLatent,
            arm: Some("autumn/gsx-latent".into()),
            at: 1_763_700_000_000,
            slots: vec![Some(0), None, Some(29_999)],
            blanks: vec![(1, vec![7, 300, 0])],
        }
    }

    #[test]
    fn a_sealed_ticket_opens_again() {
        let secret = Secret::new([7; 32]);
        let id = ticket().seal(&secret);
        assert!(id.len() < 100, "{id}");
        assert_eq!(Ticket::open(&id, &secret), Ok(ticket()));
        let plain = Ticket { arm: None, blanks: vec![(0, (0..250).collect())], ..ticket() };
        let opened = Ticket::open(&plain.seal(&secret), &secret).unwrap();
        assert_eq!(opened.arm, None);
        assert_eq!(opened.blanks[0].1, (0..20).collect::<Vec<_>>(), "the first ones are remembered");
    }

    #[test]
    fn tickets_of_the_old_version_can_be_read() {
        let secret = Secret::new([7; 32]);
        let old = Ticket { vocabulary: None, ..ticket() };
        assert_eq!(Ticket::open(&old.seal(&secret), &secret), Ok(old));
    }

    #[test]
    fn forgeries_are_refused() {
        let secret = Secret::new([7; 32]);
        let id = ticket().seal(&secret);
        assert_eq!(Ticket::open(&id, &Secret::new([8; 32])), Err(NoTicket));
        for (place, _) in id.char_indices() {
            let mut forged = id.clone().into_bytes();
            forged[place] = if forged[place] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            // The last character's lowest bits may be unused; a changed text must be refused all the same.
            assert_eq!(Ticket::open(&forged, &secret), Err(NoTicket), "{place}");
            assert_eq!(Ticket::open(&id[..place], &secret), Err(NoTicket), "{place}");
        }
    }

    proptest! {
        #[test]
        fn made_up_ids_do_not_panic(id in ".{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let secret = Secret::new([1; 32]);
            prop_assert!(Ticket::open(&id, &secret).is_err());
            prop_assert!(Ticket::open(&URL_SAFE_NO_PAD.encode(&bytes), &secret).is_err());
            // As if the signature were valid.
            let _ = Reader(&bytes).ticket();
        }
    }
}
