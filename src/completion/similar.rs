//! Finds similar articles: of the same type, with shared attributes, a close price, a similar picture and text, and worn with the
//! same articles.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use atelier_core::domain::{Article, CustomerId};
use atelier_engine::packed_article::PackedArticle;
use rayon::prelude::*;
use tokio::task;

use super::{
    Filters, MovedBy, Offered, Request, Variants, Warning,
    asking::{Times, resolve},
    bounded,
    tickets::{Suggested, SuggestedFor, Tickets},
};
use crate::{
    completion::profiles::Profiles,
    platform::fault::ServiceError,
    releases::{LiveRelease, routing::Route},
};

#[derive(Debug, Clone)]
pub struct Wanted {
    /// The position of what they are similar to.
    pub article: u32,
    pub store: Option<String>,
    pub n: usize,
}

/// Similar articles, the most similar first unless rules move them.
#[derive(Debug)]
pub struct Similar {
    pub articles: Vec<(Arc<PackedArticle>, Vec<MovedBy>)>,
    pub variants: Variants,
    pub warnings: Vec<Warning>,
    /// None if it is for everybody.
    customer: Option<CustomerId>,
    held_out: bool,
}

/// The method that tickets name.
const METHOD: &str = "similar";

impl Similar {
    /// Signs an id, for feedback on the articles: those of slot 0 of an outfit that has no other.
    pub fn issue_ticket(&self, tickets: &Tickets, live: &LiveRelease, times: Times) -> String {
        let articles = self.articles.iter().map(|(article, _)| article.id.clone()).collect();
        let blank = SuggestedFor { slot: 0, articles, in_sets: Vec::new(), rules: Vec::new() };
        tickets.issue(Suggested {
            release: live.name().to_owned(),
            method: METHOD.to_owned(),
            arm: None,
            at: times.now,
            customer: self.customer.clone(),
            is_shared: self.customer.is_none(),
            held_out: self.held_out,
            outfit: vec![None],
            blanks: vec![blank],
        })
    }
}

/// The most similar articles that the shop may offer the customer: what is in stock, fits, is no no-go, and passes the shop's rules.
pub async fn find(
    route: &Route,
    profiles: &Profiles,
    wanted: Wanted,
    times: Times,
) -> Result<Similar, ServiceError> {
    let live = Arc::clone(&route.live);
    let packed = live.catalogue.any_article(wanted.article);
    let packed = Arc::clone(packed.expect("the caller found it"));
    let request = Request {
        k: wanted.n,
        filters: Filters { store: wanted.store, ..Filters::default() },
        rules: Some(times.now),
        // Rules on outfits say nothing of what takes the article's place.
        ..Request::routed(Vec::new(), route)
    };
    let resolved = resolve(route, profiles, request, times.begun).await?;
    // Looking at thousands of articles takes milliseconds of all cores.
    let customer = route.customer.clone();
    let ranking = task::spawn_blocking(move || {
        let offered = Offered::new(live.served(), &resolved.request)?;
        let ranked = similar(&live, &packed.unpack());
        let (ranked, unmet) = offered.rank(&ranked);
        let articles: Vec<_> = ranked
            .into_iter()
            .filter_map(|(position, rules)| Some((Arc::clone(live.catalogue.article(position)?), rules)))
            .collect();
        let variants = offered.choose_variants(articles.iter().map(|(article, _)| article));
        let warnings = bounded(offered.warnings.into_iter().chain(unmet).chain(resolved.stale).collect(), 0);
        let customer = customer.filter(|_| resolved.request.stored.is_some());
        Ok(Similar { articles, variants, warnings, customer, held_out: resolved.held_out })
    });
    ranking.await.expect("comparing articles does not panic")
}

/// The articles of the shop of the same type by their positions, the most similar first, with how similar they are. What few of them
/// have in common counts more, and an equal price as much as a word that one in three has. The most alike embedding counts as much
/// as a word of no other article, and so does the article that is most worn with the same others.
pub fn similar(live: &LiveRelease, article: &Article) -> Vec<(u32, f64)> {
    let catalogue = &live.catalogue;
    let Some(of_type) = catalogue.sets().of_type(article.kind()) else { return Vec::new() };
    let own: BTreeSet<(&str, String)> = words(article).collect();
    let others: Vec<u32> = of_type.iter().collect();
    let others = others.par_iter().filter_map(|position| Some((*position, catalogue.article(*position)?)));
    let position = catalogue.position_of(article.id.as_str());
    let others = others.filter(|(_, other)| other.id != article.id).map(|(at, other)| {
        let alike = position.and_then(|own| catalogue.likeness(own, at));
        let unpacked = other.unpack();
        (at, price_likeness(article, &unpacked), alike, shared(&own, &unpacked))
    });
    let others: Vec<(u32, f64, Option<f64>, Vec<usize>)> = others.collect();
    let (least, most) = others
        .iter()
        .filter_map(|(_, _, alike, _)| *alike)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), alike| (least.min(alike), most.max(alike)));
    let worn = position.map(|own| live.serving.worn_alike(&live.rows, own)).unwrap_or_default();
    let worn = |at: &u32| worn.get(at).copied().unwrap_or(0.0);
    let most_worn = others.iter().map(|(at, ..)| worn(at)).fold(0.0, f64::max);
    let mut counts = vec![0_u32; own.len()];
    for position in others.iter().flat_map(|(.., shared)| shared) {
        counts[*position] += 1;
    }
    let all = f64::from(u32::try_from(others.len()).unwrap_or(u32::MAX));
    let weight = |position: &usize| (all / f64::from(counts[*position])).ln();
    let mut scored: Vec<(u32, f64)> = others
        .iter()
        .map(|(at, price, alike, shared)| {
            let alike = alike.filter(|_| most > least).map_or(0.0, |alike| (alike - least) / (most - least));
            let worn = if most_worn > 0.0 { worn(at) / most_worn } else { 0.0 };
            (*at, shared.iter().map(weight).sum::<f64>() + price + (alike + worn) * all.ln())
        })
        .collect();
    let id = |at: u32| catalogue.article(at).map(|article| &article.id);
    scored.sort_by(|(x, a), (y, b)| b.total_cmp(a).then_with(|| id(*x).cmp(&id(*y))));
    scored
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
