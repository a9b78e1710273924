//! Encoded profiles, one flat array for all of them.

/// Rows of encoded features: each row has, for each feature of the schema, any number of values.
#[derive(Debug, Clone)]
pub(super) struct FeatureTable {
    features: usize,
    /// Where each (row, feature) begins in `values`, and the end.
    starts: Vec<u32>,
    values: Vec<u32>,
}

impl FeatureTable {
    pub(super) fn new(features: usize) -> Self {
        Self { features, starts: vec![0], values: Vec::new() }
    }

    /// Adds a row: one entry a feature.
    pub(super) fn push(&mut self, row: &[Vec<u32>]) {
        assert_eq!(row.len(), self.features, "one entry a feature of the schema; this is a bug");
        for values in row {
            self.values.extend_from_slice(values);
            self.starts.push(super::outfits::place(self.values.len()));
        }
    }

    /// The values of one feature; empty where it is not given.
    pub(super) fn values(&self, row: u32, feature: usize) -> &[u32] {
        let cell = row as usize * self.features + feature;
        &self.values[self.starts[cell] as usize..self.starts[cell + 1] as usize]
    }
}
