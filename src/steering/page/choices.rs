//! A form's suggestions: words of the catalogue, the schema and the stores, and articles with their pictures.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use atelier_core::domain::ArticleId;
use atelier_engine::catalogue::Catalogue;

use super::{fields::Fields, looks::load_articles};
use crate::{
    catalogue::{page::article_view::ArticleView, search},
    platform::http::{AppState, Problem},
};

/// About how many articles are looked at for their attributes.
const SAMPLE: usize = 2000;
/// An attribute with more values, such as a name, is no condition; neither are these.
const MOST_VALUES: usize = 300;
const NO_CONDITIONS: [&str; 3] = ["price", "variants", "image"];
/// The most values of an attribute that are suggested, the most frequent first.
const MOST_SUGGESTED: usize = 30;
/// The most chosen articles with pictures, and the most that a search shows.
const PICTURES: usize = 48;
const FOUND: usize = 24;

/// Names of conditions with their values; that of a number has none.
pub(super) type Names = BTreeMap<String, Vec<String>>;

#[derive(Default)]
pub(super) struct Choices {
    pub(super) types: Vec<String>,
    pub(super) stores: Vec<String>,
    pub(super) methods: Vec<String>,
    pub(super) attributes: Names,
    pub(super) features: Names,
    picked: HashMap<&'static str, Picked>,
}

/// The articles of a field.
pub(super) struct Picked {
    /// By their ids as the form has them; the first have a picture.
    pub(super) chosen: Vec<(String, Option<ArticleView>)>,
    /// The articles that its search found.
    pub(super) found: Vec<ArticleView>,
}

impl Choices {
    /// `fields` are those of articles.
    pub(super) async fn read(
        state: &AppState,
        form: &Fields,
        fields: &[&'static str],
    ) -> Result<Self, Problem> {
        let mut choices = Self::default();
        if let Some(live) = state.releases().current() {
            let sets = live.catalogue.sets();
            let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
            (choices.types, choices.stores) = (owned(sets.types()), owned(sets.supply().stores()));
            choices.methods = live.serving.methods().map(|method| method.to_string()).collect();
            choices.attributes = attributes(&live.catalogue);
            let features = live.serving.release().schema().features().iter();
            choices.features =
                features.map(|feature| (feature.name.clone(), feature.values.clone())).collect();
        }
        for field in fields {
            choices.picked.insert(field, Picked::read(state, form, field, &choices.types).await?);
        }
        Ok(choices)
    }

    pub(super) fn picked(&self, field: &str) -> &Picked {
        &self.picked[field]
    }
}

pub(super) fn values<'a>(names: &'a Names, name: &str) -> &'a [String] {
    names.get(name).map_or(&[], Vec::as_slice)
}

impl Picked {
    async fn read(state: &AppState, form: &Fields, field: &str, types: &[String]) -> Result<Self, Problem> {
        let chosen = form.lines(field);
        let ids = chosen.iter().take(PICTURES).filter_map(|id| ArticleId::new(id).ok());
        let ids: Vec<ArticleId> = ids.collect();
        let views = load_articles(state, ids.clone()).await?;
        let mut views: HashMap<ArticleId, ArticleView> = ids.into_iter().zip(views).collect();
        let (words, mut found) = (form.get(&format!("{field}.find")), Vec::new());
        if !words.is_empty() {
            let types: Vec<&str> = types.iter().map(String::as_str).collect();
            found = search::articles(&state.store, state.synonyms(), words, &types).await?.rows;
            found.retain(|article| !chosen.iter().any(|id| id == article.id.as_str()));
        }
        let view = |id: String| {
            let view = ArticleId::new(&id).ok().and_then(|id| views.remove(&id));
            (id, view)
        };
        let found = found.iter().take(FOUND).map(|article| ArticleView::new(article, &state.notation));
        Ok(Self { chosen: chosen.into_iter().map(view).collect(), found: found.collect() })
    }
}

/// The attributes by which articles differ.
fn attributes(catalogue: &Catalogue) -> Names {
    let present = catalogue.sets().present();
    let mut counts: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for position in present.iter().step_by(present.length() / SAMPLE + 1) {
        let Some(article) = catalogue.article(position).map(|packed| packed.unpack()) else { continue };
        for (name, value) in article.attributes() {
            let values = counts.entry(name.clone()).or_default();
            let flag = value.as_bool().map(|flag| flag.to_string());
            for word in article.words(name).map(str::to_owned).chain(flag) {
                *values.entry(word).or_default() += 1;
            }
        }
    }
    counts.retain(|name, values| values.len() <= MOST_VALUES && !NO_CONDITIONS.contains(&name.as_str()));
    let frequent = |values: BTreeMap<String, usize>| {
        let mut values: Vec<(String, usize)> = values.into_iter().collect();
        values.sort_by_key(|(_, count)| Reverse(*count));
        values.into_iter().take(MOST_SUGGESTED).map(|(value, _)| value).collect()
    };
    counts.into_iter().map(|(name, values)| (name, frequent(values))).collect()
}
