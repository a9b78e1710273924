//! What an import has seen so far, and how a row is held against it.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    hash::Hash,
};

use sha2::{Digest, Sha256};

use super::{error::Unit, table::Wire, value::Value};
use crate::domain::{Article, ArticleId, Customer, CustomerId, Outfit, Schema, Split};

/// The ids of an import, with the line of the file that they stand on, 0 for those known before; and its
/// outfits, which are told apart by a digest, so that half a million of them stay small.
#[derive(Debug, Default)]
pub struct Known {
    articles: HashMap<ArticleId, u64>,
    customers: HashMap<CustomerId, u64>,
    outfits: HashMap<Identity, (u64, Option<Split>)>,
}

impl Known {
    pub(super) fn new(
        articles: impl IntoIterator<Item = ArticleId>,
        customers: impl IntoIterator<Item = CustomerId>,
    ) -> Self {
        Self {
            articles: articles.into_iter().map(|id| (id, 0)).collect(),
            customers: customers.into_iter().map(|id| (id, 0)).collect(),
            outfits: HashMap::new(),
        }
    }
}

/// Half of a SHA-256: long enough that two outfits never share one.
type Identity = [u8; 16];

/// Where a row stands, and how it is read.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub(super) unit: Unit,
    pub(super) line: u64,
    pub(super) schema: &'a Schema,
}

/// How a row goes with the rows before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    New,
    /// It says what an earlier row said already.
    Repeats {
        first: u64,
        /// The earlier one belongs to another split.
        other_split: bool,
    },
}

/// How a row is held against the rows before it.
pub trait Check {
    /// # Errors
    /// The reason why it does not go with them.
    fn check(&self, context: Context<'_>, known: &mut Known) -> Result<Standing, String>;
}

impl Check for Article {
    fn check(&self, context: Context<'_>, known: &mut Known) -> Result<Standing, String> {
        enter("article", &mut known.articles, &self.id, context)
    }
}

impl Check for Customer {
    fn check(&self, context: Context<'_>, known: &mut Known) -> Result<Standing, String> {
        enter("customer", &mut known.customers, &self.id, context)
    }
}

impl Check for Outfit {
    fn check(&self, context: Context<'_>, known: &mut Known) -> Result<Standing, String> {
        let unknown = self.articles().iter().filter(|id| !known.articles.contains_key(*id));
        let mut reasons: Vec<String> =
            unknown.map(|id| format!("article {id:?} is not in the catalogue")).collect();
        if !known.customers.contains_key(&self.customer) {
            reasons.insert(0, format!("customer {:?} is not known", self.customer));
        }
        if !reasons.is_empty() {
            return Err(reasons.join("; "));
        }
        match known.outfits.entry(identity(self, context.schema)) {
            Entry::Vacant(entry) => {
                entry.insert((context.line, self.split));
                Ok(Standing::New)
            }
            Entry::Occupied(entry) => {
                let (first, split) = *entry.get();
                Ok(Standing::Repeats { first, other_split: split != self.split })
            }
        }
    }
}

/// Outfits are the same if the customer, the set of articles and the features are: the database sees it so
/// too. The split is not what an outfit is, but what it is used for.
fn identity(outfit: &Outfit, schema: &Schema) -> Identity {
    let mut fields = outfit.to_fields(schema);
    fields.retain(|(name, _)| name != "split");
    for (name, value) in &mut fields {
        if let ("articles", Value::List(ids)) = (name.as_ref(), value) {
            ids.sort_unstable_by(|a, b| a.as_text().cmp(&b.as_text()));
        }
    }
    let text = serde_json::to_vec(&Value::Object(fields)).expect("texts are JSON; this is a bug");
    let digest: [u8; 32] = Sha256::digest(text).into();
    *digest.first_chunk().expect("16 is less than 32; this is a bug")
}

/// Enters an id that this file may hold once.
fn enter<Id: Clone + Eq + Hash + fmt::Debug>(
    what: &str,
    known: &mut HashMap<Id, u64>,
    id: &Id,
    context: Context<'_>,
) -> Result<Standing, String> {
    match known.get_mut(id) {
        Some(0) | None => {
            known.insert(id.clone(), context.line);
            Ok(Standing::New)
        }
        Some(first) => Err(format!("{what} {id:?} stands in {} {first} already", context.unit)),
    }
}
