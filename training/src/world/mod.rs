//! The synthetic fashion world: a catalogue, customers, and a stylist who dresses them.
//!
//! It is data that methods are tried on, so it must never know a method: nothing here depends on a
//! model, its tensors or its training, and its strengths were set by plausibility and by the oracle
//! alone (docs/world.md). It takes a [`Plan`] in, and gives articles, customers and outfits of the
//! domain out; no clock, no network, no randomness but the plan's seed.
//!
//! The world knows its own probabilities: [`crate::oracle`] asks it for the exact answer to a blank.

mod affinity;
mod articles;
mod brands;
mod catalogue;
mod colour_taste;
mod context;
mod harmony;
mod leanings;
pub(crate) mod lexicon;
mod nogos;
mod occasion;
mod palette;
mod person;
mod population;
mod posterior;
mod profile;
mod rows;
mod style_taste;
mod stylist;
mod taste;
mod template;
mod type_taste;
mod types;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use atelier::domain::{Article, Customer, Outfit, Split};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub(crate) use context::Context;
pub(crate) use lexicon::Occasion;
pub(crate) use posterior::{Evidence, Reading};

use crate::random::{Stream, Table};
use catalogue::Catalogue;
use lexicon::{ArticleType, Word};
use population::Population;
use stylist::Stylist;

/// Every occasion that can be named.
pub(crate) const OCCASIONS: &[Occasion] = Occasion::ALL;

/// The version of the generator. Whatever changes one byte of what a plan makes, or one probability,
/// is a new version, and every result names the one it was taken on.
pub const VERSION: &str = "1";

/// All that a world is made from, besides the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub seed: u64,
    pub articles: usize,
    pub customers: usize,
    /// Training outfits.
    pub outfits: usize,
    /// Validation outfits, drawn at random among all.
    pub validation: usize,
}

/// Why a plan makes no world.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(
        "a world needs at least {needed} articles, one of each type; {asked} were asked for: raise --articles"
    )]
    Articles { asked: usize, needed: usize },
    #[error("a world needs at least one customer: raise --customers")]
    Customers,
    #[error("a world needs at least one outfit: raise --outfits")]
    Outfits,
}

/// A whole world but for its outfits, which are laid when they are asked for.
#[derive(Debug)]
pub struct World {
    plan: Plan,
    catalogue: Catalogue,
    population: Population,
    stylist: Stylist,
    validation: HashSet<usize>,
}

/// One outfit by numbers: of the customer, and of the articles, each its row in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Laid {
    pub(crate) customer: usize,
    pub(crate) occasion: Option<Occasion>,
    /// In no order that tells anything.
    pub(crate) articles: Vec<u32>,
    pub(crate) split: Split,
}

impl World {
    /// # Errors
    /// If the plan is too small to be a world.
    pub fn new(plan: Plan) -> Result<Self, PlanError> {
        if plan.articles < ArticleType::COUNT {
            return Err(PlanError::Articles { asked: plan.articles, needed: ArticleType::COUNT });
        }
        if plan.customers == 0 {
            return Err(PlanError::Customers);
        }
        let total = plan.outfits + plan.validation;
        if total == 0 {
            return Err(PlanError::Outfits);
        }
        let mut numbers: Vec<usize> = (0..total).collect();
        Stream::new(plan.seed, Table::Split, 0).shuffle(&mut numbers);
        numbers.truncate(plan.validation);
        Ok(Self {
            plan,
            catalogue: Catalogue::new(plan.seed, plan.articles),
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
        (0..self.catalogue.len()).map(|number| rows::article(number, self.catalogue.numbered(number)))
    }

    /// The customers in the order of their ids.
    pub fn customers(&self) -> impl ExactSizeIterator<Item = Customer> {
        (0..self.population.len()).map(|number| rows::customer(number, self.population.profile(number)))
    }

    /// How many outfits there are, of both splits.
    pub fn outfit_count(&self) -> usize {
        self.plan.outfits + self.plan.validation
    }

    /// Outfits of these numbers, laid in parallel, in the order of the numbers.
    pub fn outfits(&self, numbers: std::ops::Range<usize>) -> Vec<Outfit> {
        numbers.into_par_iter().map(|number| rows::outfit(&self.lay(number))).collect()
    }

    /// The numbers of the validation outfits, rising.
    pub(crate) fn validation(&self) -> Vec<usize> {
        let mut numbers: Vec<usize> = self.validation.iter().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Whom one outfit is for.
    pub(crate) fn customer_of(&self, outfit: usize) -> usize {
        self.population.draw(&mut Stream::new(self.plan.seed, Table::Outfit, outfit))
    }

    pub(crate) fn lay(&self, outfit: usize) -> Laid {
        let mut stream = Stream::new(self.plan.seed, Table::Outfit, outfit);
        let customer = self.population.draw(&mut stream);
        let occasion = occasion::draw(&mut stream, self.population.profile(customer));
        let places = self.stylist.lay(&self.catalogue, self.context(customer, occasion), &mut stream);
        let mut articles: Vec<u32> =
            places.into_iter().map(|place| self.catalogue.number_of(place)).collect();
        // A set: the file's order must not say which slot was filled when.
        stream.shuffle(&mut articles);
        let split = if self.validation.contains(&outfit) { Split::Validation } else { Split::Train };
        Laid { customer, occasion, articles, split }
    }

    pub(crate) fn context(&self, customer: usize, occasion: Option<Occasion>) -> Context<'_> {
        Context { profile: self.population.profile(customer), occasion }
    }

    /// A customer and an occasion as an outfit draws them.
    pub(crate) fn draw_context(&self, stream: &mut Stream) -> (usize, Option<Occasion>) {
        let customer = self.population.draw(stream);
        (customer, occasion::draw(stream, self.population.profile(customer)))
    }

    /// A customer as those outfits draw them that have this occasion, or none stated.
    pub(crate) fn draw_customer_with(&self, stream: &mut Stream, occasion: Option<Occasion>) -> usize {
        let index = occasion.map_or(Occasion::COUNT, Word::index);
        loop {
            let customer = self.population.draw(stream);
            if stream.chance(occasion::shares(self.population.profile(customer))[index]) {
                return customer;
            }
        }
    }
}
