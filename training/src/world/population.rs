//! The customers: a plausible population whose features depend on each other.
//!
//! A complete [`Person`] is drawn first and then states some of their features: the profile keeps those,
//! and the rest is lost. How often a customer is styled depends on nothing in the file.

use rayon::prelude::*;

use crate::random::{Stream, Table};

use super::{
    brands::BRANDS,
    catalogue::TIER_LN_PRICE,
    leanings::{by_gender, cold, style_leaning},
    lexicon::{
        ArticleType, BOTTOM_SIZES, BodyType, Colour, Country, Fit, Gender, HairColour, Material, PriceBand,
        PriceGroup, SizeScale, Style, Word, Words,
    },
    palette::STYLE_PALETTE,
    profile::{BrandIndex, Profile},
};

/// Standard deviation of the logarithm of a customer's activity: a few customers are styled very often.
const ACTIVITY_SPREAD: f64 = 0.8;

/// Every customer, and how often each is styled.
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
                // A stream of its own, so that more draws for the profile don't change it.
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

    /// Draws the customer of an outfit, by activity.
    pub(crate) fn draw(&self, stream: &mut Stream) -> usize {
        let total = self.activity.last().expect("a world has customers");
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
    let nogo_types = draw_nogo_types(&mut stream, &person);
    let nogo_colours = draw_nogo_colours(&mut stream, &person, colours);
    let nogo_materials = draw_nogo_materials(&mut stream);

    // Some customers state many features, others few; weight is missing most often.
    let reticence = stream.normal(0.0, 0.6).exp();
    let mut states = |missing: f64| !stream.chance((missing * reticence).min(0.95));
    Profile {
        gender: states(0.005).then_some(person.gender),
        age: states(0.03).then_some(person.age),
        country: states(0.01).then_some(person.country),
        height: states(0.12).then_some(person.height),
        weight: states(0.28).then_some(person.weight),
        body_type: states(0.20).then_some(person.body_type),
        hair_colour: states(0.22).then_some(person.hair_colour),
        fit: states(0.15).then_some(fit),
        brands: if states(0.15) { brands } else { Words::default() },
        colours: if states(0.08) { colours } else { Words::default() },
        styles: if states(0.07) { styles } else { Words::default() },
        nogo_types: if states(0.10) { nogo_types } else { Words::default() },
        nogo_colours: if states(0.10) { nogo_colours } else { Words::default() },
        nogo_materials: if states(0.10) { nogo_materials } else { Words::default() },
        sizes: person.sizes.map(|size| states(0.06).then_some(size)),
        prices: prices.map(|band| states(0.08).then_some(band)),
    }
}

fn draw_styles(stream: &mut Stream, person: &Person) -> Words<Style> {
    let leaning = style_leaning(Some(person.gender), Some(f64::from(person.age)), Some(person.country));
    let count = 1 + stream.weighted(&[0.32, 0.45, 0.23]);
    draw_words(stream, leaning.to_vec(), count)
}

/// How much the person spends on clothes, from about -2 to 2.
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
            let by_gender = women * brand.lean[0] + men * brand.lean[1];
            let distance = TIER_LN_PRICE[brand.tier] - 0.38 * level + 0.1;
            brand.size.sqrt() * taste * by_gender * (-2.0 * distance * distance).exp()
        })
        .collect();
    draw_words(stream, weights, count)
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
    draw_words(stream, weights, count)
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

fn draw_words<T: Copy>(stream: &mut Stream, weights: Vec<f64>, count: usize) -> Words<T> {
    Words::from_indices(stream.weighted_without_replacement(weights, count))
}

/// Weights of the countries, for a shop based in central Europe.
#[rustfmt::skip]
const COUNTRIES: [f64; Country::COUNT] =
// AT   BE   DK   FI   FR   DE    IT   NL   NO   PL   ES   SE   CH   UK
  [7.0, 4.0, 4.0, 3.0, 9.0, 33.0, 6.0, 8.0, 3.0, 7.0, 4.0, 5.0, 9.0, 4.0];
/// Female, male, diverse.
const GENDERS: [f64; Gender::COUNT] = [0.61, 0.37, 0.02];

/// A complete person, before they decide what to state.
#[derive(Debug)]
struct Person {
    gender: Gender,
    age: u8,
    country: Country,
    height: u8,
    weight: u8,
    body_type: BodyType,
    hair_colour: HairColour,
    /// Indices on the scales of tops, bottoms and shoes.
    sizes: [u8; SizeScale::COUNT],
}

impl Person {
    fn draw(stream: &mut Stream) -> Self {
        let gender = Gender::ALL[stream.weighted(&GENDERS)];
        let country = Country::ALL[stream.weighted(&COUNTRIES)];
        // A diverse person's body follows the women's or the men's tables, each half the time.
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
            age: round_to_u8(age, 16.0, 88.0),
            country,
            height: round_to_u8(height, 140.0, 212.0),
            weight: round_to_u8(weight, 38.0, 190.0),
            body_type: draw_body(stream, male, age, mass_index),
            hair_colour: draw_hair(stream, male, age, country),
            sizes: draw_sizes(stream, male, height, mass_index),
        }
    }

    fn is_heavy(&self) -> bool {
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
    let greyed = 1.0 / (1.0 + (-(age - 58.0) / 6.0).exp());
    // Many women dye grey hair.
    let grey = greyed * if male { 0.85 } else { 0.5 };
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
    let off = |size: &str| (size.parse::<f64>().expect("waists are numbers") - waist).abs();
    let bottom = (0..BOTTOM_SIZES.len())
        .min_by(|&a, &b| off(BOTTOM_SIZES[a]).total_cmp(&off(BOTTOM_SIZES[b])))
        .expect("the scale is not empty");
    [
        round_to_u8(top + stream.normal(0.0, 0.45), 0.0, 7.0),
        u8::try_from(bottom).expect("scales are short"),
        round_to_u8(shoe - 35.0 + stream.normal(0.0, 0.7), 0.0, 13.0),
    ]
}

/// Rounds within bounds that fit a `u8`.
fn round_to_u8(value: f64, least: f64, most: f64) -> u8 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounds fit, checked by callers"
    )]
    let rounded = value.round().clamp(least, most) as u8;
    rounded
}

fn draw_nogo_types(stream: &mut Stream, person: &Person) -> Words<ArticleType> {
    use ArticleType as T;
    #[rustfmt::skip]
    const WOMEN: &[(T, f64)] = &[
        (T::Heel, 14.0), (T::Cap, 8.0), (T::Hat, 8.0), (T::Polo, 8.0), (T::Ballerina, 7.0),
        (T::Skirt, 6.0), (T::Jumpsuit, 6.0), (T::Backpack, 5.0), (T::Shorts, 7.0), (T::Dress, 4.0),
        (T::Leggings, 5.0), (T::Hoodie, 5.0), (T::Tights, 4.0), (T::Beanie, 4.0),
        (T::LeatherJacket, 4.0), (T::LaceUp, 4.0), (T::Loafer, 3.0), (T::Waistcoat, 3.0), (T::Belt, 3.0),
        (T::Watch, 3.0), (T::Blazer, 3.0), (T::Blouse, 2.0), (T::Sandal, 2.0), (T::Scarf, 2.0),
        (T::Jewellery, 2.0), (T::Parka, 2.0), (T::BomberJacket, 3.0), (T::Sunglasses, 1.0),
    ];
    #[rustfmt::skip]
    const MEN: &[(T, f64)] = &[
        (T::Sandal, 11.0), (T::Leggings, 8.0), (T::Hat, 9.0), (T::Jewellery, 9.0), (T::Polo, 8.0),
        (T::Shorts, 7.0), (T::Cap, 7.0), (T::Waistcoat, 8.0), (T::Loafer, 7.0), (T::Cardigan, 6.0),
        (T::Beanie, 5.0), (T::Hoodie, 5.0), (T::Scarf, 4.0), (T::Chinos, 4.0), (T::LeatherJacket, 4.0),
        (T::Blazer, 3.0), (T::LaceUp, 3.0), (T::Backpack, 3.0), (T::Belt, 2.0), (T::Watch, 2.0),
        (T::Skirt, 2.0), (T::Dress, 2.0), (T::Heel, 2.0), (T::Sunglasses, 1.0), (T::Parka, 2.0),
        (T::Bag, 4.0),
    ];
    let follows_women = match person.gender {
        Gender::Female => true,
        Gender::Male => false,
        Gender::Diverse => stream.chance(0.5),
    };
    let mut weights = vec![0.0; ArticleType::COUNT];
    for (kind, weight) in if follows_women { WOMEN } else { MEN } {
        let with_age = match kind {
            T::Heel | T::Hoodie | T::Cap | T::Shorts if person.age > 52 => 2.0,
            T::Hat | T::Polo | T::Loafer if person.age < 28 => 1.5,
            _ => 1.0,
        };
        weights[kind.index()] = weight * with_age;
    }
    let count = stream.weighted(&[0.46, 0.28, 0.17, 0.09]);
    draw_words(stream, weights, count)
}

/// Customers never rule out a colour that they prefer.
fn draw_nogo_colours(stream: &mut Stream, person: &Person, preferred: Words<Colour>) -> Words<Colour> {
    #[rustfmt::skip]
    const DISLIKED: [f64; Colour::COUNT] =
    // black white grey beige brown navy blue l-bl green olive yello orang red  burg pink purpl
      [1.5, 1.5, 2.0, 5.0, 6.0, 1.5, 1.5, 1.5, 4.5, 6.0, 12., 13., 6.0, 3.5, 9.0, 8.0];
    let mut weights = DISLIKED.to_vec();
    if person.gender == Gender::Male {
        weights[Colour::Pink.index()] *= 2.0;
        weights[Colour::Purple.index()] *= 1.4;
    }
    preferred.indices().for_each(|colour| weights[colour] = 0.0);
    let count = stream.weighted(&[0.44, 0.28, 0.18, 0.10]);
    draw_words(stream, weights, count)
}

fn draw_nogo_materials(stream: &mut Stream) -> Words<Material> {
    use Material as M;
    /// Share of customers who rule out several animal materials at once.
    const VEGAN: f64 = 0.045;
    #[rustfmt::skip]
    const DISLIKED: [(M, f64); 12] = [
        (M::Fur, 14.0), (M::Polyester, 7.0), (M::Leather, 4.0), (M::Wool, 5.0), (M::Nylon, 3.0),
        (M::Suede, 2.5), (M::Down, 2.0), (M::Rubber, 2.0), (M::Silk, 1.5), (M::Viscose, 1.2),
        (M::Linen, 1.2), (M::Cashmere, 0.5),
    ];
    if stream.chance(VEGAN) {
        let animal = [M::Fur, M::Leather, M::Suede, M::Wool, M::Cashmere, M::Silk, M::Down];
        let kept = 3 + stream.below(5);
        return Words::from_indices(animal.iter().take(kept).map(|material| material.index()));
    }
    let mut weights = vec![0.0; Material::COUNT];
    for (material, weight) in DISLIKED {
        weights[material.index()] = weight;
    }
    let count = stream.weighted(&[0.62, 0.26, 0.12]);
    draw_words(stream, weights, count)
}
