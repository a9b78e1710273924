//! Which types of article are worn together, whoever wears them.

use super::{
    lexicon::{ArticleType, Family, Word},
    types::TYPES,
};

/// How much two types' difference in formality tells against wearing them together.
const FORMALITY_APART: f64 = 3.2;
/// How much warm goes with warm and airy with airy. What is neither goes with both: a coat is no
/// rarer over jeans than a trench coat is.
const SAME_WEATHER: f64 = 1.3;

/// Pairs of types that are worn together more or less than formality and warmth say.
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

/// What a family's presence makes of the warmth and of the formality of what is worn.
#[rustfmt::skip]
fn leaning(family: Family) -> (f64, f64) {
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

/// Families that a type of the body or the shoes invites or forbids.
#[expect(clippy::match_same_arms, reason = "a table: one row a rule")]
fn invites(family: Family, kind: ArticleType) -> f64 {
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

/// The tables above as factors, for every pair.
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
            let (warmth, formality) = leaning(family);
            let traits = &TYPES[kind];
            (warmth * traits.warmth + formality * (traits.formality - 0.4) + invites(family, traits.kind))
                .exp()
        };
        Self {
            pairs: (0..ArticleType::COUNT).map(|a| std::array::from_fn(|b| pair(a, b))).collect(),
            odds: Family::ALL.iter().map(|family| std::array::from_fn(|kind| odds(*family, kind))).collect(),
        }
    }

    /// The factor of two types in one outfit.
    pub(crate) fn factor(&self, a: ArticleType, b: ArticleType) -> f64 {
        self.pairs[a.index()][b.index()]
    }

    /// What a type of the core does to the odds of an optional family.
    pub(crate) fn odds_factor(&self, family: Family, core: ArticleType) -> f64 {
        self.odds[family.index()][core.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_differ_in_weather_or_dress_are_kept_apart() {
        use ArticleType as T;
        let affinity = Affinity::new();
        assert!(affinity.factor(T::Hoodie, T::Heel) < 0.1);
        assert!(affinity.factor(T::Parka, T::Sandal) < 0.05);
        assert!(affinity.factor(T::Shirt, T::Trousers) > 0.9);
        assert!(affinity.factor(T::Boot, T::Coat) > 1.5);
        assert!(affinity.odds_factor(Family::Hosiery, T::Jeans) < 0.01);
        for pair in PAIRS {
            assert!(pair.0.family() != pair.1.family(), "{pair:?} are never worn together anyway");
        }
    }
}
