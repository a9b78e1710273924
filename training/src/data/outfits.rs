//! Outfits as indices, flat.

/// All outfits of the data, by number.
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

/// One feature that an outfit gives itself.
#[derive(Debug, Clone, Copy)]
struct Override {
    feature: u32,
    /// Where its values lie.
    start: u32,
    end: u32,
}

impl Outfits {
    /// Adds an outfit; `overrides` are the features that it gives itself, with their encoded values.
    pub(super) fn push(
        &mut self,
        customer: u32,
        articles: impl IntoIterator<Item = u32>,
        overrides: impl IntoIterator<Item = (usize, Vec<u32>)>,
    ) {
        self.customers.push(customer);
        self.articles.extend(articles);
        self.article_ends.push(place(self.articles.len()));
        for (feature, values) in overrides {
            let start = place(self.values.len());
            self.values.extend(values);
            self.overrides.push(Override { feature: place(feature), start, end: place(self.values.len()) });
        }
        self.override_ends.push(place(self.overrides.len()));
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

    /// The features that the outfit gives itself: their places in the schema and their values.
    pub fn overrides(&self, outfit: u32) -> impl Iterator<Item = (usize, &[u32])> {
        self.overrides[range(&self.override_ends, outfit)]
            .iter()
            .map(|o| (o.feature as usize, &self.values[o.start as usize..o.end as usize]))
    }
}

fn range(ends: &[u32], outfit: u32) -> std::ops::Range<usize> {
    let outfit = outfit as usize;
    let start = if outfit == 0 { 0 } else { ends[outfit - 1] };
    start as usize..ends[outfit] as usize
}

/// A place in a flat array. Half the memory of `usize`, and enough for 500 million outfits.
pub(super) fn place(at: usize) -> u32 {
    u32::try_from(at).expect("over four billion values do not fit in this machine's memory; this is a bug")
}
