//! A person's body and home, as they are; what of it the shop hears is the population's business.

use crate::random::Stream;

use super::{
    leanings::cold,
    lexicon::{BOTTOM_SIZES, BodyType, Country, Gender, HairColour, Word},
};

/// Weights of the countries: a shop at home in the middle of Europe.
#[rustfmt::skip]
const COUNTRIES: [f64; Country::COUNT] =
// AT   BE   DK   FI   FR   DE    IT   NL   NO   PL   ES   SE   CH   UK
  [7.0, 4.0, 4.0, 3.0, 9.0, 33.0, 6.0, 8.0, 3.0, 7.0, 4.0, 5.0, 9.0, 4.0];
/// Female, male, diverse.
const GENDERS: [f64; Gender::COUNT] = [0.61, 0.37, 0.02];

#[derive(Debug)]
pub(crate) struct Person {
    pub(crate) gender: Gender,
    pub(crate) age: u8,
    pub(crate) country: Country,
    pub(crate) height: u8,
    pub(crate) weight: u8,
    pub(crate) body_type: BodyType,
    pub(crate) hair_colour: HairColour,
    /// Index on the scales of tops, bottoms and shoes.
    pub(crate) sizes: [u8; 3],
}

impl Person {
    pub(crate) fn draw(stream: &mut Stream) -> Self {
        let gender = Gender::ALL[stream.weighted(&GENDERS)];
        let country = Country::ALL[stream.weighted(&COUNTRIES)];
        // Bodies of a diverse person are drawn like a woman's or a man's, each half the time.
        let male = match gender {
            Gender::Female => false,
            Gender::Male => true,
            Gender::Diverse => stream.chance(0.5),
        };
        let median_age = if gender == Gender::Diverse { 28.0_f64 } else { 37.0 };
        let age = stream.normal(median_age.ln(), 0.32).exp().clamp(16.0, 88.0);
        let tall = 1.6 * cold(Some(country)) - (age - 60.0).max(0.0) * 0.08;
        let height = stream.normal(if male { 179.5 } else { 166.5 } + tall, if male { 7.0 } else { 6.3 });
        let middle = if male { 25.0 } else { 23.3 } + 0.06 * (age.min(65.0) - 38.0);
        let mass_index = stream.normal(middle.ln(), if male { 0.13 } else { 0.155 }).exp();
        let weight = mass_index * (height / 100.0).powi(2);
        Self {
            gender,
            age: whole(age, 16.0, 88.0),
            country,
            height: whole(height, 140.0, 212.0),
            weight: whole(weight, 38.0, 190.0),
            body_type: draw_body(stream, male, age, mass_index),
            hair_colour: draw_hair(stream, male, age, country),
            sizes: draw_sizes(stream, male, height, mass_index),
        }
    }

    pub(crate) fn is_heavy(&self) -> bool {
        matches!(self.body_type, BodyType::Full | BodyType::Curvy | BodyType::Broad)
    }
}

fn draw_body(stream: &mut Stream, male: bool, age: f64, mass_index: f64) -> BodyType {
    let rises = |middle: f64, width: f64| 1.0 / (1.0 + (-(mass_index - middle) / width).exp());
    let athletic = 0.35 * (-((mass_index - 23.5) / 3.0).powi(2)).exp() * (1.0 - (age - 25.0) / 70.0).max(0.1);
    let heavy = rises(25.5, 1.2) * 0.9;
    let weights = [
        1.0 - rises(20.8, 0.9),
        athletic,
        0.8 * (-((mass_index - 24.0) / 4.0).powi(2)).exp(),
        if male { 0.0 } else { heavy },
        if male { heavy } else { 0.12 * heavy },
        rises(30.0, 1.2) * 1.6,
    ];
    BodyType::ALL[stream.weighted(&weights)]
}

fn draw_hair(stream: &mut Stream, male: bool, age: f64, country: Country) -> HairColour {
    // black, brown, blond, red
    let natural: [f64; 4] = match country {
        Country::Denmark | Country::Finland | Country::Norway | Country::Sweden => [5.0, 36.0, 52.0, 4.0],
        Country::Italy | Country::Spain => [34.0, 54.0, 9.0, 1.5],
        Country::France => [16.0, 60.0, 19.0, 3.0],
        Country::UnitedKingdom => [12.0, 50.0, 28.0, 9.0],
        _ => [10.0, 51.0, 33.0, 4.0],
    };
    let turned = 1.0 / (1.0 + (-(age - 58.0) / 6.0).exp());
    // Many women dye it back.
    let grey = turned * if male { 0.85 } else { 0.5 };
    let other = if age < 32.0 { 0.09 } else { 0.03 };
    let left = (1.0 - grey - other) / natural.iter().sum::<f64>();
    let [black, brown, blond, red] = natural.map(|weight| weight * left);
    HairColour::ALL[stream.weighted(&[black, brown, blond, red, grey, other])]
}

fn draw_sizes(stream: &mut Stream, male: bool, height: f64, mass_index: f64) -> [u8; 3] {
    let top = if male {
        2.9 + 0.32 * (mass_index - 24.5) + 0.035 * (height - 179.0)
    } else {
        2.2 + 0.34 * (mass_index - 22.8) + 0.02 * (height - 166.0)
    };
    let waist = if male {
        32.3 + 0.85 * (mass_index - 24.8) + 0.05 * (height - 180.0)
    } else {
        28.0 + 0.85 * (mass_index - 22.6) + 0.04 * (height - 166.0)
    } + stream.normal(0.0, 0.7);
    let shoe = if male { 43.2 + 0.13 * (height - 180.0) } else { 38.6 + 0.14 * (height - 167.0) };
    let off = |size: &str| (size.parse::<f64>().expect("waists are numbers; this is a bug") - waist).abs();
    let bottom = (0..BOTTOM_SIZES.len())
        .min_by(|&a, &b| off(BOTTOM_SIZES[a]).total_cmp(&off(BOTTOM_SIZES[b])))
        .expect("the scale is not empty; this is a bug");
    [
        whole(top + stream.normal(0.0, 0.45), 0.0, 7.0),
        u8::try_from(bottom).expect("scales are short; this is a bug"),
        whole(shoe - 35.0 + stream.normal(0.0, 0.7), 0.0, 13.0),
    ]
}

/// Rounded, within bounds that fit a `u8`.
fn whole(value: f64, least: f64, most: f64) -> u8 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounds fit, checked by callers"
    )]
    let rounded = value.round().clamp(least, most) as u8;
    rounded
}
