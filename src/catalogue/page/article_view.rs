//! An article as pages show it.

use std::collections::HashMap;

use atelier_core::{
    domain::{Article, ArticleId, fold},
    util::notation::Notation,
};

use super::pictures;
use crate::{
    platform::http::{AppState, Problem},
    releases::LiveRelease,
};

/// An article for the macros of `parts/article.html`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArticleView {
    pub(crate) id: String,
    /// Its name, or its attributes if it has none.
    pub(crate) name: String,
    /// Its type, such as `trench coat`.
    pub(crate) kind: String,
    /// Brand, colour and material, except those that the name contains.
    pub(crate) about: String,
    pub(crate) price: Option<String>,
    pub(crate) picture: String,
    /// The drawing that takes the place of a photo that cannot be loaded.
    pub(crate) drawing: Option<String>,
    pub(crate) in_stock: bool,
    /// Whether the live release was not trained with it. Only the studio says so.
    pub(crate) is_new: bool,
}

impl ArticleView {
    pub(crate) fn new(article: &Article, notation: &Notation) -> Self {
        let price = article.price().map(|price| notation.price(price, currency(article)));
        Self { price, ..Self::without_price(article) }
    }

    /// For pages that show no prices.
    pub(crate) fn without_price(article: &Article) -> Self {
        let first = |name: &str| article.words(name).next().map(str::to_owned);
        let (photo, drawing) = (pictures::photo_of(article), pictures::drawing_of(article));
        let kind = article.kind().replace('-', " ");
        let name = first("name").unwrap_or_else(|| {
            let words = [first("colour"), first("material"), Some(kind.clone())];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        });
        let folded_name = fold(&name);
        let about = ["brand", "colour", "material"].into_iter().filter_map(first);
        let about: Vec<String> = about.filter(|word| !folded_name.contains(&fold(word))).collect();
        Self {
            id: article.id.to_string(),
            name,
            about: about.join(", "),
            price: None,
            picture: photo.map_or_else(|| drawing.clone(), str::to_owned),
            drawing: photo.is_some().then_some(drawing),
            in_stock: article.in_stock(),
            is_new: false,
            kind,
        }
    }

    /// The article from the live release's catalogue or, if it has left the shop, from the release itself; without its
    /// price.
    pub(crate) fn from_live_release(live: &LiveRelease, id: &ArticleId) -> Self {
        let article =
            live.catalogue.position_of(id.as_str()).and_then(|place| live.catalogue.any_article(place));
        article.map_or_else(|| Self::gone(id), |article| Self::without_price(&article.unpack()))
    }

    /// Marks it as new if the live release was not trained with it.
    pub(crate) fn marked(self, live: &LiveRelease) -> Self {
        let is_new = live.serving.release().vocabulary().index_of(&self.id).is_none();
        Self { is_new, ..self }
    }

    /// An article that has left the catalogue, as it was.
    pub(crate) fn removed(article: &Article) -> Self {
        let view = Self::without_price(article);
        Self { name: format!("{} (no longer in the catalogue)", view.name), in_stock: true, ..view }
    }

    /// A placeholder for an article that has left the catalogue.
    pub(crate) fn gone(id: &ArticleId) -> Self {
        Self {
            id: id.to_string(),
            name: "no longer in the catalogue".into(),
            kind: "article".into(),
            about: String::new(),
            price: None,
            picture: "/pictures/article.svg".to_owned(),
            drawing: None,
            // Its name says enough.
            in_stock: true,
            is_new: false,
        }
    }
}

/// Loads the articles with these ids, in their order. Articles that have left the catalogue are marked as such.
pub(crate) async fn load(state: &AppState, ids: &[ArticleId]) -> Result<Vec<ArticleView>, Problem> {
    let articles = state.store.articles().get_many(ids).await?;
    Ok(views(ids, &articles, &state.notation))
}

/// The articles with these ids, in their order, from those that were found.
pub(crate) fn views(ids: &[ArticleId], found: &[Article], notation: &Notation) -> Vec<ArticleView> {
    let by_id: HashMap<&ArticleId, &Article> = found.iter().map(|article| (&article.id, article)).collect();
    let view = |id| {
        by_id.get(id).map_or_else(|| ArticleView::gone(id), |article| ArticleView::new(article, notation))
    };
    ids.iter().map(view).collect()
}

/// The sum of the prices, if each article has one, in the same currency.
pub(crate) fn total<'a>(
    articles: impl IntoIterator<Item = &'a Article>,
    notation: &Notation,
) -> Option<String> {
    let mut sum: Option<(f64, &str)> = None;
    for article in articles {
        let (price, its) = (article.price()?, notation.currency(currency(article)));
        sum = match sum {
            None => Some((price, its)),
            Some((sum, currency)) if currency == its => Some((sum + price, its)),
            Some(_) => return None,
        };
    }
    sum.map(|(sum, currency)| notation.price(sum, Some(currency)))
}

/// Total of the articles with a price in the shop's currency.
pub(crate) fn cost<'a>(articles: impl IntoIterator<Item = &'a Article>, notation: &Notation) -> f64 {
    let own = |article: &&Article| notation.currency(currency(article)) == notation.currency(None);
    articles.into_iter().filter(own).filter_map(Article::price).sum()
}

/// The currency that the article's feed names.
fn currency(article: &Article) -> Option<&str> {
    article.words("currency").next()
}
