//! An admin's feed: a document whose secrets go to the feed's own server only.

use std::fmt;

use atelier_core::{
    domain::{FeedName, Timestamp},
    util::{
        calendar,
        fetch::{Address, Reach},
        json_fields::write_optional_text,
    },
};
use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::Schedule;
use crate::{
    imports::{jobs::FeedOptions, sql::feeds::Feed},
    platform::{
        db::{Consequence, DocumentName},
        fault::{Fault, Field},
    },
    releases::Releases,
    steering::documents::{Document, Wish},
};

/// The longest address, and the longest header with credentials.
const LONGEST: usize = 2000;
/// The signs for a query's value where an address is shown, and for credentials in a backup.
const HIDDEN: [&str; 2] = ["…", "%E2%80%A6"];
/// Why a feed of a restored backup is not fetched.
pub const LACKS_CREDENTIALS: &str =
    "its credentials were left out of the backup that was restored; store the feed again with them";

/// Where a feed is, when it is fetched, and how it is read and stored.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Feed, example = json!({
    "url": "https://shop.example/feed.xml", "authorization": "Bearer abc", "options": {"mode": "mirror"}, "schedule": {"every": "6h"},
}))]
pub struct FeedSource {
    /// Optional in a request; must be the name in the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("shop"))]
    pub name: Option<String>,
    /// The address, https unless private addresses are allowed. It may have a user and a password. Answers have `…` for the values of
    /// its query; such an address stands for the stored one.
    #[schema(max_length = 2000, examples("https://shop.example/feed.xml"))]
    pub url: String,
    /// The header `Authorization` for its server. No answer shows it. Without it, the stored one is kept for the same server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(write_only, max_length = 2000, examples("Bearer abc"))]
    pub authorization: Option<String>,
    /// Whether a user name and password, or a token, are stored for the address; false removes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_credentials: Option<bool>,
    /// When it is fetched; without it, only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    #[serde(default)]
    pub options: FeedOptions,
    /// The service sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, read_only)]
    pub stored_at: Option<String>,
    /// Result of its fetches. The service sets it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "ignore")]
    #[schema(read_only)]
    pub state: Option<FeedStatus>,
    /// Which servers may be asked.
    #[serde(skip)]
    pub reach: Reach,
}

/// An answer can be sent back.
fn ignore<'de, D: Deserializer<'de>>(state: D) -> Result<Option<FeedStatus>, D::Error> {
    IgnoredAny::deserialize(state).map(|_| None)
}

/// Result of a feed's fetches.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FeedStatus {
    /// The last import, which `/imports/{id}` has while it is among the last.
    #[schema(examples(17))]
    last_import: Option<i64>,
    /// Whether it is being fetched now.
    pub is_fetching: bool,
    /// When it was last fetched, whatever came of it.
    #[serde(serialize_with = "write_optional_text")]
    #[schema(value_type = Option<String>, examples("2026-11-21T14:34:00Z"))]
    pub tried_at: Option<Timestamp>,
    /// When it was last imported.
    #[serde(serialize_with = "write_optional_text")]
    #[schema(value_type = Option<String>, examples("2026-11-21T14:34:20Z"))]
    pub succeeded_at: Option<Timestamp>,
    /// When it is fetched next; null without a schedule.
    #[serde(serialize_with = "write_optional_text")]
    #[schema(value_type = Option<String>, examples("2026-11-21T20:34:00Z"))]
    pub due_at: Option<Timestamp>,
    /// Number of failures in a row. Two raise an alert.
    pub failures: u32,
    /// Why the last attempt failed; null if it did not.
    pub failure: Option<String>,
}

impl FeedStatus {
    pub(in crate::imports) fn new(feed: Feed, now: Timestamp) -> Self {
        Self {
            last_import: feed.state.import,
            is_fetching: feed.is_leased(now),
            tried_at: feed.state.tried_at.map(Timestamp::from_millis),
            succeeded_at: feed.state.succeeded_at.map(Timestamp::from_millis),
            due_at: feed.due_at(),
            failures: feed.state.failures,
            failure: feed.state.failure,
        }
    }
}

/// Says nothing of the secrets.
impl fmt::Debug for FeedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeedSource").field("options", &self.options).finish_non_exhaustive()
    }
}

impl DocumentName for FeedName {
    const KIND: &'static str = "feed";
    const TABLE: &'static str = "feeds";
    const WHAT: &'static str = "the feed";
    // Each replica reads all of them every second.
    const MOST: usize = 100;

    fn without_secrets(body: &Value) -> Option<Value> {
        Some(FeedSource::deserialize(body).map_or(Value::Null, |source| json!(source.without_secrets())))
    }
}

impl FeedSource {
    pub(in crate::imports) fn without_secrets(self) -> Self {
        let address = self.address();
        let has_credentials = Some(self.has_authorization());
        let url = address.map_or_else(|| "…".to_owned(), |address| address.to_string());
        Self { url, authorization: None, has_credentials, ..self }
    }

    /// The source in a backup, with … in place of each secret.
    pub(in crate::imports) fn without_credentials(self) -> Self {
        let [hidden, _] = HIDDEN.map(ToOwned::to_owned);
        let url = self.address().map_or(hidden.clone(), |address| address.to_string());
        Self { url, authorization: self.authorization.map(|_| hidden), ..self }
    }

    pub(in crate::imports) fn has_authorization(&self) -> bool {
        self.authorization.as_deref().is_some_and(|value| !is_hidden(value))
    }

    /// Whether the source is of a backup and must be stored again.
    pub fn lacks_credentials(&self) -> bool {
        is_hidden(&self.url) || self.authorization.as_deref().is_some_and(is_hidden)
    }

    /// The stored address. Whether it may be asked is checked with each request.
    pub(super) fn address(&self) -> Option<Address> {
        let address = Address::parse(&self.url, Reach::Private).ok()?;
        match &self.authorization {
            Some(value) => address.with_authorization(value),
            None => Some(address),
        }
    }

    pub(in crate::imports) fn stored_at(&self) -> Option<i64> {
        calendar::parse_moment(self.stored_at.as_deref()?)
    }

    fn parse(&self) -> Result<Address, Fault> {
        if self.url.len() > LONGEST {
            return Err(Fault::new("url", format!("expected at most {LONGEST} bytes")));
        }
        Address::parse(&self.url, self.reach).map_err(|error| Fault::new("url", error.to_string()))
    }

    /// The address with its credentials, of which the stored ones may be meant.
    fn complete(&self, before: Option<&Self>) -> Result<Address, Fault> {
        let stored = before.and_then(Self::address);
        let given = match &stored {
            Some(stored) if stored.to_string() == self.url && !is_hidden(stored.full()) => {
                Self { url: stored.full().to_owned(), ..self.clone() }.parse()?
            }
            _ if is_hidden(&self.url) => {
                let detail =
                    "the address has … in place of a value; write the value, or the address as it is shown";
                return Err(Fault::new("url", detail));
            }
            _ => self.parse()?,
        };
        let Some(value) = &self.authorization else {
            let keeps = given.authorization().is_none() && self.has_credentials != Some(false);
            let kept = stored.filter(|stored| keeps && stored.same_origin(&given));
            if kept.is_some()
                && before.is_some_and(|before| before.authorization.as_deref().is_some_and(is_hidden))
            {
                return Err(Fault::new("authorization", LACKS_CREDENTIALS));
            }
            let kept = kept.as_ref().and_then(Address::authorization);
            return Ok(kept.and_then(|kept| given.clone().with_authorization(kept)).unwrap_or(given));
        };
        if given.authorization().is_some() {
            let detail = "the address has credentials already; give them in one place";
            return Err(Fault::new("authorization", detail));
        }
        let fits = (1..=LONGEST).contains(&value.len()) && value.trim() == value;
        let set = given.with_authorization(value).filter(|address| fits && address.authorization().is_some());
        set.ok_or_else(|| Fault::new("authorization", "expected a header's value, such as \"Bearer …\""))
    }
}

fn is_hidden(text: &str) -> bool {
    HIDDEN.iter().any(|hidden| text.contains(hidden))
}

impl Document for FeedSource {
    type Name = FeedName;
    type Ready = ();

    fn name_mut(&mut self) -> &mut Option<String> {
        &mut self.name
    }

    fn checked(self) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        if !is_hidden(&self.url) {
            faults.extend(self.parse().err());
        }
        faults.extend(self.schedule.as_ref().and_then(|schedule| schedule.read().err()));
        let of_options = self.options.check().err().into_iter().flatten();
        faults.extend(of_options.map(|Fault { field, detail }| {
            let field = field.steps().iter().fold(Field::from("options"), Field::item);
            Fault { field, detail }
        }));
        let FeedOptions { dry_run, force, .. } = self.options;
        let dry = "a stored feed stores what it reads; for a dry run send the file to POST /feeds/{name}";
        let forced =
            "a stored feed has limits; for a fetch without them use POST /feeds/{name}/fetch?force=true";
        let once = [(dry_run, "options.dry_run", dry), (force, "options.force", forced)];
        let once = once.into_iter().filter(|(is_set, ..)| *is_set);
        faults.extend(once.map(|(_, option, detail)| Fault::new(option, detail)));
        if faults.is_empty() { Ok(self) } else { Err(faults) }
    }

    fn follow(
        Wish { before, wanted, now, .. }: Wish<'_, Self>,
        (): &(),
        _releases: &Releases,
    ) -> Result<(Self, Vec<Consequence>), Vec<Fault>> {
        let address = wanted.complete(before.as_ref()).map_err(|fault| vec![fault])?;
        let source = Self {
            url: address.full().to_owned(),
            authorization: address.authorization().map(ToOwned::to_owned),
            has_credentials: None,
            stored_at: Some(now.to_string()),
            ..wanted
        };
        Ok((source, Vec::new()))
    }
}
