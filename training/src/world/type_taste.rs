//! Which types of article suit a context, and how readily each optional family is put in.

use super::{
    context::Context,
    leanings::{by_gender, cold},
    lexicon::{ArticleType, BodyType, Family, Gender, Occasion, PriceBand, Style, Word},
    occasion,
    profile::Profile,
    types::TYPES,
};

/// What a no-go takes from its type: one in 250 is left, the stylist's slip.
const NO_GO: f64 = -5.5;
/// How much a preferred style moves the types it is at home in.
const STYLE_PULL: f64 = 0.8;

/// How much a cold country adds to warm types.
const COLD: f64 = 0.35;

/// Weights of types and odds of families for one context.
#[derive(Debug)]
pub(crate) struct TypeTaste {
    weights: [f64; ArticleType::COUNT],
    odds: [f64; Family::COUNT],
}

impl TypeTaste {
    pub(crate) fn new(context: Context<'_>) -> Self {
        let mut wanted = [0.0; ArticleType::COUNT];
        let mut weights = [0.0; ArticleType::COUNT];
        for (index, kind) in ArticleType::ALL.iter().enumerate() {
            wanted[index] = utility(context, *kind).exp();
            let no_go = if context.profile.nogo_types.has(*kind) { NO_GO.exp() } else { 1.0 };
            weights[index] = wanted[index] * no_go;
        }
        let mut odds = [0.0; Family::COUNT];
        for family in Family::ALL.iter().filter(|family| family.is_optional()) {
            let sum =
                |weights: &[f64]| ArticleType::of(*family).map(|kind| weights[kind.index()]).sum::<f64>();
            // Who rules out backpacks gets the bag less often; who rules out watches gets none.
            let left = sum(&weights) / sum(&wanted);
            odds[family.index()] = inclusion(context, *family).exp() * left;
        }
        Self { weights, odds }
    }

    pub(crate) fn weight(&self, kind: ArticleType) -> f64 {
        self.weights[kind.index()]
    }

    pub(crate) fn odds(&self, family: Family) -> f64 {
        self.odds[family.index()]
    }
}

fn utility(context: Context<'_>, kind: ArticleType) -> f64 {
    let profile = context.profile;
    let traits = kind.traits();
    let asked = occasion::traits(context.occasion);
    let [women, men] = by_gender(profile.gender);
    let formality = traits.formality - asked.formality;
    let warmth = traits.warmth - asked.warmth;
    (women * traits.worn[0] + men * traits.worn[1]).ln()
        - asked.formality_pull * formality * formality
        - asked.warmth_pull * warmth * warmth
        + COLD * cold(profile.country) * traits.warmth
        + STYLE_PULL * style_fit(profile, kind)
        + for_occasion(context.occasion, kind)
        + for_person(profile, kind)
}

/// How much more than usual this type is made in the styles that the customer prefers.
fn style_fit(profile: &Profile, kind: ArticleType) -> f64 {
    if profile.styles.is_empty() {
        return 0.0;
    }
    let styles = &TYPES[kind.index()].styles;
    let mean = styles.iter().sum::<f64>() / 10.0;
    let preferred = profile.styles.iter().map(|style| styles[style.index()]).fold(0.0, f64::max);
    (preferred / mean).ln().clamp(-1.8, 1.0)
}

/// What an occasion asks for or forbids beyond formality and warmth.
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

/// Age, body and gender.
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

/// How readily a family is put in, on the scale of logarithmic odds: for women, for men.
#[rustfmt::skip]
const USUAL: [(Family, [f64; 2]); 10] = [
    (Family::Layer,     [-1.45, -1.20]),
    (Family::Outerwear, [-0.77, -0.57]),
    (Family::Bag,       [-0.07, -1.72]),
    (Family::Hosiery,   [-1.32, -8.00]),
    (Family::Belt,      [-2.12, -1.17]),
    (Family::Headwear,  [-2.42, -1.97]),
    (Family::Scarf,     [-2.32, -2.42]),
    (Family::Jewellery, [-1.32, -3.52]),
    (Family::Watch,     [-2.77, -1.57]),
    (Family::Eyewear,   [-2.57, -2.37]),
];

/// What each occasion adds, in the order of [`USUAL`].
#[rustfmt::skip]
const BY_OCCASION: [[f64; 10]; Occasion::COUNT] = [
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

fn inclusion(context: Context<'_>, family: Family) -> f64 {
    let profile = context.profile;
    let place = USUAL
        .iter()
        .position(|(of, _)| *of == family)
        .expect("every optional family is listed; this is a bug");
    let [women, men] = by_gender(profile.gender);
    let usual = women * USUAL[place].1[0] + men * USUAL[place].1[1];
    let asked = context.occasion.map_or(0.0, |occasion| BY_OCCASION[occasion.index()][place]);
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
    usual + asked + weather + taste + worth
}

/// How much more readily those who prefer a style wear a family.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_follow_occasion_gender_and_no_gos() {
        use ArticleType as T;
        let mut profile = Profile { gender: Some(Gender::Female), ..Profile::default() };
        let ratio = |profile: &Profile, occasion, a: T, b: T| {
            let taste = TypeTaste::new(Context { profile, occasion });
            taste.weight(a) / taste.weight(b)
        };
        assert!(ratio(&profile, Some(Occasion::Wedding), T::Dress, T::Jeans) > 100.0);
        assert!(ratio(&profile, Some(Occasion::Sport), T::Sneaker, T::Heel) > 1000.0);
        let before = ratio(&profile, None, T::Skirt, T::Jeans);
        profile.nogo_types.insert_index(T::Skirt.index());
        assert!(ratio(&profile, None, T::Skirt, T::Jeans) < 0.01 * before);
        profile.nogo_types.insert_index(T::Watch.index());
        let taste = TypeTaste::new(Context { profile: &profile, occasion: None });
        assert!(taste.odds(Family::Watch) < 0.01 * taste.odds(Family::Eyewear));
        profile.gender = Some(Gender::Male);
        assert!(ratio(&profile, None, T::Heel, T::Sneaker) < 1e-3);
    }
}
