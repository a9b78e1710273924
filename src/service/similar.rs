//! Articles that are like another one: of its type, with attributes in common and about its price.

use std::collections::{HashMap, HashSet};

use crate::{
    domain::{Article, ArticleId},
    models::catalogue::Catalogue,
};

/// The articles of the shop of the same type, the most similar first. What few of them have in common counts more, and an equal
/// price as much as a word that one in three has.
pub fn similar(catalogue: &Catalogue, article: &Article, most: usize) -> Vec<ArticleId> {
    let Some(of_type) = catalogue.of_type(article.kind()) else { return Vec::new() };
    let others = of_type.iter().filter_map(|place| catalogue.article(place));
    let others: Vec<Article> =
        others.filter(|other| other.id != article.id).map(|other| other.unpack()).collect();
    let own = words(article);
    let shared: Vec<Vec<&(String, String)>> = others
        .iter()
        .map(|other| {
            let words = words(other);
            own.iter().filter(|word| words.contains(word)).collect()
        })
        .collect();
    let mut counts: HashMap<&(String, String), u32> = HashMap::new();
    for word in shared.iter().flatten() {
        *counts.entry(word).or_insert(0) += 1;
    }
    let all = f64::from(u32::try_from(others.len()).unwrap_or(u32::MAX));
    let weight = |word: &&(String, String)| (all / f64::from(counts[word])).ln();
    let mut scored: Vec<(f64, &ArticleId)> = others
        .iter()
        .zip(&shared)
        .map(|(other, words)| {
            let score = words.iter().map(weight).sum::<f64>() + price_likeness(article, other);
            (score, &other.id)
        })
        .collect();
    scored.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
    scored.into_iter().take(most).map(|(_, id)| id.clone()).collect()
}

/// Each attribute with each of its words.
fn words(article: &Article) -> HashSet<(String, String)> {
    let names = article.attributes().keys().filter(|name| *name != "price" && *name != "in_stock");
    names.flat_map(|name| article.folded_words(name).into_iter().map(|word| (name.clone(), word))).collect()
}

/// 1 for equal prices, 0 from twice the price.
fn price_likeness(article: &Article, other: &Article) -> f64 {
    let prices = article.price().zip(other.price()).filter(|(own, other)| *own > 0.0 && *other > 0.0);
    prices.map_or(0.0, |(own, other)| (1.0 - (own / other).log2().abs()).max(0.0))
}
