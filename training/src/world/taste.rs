//! An article's utility `u` for a context: why one article of a type is better than another.
//!
//! A [`Taste`] is a set of tables, made once per context, whose entries add up to an article's utility.
//! How articles go together is in `harmony`, which types are worn is in `template`.

use crate::number::real;

use super::{
    brands::BRANDS,
    catalogue::{ArticleTraits, TIER_LN_PRICE},
    leanings::{cold, style_leaning},
    lexicon::{
        BodyType,
        Colour::{
            self, Beige, Black, Blue, Brown, Burgundy, Green, Grey, LightBlue, Navy, Olive, Orange, Pink,
            Purple, Red, White, Yellow,
        },
        Family, Fit, Gender, HairColour, Material, Occasion, Pattern, PriceBand, PriceGroup, SizeScale,
        Style, Wearer, Word,
    },
    occasion,
    profile::{Context, Profile},
};

/// The exponent of the popularity's Zipf tail.
const POPULARITY: f64 = 1.5;
/// The weight of everything but popularity, against the stylist's noise.
const FIRMNESS: f64 = 1.6;
/// A preferred brand.
const BRAND: f64 = 2.0;
/// Each style that another brand shares with the customer.
const BRAND_OF_STYLE: f64 = 0.35;
/// A material or colour that the customer ruled out: with [`FIRMNESS`], 1 in 370 is left.
const NO_GO: f64 = -3.7;
/// One size off may still fit; two do not.
const ONE_SIZE_OFF: f64 = -3.2;
const SIZE_OFF: f64 = -6.0;

/// The part of the body where an article is worn, which weighs its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zone {
    /// Near the face, where hair matters.
    Face = 0,
    Legs = 1,
    /// Shoes and small articles, where colour matters less.
    Small = 2,
}

const ZONES: [Zone; 3] = [Zone::Face, Zone::Legs, Zone::Small];

impl Zone {
    fn for_family(family: Family) -> Self {
        use Family as F;
        match family {
            F::OnePiece | F::Top | F::Layer | F::Outerwear | F::Scarf | F::Headwear => Zone::Face,
            F::Bottom | F::Hosiery => Zone::Legs,
            F::Shoes | F::Bag | F::Belt | F::Jewellery | F::Watch | F::Eyewear => Zone::Small,
        }
    }
}

/// A context's taste in articles.
#[derive(Debug)]
pub(crate) struct Taste {
    brands: [f64; BRANDS.len()],
    colours: [[f64; Colour::COUNT]; ZONES.len()],
    styles: [f64; Style::COUNT],
    patterns: [f64; Pattern::COUNT],
    materials: [f64; Material::COUNT],
    /// Above the waist, below it.
    fits: [[f64; Fit::COUNT]; 2],
    wearers: [f64; Wearer::COUNT],
    sizes: [Option<u8>; SizeScale::COUNT],
    /// The ideal price, as a logarithm over the type's median.
    prices: [f64; PriceGroup::COUNT],
    one_piece_price: f64,
    /// The cost of each unit of squared distance from the ideal price.
    thrift: [f64; PriceGroup::COUNT],
}

impl Taste {
    pub(crate) fn new(context: Context<'_>) -> Self {
        let profile = context.profile;
        let prices: [f64; PriceGroup::COUNT] =
            std::array::from_fn(|group| ideal_price(context, PriceGroup::ALL[group]));
        Self {
            brands: brand_taste(profile),
            colours: ZONES.map(|zone| colour_taste(context, zone)),
            styles: style_taste(context),
            patterns: pattern_taste(context),
            materials: material_taste(context),
            fits: [true, false].map(|above| fit_taste(profile, above)),
            wearers: wearer_taste(profile),
            sizes: profile.sizes,
            prices,
            one_piece_price: f64::midpoint(
                prices[PriceGroup::Tops.index()],
                prices[PriceGroup::Bottoms.index()],
            ),
            thrift: std::array::from_fn(|group| thrift(context, PriceGroup::ALL[group])),
        }
    }

    /// How well the article suits the context, on the scale of logarithmic weights.
    pub(crate) fn utility(&self, article: &ArticleTraits) -> f64 {
        let family = article.kind.family();
        let fit = match article.fit {
            Some(fit) => self.fits[usize::from(family == Family::Bottom)][fit.index()],
            None => 0.0,
        };
        let taste = self.brands[usize::from(article.brand)]
            + self.colours[Zone::for_family(family) as usize][article.colour.index()]
            + self.styles[article.style.index()]
            + self.patterns[article.pattern.index()]
            + self.materials[article.material.index()]
            + fit
            + self.wearers[article.wearer.index()]
            + self.size(article, family)
            + self.price(article, family);
        POPULARITY * article.ln_popularity + FIRMNESS * taste
    }

    fn size(&self, article: &ArticleTraits, family: Family) -> f64 {
        let (Some((first, last)), Some(scale)) = (article.sizes, family.size_scale()) else { return 0.0 };
        let Some(size) = self.sizes[scale.index()] else { return 0.0 };
        match first.saturating_sub(size).max(size.saturating_sub(last)) {
            0 => 0.0,
            1 => ONE_SIZE_OFF,
            _ => SIZE_OFF,
        }
    }

    fn price(&self, article: &ArticleTraits, family: Family) -> f64 {
        let group = family.price_group().index();
        let ideal = if family == Family::OnePiece { self.one_piece_price } else { self.prices[group] };
        let off = article.price_level - ideal;
        // Too expensive is worse than too cheap.
        let direction = if off > 0.0 { 1.4 } else { 1.0 };
        -0.5 * self.thrift[group] * direction * off * off
    }
}

fn brand_taste(profile: &Profile) -> [f64; BRANDS.len()] {
    // Loyalty to a brand grows with age.
    let loyalty =
        BRAND * profile.age.map_or(1.0, |age| 1.0 + (f64::from(age) - 38.0).clamp(-20.0, 25.0) / 80.0);
    std::array::from_fn(|brand| {
        if profile.brands.has_index(brand) {
            return loyalty;
        }
        let shared = BRANDS[brand].styles.iter().filter(|style| profile.styles.has(**style)).count();
        BRAND_OF_STYLE * real(shared)
    })
}

fn material_taste(context: Context<'_>) -> [f64; Material::COUNT] {
    let profile = context.profile;
    let cold = cold(profile.country);
    std::array::from_fn(|index| {
        let material = Material::ALL[index];
        let no_go = if profile.nogo_materials.has(material) { NO_GO } else { 0.0 };
        let weather = match material {
            Material::Wool | Material::Down | Material::Cashmere => 0.25 * cold,
            Material::Linen => -0.3 * cold,
            _ => 0.0,
        };
        // Buyers of upper and luxury clothes avoid polyester.
        let fineness = match (material, profile.price(PriceGroup::Tops)) {
            (Material::Polyester, Some(PriceBand::Upper | PriceBand::Luxury)) => -0.6,
            (Material::Cashmere | Material::Silk, Some(PriceBand::Upper | PriceBand::Luxury)) => 0.4,
            _ => 0.0,
        };
        no_go + weather + fineness + occasion::material(context.occasion, material)
    })
}

fn wearer_taste(profile: &Profile) -> [f64; Wearer::COUNT] {
    // Women who like wide clothes or street style wear men's articles on purpose.
    let borrows = profile.fit == Some(Fit::Oversized) || profile.styles.has(Style::Street);
    let neutral = profile.styles.has(Style::Minimal) || profile.styles.has(Style::Street);
    let unisex = if neutral { 0.2 } else { -0.3 };
    match profile.gender {
        Some(Gender::Female) => [0.0, if borrows { -1.8 } else { -3.2 }, unisex],
        Some(Gender::Male) => [-5.5, 0.0, unisex],
        Some(Gender::Diverse) => [-0.3, -0.3, 0.5],
        None => [0.0, 0.0, 0.1],
    }
}

/// The ideal price: the middle of the customer's band, moved by the occasion.
fn ideal_price(context: Context<'_>, group: PriceGroup) -> f64 {
    let band = context.profile.price(group).map_or(0.0, |band| TIER_LN_PRICE[band.index()]);
    let moved = match group {
        // Shoes and bags are worn again after the occasion, so it moves their price less.
        PriceGroup::Shoes | PriceGroup::Accessories => 0.5,
        _ => 1.0,
    };
    band + moved * occasion::traits(context.occasion).price
}

/// How closely the stylist keeps to the ideal price.
fn thrift(context: Context<'_>, group: PriceGroup) -> f64 {
    let profile = context.profile;
    let Some(band) = profile.price(group) else { return 0.8 };
    // The young watch prices most; weddings and evenings matter more than the price.
    let age = match profile.age {
        Some(age) if age < 28 => 1.35,
        Some(age) if age > 55 => 0.8,
        _ => 1.0,
    };
    let day = match context.occasion {
        Some(Occasion::Wedding | Occasion::Evening) => 0.65,
        Some(Occasion::Festival | Occasion::Sport) => 1.2,
        _ => 1.0,
    };
    let poor = if band == PriceBand::Budget { 1.3 } else { 1.0 };
    4.8 * age * day * poor
}

/// The worth of a single preferred colour near the face; several share it.
const PREFERRED_COLOUR: f64 = 1.5;

fn colour_taste(context: Context<'_>, zone: Zone) -> [f64; Colour::COUNT] {
    let profile = context.profile;
    let weight = match zone {
        Zone::Face => 1.0,
        Zone::Legs => 0.7,
        Zone::Small => 0.45,
    };
    let stated = PREFERRED_COLOUR / real(profile.colours.len().max(1)).powf(0.4);
    std::array::from_fn(|index| {
        let colour = Colour::ALL[index];
        if profile.nogo_colours.has(colour) {
            return NO_GO;
        }
        let mut utility = occasion::colour(context.occasion, colour);
        if profile.colours.has(colour) {
            utility += stated;
            // Customers who prefer black and rock wear black throughout.
            if colour == Black && profile.styles.has(Style::Rock) {
                utility += 0.7;
            }
        } else if profile.colours.iter().any(|liked| related(liked, colour)) {
            utility += 0.4 * stated;
        }
        if zone == Zone::Face
            && let Some(hair) = profile.hair_colour
        {
            utility += flatters(hair, colour);
        }
        if profile.gender == Some(Gender::Male)
            && matches!(colour, Pink | Purple)
            && !profile.colours.has(colour)
        {
            utility -= 0.6;
        }
        // Large customers wear dark colours on the legs.
        if zone == Zone::Legs && profile.is_large() {
            utility += match colour {
                Black | Navy => 0.7,
                White | Beige | Yellow | Orange | Pink | LightBlue => -0.5,
                _ => 0.0,
            };
        }
        // Older customers wear less black and more colour near the face.
        if profile.age.is_some_and(|age| age > 60) {
            utility += match (zone, colour) {
                (Zone::Face, Black) => -0.4,
                (Zone::Face, LightBlue | Burgundy | Navy) => 0.3,
                _ => 0.0,
            };
        }
        weight * utility
    })
}

/// Whether two colours are shades of one.
fn related(a: Colour, b: Colour) -> bool {
    #[rustfmt::skip]
    const SHADES: [(Colour, Colour); 7] = [
        (Navy, Blue), (LightBlue, Blue), (Beige, Brown), (Red, Burgundy), (Green, Olive), (Black, Grey),
        (Pink, Purple),
    ];
    SHADES.contains(&(a, b)) || SHADES.contains(&(b, a))
}

/// How well a colour suits the hair.
#[expect(clippy::match_same_arms, reason = "a table: one row a rule")]
fn flatters(hair: HairColour, colour: Colour) -> f64 {
    match (hair, colour) {
        (HairColour::Red, Green | Olive) => 0.7,
        (HairColour::Red, Red | Pink | Orange) => -0.7,
        (HairColour::Blond, LightBlue | Navy | Pink) => 0.35,
        (HairColour::Blond, Yellow | Beige) => -0.4,
        (HairColour::Black, White | Red | Purple) => 0.35,
        (HairColour::Black, Brown | Olive) => -0.25,
        (HairColour::Brown, Beige | Green | Burgundy) => 0.25,
        (HairColour::Grey, Blue | LightBlue | Burgundy) => 0.4,
        (HairColour::Grey, Beige | Grey | Olive) => -0.35,
        _ => 0.0,
    }
}

/// The worth of a single preferred style; several share it.
const PREFERRED_STYLE: f64 = 1.5;
/// The weight of what the customer's gender, age and country lean to: with stated styles, without.
const LEANING: [f64; 2] = [0.25, 0.75];

/// Two stated styles, the customers for whom they suggest a third, that style, and its worth.
#[rustfmt::skip]
const BLENDS: &[(Style, Style, Option<Gender>, Style, f64)] = {
    use Style::{Boho, Casual, Classic, Glamour, Minimal, Preppy, Rock, Romantic, Sporty, Street};
    &[
        (Classic, Sporty, None, Preppy, 0.9),
        (Rock, Romantic, None, Boho, 0.9),
        (Street, Glamour, None, Rock, 0.7),
        (Minimal, Street, Some(Gender::Male), Sporty, 0.6),
        (Minimal, Street, Some(Gender::Female), Classic, 0.5),
        (Casual, Glamour, Some(Gender::Female), Romantic, 0.6),
        (Classic, Rock, None, Minimal, 0.6),
        (Classic, Boho, Some(Gender::Female), Romantic, 0.7),
        (Sporty, Minimal, None, Street, 0.4),
    ]
};

fn style_taste(context: Context<'_>) -> [f64; Style::COUNT] {
    let profile = context.profile;
    let leaning = style_leaning(profile.gender, profile.age.map(f64::from), profile.country);
    let weight = LEANING[usize::from(profile.styles.is_empty())];
    // A stated style matters more to the young, less to the old.
    let conviction = match profile.age {
        Some(age) if age < 30 => 1.25,
        Some(age) if age > 60 => 0.8,
        _ => 1.0,
    };
    let stated = PREFERRED_STYLE * conviction / real(profile.styles.len().max(1)).powf(0.35);
    let by_occasion = &occasion::traits(context.occasion).styles;
    let mut taste = std::array::from_fn(|style| {
        let mut utility = weight * (leaning[style] * 10.0).ln().max(-3.0);
        if profile.styles.has_index(style) {
            utility += stated;
        }
        utility + by_occasion[style]
    });
    for (one, other, gender, third, worth) in BLENDS {
        let both = profile.styles.has(*one) && profile.styles.has(*other);
        if both && (gender.is_none() || *gender == profile.gender) {
            taste[third.index()] += worth * conviction;
        }
    }
    // Past 55 few wear street style unless they state it.
    if profile.age.is_some_and(|age| age > 55) && !profile.styles.has(Style::Street) {
        taste[Style::Street.index()] -= 0.6;
    }
    taste
}

/// Each preferred style's part of each pattern.
#[rustfmt::skip]
const PATTERNS_BY_STYLE: [[f64; Pattern::COUNT]; Style::COUNT] = [
// plain strip check flora dotte print
  [ 0.0,  0.0,  0.0,  0.0,  0.0, -0.5], // classic
  [ 0.0,  0.0,  0.0,  0.0,  0.0,  0.0], // casual
  [ 0.0,  0.0,  0.0,  0.0,  0.0,  0.0], // sporty
  [ 0.0,  0.0,  0.0,  0.0,  0.0,  0.6], // street
  [ 0.5,  0.0,  0.0, -0.7,  0.0, -0.7], // minimal
  [ 0.0,  0.0,  0.0,  0.7,  0.0,  0.0], // romantic
  [ 0.0,  0.0,  0.0,  0.7,  0.0,  0.0], // boho
  [ 0.0,  0.0,  0.0,  0.0,  0.0,  0.0], // glamour
  [ 0.0,  0.5,  0.6,  0.0,  0.0,  0.0], // preppy
  [ 0.0,  0.0,  0.0, -0.5,  0.0,  0.3], // rock
];

fn pattern_taste(context: Context<'_>) -> [f64; Pattern::COUNT] {
    let profile = context.profile;
    let mut taste = [0.0; Pattern::COUNT];
    let mut add = |pattern: Pattern, worth: f64| taste[pattern.index()] += worth;
    for style in profile.styles.iter() {
        for pattern in Pattern::ALL {
            add(*pattern, PATTERNS_BY_STYLE[style.index()][pattern.index()]);
        }
    }
    if profile.gender == Some(Gender::Male) {
        add(Pattern::Floral, -1.2);
        add(Pattern::Dotted, -0.6);
    }
    let age = profile.age.map_or(38.0, f64::from);
    add(Pattern::Printed, -0.02 * (age - 38.0).clamp(-15.0, 30.0));
    // Large customers wear fewer checks and prints; the tall among them wear stripes.
    if profile.is_large() {
        add(Pattern::Checked, -0.5);
        add(Pattern::Printed, -0.5);
        add(Pattern::Striped, if profile.height.is_some_and(|height| height > 180) { 0.3 } else { -0.2 });
    }
    for pattern in Pattern::ALL {
        add(*pattern, occasion::pattern(context.occasion, *pattern));
    }
    taste
}

fn fit_taste(profile: &Profile, above: bool) -> [f64; Fit::COUNT] {
    /// By distance from the wanted cut.
    const BY_DISTANCE: [f64; Fit::COUNT] = [0.9, 0.0, -0.9, -1.8];
    let mut taste = [0.0; Fit::COUNT];
    if let Some(wanted) = profile.fit {
        for fit in Fit::ALL {
            taste[fit.index()] += BY_DISTANCE[wanted.index().abs_diff(fit.index())];
        }
    }
    // slim, regular, relaxed, oversized
    let body = match (profile.apparent_body(), above) {
        (Some(BodyType::Slender), true) => [0.3, 0.1, 0.0, -0.2],
        (Some(BodyType::Athletic), _) => [0.4, 0.1, -0.1, -0.2],
        (Some(BodyType::Curvy), true) => [0.1, 0.3, 0.0, -0.4],
        (Some(BodyType::Curvy), false) => [-0.3, 0.3, 0.2, -0.3],
        (Some(BodyType::Broad), true) => [-0.8, 0.3, 0.3, 0.0],
        (Some(BodyType::Full), true) => [-1.3, 0.0, 0.6, 0.3],
        (Some(BodyType::Full), false) => [-0.9, 0.3, 0.4, -0.2],
        _ => [0.0; Fit::COUNT],
    };
    for (utility, more) in taste.iter_mut().zip(body) {
        *utility += more;
    }
    // Large customers wear a slim cut only if they prefer it.
    if profile.is_large() && profile.fit != Some(Fit::Slim) {
        taste[Fit::Slim.index()] -= 0.6;
    }
    taste
}
