//! The words of the world: one enum per list, each value with its word in the files.
//!
//! Tests compare the lists that the default schema has too, value by value.

/// A closed list of words, numbered from zero in order of declaration.
pub(crate) trait Word: Copy + 'static {
    const ALL: &'static [Self];
    const COUNT: usize = Self::ALL.len();
    fn word(self) -> &'static str;
    fn index(self) -> usize;
}

macro_rules! words {
    ($(#[$doc:meta])* $vis:vis $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name { $($variant),+ }

        impl Word for $name {
            const ALL: &'static [Self] = &[$($name::$variant),+];

            fn word(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

words! { pub(crate) Gender { Female = "female", Male = "male", Diverse = "diverse" } }
words! { pub(crate) Country {
    Austria = "Austria", Belgium = "Belgium", Denmark = "Denmark", Finland = "Finland",
    France = "France", Germany = "Germany", Italy = "Italy", Netherlands = "Netherlands",
    Norway = "Norway", Poland = "Poland", Spain = "Spain", Sweden = "Sweden",
    Switzerland = "Switzerland", UnitedKingdom = "United Kingdom",
} }
words! { pub(crate) BodyType {
    Slender = "slender", Athletic = "athletic", Average = "average", Curvy = "curvy",
    Broad = "broad", Full = "full",
} }
words! { pub(crate) HairColour {
    Black = "black", Brown = "brown", Blond = "blond", Red = "red", Grey = "grey", Other = "other",
} }
words! {
    /// How close to the body an article is cut, and a customer wants it (the feature `fit`).
    pub(crate) Fit { Slim = "slim", Regular = "regular", Relaxed = "relaxed", Oversized = "oversized" }
}
words! { pub(crate) Colour {
    Black = "black", White = "white", Grey = "grey", Beige = "beige", Brown = "brown", Navy = "navy",
    Blue = "blue", LightBlue = "light-blue", Green = "green", Olive = "olive", Yellow = "yellow",
    Orange = "orange", Red = "red", Burgundy = "burgundy", Pink = "pink", Purple = "purple",
} }
words! { pub(crate) Style {
    Classic = "classic", Casual = "casual", Sporty = "sporty", Street = "street", Minimal = "minimal",
    Romantic = "romantic", Boho = "boho", Glamour = "glamour", Preppy = "preppy", Rock = "rock",
} }
words! { pub(crate) Material {
    Cotton = "cotton", Linen = "linen", Wool = "wool", Cashmere = "cashmere", Silk = "silk",
    Viscose = "viscose", Polyester = "polyester", Nylon = "nylon", Leather = "leather",
    Suede = "suede", Denim = "denim", Fur = "fur", Down = "down", Rubber = "rubber", Metal = "metal",
} }
words! { pub(crate) PriceBand {
    Budget = "budget", Lower = "lower", Middle = "middle", Upper = "upper", Luxury = "luxury",
} }
words! { pub Occasion {
    Everyday = "everyday", Office = "office", Evening = "evening", Wedding = "wedding",
    Weekend = "weekend", Sport = "sport", Travel = "travel", Date = "date", Beach = "beach",
    Festival = "festival",
} }
words! { pub(crate) Pattern {
    Plain = "plain", Striped = "striped", Checked = "checked", Floral = "floral", Dotted = "dotted",
    Printed = "printed",
} }
words! {
    /// The customers that an article is made for.
    pub(crate) Wearer { Women = "women", Men = "men", Unisex = "unisex" }
}
words! { pub(crate) ArticleType {
    TShirt = "t-shirt", Top = "top", Shirt = "shirt", Blouse = "blouse", Polo = "polo",
    Sweater = "sweater", Hoodie = "hoodie", Cardigan = "cardigan", Blazer = "blazer",
    Waistcoat = "waistcoat", Jeans = "jeans", Trousers = "trousers", Chinos = "chinos",
    Shorts = "shorts", Skirt = "skirt", Leggings = "leggings", Dress = "dress",
    Jumpsuit = "jumpsuit", Coat = "coat", TrenchCoat = "trench-coat", Parka = "parka",
    BomberJacket = "bomber-jacket", LeatherJacket = "leather-jacket",
    DenimJacket = "denim-jacket", RainJacket = "rain-jacket", Sneaker = "sneaker", Boot = "boot",
    Loafer = "loafer", LaceUp = "lace-up", Heel = "heel", Ballerina = "ballerina",
    Sandal = "sandal", Bag = "bag", Backpack = "backpack", Belt = "belt", Scarf = "scarf",
    Hat = "hat", Beanie = "beanie", Cap = "cap", Jewellery = "jewellery", Watch = "watch",
    Sunglasses = "sunglasses", Tights = "tights",
} }
words! {
    /// Families of types, in the order in which the stylist fills them. An outfit has at most one
    /// article of each.
    pub(crate) Family {
        OnePiece = "one-piece", Bottom = "bottom", Top = "top", Shoes = "shoes", Layer = "layer",
        Outerwear = "outerwear", Bag = "bag", Hosiery = "hosiery", Belt = "belt",
        Headwear = "headwear", Scarf = "scarf", Jewellery = "jewellery", Watch = "watch",
        Eyewear = "eyewear",
    }
}
words! {
    /// The five price features.
    pub(crate) PriceGroup {
        Tops = "price_tops", Bottoms = "price_bottoms", Shoes = "price_shoes",
        Outerwear = "price_outerwear", Accessories = "price_accessories",
    }
}
words! {
    /// The three size features, each a scale of its own.
    pub(crate) SizeScale { Top = "top_size", Bottom = "bottom_size", Shoe = "shoe_size" }
}

pub(crate) const TOP_SIZES: [&str; 8] = ["XXS", "XS", "S", "M", "L", "XL", "XXL", "3XL"];
pub(crate) const BOTTOM_SIZES: [&str; 16] =
    ["24", "25", "26", "27", "28", "29", "30", "31", "32", "33", "34", "36", "38", "40", "42", "44"];
pub(crate) const SHOE_SIZES: [&str; 14] =
    ["35", "36", "37", "38", "39", "40", "41", "42", "43", "44", "45", "46", "47", "48"];

impl SizeScale {
    pub(crate) fn sizes(self) -> &'static [&'static str] {
        match self {
            SizeScale::Top => &TOP_SIZES,
            SizeScale::Bottom => &BOTTOM_SIZES,
            SizeScale::Shoe => &SHOE_SIZES,
        }
    }
}

impl Pattern {
    /// Whether an outfit should have no other pattern like it.
    pub(crate) fn is_bold(self) -> bool {
        matches!(self, Pattern::Checked | Pattern::Floral | Pattern::Dotted | Pattern::Printed)
    }
}

/// A set of words of one list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words<T> {
    bits: u64,
    word: std::marker::PhantomData<T>,
}

impl<T> Default for Words<T> {
    fn default() -> Self {
        Self { bits: 0, word: std::marker::PhantomData }
    }
}

impl<T: Copy> Words<T> {
    pub(crate) fn from_indices(indices: impl IntoIterator<Item = usize>) -> Self {
        let bits = indices.into_iter().fold(0, |bits, index| bits | 1 << index);
        Self { bits, word: std::marker::PhantomData }
    }

    pub(crate) fn has_index(self, index: usize) -> bool {
        self.bits >> index & 1 == 1
    }

    pub(crate) fn len(self) -> usize {
        self.bits.count_ones() as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.bits == 0
    }

    pub(crate) fn indices(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |index| self.has_index(*index))
    }
}

impl<T: Word> Words<T> {
    pub(crate) fn has(self, word: T) -> bool {
        self.has_index(word.index())
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = T> {
        self.indices().map(|index| T::ALL[index])
    }
}

#[cfg(test)]
mod tests {
    use atelier_core::domain::{FeatureValue, Schema, fold_for};

    use super::*;

    #[test]
    fn the_default_schema_requires_what_articles_say() {
        let schema = Schema::default_schema();
        let requires = |name: &str| &schema.feature(name).unwrap().requires[..];
        for scale in SizeScale::ALL {
            let [requirement] = requires(scale.word()) else { panic!("one requirement") };
            let kinds = ArticleType::ALL.iter().filter(|kind| kind.family().size_scale() == Some(*scale));
            let mut kinds: Vec<String> = kinds.map(|kind| fold_for("type", kind.word())).collect();
            let mut types = requirement.types.clone();
            kinds.sort_unstable();
            types.sort_unstable();
            assert_eq!((types, requirement.attribute.as_str()), (kinds, "sizes"));
        }
        let [gender] = requires("gender") else { panic!("one requirement") };
        assert_eq!((gender.attribute.as_str(), gender.types.len()), ("gender", 0));
        let unisex = Wearer::Unisex.word();
        for (value, wearers) in [
            (Gender::Female, &["female", unisex, "women"][..]),
            (Gender::Male, &["male", "men", unisex]),
            (Gender::Diverse, &["female", "male", "men", unisex, "women"]),
        ] {
            assert_eq!(gender.fitting_words(&FeatureValue::Text(value.word().into())), wearers);
        }
    }
}
