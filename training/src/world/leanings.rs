//! The styles that people of one gender, age and country lean to. A customer's preferred styles are drawn
//! from it, and the stylist falls back on it where a customer states none.

use super::lexicon::{Country, Gender, Style, Word};

/// The age at which the tables below apply unchanged.
const MIDDLE_AGE: f64 = 38.0;

#[rustfmt::skip]
const STYLES: [[f64; Style::COUNT]; 2] = [
//  cla   cas   spo   str   min   rom   boh   gla   pre   roc
  [14.0, 20.0,  8.0,  7.0, 13.0, 13.0,  9.0,  8.0,  4.0,  5.0], // women
  [17.0, 24.0, 15.0, 14.0, 13.0,  0.6,  1.5,  1.2,  9.0,  6.0], // men
];
/// Change of the logarithm of each style's weight in ten years of age.
#[rustfmt::skip]
const STYLES_BY_AGE: [f64; Style::COUNT] =
  [ 0.30, 0.05, -0.18, -0.75, 0.08, -0.05, -0.10, -0.15, 0.08, -0.22];

/// Shares of the styles for such a person.
pub(crate) fn style_leaning(
    gender: Option<Gender>,
    age: Option<f64>,
    country: Option<Country>,
) -> [f64; Style::COUNT] {
    let decades = (age.unwrap_or(MIDDLE_AGE) - MIDDLE_AGE) / 10.0;
    let [women, men] = by_gender(gender);
    let at_home = country.map_or([1.0; Style::COUNT], home_styles);
    let mut weights = [0.0; Style::COUNT];
    for style in 0..Style::COUNT {
        let base = women * STYLES[0][style] + men * STYLES[1][style];
        weights[style] = base * (decades * STYLES_BY_AGE[style]).exp() * at_home[style];
    }
    let sum: f64 = weights.iter().sum();
    weights.map(|weight| weight / sum)
}

/// The weights of the women's and the men's tables. Diverse or not given: half of each.
pub(crate) fn by_gender(gender: Option<Gender>) -> [f64; 2] {
    match gender {
        Some(Gender::Female) => [1.0, 0.0],
        Some(Gender::Male) => [0.0, 1.0],
        Some(Gender::Diverse) | None => [0.5, 0.5],
    }
}

#[rustfmt::skip]
fn home_styles(country: Country) -> [f64; Style::COUNT] {
    match country {
        //                                                       cla  cas  spo  str  min  rom  boh  gla  pre  roc
        Country::Denmark | Country::Finland | Country::Norway
        | Country::Sweden                                    => [0.9, 1.0, 1.2, 1.0, 1.8, 0.8, 0.8, 0.6, 0.9, 1.0],
        Country::France                                      => [1.4, 0.9, 0.7, 0.9, 1.2, 1.3, 1.0, 1.2, 0.9, 1.0],
        Country::Italy | Country::Spain                      => [1.3, 0.9, 0.8, 0.8, 0.8, 1.2, 1.2, 1.7, 0.9, 0.8],
        Country::UnitedKingdom                               => [0.9, 1.0, 0.9, 1.4, 0.8, 1.0, 0.9, 1.0, 1.6, 1.5],
        Country::Austria | Country::Germany
        | Country::Switzerland                               => [1.0, 1.2, 1.2, 0.9, 1.0, 0.9, 0.9, 0.8, 0.9, 1.0],
        Country::Belgium | Country::Netherlands              => [1.0, 1.1, 1.0, 1.1, 1.2, 0.9, 1.1, 0.8, 1.1, 0.9],
        Country::Poland                                      => [1.1, 1.0, 1.1, 1.1, 0.9, 1.2, 0.8, 1.4, 0.8, 1.0],
    }
}

/// How cold a country is, from -1 (warm) to 1 (cold).
pub(crate) fn cold(country: Option<Country>) -> f64 {
    match country {
        Some(Country::Spain) => -1.0,
        Some(Country::Italy) => -0.7,
        Some(Country::France) => -0.3,
        Some(Country::Belgium | Country::Netherlands | Country::UnitedKingdom) => 0.0,
        Some(Country::Austria | Country::Germany | Country::Switzerland) => 0.1,
        Some(Country::Denmark | Country::Poland) => 0.4,
        Some(Country::Sweden) => 0.7,
        Some(Country::Finland | Country::Norway) => 1.0,
        None => 0.05,
    }
}
