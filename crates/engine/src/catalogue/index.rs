//! Where articles are: each has a position, by which tables have its rows and sets have its bit. Models take a catalogue in
//! this form.

use std::{cmp::Ordering, sync::Arc};

use atelier_core::{
    domain::ArticleId,
    util::{chunked::Chunked, sharded::Sharded},
};

use crate::{
    packed_article::{Directions, Offer, PackedArticle},
    release::Release,
    tables::Composition,
};

/// Articles by position, by id, and by index of a release's vocabulary.
#[derive(Debug, Clone, Default)]
pub struct ArticleIndex {
    /// None at free positions.
    entries: Chunked<Option<Entry>>,
    by_id: Sharded<ArticleId, u32>,
    by_variant: Sharded<ArticleId, u32>,
    of_vocabulary: Arc<Vec<u32>>,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The release's, if it has it written alike, and without its embedding, which takes more memory than the rest.
    pub(super) article: Arc<PackedArticle>,
    pub(super) directions: Directions,
    pub(super) composition: Composition,
}

/// The position of articles of the vocabulary that are not in the index.
const NOWHERE: u32 = u32::MAX;

impl ArticleIndex {
    /// An index with free positions only.
    pub(super) fn new(length: usize, release: &Release) -> Self {
        Self {
            entries: (0..length).map(|_| None).collect(),
            by_id: Sharded::default(),
            by_variant: Sharded::default(),
            of_vocabulary: Arc::new(vec![NOWHERE; release.vocabulary().len()]),
        }
    }

    /// The articles of a release's vocabulary, in its order.
    pub fn of_release(release: &Release) -> Self {
        let indices = 0..release.vocabulary().len();
        Self::of_vocabulary(release, indices, |index| release.compose_trained(index))
    }

    /// Some articles of a release's vocabulary.
    pub(crate) fn of_vocabulary(
        release: &Release,
        indices: impl ExactSizeIterator<Item = usize>,
        compose: impl Fn(usize) -> Composition,
    ) -> Self {
        let mut all = Self::new(indices.len(), release);
        for (position, index) in (0..).zip(indices) {
            let article = Arc::clone(&release.articles()[index]);
            let entry = Entry { article, directions: Directions::default(), composition: compose(index) };
            all.put(position, entry, false);
        }
        all
    }

    /// Puts an article at a position. Says whether what is there is made of something else now: a new price within the same
    /// range changes no row. Only an article that `is_present` in the shop is known by its variants: those of another
    /// one may be a present one's by now.
    pub(super) fn put(&mut self, position: u32, entry: Entry, is_present: bool) -> bool {
        let Entry { article, composition, .. } = &entry;
        let is_other = self.composition(position) != Some(composition);
        if let Some(own) = composition.own.filter(|own| self.of_vocabulary[*own as usize] != position) {
            Arc::make_mut(&mut self.of_vocabulary)[own as usize] = position;
        }
        if self.position_of(article.id.as_str()) != Some(position) {
            self.by_id.insert(article.id.clone(), position);
        }
        self.forget_variants(position);
        let offers = if is_present { article.offers() } else { &[] };
        for id in offers.iter().filter_map(|offer| ArticleId::new(&offer.variant.id).ok()) {
            self.by_variant.insert(id, position);
        }
        *self.entries.get_mut(position as usize) = Some(entry);
        is_other
    }

    fn forget_variants(&mut self, position: u32) {
        let Some(article) = self.article(position).cloned() else { return };
        for Offer { variant, .. } in article.offers() {
            // It may be another article's by now.
            if self.position_of_variant(&variant.id) == Some(position) {
                self.by_variant.remove(&*variant.id);
            }
        }
    }

    /// Frees the position of an article that is not of the vocabulary, and returns the article.
    pub(super) fn free(&mut self, position: u32) -> Arc<PackedArticle> {
        self.forget_variants(position);
        let entry = self.entries.get_mut(position as usize).take();
        let article = entry.expect("an article was at the position").article;
        self.by_id.remove(&article.id);
        article
    }

    /// The number of positions.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn position_of(&self, id: &str) -> Option<u32> {
        self.by_id.get(id).copied()
    }

    pub(super) fn position_of_variant(&self, id: &str) -> Option<u32> {
        self.by_variant.get(id).copied()
    }

    /// The position of an article of the vocabulary.
    pub(crate) fn position_in_vocabulary(&self, index: u32) -> Option<u32> {
        self.of_vocabulary.get(index as usize).copied().filter(|position| *position != NOWHERE)
    }

    /// The positions of the vocabulary's articles.
    pub(super) fn vocabulary(&self) -> &[u32] {
        &self.of_vocabulary
    }

    fn entry(&self, position: u32) -> Option<&Entry> {
        self.entries.get(position as usize)?.as_ref()
    }

    pub(crate) fn article(&self, position: u32) -> Option<&Arc<PackedArticle>> {
        self.entry(position).map(|entry| &entry.article)
    }

    /// How alike the embeddings of the articles at two positions are.
    pub(super) fn likeness(&self, one: u32, other: u32) -> Option<f64> {
        self.entry(one)?.directions.likeness(&self.entry(other)?.directions)
    }

    /// An article's parts.
    pub(crate) fn composition(&self, position: u32) -> Option<&Composition> {
        self.entry(position).map(|entry| &entry.composition)
    }

    /// By position; None at free ones.
    pub(crate) fn compositions(&self) -> impl Iterator<Item = Option<&Composition>> {
        self.entries.iter().map(|entry| entry.as_ref().map(|entry| &entry.composition))
    }

    /// The order of two positions whose articles are equally likely: that of their ids. After the same changes in another order,
    /// two replicas have them at different positions.
    pub(crate) fn compare(&self, one: u32, other: u32) -> Ordering {
        let id = |position: u32| self.article(position).map(|article| &article.id);
        id(one).cmp(&id(other)).then(one.cmp(&other))
    }
}

#[cfg(test)]
impl ArticleIndex {
    /// Articles with these ids, made of nothing.
    pub(crate) fn of_ids(ids: impl Iterator<Item = ArticleId>) -> Self {
        let article = |id| atelier_core::domain::Article::new(id, "coat", serde_json::Map::new()).unwrap();
        let entry = |id| Entry {
            article: Arc::new((&article(id)).into()),
            directions: Directions::default(),
            composition: Composition::default(),
        };
        Self { entries: ids.map(|id| Some(entry(id))).collect(), ..Self::default() }
    }
}
