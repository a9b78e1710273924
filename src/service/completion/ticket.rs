//! A completion's id: a ticket that says of itself what was suggested, by whom and when, signed.
//!
//! Feedback comes back with it, hours or days later and perhaps to another replica. What the ticket says need
//! not be written down for every completion, most of which nobody ever reports on; the signature keeps
//! callers from making up completions. It names no customer.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{domain::Method, models::release::VocabularyMark};

/// Suggestions of a blank that a ticket remembers, from the first.
pub const REMEMBERED: usize = 20;
const VERSION: u8 = 2;
/// Tickets that were given out before a vocabulary stood in them.
const WITHOUT_VOCABULARY: u8 = 1;
/// Bytes of the signature that are kept: enough that nobody guesses one.
const SIGNATURE: usize = 16;
/// Longest name that a ticket can hold.
const NAME: usize = u8::MAX as usize;

/// What signs tickets; all replicas share it.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "a secret must reach no log")]
pub struct Secret([u8; 32]);

impl Secret {
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn signature(&self, text: &[u8]) -> Hmac<Sha256> {
        Hmac::<Sha256>::new_from_slice(&self.0)
            .expect("a key of any length will do; this is a bug")
            .chain_update(text)
    }
}

/// What a completion was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    pub release: String,
    /// What its numbers mean articles by; None in one that was given out before that stood in them.
    pub vocabulary: Option<VocabularyMark>,
    pub method: Method,
    /// Of the experiment that chose the method, if one did.
    pub arm: Option<String>,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The outfit by the release's vocabulary; None for blanks and for what the release did not know.
    pub slots: Vec<Option<u32>>,
    /// Slot of each blank, and the first of its suggestions.
    pub blanks: Vec<(usize, Vec<u32>)>,
}

/// The text is no id that this service gave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no id of a completion that this service gave; send completion_id as it was answered")]
pub struct NoTicket;

impl Ticket {
    /// The id that is given out.
    pub fn seal(&self, secret: &Secret) -> String {
        let mut bytes = vec![if self.vocabulary.is_some() { VERSION } else { WITHOUT_VOCABULARY }];
        let method = Method::ALL.iter().position(|method| *method == self.method);
        put(&mut bytes, method.expect("every method is among all; this is a bug"));
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

    /// What an id says, if it was given out by a holder of the secret.
    pub fn open(id: &str, secret: &Secret) -> Result<Self, NoTicket> {
        let bytes = URL_SAFE_NO_PAD.decode(id).map_err(|_| NoTicket)?;
        let (body, signature) =
            bytes.split_at_checked(bytes.len().wrapping_sub(SIGNATURE)).ok_or(NoTicket)?;
        // In constant time: how far a forgery was right must not show.
        secret.signature(body).verify_truncated_left(signature).map_err(|_| NoTicket)?;
        Reader(body).ticket().ok_or(NoTicket)
    }
}

/// Seven bits a byte, the lowest first; the eighth says that more follow.
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

/// What is left to read. The signature was right, so only another version's ticket can be unreadable.
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
    fn what_was_sealed_comes_out_again() {
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
    fn what_was_given_out_before_vocabularies_stood_in_it_can_be_read() {
        let secret = Secret::new([7; 32]);
        let old = Ticket { vocabulary: None, ..ticket() };
        assert_eq!(Ticket::open(&old.seal(&secret), &secret), Ok(old));
    }

    #[test]
    fn forgeries_are_not() {
        let secret = Secret::new([7; 32]);
        let id = ticket().seal(&secret);
        assert_eq!(Ticket::open(&id, &Secret::new([8; 32])), Err(NoTicket));
        for (place, _) in id.char_indices() {
            let mut forged = id.clone().into_bytes();
            forged[place] = if forged[place] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            // The last character's lowest bits may carry nothing; then it is not the text that was given out.
            assert_eq!(Ticket::open(&forged, &secret), Err(NoTicket), "{place}");
            assert_eq!(Ticket::open(&id[..place], &secret), Err(NoTicket), "{place}");
        }
    }

    proptest! {
        #[test]
        fn nothing_made_up_panics(id in ".{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let secret = Secret::new([1; 32]);
            prop_assert!(Ticket::open(&id, &secret).is_err());
            prop_assert!(Ticket::open(&URL_SAFE_NO_PAD.encode(&bytes), &secret).is_err());
            // Signed, but of another shape.
            let _ = Reader(&bytes).ticket();
        }
    }
}
