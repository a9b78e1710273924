//! Outfits and encoded features as indices in flat arrays.

/// All outfits, by number.
#[derive(Debug, Clone, Default)]
pub struct Outfits {
    customers: Vec<u32>,
    /// Where each outfit's articles end.
    article_ends: Vec<u32>,
    articles: Vec<u32>,
    /// Where each outfit's overrides end.
    override_ends: Vec<u32>,
    overrides: Vec<Override>,
    values: Vec<u32>,
}

/// A feature that an outfit sets itself.
#[derive(Debug, Clone, Copy)]
struct Override {
    feature: u32,
    /// The range of its values.
    start: u32,
    end: u32,
}

impl Outfits {
    /// Adds an outfit; `overrides` are the features that it sets itself, with their encoded values.
    pub(super) fn push(
        &mut self,
        customer: u32,
        articles: impl IntoIterator<Item = u32>,
        overrides: impl IntoIterator<Item = (usize, Vec<u32>)>,
    ) {
        self.customers.push(customer);
        self.articles.extend(articles);
        self.article_ends.push(to_index(self.articles.len()));
        for (feature, values) in overrides {
            let start = to_index(self.values.len());
            self.values.extend(values);
            self.overrides.push(Override {
                feature: to_index(feature),
                start,
                end: to_index(self.values.len()),
            });
        }
        self.override_ends.push(to_index(self.overrides.len()));
    }

    /// Gives each article another index.
    pub(super) fn renumber(&mut self, index: &[u32]) {
        self.articles.iter_mut().for_each(|article| *article = index[*article as usize]);
    }

    pub fn len(&self) -> usize {
        self.customers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.customers.is_empty()
    }

    pub fn customer(&self, outfit: u32) -> u32 {
        self.customers[outfit as usize]
    }

    /// The vocabulary's indices, in the file's order.
    pub fn articles(&self, outfit: u32) -> &[u32] {
        &self.articles[range(&self.article_ends, outfit)]
    }

    /// The features that the outfit sets itself: their index in the schema and their values.
    pub fn overrides(&self, outfit: u32) -> impl Iterator<Item = (usize, &[u32])> {
        self.overrides[range(&self.override_ends, outfit)]
            .iter()
            .map(|o| (o.feature as usize, &self.values[o.start as usize..o.end as usize]))
    }
}

/// Rows of encoded features: each row has any number of values for each feature.
#[derive(Debug, Clone)]
pub(super) struct FeatureTable {
    features: usize,
    /// Where each (row, feature) starts in `values`, and where the last one ends.
    starts: Vec<u32>,
    values: Vec<u32>,
}

impl FeatureTable {
    pub(super) fn new(features: usize) -> Self {
        Self { features, starts: vec![0], values: Vec::new() }
    }

    /// Adds a row with one entry per feature.
    pub(super) fn push(&mut self, row: &[Vec<u32>]) {
        assert_eq!(row.len(), self.features, "one entry per feature");
        for values in row {
            self.values.extend_from_slice(values);
            self.starts.push(to_index(self.values.len()));
        }
    }

    /// The values of one feature; empty if it is not given.
    pub(super) fn values(&self, row: u32, feature: usize) -> &[u32] {
        let cell = row as usize * self.features + feature;
        &self.values[self.starts[cell] as usize..self.starts[cell + 1] as usize]
    }
}

fn range(ends: &[u32], outfit: u32) -> std::ops::Range<usize> {
    let outfit = outfit as usize;
    let start = if outfit == 0 { 0 } else { ends[outfit - 1] };
    start as usize..ends[outfit] as usize
}

/// An index into a flat array: half the memory of `usize`, and enough for 500 million outfits.
pub(super) fn to_index(at: usize) -> u32 {
    u32::try_from(at).expect("over four billion values do not fit in this machine's memory")
}
