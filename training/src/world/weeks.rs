//! A shop over weeks: articles come and leave, and fashions move.
//!
//! Half of the articles are always sold, the others for [`SEASON`] weeks each, so that in every week about as many leave as come.
//! A fashion is a random walk for each colour, style, pattern and brand that everybody follows: its step is drawn every week.

use std::collections::HashMap;

use crate::random::{Stream, Table};

use super::{
    NumberedOutfit, World,
    brands::BRANDS,
    lexicon::{ArticleType, Colour, Pattern, Style, Word},
    occasion,
};
use atelier_core::domain::Split;

/// The share of articles that are always sold.
const ALWAYS: f64 = 0.5;
/// How many weeks the others are sold.
const SEASON: usize = 10;
/// The weeks in which they may come, the first of them before the first week by a season.
const WEEKS: usize = 24;
/// More than the outfits of a week.
const MOST: usize = 1_000_000;

/// One week.
#[derive(Debug)]
pub struct Week {
    number: usize,
    /// By place on the shelf: how much more an article is liked than at first; 0 if it isn't sold.
    factors: Vec<f64>,
}

impl World {
    /// A week, from 0 up. `step` is the standard deviation of a fashion's step in a week, on the scale of logarithmic weights.
    pub fn week(&self, number: usize, step: f64) -> Week {
        let mut fashions: HashMap<(&str, usize), f64> = HashMap::new();
        for week in 1..=number {
            let mut stream = Stream::new(self.plan.seed, Table::Fashions, week);
            for (kind, count) in [
                ("colour", Colour::COUNT),
                ("style", Style::COUNT),
                ("pattern", Pattern::COUNT),
                ("brand", BRANDS.len()),
            ] {
                for value in 0..count {
                    *fashions.entry((kind, value)).or_default() += stream.normal(0.0, step);
                }
            }
        }
        let factor = |place: usize| {
            if !self.is_sold(self.catalogue.number_of(place) as usize, number) {
                return 0.0;
            }
            let article = self.catalogue.at(place);
            let values = [
                ("colour", article.colour.index()),
                ("style", article.style.index()),
                ("pattern", article.pattern.index()),
                ("brand", usize::from(article.brand)),
            ];
            values.iter().filter_map(|value| fashions.get(value)).sum::<f64>().exp()
        };
        Week { number, factors: (0..self.catalogue.len()).map(factor).collect() }
    }

    /// Whether an article is sold in a week. The first of each type always is.
    pub fn is_sold(&self, article: usize, week: usize) -> bool {
        let mut stream = Stream::new(self.plan.seed, Table::Seasons, article);
        if article < ArticleType::COUNT || stream.chance(ALWAYS) {
            return true;
        }
        let (from, week) = (stream.below(WEEKS), week + SEASON);
        (from..from + SEASON).contains(&week)
    }

    /// An outfit that a customer is given, or buys, in a week.
    pub fn outfit_in_week(&self, week: &Week, outfit: usize) -> NumberedOutfit {
        let mut stream = Stream::new(self.plan.seed, Table::InWeek, week.number * MOST + outfit);
        let customer = self.population.draw(&mut stream);
        let occasion = occasion::draw(&mut stream, self.population.profile(customer));
        let context = self.context(customer, occasion);
        let places = self.stylist.draw_outfit(&self.catalogue, context, Some(&week.factors), &mut stream);
        let mut articles: Vec<u32> =
            places.into_iter().map(|place| self.catalogue.number_of(place)).collect();
        stream.shuffle(&mut articles);
        NumberedOutfit { customer, occasion, articles, split: Split::Train }
    }
}
