//! Access: people sign in by password or one-time link and get a session; programs use API keys.
//!
//! Only `gate`, `visitors` and `page` know HTTP. Tokens and keys go out as text; only their hashes are stored.

mod attempts;
pub(crate) mod gate;
mod guessable;
mod key;
mod notes;
pub(crate) mod page;
mod page_origin;
mod password;
mod rate;
mod signed;
mod sql;
pub(crate) mod visitors;

pub(crate) use self::sql::{keys::remove_secrets, people::find as find_person};

pub use crate::platform::{
    db::{KeyId, PersonId},
    scope::Scope,
    token::Token,
};

pub use self::sql::{
    keys::{ApiKey, ApiKeys, Publishable, SigningSecret},
    people::{People, Person},
    sessions::{NewSession, Proof, Session, Sessions},
    sign_in_links::SignInLinks,
};

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use atelier_core::domain::{Role, Timestamp};

use self::{
    attempts::{Attempts, Caller},
    notes::{Notes, Tried, Used},
    rate::Rates,
};
use crate::{
    config::{self, Keep},
    platform::{
        cache::Cache,
        db::{Author, Name, Store, StoreError, TokenHash},
        http::AppState,
    },
};

pub use self::{
    attempts::QueueFull,
    key::{Key, Opens},
    page_origin::PageOrigin,
    password::PasswordError,
    rate::Sender,
    signed::{SignedError, read_signed},
};

/// How long a sign-in link is valid.
pub const LINK: Duration = Duration::from_hours(24);
/// The last use of a session or key is stored at most this often, to save writes.
const USE_INTERVAL: Duration = Duration::from_mins(1);
/// The first admin's name.
const FIRST: &str = "admin";

/// Sign-ins, sessions and API keys. Cheap to clone: clones share failed attempts and rates.
#[derive(Debug, Clone)]
pub struct Access {
    store: Store,
    attempts: Attempts,
    lifetimes: Lifetimes,
    keys: Cache<TokenHash, ApiKey>,
    notes: Notes,
    rule: RequireKey,
    /// Locked only to look a sender up.
    rates: Arc<Mutex<Rates<Sender>>>,
    /// Words of the shop's name, which a password must not rest on.
    shop: String,
}

/// Whether programs need an API key. The way in which the service was started decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequireKey {
    /// A database is named.
    Always,
    /// A database is named, and the setting `access.require_key` is false.
    Never,
    /// The demo, where no database is named and nothing is private, needs none.
    Demo,
}

/// When sessions end by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// Without a request.
    pub idle: Duration,
    pub session: Duration,
}

/// Keys are read from the database each time, so revoking works at once. Cached keys count only while the database
/// cannot be reached, for at most ten minutes.
const KEYS: Keep = Keep { most: 1000, fresh: Duration::ZERO, most_age: Duration::from_mins(10) };

/// Why a person cannot sign in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The same message for an unknown name, a wrong password and a disabled account, so it does not reveal who exists.
    #[error("wrong name or password")]
    Wrong,
    #[error("too many attempts; try again in {} seconds", .0.as_secs().max(1))]
    TooMany(Duration),
    #[error(transparent)]
    QueueFull(#[from] QueueFull),
    #[error(
        "this link was already used, has expired or was replaced by a newer one; ask an admin for another"
    )]
    Link,
    #[error("the old password is wrong")]
    OldPassword,
    #[error(transparent)]
    Password(#[from] PasswordError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SignInError {
    fn about_old_password(self) -> Self {
        if matches!(self, Self::Wrong) { Self::OldPassword } else { self }
    }
}

impl Access {
    /// Every program needs a key.
    pub fn new(store: Store) -> Self {
        let keys = Cache::new(KEYS, |_| 1);
        Self {
            notes: Notes::default(),
            store,
            attempts: Attempts::default(),
            lifetimes: config::Access::default().lifetimes(),
            keys,
            rule: RequireKey::Always,
            rates: Arc::default(),
            shop: String::new(),
        }
    }

    /// Requires keys by another rule than always.
    pub fn require_key(self, rule: RequireKey) -> Self {
        Self { rule, ..self }
    }

    pub fn rule(&self) -> RequireKey {
        self.rule
    }

    pub fn with_lifetimes(self, lifetimes: Lifetimes) -> Self {
        Self { lifetimes, ..self }
    }

    pub fn lifetimes(&self) -> Lifetimes {
        self.lifetimes
    }

    /// The same access, for changes by this author: an admin, or a visitor whose address the audit log keeps.
    pub fn by(&self, author: Author) -> Self {
        Self { store: self.store.by(author), ..self.clone() }
    }

    /// The same access for the shop at this host, such as `www.boutique.example:8080`.
    pub fn of_shop(self, host: &str) -> Self {
        let host = host.split(':').next().unwrap_or_default();
        let names = host.rsplit_once('.').map_or("", |(names, _)| names);
        Self { shop: names.replace(['.', '-'], " ").to_lowercase(), ..self }
    }

    /// Signs a person in by name and password. A `device` that has signed in as them before comes before strangers, and does
    /// not wait because of attempts from elsewhere.
    pub async fn sign_in(
        &self,
        name: &str,
        password: &str,
        device: Option<&Token>,
        now: Timestamp,
    ) -> Result<Token, SignInError> {
        let Ok(name) = Name::new(name.trim()) else {
            self.fail(Tried::UnknownName, now);
            return Err(SignInError::Wrong);
        };
        let tried =
            |person: Option<Person>| person.map_or(Tried::UnknownName, |person| Tried::Person(person.name));
        let key = name.key();
        let caller = if self.is_known(device, &name).await? {
            Caller::Known(key)
        } else {
            Caller::stranger(self.store.author().peer, key)
        };
        let (person, hash) = self.check_password(&name, password, &caller, tried, now).await?;
        let token = self.begin(person.id, Proof::Password(Some(&hash)), None, now).await?;
        token.ok_or(SignInError::Wrong)
    }

    /// Whether the device has signed in with the person's password.
    async fn is_known(&self, device: Option<&Token>, name: &Name) -> Result<bool, StoreError> {
        let Some(device) = device else { return Ok(false) };
        let hash = self.store.people().find_with_password(name).await?.and_then(|(_, hash)| hash);
        Ok(hash.is_some_and(|hash| Token::of_device(&hash).hash() == device.hash()))
    }

    /// The token by which a session's device is known later. None if its person has no password.
    pub async fn device(&self, session: &Token, now: Timestamp) -> Result<Option<Token>, StoreError> {
        let Some(session) = self.session(session, now).await? else { return Ok(None) };
        let hash = self.store.people().password_hash(session.person.id).await?;
        Ok(hash.map(|hash| Token::of_device(&hash)))
    }

    /// The person with this name and password, and the password's hash. What is refused before the look-up is refused for
    /// every name; after it, every name costs one statement and one hash. A wrong password is noted as `tried`.
    async fn check_password(
        &self,
        name: &Name,
        password: &str,
        caller: &Caller,
        tried: impl FnOnce(Option<Person>) -> Tried,
        now: Timestamp,
    ) -> Result<(Person, String), SignInError> {
        if !password::is_possible(password) {
            return Err(SignInError::Wrong);
        }
        self.attempts.check(caller).map_err(SignInError::TooMany)?;
        let turn = self.attempts.turn(caller).await?;
        let found = self.store.people().find_with_password(name).await?;
        // Counted before the hash, so that parallel attempts count, and with nothing to wait for in between, so that
        // callers who hang up cannot count attempts without computing them.
        self.attempts.count(caller).map_err(SignInError::TooMany)?;
        let (person, hash) = found.unzip();
        let hash = hash.flatten();
        let fits = turn.verify(password, hash.clone()).await;
        match (person, hash) {
            (Some(person), Some(hash)) if fits && person.disabled_at.is_none() => {
                self.attempts.forget(caller);
                Ok((person, hash))
            }
            (person, _) => {
                self.fail(tried(person), now);
                Err(SignInError::Wrong)
            }
        }
    }

    /// The hash of a new password.
    async fn hash(&self, password: &str, person: &Person) -> Result<String, SignInError> {
        password::check_length(password)?;
        let turn = self.attempts.turn(&Caller::Known(person.name.key())).await?;
        Ok(turn.hash(password, person.name.as_str(), &self.shop).await?)
    }

    /// Creates a link's token that signs the person in once. Earlier links stop working.
    pub async fn link(&self, person: PersonId, now: Timestamp) -> Result<Token, StoreError> {
        let token = Token::draw();
        self.store.sign_in_links().create(&token.hash(), person, now).await?;
        Ok(token)
    }

    /// The person that a link signs in. This does not use the link up.
    pub async fn holder(&self, link: &Token, now: Timestamp) -> Result<Person, SignInError> {
        self.store.sign_in_links().find_valid(&link.hash(), now).await?.ok_or(SignInError::Link)
    }

    /// Signs in by a link and uses it up. Sets the password if there is one.
    pub async fn enter(
        &self,
        link: &Token,
        password: Option<&str>,
        now: Timestamp,
    ) -> Result<Token, SignInError> {
        let failed = |error: &SignInError| {
            if matches!(error, SignInError::Link) {
                self.fail(Tried::Link, now);
            }
        };
        let person = self.holder(link, now).await.inspect_err(failed)?;
        // Before the link is used up, so that a refused password does not waste it.
        let hash = match password {
            Some(password) => Some(self.hash(password, &person).await?),
            None => None,
        };
        let token = self.begin(person.id, Proof::Link(&link.hash()), hash.as_deref(), now).await?;
        token.ok_or(SignInError::Link).inspect_err(failed)
    }

    /// Changes a signed-in person's password, if the old one is right; people who have none yet need none. Ends all their
    /// sessions and begins a new one. Wrong old passwords count as those of a known device do, so that a session left open does not
    /// help to guess the password.
    pub async fn change_password(
        &self,
        person: &Person,
        old: &str,
        new: &str,
        now: Timestamp,
    ) -> Result<Token, SignInError> {
        let before = match self.store.people().password_hash(person.id).await? {
            Some(_) => {
                let tried = |_| Tried::OldPassword(person.id, person.name.clone());
                let caller = Caller::Known(person.name.key());
                let checked = self.check_password(&person.name, old, &caller, tried, now).await;
                Some(checked.map_err(SignInError::about_old_password)?.1)
            }
            None => None,
        };
        let hash = self.hash(new, person).await?;
        let token = self.begin(person.id, Proof::Password(before.as_deref()), Some(&hash), now).await?;
        // Another session changed it at the same time.
        token.ok_or(SignInError::OldPassword)
    }

    /// Whether the person has a password.
    pub async fn has_password(&self, person: PersonId) -> Result<bool, StoreError> {
        Ok(self.store.people().password_hash(person).await?.is_some())
    }

    /// The session of this token, with its person.
    pub async fn session(&self, token: &Token, now: Timestamp) -> Result<Option<Session>, StoreError> {
        let idle_since = now - self.lifetimes.idle;
        let session = self.store.sessions().find_valid(&token.hash(), now, idle_since).await?;
        if session.as_ref().is_some_and(|session| session.last_seen_at + USE_INTERVAL <= now) {
            self.note_use(Used::Session(token.hash()), now);
        }
        Ok(session)
    }

    pub async fn sign_out(&self, token: &Token, now: Timestamp) -> Result<(), StoreError> {
        self.store.sessions().delete(&token.hash(), now).await.map(drop)
    }

    /// The admin who gets a sign-in link when the service starts: the first one, as long as no admin has a password.
    /// Creates that admin if there are no people yet.
    pub async fn without_password(&self, now: Timestamp) -> Result<Option<Person>, StoreError> {
        let people = self.store.people();
        if people.list().await?.is_empty() {
            let name = Name::new(FIRST).expect("the name is valid");
            match people.create(&name, Role::Admin, None, now).await {
                // Another replica that started at the same time may create the admin first.
                Ok(_) | Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        people.admin_without_password().await
    }

    /// Begins a session; None if the proof no longer holds.
    async fn begin(
        &self,
        person: PersonId,
        proof: Proof<'_>,
        new_password: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<Token>, StoreError> {
        let token = Token::draw();
        let expires_at = now + self.lifetimes.session;
        let session = NewSession { token: &token.hash(), person, expires_at, new_password };
        let begun = self.store.sessions().begin(session, proof, now).await?;
        Ok(begun.then_some(token))
    }

    /// Stores the failed sign-ins and the uses that wait for it. To be called before the process ends.
    pub async fn flush(&self, now: Timestamp) {
        self.notes.flush(&self.store, now).await;
    }

    fn note_use(&self, used: Used, now: Timestamp) {
        self.notes.used(&self.store, used, self.lifetimes.idle, now);
    }

    fn fail(&self, tried: Tried, now: Timestamp) {
        self.notes.failed(&self.store, tried, self.store.author().peer, now);
    }
}

impl AppState {
    pub fn access(&self) -> &Access {
        self.part()
    }

    /// Whether this is the demo, which says so on every page.
    pub(crate) fn is_demo(&self) -> bool {
        self.access().rule() == RequireKey::Demo
    }
}
