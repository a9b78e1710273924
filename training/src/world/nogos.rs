//! What customers rule out.

use crate::random::Stream;

use super::{
    lexicon::{ArticleType, Colour, Gender, Material, Word, Words},
    person::Person,
    population::words,
};

#[derive(Debug)]
pub(crate) struct NoGos {
    pub(crate) types: Words<ArticleType>,
    pub(crate) colours: Words<Colour>,
    pub(crate) materials: Words<Material>,
}

/// Nobody rules out a colour that they prefer.
pub(crate) fn draw_nogos(stream: &mut Stream, person: &Person, preferred: Words<Colour>) -> NoGos {
    NoGos {
        types: draw_types(stream, person),
        colours: draw_colours(stream, person, preferred),
        materials: draw_materials(stream),
    }
}

fn draw_types(stream: &mut Stream, person: &Person) -> Words<ArticleType> {
    use ArticleType as T;
    let women: &[(T, f64)] = &[
        (T::Heel, 14.0),
        (T::Cap, 8.0),
        (T::Hat, 8.0),
        (T::Polo, 8.0),
        (T::Ballerina, 7.0),
        (T::Skirt, 6.0),
        (T::Jumpsuit, 6.0),
        (T::Backpack, 5.0),
        (T::Shorts, 7.0),
        (T::Dress, 4.0),
        (T::Leggings, 5.0),
        (T::Hoodie, 5.0),
        (T::Tights, 4.0),
        (T::Beanie, 4.0),
        (T::LeatherJacket, 4.0),
        (T::LaceUp, 4.0),
        (T::Loafer, 3.0),
        (T::Waistcoat, 3.0),
        (T::Belt, 3.0),
        (T::Watch, 3.0),
        (T::Blazer, 3.0),
        (T::Blouse, 2.0),
        (T::Sandal, 2.0),
        (T::Scarf, 2.0),
        (T::Jewellery, 2.0),
        (T::Parka, 2.0),
        (T::BomberJacket, 3.0),
        (T::Sunglasses, 1.0),
    ];
    let men: &[(T, f64)] = &[
        (T::Sandal, 11.0),
        (T::Leggings, 8.0),
        (T::Hat, 9.0),
        (T::Jewellery, 9.0),
        (T::Polo, 8.0),
        (T::Shorts, 7.0),
        (T::Cap, 7.0),
        (T::Waistcoat, 8.0),
        (T::Loafer, 7.0),
        (T::Cardigan, 6.0),
        (T::Beanie, 5.0),
        (T::Hoodie, 5.0),
        (T::Scarf, 4.0),
        (T::Chinos, 4.0),
        (T::LeatherJacket, 4.0),
        (T::Blazer, 3.0),
        (T::LaceUp, 3.0),
        (T::Backpack, 3.0),
        (T::Belt, 2.0),
        (T::Watch, 2.0),
        (T::Skirt, 2.0),
        (T::Dress, 2.0),
        (T::Heel, 2.0),
        (T::Sunglasses, 1.0),
        (T::Parka, 2.0),
        (T::Bag, 4.0),
    ];
    let as_women_do = match person.gender {
        Gender::Female => true,
        Gender::Male => false,
        Gender::Diverse => stream.chance(0.5),
    };
    let from = if as_women_do { women } else { men };
    let mut weights = vec![0.0; ArticleType::COUNT];
    for (kind, weight) in from {
        let with_age = match kind {
            T::Heel | T::Hoodie | T::Cap | T::Shorts if person.age > 52 => 2.0,
            T::Hat | T::Polo | T::Loafer if person.age < 28 => 1.5,
            _ => 1.0,
        };
        weights[kind.index()] = weight * with_age;
    }
    let count = stream.weighted(&[0.46, 0.28, 0.17, 0.09]);
    words(stream.weighted_without_replacement(weights, count))
}

fn draw_colours(stream: &mut Stream, person: &Person, preferred: Words<Colour>) -> Words<Colour> {
    #[rustfmt::skip]
    const DISLIKED: [f64; Colour::COUNT] =
    // black white grey beige brown navy blue l-bl green olive yello orang red  burg pink purpl
      [1.5, 1.5, 2.0, 5.0, 6.0, 1.5, 1.5, 1.5, 4.5, 6.0, 12., 13., 6.0, 3.5, 9.0, 8.0];
    let mut weights = DISLIKED.to_vec();
    if person.gender == Gender::Male {
        weights[Colour::Pink.index()] *= 2.0;
        weights[Colour::Purple.index()] *= 1.4;
    }
    preferred.indices().for_each(|colour| weights[colour] = 0.0);
    let count = stream.weighted(&[0.44, 0.28, 0.18, 0.10]);
    words(stream.weighted_without_replacement(weights, count))
}

fn draw_materials(stream: &mut Stream) -> Words<Material> {
    use Material as M;
    /// Who will not wear animals rules out several materials at once.
    const VEGAN: f64 = 0.045;
    if stream.chance(VEGAN) {
        let animal = [M::Fur, M::Leather, M::Suede, M::Wool, M::Cashmere, M::Silk, M::Down];
        let kept = 3 + stream.below(5);
        return words(animal.iter().take(kept).map(|material| material.index()).collect());
    }
    let mut weights = vec![0.0; Material::COUNT];
    for (material, weight) in [
        (M::Fur, 14.0),
        (M::Polyester, 7.0),
        (M::Leather, 4.0),
        (M::Wool, 5.0),
        (M::Nylon, 3.0),
        (M::Suede, 2.5),
        (M::Down, 2.0),
        (M::Rubber, 2.0),
        (M::Silk, 1.5),
        (M::Viscose, 1.2),
        (M::Linen, 1.2),
        (M::Cashmere, 0.5),
    ] {
        weights[material.index()] = weight;
    }
    let count = stream.weighted(&[0.62, 0.26, 0.12]);
    words(stream.weighted_without_replacement(weights, count))
}
