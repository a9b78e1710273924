//! Who gets in: people by password or by a link that works once, and the sessions they then have; programs by keys.
//!
//! Knows the store; must not know HTTP, cookies or pages. Tokens and keys go out as text and are kept as hashes only.

mod key;
mod password;
mod rate;
mod throttle;
mod token;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::{
    domain::{Role, Timestamp},
    service::cache::{Cache, Keep},
    store::{ApiKey, Name, Person, PersonId, Session, Store, StoreError, TokenHash},
};

pub use self::{
    key::{Key, Scope},
    password::PasswordError,
    token::Token,
};
use self::{password::Hasher, rate::Rates, throttle::Throttle};

/// A person signs in anew after so long.
pub const SESSION: Duration = Duration::from_hours(24 * 7);
/// How long a sign-in link waits to be used.
pub const LINK: Duration = Duration::from_hours(24);
/// The last use of a session or key is written down at most so often: it is a write.
const NOTED: Duration = Duration::from_mins(1);
/// The first admin's name; a person's name can be no other's.
const FIRST: &str = "admin";

/// The door. Cheap to clone: clones share what they know of failed attempts.
#[derive(Debug, Clone)]
pub struct Access {
    store: Store,
    hasher: Hasher,
    /// Held for as long as it takes to look a name up.
    throttle: Arc<Mutex<Throttle>>,
    keys: Cache<TokenHash, ApiKey>,
    requires_key: bool,
    /// Held for as long as it takes to look a key up.
    rates: Arc<Mutex<Rates>>,
}

/// Keys are asked for each time, so one that was revoked is worth nothing at once; what is remembered opens the door
/// while the database cannot be reached, and only for a few minutes.
const KEYS: Keep = Keep { most: 1000, fresh: Duration::ZERO, most_age: Duration::from_mins(10) };

/// Why somebody does not get in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The same words whether the name, the password or the account is the matter: it tells nobody who exists.
    #[error("that name and password do not go together")]
    Wrong,
    #[error("too many attempts for that name; try again in {} seconds", .0.as_secs().max(1))]
    TooMany(Duration),
    #[error(
        "this link was used already, has expired, or a newer one was made; ask an admin for another, or run \
         `atelier sign-in-link`"
    )]
    Link,
    #[error(transparent)]
    Password(#[from] PasswordError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Access {
    /// Programs get in without a key.
    pub fn new(store: Store) -> Self {
        let keys = Cache::new(KEYS);
        Self {
            store,
            hasher: Hasher::default(),
            throttle: Arc::default(),
            keys,
            requires_key: false,
            rates: Arc::default(),
        }
    }

    /// Programs need a key from now on.
    pub fn requiring_keys(self) -> Self {
        Self { requires_key: true, ..self }
    }

    pub fn requires_key(&self) -> bool {
        self.requires_key
    }

    /// By name and password.
    pub async fn sign_in(&self, name: &str, password: &str, now: Timestamp) -> Result<Token, SignInError> {
        let Ok(name) = Name::new(name.trim()) else { return Err(SignInError::Wrong) };
        self.throttle().attempt(&name.key(), now).map_err(SignInError::TooMany)?;
        let person = self.store.people().find_by_name(&name).await?;
        let hash = match &person {
            Some(person) => self.store.people().password_hash(person.id).await?,
            None => None,
        };
        // Somebody who is not there takes as long to refuse as somebody who is.
        let fits = self.hasher.verify(password, hash).await;
        let Some(person) = person.filter(|person| fits && person.disabled_at.is_none()) else {
            return Err(SignInError::Wrong);
        };
        self.throttle().forget(&name.key());
        Ok(self.begin(person.id, now).await?)
    }

    /// A link's token that signs this person in once; the one before it is worth nothing any more.
    pub async fn link(&self, person: PersonId, now: Timestamp) -> Result<Token, StoreError> {
        let token = Token::draw();
        self.store.sign_in_links().create(&token.hash(), person, now, now + LINK).await?;
        Ok(token)
    }

    /// Whom a link would sign in. Looking does not use it up.
    pub async fn holder(&self, link: &Token, now: Timestamp) -> Result<Person, SignInError> {
        self.store.sign_in_links().find_valid(&link.hash(), now).await?.ok_or(SignInError::Link)
    }

    /// Uses a link up, with the password that the person chose, if they did.
    pub async fn enter(
        &self,
        link: &Token,
        password: Option<&str>,
        now: Timestamp,
    ) -> Result<Token, SignInError> {
        let person = self.holder(link, now).await?;
        // Before the link is used up: a password that is refused costs nothing.
        let hash = match password {
            Some(password) => Some(self.hasher.hash(password).await?),
            None => None,
        };
        if !self.store.sign_in_links().take(&link.hash()).await? {
            return Err(SignInError::Link);
        }
        if let Some(hash) = hash {
            self.store.people().set_password_hash(person.id, &hash).await?;
        }
        Ok(self.begin(person.id, now).await?)
    }

    /// Sets the password of somebody who is signed in; their sessions end, and this one begins.
    pub async fn change_password(
        &self,
        person: PersonId,
        password: &str,
        now: Timestamp,
    ) -> Result<Token, SignInError> {
        let hash = self.hasher.hash(password).await?;
        self.store.people().set_password_hash(person, &hash).await?;
        Ok(self.begin(person, now).await?)
    }

    /// Who is signed in by this token.
    pub async fn session(&self, token: &Token, now: Timestamp) -> Result<Option<Session>, StoreError> {
        let session = self.store.sessions().find_valid(&token.hash(), now).await?;
        if session.as_ref().is_some_and(|session| session.last_seen_at + NOTED <= now) {
            self.store.sessions().touch(&token.hash(), now).await?;
        }
        Ok(session)
    }

    pub async fn sign_out(&self, token: &Token) -> Result<(), StoreError> {
        self.store.sessions().delete(&token.hash()).await.map(drop)
    }

    /// The admin to hand a link to when the service starts: the first one, made here where nobody is, for as
    /// long as no admin has a password.
    pub async fn without_password(&self, now: Timestamp) -> Result<Option<Person>, StoreError> {
        let people = self.store.people();
        if people.list().await?.is_empty() {
            let name = Name::new(FIRST).expect("it is a name; this is a bug");
            match people.create(&name, Role::Admin, now).await {
                // Another replica, started at the same time, was first.
                Ok(_) | Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let everybody = people.list().await?;
        let admins = everybody.into_iter().filter(|one| one.role == Role::Admin && one.disabled_at.is_none());
        let mut first = None;
        for admin in admins {
            if people.password_hash(admin.id).await?.is_some() {
                return Ok(None);
            }
            first.get_or_insert(admin);
        }
        Ok(first)
    }

    async fn begin(&self, person: PersonId, now: Timestamp) -> Result<Token, StoreError> {
        let token = Token::draw();
        let sessions = self.store.sessions();
        sessions.create(&token.hash(), person, now, now + SESSION).await?;
        // Signing in is rare enough to sweep by the way.
        sessions.delete_expired(now).await?;
        Ok(token)
    }

    fn throttle(&self) -> std::sync::MutexGuard<'_, Throttle> {
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
