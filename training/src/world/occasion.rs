//! Occasions: how often each customer has them, and how they change an outfit.

use crate::random::Stream;

use super::{
    leanings::cold,
    lexicon::{Colour, Material, Occasion, Pattern, PriceBand, Style, Word},
    profile::Profile,
};

/// Share of outfits without an occasion.
const UNSTATED: f64 = 0.06;

/// How an occasion changes an outfit.
#[derive(Debug)]
pub(crate) struct OccasionTraits {
    share: f64,
    /// The formality that suits it, and how strictly.
    pub(crate) formality: f64,
    pub(crate) formality_pull: f64,
    /// The warmth that suits it, and how strictly.
    pub(crate) warmth: f64,
    pub(crate) warmth_pull: f64,
    /// Added to the logarithm of the ideal price.
    pub(crate) price: f64,
    /// Added to each style.
    pub(crate) styles: [f64; Style::COUNT],
}

#[rustfmt::skip]
const fn row(
    share: f64, formality: f64, formality_pull: f64, warmth: f64, warmth_pull: f64, price: f64,
    styles: [f64; 10],
) -> OccasionTraits {
    OccasionTraits { share, formality, formality_pull, warmth, warmth_pull, price, styles }
}

#[rustfmt::skip]
const OCCASIONS: [OccasionTraits; Occasion::COUNT] = [
//  share  formal pull  warm  pull  price    cla   cas   spo   str   min   rom   boh   gla   pre   roc
row(24.0,  0.32,  3.0,  0.0,  0.0,  0.00, [ 0.0,  0.5,  0.0,  0.2,  0.3,  0.0,  0.1, -0.7,  0.0,  0.0]), // everyday
row(18.0,  0.68,  7.0,  0.1,  0.2,  0.05, [ 1.0, -0.3, -2.0, -1.2,  0.8,  0.0, -0.7, -0.4,  0.6, -1.0]), // office
row( 8.0,  0.78,  7.0,  0.0,  0.2,  0.15, [ 0.4, -1.0, -2.5, -0.5,  0.4,  0.6, -0.2,  1.5, -0.4,  0.4]), // evening
row( 5.0,  0.90, 12.0, -0.2,  0.6,  0.28, [ 0.9, -1.6, -3.5, -2.0,  0.2,  1.1,  0.1,  1.1,  0.3, -1.5]), // wedding
row(15.0,  0.25,  3.0,  0.1,  0.1, -0.02, [-0.1,  0.7,  0.2,  0.4,  0.1,  0.1,  0.4, -0.8,  0.1,  0.3]), // weekend
row( 5.0,  0.05, 14.0, -0.1,  0.6, -0.08, [-2.2,  0.1,  2.6,  0.3, -0.3, -2.5, -1.8, -2.5, -1.0, -1.4]), // sport
row( 8.0,  0.28,  4.0,  0.1,  0.1,  0.00, [ 0.1,  0.6,  0.4,  0.2,  0.4, -0.2,  0.2, -0.9,  0.1,  0.0]), // travel
row( 7.0,  0.58,  4.0, -0.1,  0.2,  0.08, [ 0.3,  0.0, -1.5,  0.1,  0.3,  0.8,  0.1,  0.9,  0.0,  0.4]), // date
row( 4.0,  0.15,  6.0, -0.9,  3.5, -0.20, [-0.6,  0.5,  0.3, -0.2,  0.0,  0.3,  1.1,  0.0,  0.1, -1.0]), // beach
row( 4.0,  0.12,  6.0, -0.4,  1.6, -0.20, [-1.6,  0.3,  0.0,  1.0, -0.6,  0.0,  1.4,  0.2, -1.2,  1.0]), // festival
];

/// For an outfit without an occasion: an ordinary day, loosely.
#[rustfmt::skip]
const NONE: OccasionTraits =
row( 0.0,  0.40,  1.5,  0.0,  0.0,  0.00, [ 0.2,  0.3, -0.3,  0.0,  0.2,  0.0,  0.0, -0.3,  0.0,  0.0]);

pub(crate) fn traits(occasion: Option<Occasion>) -> &'static OccasionTraits {
    occasion.map_or(&NONE, |occasion| &OCCASIONS[occasion.index()])
}

/// Draws the occasion of an outfit for this customer.
pub(crate) fn draw(stream: &mut Stream, profile: &Profile) -> Option<Occasion> {
    Occasion::ALL.get(stream.weighted(&shares(profile))).copied()
}

/// The probability of each occasion for this customer, and last of none.
pub(crate) fn shares(profile: &Profile) -> [f64; Occasion::COUNT + 1] {
    let mut weights = OCCASIONS.each_ref().map(|traits| traits.share);
    let mut times = |occasion: Occasion, factor: f64| weights[occasion.index()] *= factor;
    match profile.age {
        Some(age) if age < 30 => {
            times(Occasion::Festival, 2.4);
            times(Occasion::Date, 1.6);
            times(Occasion::Office, 0.75);
        }
        Some(age) if age > 63 => {
            times(Occasion::Office, 0.15);
            times(Occasion::Festival, 0.15);
            times(Occasion::Sport, 0.5);
            times(Occasion::Travel, 1.5);
        }
        Some(age) if age > 45 => times(Occasion::Festival, 0.5),
        _ => {}
    }
    for style in profile.styles.iter() {
        match style {
            Style::Sporty => times(Occasion::Sport, 2.5),
            Style::Glamour => times(Occasion::Evening, 1.9),
            Style::Classic => times(Occasion::Office, 1.4),
            Style::Boho => times(Occasion::Festival, 1.6),
            Style::Romantic => times(Occasion::Date, 1.4),
            _ => {}
        }
    }
    if profile.prices.iter().flatten().any(|band| *band >= PriceBand::Upper) {
        times(Occasion::Evening, 1.25);
        times(Occasion::Wedding, 1.2);
    }
    times(Occasion::Beach, (-0.6 * cold(profile.country)).exp());
    let stated: f64 = weights.iter().sum();
    let mut shares = [UNSTATED; Occasion::COUNT + 1];
    for (share, weight) in shares.iter_mut().zip(weights) {
        *share = (1.0 - UNSTATED) * weight / stated;
    }
    shares
}

/// An occasion's part of a material.
#[expect(clippy::match_same_arms, reason = "a table: one row a rule")]
pub(crate) fn material(occasion: Option<Occasion>, material: Material) -> f64 {
    use Material as M;
    match (occasion, material) {
        (Some(Occasion::Sport), M::Polyester | M::Nylon) => 0.9,
        (Some(Occasion::Sport), M::Leather | M::Suede | M::Denim | M::Silk | M::Linen | M::Cashmere) => -1.2,
        (Some(Occasion::Beach), M::Linen) => 1.1,
        (Some(Occasion::Beach), M::Wool | M::Cashmere | M::Down | M::Fur) => -2.5,
        (Some(Occasion::Beach), M::Rubber) => 0.6,
        (Some(Occasion::Festival), M::Denim | M::Suede) => 0.4,
        (Some(Occasion::Festival), M::Silk | M::Cashmere | M::Down) => -1.2,
        (Some(Occasion::Wedding | Occasion::Evening), M::Silk) => 0.8,
        (Some(Occasion::Wedding), M::Denim | M::Rubber | M::Nylon | M::Down) => -1.5,
        (Some(Occasion::Evening | Occasion::Office), M::Denim | M::Rubber | M::Down) => -0.6,
        (Some(Occasion::Office), M::Wool) => 0.3,
        (Some(Occasion::Travel), M::Silk) => -0.5,
        _ => 0.0,
    }
}

/// An occasion's part of a colour.
#[expect(clippy::match_same_arms, reason = "a table: one row a rule")]
pub(crate) fn colour(occasion: Option<Occasion>, colour: Colour) -> f64 {
    use Colour as C;
    match (occasion, colour) {
        // Guests don't wear white at a wedding, and rarely black.
        (Some(Occasion::Wedding), C::White) => -0.6,
        (Some(Occasion::Wedding), C::Black) => -0.5,
        (Some(Occasion::Office), C::Navy | C::Grey | C::White) => 0.35,
        (Some(Occasion::Office), C::Orange | C::Yellow | C::Pink | C::Purple) => -0.5,
        (Some(Occasion::Evening), C::Black | C::Red | C::Burgundy) => 0.45,
        (Some(Occasion::Evening), C::Beige | C::Olive | C::LightBlue) => -0.3,
        (Some(Occasion::Beach), C::White | C::LightBlue | C::Yellow | C::Orange) => 0.45,
        (Some(Occasion::Beach), C::Black | C::Grey | C::Burgundy) => -0.5,
        (Some(Occasion::Date), C::Red | C::Burgundy) => 0.3,
        _ => 0.0,
    }
}

/// An occasion's part of a pattern.
#[expect(clippy::match_same_arms, reason = "a table: one row a rule")]
pub(crate) fn pattern(occasion: Option<Occasion>, pattern: Pattern) -> f64 {
    match (occasion, pattern) {
        (Some(Occasion::Office), Pattern::Printed) => -1.0,
        (Some(Occasion::Office), Pattern::Striped) => 0.2,
        (Some(Occasion::Office), Pattern::Floral) => -0.3,
        (Some(Occasion::Wedding), Pattern::Printed | Pattern::Checked) => -0.9,
        (Some(Occasion::Wedding), Pattern::Floral) => 0.4,
        (Some(Occasion::Evening), Pattern::Checked | Pattern::Striped) => -0.5,
        (Some(Occasion::Beach), Pattern::Striped | Pattern::Floral) => 0.4,
        (Some(Occasion::Festival), Pattern::Printed | Pattern::Floral) => 0.4,
        _ => 0.0,
    }
}
