//! Articles that are like another one: of its type, with attributes in common, about its price, and alike in picture and text.

use std::collections::{BTreeSet, HashSet};

use atelier_core::domain::{Article, ArticleId};
use atelier_engine::catalogue::Catalogue;
use rayon::prelude::*;

/// The articles of the shop of the same type, the most similar first. What few of them have in common counts more, and an equal
/// price as much as a word that one in three has. The most alike embedding counts as much as a word of no other article.
pub fn similar(catalogue: &Catalogue, article: &Article) -> Vec<ArticleId> {
    let Some(of_type) = catalogue.sets().of_type(article.kind()) else { return Vec::new() };
    let own: BTreeSet<(&str, String)> = words(article).collect();
    let others: Vec<u32> = of_type.iter().collect();
    let others = others.par_iter().filter_map(|position| Some((*position, catalogue.article(*position)?)));
    let position = catalogue.position_of(article.id.as_str());
    let others = others.filter(|(_, other)| other.id != article.id).map(|(at, other)| {
        let alike = position.and_then(|own| catalogue.likeness(own, at));
        let unpacked = other.unpack();
        (other.id.clone(), price_likeness(article, &unpacked), alike, shared(&own, &unpacked))
    });
    let others: Vec<(ArticleId, f64, Option<f64>, Vec<usize>)> = others.collect();
    let (least, most) = others
        .iter()
        .filter_map(|(_, _, alike, _)| *alike)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), alike| (least.min(alike), most.max(alike)));
    let mut counts = vec![0_u32; own.len()];
    for position in others.iter().flat_map(|(.., shared)| shared) {
        counts[*position] += 1;
    }
    let all = f64::from(u32::try_from(others.len()).unwrap_or(u32::MAX));
    let weight = |position: &usize| (all / f64::from(counts[*position])).ln();
    let mut scored: Vec<(f64, &ArticleId)> = others
        .iter()
        .map(|(id, price, alike, shared)| {
            let alike = alike.filter(|_| most > least).map_or(0.0, |alike| (alike - least) / (most - least));
            (shared.iter().map(weight).sum::<f64>() + price + alike * all.ln(), id)
        })
        .collect();
    scored.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
    scored.into_iter().map(|(_, id)| id.clone()).collect()
}

/// Each attribute with each of its words.
fn words(article: &Article) -> impl Iterator<Item = (&str, String)> {
    let names = article.attributes().keys().map(String::as_str);
    let names = names.filter(|name| !["price", "in_stock", "variants"].contains(name));
    names.flat_map(|name| article.folded_words(name).into_iter().map(move |word| (name, word)))
}

/// The positions of those words that another article has, too.
fn shared(own: &BTreeSet<(&str, String)>, other: &Article) -> Vec<usize> {
    let theirs: HashSet<(&str, String)> = words(other).collect();
    let shared = own.iter().enumerate().filter(|(_, word)| theirs.contains(word));
    shared.map(|(position, _)| position).collect()
}

/// 1 for equal prices, 0 from twice the price.
fn price_likeness(article: &Article, other: &Article) -> f64 {
    let prices = article.price().zip(other.price()).filter(|(own, other)| *own > 0.0 && *other > 0.0);
    prices.map_or(0.0, |(own, other)| (1.0 - (own / other).log2().abs()).max(0.0))
}
