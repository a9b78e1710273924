//! Tones: what a colour's word looks like, and everything that is derived from it.
//!
//! A picture stands on light and on dark tiles, so an edge never relies on the cloth's own contrast: dark cloth
//! has lighter lines, light cloth darker ones.

use std::fmt;

/// A colour as the screen mixes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Tone([u8; 3]);

/// Word, cloth, and the second tone that patterns are drawn in.
const COLOURS: [(&str, &str, &str); 16] = [
    ("black", "333238", "d8d0c4"),
    ("white", "faf8f4", "506282"),
    ("grey", "9c9b9a", "4a4b50"),
    ("navy", "2a3655", "dcd5c6"),
    ("brown", "744f38", "dcb88a"),
    ("beige", "d9c6a5", "866643"),
    ("blue", "3e6aa6", "e3e6e6"),
    ("light-blue", "abc6de", "3f628e"),
    ("green", "3f7a5a", "e6dfb8"),
    ("olive", "6f6d45", "d8cfa2"),
    ("red", "b93633", "f4ddcb"),
    ("yellow", "e5bd4a", "7b541e"),
    ("burgundy", "6f253a", "e0b3a4"),
    ("pink", "e7b2ba", "a0405c"),
    ("purple", "6c4f8b", "dbc9e6"),
    ("orange", "d97b35", "f8e2c0"),
];

/// For words that are not in the table: undyed cloth.
const UNDYED: (&str, &str) = ("bdb5a8", "6b6257");

/// What a colour's word means of metal.
const METALS: [(&str, &str, &str); 2] = [("grey", "c6c8ca", "5c5e63"), ("yellow", "dcb95f", "74531c")];

const INK: Tone = Tone([0x1a, 0x15, 0x12]);
const LIGHT: Tone = Tone([0xff, 0xfb, 0xf4]);

/// Every tone that a garment of one colour is drawn in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Palette {
    pub(super) cloth: Tone,
    /// Ribs, straps and turned parts.
    pub(super) shade: Tone,
    /// What is seen of the inside.
    pub(super) deep: Tone,
    /// Where light falls.
    pub(super) gloss: Tone,
    /// Seams within the cloth.
    pub(super) seam: Tone,
    /// The silhouette's edge.
    pub(super) line: Tone,
    /// A pattern on the cloth.
    pub(super) second: Tone,
}

impl Palette {
    pub(super) fn of(colour: &str, material: &str) -> Self {
        let metals = METALS.iter().filter(|_| material == "metal");
        let known = metals.chain(&COLOURS).find(|(word, ..)| *word == colour);
        let (cloth, second) = known.map_or(UNDYED, |(_, cloth, second)| (*cloth, *second));
        let (cloth, second) = (Tone::hex(cloth), Tone::hex(second));
        let dark = cloth.luminance() < 0.075;
        Self {
            cloth,
            shade: cloth.mixed(INK, if dark { 0.3 } else { 0.13 }),
            deep: cloth.mixed(INK, if dark { 0.5 } else { 0.34 }),
            gloss: cloth.mixed(LIGHT, if dark { 0.25 } else { 0.5 }),
            seam: if dark { cloth.mixed(LIGHT, 0.3) } else { cloth.mixed(INK, 0.5) },
            line: if dark { cloth.mixed(LIGHT, 0.46) } else { cloth.mixed(INK, 0.54) },
            second,
        }
    }
}

impl Tone {
    /// From six hexadecimal digits in lower case.
    pub(super) const fn hex(rgb: &str) -> Self {
        let digits = rgb.as_bytes();
        assert!(digits.len() == 6, "a tone has six digits; this is a bug");
        Self([byte(digits[0], digits[1]), byte(digits[2], digits[3]), byte(digits[4], digits[5])])
    }

    fn mixed(self, other: Self, share: f32) -> Self {
        let mix = |place: usize| {
            let (from, to) = (f32::from(self.0[place]), f32::from(other.0[place]));
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between two bytes is a byte"
            )]
            let mixed = (from + (to - from) * share).round() as u8;
            mixed
        };
        Self([mix(0), mix(1), mix(2)])
    }

    /// Relative luminance, as WCAG defines it.
    fn luminance(self) -> f32 {
        let linear = self.0.map(|byte| {
            let share = f32::from(byte) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }
}

const fn byte(high: u8, low: u8) -> u8 {
    nibble(high) * 16 + nibble(low)
}

const fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => panic!("a tone is made of hexadecimal digits; this is a bug"),
    }
}

impl fmt::Display for Tone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl fmt::Debug for Tone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contrast(one: Tone, other: Tone) -> f32 {
        let (one, other) = (one.luminance() + 0.05, other.luminance() + 0.05);
        one.max(other) / one.min(other)
    }

    /// The tiles that pages put pictures on, in the light and in the dark.
    const TILES: [Tone; 2] = [Tone::hex("f4efe7"), Tone::hex("2a2622")];

    #[test]
    fn every_colour_stands_out_from_both_tiles_and_its_seams_from_it() {
        let words = COLOURS.iter().map(|(word, ..)| (*word, "wool"));
        let metals = METALS.iter().map(|(word, ..)| (*word, "metal"));
        for (word, material) in words.chain(metals).chain([("unheard-of", "")]) {
            let palette = Palette::of(word, material);
            for tile in TILES {
                let seen = contrast(palette.line, tile).max(contrast(palette.cloth, tile));
                assert!(seen > 2.0, "{word} on {tile}: {seen}");
            }
            assert!(contrast(palette.seam, palette.cloth) > 1.5, "{word}: {palette:?}");
            assert!(contrast(palette.second, palette.cloth) > 1.9, "{word}: {palette:?}");
        }
    }

    #[test]
    fn tones_are_between_what_they_are_mixed_of() {
        assert_eq!(Tone::hex("0064ff").mixed(Tone::hex("646400"), 0.5).to_string(), "#326480");
        assert_eq!(Palette::of("unheard-of", "").cloth.to_string(), "#bdb5a8");
    }
}
