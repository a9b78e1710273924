//! Outfits: articles that one person wears together, and outfits with blanks to fill.

use std::{collections::HashSet, fmt, str::FromStr};

use super::{ArticleId, CustomerId, Features};

/// The fewest articles of a whole outfit: models are trained on no smaller ones.
pub const MIN_ARTICLES: usize = 4;
/// The most slots of an outfit, including blanks: models are trained on no larger ones.
pub const MAX_SLOTS: usize = 8;

/// The part of the data that an outfit belongs to. Validation data is read once, at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Split {
    Train,
    Validation,
}

impl Split {
    pub fn as_str(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Validation => "validation",
        }
    }
}

impl FromStr for Split {
    type Err = OutfitError;

    fn from_str(text: &str) -> Result<Self, OutfitError> {
        match text {
            "train" => Ok(Split::Train),
            "validation" => Ok(Split::Validation),
            other => Err(OutfitError::Split(other.into())),
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An outfit has more slots than models can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an outfit has at most {MAX_SLOTS} slots, found {found}")]
pub struct TooManySlots {
    pub found: usize,
}

impl TooManySlots {
    /// # Errors
    /// If there are more than eight.
    pub fn check(found: usize) -> Result<(), Self> {
        if found > MAX_SLOTS { Err(Self { found }) } else { Ok(()) }
    }
}

/// Why an outfit is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutfitError {
    #[error("an outfit has {MIN_ARTICLES} to {MAX_SLOTS} articles, found {0}")]
    Size(usize),
    #[error("an outfit has at least one slot, found none")]
    NoSlots,
    #[error(transparent)]
    TooManySlots(#[from] TooManySlots),
    #[error("article {0:?} appears twice in the outfit")]
    Duplicate(ArticleId),
    #[error("a split is \"train\" or \"validation\", found {0:?}")]
    Split(String),
}

/// A whole outfit that a customer was given. The order of its articles means nothing; it is kept so that an
/// export writes what was imported.
#[derive(Debug, Clone, PartialEq)]
pub struct Outfit {
    pub customer: CustomerId,
    articles: Vec<ArticleId>,
    pub split: Option<Split>,
    /// Features of this outfit rather than of the customer, such as the occasion.
    pub features: Features,
}

impl Outfit {
    /// # Errors
    /// If there are fewer than four or more than eight articles, or an article appears twice.
    pub fn new(
        customer: CustomerId,
        articles: Vec<ArticleId>,
        split: Option<Split>,
        features: Features,
    ) -> Result<Self, OutfitError> {
        if !(MIN_ARTICLES..=MAX_SLOTS).contains(&articles.len()) {
            return Err(OutfitError::Size(articles.len()));
        }
        refuse_duplicates(articles.iter())?;
        Ok(Self { customer, articles, split, features })
    }

    pub fn articles(&self) -> &[ArticleId] {
        &self.articles
    }
}

/// An entry of an open outfit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    Article(ArticleId),
    Blank,
}

/// One to eight slots, some of them blank.
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
    /// # Errors
    /// If there is no slot, more than eight, or an article twice.
    pub fn new(slots: Vec<Slot>) -> Result<Self, OutfitError> {
        if slots.is_empty() {
            return Err(OutfitError::NoSlots);
        }
        TooManySlots::check(slots.len())?;
        refuse_duplicates(slots.iter().filter_map(Slot::article))?;
        Ok(Self(slots))
    }

    pub fn articles(&self) -> impl Iterator<Item = &ArticleId> {
        self.0.iter().filter_map(Slot::article)
    }

    /// Whether it is still a draft: it has blanks, or too few articles for a whole outfit.
    pub fn is_draft(&self) -> bool {
        self.0.len() < MIN_ARTICLES || self.0.contains(&Slot::Blank)
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
    pub customer: CustomerId,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> Vec<ArticleId> {
        names.iter().map(|name| ArticleId::new(name).unwrap()).collect()
    }

    fn outfit(names: &[&str]) -> Result<Outfit, OutfitError> {
        Outfit::new(CustomerId::new("c").unwrap(), ids(names), None, Features::default())
    }

    #[test]
    fn an_outfit_is_a_set_of_four_to_eight() {
        assert_eq!(outfit(&["a", "b", "c"]), Err(OutfitError::Size(3)));
        assert!(outfit(&["a", "b", "c", "d"]).is_ok());
        assert!(outfit(&["a", "b", "c", "d", "e", "f", "g", "h"]).is_ok());
        assert_eq!(outfit(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]), Err(OutfitError::Size(9)));
        assert_eq!(outfit(&["a", "b", "c", "a"]), Err(OutfitError::Duplicate(ids(&["a"])[0].clone())));
    }

    #[test]
    fn slots_may_be_blank() {
        let article = |name: &str| Slot::Article(ArticleId::new(name).unwrap());
        let slots = Slots::new(vec![article("a"), Slot::Blank, article("b"), Slot::Blank]).unwrap();
        assert_eq!(slots.blanks().collect::<Vec<_>>(), [1, 3]);
        assert!(slots.is_draft() && Slots::new(vec![article("a")]).unwrap().is_draft());
        assert!(!Slots::new(["a", "b", "c", "d"].map(article).to_vec()).unwrap().is_draft());
        assert_eq!(Slots::new(vec![]), Err(OutfitError::NoSlots));
        assert_eq!(Slots::new(vec![Slot::Blank; 9]), Err(TooManySlots { found: 9 }.into()));
        assert!(matches!(Slots::new(vec![article("a"), article("a")]), Err(OutfitError::Duplicate(_))));
    }
}
