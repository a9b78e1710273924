//! Templates: which slots an outfit has and of which types, before any article is picked.
//!
//! First the body (a one-piece, or a bottom and then a top) and the shoes, each type by its weight for
//! the context and its affinity to the types before it. Then every other family is in or out by odds
//! of its own, given that body, on the condition that the outfit has four to eight slots. Then a type
//! for each family that is in. A template is a set of types, at most one a family, so the types alone
//! identify it, and its probability is a product of the factors above.

use atelier::domain::{MAX_SLOTS, MIN_ARTICLES};

use crate::random::Stream;

use super::{
    affinity::Affinity,
    lexicon::{ArticleType, Family, Word},
    type_taste::TypeTaste,
};

/// The law of templates for one context.
#[derive(Debug)]
pub(crate) struct TemplateLaw<'a> {
    affinity: &'a Affinity,
    taste: TypeTaste,
}

/// The families that an outfit may do without.
const OPTIONAL: [Family; 10] = [
    Family::Layer,
    Family::Outerwear,
    Family::Bag,
    Family::Hosiery,
    Family::Belt,
    Family::Headwear,
    Family::Scarf,
    Family::Jewellery,
    Family::Watch,
    Family::Eyewear,
];

impl<'a> TemplateLaw<'a> {
    pub(crate) fn new(affinity: &'a Affinity, taste: TypeTaste) -> Self {
        Self { affinity, taste }
    }

    /// A template, its types in the order of their families.
    pub(crate) fn draw(&self, stream: &mut Stream) -> Vec<ArticleType> {
        let mut types = Vec::with_capacity(MAX_SLOTS);
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

    /// The probability of the template of these types, which are in the order of their families; zero
    /// where no outfit has them together.
    pub(crate) fn probability(&self, types: &[ArticleType]) -> f64 {
        let Some(core) = core_of(types) else { return 0.0 };
        let mut probability = self.share_of(types[0], &BASES, &[]);
        for (place, &kind) in types.iter().enumerate().skip(1) {
            probability *= self.share_of(kind, &[kind.family()], &types[..place]);
        }
        let odds = self.odds(&types[..core]);
        let chosen: f64 = types[core..]
            .iter()
            .map(|kind| {
                let place = OPTIONAL.iter().position(|family| *family == kind.family());
                odds[place.expect("what follows the core is optional; this is a bug")]
            })
            .product();
        probability * chosen / Ways::new(&odds, core).total()
    }

    /// Whether there are outfits of these types, which are in the order of their families.
    pub(crate) fn is_template(types: &[ArticleType]) -> bool {
        core_of(types).is_some()
    }

    fn weight(&self, kind: ArticleType, before: &[ArticleType]) -> f64 {
        before
            .iter()
            .fold(self.taste.weight(kind), |weight, other| weight * self.affinity.factor(kind, *other))
    }

    fn share_of(&self, kind: ArticleType, families: &[Family], before: &[ArticleType]) -> f64 {
        let total: f64 = types_of(families).map(|kind| self.weight(kind, before)).sum();
        if total > 0.0 { self.weight(kind, before) / total } else { 0.0 }
    }

    fn draw_type(&self, stream: &mut Stream, families: &[Family], before: &[ArticleType]) -> ArticleType {
        let types: Vec<ArticleType> = types_of(families).collect();
        let weights: Vec<f64> = types.iter().map(|kind| self.weight(*kind, before)).collect();
        types[stream.weighted(&weights)]
    }

    fn odds(&self, core: &[ArticleType]) -> [f64; OPTIONAL.len()] {
        OPTIONAL.map(|family| {
            core.iter()
                .fold(self.taste.odds(family), |odds, kind| odds * self.affinity.odds_factor(family, *kind))
        })
    }
}

/// An outfit begins with one of these.
const BASES: [Family; 2] = [Family::OnePiece, Family::Bottom];

fn types_of(families: &[Family]) -> impl Iterator<Item = ArticleType> {
    ArticleType::ALL.iter().copied().filter(|kind| families.contains(&kind.family()))
}

/// How many of the types, at the front, are the body and the shoes; none if these are not the types of
/// a whole outfit.
fn core_of(types: &[ArticleType]) -> Option<usize> {
    let family = |place: usize| types.get(place).map(|kind| kind.family());
    let core = match (family(0), family(1), family(2)) {
        (Some(Family::OnePiece), Some(Family::Shoes), _) => 2,
        (Some(Family::Bottom), Some(Family::Top), Some(Family::Shoes)) => 3,
        _ => return None,
    };
    let sized = (MIN_ARTICLES..=MAX_SLOTS).contains(&types.len());
    let rising = types[core - 1..].is_sorted_by(|a, b| a.family() < b.family());
    (sized && rising).then_some(core)
}

/// In how many ways, weighted by odds, the families from one place on can fill so many slots.
struct Ways {
    /// `from[place][count]`: the sum over all sets of `count` families from `place` on of their odds'
    /// product.
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
        Self { from, least: MIN_ARTICLES - core, most: MAX_SLOTS - core }
    }

    fn total(&self) -> f64 {
        self.from[0][self.least..=self.most].iter().sum()
    }

    fn draw_count(&self, stream: &mut Stream) -> usize {
        self.least + stream.weighted(&self.from[0][self.least..=self.most])
    }

    /// Of the ways to fill `left` slots from `place` on, the share that has the family at `place`.
    fn share_with(&self, place: usize, left: usize, odds: &[f64; OPTIONAL.len()]) -> f64 {
        odds[place] * self.from[place + 1][left - 1] / self.from[place][left]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        number::real,
        random::Table,
        world::{
            context::Context,
            lexicon::{Gender, Occasion, Words},
            profile::Profile,
        },
    };

    fn law(affinity: &Affinity) -> TemplateLaw<'_> {
        let mut nogo_types = Words::default();
        nogo_types.insert_index(ArticleType::Heel.index());
        let profile =
            Profile { gender: Some(Gender::Female), age: Some(31), nogo_types, ..Profile::default() };
        let context = Context { profile: &profile, occasion: Some(Occasion::Date) };
        TemplateLaw::new(affinity, TypeTaste::new(context))
    }

    /// All ways to go on from these types: each remaining family out, or in with one of its types.
    fn each_template(
        types: &mut Vec<ArticleType>,
        families: &[Family],
        each: &mut dyn FnMut(&[ArticleType]),
    ) {
        let Some((family, rest)) = families.split_first() else { return each(types) };
        each_template(types, rest, each);
        for kind in ArticleType::of(*family) {
            types.push(kind);
            each_template(types, rest, each);
            types.pop();
        }
    }

    #[test]
    fn the_templates_of_one_body_have_that_bodys_probability_together() {
        let affinity = Affinity::new();
        let law = law(&affinity);
        let core = [ArticleType::Dress, ArticleType::Sandal];
        let mut sum = 0.0;
        each_template(&mut core.to_vec(), &OPTIONAL, &mut |types| sum += law.probability(types));
        let body = law.share_of(core[0], &BASES, &[]) * law.share_of(core[1], &[Family::Shoes], &core[..1]);
        assert!((sum / body - 1.0).abs() < 1e-10, "{sum} {body}");
    }

    #[test]
    fn templates_are_drawn_as_often_as_their_probability_says() {
        let affinity = Affinity::new();
        let law = law(&affinity);
        let mut stream = Stream::new(1, Table::Slots, 0);
        let n = 60_000;
        let mut counts = std::collections::HashMap::<Vec<ArticleType>, usize>::new();
        for _ in 0..n {
            let types = law.draw(&mut stream);
            assert!((MIN_ARTICLES..=MAX_SLOTS).contains(&types.len()));
            *counts.entry(types).or_default() += 1;
        }
        let mut common = 0;
        for (types, count) in &counts {
            let expected = law.probability(types) * real(n);
            assert!(expected > 0.0);
            if expected > 25.0 {
                common += 1;
                assert!(
                    (real(*count) - expected).abs() < 5.0 * expected.sqrt(),
                    "{types:?} {count} {expected}"
                );
            }
        }
        assert!(common > 20, "only {common} templates are common enough to test");
    }

    #[test]
    fn what_is_no_template_has_no_probability() {
        use ArticleType as T;
        let affinity = Affinity::new();
        let law = law(&affinity);
        assert!(law.probability(&[T::Jeans, T::TShirt, T::Sneaker, T::Belt]) > 0.0);
        assert_eq!(law.probability(&[T::Jeans, T::TShirt, T::Sneaker]).to_bits(), 0);
        assert_eq!(law.probability(&[T::Jeans, T::Sneaker, T::Bag, T::Belt]).to_bits(), 0);
        assert_eq!(law.probability(&[T::Dress, T::Sneaker, T::Bag, T::Backpack]).to_bits(), 0);
    }
}
