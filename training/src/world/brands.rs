//! The table of the fifty brands of the default schema: size, price tier, style, customers.

use super::lexicon::{
    Colour::{
        self, Beige, Black, Blue, Brown, Burgundy, Green, Grey, LightBlue, Navy, Olive, Orange, Pink, Purple,
        Red, White, Yellow,
    },
    Style::{self, Boho, Casual, Classic, Glamour, Minimal, Preppy, Rock, Romantic, Sporty, Street},
};

/// One brand's row.
#[derive(Debug)]
pub(crate) struct BrandTraits {
    pub(crate) name: &'static str,
    /// Weight in the catalogue.
    pub(crate) size: f64,
    /// 0 (budget) to 4 (luxury), like the price bands.
    pub(crate) tier: usize,
    /// Its first and second style.
    pub(crate) styles: [Style; 2],
    /// The colours that it is known for.
    pub(crate) colours: [Colour; 3],
    /// Weights of women's and men's articles.
    pub(crate) lean: [f64; 2],
}

const W: [f64; 2] = [1.0, 0.25];
const M: [f64; 2] = [0.3, 1.0];
const B: [f64; 2] = [1.0, 1.0];

const fn brand(
    name: &'static str,
    size: f64,
    tier: usize,
    styles: [Style; 2],
    colours: [Colour; 3],
    lean: [f64; 2],
) -> BrandTraits {
    BrandTraits { name, size, tier, styles, colours, lean }
}

/// In the order of the schema's `preferred_brands`.
#[rustfmt::skip]
pub(crate) const BRANDS: [BrandTraits; 50] = [
//    name            size tier  styles               known for               for
brand("Aalto",         1.6, 3, [Minimal, Classic],  [White, Grey, LightBlue],  B),
brand("Ambra",         1.2, 3, [Boho, Romantic],    [Orange, Brown, Beige],    W),
brand("Arbor",         2.4, 1, [Casual, Boho],      [Olive, Brown, Green],     B),
brand("Atelier-Nord",  0.7, 4, [Minimal, Classic],  [Black, Grey, White],      B),
brand("Bergmann",      2.2, 2, [Classic, Casual],   [Navy, Brown, Grey],       M),
brand("Brise",         2.6, 1, [Casual, Romantic],  [LightBlue, White, Pink],  W),
brand("Calma",         1.4, 2, [Minimal, Boho],     [Beige, White, Olive],     W),
brand("Carrara",       0.8, 4, [Glamour, Classic],  [White, Black, Red],       W),
brand("Corvin",        1.1, 3, [Rock, Street],      [Black, Grey, Burgundy],   B),
brand("Dahlia",        2.0, 1, [Romantic, Glamour], [Pink, Red, Purple],       W),
brand("Delft",         1.8, 2, [Preppy, Casual],    [Blue, White, Navy],       B),
brand("Eisberg",       1.6, 2, [Sporty, Minimal],   [White, LightBlue, Black], B),
brand("Elm",           2.2, 1, [Casual, Classic],   [Green, Brown, Beige],     B),
brand("Farola",        1.8, 1, [Romantic, Boho],    [Yellow, Orange, Red],     W),
brand("Fjell",         2.0, 2, [Sporty, Casual],    [Olive, Orange, Navy],     B),
brand("Galerie-9",     0.6, 4, [Minimal, Glamour],  [Black, White, Beige],     B),
brand("Gardenia",      1.5, 2, [Romantic, Classic], [White, Pink, Green],      W),
brand("Halden",        1.7, 2, [Casual, Sporty],    [Navy, Grey, Red],         M),
brand("Harbour",       2.0, 2, [Preppy, Classic],   [Navy, White, Red],        M),
brand("Indigo-Works",  2.4, 1, [Casual, Rock],      [Blue, Navy, LightBlue],   B),
brand("Isola",         1.1, 3, [Glamour, Boho],     [Orange, White, Yellow],   W),
brand("Juno",          3.4, 0, [Casual, Romantic],  [Pink, Black, White],      W),
brand("Kadett",        1.6, 1, [Street, Rock],      [Olive, Black, Grey],      M),
brand("Kestrel",       1.5, 3, [Sporty, Street],    [Black, Blue, Red],        B),
brand("Kiosk",         3.2, 0, [Street, Casual],    [Black, Yellow, White],    B),
brand("Lagune",        1.7, 2, [Casual, Boho],      [LightBlue, Green, White], W),
brand("Linden",        2.4, 1, [Classic, Casual],   [Beige, Green, Navy],      B),
brand("Lumen",         1.3, 3, [Minimal, Sporty],   [White, Grey, Yellow],     B),
brand("Maison-Roux",   0.7, 4, [Romantic, Classic], [Red, Burgundy, Black],    W),
brand("Marais",        1.3, 3, [Classic, Romantic], [Black, Navy, Burgundy],   W),
brand("Mesa",          1.5, 1, [Boho, Casual],      [Brown, Orange, Beige],    B),
brand("Monoline",      2.6, 1, [Minimal, Casual],   [Black, White, Grey],      B),
brand("Morgan",        2.2, 2, [Classic, Preppy],   [Navy, Grey, Burgundy],    M),
brand("Nachtzug",      1.3, 2, [Rock, Street],      [Black, Purple, Grey],     B),
brand("Nova",          3.2, 0, [Glamour, Street],   [Black, Red, Pink],        W),
brand("Oslo-Dry",      1.2, 3, [Sporty, Minimal],   [Yellow, Navy, Olive],     B),
brand("Parade",        1.5, 2, [Glamour, Romantic], [Red, Purple, Black],      W),
brand("Pinie",         2.8, 0, [Casual, Classic],   [Green, Beige, Brown],     B),
brand("Quartier",      1.8, 2, [Street, Minimal],   [Black, Grey, Olive],      B),
brand("Ravel",         1.0, 3, [Classic, Minimal],  [Navy, Black, Beige],      M),
brand("Rosso",         1.2, 3, [Glamour, Rock],     [Red, Black, Burgundy],    W),
brand("Savile-Lane",   0.7, 4, [Classic, Preppy],   [Navy, Grey, Brown],       M),
brand("Solstice",      2.8, 0, [Sporty, Casual],    [Blue, Orange, Black],     B),
brand("Studio-K",      2.2, 1, [Street, Sporty],    [Black, White, Purple],    B),
brand("Terra",         1.4, 2, [Boho, Minimal],     [Brown, Olive, Beige],     B),
brand("Tiber",         0.9, 4, [Classic, Glamour],  [Brown, Burgundy, Navy],   M),
brand("Urban-Root",    2.6, 1, [Street, Casual],    [Olive, Grey, Black],      M),
brand("Valetta",       1.4, 3, [Preppy, Classic],   [White, Navy, Green],      B),
brand("Werft",         1.8, 1, [Casual, Rock],      [Navy, Brown, Grey],       M),
brand("Zephyr",        2.4, 0, [Sporty, Street],    [LightBlue, Black, White], B),
];
