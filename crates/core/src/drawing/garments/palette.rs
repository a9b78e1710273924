//! The tones of a garment, derived from the word for its colour.
//!
//! Pages show pictures on light and on dark tiles, so edges do not rely on the contrast between cloth and tile:
//! dark cloth has lighter lines, light cloth darker ones.

use std::fmt;

/// A colour in red, green and blue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Tone([u8; 3]);

/// The word for a colour, the tone of the cloth, and a second tone for patterns.
const COLOURS: [(&str, u32, u32); 16] = [
    ("black", 0x333238, 0xd8d0c4),
    ("white", 0xfaf8f4, 0x506282),
    ("grey", 0x9c9b9a, 0x4a4b50),
    ("navy", 0x2a3655, 0xdcd5c6),
    ("brown", 0x744f38, 0xdcb88a),
    ("beige", 0xd9c6a5, 0x866643),
    ("blue", 0x3e6aa6, 0xe3e6e6),
    ("light-blue", 0xabc6de, 0x3f628e),
    ("green", 0x3f7a5a, 0xe6dfb8),
    ("olive", 0x6f6d45, 0xd8cfa2),
    ("red", 0xb93633, 0xf4ddcb),
    ("yellow", 0xe5bd4a, 0x7b541e),
    ("burgundy", 0x6f253a, 0xe0b3a4),
    ("pink", 0xe7b2ba, 0xa0405c),
    ("purple", 0x6c4f8b, 0xdbc9e6),
    ("orange", 0xd97b35, 0xf8e2c0),
];

/// Undyed cloth, for unknown words.
const UNDYED: (u32, u32) = (0xbdb5a8, 0x6b6257);

/// The metal of a colour: silver and gold.
const METALS: [(&str, u32, u32); 2] = [("grey", 0xc6c8ca, 0x5c5e63), ("yellow", 0xdcb95f, 0x74531c)];

const INK: Tone = Tone([0x1a, 0x15, 0x12]);
const LIGHT: Tone = Tone([0xff, 0xfb, 0xf4]);

/// All tones of a garment of one colour.
#[derive(Debug, Clone, Copy)]
pub(super) struct Palette {
    pub(super) cloth: Tone,
    /// Ribs, straps and turned parts.
    pub(super) shade: Tone,
    /// The visible inside.
    pub(super) deep: Tone,
    /// Highlights.
    pub(super) gloss: Tone,
    /// Seams within the cloth.
    pub(super) seam: Tone,
    /// Edges.
    pub(super) line: Tone,
    /// Patterns on the cloth.
    pub(super) second: Tone,
}

impl Palette {
    pub(super) fn new(colour: &str, material: &str) -> Self {
        let metals = METALS.iter().filter(|_| material == "metal");
        let entry = metals.chain(&COLOURS).find(|(word, ..)| *word == colour);
        let (cloth, second) = entry.map_or(UNDYED, |&(_, cloth, second)| (cloth, second));
        let (cloth, second) = (Tone::hex(cloth), Tone::hex(second));
        let dark = cloth.luminance() < 0.075;
        Self {
            cloth,
            shade: cloth.mix(INK, if dark { 0.3 } else { 0.13 }),
            deep: cloth.mix(INK, if dark { 0.5 } else { 0.34 }),
            gloss: cloth.mix(LIGHT, if dark { 0.25 } else { 0.5 }),
            seam: if dark { cloth.mix(LIGHT, 0.3) } else { cloth.mix(INK, 0.5) },
            line: if dark { cloth.mix(LIGHT, 0.46) } else { cloth.mix(INK, 0.54) },
            second,
        }
    }
}

impl Tone {
    /// Makes the tone `0xrrggbb`.
    pub(super) const fn hex(rgb: u32) -> Self {
        let [_, red, green, blue] = rgb.to_be_bytes();
        Self([red, green, blue])
    }

    /// Mixes in a share of another tone.
    fn mix(self, other: Self, share: f32) -> Self {
        let mix = |channel: usize| {
            let (from, to) = (f32::from(self.0[channel]), f32::from(other.0[channel]));
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a value between two bytes is a byte"
            )]
            let mixed = (from + (to - from) * share).round() as u8;
            mixed
        };
        Self([mix(0), mix(1), mix(2)])
    }

    /// The relative luminance, as defined by WCAG.
    fn luminance(self) -> f32 {
        let linear = self.0.map(|byte| {
            let share = f32::from(byte) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
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

    /// The backgrounds of pictures in light and in dark pages.
    const TILES: [Tone; 2] = [Tone::hex(0xf4efe7), Tone::hex(0x2a2622)];

    #[test]
    fn every_colour_contrasts_with_both_tiles_and_with_its_seams() {
        let words = COLOURS.iter().map(|(word, ..)| (*word, "wool"));
        let metals = METALS.iter().map(|(word, ..)| (*word, "metal"));
        for (word, material) in words.chain(metals).chain([("unheard-of", "")]) {
            let palette = Palette::new(word, material);
            for tile in TILES {
                let seen = contrast(palette.line, tile).max(contrast(palette.cloth, tile));
                assert!(seen > 2.0, "{word} on {tile}: {seen}");
            }
            assert!(contrast(palette.seam, palette.cloth) > 1.5, "{word}: {palette:?}");
            assert!(contrast(palette.second, palette.cloth) > 1.9, "{word}: {palette:?}");
        }
    }

    #[test]
    fn mixed_tones_lie_between_their_parts() {
        assert_eq!(Tone::hex(0x0064ff).mix(Tone::hex(0x646400), 0.5).to_string(), "#326480");
        assert_eq!(Palette::new("unheard-of", "").cloth.to_string(), "#bdb5a8");
    }
}
