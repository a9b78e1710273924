//! A list whose clones share its parts: to change one item of a long list copies a short part.

use std::sync::Arc;

/// Items per part.
const PART: usize = 256;

#[derive(Debug, Clone)]
pub struct Chunked<T> {
    parts: Vec<Arc<Vec<T>>>,
    length: usize,
}

impl<T> Default for Chunked<T> {
    fn default() -> Self {
        Self { parts: Vec::new(), length: 0 }
    }
}

impl<T: Clone> Chunked<T> {
    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub fn get(&self, at: usize) -> Option<&T> {
        self.parts.get(at / PART)?.get(at % PART)
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    pub fn push(&mut self, item: T) {
        if self.length.is_multiple_of(PART) {
            self.parts.push(Arc::new(Vec::with_capacity(PART)));
        }
        let last = self.parts.last_mut().expect("a part was added");
        Arc::make_mut(last).push(item);
        self.length += 1;
    }

    /// An item to change.
    ///
    /// # Panics
    /// If there is none at this index.
    pub fn get_mut(&mut self, at: usize) -> &mut T {
        &mut Arc::make_mut(&mut self.parts[at / PART])[at % PART]
    }
}

impl<T: Clone> FromIterator<T> for Chunked<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = Self::default();
        items.into_iter().for_each(|item| list.push(item));
        list
    }
}
