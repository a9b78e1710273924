//! The synthetic fashion world: a catalogue, customers, and a stylist who composes their outfits.
//!
//! Methods are compared on it, so it must never know a method: nothing here depends on a model or its
//! training (docs/world.md). A [`Plan`] comes in; articles, customers and outfits of the domain go out.
//! All randomness comes from the plan's seed.
//!
//! The world knows its own probabilities: the oracle (examples/research) asks it for the exact answer to a blank.

mod brands;
mod catalogue;
mod harmony;
mod leanings;
mod lexicon;
mod names;
mod occasion;
mod palette;
mod population;
mod posterior;
mod profile;
mod rows;
mod stylist;
mod taste;
mod template;
mod types;
mod weeks;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use atelier_core::domain::{Article, Customer, Outfit, Split};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use lexicon::Occasion;
pub(crate) use names::invented;
pub use posterior::{Evidence, Posterior, ScoredContext};
pub use profile::Context;
pub use rows::outfit as to_outfit;
pub use weeks::Week;

use crate::random::{Stream, Table, choose};
use catalogue::Catalogue;
use lexicon::{ArticleType, Word};
use population::Population;
use stylist::Stylist;

/// All occasions.
pub const OCCASIONS: &[Occasion] = Occasion::ALL;

/// The version of the generator. A change to any byte that a plan makes, or to any probability, needs a
/// new version. Every result names its version.
pub const VERSION: &str = "1";

/// Everything that determines a world, besides the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub seed: u64,
    pub articles: usize,
    pub customers: usize,
    /// Training outfits.
    pub outfits: usize,
    /// Validation outfits, drawn at random.
    pub validation: usize,
    /// Articles that no training outfit has: next season's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub new: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Why a plan cannot make a world.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(
        "{found} articles are too few: a world needs at least {needed}, one of each type; raise --articles"
    )]
    Articles { found: usize, needed: usize },
    #[error("a world needs at least one customer; raise --customers")]
    Customers,
    #[error("a world needs at least one outfit; raise --outfits")]
    Outfits,
    #[error("{found} new articles of {articles} are too many: at most a quarter may be new; lower --new")]
    New { found: usize, articles: usize },
}

/// A world. Its outfits are made on request.
#[derive(Debug)]
pub struct World {
    plan: Plan,
    catalogue: Catalogue,
    population: Population,
    stylist: Stylist,
    validation: HashSet<usize>,
    /// The numbers of new articles.
    new: HashSet<u32>,
}

/// An outfit whose customer and articles are row numbers in their files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedOutfit {
    pub customer: usize,
    pub occasion: Option<Occasion>,
    /// In random order.
    pub articles: Vec<u32>,
    pub split: Split,
}

/// Draws the new articles from every second place of the shelf, where similar ones are neighbours: a stylist must have
/// others to choose.
fn new_articles(catalogue: &Catalogue, plan: Plan) -> HashSet<u32> {
    let from: Vec<u32> = (1..catalogue.len()).step_by(2).map(|place| catalogue.number_of(place)).collect();
    choose(plan.seed, Table::New, &from, plan.new).into_iter().collect()
}

impl World {
    pub fn new(plan: Plan) -> Result<Self, PlanError> {
        if plan.articles < ArticleType::COUNT {
            return Err(PlanError::Articles { found: plan.articles, needed: ArticleType::COUNT });
        }
        if plan.customers == 0 {
            return Err(PlanError::Customers);
        }
        let total = plan.outfits + plan.validation;
        if total == 0 {
            return Err(PlanError::Outfits);
        }
        if plan.new > plan.articles / 4 {
            return Err(PlanError::New { found: plan.new, articles: plan.articles });
        }
        let mut numbers: Vec<usize> = (0..total).collect();
        Stream::new(plan.seed, Table::Split, 0).shuffle(&mut numbers);
        numbers.truncate(plan.validation);
        let catalogue = Catalogue::new(plan.seed, plan.articles);
        let new = new_articles(&catalogue, plan);
        Ok(Self {
            plan,
            catalogue,
            new,
            population: Population::new(plan.seed, plan.customers),
            stylist: Stylist::new(),
            validation: numbers.into_iter().collect(),
        })
    }

    pub fn plan(&self) -> Plan {
        self.plan
    }

    /// The catalogue in the order of its ids.
    pub fn articles(&self) -> impl ExactSizeIterator<Item = Article> {
        (0..self.catalogue.len()).map(|number| rows::article(number, self.catalogue.article(number)))
    }

    /// The customers in the order of their ids.
    pub fn customers(&self) -> impl ExactSizeIterator<Item = Customer> {
        (0..self.population.len()).map(|number| rows::customer(number, self.population.profile(number)))
    }

    /// The number of outfits of both splits.
    pub fn outfit_count(&self) -> usize {
        self.plan.outfits + self.plan.validation
    }

    /// The outfits of these numbers, in order, made in parallel.
    pub fn outfits(&self, numbers: std::ops::Range<usize>) -> Vec<Outfit> {
        numbers.into_par_iter().map(|number| rows::outfit(&self.outfit(number))).collect()
    }

    /// The numbers of the validation outfits, ascending.
    pub fn validation(&self) -> Vec<usize> {
        let mut numbers: Vec<usize> = self.validation.iter().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// The customer of one outfit.
    pub fn customer_of(&self, outfit: usize) -> usize {
        self.population.draw(&mut Stream::new(self.plan.seed, Table::Outfit, outfit))
    }

    pub fn outfit(&self, outfit: usize) -> NumberedOutfit {
        let mut stream = Stream::new(self.plan.seed, Table::Outfit, outfit);
        let customer = self.population.draw(&mut stream);
        let occasion = occasion::draw(&mut stream, self.population.profile(customer));
        let split = if self.validation.contains(&outfit) { Split::Validation } else { Split::Train };
        let mut draw = || -> Vec<u32> {
            let context = self.context(customer, occasion);
            let places = self.stylist.draw_outfit(&self.catalogue, context, None, &mut stream);
            places.into_iter().map(|place| self.catalogue.number_of(place)).collect()
        };
        let mut articles = draw();
        // As if the stylist had not had them.
        while split == Split::Train && articles.iter().any(|article| self.new.contains(article)) {
            articles = draw();
        }
        // The file's order must not show which slot was filled first.
        stream.shuffle(&mut articles);
        NumberedOutfit { customer, occasion, articles, split }
    }

    pub fn context(&self, customer: usize, occasion: Option<Occasion>) -> Context<'_> {
        Context { profile: self.population.profile(customer), occasion }
    }

    /// Draws a customer and an occasion the way outfits do.
    pub fn draw_context(&self, stream: &mut Stream) -> (usize, Option<Occasion>) {
        let customer = self.population.draw(stream);
        (customer, occasion::draw(stream, self.population.profile(customer)))
    }

    /// Draws a customer the way outfits with this occasion, or with none, do.
    pub fn draw_customer_with(&self, stream: &mut Stream, occasion: Option<Occasion>) -> usize {
        let index = occasion.map_or(Occasion::COUNT, Word::index);
        loop {
            let customer = self.population.draw(stream);
            if stream.chance(occasion::shares(self.population.profile(customer))[index]) {
                return customer;
            }
        }
    }
}
