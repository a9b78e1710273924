//! The shop's catalogue: how its articles are drawn, and the shelf on which the stylist finds those of
//! one type and class together.
//!
//! An article's type, brand, style, wearer, material, colour, pattern, fit, sizes, price and popularity
//! are drawn in this order, each given the ones before it.

use std::ops::Range;

use rayon::prelude::*;

use crate::random::{Stream, Table};

use super::{
    brands::{BRANDS, BrandTraits},
    harmony::Class,
    lexicon::{ArticleType, Colour, Family, Fit, Material, Pattern, SizeScale, Style, Wearer, Word},
    palette::{STYLE_PALETTE, type_palette},
    types::{TYPES, TypeTraits},
};

/// An article as the stylist sees it.
#[derive(Debug, Clone)]
pub(crate) struct ArticleTraits {
    pub(crate) kind: ArticleType,
    pub(crate) brand: u8,
    pub(crate) colour: Colour,
    pub(crate) pattern: Pattern,
    pub(crate) material: Material,
    pub(crate) style: Style,
    pub(crate) fit: Option<Fit>,
    pub(crate) wearer: Wearer,
    /// First and last size on its scale; accessories have none.
    pub(crate) sizes: Option<(u8, u8)>,
    pub(crate) price_cents: u32,
    /// The logarithm of its price over its type's median, the scale of the price bands.
    pub(crate) price_level: f64,
    /// Popularity before any customer's taste: `-ln(U + head)` up to a constant, so that weights
    /// `exp(θ · this)` follow the Zipf–Mandelbrot law with exponent θ. No attribute shows it; only outfits do.
    pub(crate) ln_popularity: f64,
    pub(crate) in_stock: bool,
}

impl ArticleTraits {
    pub(crate) fn class(&self) -> Class {
        Class::new(self.colour, self.style, self.pattern.is_bold())
    }
}

/// Articles of one type and class, side by side on the shelf.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) class: Class,
    /// Places on the shelf.
    pub(crate) places: Range<usize>,
}

/// All articles, ordered by type and class. A *place* is an article's position on the shelf, a *number*
/// its row in the file, whose order carries no information.
#[derive(Debug)]
pub(crate) struct Catalogue {
    shelf: Vec<ArticleTraits>,
    number_of_place: Vec<u32>,
    place_of_number: Vec<u32>,
    cells: Vec<Cell>,
    cells_of_type: Vec<Range<usize>>,
}

impl Catalogue {
    /// Draws `count` articles, at least one of each type.
    pub(crate) fn new(seed: u64, count: usize) -> Self {
        let articles: Vec<ArticleTraits> =
            (0..count).into_par_iter().map(|number| draw_article(seed, number)).collect();
        let mut order: Vec<usize> = (0..articles.len()).collect();
        order.sort_by_key(|&number| (articles[number].kind, articles[number].class(), number));
        let short = |n: usize| u32::try_from(n).expect("a catalogue of four billion articles is a bug");
        let mut place_of_number = vec![0; articles.len()];
        for (place, &number) in order.iter().enumerate() {
            place_of_number[number] = short(place);
        }
        let shelf: Vec<ArticleTraits> = order.iter().map(|&number| articles[number].clone()).collect();
        let (mut cells, mut cells_of_type, mut place) = (Vec::new(), Vec::new(), 0);
        for of_type in shelf.chunk_by(|a, b| a.kind == b.kind) {
            let first = cells.len();
            for of_class in of_type.chunk_by(|a, b| a.class() == b.class()) {
                cells.push(Cell { class: of_class[0].class(), places: place..place + of_class.len() });
                place += of_class.len();
            }
            cells_of_type.push(first..cells.len());
        }
        let number_of_place = order.into_iter().map(short).collect();
        Self { shelf, number_of_place, place_of_number, cells, cells_of_type }
    }

    pub(crate) fn len(&self) -> usize {
        self.shelf.len()
    }

    pub(crate) fn shelf(&self) -> &[ArticleTraits] {
        &self.shelf
    }

    pub(crate) fn at(&self, place: usize) -> &ArticleTraits {
        &self.shelf[place]
    }

    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The range of [`Catalogue::cells`] that holds this type.
    pub(crate) fn cells_of_type(&self, kind: ArticleType) -> Range<usize> {
        self.cells_of_type[kind.index()].clone()
    }

    pub(crate) fn number_of(&self, place: usize) -> u32 {
        self.number_of_place[place]
    }

    pub(crate) fn place_of(&self, number: usize) -> usize {
        self.place_of_number[number] as usize
    }

    pub(crate) fn article(&self, number: usize) -> &ArticleTraits {
        self.at(self.place_of(number))
    }
}

/// Added to the logarithm of a type's median price, by tier or price band.
pub(crate) const TIER_LN_PRICE: [f64; 5] = [-0.65, -0.30, 0.0, 0.45, 1.10];

/// Share of articles in stock today. The stylist ignores it, because outfits are from the past.
const IN_STOCK: f64 = 0.93;

/// Share of the catalogue that is its head, where articles are about equally popular.
const HEAD: f64 = 0.01;

fn draw_article(seed: u64, number: usize) -> ArticleTraits {
    let mut stream = Stream::new(seed, Table::Article, number);
    // The first articles are one of each type, so that every world has every type.
    let shares = TYPES.each_ref().map(|traits| traits.share);
    let kind = if number < ArticleType::COUNT { number } else { stream.weighted(&shares) };
    let traits = &TYPES[kind];

    let brand = stream.weighted(&BRANDS.each_ref().map(|brand| brand.size * brand_weight(brand, traits)));
    let maker = &BRANDS[brand];
    let style = Style::ALL[stream.weighted(&style_weights(maker, traits))];
    let [women, men, unisex] = traits.made;
    let wearer = Wearer::ALL[stream.weighted(&[women * maker.lean[0], men * maker.lean[1], unisex])];
    let material = draw_material(&mut stream, maker, traits, style);
    let colour = Colour::ALL[stream.weighted(&colour_weights(maker, traits, style, wearer, material))];
    let pattern = draw_pattern(&mut stream, traits, style, wearer);
    let fit = traits.family.is_cut().then(|| Fit::ALL[stream.weighted(&fit_weights(traits.kind, style))]);
    let sizes = traits.family.size_scale().map(|scale| draw_sizes(&mut stream, scale, wearer));
    let ln_price = traits.price.ln()
        + TIER_LN_PRICE[maker.tier]
        + material_ln_price(material)
        + stream.normal(0.0, 0.22);
    let price_cents = shelf_price(ln_price.exp());
    let ln_popularity = ((1.0 + HEAD) / (1.0 - stream.uniform() + HEAD)).ln();
    ArticleTraits {
        kind: traits.kind,
        brand: u8::try_from(brand).expect("there are fifty brands"),
        colour,
        pattern,
        material,
        style,
        fit,
        wearer,
        sizes,
        price_cents,
        price_level: (f64::from(price_cents) / 100.0 / traits.price).ln(),
        ln_popularity,
        in_stock: stream.chance(IN_STOCK),
    }
}

/// A brand makes more articles of types that are common in its two styles and for its customers.
fn brand_weight(brand: &BrandTraits, traits: &TypeTraits) -> f64 {
    let [first, second] = brand.styles.map(|style| traits.styles[style.index()]);
    let mean = traits.styles.iter().sum::<f64>() / 10.0;
    let by_wearer = traits.made[0] * brand.lean[0] + traits.made[1] * brand.lean[1] + traits.made[2];
    (0.15 + (0.6 * first + 0.4 * second) / mean) * by_wearer
}

fn style_weights(brand: &BrandTraits, traits: &TypeTraits) -> [f64; Style::COUNT] {
    let mut weights = traits.styles.map(|weight| weight * 0.35);
    weights[brand.styles[0].index()] *= 16.0;
    weights[brand.styles[1].index()] *= 9.0;
    weights
}

fn draw_material(stream: &mut Stream, brand: &BrandTraits, traits: &TypeTraits, style: Style) -> Material {
    let weights: Vec<f64> = traits
        .materials
        .iter()
        .map(|(material, weight)| {
            let by_tier: [f64; 5] = match material {
                Material::Cashmere | Material::Silk | Material::Fur => [0.08, 0.3, 1.0, 2.5, 4.0],
                Material::Polyester => [1.8, 1.4, 1.0, 0.6, 0.3],
                Material::Leather => [0.5, 0.8, 1.0, 1.3, 1.6],
                _ => [1.0; 5],
            };
            let by_style = match (style, material) {
                (Style::Sporty, Material::Polyester | Material::Nylon) => 2.2,
                (Style::Boho, Material::Linen | Material::Suede)
                | (Style::Rock, Material::Leather | Material::Denim) => 2.0,
                (Style::Glamour | Style::Romantic, Material::Silk) => 1.8,
                (Style::Minimal, Material::Wool | Material::Linen) => 1.3,
                _ => 1.0,
            };
            weight * by_tier[brand.tier] * by_style
        })
        .collect();
    traits.materials[stream.weighted(&weights)].0
}

/// The factor of each colour for articles made for men.
#[rustfmt::skip]
const MEN_COLOURS: [f64; Colour::COUNT] =
// black white grey beige brown navy blue l-bl green olive yello orang red  burg pink purpl
  [1.0, 1.0, 1.0, 1.0, 1.0, 1.6, 1.0, 1.0, 1.0, 1.4, 0.6, 0.7, 0.6, 1.0, 0.2, 0.35];

fn colour_weights(
    brand: &BrandTraits,
    traits: &TypeTraits,
    style: Style,
    wearer: Wearer,
    material: Material,
) -> [f64; Colour::COUNT] {
    let mut weights = type_palette(traits.kind, material);
    for (weight, liked) in weights.iter_mut().zip(STYLE_PALETTE[style.index()]) {
        *weight *= liked;
    }
    for colour in brand.colours {
        weights[colour.index()] *= 1.8;
    }
    if wearer == Wearer::Men {
        for (weight, factor) in weights.iter_mut().zip(MEN_COLOURS) {
            *weight *= factor;
        }
    }
    weights
}

fn draw_pattern(stream: &mut Stream, traits: &TypeTraits, style: Style, wearer: Wearer) -> Pattern {
    if !stream.chance(traits.patterned) {
        return Pattern::Plain;
    }
    // striped, checked, floral, dotted, printed
    let mut weights = match style {
        Style::Classic => [5.0, 4.0, 1.0, 1.5, 0.5],
        Style::Casual => [4.0, 3.0, 1.5, 1.0, 3.0],
        Style::Sporty => [3.0, 0.3, 0.2, 0.2, 6.0],
        Style::Street => [1.5, 1.5, 0.3, 0.3, 8.0],
        Style::Minimal => [6.0, 2.0, 0.5, 1.0, 1.0],
        Style::Romantic => [1.5, 0.5, 8.0, 3.0, 1.0],
        Style::Boho => [1.5, 0.5, 6.0, 0.7, 4.0],
        Style::Glamour => [1.5, 0.7, 2.0, 2.0, 4.0],
        Style::Preppy => [5.0, 5.0, 0.7, 1.0, 0.5],
        Style::Rock => [1.5, 3.0, 0.5, 0.5, 6.0],
    };
    if wearer != Wearer::Women {
        weights[2] *= 0.15;
        weights[3] *= 0.3;
    }
    if matches!(traits.family, Family::Shoes | Family::Bag) {
        weights[1] *= 0.4;
        weights[2] *= 0.4;
    }
    Pattern::ALL[1 + stream.weighted(&weights)]
}

fn fit_weights(kind: ArticleType, style: Style) -> [f64; Fit::COUNT] {
    // slim, regular, relaxed, oversized
    let mut weights: [f64; Fit::COUNT] = match style {
        Style::Classic => [3.0, 6.0, 1.5, 0.3],
        Style::Casual => [2.0, 5.0, 3.5, 1.0],
        Style::Sporty => [3.0, 4.0, 3.0, 1.0],
        Style::Street => [1.0, 2.5, 3.5, 4.0],
        Style::Minimal => [2.5, 4.5, 3.0, 1.5],
        Style::Romantic => [3.5, 4.0, 2.0, 0.5],
        Style::Boho => [0.8, 3.0, 5.0, 1.8],
        Style::Glamour => [6.0, 3.0, 1.0, 0.4],
        Style::Preppy => [3.5, 5.5, 1.2, 0.3],
        Style::Rock => [5.0, 3.0, 1.2, 1.2],
    };
    match kind {
        ArticleType::Leggings => weights = [1.0, 0.0, 0.0, 0.0],
        ArticleType::Dress | ArticleType::Skirt | ArticleType::Trousers | ArticleType::Chinos => {
            weights[3] *= 0.25;
        }
        ArticleType::Parka | ArticleType::Hoodie => {
            weights[0] *= 0.4;
            weights[2] *= 1.4;
        }
        _ => {}
    }
    weights
}

/// The first and last size that the article is made in: always the middle ones, rarely the ends.
fn draw_sizes(stream: &mut Stream, scale: SizeScale, wearer: Wearer) -> (u8, u8) {
    type Weights = &'static [f64];
    let (first, firsts, last, lasts): (usize, Weights, usize, Weights) = match (scale, wearer) {
        (SizeScale::Top, Wearer::Women) => (0, &[0.2, 0.5, 0.3], 4, &[0.28, 0.45, 0.18, 0.09]),
        (SizeScale::Top, Wearer::Men) => (1, &[0.12, 0.6, 0.28], 4, &[0.12, 0.45, 0.31, 0.12]),
        (SizeScale::Top, Wearer::Unisex) => (1, &[0.4, 0.6], 4, &[0.15, 0.5, 0.28, 0.07]),
        (SizeScale::Bottom, Wearer::Women) => {
            (0, &[0.3, 0.4, 0.2, 0.1], 6, &[0.12, 0.18, 0.3, 0.09, 0.14, 0.08, 0.04, 0.02, 0.02, 0.01])
        }
        (SizeScale::Bottom, Wearer::Men) => (4, &[0.35, 0.3, 0.35], 10, &[0.27, 0.35, 0.22, 0.1, 0.04, 0.02]),
        (SizeScale::Bottom, Wearer::Unisex) => (2, &[0.5, 0.5], 9, &[0.3, 0.4, 0.2, 0.1]),
        (SizeScale::Shoe, Wearer::Women) => (0, &[0.3, 0.6, 0.1], 4, &[0.05, 0.15, 0.55, 0.18, 0.05, 0.02]),
        (SizeScale::Shoe, Wearer::Men) => (4, &[0.2, 0.5, 0.3], 9, &[0.15, 0.4, 0.3, 0.1, 0.05]),
        (SizeScale::Shoe, Wearer::Unisex) => (1, &[0.6, 0.4], 9, &[0.3, 0.4, 0.3]),
    };
    let size = |index: usize| u8::try_from(index).expect("scales are short");
    (size(first + stream.weighted(firsts)), size(last + stream.weighted(lasts)))
}

fn material_ln_price(material: Material) -> f64 {
    match material {
        Material::Fur => 0.7,
        Material::Cashmere => 0.6,
        Material::Silk => 0.35,
        Material::Leather => 0.25,
        Material::Down | Material::Suede => 0.2,
        Material::Wool => 0.12,
        Material::Linen => 0.05,
        Material::Nylon => -0.05,
        Material::Polyester => -0.12,
        Material::Cotton | Material::Viscose | Material::Denim | Material::Rubber | Material::Metal => 0.0,
    }
}

/// A price in cents, rounded the way shops do: 12.95, 49.90, 259.00.
fn shelf_price(euros: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a clothing price is small")]
    let round = |x: f64| x.round().max(1.0) as u32;
    match euros {
        e if e < 20.0 => round(e + 0.05) * 100 - 5,
        e if e < 200.0 => round(e + 0.1) * 100 - 10,
        e => round(e / 10.0) * 1000 - 100,
    }
}
