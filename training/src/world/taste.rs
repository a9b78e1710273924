//! What makes one article of a type better than another for a context: the one definition of u.
//!
//! A taste is a handful of tables, made once for a context, whose entries add up to an article's
//! utility. What goes with what is not its business (see `harmony`), nor which types are worn
//! (`type_taste`).

use super::{
    articles::TIER_LN_PRICE,
    brands::BRANDS,
    catalogue::ArticleTraits,
    colour_taste::colour_taste,
    context::Context,
    lexicon::{
        Colour, Family, Fit, Gender, Material, Pattern, PriceBand, PriceGroup, SizeScale, Style, Wearer, Word,
    },
    occasion,
    profile::Profile,
    style_taste::{fit_taste, pattern_taste, style_taste},
};

/// The exponent of popularity's Zipf tail.
const POPULARITY: f64 = 1.5;
/// How firmly the stylist follows taste, against the noise of the day: all of it but popularity.
const FIRMNESS: f64 = 1.6;
/// A preferred brand, and each style that another brand shares with the customer.
const BRAND: f64 = 2.0;
const BRAND_OF_STYLE: f64 = 0.35;
/// A material or colour that the customer ruled out: with the firmness, 1 in 400 is the stylist's slip.
pub(crate) const NO_GO: f64 = -3.7;
/// One size off may still fit; two do not.
const ONE_SIZE_OFF: f64 = -3.2;
const SIZE_OFF: f64 = -6.0;

/// Where on the body an article sits, as far as colours care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    /// Beside the face: hair and complexion count.
    Face = 0,
    Legs = 1,
    /// Shoes and small things, where taste in colour counts for less.
    Small = 2,
}

pub(crate) const ZONES: [Zone; 3] = [Zone::Face, Zone::Legs, Zone::Small];

impl Zone {
    fn of(family: Family) -> Self {
        match family {
            Family::OnePiece
            | Family::Top
            | Family::Layer
            | Family::Outerwear
            | Family::Scarf
            | Family::Headwear => Zone::Face,
            Family::Bottom | Family::Hosiery => Zone::Legs,
            Family::Shoes
            | Family::Bag
            | Family::Belt
            | Family::Jewellery
            | Family::Watch
            | Family::Eyewear => Zone::Small,
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
    /// The price that is just right, as a logarithm over the type's median.
    prices: [f64; PriceGroup::COUNT],
    one_piece_price: f64,
    /// What each unit of squared distance costs, below and above.
    thrift: [f64; PriceGroup::COUNT],
}

impl Taste {
    pub(crate) fn new(context: Context<'_>) -> Self {
        let profile = context.profile;
        let styles = style_taste(context);
        let prices = [
            PriceGroup::Tops,
            PriceGroup::Bottoms,
            PriceGroup::Shoes,
            PriceGroup::Outerwear,
            PriceGroup::Accessories,
        ]
        .map(|group| right_price(context, group));
        Self {
            brands: brand_taste(profile),
            colours: ZONES.map(|zone| colour_taste(context, zone)),
            styles,
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
            + self.colours[Zone::of(family) as usize][article.colour.index()]
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
        let right = if family == Family::OnePiece { self.one_piece_price } else { self.prices[group] };
        let off = article.price_level - right;
        // Too dear is worse than too cheap.
        let dearness = if off > 0.0 { 1.4 } else { 1.0 };
        -0.5 * self.thrift[group] * dearness * off * off
    }
}

fn brand_taste(profile: &Profile) -> [f64; BRANDS.len()] {
    // The older a customer, the more faithful.
    let faith =
        BRAND * profile.age.map_or(1.0, |age| 1.0 + (f64::from(age) - 38.0).clamp(-20.0, 25.0) / 80.0);
    std::array::from_fn(|brand| {
        if profile.brands.has_index(brand) {
            return faith;
        }
        let shared = BRANDS[brand].styles.iter().filter(|style| profile.styles.has(**style)).count();
        BRAND_OF_STYLE * crate::number::real(shared)
    })
}

fn material_taste(context: Context<'_>) -> [f64; Material::COUNT] {
    let profile = context.profile;
    let cold = super::leanings::cold(profile.country);
    std::array::from_fn(|index| {
        let material = Material::ALL[index];
        let no_go = if profile.nogo_materials.has(material) { NO_GO } else { 0.0 };
        let weather = match material {
            Material::Wool | Material::Down | Material::Cashmere => 0.25 * cold,
            Material::Linen => -0.3 * cold,
            _ => 0.0,
        };
        // Nobody who buys luxury wants plastic.
        let fineness = match (material, profile.price(PriceGroup::Tops)) {
            (Material::Polyester, Some(PriceBand::Upper | PriceBand::Luxury)) => -0.6,
            (Material::Cashmere | Material::Silk, Some(PriceBand::Upper | PriceBand::Luxury)) => 0.4,
            _ => 0.0,
        };
        no_go + weather + fineness + occasion::material(context.occasion, material)
    })
}

fn wearer_taste(profile: &Profile) -> [f64; Wearer::COUNT] {
    use super::lexicon::Style::{Minimal, Street};
    // A borrowed cut is a look of its own for those who like it wide.
    let borrows = profile.fit == Some(Fit::Oversized) || profile.styles.has(Street);
    let neutral = profile.styles.has(Minimal) || profile.styles.has(Street);
    let unisex = if neutral { 0.2 } else { -0.3 };
    match profile.gender {
        Some(Gender::Female) => [0.0, if borrows { -1.8 } else { -3.2 }, unisex],
        Some(Gender::Male) => [-5.5, 0.0, unisex],
        Some(Gender::Diverse) => [-0.3, -0.3, 0.5],
        None => [0.0, 0.0, 0.1],
    }
}

/// The middle of the band that the customer named, moved by the occasion.
fn right_price(context: Context<'_>, group: PriceGroup) -> f64 {
    let band = context.profile.price(group).map_or(0.0, |band| TIER_LN_PRICE[band.index()]);
    let moved = match group {
        // Shoes and bags for a wedding are worn again; a dress is bought for the day.
        PriceGroup::Shoes | PriceGroup::Accessories => 0.5,
        _ => 1.0,
    };
    band + moved * occasion::traits(context.occasion).price
}

/// How closely the stylist keeps to the right price.
fn thrift(context: Context<'_>, group: PriceGroup) -> f64 {
    use super::lexicon::Occasion;
    let profile = context.profile;
    let Some(band) = profile.price(group) else { return 0.8 };
    // The young look at every euro, more so on an ordinary day; festivities loosen the purse.
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
