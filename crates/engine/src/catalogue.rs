//! The catalogue: the shop's articles, and those of the release that the shop no longer has.
//!
//! Built from the database's articles and a release. It is immutable: a change in the database makes a new catalogue, which shares
//! unchanged parts with the old one. An [`ArticleIndex`] knows the articles' positions, [`Sets`] which of the shop's articles pass a
//! filter, and `panels` which positions are free.
//!
//! Must not know HTTP, SQL or models.

mod index;
mod panels;
mod sets;
mod supply;

use std::{
    borrow::Borrow,
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::Arc,
};

use atelier_core::domain::{Article, ArticleId, Synonyms};
use rayon::prelude::*;

pub(crate) use self::panels::UNUSED_SHARE;
pub use self::{
    index::ArticleIndex,
    sets::{NoGos, RuledOut, Sets},
    supply::{Choice, Needs, Supply, Unfit, Wanted},
};
use self::{index::Entry, panels::Panels, sets::Facts};
use crate::{
    packed_article::{Directions, PackedArticle},
    release::Release,
};

/// How the articles of a catalogue and of a release overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coverage {
    pub both: usize,
    /// Articles that the release was not trained with.
    pub only_catalogue: usize,
    /// Articles that the shop does not have.
    pub only_release: usize,
}

#[derive(Debug, Clone)]
pub struct Catalogue {
    index: ArticleIndex,
    panels: Panels,
    sets: Sets,
}

/// An article that is about to get a position.
#[derive(Debug)]
struct Prepared {
    entry: Entry,
    facts: Facts,
}

impl Prepared {
    /// An article of the shop. `trained` are its values in training, if they are at hand.
    fn new(article: &Article, trained: Option<&[u32]>, release: &Release, sets: &Sets) -> Self {
        let packed = PackedArticle::from(article).without_embedding();
        let own = release.vocabulary().index_of(article.id.as_str());
        let of_release = own.map(|own| &release.articles()[own as usize]);
        // Most articles are in the shop as they were in training.
        let is_alike = |other: &&Arc<PackedArticle>| other.json().get() == packed.json().get();
        let packed = of_release.filter(is_alike).cloned().unwrap_or_else(|| Arc::new(packed));
        let composition = match trained {
            Some(trained) => release.compose_beside(article, own, Some(trained)),
            None => release.compose(article),
        };
        let directions = Directions::new(article.embedding());
        Self { entry: Entry { article: packed, directions, composition }, facts: sets.read(article) }
    }

    fn kind(&self) -> &str {
        self.entry.article.kind()
    }

    /// Articles of one group are neighbours.
    fn group(&self) -> (&str, &[Vec<String>]) {
        (self.kind(), self.facts.required())
    }

    /// An article of the release, as it was in training.
    fn of_release(index: usize, release: &Release, sets: &Sets) -> Self {
        let article = Arc::clone(&release.articles()[index]);
        let unpacked = article.unpack();
        let composition = release.compose_unpacked(index, &unpacked);
        let directions = Directions::new(unpacked.embedding());
        Self { entry: Entry { article, directions, composition }, facts: sets.read(&unpacked) }
    }
}

/// Collects the articles of a catalogue.
#[derive(Debug)]
pub struct CatalogueBuilder {
    /// Without articles.
    sets: Sets,
    /// The articles that the models know, until the shop's are added.
    known: Vec<Option<Prepared>>,
    /// The shop's.
    articles: Vec<Prepared>,
}

impl CatalogueBuilder {
    /// `currency` is the shop's: limits of prices are in it. Without one, all prices count as of one currency.
    pub fn new(release: &Release, currency: Option<Arc<str>>, synonyms: Arc<Synonyms>) -> Self {
        let sets = Sets::new(release.schema(), currency, synonyms);
        let prepare = |index| Some(Prepared::of_release(index, release, &sets));
        let known: Vec<_> = (0..release.vocabulary().len()).into_par_iter().map(prepare).collect();
        release.set_averages(known.iter().flatten().map(|known| &*known.entry.composition.values));
        Self { sets, known, articles: Vec::new() }
    }

    /// Adds an article of the shop by the JSON of its attributes, if the release has it written alike.
    pub fn add_known(&mut self, id: &str, kind: &str, attributes: &str, release: &Release) -> bool {
        let Some(own) = release.vocabulary().index_of(id) else { return false };
        let found =
            self.known[own as usize].take_if(|known| known.entry.article.is_written_as(kind, attributes));
        let is_known = found.is_some();
        self.articles.extend(found);
        is_known
    }

    /// Adds articles of the shop, which are dropped one by one: their text, which is kept, takes far less memory.
    pub fn add<A: Borrow<Article>, E: Send>(
        &mut self,
        articles: impl ParallelIterator<Item = Result<A, E>>,
        release: &Release,
    ) -> Result<(), E> {
        let prepare = |article: Result<A, E>| {
            let article = article?;
            let article: &Article = article.borrow();
            let own = release.vocabulary().index_of(article.id.as_str());
            let known = own.and_then(|own| self.known[own as usize].as_ref());
            let trained = known.map(|known| &*known.entry.composition.values);
            Ok(Prepared::new(article, trained, release, &self.sets))
        };
        let prepared: Vec<Prepared> = articles.map(prepare).collect::<Result<_, E>>()?;
        self.articles.extend(prepared);
        Ok(())
    }

    pub fn build(self, release: &Release) -> Catalogue {
        let Self { sets, known, articles } = self;
        let mut is_in_shop = vec![false; release.vocabulary().len()];
        for own in articles.iter().filter_map(|article| article.entry.composition.own) {
            is_in_shop[own as usize] = true;
        }
        let gone = known.into_iter().zip(is_in_shop).filter(|(_, is_in_shop)| !is_in_shop);
        let mut all: Vec<(Prepared, bool)> =
            gone.filter_map(|(article, _)| Some((article?, false))).collect();
        all.extend(articles.into_iter().map(|article| (article, true)));
        let all = sort_into_groups(all);
        let of_types = all.chunk_by(|(a, _), (b, _)| a.kind() == b.kind());
        let mut panels = Panels::new(of_types.map(<[_]>::len));
        let length = panels.length();
        let (mut present, mut placed) = (Vec::with_capacity(all.len()), Vec::with_capacity(all.len()));
        for (Prepared { entry, facts }, is_present) in all {
            let position = panels.take(entry.article.kind()).expect("there is room");
            placed.push((position, entry, is_present));
            if is_present {
                present.push((position, facts));
            }
        }
        let mut index = ArticleIndex::new(length, release);
        let ((), sets) = rayon::join(
            || {
                for (position, entry, is_present) in placed {
                    index.put(position, entry, is_present);
                }
            },
            || sets.fill(length, &present),
        );
        // Freeing all these texts takes a core half a second, which no request has to wait for.
        rayon::spawn(|| drop(present));
        Catalogue { index, panels, sets }
    }
}

/// By type, then by what customers' features require of articles, in the schema's order, so that what fits a customer's first
/// requirement, such as the gender, is in few panels; then as in the vocabulary, then by id.
fn sort_into_groups(articles: Vec<(Prepared, bool)>) -> Vec<(Prepared, bool)> {
    let mut groups: Vec<_> =
        articles.iter().map(|(article, _)| article.group()).collect::<HashSet<_>>().into_iter().collect();
    groups.sort_unstable();
    let ranks: HashMap<_, usize> = groups.into_iter().zip(0..).collect();
    // Numbers are compared faster than texts, and moved faster than articles.
    let key = |(at, (article, _)): (usize, &(Prepared, bool))| {
        (ranks[&article.group()], article.entry.composition.own.unwrap_or(u32::MAX), at)
    };
    let mut order: Vec<(usize, u32, usize)> = articles.iter().enumerate().map(key).collect();
    order.par_sort_unstable_by(|a, b| {
        let id = |at: usize| &articles[at].0.entry.article.id;
        (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| id(a.2).cmp(id(b.2)))
    });
    let order: Vec<usize> = order.into_iter().map(|(_, _, at)| at).collect();
    let mut articles: Vec<Option<_>> = articles.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| articles[at].take()).collect()
}

impl Catalogue {
    /// `articles` are the shop's, without synonyms.
    pub fn build(articles: &[Article], release: &Release) -> Self {
        Self::build_with(articles, release, Arc::default())
    }

    pub fn build_with(articles: &[Article], release: &Release, synonyms: Arc<Synonyms>) -> Self {
        let mut builder = CatalogueBuilder::new(release, None, synonyms);
        let Ok(()) = builder.add(articles.par_iter().map(Ok::<_, Infallible>), release);
        builder.build(release)
    }

    /// The catalogue after changes: each article as it is now, or None if the shop no longer has it. Also the positions whose
    /// articles are made of something else now. None if there is no room for all new articles.
    pub fn with_changes(
        &self,
        changes: impl IntoIterator<Item = (ArticleId, Option<Article>)>,
        release: &Release,
    ) -> Option<(Self, Vec<u32>)> {
        let mut next = self.clone();
        let mut touched = Vec::new();
        for (id, article) in changes {
            let position = next.index.position_of(id.as_str());
            if let Some((position, before)) = position.and_then(|at| Some((at, next.article(at)?))) {
                let facts = next.sets.read(&before.unpack());
                next.sets.remove(position, &facts);
            }
            let own = release.vocabulary().index_of(id.as_str());
            let is_present = article.is_some();
            let prepared = match (article, own) {
                (Some(article), _) => Prepared::new(&article, None, release, &self.sets),
                // A visible article of an outfit may be one that the shop no longer has.
                (None, Some(own)) => Prepared::of_release(own as usize, release, &self.sets),
                (None, None) => {
                    if let Some(position) = position {
                        let gone = next.index.free(position);
                        next.panels.give_back(gone.kind(), position);
                        touched.push(position);
                    }
                    continue;
                }
            };
            let position = position.or_else(|| next.panels.take(prepared.kind()))?;
            if is_present {
                next.sets.add(position, &prepared.facts);
            }
            if next.index.put(position, prepared.entry, is_present) {
                touched.push(position);
            }
        }
        Some((next, touched))
    }

    /// About how many bytes an article of the shop has as JSON, by a sample.
    pub fn estimate_bytes(&self) -> usize {
        const SAMPLE: usize = 256;
        let present = self.sets.present();
        let sample = present.iter().step_by((present.count() / SAMPLE).max(1));
        let bytes: Vec<usize> = sample.filter_map(|at| Some(self.article(at)?.json().get().len())).collect();
        bytes.iter().sum::<usize>() / bytes.len().max(1)
    }

    /// None if the shop does not have it.
    pub fn article(&self, position: u32) -> Option<&Arc<PackedArticle>> {
        self.index.article(position).filter(|_| self.sets.present().contains(position))
    }

    /// An article of the shop or of the release.
    pub fn any_article(&self, position: u32) -> Option<&Arc<PackedArticle>> {
        self.index.article(position)
    }

    /// How alike the embeddings of the articles at two positions are, from -1 to 1. None if they have no list in common.
    pub fn likeness(&self, one: u32, other: u32) -> Option<f64> {
        self.index.likeness(one, other)
    }

    /// The position of an article of the shop or of the release, by its id or a variant's. The shop's comes first: a release
    /// may have been trained with the variants as articles.
    pub fn position_of(&self, id: &str) -> Option<u32> {
        let own = self.index.position_of(id);
        if own.is_some_and(|own| self.sets.present().contains(own)) {
            return own;
        }
        self.index.position_of_variant(id).or(own)
    }

    /// Whether the article at a position is one that the release was not trained with.
    pub fn is_new(&self, position: u32) -> bool {
        self.index.composition(position).is_some_and(|composition| composition.own.is_none())
    }

    pub fn index(&self) -> &ArticleIndex {
        &self.index
    }

    /// The sets of the shop's articles.
    pub fn sets(&self) -> &Sets {
        &self.sets
    }

    /// Whether there are articles, and the release was trained with none of them.
    pub fn is_all_new(&self) -> bool {
        let present = self.sets.present();
        !present.is_empty() && !self.index.vocabulary().iter().any(|position| present.contains(*position))
    }

    pub fn coverage(&self) -> Coverage {
        let (present, vocabulary) = (self.sets.present(), self.index.vocabulary());
        let both = vocabulary.iter().filter(|position| present.contains(**position)).count();
        Coverage { both, only_catalogue: present.count() - both, only_release: vocabulary.len() - both }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{
        panels::{LEAST_UNUSED, PANEL},
        *,
    };
    use atelier_core::domain::{FeatureValue, Features, Mask, Schema};

    fn article(id: &str, kind: &str, attributes: Value) -> Article {
        let Value::Object(attributes) = attributes else { panic!("attributes are an object") };
        Article::new(ArticleId::new(id).unwrap(), kind, attributes).unwrap()
    }

    const SCHEMA: &str = "name = \"s\"\n[[feature]]\nname = \"avoids\"\nkind = \"set\"\nvalues = [\"wool\", \"fur\"]\n\
         excludes = \"material\"\n";

    fn release(articles: &[Article], schema: &str) -> Release {
        let manifest = json!({
            "format": 2, "name": "r", "created": "", "commands": [], "data": {"name": "", "fingerprint": ""},
            "schema": "", "articles": "", "default_method": "none", "methods": [], "files": {}
        });
        let manifest = serde_json::from_value(manifest).unwrap();
        let schema = Schema::parse(schema).unwrap();
        Release::assemble("r".as_ref(), manifest, schema, articles, None).unwrap()
    }

    fn ids(catalogue: &Catalogue, mask: &Mask) -> Vec<String> {
        mask.iter().map(|position| catalogue.article(position).unwrap().id.to_string()).collect()
    }

    fn sorted_ids(catalogue: &Catalogue, mask: &Mask) -> Vec<String> {
        let mut ids = ids(catalogue, mask);
        ids.sort_unstable();
        ids
    }

    #[test]
    fn a_type_for_each_article_takes_little_room() {
        let release = release(&[article("other", "boot", json!({}))], SCHEMA);
        let all: Vec<_> =
            (0..2300).map(|n| article(&format!("a-{n}"), &format!("t{n}"), json!({}))).collect();
        let catalogue = Catalogue::build(&all[..2000], &release);
        let rest = all[2000..].iter().map(|article| (article.id.clone(), Some(article.clone())));
        let (catalogue, _) = catalogue.with_changes(rest, &release).unwrap();
        assert!(catalogue.index.len() < 300 * PANEL, "{}", catalogue.index.len());
        for own in &all {
            let of_type = catalogue.sets.of_type(own.kind()).unwrap();
            assert_eq!(ids(&catalogue, &of_type), [own.id.as_str()]);
        }
        let (one, _) = catalogue.with_changes([(all[2250].id.clone(), None)], &release).unwrap();
        assert!(one.with_changes([(all[2250].id.clone(), Some(all[2250].clone()))], &release).is_some());
    }

    #[test]
    fn words_beyond_the_most_are_excluded_by_every_no_go() {
        let release = release(&[article("other", "boot", json!({}))], SCHEMA);
        // Without digits, which are words of their own.
        let letters =
            |n: usize| n.to_string().bytes().map(|digit| char::from(digit + 49)).collect::<String>();
        let word = |n, word| format!("{}x{}", letters(n), letters(word));
        let words = |n: usize| (0..250).map(|number| word(n, number)).collect::<Vec<_>>();
        let mut all: Vec<_> =
            (0..250).map(|n| article(&format!("a-{n:03}"), "coat", json!({"material": words(n)}))).collect();
        all.push(article("silk", "coat", json!({"material": word(0, 0)})));
        let catalogue = Catalogue::build(&all, &release);
        let kept = catalogue.sets.facets()["material"].len();
        assert!((49_000..=50_000).contains(&kept), "{kept}");
        let features: Features =
            [("avoids".to_owned(), FeatureValue::Many(vec!["fur".to_owned()]))].into_iter().collect();
        let no_gos = NoGos::new(release.schema(), &features, &catalogue.sets);
        let excluded =
            |catalogue: &Catalogue| sorted_ids(catalogue, &catalogue.sets.ruled_out(&no_gos).articles);
        // Some words are the same without their plurals.
        let before = excluded(&catalogue).len();
        assert!((45..=50).contains(&before), "{before}");
        let plain = article("a-249", "coat", json!({"material": word(0, 0)}));
        let (catalogue, _) = catalogue.with_changes([(plain.id.clone(), Some(plain))], &release).unwrap();
        assert_eq!(excluded(&catalogue).len(), before - 1);
    }

    #[test]
    fn articles_are_grouped_into_sets() {
        let of_release = ["d", "c", "b", "a", "gone"].map(|id| article(id, "boot", json!({})));
        let release = release(&of_release, SCHEMA);
        let articles = [
            article("a", "coat", json!({"price": 100, "material": ["wool", "silk"], "in_stock": true})),
            article("b", "coat", json!({"price": 50.5, "material": "fur", "in_stock": 0})),
            article("c", "boot", json!({"in_stock": 3})),
            article("d", "boot", json!({"price": 10})),
            article("new", "hat", json!({"material": "Felt"})),
        ];
        let catalogue = Catalogue::build(&articles, &release);
        let (sets, ids) = (&catalogue.sets, |mask: &Mask| ids(&catalogue, mask));
        // By type, then in the vocabulary's order.
        assert_eq!(ids(sets.present()), ["d", "c", "b", "a", "new"]);
        assert_eq!(sets.present().iter().collect::<Vec<_>>(), [0, 1, 32, 33, 64]);
        assert_eq!(sets.types(), ["boot", "coat", "hat"]);
        for (kind, expected) in [("coat", &["b", "a"][..]), ("COAT", &["b", "a"]), ("hat", &["new"])] {
            assert_eq!(ids(&sets.of_type(kind).unwrap()), expected, "{kind}");
        }
        assert_eq!(ids(sets.out_of_stock()), ["b"]);
        assert_eq!(ids(&sets.priced(Some(20.0), None)), ["b", "a"]);
        assert_eq!(ids(&sets.priced(None, Some(50.5))), ["d", "b"]);
        let avoids = FeatureValue::Many(vec![" Wool / Plastic".into(), "felt".into()]);
        let features: Features = [("avoids".to_owned(), avoids)].into_iter().collect();
        let ruled_out = sets.ruled_out(&NoGos::new(release.schema(), &features, sets));
        assert_eq!(ids(&ruled_out.articles), ["a", "new"]);
        assert_eq!(ruled_out.unmatched, [("material".to_owned(), "plastic".to_owned())]);
        assert_eq!(catalogue.coverage(), Coverage { both: 4, only_catalogue: 1, only_release: 1 });
        let gone = catalogue.position_of("gone").unwrap();
        assert!(catalogue.article(gone).is_none() && !catalogue.is_new(gone));
        assert_eq!(catalogue.any_article(gone).unwrap().kind(), "boot");
        assert!(catalogue.is_new(catalogue.position_of("new").unwrap()));
        assert_eq!(catalogue.index.vocabulary(), [0, 1, 32, 33, gone]);
        assert_eq!(catalogue.index.len(), (3 + LEAST_UNUSED) * PANEL);
        assert_eq!(catalogue.position_of("nowhere"), None);
    }

    #[test]
    fn an_article_with_an_embedding_is_kept_once() {
        let of_release = [article("a", "coat", json!({"colour": "red"}))];
        let schema = "name = \"s\"\n[[feature]]\nname = \"avoids\"\nkind = \"set\"\nvalues = [\"red\"]\n";
        let release = release(&of_release, schema);
        let own = |id: &str, list: Value| {
            article(id, "coat", json!({"colour": "red", "embedding": {"image": list}}))
        };
        let catalogue = Catalogue::build(&[own("a", json!([3, 4])), own("b", json!([6, 8]))], &release);
        let at = |id: &str| catalogue.position_of(id).unwrap();
        assert!(Arc::ptr_eq(catalogue.article(at("a")).unwrap(), &release.articles()[0]));
        assert!(catalogue.likeness(at("a"), at("b")).is_some_and(|alike| alike > 0.99));
        let change = (ArticleId::new("a").unwrap(), Some(own("a", json!([-4, 3]))));
        let (changed, _) = catalogue.with_changes([change], &release).unwrap();
        assert!(Arc::ptr_eq(changed.article(at("a")).unwrap(), &release.articles()[0]));
        assert!(changed.likeness(at("a"), at("b")).is_some_and(|alike| alike.abs() < 0.01));
    }

    /// A catalogue's contents, by ids instead of positions.
    fn describe(catalogue: &Catalogue) -> Value {
        let mut all = Vec::new();
        for position in 0..u32::try_from(catalogue.index.len()).unwrap() {
            let Some(article) = catalogue.any_article(position) else { continue };
            assert_eq!(catalogue.position_of(article.id.as_str()), Some(position));
            let own = catalogue.index.composition(position).unwrap().own;
            assert!(own.is_none_or(|own| catalogue.index.vocabulary()[own as usize] == position));
            all.push((article.id.to_string(), article.unpack(), own, catalogue.article(position).is_some()));
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let (sets, ids) = (&catalogue.sets, |mask: &Mask| sorted_ids(catalogue, mask));
        let words: BTreeMap<_, BTreeMap<_, _>> = sets
            .facets()
            .into_iter()
            .map(|(attribute, words)| {
                let with = words.into_iter().map(|word| (word, ids(&sets.with_word(attribute, word))));
                (attribute, with.collect())
            })
            .collect();
        let variants = (0..60).flat_map(|number| {
            (0..4).map(move |version| format!("v-{number}-{version}")).chain([format!("v-{number}")])
        });
        let articles_of_variants: BTreeMap<_, _> = variants
            .filter_map(|id| {
                let at = catalogue.position_of(&id)?;
                Some((id, catalogue.article(at).unwrap().id.to_string()))
            })
            .collect();
        let given = ["top", "width"].map(|name| (name.to_owned(), FeatureValue::Text("M".into())));
        let (supply, length) = (sets.supply(), catalogue.index.len());
        let needs = supply.needs(&given.into_iter().collect());
        let sold_out = [None, Some("a"), Some("b")]
            .map(|store| [Some(&needs), None].map(|needs| ids(&supply.sold_out(needs, store, length))));
        let of_types: Vec<_> =
            sets.types().into_iter().map(|kind| ids(&sets.of_type(kind).unwrap())).collect();
        json!({
            "all": all, "present": ids(sets.present()), "stock": ids(sets.out_of_stock()), "words": words,
            "priced": ids(&sets.priced(Some(2.0), None)), "types": sets.types(), "of_types": of_types,
            "coverage": format!("{:?}", catalogue.coverage()), "of_variants": articles_of_variants,
            "unfit": ids(&supply.unfit(&needs, length).articles), "sold_out": sold_out, "store": supply.has_store("a"),
        })
    }

    proptest! {
        #[test]
        fn changes_give_the_catalogue_that_is_built_anew(
            changes in prop::collection::vec((0u8..60, 0u8..50, 0u8..6), 1..150),
            together in 1usize..20,
        ) {
            let schema = r#"
                name = "s"
                feature = [
                    {name = "avoids", kind = "set", values = ["red"], excludes = "colour"},
                    {name = "top", kind = "category", values = ["M"], requires = {attribute = "sizes"}},
                    {name = "width", kind = "set", values = ["M"], requires = [
                        {attribute = "sizes", types = ["coat"]}, {attribute = "colour", types = ["boot"], values = {M = "red"}},
                    ]},
                ]
            "#;
            let sizes = [json!("S"), json!(["M", "L"]), json!(["S/M"]), json!(["One Size"]), Value::Null];
            let stocks = [
                Value::Null,
                json!(0),
                json!({"M": 0, "L": 2}),
                json!([{"size": "M", "store": "a", "count": 1}, {"store": "b", "count": 0}]),
                json!([{"count": 1}, {"size": "S", "store": "b", "count": 1}]),
            ];
            let made = |number: u8, version: u8| {
                let at = usize::from(version);
                let colour = ["red", "blue", "green / red"][at % 3];
                let in_stock = &[json!(true), json!(false), json!("perhaps")][at % 3];
                let variants = json!([{"id": format!("v-{number}-{}", version % 4)}, {"id": format!("v-{number}")}]);
                let attributes = json!({
                    "price": version, "colour": colour, "sizes": sizes[at % 5], "in_stock": in_stock, "stock": stocks[at / 5 % 5],
                    "variants": at.is_multiple_of(2).then_some(variants),
                });
                article(&format!("a-{number}"), ["boot", "coat"][usize::from(number + version) % 2], attributes)
            };
            let of_release: Vec<Article> = (0..20).map(|number| made(number, 0)).collect();
            let release = release(&of_release, schema);
            let mut shop: BTreeMap<u8, Article> = (10..40).map(|number| (number, made(number, 1))).collect();
            let articles: Vec<Article> = shop.values().cloned().collect();
            let mut catalogue = Catalogue::build(&articles, &release);
            for changes in changes.chunks(together) {
                let change = |(number, version, what): &(u8, u8, u8)| {
                    let article = (*what > 1).then(|| made(*number, *version));
                    match &article {
                        Some(article) => shop.insert(*number, article.clone()),
                        None => shop.remove(number),
                    };
                    (ArticleId::new(format!("a-{number}")).unwrap(), article)
                };
                let changes: Vec<_> = changes.iter().map(change).collect();
                let before = describe(&catalogue);
                let (next, touched) = catalogue.with_changes(changes, &release).unwrap();
                prop_assert_eq!(describe(&catalogue), before);
                for position in (0..u32::try_from(next.index.len()).unwrap()).filter(|at| !touched.contains(at)) {
                    prop_assert_eq!(next.index.composition(position), catalogue.index.composition(position));
                }
                catalogue = next;
            }
            let articles: Vec<Article> = shop.into_values().collect();
            prop_assert_eq!(describe(&catalogue), describe(&Catalogue::build(&articles, &release)));
        }
    }

    /// An article of very many words takes little memory, and no no-go lets it pass.
    #[test]
    fn an_article_that_says_everything_is_excluded() {
        let release = release(&[article("z", "hat", json!({}))], SCHEMA);
        let many: Vec<String> = (0..10_000).map(|n| format!("m{n}")).collect();
        let articles = [
            article("a", "coat", json!({"material": many, "price": 1})),
            article("b", "coat", json!({"material": "m".repeat(3000)})),
            article("c", "coat", json!({"material": "silk"})),
        ];
        let catalogue = Catalogue::build(&articles, &release);
        let excluded = |word: &str| {
            let features = [("avoids".to_owned(), FeatureValue::Text(word.into()))].into_iter().collect();
            let found =
                catalogue.sets.ruled_out(&NoGos::new(release.schema(), &features, &catalogue.sets)).articles;
            sorted_ids(&catalogue, &found)
        };
        assert_eq!(excluded("wool"), ["a", "b"]);
        assert_eq!(excluded("silk"), ["a", "b", "c"]);
        assert_eq!(catalogue.sets.facets()["material"], ["silk"]);
    }

    #[test]
    fn a_full_catalogue_is_built_anew() {
        let schema = "name = \"s\"\n[[feature]]\nname = \"age\"\nkind = \"number\"\nedges = [1]\n";
        let release = release(&[article("a", "boot", json!({}))], schema);
        let mut catalogue = Catalogue::build(&[], &release);
        let mut added = 1;
        loop {
            let new = article(&format!("b-{added}"), "boot", json!({}));
            let Some((next, changed)) = catalogue.with_changes([(new.id.clone(), Some(new))], &release)
            else {
                break;
            };
            assert_eq!(changed.len(), 1);
            (catalogue, added) = (next, added + 1);
        }
        assert_eq!(added, PANEL * (1 + LEAST_UNUSED));
        assert_eq!(catalogue.sets.present().count(), added - 1);
    }
}
