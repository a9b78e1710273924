//! The keys that sign tickets: the newest signs, the others still open what they signed.

use std::sync::Arc;

use atelier_core::domain::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use siphasher::sip::SipHasher24;

use super::Mark;
use crate::config::TicketTerms;

/// Bytes of the signature in a ticket: too many to guess.
pub(super) const SIGNATURE: usize = 16;
/// Begins what the marks' key is derived from; the next two begin marks of callers and of customers. A ticket begins with its
/// version, which is none of them.
const MARKS: [u8; 1] = [0];
const CALLER: u8 = 1;
const CUSTOMER: u8 = 2;

/// A key that signs tickets, and makes the marks in them.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "a secret must reach no log")]
pub struct Key {
    pub(super) id: u32,
    made: Timestamp,
    bytes: [u8; 32],
    /// The key is hashed once, not for each ticket.
    mac: Hmac<Sha256>,
    /// Marks prove nothing, but tell others nothing of an article: a keyed hash of 64 bits does, at a tenth of an HMAC's cost.
    marks: SipHasher24,
}

impl Key {
    fn new(id: u32, made: Timestamp, bytes: [u8; 32]) -> Self {
        let mac = Hmac::new_from_slice(&bytes).expect("HMAC takes keys of any length");
        let marks = SipHasher24::new_with_key(&truncated(&mac, &MARKS));
        Self { id, made, bytes, mac, marks }
    }

    pub(super) fn sign(&self, body: &[u8]) -> [u8; SIGNATURE] {
        truncated(&self.mac, body)
    }

    /// In constant time, so that a forger learns nothing from it.
    pub(super) fn has_signed(&self, body: &[u8], signature: &[u8]) -> bool {
        self.mac.clone().chain_update(body).verify_truncated_left(signature).is_ok()
    }

    /// An article's id in a ticket. It is the same in every ticket of this key, and only the key tells which article it is.
    pub fn mark(&self, article: &str) -> Mark {
        let hash = self.marks.hash(article.as_bytes()).to_le_bytes();
        *hash.first_chunk().expect("a mark is shorter")
    }

    /// A customer in the ticket of this number: another ticket has another mark of the same customer.
    pub(super) fn mark_customer(&self, number: [u8; 8], customer: &str) -> Mark {
        truncated(&self.mac, &[&[CUSTOMER], &number[..], customer.as_bytes()].concat())
    }

    /// A caller in recorded events about a shared ticket: enough to tell millions apart.
    pub(super) fn mark_caller(&self, id: &str, caller: &str) -> [u8; 8] {
        truncated(&self.mac, &[&[CALLER], id.as_bytes(), b"\n", caller.as_bytes()].concat())
    }
}

fn truncated<const N: usize>(mac: &Hmac<Sha256>, text: &[u8]) -> [u8; N] {
    let mac = mac.clone().chain_update(text).finalize().into_bytes();
    mac[..N].try_into().expect("it is shorter than the digest")
}

/// All keys, the oldest first. There is at least one.
#[derive(Clone)]
pub(super) struct Keys(Vec<Arc<Key>>);

#[derive(Serialize, Deserialize)]
struct StoredKey {
    id: u32,
    /// When it began to sign.
    made: i64,
    /// In hexadecimal.
    key: String,
}

impl Keys {
    pub(super) fn first(bytes: [u8; 32], now: Timestamp) -> Self {
        Self(vec![Arc::new(Key::new(1, now, bytes))])
    }

    /// Reads what [`Keys::text`] wrote.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let stored: Vec<StoredKey> = serde_json::from_str(text).ok()?;
        let key = |StoredKey { id, made, key }: StoredKey| {
            let mut bytes = [0; 32];
            hex::decode_to_slice(key, &mut bytes).ok()?;
            Some(Arc::new(Key::new(id, Timestamp::from_millis(made), bytes)))
        };
        let keys = Self(stored.into_iter().map(key).collect::<Option<_>>()?);
        (!keys.0.is_empty() && keys.0.is_sorted_by(|a, b| a.id < b.id)).then_some(keys)
    }

    pub(super) fn text(&self) -> String {
        let stored =
            |key: &Arc<Key>| StoredKey { id: key.id, made: key.made.millis(), key: hex::encode(key.bytes) };
        let stored: Vec<StoredKey> = self.0.iter().map(stored).collect();
        serde_json::to_string(&stored).expect("keys are plain JSON")
    }

    pub(super) fn signing(&self) -> &Arc<Key> {
        self.0.last().expect("there is a key")
    }

    pub(super) fn get(&self, id: u32) -> Option<&Arc<Key>> {
        self.0.iter().find(|key| key.id == id)
    }

    /// Whether there was such a key, whose last ticket has expired.
    pub(super) fn has_retired(&self, id: u32) -> bool {
        id < self.0[0].id
    }

    /// With a new key if the newest is too old, and without those whose last ticket has expired. None if nothing changes.
    pub(super) fn renewed(
        &self,
        terms: TicketTerms,
        random: impl Fn() -> [u8; 32],
        now: Timestamp,
    ) -> Option<Self> {
        let mut keys = self.0.clone();
        let newest = self.signing();
        if newest.made + terms.key_age <= now {
            keys.push(Arc::new(Key::new(newest.id + 1, now, random())));
        }
        // A key signs until its successor is made, and a little longer at replicas that have not heard of it yet.
        let successors = keys.iter().skip(1).map(|key| key.made + terms.lifetime + super::LATE);
        let retired = successors.take_while(|last| *last <= now).count();
        keys.drain(..retired);
        (keys.len() != self.0.len() || retired > 0).then_some(Self(keys))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DAY: Duration = Duration::from_hours(24);
    const TERMS: TicketTerms =
        TicketTerms { lifetime: Duration::from_hours(24 * 90), key_age: Duration::from_hours(24 * 30) };

    #[test]
    fn a_key_signs_for_its_age_and_opens_until_its_last_ticket_expires() {
        let (random, start) = (|| [9; 32], Timestamp::from_millis(1_790_000_000_000));
        let ids = |keys: &Keys| keys.0.iter().map(|key| key.id).collect::<Vec<_>>();
        let mut keys = Keys::first([7; 32], start);
        let mut seen = Vec::new();
        for day in 0..200 {
            if let Some(renewed) = keys.renewed(TERMS, random, start + DAY * day) {
                keys = Keys::parse(&renewed.text()).unwrap();
                seen.push((day, ids(&keys)));
            }
        }
        // The first and the last key of a day.
        let expected =
            [(30, 1, 2), (60, 1, 3), (90, 1, 4), (120, 1, 5), (121, 2, 5), (150, 2, 6), (151, 3, 6)];
        let expected = expected.map(|(day, first, last)| (day, (first..=last).collect()));
        assert_eq!(seen[..7], expected);
        assert!(keys.has_retired(1) && !keys.has_retired(keys.signing().id));
        // A service that was stopped for years.
        let late = keys.renewed(TERMS, random, start + DAY * 2000).unwrap();
        assert_eq!(ids(&late), [7, 8], "the last key may have signed until now");
        for text in ["", "[]", "07", "{}", "[{\"id\": 1, \"made\": 0, \"key\": \"07\"}]"] {
            assert!(Keys::parse(text).is_none(), "{text}");
        }
    }
}
