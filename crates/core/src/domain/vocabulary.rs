//! The articles a model knows, in the order of its weights.

use std::collections::HashMap;

use super::ArticleId;

/// Article ↔ index, for one release. Models use indices; everything else uses ids.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    articles: Vec<ArticleId>,
    index: HashMap<ArticleId, u32>,
}

/// Why a vocabulary is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VocabularyError {
    #[error("a vocabulary needs at least one article")]
    Empty,
    #[error("a vocabulary contains each article once, found {0} twice")]
    Duplicate(ArticleId),
}

impl Vocabulary {
    pub fn new(articles: Vec<ArticleId>) -> Result<Self, VocabularyError> {
        if articles.is_empty() {
            return Err(VocabularyError::Empty);
        }
        let mut index = HashMap::with_capacity(articles.len());
        for (number, article) in articles.iter().enumerate() {
            let number = u32::try_from(number).expect("fewer than four billion articles");
            if index.insert(article.clone(), number).is_some() {
                return Err(VocabularyError::Duplicate(article.clone()));
            }
        }
        Ok(Self { articles, index })
    }

    pub fn len(&self) -> usize {
        self.articles.len()
    }

    /// Always false: a vocabulary has at least one article.
    pub fn is_empty(&self) -> bool {
        false
    }

    pub fn index_of(&self, article: &str) -> Option<u32> {
        self.index.get(article).copied()
    }

    pub fn article(&self, index: u32) -> Option<&ArticleId> {
        self.articles.get(index as usize)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ArticleId> {
        self.articles.iter()
    }

    /// The index of a blank: one past the articles.
    pub fn blank(&self) -> u32 {
        u32::try_from(self.articles.len()).expect("checked in new")
    }

    /// The index of a slot that the outfit does not have.
    pub fn padding(&self) -> u32 {
        self.blank() + 1
    }
}
