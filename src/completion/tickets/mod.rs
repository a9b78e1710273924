//! Tickets: a completion's id is a signed record of the suggestions, their method and their time.
//!
//! Feedback returns it hours or weeks later, perhaps to another replica that serves another release. So completions need
//! not be stored, most of which never get feedback; the signature prevents made-up completions. A ticket names no customer.
//!
//! Tickets expire, and the keys that sign them are replaced long before. The database holds the keys, for all replicas.

mod keys;
mod ticket;

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use atelier_core::domain::Timestamp;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sqlx::AnyConnection;

use self::keys::{Keys, SIGNATURE};
pub use self::{
    keys::Key,
    ticket::{Blank, CountedRules, Mark, REMEMBERED, Suggested, SuggestedFor, Ticket},
};
use crate::{
    config::TicketTerms,
    platform::{
        db::{Store, StoreError, delete_setting},
        http::AppState,
    },
};

/// The name of the setting that holds the keys.
pub(crate) const SETTING: &str = "tickets";
/// The longest time for which a replica may sign with the old key after another one has made a new key.
const LATE: Duration = Duration::from_hours(24);
/// The longest completion id, which the database can index.
const LONGEST: usize = 2400;

/// Issues and opens tickets. Cheap to clone: clones share the keys.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "a secret must reach no log")]
pub struct Tickets(Arc<Shared>);

struct Shared {
    store: Store,
    terms: TicketTerms,
    random: fn() -> [u8; 32],
    /// Locked only to clone or replace the pointer.
    keys: RwLock<Arc<Keys>>,
    /// In each ticket, so that two completions never have the same id.
    next: AtomicU64,
}

#[derive(Debug, thiserror::Error)]
pub enum TicketError {
    #[error(
        "this is not a completion id of this service; send completion_id unchanged from the completion's answer"
    )]
    Unknown,
    #[error(
        "this completion id has expired: feedback is accepted for {days} days after the completion; complete the outfit \
         again"
    )]
    Expired { days: u64 },
    #[error(
        "the setting `tickets` of the database is damaged; restore it from a backup, or delete it, which makes all \
         completion ids so far invalid"
    )]
    Damaged,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Tickets {
    /// Reads the keys, and makes one if there is none. `random` draws a key.
    pub async fn start(
        store: &Store,
        terms: TicketTerms,
        random: fn() -> [u8; 32],
        now: Timestamp,
    ) -> Result<Self, TicketError> {
        let first = Keys::first(random(), now).text();
        let stored = store.settings().get_or_set(SETTING, &first).await?;
        let keys = Keys::parse(&stored).ok_or(TicketError::Damaged)?;
        let seed = u64::from_be_bytes(random()[..8].try_into().expect("eight bytes"));
        let tickets = Self(Arc::new(Shared {
            store: store.clone(),
            terms,
            random,
            keys: RwLock::new(Arc::new(keys)),
            next: AtomicU64::new(seed),
        }));
        // The keys that there are still work, if the disk is full for example.
        if let Err(error) = tickets.refresh(now).await {
            tracing::warn!(%error, "cannot replace the key that signs completion ids");
        }
        Ok(tickets)
    }

    /// Rereads the keys, which another replica may have replaced, and replaces them if it is time. Called periodically.
    pub async fn refresh(&self, now: Timestamp) -> Result<(), TicketError> {
        loop {
            let stored = self.0.store.settings().get(SETTING).await?.ok_or(TicketError::Damaged)?;
            let keys = Keys::parse(&stored).ok_or(TicketError::Damaged)?;
            let Some(renewed) = keys.renewed(self.0.terms, self.0.random, now) else {
                self.set_keys(keys);
                return Ok(());
            };
            // Another replica may be first; then its keys are read.
            if self.0.store.settings().replace(SETTING, &stored, &renewed.text()).await? {
                self.set_keys(renewed);
                return Ok(());
            }
        }
    }

    /// Signs a ticket and encodes it as a completion id.
    pub fn issue(&self, suggested: Suggested) -> String {
        let key = Arc::clone(self.keys().signing());
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let mut ticket = Ticket::new(suggested, &key, number);
        loop {
            let mut bytes = ticket.encode(&key);
            bytes.extend(key.sign(&bytes));
            let id = URL_SAFE_NO_PAD.encode(bytes);
            // Ids or names may be so long that the whole does not fit.
            if id.len() <= LONGEST || !ticket.shrink() {
                return id;
            }
        }
    }

    /// Opens a completion id, with the key that made its marks.
    pub async fn open(&self, id: &str, now: Timestamp) -> Result<(Ticket, Arc<Key>), TicketError> {
        let bytes = URL_SAFE_NO_PAD.decode(id).map_err(|_| TicketError::Unknown)?;
        let (body, signature) = split(&bytes).ok_or(TicketError::Unknown)?;
        let (key, _) = ticket::read_key_id(body).ok_or(TicketError::Unknown)?;
        let key = self.find_key(key, now).await?;
        if !key.has_signed(body, signature) {
            return Err(TicketError::Unknown);
        }
        let ticket = Ticket::decode(body).ok_or(TicketError::Unknown)?;
        if Timestamp::from_millis(ticket.at) + self.0.terms.lifetime <= now {
            return Err(self.expired());
        }
        Ok((ticket, key))
    }

    async fn find_key(&self, id: u32, now: Timestamp) -> Result<Arc<Key>, TicketError> {
        if let Some(key) = self.keys().get(id) {
            return Ok(Arc::clone(key));
        }
        if self.keys().has_retired(id) {
            return Err(self.expired());
        }
        // Another replica may have made it just now.
        match self.refresh(now).await {
            Ok(()) => self.keys().get(id).map(Arc::clone).ok_or(TicketError::Unknown),
            Err(TicketError::Damaged) => Err(TicketError::Unknown),
            Err(error) => Err(error),
        }
    }

    fn expired(&self) -> TicketError {
        TicketError::Expired { days: self.0.terms.lifetime.as_secs() / (24 * 60 * 60) }
    }

    fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.0.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set_keys(&self, keys: Keys) {
        *self.0.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }
}

/// Removes the keys from a backup's copy of the database. The restored service makes another.
pub(crate) async fn remove_keys(copy: &mut AnyConnection) -> Result<(), StoreError> {
    delete_setting(copy, SETTING).await
}

/// Between a completion id and one of its callers, in recorded events. No id has it.
const OF: char = '.';

/// The completion id under which events of one of its callers are recorded. Only the key, which does not last, tells
/// who the caller is, and that the same one is in another id.
pub fn of_caller(id: &str, key: &Key, caller: &str) -> String {
    format!("{id}{OF}{}", hex::encode(key.mark_caller(id, caller)))
}

/// Reads the completion id of a recorded event. Its signature was checked then; its key may be gone and its time past.
pub fn read_recorded(id: &str) -> Option<Ticket> {
    let id = id.split(OF).next()?;
    let bytes = URL_SAFE_NO_PAD.decode(id).ok()?;
    Ticket::decode(split(&bytes)?.0)
}

/// A ticket's bytes without the signature, and the signature.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(bytes.len().wrapping_sub(SIGNATURE))
}

impl AppState {
    pub fn tickets(&self) -> &Tickets {
        self.part()
    }
}
