//! Facts about a customer, or about the occasion of an outfit, before encoding.

use std::{collections::BTreeMap, sync::Arc};

/// A feature's value, before a schema judges it.
#[derive(Debug, Clone, PartialEq)]
pub enum FeatureValue {
    Text(String),
    Number(f64),
    Many(Vec<String>),
}

impl FeatureValue {
    /// Its texts: one, several or none.
    pub fn words(&self) -> &[String] {
        match self {
            Self::Text(text) => std::slice::from_ref(text),
            Self::Many(words) => words,
            Self::Number(_) => &[],
        }
    }
}

/// Features by name; a feature that is not given is absent.
///
/// Every completion reads a profile and few change it, so copies share their data until one of them changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Features(Arc<BTreeMap<String, FeatureValue>>);

impl Features {
    pub fn insert(&mut self, name: impl Into<String>, value: FeatureValue) {
        Arc::make_mut(&mut self.0).insert(name.into(), value);
    }

    pub fn remove(&mut self, name: &str) -> Option<FeatureValue> {
        Arc::make_mut(&mut self.0).remove(name)
    }

    pub fn get(&self, name: &str) -> Option<&FeatureValue> {
        self.0.get(name)
    }

    /// Sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &FeatureValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These features, replaced by `nearer` where both give one: a request overrides an outfit, which overrides
    /// the profile.
    pub fn overridden_by(mut self, nearer: Features) -> Features {
        if self.is_empty() {
            return nearer;
        }
        if !nearer.is_empty() {
            Arc::make_mut(&mut self.0).extend(Arc::unwrap_or_clone(nearer.0));
        }
        self
    }
}

impl FromIterator<(String, FeatureValue)> for Features {
    fn from_iter<I: IntoIterator<Item = (String, FeatureValue)>>(iter: I) -> Self {
        Self(Arc::new(iter.into_iter().collect()))
    }
}
