//! A catalogue's articles as a release's methods take them: each has a position, and rows in the methods' tables.
//!
//! A question holds its articles, so an answer is about one state of the catalogue, whatever changes. The next state
//! shares unchanged parts with it.

use std::{collections::BTreeMap, sync::Arc};

use atelier_core::domain::{Mask, Method};

use super::{
    head::{NO_ARTICLE, Table},
    serving::Serving,
};
use crate::{
    catalogue::{ArticleIndex, UNUSED_SHARE},
    tables::{Composition, Tables},
};

/// The articles of a catalogue, for all methods of a release.
#[derive(Debug, Default)]
pub struct Articles {
    pub(super) index: ArticleIndex,
    methods: BTreeMap<Method, OfMethod>,
}

#[derive(Debug)]
struct OfMethod {
    /// The positions of articles that the method knows.
    known: Arc<Mask>,
    /// The rows of its last layer; None if its file has them.
    table: Option<Table>,
}

impl Articles {
    pub(super) fn new<'a>(
        index: ArticleIndex,
        methods: impl Iterator<Item = (Method, Option<&'a Tables>)>,
    ) -> Self {
        let of_method = |(method, tables): (Method, Option<&'a Tables>)| {
            let table = tables.map(|tables| Table::compose(tables, &index));
            let mut known = Mask::none(index.len());
            for (position, composition) in (0..).zip(index.compositions()) {
                if composition.is_some_and(|composition| is_known(tables, composition)) {
                    known.insert(position);
                }
            }
            (method, OfMethod { known: Arc::new(known), table })
        };
        Self { methods: methods.map(of_method).collect(), index }
    }

    /// The articles after changes at some positions.
    fn with_changes<'a>(
        &self,
        index: ArticleIndex,
        changed: &[u32],
        methods: impl Iterator<Item = (Method, Option<&'a Tables>)>,
    ) -> Self {
        let of_method = |(method, tables): (Method, Option<&'a Tables>)| {
            let OfMethod { known, table } = self.methods.get(&method).expect("both are of one release");
            let mut known = Arc::clone(known);
            for &position in changed {
                let composition = index.composition(position);
                let is_known = composition.is_some_and(|composition| is_known(tables, composition));
                if is_known != known.contains(position) {
                    let known = Arc::make_mut(&mut known);
                    if is_known { known.insert(position) } else { known.remove(position) }
                }
            }
            // A closed method's rows are its articles' own.
            let table = table.clone().zip(tables).map(|(table, tables)| {
                if tables.is_open() { table.with_changes(tables, &index, changed) } else { table }
            });
            (method, OfMethod { known, table })
        };
        Self { methods: methods.map(of_method).collect(), index }
    }

    /// The number of positions.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The articles that the method knows. None if the release has no such method.
    pub fn known(&self, method: Method) -> Option<&Arc<Mask>> {
        self.methods.get(&method).map(|of_method| &of_method.known)
    }

    pub(super) fn table(&self, method: Method) -> Option<&Table> {
        self.methods.get(&method)?.table.as_ref()
    }

    /// The position of an article of the vocabulary.
    pub fn position_in_vocabulary(&self, index: u32) -> Option<u32> {
        self.index.position_in_vocabulary(index)
    }

    /// Logits of the vocabulary, by position; positions of other articles have none.
    pub(super) fn by_position(&self, logits: &[f32]) -> Vec<f32> {
        let logit = |composition: Option<&Composition>| {
            let own = composition.and_then(|composition| composition.own);
            own.map_or(NO_ARTICLE, |own| logits[own as usize])
        };
        self.index.compositions().map(logit).collect()
    }
}

fn is_known(tables: Option<&Tables>, composition: &Composition) -> bool {
    tables.map_or(composition.own.is_some(), |tables| tables.knows(composition))
}

impl Serving {
    /// The articles of a catalogue as this release's methods take them.
    pub fn articles(&self, index: ArticleIndex) -> Articles {
        Articles::new(index, self.tables())
    }

    /// The bytes that an article's rows take in memory, in the last layers of all methods, with its share of unused positions.
    pub fn row_bytes(&self) -> usize {
        let rows: usize = self.tables().filter_map(|(_, tables)| tables).map(Table::row_bytes).sum();
        rows + rows / UNUSED_SHARE
    }

    /// The articles of a catalogue after changes at some positions.
    pub fn changed_articles(&self, before: &Articles, index: ArticleIndex, changed: &[u32]) -> Articles {
        before.with_changes(index, changed, self.tables())
    }
}
