//! The rows before a row: which ids, variants and outfits a check has seen.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use atelier_core::domain::{ArticleId, Outfit, Schema, Split};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Unit;

/// The rows so far, each with its line, or 0 if it existed before. Of an id or an outfit it keeps a digest, because
/// millions of them as they are would take gigabytes.
#[derive(Debug, Default)]
pub struct Seen {
    pub(super) articles: HashMap<RowDigest, u32>,
    pub(super) variants: HashMap<RowDigest, Claim>,
    /// The articles whose rows say which variants they have.
    pub(super) redefined: HashSet<RowDigest>,
    /// Whether articles that are not read will be gone.
    pub(super) mirrors: bool,
    /// The ids of bad rows of articles, and the articles whose variants they are.
    pub(super) bad: HashSet<RowDigest>,
    /// The stored variants that bad rows are about, each with its article.
    pub(super) bad_variants: Vec<(ArticleId, String)>,
    pub(super) has_bad_without_id: bool,
    pub(super) customers: HashMap<RowDigest, u32>,
    pub(super) retired: HashSet<RowDigest>,
    pub(super) outfits: HashMap<RowDigest, (u32, Option<Split>)>,
    /// The number of rows that are remembered, without those that existed before.
    pub(super) rows: u32,
}

/// A variant's article.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) article: ArticleId,
    /// Of the article's row.
    pub(super) line: u32,
    /// That of the row that changed the variant, or 0.
    pub(super) changed: u32,
}

/// Half of a SHA-256: no two rows share one.
pub(super) type RowDigest = [u8; 16];

pub(super) fn digest(bytes: impl AsRef<[u8]>) -> RowDigest {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    *digest.first_chunk().expect("16 is less than 32")
}

/// Where a row is, and its schema.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub(super) unit: Unit,
    pub(super) line: u64,
    pub(super) schema: &'a Schema,
}

impl Context<'_> {
    /// The line as it is remembered.
    fn short_line(self) -> u32 {
        u32::try_from(self.line).unwrap_or(u32::MAX)
    }
}

/// A row repeats the one at `first`.
#[derive(Debug, Clone, Copy)]
pub struct Repeat {
    pub(super) first: u32,
    pub(super) other_split: bool,
}

impl Seen {
    pub(super) fn note_bad(&mut self, ids: &[String]) {
        // An id that no article can have is not the one that the row should have.
        self.has_bad_without_id |= !ids.iter().any(|id| ArticleId::new(id).is_ok());
        for id in ids {
            let digest = digest(id);
            self.bad.insert(digest);
            if let Some(Claim { article, .. }) = self.variants.get(&digest) {
                self.bad.insert(self::digest(article.as_str()));
                self.bad_variants.push((article.clone(), id.clone()));
            }
        }
    }

    /// The article that has this variant.
    fn article_of(&self, variant: &str) -> Option<&ArticleId> {
        let claim = self.variants.get(&digest(variant))?;
        let article = digest(claim.article.as_str());
        let line = *self.articles.get(&article)?;
        let is_current = claim.line > 0 || !self.redefined.contains(&article) && (line > 0 || !self.mirrors);
        is_current.then_some(&claim.article)
    }

    /// Notes an article's variants. Articles and variants share their ids.
    fn claim(&mut self, id: &ArticleId, variants: &[ArticleId], line: u32) -> Result<(), String> {
        let own = digest(id.as_str());
        self.redefined.insert(own);
        for variant in variants {
            let digest = digest(variant.as_str());
            let is_article = |line: &u32| *line > 0 || !self.mirrors || self.bad.contains(&digest);
            if digest != own && self.articles.get(&digest).is_some_and(is_article) {
                return Err(format!("the variant {variant:?} of article {id:?} has the id of an article"));
            }
            if let Some(other) = self.article_of(variant.as_str()).filter(|other| *other != id) {
                return Err(format!(
                    "the variant {variant:?} of article {id:?} is one of article {other:?} already"
                ));
            }
            self.variants.insert(digest, Claim { article: id.clone(), line, changed: 0 });
        }
        Ok(())
    }

    pub(super) fn enter_article(
        &mut self,
        id: &ArticleId,
        variants: Option<&[ArticleId]>,
        context: Context<'_>,
    ) -> Result<Option<Repeat>, String> {
        if let Some(other) = self.article_of(id.as_str()).filter(|other| *other != id) {
            return Err(format!("article {id:?} has the id of a variant of article {other:?}"));
        }
        if let Some(variants) = variants {
            self.claim(id, variants, context.short_line())?;
        }
        enter("article", id.as_str(), &mut self.articles, &mut self.rows, context)
    }

    /// Enters a row that changes an article, or one of its variants and so the article.
    pub(super) fn change_article(
        &mut self,
        id: &ArticleId,
        variants: Option<&[ArticleId]>,
        context: Context<'_>,
    ) -> Result<Option<Repeat>, String> {
        let Some(article) = self.article_of(id.as_str()).filter(|article| *article != id) else {
            return self.enter_article(id, variants, context);
        };
        let (of, line) = (digest(article.as_str()), context.short_line());
        if let Some(read) = self.articles.get_mut(&of).filter(|read| **read == 0) {
            *read = line;
        }
        match self.variants.get_mut(&digest(id.as_str())) {
            Some(Claim { changed, .. }) if *changed > 0 => {
                Err(format!("variant {id:?} is already in {} {changed}", context.unit))
            }
            claim => {
                if let Some(claim) = claim {
                    claim.changed = line;
                }
                self.rows += 1;
                Ok(None)
            }
        }
    }

    pub(super) fn delete_article(
        &mut self,
        id: &str,
        context: Context<'_>,
    ) -> Result<Option<Repeat>, String> {
        enter("article", id, &mut self.articles, &mut self.rows, context)
    }

    pub(super) fn enter_customer(
        &mut self,
        id: &str,
        context: Context<'_>,
    ) -> Result<Option<Repeat>, String> {
        enter("customer", id, &mut self.customers, &mut self.rows, context)
    }

    /// The articles that an outfit has, in place of their variants.
    pub(super) fn find_articles(&self, outfit: &Outfit) -> Result<Vec<ArticleId>, String> {
        let article_of = |id: &ArticleId| {
            let digest = digest(id.as_str());
            let is_article = self.articles.contains_key(&digest);
            let article = if is_article { Some(id) } else { self.article_of(id.as_str()) };
            // A retired id may be a variant's by now.
            article.or_else(|| self.retired.contains(&digest).then_some(id)).cloned()
        };
        let articles: Vec<_> = outfit.articles().iter().map(|id| (id, article_of(id))).collect();
        let unknown = articles.iter().filter(|(_, article)| article.is_none());
        let mut reasons: Vec<String> =
            unknown.map(|(id, _)| format!("article {id:?} is not in the catalogue")).collect();
        if !self.customers.contains_key(&digest(outfit.customer.as_str())) {
            reasons.insert(0, format!("customer {:?} is unknown", outfit.customer));
        }
        if !reasons.is_empty() {
            return Err(reasons.join("; "));
        }
        Ok(articles.into_iter().filter_map(|(_, article)| article).collect())
    }

    /// Enters an outfit. `same` is what two outfits share that are the same; the split says only how an outfit is used.
    pub(super) fn enter_outfit(
        &mut self,
        same: &impl Serialize,
        split: Option<Split>,
        context: Context<'_>,
    ) -> Option<Repeat> {
        let same = digest(serde_json::to_vec(same).expect("texts are JSON"));
        match self.outfits.entry(same) {
            Entry::Vacant(entry) => {
                entry.insert((context.short_line(), split));
                self.rows += 1;
                None
            }
            Entry::Occupied(entry) => {
                let (first, other) = *entry.get();
                Some(Repeat { first, other_split: other != split })
            }
        }
    }
}

/// A file may contain an id once; one that existed before is replaced.
fn enter(
    what: &str,
    id: &str,
    seen: &mut HashMap<RowDigest, u32>,
    rows: &mut u32,
    context: Context<'_>,
) -> Result<Option<Repeat>, String> {
    match seen.entry(digest(id)) {
        Entry::Occupied(entry) if *entry.get() > 0 => {
            Err(format!("{what} {id:?} is already in {} {}", context.unit, entry.get()))
        }
        entry => {
            entry.insert_entry(context.short_line());
            *rows += 1;
            Ok(None)
        }
    }
}
