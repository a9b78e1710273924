//! A data folder: its rows, and the three tables in memory as indices that models and baselines take.
//!
//! [`Folder`] reads and checks the files, row by row. [`Data::load`] makes indices of them, which go out
//! as small views: an outfit's articles, its encoded features, the numbers of the outfits of a split.
//! Profiles become indices through the domain's encoder alone. It must never know a model, a method, a
//! metric, or how the folder was made.

mod attributes;
mod features;
mod fingerprint;
mod folder;
mod load;
mod outfits;
mod split;
#[cfg(test)]
pub(crate) mod tests;

use atelier::domain::{CustomerId, Schema, Vocabulary};

pub use attributes::Attributes;
pub use folder::Folder;
pub use outfits::Outfits;

/// Articles, customers and outfits by number: the number of their row in the files.
#[derive(Debug)]
pub struct Data {
    name: String,
    schema: Schema,
    vocabulary: Vocabulary,
    types: Vec<String>,
    /// Each article's type.
    type_of: Vec<u32>,
    attributes: Attributes,
    customers: Vec<CustomerId>,
    profiles: features::FeatureTable,
    outfits: Outfits,
    splits: split::Splits,
    fingerprint: String,
}

impl Data {
    /// What the folder is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 over everything that a model can learn from: two results of one fingerprint can be
    /// compared, whatever format the files had.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// In the order of the articles' file.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The types of articles, in alphabetical order.
    pub fn types(&self) -> &[String] {
        &self.types
    }

    /// The place of an article's type among [`Data::types`].
    pub fn type_of(&self, article: u32) -> usize {
        self.type_of[article as usize] as usize
    }

    /// What articles have in common.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    pub fn customers(&self) -> &[CustomerId] {
        &self.customers
    }

    pub fn outfits(&self) -> &Outfits {
        &self.outfits
    }

    /// Puts the features that an outfit was laid for into `into`, feature by feature: what the outfit
    /// says wins over the customer's profile.
    pub fn features_of(&self, outfit: u32, into: &mut Vec<Vec<u32>>) {
        into.resize_with(self.schema.features().len(), Vec::new);
        let customer = self.outfits.customer(outfit);
        for (feature, values) in into.iter_mut().enumerate() {
            values.clear();
            values.extend_from_slice(self.profiles.values(customer, feature));
        }
        for (feature, given) in self.outfits.overrides(outfit) {
            into[feature].clear();
            into[feature].extend_from_slice(given);
        }
    }

    /// The outfits that are learned from.
    pub fn training(&self) -> &[u32] {
        &self.splits.training
    }

    /// 2 % of the training outfits, kept aside to stop and to tune by: the same for every run.
    pub fn development(&self) -> &[u32] {
        &self.splits.development
    }

    /// The outfits that are read once, at the end.
    pub fn validation(&self) -> &[u32] {
        &self.splits.validation
    }

    /// Whether this customer has an outfit outside validation.
    pub fn seen(&self, customer: u32) -> bool {
        self.splits.seen[customer as usize]
    }
}
