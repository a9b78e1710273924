//! Outfits: sets of articles that were worn or proposed together, and outfits with blanks.

use std::{collections::HashSet, fmt, str::FromStr};

use super::{ArticleId, CustomerId, Features};

/// Fewest articles of a whole outfit: what models are trained on.
pub const MIN_ARTICLES: usize = 4;
/// Most slots of an outfit, blanks included: what models are trained on.
pub const MAX_SLOTS: usize = 8;

/// Which part of the data an outfit belongs to. Validation is read once, at the end.
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

/// Why something cannot be an outfit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutfitError {
    #[error("an outfit has {MIN_ARTICLES} to {MAX_SLOTS} articles, this one has {0}")]
    Size(usize),
    #[error("an outfit has 1 to {MAX_SLOTS} slots, this one has {0}")]
    Slots(usize),
    #[error("article {0} stands in it twice: an outfit is a set")]
    Twice(ArticleId),
    #[error("a split is \"train\" or \"validation\", not {0:?}")]
    Split(String),
}

/// A whole outfit: what a customer was given. The order of the articles carries no meaning; it is
/// kept only so that a file comes back as it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Outfit {
    pub customer: CustomerId,
    articles: Vec<ArticleId>,
    pub split: Option<Split>,
    /// What belongs to this outfit rather than to the customer, such as the occasion.
    pub features: Features,
}

impl Outfit {
    /// # Errors
    /// If there are fewer than four or more than eight articles, or one stands in it twice.
    pub fn new(
        customer: CustomerId,
        articles: Vec<ArticleId>,
        split: Option<Split>,
        features: Features,
    ) -> Result<Self, OutfitError> {
        if !(MIN_ARTICLES..=MAX_SLOTS).contains(&articles.len()) {
            return Err(OutfitError::Size(articles.len()));
        }
        refuse_twice(articles.iter())?;
        Ok(Self { customer, articles, split, features })
    }

    pub fn articles(&self) -> &[ArticleId] {
        &self.articles
    }
}

/// One place of an outfit that somebody is working on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    Article(ArticleId),
    Blank,
}

/// An outfit in the making: one to eight slots, some of them blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots(Vec<Slot>);

impl Slots {
    /// # Errors
    /// If there is no slot, more than eight, or an article twice.
    pub fn new(slots: Vec<Slot>) -> Result<Self, OutfitError> {
        if slots.is_empty() || slots.len() > MAX_SLOTS {
            return Err(OutfitError::Slots(slots.len()));
        }
        refuse_twice(slots.iter().filter_map(|slot| match slot {
            Slot::Article(id) => Some(id),
            Slot::Blank => None,
        }))?;
        Ok(Self(slots))
    }

    pub fn as_slice(&self) -> &[Slot] {
        &self.0
    }

    /// The places of the blanks.
    pub fn blanks(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, slot)| **slot == Slot::Blank).map(|(place, _)| place)
    }
}

/// An outfit that somebody wants completed, and for whom. Without a blank one more article is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenOutfit {
    pub customer: CustomerId,
    pub slots: Slots,
    /// What is known of the customer or belongs to the outfit; it wins over the profile.
    pub features: Features,
}

fn refuse_twice<'a>(articles: impl Iterator<Item = &'a ArticleId>) -> Result<(), OutfitError> {
    let mut seen = HashSet::with_capacity(MAX_SLOTS);
    for article in articles {
        if !seen.insert(article) {
            return Err(OutfitError::Twice(article.clone()));
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
        assert_eq!(outfit(&["a", "b", "c", "a"]), Err(OutfitError::Twice(ids(&["a"])[0].clone())));
    }

    #[test]
    fn slots_may_be_blank_and_know_where() {
        let article = |name: &str| Slot::Article(ArticleId::new(name).unwrap());
        let slots = Slots::new(vec![article("a"), Slot::Blank, article("b"), Slot::Blank]).unwrap();
        assert_eq!(slots.blanks().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(Slots::new(vec![]), Err(OutfitError::Slots(0)));
        assert_eq!(Slots::new(vec![Slot::Blank; 9]), Err(OutfitError::Slots(9)));
        assert!(matches!(Slots::new(vec![article("a"), article("a")]), Err(OutfitError::Twice(_))));
    }
}
