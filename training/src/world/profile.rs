//! The stylist's view of a customer: exactly the features in the file.
//!
//! The oracle is exact only because the stylist knows nothing more.

use atelier_core::domain::{FeatureValue, Features};

use super::{
    brands::BRANDS,
    lexicon::{
        ArticleType, BodyType, Colour, Country, Fit, Gender, HairColour, Material, Occasion, PriceBand,
        PriceGroup, SizeScale, Style, Word, Words,
    },
};

/// Marks a [`Words`] of indices into [`BRANDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BrandIndex;

/// One customer's features. `None` and empty sets are features that are not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Profile {
    pub(crate) gender: Option<Gender>,
    pub(crate) age: Option<u8>,
    pub(crate) country: Option<Country>,
    pub(crate) height: Option<u8>,
    pub(crate) weight: Option<u8>,
    pub(crate) body_type: Option<BodyType>,
    pub(crate) hair_colour: Option<HairColour>,
    pub(crate) fit: Option<Fit>,
    pub(crate) brands: Words<BrandIndex>,
    pub(crate) colours: Words<Colour>,
    pub(crate) styles: Words<Style>,
    pub(crate) nogo_types: Words<ArticleType>,
    pub(crate) nogo_colours: Words<Colour>,
    pub(crate) nogo_materials: Words<Material>,
    /// An index on each scale.
    pub(crate) sizes: [Option<u8>; SizeScale::COUNT],
    pub(crate) prices: [Option<PriceBand>; PriceGroup::COUNT],
}

/// The stylist's knowledge when composing an outfit: the customer's profile, and the occasion if there is one.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) occasion: Option<Occasion>,
}

impl Profile {
    /// The profile as features of the customers' file.
    pub(crate) fn features(&self) -> Features {
        let mut features = Features::default();
        let mut text = |name: &str, word: Option<&str>| {
            if let Some(word) = word {
                features.insert(name, FeatureValue::Text(word.to_owned()));
            }
        };
        text("gender", self.gender.map(Word::word));
        text("country", self.country.map(Word::word));
        text("body_type", self.body_type.map(Word::word));
        text("hair_colour", self.hair_colour.map(Word::word));
        text("fit", self.fit.map(Word::word));
        for (scale, size) in SizeScale::ALL.iter().zip(self.sizes) {
            text(scale.word(), size.map(|size| scale.sizes()[usize::from(size)]));
        }
        for (group, band) in PriceGroup::ALL.iter().zip(self.prices) {
            text(group.word(), band.map(Word::word));
        }
        for (name, number) in [("age", self.age), ("height", self.height), ("weight", self.weight)] {
            if let Some(number) = number {
                features.insert(name, FeatureValue::Number(f64::from(number)));
            }
        }
        let mut many = |name: &str, words: Vec<String>| {
            if !words.is_empty() {
                features.insert(name, FeatureValue::Many(words));
            }
        };
        many("preferred_brands", self.brands.indices().map(|brand| BRANDS[brand].name.to_owned()).collect());
        many("preferred_colours", to_strings(self.colours));
        many("preferred_styles", to_strings(self.styles));
        many("nogo_types", to_strings(self.nogo_types));
        many("nogo_colours", to_strings(self.nogo_colours));
        many("nogo_materials", to_strings(self.nogo_materials));
        features
    }

    pub(crate) fn price(&self, group: PriceGroup) -> Option<PriceBand> {
        self.prices[group.index()]
    }

    pub(crate) fn size(&self, scale: SizeScale) -> Option<u8> {
        self.sizes[scale.index()]
    }

    /// The body type, or if it is not given the one that height and weight suggest.
    pub(crate) fn apparent_body(&self) -> Option<BodyType> {
        self.body_type.or_else(|| {
            let height = f64::from(self.height?) / 100.0;
            let index = f64::from(self.weight?) / (height * height);
            match index {
                i if i < 20.0 => Some(BodyType::Slender),
                i if i < 27.0 => Some(BodyType::Average),
                i if i < 31.0 && self.gender == Some(Gender::Female) => Some(BodyType::Curvy),
                i if i < 31.0 => Some(BodyType::Broad),
                _ => Some(BodyType::Full),
            }
        })
    }

    /// Whether the customer wears one of the three largest top sizes or the four largest bottom sizes.
    pub(crate) fn is_large(&self) -> bool {
        self.size(SizeScale::Top).is_some_and(|size| size >= 5)
            || self.size(SizeScale::Bottom).is_some_and(|size| size >= 12)
    }
}

fn to_strings<T: Word>(words: Words<T>) -> Vec<String> {
    words.iter().map(|word| word.word().to_owned()).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use atelier_core::domain::Schema;

    use super::{super::population::draw_profile, *};

    fn index<T: Word>(word: &str) -> usize {
        T::ALL.iter().position(|w| w.word() == word).unwrap()
    }

    fn text<'f>(features: &'f Features, name: &str) -> Option<&'f str> {
        let Some(FeatureValue::Text(word)) = features.get(name) else { return None };
        Some(word)
    }

    fn one<T: Word + Copy>(features: &Features, name: &str) -> Option<T> {
        text(features, name).map(|word| T::ALL[index::<T>(word)])
    }

    fn set<T: Copy>(features: &Features, name: &str, index: impl Fn(&str) -> usize) -> Words<T> {
        let Some(FeatureValue::Many(words)) = features.get(name) else { return Words::default() };
        Words::from_indices(words.iter().map(|word| index(word)))
    }

    /// The inverse of [`Profile::features`].
    pub(in crate::world) fn parse(features: &Features) -> Profile {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers came from u8")]
        let number = |name: &str| match features.get(name) {
            Some(FeatureValue::Number(number)) => Some(*number as u8),
            _ => None,
        };
        Profile {
            gender: one(features, "gender"),
            age: number("age"),
            country: one(features, "country"),
            height: number("height"),
            weight: number("weight"),
            body_type: one(features, "body_type"),
            hair_colour: one(features, "hair_colour"),
            fit: one(features, "fit"),
            brands: set(features, "preferred_brands", |w| BRANDS.iter().position(|b| b.name == w).unwrap()),
            colours: set(features, "preferred_colours", index::<Colour>),
            styles: set(features, "preferred_styles", index::<Style>),
            nogo_types: set(features, "nogo_types", index::<ArticleType>),
            nogo_colours: set(features, "nogo_colours", index::<Colour>),
            nogo_materials: set(features, "nogo_materials", index::<Material>),
            sizes: std::array::from_fn(|scale| {
                let scale = SizeScale::ALL[scale];
                let word = text(features, scale.word())?;
                u8::try_from(scale.sizes().iter().position(|size| *size == word).unwrap()).ok()
            }),
            prices: std::array::from_fn(|group| one(features, PriceGroup::ALL[group].word())),
        }
    }

    #[test]
    fn features_hold_the_whole_profile_and_the_schema_knows_every_word() {
        let schema = Schema::default_schema();
        for number in 0..500 {
            let profile = draw_profile(5, number);
            let features = profile.features();
            assert_eq!(parse(&features), profile);
            assert_eq!(schema.encode(&features).unwrap().warnings, []);
        }
    }
}
