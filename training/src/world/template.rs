//! Templates: which slots an outfit has and of which types, before any article is picked.
//!
//! First the body (a one-piece, or a bottom and then a top) and the shoes, each type by its weight in the
//! context and its affinity to the types before it. Then each other family is in or out by odds that
//! depend on that core, on the condition that the outfit has four to eight slots. Then a type for each
//! family that is in. A template is a set of types, at most one per family, so the types alone
//! identify it, and its probability is the product of the factors above.

use atelier_core::domain::OutfitSize;

use crate::random::Stream;

use super::{
    leanings::{by_gender, cold},
    lexicon::{ArticleType, BodyType, Family, Gender, Occasion, PriceBand, Style, Word},
    occasion,
    profile::{Context, Profile},
    types::TYPES,
};

/// The distribution of templates in one context.
#[derive(Debug)]
pub(crate) struct Templates<'a> {
    affinity: &'a Affinity,
    taste: TypeTaste,
}

/// The families that are not in every outfit.
#[rustfmt::skip]
const OPTIONAL: [Family; 10] = {
    use Family as F;
    [F::Layer, F::Outerwear, F::Bag, F::Hosiery, F::Belt, F::Headwear, F::Scarf, F::Jewellery, F::Watch, F::Eyewear]
};

const SIZE: OutfitSize = OutfitSize::PAPER;

impl<'a> Templates<'a> {
    pub(crate) fn new(affinity: &'a Affinity, context: Context<'_>) -> Self {
        Self { affinity, taste: TypeTaste::new(context) }
    }

    /// Draws a template, its types in the order of their families.
    pub(crate) fn draw(&self, stream: &mut Stream) -> Vec<ArticleType> {
        let mut types = Vec::with_capacity(SIZE.most);
        types.push(self.draw_type(stream, &BASES, &types));
        if types[0].family() == Family::Bottom {
            types.push(self.draw_type(stream, &[Family::Top], &types));
        }
        types.push(self.draw_type(stream, &[Family::Shoes], &types));
        let odds = self.odds(&types);
        let ways = Ways::new(&odds, types.len());
        let mut left = ways.draw_count(stream);
        let mut included = Vec::with_capacity(left);
        for (place, family) in OPTIONAL.iter().enumerate() {
            if left > 0 && stream.chance(ways.share_with(place, left, &odds)) {
                included.push(*family);
                left -= 1;
            }
        }
        for family in included {
            types.push(self.draw_type(stream, &[family], &types));
        }
        types
    }

    /// The probability of the template of these types, in the order of their families; zero if they are
    /// not a template.
    pub(crate) fn probability(&self, types: &[ArticleType]) -> f64 {
        let Some(core) = core_len(types) else { return 0.0 };
        let mut probability = self.share(types[0], &BASES, &[]);
        for (place, &kind) in types.iter().enumerate().skip(1) {
            probability *= self.share(kind, &[kind.family()], &types[..place]);
        }
        let odds = self.odds(&types[..core]);
        let chosen: f64 = types[core..]
            .iter()
            .map(|kind| {
                let place = OPTIONAL.iter().position(|family| *family == kind.family());
                odds[place.expect("what follows the core is optional")]
            })
            .product();
        probability * chosen / Ways::new(&odds, core).total()
    }

    /// Whether these types, in the order of their families, are a template.
    pub(crate) fn is_template(types: &[ArticleType]) -> bool {
        core_len(types).is_some()
    }

    fn weight(&self, kind: ArticleType, before: &[ArticleType]) -> f64 {
        before
            .iter()
            .fold(self.taste.weight(kind), |weight, other| weight * self.affinity.factor(kind, *other))
    }

    fn share(&self, kind: ArticleType, families: &[Family], before: &[ArticleType]) -> f64 {
        let total: f64 = types_of(families).map(|kind| self.weight(kind, before)).sum();
        if total > 0.0 { self.weight(kind, before) / total } else { 0.0 }
    }

    fn draw_type(&self, stream: &mut Stream, families: &[Family], before: &[ArticleType]) -> ArticleType {
        let types: Vec<ArticleType> = types_of(families).collect();
        let weights: Vec<f64> = types.iter().map(|kind| self.weight(*kind, before)).collect();
        types[stream.weighted(&weights)]
    }

    fn odds(&self, core: &[ArticleType]) -> [f64; OPTIONAL.len()] {
        std::array::from_fn(|place| {
            let odds = self.taste.odds[place];
            core.iter().fold(odds, |odds, kind| odds * self.affinity.odds_factor(OPTIONAL[place], *kind))
        })
    }
}

/// An outfit starts with one of these.
const BASES: [Family; 2] = [Family::OnePiece, Family::Bottom];

fn types_of(families: &[Family]) -> impl Iterator<Item = ArticleType> {
    ArticleType::ALL.iter().copied().filter(|kind| families.contains(&kind.family()))
}

/// The number of types at the front that are the body and the shoes; `None` if these types are not a
/// template.
fn core_len(types: &[ArticleType]) -> Option<usize> {
    let family = |place: usize| types.get(place).map(|kind| kind.family());
    let core = match (family(0), family(1), family(2)) {
        (Some(Family::OnePiece), Some(Family::Shoes), _) => 2,
        (Some(Family::Bottom), Some(Family::Top), Some(Family::Shoes)) => 3,
        _ => return None,
    };
    let sized = SIZE.check(types.len()).is_ok();
    let rising = types[core - 1..].is_sorted_by(|a, b| a.family() < b.family());
    (sized && rising).then_some(core)
}

/// The ways to choose optional families, weighted by odds.
struct Ways {
    /// `from[place][count]`: the sum, over all sets of `count` families from `place` on, of the product
    /// of their odds.
    from: [[f64; OPTIONAL.len() + 1]; OPTIONAL.len() + 1],
    least: usize,
    most: usize,
}

impl Ways {
    fn new(odds: &[f64; OPTIONAL.len()], core: usize) -> Self {
        let mut from = [[0.0; OPTIONAL.len() + 1]; OPTIONAL.len() + 1];
        from[OPTIONAL.len()][0] = 1.0;
        for place in (0..OPTIONAL.len()).rev() {
            from[place][0] = 1.0;
            for count in 1..=OPTIONAL.len() - place {
                from[place][count] = from[place + 1][count] + odds[place] * from[place + 1][count - 1];
            }
        }
        Self { from, least: SIZE.least - core, most: SIZE.most - core }
    }

    fn total(&self) -> f64 {
        self.from[0][self.least..=self.most].iter().sum()
    }

    fn draw_count(&self, stream: &mut Stream) -> usize {
        self.least + stream.weighted(&self.from[0][self.least..=self.most])
    }

    /// The share of the ways to choose `left` families from `place` on that has the family at `place`.
    fn share_with(&self, place: usize, left: usize, odds: &[f64; OPTIONAL.len()]) -> f64 {
        odds[place] * self.from[place + 1][left - 1] / self.from[place][left]
    }
}

/// A type that the customer ruled out: 1 in 250 is left.
const NO_GO: f64 = -5.5;
/// The weight of how common a type is in the preferred styles.
const STYLE_PULL: f64 = 0.8;
/// How much a cold country adds to warm types.
const COLD: f64 = 0.35;

/// Weights of types and odds of families in one context.
#[derive(Debug)]
struct TypeTaste {
    weights: [f64; ArticleType::COUNT],
    /// Of each optional family.
    odds: [f64; OPTIONAL.len()],
}

impl TypeTaste {
    fn new(context: Context<'_>) -> Self {
        let mut wanted = [0.0; ArticleType::COUNT];
        let mut weights = [0.0; ArticleType::COUNT];
        for (index, kind) in ArticleType::ALL.iter().enumerate() {
            wanted[index] = utility(context, *kind).exp();
            let no_go = if context.profile.nogo_types.has(*kind) { NO_GO.exp() } else { 1.0 };
            weights[index] = wanted[index] * no_go;
        }
        let odds = std::array::from_fn(|place| {
            let sum =
                |weights: &[f64]| OPTIONAL[place].types().map(|kind| weights[kind.index()]).sum::<f64>();
            // A customer who rules out backpacks gets fewer bags; one who rules out watches gets none.
            let left = sum(&weights) / sum(&wanted);
            ln_odds(context, place).exp() * left
        });
        Self { weights, odds }
    }

    fn weight(&self, kind: ArticleType) -> f64 {
        self.weights[kind.index()]
    }
}

fn utility(context: Context<'_>, kind: ArticleType) -> f64 {
    let profile = context.profile;
    let traits = kind.traits();
    let wanted = occasion::traits(context.occasion);
    let [women, men] = by_gender(profile.gender);
    let formality = traits.formality - wanted.formality;
    let warmth = traits.warmth - wanted.warmth;
    (women * traits.worn[0] + men * traits.worn[1]).ln()
        - wanted.formality_pull * formality * formality
        - wanted.warmth_pull * warmth * warmth
        + COLD * cold(profile.country) * traits.warmth
        + STYLE_PULL * style_fit(profile, kind)
        + for_occasion(context.occasion, kind)
        + for_person(profile, kind)
}

/// How much more common than average this type is in the styles that the customer prefers.
fn style_fit(profile: &Profile, kind: ArticleType) -> f64 {
    if profile.styles.is_empty() {
        return 0.0;
    }
    let styles = &TYPES[kind.index()].styles;
    let mean = styles.iter().sum::<f64>() / 10.0;
    let preferred = profile.styles.iter().map(|style| styles[style.index()]).fold(0.0, f64::max);
    (preferred / mean).ln().clamp(-1.8, 1.0)
}

/// An occasion's part of a type, beyond formality and warmth.
#[rustfmt::skip]
#[expect(clippy::match_same_arms, reason = "a table: one row a rule")]
fn for_occasion(occasion: Option<Occasion>, kind: ArticleType) -> f64 {
    use ArticleType as T;
    use Occasion as O;
    let Some(occasion) = occasion else { return 0.0 };
    match (occasion, kind) {
        (O::Sport, T::Leggings | T::Sneaker) => 2.0,
        (O::Sport, T::Shorts) => 1.2,
        (O::Sport, T::TShirt | T::Hoodie) => 0.8,
        (O::Sport, T::Jeans | T::Chinos | T::Skirt | T::Dress | T::Sandal | T::Jumpsuit | T::LeatherJacket | T::DenimJacket | T::Hat) => -3.0,
        (O::Sport, T::Sweater | T::Polo | T::Boot | T::Top | T::Cardigan | T::Coat | T::TrenchCoat) => -1.2,
        (O::Beach, T::Sandal | T::Shorts) => 1.6,
        (O::Beach, T::Dress | T::Hat) => 0.8,
        (O::Beach, T::Boot | T::Blazer | T::Jeans | T::Leggings | T::Sweater | T::LeatherJacket | T::Beanie) => -1.8,
        (O::Beach, T::LaceUp | T::Heel | T::Coat | T::Parka | T::TrenchCoat) => -4.0,
        (O::Wedding, T::Dress) => 1.3,
        (O::Wedding, T::Heel | T::LaceUp | T::Blazer) => 0.6,
        (O::Wedding, T::Jeans | T::Leggings | T::Shorts | T::Hoodie | T::TShirt | T::Sneaker) => -2.5,
        (O::Wedding, T::Backpack | T::Cap | T::Beanie | T::Parka | T::RainJacket | T::BomberJacket | T::DenimJacket) => -2.5,
        (O::Evening, T::Dress | T::Heel) => 0.7,
        (O::Evening, T::Backpack | T::Hoodie | T::Leggings | T::Shorts | T::RainJacket) => -1.5,
        (O::Office, T::Shorts | T::Leggings | T::Hoodie | T::Sandal) => -1.8,
        (O::Office, T::Blazer | T::Shirt | T::Blouse | T::Trousers) => 0.3,
        (O::Travel, T::Backpack | T::Sneaker) => 0.7,
        (O::Travel, T::Heel) => -2.0,
        (O::Date, T::Dress) => 0.4,
        (O::Date, T::RainJacket | T::Leggings | T::Backpack) => -1.0,
        (O::Festival, T::Boot | T::DenimJacket | T::Shorts | T::Hat) => 0.8,
        (O::Festival, T::Heel | T::LaceUp | T::Blazer | T::Coat | T::Loafer) => -1.5,
        (O::Festival, T::Parka) => -2.0,
        (O::Weekend, T::Heel | T::LaceUp) => -0.6,
        _ => 0.0,
    }
}

/// Part of the customer's age, body and gender in a type.
#[rustfmt::skip]
fn for_person(profile: &Profile, kind: ArticleType) -> f64 {
    use ArticleType as T;
    let decades = profile.age.map_or(0.0, |age| (f64::from(age) - 38.0) / 10.0);
    let by_age = match kind {
        T::Hoodie | T::Cap | T::BomberJacket => -0.35,
        T::Shorts | T::Leggings | T::Backpack | T::DenimJacket | T::Beanie => -0.20,
        T::Sneaker | T::LeatherJacket | T::Top => -0.12,
        T::Loafer | T::Cardigan | T::Polo | T::Blazer | T::Hat => 0.18,
        T::Blouse | T::Shirt | T::Coat | T::Trousers | T::Chinos | T::LaceUp => 0.14,
        _ => 0.0,
    };
    let tall = profile.height.is_some_and(|height| height >= 178);
    let heel = match (kind, profile.gender) {
        (T::Heel, Some(Gender::Female)) if tall => -0.7,
        (T::Heel, Some(Gender::Female)) if decades > 2.2 => -1.0,
        _ => 0.0,
    };
    let body = match (kind, profile.apparent_body()) {
        (T::Leggings | T::Shorts, Some(BodyType::Full)) => -0.7,
        (T::Dress, Some(BodyType::Curvy)) => 0.3,
        (T::Waistcoat | T::Polo, Some(BodyType::Broad)) => -0.2,
        (T::Cardigan, Some(BodyType::Full)) => 0.4,
        _ => 0.0,
    };
    by_age * decades.clamp(-2.2, 3.5) + heel + body
}

/// Logarithmic odds of each optional family.
#[rustfmt::skip]
const USUAL: [[f64; OPTIONAL.len()]; 2] = [
// layer  outer  bag    hosi   belt   head   scarf  jewel  watch  eye
  [-1.45, -0.77, -0.07, -1.32, -2.12, -2.42, -2.32, -1.32, -2.77, -2.57], // women
  [-1.20, -0.57, -1.72, -8.00, -1.17, -1.97, -2.42, -3.52, -1.57, -2.37], // men
];

/// Each occasion's part of them.
#[rustfmt::skip]
const BY_OCCASION: [[f64; OPTIONAL.len()]; Occasion::COUNT] = [
//  layer outer  bag   hosi  belt  head  scarf jewel watch eye
  [ 0.0,  0.2,  0.1,  0.0,  0.0,  0.0,  0.1, -0.1,  0.0,  0.0], // everyday
  [ 0.9,  0.1,  0.4,  0.4,  0.5, -2.8, -0.3,  0.0,  0.5, -1.4], // office
  [ 0.3, -0.3,  0.2,  0.4,  0.1, -1.8, -0.7,  0.8,  0.4, -2.0], // evening
  [ 0.6, -1.0,  0.2,  0.2,  0.3, -1.0, -0.8,  1.1,  0.7, -1.2], // wedding
  [-0.2,  0.3,  0.0, -0.3,  0.0,  0.4,  0.3, -0.3, -0.2,  0.3], // weekend
  [-4.0, -0.1, -0.2, -3.0, -4.0,  0.8, -2.0, -3.0, -0.1, -0.3], // sport
  [ 0.1,  0.5,  0.7, -0.5,  0.0,  0.3,  0.5, -0.6,  0.2,  0.6], // travel
  [ 0.1,  0.0,  0.1,  0.3,  0.1, -1.0, -0.2,  0.6,  0.2, -0.8], // date
  [-2.5, -3.5,  0.5, -5.0, -1.5,  1.4, -2.5, -0.2, -0.8,  1.7], // beach
  [-1.5,  0.0,  0.1, -1.0,  0.2,  0.9, -0.8,  0.1, -0.8,  1.0], // festival
];

/// The logarithmic odds of the optional family at `place`, before no-gos.
fn ln_odds(context: Context<'_>, place: usize) -> f64 {
    let profile = context.profile;
    let family = OPTIONAL[place];
    let [women, men] = by_gender(profile.gender);
    let usual = women * USUAL[0][place] + men * USUAL[1][place];
    let by_occasion = context.occasion.map_or(0.0, |occasion| BY_OCCASION[occasion.index()][place]);
    let cold = cold(profile.country);
    let weather = match family {
        Family::Outerwear | Family::Scarf => 0.35 * cold,
        Family::Layer | Family::Headwear => 0.15 * cold,
        Family::Eyewear => -0.3 * cold,
        _ => 0.0,
    };
    let rich = profile.prices.iter().flatten().filter(|band| **band >= PriceBand::Upper).count() >= 2;
    let taste: f64 = profile.styles.iter().map(|style| wears(style, family)).sum();
    let worth = match family {
        Family::Watch | Family::Jewellery if rich => 0.3,
        _ => 0.0,
    };
    usual + by_occasion + weather + taste + worth
}

/// A preferred style's part of a family.
#[expect(clippy::match_same_arms, reason = "a table: one row a rule")]
fn wears(style: Style, family: Family) -> f64 {
    match (style, family) {
        (Style::Glamour | Style::Boho, Family::Jewellery) => 0.6,
        (Style::Minimal, Family::Jewellery | Family::Scarf | Family::Headwear) => -0.4,
        (Style::Street, Family::Headwear) | (Style::Classic, Family::Scarf) => 0.5,
        (Style::Sporty, Family::Jewellery | Family::Belt) => -0.4,
        (Style::Rock, Family::Belt) | (Style::Preppy | Style::Classic, Family::Layer) => 0.3,
        _ => 0.0,
    }
}

/// The cost of the squared difference in formality.
const FORMALITY_APART: f64 = 3.2;
/// The worth of the product of warmths: warm goes with warm and airy with airy. Types in between go with
/// both, so that coats are as common with jeans as trench coats are.
const SAME_WEATHER: f64 = 1.3;

/// Pairs of types that are worn together more or less often than formality and warmth suggest.
#[rustfmt::skip]
const PAIRS: &[(ArticleType, ArticleType, f64)] = {
    use ArticleType as T;
    &[
        (T::Blazer, T::Hoodie, -1.2), (T::Blazer, T::Shorts, -1.5), (T::Blazer, T::Leggings, -2.0),
        (T::Blazer, T::Polo, -0.4), (T::Blazer, T::TShirt, 0.5), (T::Blazer, T::Jeans, 0.4),
        (T::Waistcoat, T::TShirt, -1.0), (T::Waistcoat, T::Hoodie, -2.5), (T::Waistcoat, T::Sweater, -1.5),
        (T::Waistcoat, T::Jumpsuit, -2.0), (T::Waistcoat, T::Dress, -1.5),
        (T::Cardigan, T::Hoodie, -3.0), (T::Cardigan, T::Sweater, -2.0),
        (T::Shirt, T::Leggings, -1.2), (T::Blouse, T::Leggings, -0.8), (T::Polo, T::Leggings, -1.0),
        (T::Polo, T::Skirt, -0.3), (T::Hoodie, T::Skirt, -0.8), (T::Hoodie, T::Trousers, -0.6),
        (T::Hoodie, T::Leggings, 0.6), (T::Sweater, T::Shorts, -0.8), (T::Hoodie, T::Shorts, 0.4),
        (T::Jeans, T::Sneaker, 0.3), (T::Jeans, T::Heel, 0.5), (T::Jeans, T::Boot, 0.2),
        (T::Trousers, T::Sneaker, 0.4), (T::Dress, T::Sneaker, 0.2), (T::Dress, T::LaceUp, -1.5),
        (T::Dress, T::Boot, 0.3), (T::Skirt, T::LaceUp, -0.8), (T::Skirt, T::Boot, 0.3),
        (T::Trousers, T::Sandal, -0.3), (T::Leggings, T::Sneaker, 0.8), (T::Leggings, T::Heel, -1.5),
        (T::Leggings, T::LaceUp, -2.0), (T::Leggings, T::Loafer, -1.2), (T::Shorts, T::Boot, -1.5),
        (T::Shorts, T::Heel, -1.0), (T::Shorts, T::LaceUp, -1.5), (T::Hoodie, T::Heel, -1.5),
        (T::Hoodie, T::LaceUp, -2.0), (T::Hoodie, T::Loafer, -0.8), (T::TShirt, T::LaceUp, -0.4),
        (T::Coat, T::Shorts, -2.0), (T::Parka, T::Shorts, -2.0), (T::Parka, T::Sandal, -2.0),
        (T::Coat, T::Sandal, -2.0), (T::Coat, T::Leggings, -0.8), (T::Coat, T::Hoodie, 0.2),
        (T::RainJacket, T::Heel, -1.5), (T::Parka, T::Heel, -1.2), (T::Parka, T::LaceUp, -0.6),
        (T::Parka, T::Blazer, -0.8), (T::BomberJacket, T::Blazer, -2.5), (T::DenimJacket, T::Blazer, -2.5),
        (T::LeatherJacket, T::Blazer, -2.0), (T::RainJacket, T::Blazer, -1.0),
        (T::DenimJacket, T::Jeans, -1.0), (T::DenimJacket, T::Dress, 0.6), (T::LeatherJacket, T::Dress, 0.4),
        (T::LeatherJacket, T::Hoodie, 0.2), (T::BomberJacket, T::LaceUp, -1.0),
        (T::Backpack, T::Heel, -1.8), (T::Backpack, T::Dress, -0.8), (T::Backpack, T::Blazer, -0.4),
        (T::Cap, T::Blazer, -1.5), (T::Cap, T::Heel, -2.0), (T::Cap, T::Coat, -0.5), (T::Cap, T::LaceUp, -1.5),
        (T::Beanie, T::Heel, -1.5), (T::Beanie, T::Sandal, -2.5), (T::Beanie, T::Shorts, -1.5),
        (T::Hat, T::Hoodie, -1.0), (T::Hat, T::Parka, -0.8), (T::Hat, T::Leggings, -0.8),
    ]
};

/// How an optional family's odds depend on the warmth and the formality of a type of the core.
#[rustfmt::skip]
fn weather_and_formality(family: Family) -> (f64, f64) {
    match family {
        Family::Layer      => ( 0.40,  0.9),
        Family::Outerwear  => ( 0.60,  0.0),
        Family::Scarf      => ( 1.10,  0.2),
        Family::Hosiery    => ( 0.50,  0.3),
        Family::Headwear   => ( 0.10, -1.5),
        Family::Eyewear    => (-0.80, -0.4),
        Family::Jewellery  => (-0.10,  1.3),
        Family::Watch      => ( 0.00,  0.6),
        Family::Belt       => ( 0.00,  0.3),
        Family::Bag        => ( 0.00,  0.2),
        Family::OnePiece | Family::Bottom | Family::Top | Family::Shoes => (0.0, 0.0),
    }
}

/// A core type's part in the odds of an optional family.
#[expect(clippy::match_same_arms, reason = "a table: one row a rule")]
fn core_odds(family: Family, kind: ArticleType) -> f64 {
    use ArticleType as T;
    match (family, kind) {
        (Family::Hosiery, T::Trousers | T::Chinos | T::Jeans | T::Leggings | T::Jumpsuit) => -7.0,
        (Family::Hosiery, T::Shorts | T::Sandal) => -3.0,
        (Family::Hosiery, T::Sneaker) => -1.0,
        (Family::Hosiery, T::Boot) => 0.5,
        (Family::Belt, T::Leggings) => -4.0,
        (Family::Belt, T::Dress | T::Hoodie | T::Sweater) => -0.9,
        (Family::Belt, T::Skirt) => -0.7,
        (Family::Belt, T::Jeans | T::Chinos | T::Shirt) => 0.3,
        (Family::Belt, T::LaceUp) => 0.5,
        (Family::Layer, T::Hoodie) => -2.2,
        (Family::Layer, T::Sweater) => -1.2,
        (Family::Layer, T::Polo) => -0.6,
        (Family::Layer, T::Shirt | T::Top) => 0.3,
        (Family::Scarf, T::Shorts) => -1.5,
        (Family::Outerwear, T::Shorts) => -0.7,
        _ => 0.0,
    }
}

/// How types go together in any context: the tables above as factors.
#[derive(Debug)]
pub(crate) struct Affinity {
    pairs: Vec<[f64; ArticleType::COUNT]>,
    odds: Vec<[f64; ArticleType::COUNT]>,
}

impl Affinity {
    pub(crate) fn new() -> Self {
        let pair = |a: usize, b: usize| {
            let formality = TYPES[a].formality - TYPES[b].formality;
            let weather = TYPES[a].warmth * TYPES[b].warmth;
            let (kind_a, kind_b) = (TYPES[a].kind, TYPES[b].kind);
            let named = PAIRS
                .iter()
                .find(|(x, y, _)| (*x, *y) == (kind_a, kind_b) || (*x, *y) == (kind_b, kind_a))
                .map_or(0.0, |(_, _, score)| *score);
            (named - FORMALITY_APART * formality * formality + SAME_WEATHER * weather).exp()
        };
        let odds = |family: Family, kind: usize| {
            let (warmth, formality) = weather_and_formality(family);
            let traits = &TYPES[kind];
            (warmth * traits.warmth + formality * (traits.formality - 0.4) + core_odds(family, traits.kind))
                .exp()
        };
        Self {
            pairs: (0..ArticleType::COUNT).map(|a| std::array::from_fn(|b| pair(a, b))).collect(),
            odds: Family::ALL.iter().map(|family| std::array::from_fn(|kind| odds(*family, kind))).collect(),
        }
    }

    /// The factor of two types in one outfit.
    fn factor(&self, a: ArticleType, b: ArticleType) -> f64 {
        self.pairs[a.index()][b.index()]
    }

    /// The factor of a type of the core on the odds of an optional family.
    fn odds_factor(&self, family: Family, core: ArticleType) -> f64 {
        self.odds[family.index()][core.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::real;
    use crate::random::Table;
    use crate::world::lexicon::Words;

    fn templates(affinity: &Affinity) -> Templates<'_> {
        let profile = Profile {
            gender: Some(Gender::Female),
            age: Some(31),
            nogo_types: Words::from_indices([ArticleType::Heel.index()]),
            ..Profile::default()
        };
        Templates::new(affinity, Context { profile: &profile, occasion: Some(Occasion::Date) })
    }

    #[test]
    fn templates_are_drawn_as_often_as_their_probability_says() {
        let affinity = Affinity::new();
        let templates = templates(&affinity);
        let mut stream = Stream::new(1, Table::Slots, 0);
        let n = 60_000;
        let mut counts = std::collections::HashMap::<Vec<ArticleType>, usize>::new();
        for _ in 0..n {
            let types = templates.draw(&mut stream);
            assert!(SIZE.check(types.len()).is_ok());
            *counts.entry(types).or_default() += 1;
        }
        let mut common = 0;
        for (types, count) in &counts {
            let expected = templates.probability(types) * real(n);
            assert!(expected > 0.0);
            if expected > 25.0 {
                common += 1;
                let off = (real(*count) - expected).abs();
                assert!(off < 5.0 * expected.sqrt(), "{types:?} {count} {expected}");
            }
        }
        assert!(common > 20, "only {common} templates are common enough to test");
    }

    #[test]
    fn types_that_are_not_a_template_have_no_probability() {
        use ArticleType as T;
        let affinity = Affinity::new();
        let templates = templates(&affinity);
        assert!(templates.probability(&[T::Jeans, T::TShirt, T::Sneaker, T::Belt]) > 0.0);
        assert_eq!(templates.probability(&[T::Jeans, T::TShirt, T::Sneaker]).to_bits(), 0);
        assert_eq!(templates.probability(&[T::Jeans, T::Sneaker, T::Bag, T::Belt]).to_bits(), 0);
        assert_eq!(templates.probability(&[T::Dress, T::Sneaker, T::Bag, T::Backpack]).to_bits(), 0);
    }
}
