//! Outfits: articles that one person wears together, and outfits with blanks to fill.

use std::{collections::HashSet, fmt};

use serde::Deserialize;

use super::{ArticleId, CustomerId, Features};
use crate::named;

/// The most slots of an outfit, whatever a schema says: more are stored nowhere.
pub const MAX_SLOTS: usize = 12;

/// How many articles an outfit has. A schema says so, and defaults to 2 to 12.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutfitSize {
    /// The fewest articles of a whole outfit. Models are trained on no smaller ones, and complete them with a warning.
    pub least: usize,
    /// The most slots, blanks included. Models are trained on no larger ones.
    pub most: usize,
}

impl Default for OutfitSize {
    fn default() -> Self {
        Self { least: 2, most: MAX_SLOTS }
    }
}

impl fmt::Display for OutfitSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.least, self.most)
    }
}

impl OutfitSize {
    /// Outfits of the paper, of synthetic worlds, and of a release whose schema does not say.
    pub const PAPER: Self = Self { least: 4, most: 8 };

    pub fn check(self, found: usize) -> Result<(), OutfitError> {
        if (self.least..=self.most).contains(&found) {
            Ok(())
        } else {
            Err(OutfitError::Size { expected: self, found })
        }
    }

    pub fn check_slots(self, found: usize) -> Result<(), OutfitError> {
        if found > self.most { Err(OutfitError::TooManySlots { most: self.most, found }) } else { Ok(()) }
    }

    /// Whether it is still a draft: it has no customer, blanks, or too few articles for a whole outfit.
    pub fn is_draft(self, outfit: &OpenOutfit) -> bool {
        let slots = &outfit.slots.0;
        outfit.customer.is_none() || slots.len() < self.least || slots.contains(&Slot::Blank)
    }
}

/// The part of the data that an outfit belongs to. Validation data is read once, at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Split {
    Train,
    Validation,
}

named!(Split, "a split is train or validation", Train = "train", Validation = "validation");

/// Why an outfit is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutfitError {
    #[error("an outfit has {expected} articles (`outfit` in the schema), found {found}")]
    Size { expected: OutfitSize, found: usize },
    #[error("an outfit has at least one slot, found none")]
    NoSlots,
    #[error("an outfit has at most {most} slots, found {found}")]
    TooManySlots { most: usize, found: usize },
    #[error("article {0:?} appears twice in the outfit")]
    Duplicate(ArticleId),
}

/// A whole outfit that a customer was given. How many articles it has is checked where it is read, because each schema has
/// its own [`OutfitSize`]. Their order means nothing; it is kept so that an export writes what was imported.
#[derive(Debug, Clone, PartialEq)]
pub struct Outfit {
    pub customer: CustomerId,
    articles: Vec<ArticleId>,
    pub split: Option<Split>,
    /// Features of this outfit rather than of the customer, such as the occasion.
    pub features: Features,
}

impl Outfit {
    pub fn new(
        customer: CustomerId,
        articles: Vec<ArticleId>,
        split: Option<Split>,
        features: Features,
    ) -> Result<Self, OutfitError> {
        refuse_duplicates(articles.iter())?;
        Ok(Self { customer, articles, split, features })
    }

    pub fn articles(&self) -> &[ArticleId] {
        &self.articles
    }

    /// The same outfit, with the articles instead of the variants that were named.
    pub fn set_articles(&mut self, articles: Vec<ArticleId>) -> Result<(), OutfitError> {
        refuse_duplicates(articles.iter())?;
        self.articles = articles;
        Ok(())
    }
}

/// An entry of an open outfit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    Article(ArticleId),
    Blank,
}

/// One to twelve slots, some of them blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots(Vec<Slot>);

impl From<Option<ArticleId>> for Slot {
    /// No article is a blank.
    fn from(article: Option<ArticleId>) -> Self {
        article.map_or(Self::Blank, Self::Article)
    }
}

impl Slot {
    pub fn article(&self) -> Option<&ArticleId> {
        match self {
            Self::Article(id) => Some(id),
            Self::Blank => None,
        }
    }
}

impl Slots {
    pub fn new(slots: Vec<Slot>) -> Result<Self, OutfitError> {
        if slots.is_empty() {
            return Err(OutfitError::NoSlots);
        }
        OutfitSize::default().check_slots(slots.len())?;
        refuse_duplicates(slots.iter().filter_map(Slot::article))?;
        Ok(Self(slots))
    }

    pub fn articles(&self) -> impl Iterator<Item = &ArticleId> {
        self.0.iter().filter_map(Slot::article)
    }

    /// The same slots, with the articles instead of the variants that were named.
    pub fn with_articles(&self, article_of: impl Fn(&ArticleId) -> ArticleId) -> Result<Self, OutfitError> {
        let slots = self.0.iter().map(|slot| slot.article().map(&article_of).into()).collect::<Vec<Slot>>();
        refuse_duplicates(slots.iter().filter_map(Slot::article))?;
        Ok(Self(slots))
    }

    pub fn as_slice(&self) -> &[Slot] {
        &self.0
    }

    /// The indices of the blanks.
    pub fn blanks(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, slot)| **slot == Slot::Blank).map(|(index, _)| index)
    }
}

/// An outfit to complete, and its customer. An outfit without a blank asks for one more article.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenOutfit {
    /// None of a draft that is not for anybody yet.
    pub customer: Option<CustomerId>,
    pub slots: Slots,
    /// Features of the customer or the outfit; they override the profile.
    pub features: Features,
}

fn refuse_duplicates<'a>(articles: impl Iterator<Item = &'a ArticleId>) -> Result<(), OutfitError> {
    let mut seen = HashSet::with_capacity(MAX_SLOTS);
    for article in articles {
        if !seen.insert(article) {
            return Err(OutfitError::Duplicate(article.clone()));
        }
    }
    Ok(())
}
