//! Tables of how common each colour is, by style and by type.

use super::lexicon::{ArticleType, Colour, Material, Style, Word};

/// The factor of each style on each colour, for articles and for the colours that customers prefer.
#[rustfmt::skip]
pub(crate) const STYLE_PALETTE: [[f64; Colour::COUNT]; Style::COUNT] = [
// black white grey beige brown navy blue l-bl green olive yello orang red  burg pink purpl
  [1.1, 1.1, 1.2, 1.2, 1.1, 1.7, 0.8, 0.9, 0.5, 0.5, 0.2, 0.2, 0.6, 1.0, 0.4, 0.4], // classic
  [0.9, 1.1, 1.2, 1.1, 1.1, 1.0, 1.4, 1.1, 1.1, 1.2, 0.7, 0.7, 0.9, 0.9, 0.8, 0.6], // casual
  [1.3, 1.3, 1.3, 0.4, 0.2, 0.9, 1.5, 1.2, 0.9, 0.6, 1.2, 1.3, 1.3, 0.4, 1.0, 0.8], // sporty
  [1.8, 1.2, 1.3, 0.7, 0.5, 0.4, 0.8, 0.5, 0.7, 1.4, 0.9, 0.9, 0.9, 0.5, 0.6, 0.9], // street
  [1.8, 1.6, 1.6, 1.5, 0.6, 0.9, 0.3, 0.5, 0.3, 0.5, 0.1, 0.1, 0.2, 0.3, 0.2, 0.2], // minimal
  [0.5, 1.4, 0.4, 1.1, 0.4, 0.4, 0.5, 1.4, 0.8, 0.3, 1.0, 0.7, 1.4, 1.0, 3.0, 1.8], // romantic
  [0.3, 1.1, 0.3, 1.7, 2.2, 0.3, 0.6, 0.7, 1.4, 2.0, 1.6, 2.2, 1.0, 1.3, 0.8, 0.9], // boho
  [1.9, 0.8, 0.6, 0.5, 0.3, 0.5, 0.5, 0.3, 0.8, 0.2, 0.8, 0.5, 2.2, 1.6, 1.4, 1.8], // glamour
  [0.3, 1.6, 0.8, 1.3, 0.9, 2.6, 1.4, 1.7, 1.3, 0.5, 0.9, 0.5, 1.2, 1.3, 1.0, 0.4], // preppy
  [3.2, 0.7, 1.3, 0.2, 0.6, 0.3, 0.7, 0.3, 0.3, 0.8, 0.2, 0.2, 1.0, 1.4, 0.3, 0.9], // rock
];

#[rustfmt::skip]
const GENERAL: [f64; Colour::COUNT] =
  [16., 13., 8.0, 8.0, 5.0, 9.0, 8.0, 5.5, 5.5, 4.5, 2.8, 2.4, 5.5, 4.0, 5.0, 3.0];
#[rustfmt::skip]
const DENIM: [f64; Colour::COUNT] =
  [12., 4.0, 7.0, 0.6, 0.3, 8.0, 22., 10., 0.3, 0.4, 0.1, 0.1, 0.2, 0.2, 0.3, 0.1];
#[rustfmt::skip]
const TAILORED: [f64; Colour::COUNT] =
  [16., 3.0, 12., 7.0, 5.0, 14., 4.0, 1.5, 1.5, 2.0, 0.4, 0.3, 1.2, 2.0, 1.2, 0.5];
#[rustfmt::skip]
const LEATHER_GOODS: [f64; Colour::COUNT] =
  [24., 2.5, 1.5, 5.0, 18., 2.0, 0.5, 0.3, 0.4, 0.6, 0.2, 0.3, 1.2, 2.5, 0.6, 0.2];
#[rustfmt::skip]
const TRAINERS: [f64; Colour::COUNT] =
  [16., 24., 8.0, 5.0, 2.0, 3.5, 4.0, 1.5, 2.0, 1.2, 1.0, 0.8, 2.0, 0.5, 2.0, 0.6];
/// Silver is grey, gold is yellow, pearls are white, wood and horn brown.
#[rustfmt::skip]
const METAL: [f64; Colour::COUNT] =
  [2.0, 3.0, 18., 0.5, 0.7, 0.1, 0.6, 0.4, 0.7, 0.1, 18., 0.2, 0.6, 0.2, 1.5, 0.4];
#[rustfmt::skip]
const TIGHTS: [f64; Colour::COUNT] =
  [30., 1.0, 5.0, 10., 2.0, 3.0, 0.3, 0.1, 0.3, 0.2, 0.1, 0.1, 0.6, 2.0, 0.3, 0.5];
#[rustfmt::skip]
const FRAMES: [f64; Colour::COUNT] =
  [24., 1.5, 5.0, 2.0, 12., 1.0, 1.0, 0.3, 0.6, 0.8, 3.0, 0.3, 0.8, 0.4, 0.6, 0.2];

/// How common each colour is for articles of this type and material.
pub(crate) fn type_palette(kind: ArticleType, material: Material) -> [f64; Colour::COUNT] {
    use ArticleType as T;
    match (kind, material) {
        (T::Tights, _) => TIGHTS,
        (T::Sunglasses, _) => FRAMES,
        (_, Material::Metal) => METAL,
        (_, Material::Denim) => DENIM,
        (T::Sneaker, _) => TRAINERS,
        (_, Material::Leather | Material::Suede) => LEATHER_GOODS,
        (T::Blazer | T::Waistcoat | T::Trousers | T::Coat | T::TrenchCoat | T::Chinos, _) => TAILORED,
        _ => GENERAL,
    }
}
