//! The table of article types: where each is worn, who wears it, what it is made of.

use super::lexicon::{ArticleType, Family, Material, PriceGroup, SizeScale, Style, Word};

/// One type's row.
#[derive(Debug)]
pub(crate) struct TypeTraits {
    pub(crate) kind: ArticleType,
    pub(crate) family: Family,
    /// Weight in the catalogue.
    pub(crate) share: f64,
    /// How common it is within its family, for women and for men.
    pub(crate) worn: [f64; 2],
    /// Shares of its articles made for women, for men, for both.
    pub(crate) made: [f64; 3],
    /// Median price of a middle-tier article, in euros.
    pub(crate) price: f64,
    /// From -1 (high summer) to 1 (deep winter).
    pub(crate) warmth: f64,
    /// From 0 (the gym) to 1 (a ball).
    pub(crate) formality: f64,
    /// Share of its articles that are not plain.
    pub(crate) patterned: f64,
    /// Weights of the styles it is made in, in the order of [`Style`].
    pub(crate) styles: [f64; Style::COUNT],
    /// Weights of the materials it is made of.
    pub(crate) materials: &'static [(Material, f64)],
}

use ArticleType as T;
use Family as F;
use Material::{
    Cashmere, Cotton, Denim, Down, Fur, Leather, Linen, Metal, Nylon, Polyester, Rubber, Silk, Suede,
    Viscose, Wool,
};

#[rustfmt::skip]
#[expect(clippy::too_many_arguments, reason = "a table's row, read against the header below")]
const fn row(
    kind: T, family: F, share: f64, worn: [f64; 2], made: [f64; 3], price: f64, warmth: f64,
    formality: f64, patterned: f64, styles: [f64; 10], materials: &'static [(Material, f64)],
) -> TypeTraits {
    TypeTraits { kind, family, share, worn, made, price, warmth, formality, patterned, styles, materials }
}

/// Every type, in the order of [`ArticleType`].
#[rustfmt::skip]
pub(crate) const TYPES: [TypeTraits; ArticleType::COUNT] = [
//  type              family        share  worn            made              price   warm  formal pattern   cla cas spo str min rom boh gla pre roc
row(T::TShirt,        F::Top,        9.0, [18.0, 30.0],   [0.48, 0.40, 0.12],  19.0, -0.4, 0.15, 0.35, [2.0, 9.0, 5.0, 7.0, 5.0, 1.0, 1.0, 0.5, 1.5, 4.0], &[(Cotton, 8.0), (Viscose, 1.5), (Polyester, 1.0), (Linen, 0.5)]),
row(T::Top,           F::Top,        5.0, [20.0, 0.3],    [0.97, 0.02, 0.01],  24.0, -0.5, 0.35, 0.30, [2.0, 5.0, 3.0, 3.0, 5.0, 6.0, 4.0, 4.0, 0.5, 2.0], &[(Viscose, 4.0), (Cotton, 4.0), (Polyester, 2.0), (Silk, 1.0), (Linen, 0.6)]),
row(T::Shirt,         F::Top,        5.0, [8.0, 34.0],    [0.25, 0.72, 0.03],  45.0,  0.0, 0.65, 0.45, [9.0, 6.0, 0.2, 2.0, 5.0, 0.5, 1.5, 1.0, 6.0, 2.0], &[(Cotton, 8.0), (Linen, 1.8), (Denim, 0.7), (Viscose, 0.8)]),
row(T::Blouse,        F::Top,        4.5, [26.0, 0.05],   [1.00, 0.00, 0.00],  40.0, -0.1, 0.65, 0.45, [7.0, 3.0, 0.1, 0.5, 4.0, 8.0, 5.0, 4.0, 3.0, 0.5], &[(Viscose, 4.0), (Polyester, 3.0), (Cotton, 3.0), (Silk, 1.8), (Linen, 0.5)]),
row(T::Polo,          F::Top,        1.7, [2.0, 9.0],     [0.20, 0.78, 0.02],  39.0, -0.3, 0.40, 0.25, [5.0, 5.0, 5.0, 1.0, 3.0, 0.2, 0.1, 0.2, 8.0, 0.2], &[(Cotton, 9.0), (Polyester, 1.5)]),
row(T::Sweater,       F::Top,        6.0, [18.0, 18.0],   [0.56, 0.38, 0.06],  49.0,  0.6, 0.35, 0.25, [6.0, 7.0, 1.0, 2.0, 6.0, 3.0, 2.0, 1.0, 5.0, 1.0], &[(Wool, 5.0), (Cotton, 4.0), (Cashmere, 1.2), (Viscose, 1.5), (Polyester, 1.2)]),
row(T::Hoodie,        F::Top,        3.2, [6.0, 10.0],    [0.34, 0.42, 0.24],  45.0,  0.3, 0.05, 0.30, [0.2, 6.0, 7.0, 9.0, 2.0, 0.1, 0.3, 0.1, 0.5, 3.0], &[(Cotton, 8.0), (Polyester, 2.0)]),
row(T::Cardigan,      F::Layer,      2.5, [42.0, 20.0],   [0.72, 0.25, 0.03],  50.0,  0.4, 0.45, 0.15, [7.0, 6.0, 0.3, 1.0, 5.0, 5.0, 4.0, 0.8, 4.0, 0.5], &[(Wool, 4.5), (Cotton, 3.0), (Cashmere, 1.2), (Viscose, 2.0)]),
row(T::Blazer,        F::Layer,      3.0, [40.0, 50.0],   [0.52, 0.46, 0.02],  99.0,  0.1, 0.80, 0.20, [9.0, 1.5, 0.1, 1.0, 6.0, 1.5, 0.5, 4.0, 4.0, 1.0], &[(Wool, 4.5), (Polyester, 3.0), (Linen, 1.2), (Cotton, 1.5), (Viscose, 1.0)]),
row(T::Waistcoat,     F::Layer,      0.8, [7.0, 14.0],    [0.35, 0.62, 0.03],  55.0,  0.1, 0.70, 0.20, [8.0, 2.0, 0.3, 1.0, 3.0, 0.5, 2.0, 1.5, 4.0, 1.5], &[(Wool, 5.0), (Polyester, 2.0), (Cotton, 1.5)]),
row(T::Jeans,         F::Bottom,     6.5, [30.0, 42.0],   [0.56, 0.42, 0.02],  65.0,  0.1, 0.30, 0.00, [4.0, 9.0, 0.5, 6.0, 4.0, 1.0, 2.0, 0.8, 1.0, 5.0], &[(Denim, 1.0)]),
row(T::Trousers,      F::Bottom,     4.5, [18.0, 19.0],   [0.60, 0.38, 0.02],  60.0,  0.1, 0.70, 0.18, [9.0, 3.0, 1.0, 1.5, 7.0, 1.5, 1.5, 2.5, 2.0, 1.0], &[(Wool, 3.0), (Polyester, 3.0), (Viscose, 2.5), (Cotton, 2.0), (Linen, 1.2), (Leather, 0.4)]),
row(T::Chinos,        F::Bottom,     2.3, [4.0, 26.0],    [0.25, 0.73, 0.02],  49.0,  0.0, 0.50, 0.03, [7.0, 6.0, 0.3, 1.0, 4.0, 0.2, 0.2, 0.1, 7.0, 0.1], &[(Cotton, 9.0), (Linen, 1.0)]),
row(T::Shorts,        F::Bottom,     2.3, [5.0, 9.0],     [0.45, 0.50, 0.05],  35.0, -0.9, 0.10, 0.20, [1.5, 7.0, 6.0, 4.0, 2.0, 1.0, 2.0, 0.3, 3.0, 1.0], &[(Cotton, 5.0), (Denim, 2.5), (Linen, 1.5), (Polyester, 2.0), (Nylon, 0.8)]),
row(T::Skirt,         F::Bottom,     3.2, [14.0, 0.05],   [1.00, 0.00, 0.00],  42.0, -0.3, 0.55, 0.30, [5.0, 3.0, 0.3, 1.5, 4.0, 7.0, 5.0, 4.0, 4.0, 2.0], &[(Viscose, 3.0), (Polyester, 3.0), (Cotton, 2.5), (Denim, 1.0), (Wool, 1.2), (Leather, 0.7), (Silk, 0.7), (Linen, 0.6)]),
row(T::Leggings,      F::Bottom,     1.5, [5.0, 0.3],     [0.95, 0.05, 0.00],  25.0,  0.0, 0.08, 0.10, [0.2, 4.0, 9.0, 3.0, 1.0, 0.1, 0.3, 0.2, 0.1, 1.0], &[(Polyester, 5.0), (Nylon, 3.0), (Cotton, 2.5)]),
row(T::Dress,         F::OnePiece,   7.5, [30.0, 0.02],   [1.00, 0.00, 0.00],  60.0, -0.4, 0.65, 0.45, [5.0, 4.0, 0.3, 1.0, 4.0, 9.0, 6.0, 6.0, 2.0, 1.0], &[(Viscose, 4.0), (Polyester, 3.5), (Cotton, 3.0), (Silk, 1.2), (Linen, 1.0), (Wool, 0.5)]),
row(T::Jumpsuit,      F::OnePiece,   1.2, [4.0, 0.05],    [0.97, 0.03, 0.00],  65.0, -0.2, 0.55, 0.20, [2.0, 3.0, 1.0, 2.0, 5.0, 3.0, 4.0, 5.0, 0.3, 1.0], &[(Viscose, 4.0), (Polyester, 3.0), (Cotton, 2.0), (Linen, 1.0), (Denim, 0.6)]),
row(T::Coat,          F::Outerwear,  2.8, [36.0, 24.0],   [0.65, 0.33, 0.02], 149.0,  0.9, 0.65, 0.15, [9.0, 3.0, 0.1, 1.0, 6.0, 2.5, 1.5, 3.0, 3.0, 0.5], &[(Wool, 7.0), (Polyester, 2.0), (Cashmere, 0.8), (Fur, 0.3)]),
row(T::TrenchCoat,    F::Outerwear,  1.1, [16.0, 10.0],   [0.68, 0.30, 0.02], 129.0,  0.2, 0.65, 0.03, [9.0, 2.0, 0.1, 0.8, 5.0, 1.5, 0.5, 2.0, 4.0, 0.3], &[(Cotton, 6.0), (Polyester, 3.0)]),
row(T::Parka,         F::Outerwear,  1.7, [13.0, 20.0],   [0.45, 0.47, 0.08], 129.0,  1.0, 0.20, 0.02, [1.0, 8.0, 5.0, 5.0, 2.0, 0.2, 0.5, 0.2, 0.5, 1.0], &[(Down, 4.0), (Polyester, 3.5), (Nylon, 2.0), (Cotton, 1.0)]),
row(T::BomberJacket,  F::Outerwear,  1.1, [8.0, 18.0],    [0.35, 0.55, 0.10],  79.0,  0.3, 0.20, 0.10, [0.5, 5.0, 5.0, 8.0, 2.0, 0.2, 0.3, 0.8, 0.5, 3.0], &[(Nylon, 4.0), (Polyester, 4.0), (Cotton, 1.0), (Suede, 0.4)]),
row(T::LeatherJacket, F::Outerwear,  0.9, [12.0, 13.0],   [0.52, 0.45, 0.03], 199.0,  0.3, 0.35, 0.00, [1.0, 3.0, 0.1, 4.0, 2.0, 0.3, 0.8, 2.0, 0.1, 9.0], &[(Leather, 8.0), (Suede, 1.5)]),
row(T::DenimJacket,   F::Outerwear,  0.9, [12.0, 11.0],   [0.52, 0.43, 0.05],  69.0, -0.1, 0.20, 0.00, [0.8, 8.0, 0.3, 6.0, 1.5, 0.5, 3.0, 0.2, 0.8, 4.0], &[(Denim, 1.0)]),
row(T::RainJacket,    F::Outerwear,  0.8, [5.0, 6.0],     [0.42, 0.38, 0.20],  89.0,  0.2, 0.10, 0.08, [0.8, 6.0, 7.0, 3.0, 3.0, 0.2, 0.2, 0.1, 0.8, 0.3], &[(Polyester, 5.0), (Nylon, 3.0), (Rubber, 1.2)]),
row(T::Sneaker,       F::Shoes,      7.5, [32.0, 46.0],   [0.40, 0.38, 0.22],  79.0, -0.1, 0.15, 0.04, [1.0, 8.0, 8.0, 8.0, 5.0, 0.5, 0.5, 0.5, 0.8, 1.5], &[(Leather, 4.0), (Nylon, 2.5), (Cotton, 2.0), (Suede, 1.5), (Rubber, 0.6)]),
row(T::Boot,          F::Shoes,      3.8, [24.0, 17.0],   [0.66, 0.32, 0.02], 109.0,  0.7, 0.40, 0.00, [4.0, 5.0, 0.5, 3.0, 4.0, 1.0, 3.0, 2.0, 0.8, 7.0], &[(Leather, 6.0), (Suede, 2.5), (Rubber, 0.7)]),
row(T::Loafer,        F::Shoes,      1.9, [10.0, 11.0],   [0.55, 0.43, 0.02],  95.0,  0.0, 0.60, 0.00, [7.0, 3.0, 0.1, 0.5, 5.0, 0.5, 0.3, 1.0, 8.0, 0.5], &[(Leather, 7.0), (Suede, 3.0)]),
row(T::LaceUp,        F::Shoes,      1.6, [3.0, 23.0],    [0.18, 0.80, 0.02], 109.0,  0.2, 0.80, 0.00, [9.0, 2.0, 0.1, 0.5, 3.5, 0.1, 0.1, 1.0, 4.0, 1.5], &[(Leather, 8.5), (Suede, 1.5)]),
row(T::Heel,          F::Shoes,      2.4, [17.0, 0.01],   [1.00, 0.00, 0.00],  75.0, -0.1, 0.88, 0.02, [6.0, 0.5, 0.01, 0.3, 3.0, 4.0, 0.8, 9.0, 0.8, 1.5], &[(Leather, 6.0), (Suede, 2.5), (Polyester, 1.2)]),
row(T::Ballerina,     F::Shoes,      1.2, [9.0, 0.01],    [1.00, 0.00, 0.00],  59.0, -0.3, 0.55, 0.04, [7.0, 3.0, 0.05, 0.1, 4.0, 7.0, 1.5, 1.5, 3.0, 0.1], &[(Leather, 6.0), (Suede, 2.0), (Cotton, 1.0)]),
row(T::Sandal,        F::Shoes,      2.0, [11.0, 4.0],    [0.75, 0.21, 0.04],  55.0, -1.0, 0.25, 0.02, [2.0, 6.0, 2.5, 1.0, 4.0, 3.0, 6.0, 2.0, 0.3, 0.5], &[(Leather, 6.0), (Suede, 1.5), (Rubber, 1.5)]),
row(T::Bag,           F::Bag,        5.5, [85.0, 38.0],   [0.80, 0.12, 0.08],  69.0,  0.0, 0.55, 0.08, [7.0, 4.0, 0.6, 1.0, 5.0, 3.0, 4.0, 5.0, 1.0, 1.5], &[(Leather, 6.0), (Polyester, 1.5), (Cotton, 1.5), (Nylon, 0.8), (Suede, 0.8)]),
row(T::Backpack,      F::Bag,        1.6, [13.0, 62.0],   [0.15, 0.20, 0.65],  59.0,  0.0, 0.10, 0.08, [0.8, 7.0, 7.0, 6.0, 4.0, 0.1, 0.5, 0.1, 0.5, 0.8], &[(Nylon, 4.0), (Polyester, 4.0), (Cotton, 1.5), (Leather, 1.2)]),
row(T::Belt,          F::Belt,       2.6, [1.0, 1.0],     [0.45, 0.50, 0.05],  35.0,  0.0, 0.50, 0.00, [7.0, 5.0, 0.3, 1.0, 4.0, 1.0, 2.0, 2.0, 2.0, 4.0], &[(Leather, 8.5), (Suede, 1.0), (Cotton, 0.6)]),
row(T::Scarf,         F::Scarf,      2.0, [1.0, 1.0],     [0.55, 0.25, 0.20],  35.0,  0.7, 0.45, 0.40, [6.0, 5.0, 0.2, 1.0, 4.0, 3.5, 4.0, 1.5, 3.0, 0.8], &[(Wool, 5.0), (Cashmere, 1.5), (Viscose, 1.5), (Silk, 1.3), (Cotton, 1.2)]),
row(T::Hat,           F::Headwear,   0.8, [38.0, 22.0],   [0.50, 0.20, 0.30],  39.0, -0.4, 0.45, 0.03, [4.0, 2.0, 0.1, 0.8, 2.5, 3.0, 6.0, 2.0, 1.5, 1.5], &[(Wool, 3.5), (Cotton, 3.5), (Linen, 1.5)]),
row(T::Beanie,        F::Headwear,   0.9, [38.0, 40.0],   [0.20, 0.20, 0.60],  22.0,  0.9, 0.10, 0.08, [1.0, 7.0, 4.0, 7.0, 4.0, 0.5, 1.0, 0.1, 0.3, 2.0], &[(Wool, 5.0), (Cotton, 2.5), (Cashmere, 0.8), (Polyester, 1.5)]),
row(T::Cap,           F::Headwear,   1.1, [24.0, 38.0],   [0.10, 0.25, 0.65],  25.0, -0.3, 0.05, 0.08, [0.2, 5.0, 8.0, 9.0, 1.5, 0.05, 0.1, 0.1, 1.0, 1.0], &[(Cotton, 8.0), (Polyester, 1.5)]),
row(T::Jewellery,     F::Jewellery,  4.6, [1.0, 1.0],     [0.82, 0.12, 0.06],  39.0,  0.0, 0.65, 0.00, [6.0, 3.0, 0.1, 1.0, 5.0, 4.0, 4.5, 6.0, 0.8, 2.5], &[(Metal, 1.0)]),
row(T::Watch,         F::Watch,      2.0, [1.0, 1.0],     [0.42, 0.45, 0.13], 129.0,  0.0, 0.55, 0.00, [8.0, 3.0, 3.0, 1.0, 6.0, 1.0, 0.3, 3.5, 2.0, 0.6], &[(Metal, 5.0), (Leather, 4.0), (Rubber, 1.0)]),
row(T::Sunglasses,    F::Eyewear,    2.2, [1.0, 1.0],     [0.45, 0.25, 0.30],  79.0, -0.6, 0.40, 0.00, [5.0, 5.0, 2.5, 4.0, 4.0, 1.5, 2.0, 4.5, 1.5, 2.5], &[(Metal, 4.0), (Nylon, 6.0)]),
row(T::Tights,        F::Hosiery,    1.2, [1.0, 1.0],     [1.00, 0.00, 0.00],  12.0,  0.4, 0.60, 0.15, [7.0, 4.0, 0.3, 0.8, 5.0, 3.0, 1.0, 4.0, 2.0, 2.0], &[(Nylon, 8.0), (Cotton, 1.5), (Wool, 0.8)]),
];

impl ArticleType {
    pub(crate) fn traits(self) -> &'static TypeTraits {
        &TYPES[self.index()]
    }

    pub(crate) fn family(self) -> Family {
        self.traits().family
    }
}

impl Family {
    pub(crate) fn types(self) -> impl Iterator<Item = ArticleType> {
        ArticleType::ALL.iter().copied().filter(move |kind| kind.family() == self)
    }

    /// The price feature that applies to it. For a one-piece the stylist takes the mean of tops and
    /// bottoms; this is the first.
    pub(crate) fn price_group(self) -> PriceGroup {
        match self {
            F::OnePiece | F::Top | F::Layer => PriceGroup::Tops,
            F::Bottom => PriceGroup::Bottoms,
            F::Shoes => PriceGroup::Shoes,
            F::Outerwear => PriceGroup::Outerwear,
            _ => PriceGroup::Accessories,
        }
    }

    /// The scale of its sizes; accessories come in one size.
    pub(crate) fn size_scale(self) -> Option<SizeScale> {
        match self {
            F::OnePiece | F::Top | F::Layer | F::Outerwear => Some(SizeScale::Top),
            F::Bottom => Some(SizeScale::Bottom),
            F::Shoes => Some(SizeScale::Shoe),
            _ => None,
        }
    }

    /// Whether its articles have a fit.
    pub(crate) fn is_cut(self) -> bool {
        matches!(self, F::OnePiece | F::Top | F::Layer | F::Bottom | F::Outerwear)
    }
}
