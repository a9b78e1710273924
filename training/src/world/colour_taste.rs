//! Taste in colours: what the customer said, what flatters them, what the day asks for.

use super::{
    context::Context,
    lexicon::{
        Colour::{
            self, Beige, Black, Blue, Brown, Burgundy, Green, Grey, LightBlue, Navy, Olive, Orange, Pink,
            Purple, Red, White, Yellow,
        },
        Gender, HairColour, Style, Word,
    },
    occasion,
    taste::{NO_GO, Zone},
};

/// What one preferred colour is worth beside the face; several share it.
const PREFERRED: f64 = 1.5;

pub(crate) fn colour_taste(context: Context<'_>, zone: Zone) -> [f64; Colour::COUNT] {
    let profile = context.profile;
    let counts = match zone {
        Zone::Face => 1.0,
        Zone::Legs => 0.7,
        Zone::Small => 0.45,
    };
    let stated = PREFERRED / crate::number::real(profile.colours.len().max(1)).powf(0.4);
    std::array::from_fn(|index| {
        let colour = Colour::ALL[index];
        if profile.nogo_colours.has(colour) {
            return NO_GO;
        }
        let mut utility = occasion::colour(context.occasion, colour);
        if profile.colours.has(colour) {
            utility += stated;
            // Black by choice and rock by choice is black from head to toe.
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
        // Dark below the waist slims, brights do not.
        if zone == Zone::Legs && profile.is_large() {
            utility += match colour {
                Black | Navy => 0.7,
                White | Beige | Yellow | Orange | Pink | LightBlue => -0.5,
                _ => 0.0,
            };
        }
        // With age colours come closer to the face and farther from the feet.
        if profile.age.is_some_and(|age| age > 60) {
            utility += match (zone, colour) {
                (Zone::Face, Black) => -0.4,
                (Zone::Face, LightBlue | Burgundy | Navy) => 0.3,
                _ => 0.0,
            };
        }
        counts * utility
    })
}

/// Shades of one colour.
fn related(a: Colour, b: Colour) -> bool {
    matches!(
        (a, b),
        (Navy | LightBlue, Blue)
            | (Blue, Navy | LightBlue)
            | (Beige, Brown)
            | (Brown, Beige)
            | (Red, Burgundy)
            | (Burgundy, Red)
            | (Green, Olive)
            | (Olive, Green)
            | (Black, Grey)
            | (Grey, Black)
            | (Pink, Purple)
            | (Purple, Pink)
    )
}

/// The stylist's rule of thumb for hair.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{lexicon::Words, profile::Profile};

    #[test]
    fn preferences_hair_and_no_gos_are_heard() {
        let mut colours = Words::default();
        colours.insert_index(Navy.index());
        let mut nogo_colours = Words::default();
        nogo_colours.insert_index(Orange.index());
        let profile =
            Profile { colours, nogo_colours, hair_colour: Some(HairColour::Red), ..Profile::default() };
        let taste = colour_taste(Context { profile: &profile, occasion: None }, Zone::Face);
        let of = |colour: Colour| taste[colour.index()];
        assert!(of(Navy) > of(Blue) && of(Blue) > of(White));
        assert!(of(Green) > of(White) && of(Pink) < of(White));
        assert!(of(Orange) < of(Pink) - 2.0);
    }
}
