//! The customers: a plausible population with its dependencies, and what each of them said.
//!
//! A person is drawn whole (`Person`), then says some of it: the profile keeps what was said, and
//! the rest is gone. How often a customer is styled depends on nothing that the file tells.

use rayon::prelude::*;

use crate::random::{Stream, Table};

use super::{
    articles::TIER_LN_PRICE,
    brands::BRANDS,
    leanings::{by_gender, style_leaning},
    lexicon::{Colour, Country, Fit, Gender, PriceBand, PriceGroup, SizeScale, Style, Word, Words},
    nogos::draw_nogos,
    palette::STYLE_PALETTE,
    person::Person,
    profile::{BrandIndex, Profile},
};

/// Spread of the logarithm of how often a customer is styled: a few come back all the time.
const ACTIVITY_SPREAD: f64 = 0.8;

/// Every customer, and how likely each is to be the next one styled.
#[derive(Debug)]
pub(crate) struct Population {
    profiles: Vec<Profile>,
    /// Running sums of the activities.
    activity: Vec<f64>,
}

impl Population {
    pub(crate) fn new(seed: u64, count: usize) -> Self {
        let profiles = (0..count).into_par_iter().map(|number| draw_profile(seed, number)).collect();
        let mut total = 0.0;
        let activity = (0..count)
            .map(|number| {
                // A stream apart: the profile's draws may grow without moving it.
                let mut stream = Stream::new(seed ^ 0xAC71_0171, Table::Customer, number);
                total += stream.normal(0.0, ACTIVITY_SPREAD).exp();
                total
            })
            .collect();
        Self { profiles, activity }
    }

    pub(crate) fn len(&self) -> usize {
        self.profiles.len()
    }

    pub(crate) fn profile(&self, customer: usize) -> &Profile {
        &self.profiles[customer]
    }

    /// The next customer to be styled.
    pub(crate) fn draw(&self, stream: &mut Stream) -> usize {
        let total = self.activity.last().expect("a world has customers; this is a bug");
        let point = stream.uniform() * total;
        self.activity.partition_point(|sum| *sum <= point).min(self.len() - 1)
    }
}

pub(crate) fn draw_profile(seed: u64, number: usize) -> Profile {
    let mut stream = Stream::new(seed, Table::Customer, number);
    let person = Person::draw(&mut stream);
    let styles = draw_styles(&mut stream, &person);
    let level = draw_price_level(&mut stream, &person, styles);
    let prices = draw_prices(&mut stream, level);
    let brands = draw_brands(&mut stream, &person, styles, level);
    let colours = draw_colours(&mut stream, &person, styles);
    let fit = draw_fit(&mut stream, &person, styles);
    let nogos = draw_nogos(&mut stream, &person, colours);

    // Some say much of themselves, others little; weight is told least readily.
    let reticence = stream.normal(0.0, 0.6).exp();
    let mut says = |missing: f64| !stream.chance((missing * reticence).min(0.95));
    Profile {
        gender: says(0.005).then_some(person.gender),
        age: says(0.03).then_some(person.age),
        country: says(0.01).then_some(person.country),
        height: says(0.12).then_some(person.height),
        weight: says(0.28).then_some(person.weight),
        body_type: says(0.20).then_some(person.body_type),
        hair_colour: says(0.22).then_some(person.hair_colour),
        fit: says(0.15).then_some(fit),
        brands: if says(0.15) { brands } else { Words::default() },
        colours: if says(0.08) { colours } else { Words::default() },
        styles: if says(0.07) { styles } else { Words::default() },
        nogo_types: if says(0.10) { nogos.types } else { Words::default() },
        nogo_colours: if says(0.10) { nogos.colours } else { Words::default() },
        nogo_materials: if says(0.10) { nogos.materials } else { Words::default() },
        sizes: [SizeScale::Top, SizeScale::Bottom, SizeScale::Shoe]
            .map(|scale| says(0.06).then_some(person.sizes[scale.index()])),
        prices: prices.map(|band| says(0.08).then_some(band)),
    }
}

fn draw_styles(stream: &mut Stream, person: &Person) -> Words<Style> {
    let leaning = style_leaning(Some(person.gender), Some(f64::from(person.age)), Some(person.country));
    let count = 1 + stream.weighted(&[0.32, 0.45, 0.23]);
    words(stream.weighted_without_replacement(leaning.to_vec(), count))
}

/// Where they shop, from about -2 to 2, the logarithm of nothing in particular.
fn draw_price_level(stream: &mut Stream, person: &Person, styles: Words<Style>) -> f64 {
    let country = match person.country {
        Country::Switzerland => 0.8,
        Country::Norway | Country::Denmark => 0.4,
        Country::Sweden | Country::Netherlands | Country::Austria | Country::UnitedKingdom => 0.15,
        Country::Spain | Country::Italy => -0.15,
        Country::Poland => -0.6,
        Country::Belgium | Country::Finland | Country::France | Country::Germany => 0.0,
    };
    let age = ((f64::from(person.age).min(58.0) - 38.0) / 10.0) * 0.28;
    let taste = styles.iter().fold(0.0, |sum, style| {
        sum + match style {
            Style::Glamour | Style::Classic | Style::Minimal => 0.15,
            Style::Street | Style::Casual => -0.12,
            _ => 0.0,
        }
    });
    country + age + taste + stream.normal(0.0, 0.85)
}

fn draw_prices(stream: &mut Stream, level: f64) -> [PriceBand; PriceGroup::COUNT] {
    // People save on accessories and spend on shoes and coats.
    [0.0, -0.05, 0.15, 0.15, -0.3].map(|shift| {
        let band = (1.65 + 0.85 * level + shift + stream.normal(0.0, 0.65)).round().clamp(0.0, 4.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=4")]
        let band = band as usize;
        PriceBand::ALL[band]
    })
}

fn draw_brands(stream: &mut Stream, person: &Person, styles: Words<Style>, level: f64) -> Words<BrandIndex> {
    let count = stream.weighted(&[0.22, 0.18, 0.24, 0.20, 0.11, 0.05]);
    let [women, men] = by_gender(Some(person.gender));
    let weights = BRANDS
        .iter()
        .map(|brand| {
            let taste = if styles.has(brand.styles[0]) {
                7.0
            } else if styles.has(brand.styles[1]) {
                3.5
            } else {
                0.5
            };
            let public = women * brand.lean[0] + men * brand.lean[1];
            let distance = TIER_LN_PRICE[brand.tier] - 0.38 * level + 0.1;
            brand.size.sqrt() * taste * public * (-2.0 * distance * distance).exp()
        })
        .collect();
    words(stream.weighted_without_replacement(weights, count))
}

fn draw_colours(stream: &mut Stream, person: &Person, styles: Words<Style>) -> Words<Colour> {
    #[rustfmt::skip]
    const LIKED: [f64; Colour::COUNT] =
    // black white grey beige brown navy blue l-bl green olive yello orang red  burg pink purpl
      [16., 9.0, 7.0, 8.0, 5.0, 10., 10., 5.0, 8.0, 5.0, 3.0, 2.5, 7.0, 5.0, 6.0, 4.0];
    let count = stream.weighted(&[0.08, 0.22, 0.34, 0.24, 0.12]);
    let [women, men] = by_gender(Some(person.gender));
    let weights = Colour::ALL
        .iter()
        .map(|colour| {
            let liked_by_men = match colour {
                Colour::Pink => 0.12,
                Colour::Purple => 0.4,
                Colour::Red | Colour::Yellow => 0.7,
                Colour::Navy | Colour::Blue | Colour::Olive => 1.5,
                _ => 1.0,
            };
            let in_style: f64 =
                styles.iter().map(|style| STYLE_PALETTE[style.index()][colour.index()]).product();
            LIKED[colour.index()] * (women + men * liked_by_men) * in_style
        })
        .collect();
    words(stream.weighted_without_replacement(weights, count))
}

fn draw_fit(stream: &mut Stream, person: &Person, styles: Words<Style>) -> Fit {
    let mut weights = [3.0, 5.0, 2.5, 0.8];
    if styles.has(Style::Street) {
        weights[2] *= 1.6;
        weights[3] *= 3.5;
    }
    if styles.has(Style::Glamour) || styles.has(Style::Rock) {
        weights[0] *= 1.9;
    }
    if styles.has(Style::Boho) {
        weights[2] *= 2.0;
    }
    if person.is_heavy() {
        weights[0] *= 0.3;
        weights[2] *= 1.8;
    }
    if person.gender == Gender::Female && person.age < 35 {
        weights[3] *= 1.5;
    }
    Fit::ALL[stream.weighted(&weights)]
}

pub(crate) fn words<T>(indices: Vec<usize>) -> Words<T> {
    indices.into_iter().fold(Words::default(), |mut words, index| {
        words.insert_index(index);
        words
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::real;

    #[test]
    fn features_hang_together_and_some_are_missing() {
        let profiles: Vec<Profile> = (0..6000).map(|number| draw_profile(1, number)).collect();
        let share = |test: &dyn Fn(&Profile) -> bool| {
            real(profiles.iter().filter(|profile| test(profile)).count()) / real(profiles.len())
        };
        assert!((0.2..0.45).contains(&share(&|p| p.weight.is_none())));
        assert!(share(&|p| p.gender.is_none()) < 0.02);
        let mean_height = |gender| {
            let heights: Vec<f64> = profiles
                .iter()
                .filter(|profile| profile.gender == Some(gender))
                .filter_map(|profile| profile.height.map(f64::from))
                .collect();
            heights.iter().sum::<f64>() / real(heights.len())
        };
        assert!(mean_height(Gender::Male) - mean_height(Gender::Female) > 10.0);
        assert!(profiles.iter().all(|p| !p.colours.iter().any(|colour| p.nogo_colours.has(colour))));
    }

    #[test]
    fn the_active_are_drawn_more_often() {
        let population = Population::new(1, 200);
        let mut stream = Stream::new(1, Table::Slots, 0);
        let mut counts = vec![0_usize; 200];
        for _ in 0..20_000 {
            counts[population.draw(&mut stream)] += 1;
        }
        let most = (0..200).max_by_key(|&customer| counts[customer]).unwrap();
        let activity =
            population.activity[most] - if most == 0 { 0.0 } else { population.activity[most - 1] };
        let expected = activity / population.activity[199] * 20_000.0;
        assert!((real(counts[most]) - expected).abs() < 5.0 * expected.sqrt(), "{expected}");
    }
}
