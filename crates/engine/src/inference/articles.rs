//! A catalogue's articles as a release's methods take them: each has a place, and rows in the methods' tables.
//!
//! A question holds the articles that it is about, so an answer is about one state of the catalogue, whatever changes
//! meanwhile. After a change, the next state shares what stayed.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use atelier_core::{
    domain::{ArticleId, Mask, Method},
    util::chunked::Chunked,
};

use super::{
    head::{NO_ARTICLE, Table},
    serving::Serving,
};
use crate::{
    release::Release,
    tables::{Composition, Tables},
};

/// What the articles of a catalogue are made of.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// By place; None at free places.
    pub compositions: Chunked<Option<Composition>>,
    /// The articles' ids, by which equally likely ones are ordered: after the same changes in another order, two replicas have
    /// them at different places.
    pub ids: Chunked<Option<ArticleId>>,
    /// By index of the vocabulary: the article's place.
    pub of_index: Arc<Vec<u32>>,
}

impl Places {
    /// What the article at a place is made of.
    pub(super) fn get(&self, place: u32) -> Option<&Composition> {
        self.compositions.get(place as usize)?.as_ref()
    }

    /// The articles of a release's vocabulary, in its order.
    pub fn of_release(release: &Release) -> Self {
        let articles = &release.articles()[..release.vocabulary().len()];
        let compositions = (0..articles.len()).map(|index| Some(release.compose_trained(index))).collect();
        let ids = articles.iter().map(|article| Some(article.id.clone())).collect();
        Self { compositions, ids, of_index: Arc::new((0..).take(articles.len()).collect()) }
    }

    /// The first articles of a vocabulary, in its order, made of their own vectors alone.
    pub(super) fn of_vocabulary(articles: usize) -> Self {
        let indices = || (0..).take(articles);
        let composition = |index| Some(Composition { own: Some(index), ..Composition::default() });
        Self {
            compositions: indices().map(composition).collect(),
            of_index: Arc::new(indices().collect()),
            ..Self::default()
        }
    }
}

/// The articles of a catalogue, for all methods of a release.
#[derive(Debug, Default)]
pub struct Articles {
    places: Places,
    methods: BTreeMap<Method, OfMethod>,
}

#[derive(Debug)]
struct OfMethod {
    /// The places of articles that the method knows.
    known: Arc<Mask>,
    /// The rows of its last layer; None if its file has them.
    table: Option<Table>,
}

impl Articles {
    pub(super) fn new<'a>(
        places: Places,
        methods: impl Iterator<Item = (Method, Option<&'a Tables>)>,
    ) -> Self {
        let of_method = |(method, tables): (Method, Option<&'a Tables>)| {
            let table = tables.map(|tables| Table::compose(tables, &places));
            let mut known = Mask::none(places.compositions.len());
            for (place, composition) in (0..).zip(places.compositions.iter()) {
                if composition.as_ref().is_some_and(|composition| is_known(tables, composition)) {
                    known.insert(place);
                }
            }
            (method, OfMethod { known: Arc::new(known), table })
        };
        Self { methods: methods.map(of_method).collect(), places }
    }

    /// The articles after changes at some places.
    fn with_changes<'a>(
        &self,
        places: Places,
        changed: &[u32],
        methods: impl Iterator<Item = (Method, Option<&'a Tables>)>,
    ) -> Self {
        let of_method = |(method, tables): (Method, Option<&'a Tables>)| {
            let OfMethod { known, table } =
                self.methods.get(&method).expect("both are of one release; this is a bug");
            let mut known = Arc::clone(known);
            for &place in changed {
                let is_known = places.get(place).is_some_and(|composition| is_known(tables, composition));
                if is_known != known.contains(place) {
                    let known = Arc::make_mut(&mut known);
                    if is_known { known.insert(place) } else { known.remove(place) }
                }
            }
            // A closed method's rows are its articles' own.
            let table = table.clone().zip(tables).map(|(table, tables)| {
                if tables.is_open() { table.with_changes(tables, &places, changed) } else { table }
            });
            (method, OfMethod { known, table })
        };
        Self { methods: methods.map(of_method).collect(), places }
    }

    /// The number of places.
    pub fn len(&self) -> usize {
        self.places.compositions.len()
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

    /// What the article at a place is made of.
    pub(super) fn composition(&self, place: u32) -> Option<&Composition> {
        self.places.get(place)
    }

    /// The order of two places whose articles are equally likely.
    pub(super) fn compare(&self, one: u32, other: u32) -> Ordering {
        let id = |place: u32| self.places.ids.get(place as usize).and_then(Option::as_ref);
        id(one).cmp(&id(other)).then(one.cmp(&other))
    }

    /// The place of an article of the vocabulary.
    pub fn place_of(&self, index: u32) -> Option<u32> {
        self.places.of_index.get(index as usize).copied().filter(|place| (*place as usize) < self.len())
    }

    /// Logits of the vocabulary, by place; places of other articles have none.
    pub(super) fn by_place(&self, logits: &[f32]) -> Vec<f32> {
        let logit = |composition: &Option<Composition>| {
            let own = composition.as_ref().and_then(|composition| composition.own);
            own.map_or(NO_ARTICLE, |own| logits[own as usize])
        };
        self.places.compositions.iter().map(logit).collect()
    }
}

fn is_known(tables: Option<&Tables>, composition: &Composition) -> bool {
    tables.map_or(composition.own.is_some(), |tables| tables.knows(composition))
}

impl Serving {
    /// The articles of a catalogue as this release's methods take them.
    pub fn articles(&self, places: Places) -> Articles {
        Articles::new(places, self.tables())
    }

    /// The articles of a catalogue after changes at some places.
    pub fn changed_articles(&self, before: &Articles, places: Places, changed: &[u32]) -> Articles {
        before.with_changes(places, changed, self.tables())
    }
}
