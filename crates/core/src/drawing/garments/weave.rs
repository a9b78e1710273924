//! The surface of cloth: a pattern in the second tone, or else the texture of the material.
//!
//! Tiles inherit round line ends and `fill="none"` from the drawing. A tile's id names its pattern and colour,
//! so two pictures on one page share an id only if they share the tile.

use super::{Look, palette::Palette};

/// How a garment's cloth is filled.
#[derive(Debug)]
pub(super) struct Weave {
    /// A `<pattern>`; empty for cloth of one colour.
    pub(super) definition: String,
    pub(super) fill: String,
}

/// The direction of a garment's stripes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grain {
    Across,
    Upright,
}

/// A tile that repeats: its name, its width and height, its drawing.
struct Tile(&'static str, u8, u8, String);

impl Weave {
    /// Chooses the pattern or, for plain cloth, the texture of the material.
    pub(super) fn new(look: &Look<'_>, palette: &Palette, grain: Grain) -> Self {
        let cloth = palette.cloth.to_string();
        let Some(tile) =
            pattern(look.pattern, palette, grain).or_else(|| texture(look.material, palette, grain))
        else {
            return Self { definition: String::new(), fill: cloth };
        };
        let Tile(name, width, height, drawn) = tile;
        let id = format!("{name}-{}", &cloth[1..]);
        let definition = format!(
            "<pattern id=\"{id}\" width=\"{width}\" height=\"{height}\" patternUnits=\"userSpaceOnUse\">\
             <path fill=\"{cloth}\" d=\"M0 0H{width}V{height}H0Z\"/>{drawn}</pattern>"
        );
        Self { definition, fill: format!("url(#{id})") }
    }
}

fn pattern(word: &str, palette: &Palette, grain: Grain) -> Option<Tile> {
    let second = palette.second;
    Some(match (word, grain) {
        ("striped", Grain::Across) => {
            Tile("stripes", 14, 14, format!("<path fill=\"{second}\" d=\"M0 4H14V9H0Z\"/>"))
        }
        ("striped", Grain::Upright) => {
            Tile("pinstripes", 9, 9, format!("<path fill=\"{second}\" d=\"M3.6 0H5.4V9H3.6Z\"/>"))
        }
        ("checked", _) => {
            let checks = format!(
                "<path fill=\"{second}\" opacity=\".34\" d=\"M0 3H22V11H0ZM3 0H11V22H3Z\"/>\
                 <path stroke=\"{second}\" stroke-width=\"1\" opacity=\".75\" d=\"M0 17H22M17 0V22\"/>"
            );
            Tile("checks", 22, 22, checks)
        }
        ("dotted", _) => {
            let dots = format!("<path stroke=\"{second}\" stroke-width=\"4\" d=\"M3.5 3.5h0M10.5 10.5h0\"/>");
            Tile("dots", 14, 14, dots)
        }
        ("floral", _) => Tile("flowers", 42, 42, flowers(palette)),
        ("printed", _) => Tile("print", 44, 44, chips(palette)),
        _ => return None,
    })
}

/// A large flower, a small one, buds, and leaves between them.
fn flowers(palette: &Palette) -> String {
    let Palette { second, seam, gloss, .. } = palette;
    format!(
        "<path stroke=\"{seam}\" stroke-width=\"1.2\" \
         d=\"M12 18C15 24 20 27 20 33M17 25C21 24 23 21 23 18M19 29C15 30 12 32 11 35M35 31C38 34 38 37 37 40M30 8C27 9 25 8 23 5\"/>\
         <path stroke=\"{second}\" stroke-width=\"6\" d=\"M11 6h0M16 9.5h0M14 15h0M8 15h0M6 9.5h0\"/>\
         <path stroke=\"{second}\" stroke-width=\"4.5\" d=\"M33 24h0M36.5 26.5h0M35 30h0M31 30h0M29.5 26.5h0M20 35h0M32 8h0\"/>\
         <path stroke=\"{gloss}\" stroke-width=\"4\" d=\"M11 11h0\"/>\
         <path stroke=\"{gloss}\" stroke-width=\"2.5\" d=\"M33 27.5h0\"/>"
    )
}

/// Chips of four tones, scattered as in terrazzo.
fn chips(palette: &Palette) -> String {
    let Palette { second, shade, deep, gloss, .. } = palette;
    format!(
        "<path fill=\"{second}\" d=\"M3 7L12 3L16 10L8 14ZM25 22L35 19L38 28L29 32ZM12 34L18 31L21 38L14 40Z\"/>\
         <path fill=\"{shade}\" d=\"M22 5L30 8L27 15L20 12ZM4 22L13 19L17 26L8 30ZM36 36L42 38L39 43L33 42Z\"/>\
         <path fill=\"{deep}\" d=\"M36 4L41 7L38 13L34 10ZM3 38L8 36L10 42L5 43Z\"/>\
         <path fill=\"{gloss}\" d=\"M18 16L23 18L20 23L16 21ZM26 36L31 38L27 42ZM40 17L43 20L40 24Z\"/>"
    )
}

/// The texture of a material.
fn texture(material: &str, palette: &Palette, grain: Grain) -> Option<Tile> {
    let seam = palette.seam;
    let lines = |opacity: &str, d: &str| {
        format!("<path stroke=\"{seam}\" stroke-width=\".6\" opacity=\"{opacity}\" d=\"{d}\"/>")
    };
    Some(match (material, grain) {
        ("wool" | "cashmere", Grain::Across) => Tile("knit", 5, 5, lines(".45", "M0 1L2.5 3.5L5 1")),
        ("wool" | "cashmere", Grain::Upright) => Tile(
            "felt",
            13,
            11,
            lines(".35", "M1 2L3 1M6 8L8 7M10 3L11.5 2M3 6L4 5.6M11 9L12 9.4M7 4L7.6 4.4"),
        ),
        ("denim", _) => Tile("twill", 4, 4, lines(".3", "M0 4L4 0")),
        ("linen", _) => Tile("slub", 9, 7, lines(".25", "M0 1.5H5M2 0V4M6.5 3V7")),
        ("suede" | "fur", _) => {
            Tile("nap", 9, 8, lines(".4", "M1 2h.3M5 6h.3M7 1h.3M3 4.4h.3M8 4h.3M2 7h.3"))
        }
        _ => return None,
    })
}
