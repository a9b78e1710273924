//! The shop's looks: outfits that its editors publish, for everybody or for some customers.
//!
//! A [`Look`] looks the same in JSON and in the database. [`Looks`] are the published ones, by their articles. [`complete()`] answers
//! a product page. Must not know HTTP or how looks are stored.

pub(crate) mod complete;
pub mod files;

use std::{collections::HashMap, sync::Arc};

use atelier_core::{
    domain::{ArticleId, LookName, MAX_SLOTS, Timestamp},
    util::json_fields::{read_integer, read_object},
};
use atelier_engine::catalogue::Catalogue;
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::complete::{Found, FoundLook, MOST, Piece, Wanted, complete};
use super::documents::{Document, read_all};
use crate::{
    completion::{
        Warning,
        rules::{Audience, When, Window, check_length, check_text, check_window, next_change, window},
    },
    platform::fault::{Fault, Field},
    releases::{
        LiveRelease,
        followers::{Change, Followed, Follower},
    },
};

const TEXT_CHARS: usize = 128;
const NOTE_CHARS: usize = 2000;
const ADDRESS_CHARS: usize = 2000;
/// The most pictures, and tags.
const MOST_LISTED: usize = 50;
const MOST_ORDER: u32 = 1_000_000;

/// Whether a look is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = LookState)]
pub enum State {
    #[default]
    Draft,
    Published,
}

/// The fate of a look if the customer cannot have one of its articles: it is sold out, does not fit, or a rule excludes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = LookIfMissing)]
pub enum IfMissing {
    /// The most likely article of its type takes its place.
    #[default]
    Replace,
    /// The look is not shown.
    Withhold,
}

/// An outfit that an editor publishes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "title": "Autumn office", "articles": ["a-00134", "a-01243", "a-00568", "a-00259"], "state": "published",
    "season": "autumn", "tags": ["office"], "ends_at": "2027-02-28T23:00:00Z",
}))]
pub struct Look {
    /// Optional in a request; must be the name in the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("autumn-office"))]
    pub name: Option<String>,
    /// The ids of its articles, or of variants, in the order in which they are shown.
    #[schema(min_items = 2, max_items = 12)]
    pub articles: Vec<String>,
    /// The heading above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128, examples("Autumn office"))]
    pub title: Option<String>,
    /// For the shop's own people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2000)]
    pub note: Option<String>,
    /// Addresses of pictures of the whole outfit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 50, examples(json!(["https://shop.example/looks/autumn-office.jpg"])))]
    pub pictures: Vec<String>,
    /// A season, to find looks by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128, examples("autumn"))]
    pub season: Option<String>,
    /// Words to find looks by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 50, examples(json!(["office"])))]
    pub tags: Vec<String>,
    /// Of several looks with an article, the lowest comes first, then the first by name.
    #[serde(default, deserialize_with = "read_integer")]
    #[schema(maximum = 1_000_000)]
    pub order: u32,
    /// The customers who see it, by their `features` and `numbers` and the `stores` of requests; all without a condition. A customer
    /// who is not named has no features.
    #[serde(default, deserialize_with = "read_object", skip_serializing_if = "When::is_empty")]
    pub when: When,
    #[serde(default)]
    pub if_missing: IfMissing,
    #[serde(default)]
    pub state: State,
    /// It is shown from then until `ends_at`. Answers have both in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub starts_at: Option<String>,
    /// It is not shown from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub ends_at: Option<String>,
}

impl Document for Look {
    type Name = LookName;
    type Ready = ();

    fn name_mut(&mut self) -> &mut Option<String> {
        &mut self.name
    }

    /// Writes its times in UTC.
    fn checked(mut self) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        if !(2..=MAX_SLOTS).contains(&self.articles.len()) {
            let found = self.articles.len();
            let detail = format!("a look has 2 to {MAX_SLOTS} articles, found {found}");
            faults.push(Fault::new("articles", detail));
        }
        for (place, id) in self.articles.iter().enumerate() {
            let detail = match ArticleId::new(id) {
                Err(error) => error.to_string(),
                Ok(_) if self.articles[..place].contains(id) => format!("{id:?} appears twice"),
                Ok(_) => continue,
            };
            faults.push(Fault::new(Field::from("articles").item(&place), detail));
        }
        for (field, text, most) in [
            ("title", &mut self.title, TEXT_CHARS),
            ("season", &mut self.season, TEXT_CHARS),
            ("note", &mut self.note, NOTE_CHARS),
        ] {
            check_text(field, text, most, &mut faults);
        }
        for (field, texts, most) in
            [("pictures", &self.pictures, ADDRESS_CHARS), ("tags", &self.tags, TEXT_CHARS)]
        {
            if texts.len() > MOST_LISTED {
                let detail = format!("at most {MOST_LISTED}, found {}", texts.len());
                faults.push(Fault::new(field, detail));
            }
            for (place, text) in texts.iter().enumerate() {
                check_length(Field::from(field).item(&place), text, most, &mut faults);
            }
        }
        for (place, address) in self.pictures.iter().enumerate() {
            let is_address = ["https://", "http://", "/"].iter().any(|start| address.starts_with(start));
            if !is_address || address.contains(char::is_whitespace) {
                let detail = format!(
                    "expected an address that begins with https:// or /, without spaces, found {address:?}"
                );
                faults.push(Fault::new(Field::from("pictures").item(&place), detail));
            }
        }
        if self.order > MOST_ORDER {
            faults.push(Fault::new("order", format!("from 0 to {MOST_ORDER}, found {}", self.order)));
        }
        self.when.check(&mut faults);
        for (field, is_empty) in
            [("when.outfit", self.when.outfit.is_empty()), ("when.methods", self.when.methods.is_empty())]
        {
            if !is_empty {
                faults.push(Fault::new(field, "a look applies to customers and stores only; remove it"));
            }
        }
        check_window("the look", &mut self.starts_at, &mut self.ends_at, &mut faults);
        if faults.is_empty() { Ok(self) } else { Err(faults) }
    }

    /// How many of its articles the shop has at present.
    fn review(&self, _name: &LookName, live: &LiveRelease) -> (usize, Vec<Warning>) {
        let catalogue = &live.catalogue;
        let (mut warnings, mut positions) = (Vec::new(), Vec::new());
        for id in &self.articles {
            let position = catalogue.position_of(id).filter(|at| catalogue.article(*at).is_some());
            if position.is_some() && positions.contains(&position) {
                let detail =
                    format!("{id:?} belongs to an article that the look already has; it counts once");
                warnings.push(Warning::new("same-article", detail));
            }
            positions.push(position);
            let (code, detail) = match position {
                None => ("unknown-article", format!("the catalogue has no article {id:?}")),
                Some(at) if catalogue.sets().out_of_stock().contains(at) => {
                    ("out-of-stock", format!("{id:?} is out of stock"))
                }
                Some(_) => continue,
            };
            warnings.push(Warning::new(code, detail));
        }
        (positions.iter().flatten().count(), warnings)
    }
}

impl Look {
    pub fn window(&self) -> Window {
        window(self.starts_at.as_deref(), self.ends_at.as_deref())
    }
}

/// A published look, for a catalogue.
#[derive(Debug)]
pub struct Published {
    pub name: LookName,
    pub look: Look,
    /// The positions of its articles; None of one that neither the shop nor the release has.
    articles: Vec<Option<u32>>,
    audience: Audience,
}

impl Published {
    fn new(name: &LookName, look: &Look, catalogue: &Catalogue) -> Self {
        let mut articles: Vec<Option<u32>> = Vec::with_capacity(look.articles.len());
        for id in &look.articles {
            let position = catalogue.position_of(id);
            // Two variants of an article are one.
            if position.is_none() || !articles.contains(&position) {
                articles.push(position);
            }
        }
        Self {
            name: name.clone(),
            audience: Audience::new(&look.when, look.starts_at.as_deref(), look.ends_at.as_deref()),
            look: look.clone(),
            articles,
        }
    }
}

/// The published looks, those of the lowest order first.
#[derive(Debug, Default)]
pub struct Looks {
    list: Arc<[(LookName, Look)]>,
    published: Vec<Arc<Published>>,
    with_article: HashMap<u32, Vec<usize>>,
}

impl Follower for Looks {
    fn follow(self: Arc<Self>, change: Change<'_>) -> Followed<'_> {
        async move {
            let catalogue = &change.next.catalogue;
            let next = if change.has_looks() {
                Some(Self::compile(read_all(change.store).await?, catalogue))
            } else {
                (change.has_articles() && !self.is_empty()).then(|| self.with_catalogue(catalogue))
            };
            Ok(next.map(|next| Arc::new(next) as _))
        }
        .boxed()
    }

    fn next_change(&self, now: Timestamp) -> Option<i64> {
        next_change(self.published.iter().map(|look| &look.audience), now)
    }
}

impl Looks {
    /// The published ones of these.
    pub fn compile(mut list: Vec<(LookName, Look)>, catalogue: &Catalogue) -> Self {
        list.retain(|(_, look)| look.state == State::Published);
        list.sort_by(|(a, x), (b, y)| x.order.cmp(&y.order).then_with(|| a.cmp(b)));
        Self::follow(list.into(), catalogue)
    }

    pub fn with_catalogue(&self, next: &Catalogue) -> Self {
        Self::follow(Arc::clone(&self.list), next)
    }

    fn follow(list: Arc<[(LookName, Look)]>, catalogue: &Catalogue) -> Self {
        let publish = |(name, look): &(LookName, Look)| Arc::new(Published::new(name, look, catalogue));
        let published: Vec<Arc<Published>> = list.iter().map(publish).collect();
        let mut with_article: HashMap<u32, Vec<usize>> = HashMap::new();
        for (number, look) in published.iter().enumerate() {
            for article in look.articles.iter().flatten() {
                with_article.entry(*article).or_default().push(number);
            }
        }
        Self { list, published, with_article }
    }

    pub fn is_empty(&self) -> bool {
        self.published.is_empty()
    }

    fn with_article(&self, article: u32) -> impl Iterator<Item = &Arc<Published>> {
        let numbers = self.with_article.get(&article).into_iter().flatten();
        numbers.map(|number| &self.published[*number])
    }
}
