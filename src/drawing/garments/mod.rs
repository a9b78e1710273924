//! Drawn garments: what stands in a page for an article whose shop gave no photograph.
//!
//! Comes in: a few words ([`Look`]). Goes out: an SVG, complete in itself, on a canvas of 200 by 240. Words that
//! nobody drew for still give a picture: undyed cloth, or a hanger. Knows nothing of HTTP, of articles and their
//! ids, or of models.
//!
//! A garment is a table of parts (`drawing`), most of them left halves that are folded open (`path`), painted
//! in tones that follow from one colour (`palette`) and filled with its pattern and material (`weave`).

mod accessories;
mod bags;
mod bottoms;
mod coats;
mod drawing;
mod dresses;
mod jackets;
mod knitwear;
mod palette;
mod path;
mod shoes;
#[cfg(test)]
mod tests;
mod tops;
mod weave;

use self::drawing::{
    Garment,
    Paint::{Cord, Strap},
    one,
};

/// A garment in words; an empty word says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look<'a> {
    /// The type, such as `trench-coat`.
    pub kind: &'a str,
    pub colour: &'a str,
    pub pattern: &'a str,
    pub material: &'a str,
    /// `women`, `men`, or anything else for both; few garments differ.
    pub gender: &'a str,
}

/// The picture as SVG.
pub fn garment(look: &Look<'_>) -> String {
    let [kind, colour, pattern, material, gender] =
        [look.kind, look.colour, look.pattern, look.material, look.gender].map(str::to_ascii_lowercase);
    let look = Look { kind: &kind, colour: &colour, pattern: &pattern, material: &material, gender: &gender };
    drawn(look.kind, look.gender).unwrap_or(&HANGER).draw(&look)
}

/// The garment of this type, or of the type that it is a kind of: `rain-boot` is a boot.
fn drawn(kind: &str, gender: &str) -> Option<&'static Garment> {
    let exactly = |kind: &str| {
        tops::of(kind, gender)
            .or_else(|| knitwear::of(kind))
            .or_else(|| jackets::of(kind))
            .or_else(|| coats::of(kind))
            .or_else(|| dresses::of(kind))
            .or_else(|| bottoms::of(kind))
            .or_else(|| shoes::of(kind, gender))
            .or_else(|| bags::of(kind))
            .or_else(|| accessories::of(kind, gender))
    };
    exactly(kind).or_else(|| exactly(kind.rsplit(['-', ' ', '_']).next()?))
}

/// An empty hanger, for types that nobody drew.
const HANGER: Garment = Garment::woven(&[
    one(Strap, "M28 152L100 102L172 152C178 158 176 164 168 164L32 164C24 164 22 158 28 152Z"),
    one(Cord, "M100 99C100 88 116 86 116 73C116 63 108 58 100 58C92 58 86 63 85 71"),
]);
