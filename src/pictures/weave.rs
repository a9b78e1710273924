//! Cloth: a pattern in the second tone, and what a material adds to it.
//!
//! Definitions are named after what they hold, so two pictures inlined in one page share them or differ.

use super::{Look, palette::Palette};

/// How a garment's cloth is filled.
#[derive(Debug)]
pub(super) struct Weave {
    /// A `<pattern>`, where the cloth is more than its colour.
    pub(super) definition: String,
    pub(super) fill: String,
}

/// Which way a garment's stripes run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grain {
    Across,
    Upright,
}

/// What repeats: its name, its width and height, and what is on it.
struct Tile(&'static str, u8, u8, String);

impl Weave {
    /// A pattern covers what a material would show.
    pub(super) fn of(look: &Look<'_>, palette: &Palette, grain: Grain) -> Self {
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
    let Palette { second, shade, .. } = palette;
    Some(match (word, grain) {
        ("striped", Grain::Across) => {
            Tile("stripes", 14, 14, format!("<path fill=\"{second}\" d=\"M0 4H14V9H0Z\"/>"))
        }
        ("striped", Grain::Upright) => {
            Tile("pinstripes", 9, 9, format!("<path fill=\"{second}\" d=\"M3.4 0H5.6V9H3.4Z\"/>"))
        }
        ("checked", _) => {
            let checks = format!(
                "<path fill=\"{second}\" opacity=\".34\" d=\"M0 3H22V11H0ZM3 0H11V22H3Z\"/>\
                 <path stroke=\"{second}\" opacity=\".75\" d=\"M0 17H22M17 0V22\"/>"
            );
            Tile("checks", 22, 22, checks)
        }
        ("dotted", _) => {
            let dots = format!(
                "<path stroke=\"{second}\" stroke-width=\"4\" stroke-linecap=\"round\" d=\"M3.5 3.5h0M10.5 10.5h0\"/>"
            );
            Tile("dots", 14, 14, dots)
        }
        ("floral", _) => Tile("flowers", 34, 34, flowers(palette)),
        ("printed", _) => {
            let print = format!(
                "<path fill=\"{second}\" d=\"M4 10C8 2 17 4 16 11S2 19 4 10ZM22 30C20 23 28 18 33 24S25 38 22 30Z\"/>\
                 <path fill=\"{shade}\" d=\"M22 7C25 2 33 5 31 11S19 13 22 7ZM5 28C7 22 14 24 13 30S3 34 5 28Z\"/>"
            );
            Tile("print", 36, 36, print)
        }
        _ => return None,
    })
}

/// Two sprays of petals and a few leaves.
fn flowers(palette: &Palette) -> String {
    let petals = |x: i16, y: i16, r: i16| {
        let around = [(0, -r), (r, -r / 3), (r * 2 / 3, r), (-r * 2 / 3, r), (-r, -r / 3)];
        around.map(|(dx, dy)| format!("M{} {}h0", x + dx, y + dy)).concat()
    };
    let Palette { second, line, gloss, .. } = palette;
    format!(
        "<path stroke=\"{line}\" fill=\"none\" d=\"M10 11C14 15 15 19 14 22M26 27C22 30 20 31 17 30M27 4C25 7 25 9 26 12\"/>\
         <path stroke=\"{second}\" stroke-width=\"5\" stroke-linecap=\"round\" d=\"{}{}\"/>\
         <path stroke=\"{gloss}\" stroke-width=\"3.4\" stroke-linecap=\"round\" d=\"M10 10h0M26 26h0\"/>",
        petals(10, 10, 4),
        petals(26, 26, 4),
    )
}

/// What a material's surface shows.
fn texture(material: &str, palette: &Palette, grain: Grain) -> Option<Tile> {
    let seam = palette.seam;
    let lines = |opacity: &str, d: &str| {
        format!("<path stroke=\"{seam}\" stroke-width=\".6\" opacity=\"{opacity}\" fill=\"none\" d=\"{d}\"/>")
    };
    Some(match (material, grain) {
        ("wool" | "cashmere", Grain::Across) => Tile("knit", 5, 5, lines(".45", "M0 1L2.5 3.5L5 1")),
        ("wool" | "cashmere", Grain::Upright) => {
            Tile("felt", 7, 6, lines(".35", "M1 2L2.5 1M4.5 5L6 4M5 2h.4"))
        }
        ("denim", _) => Tile("twill", 4, 4, lines(".3", "M0 4L4 0")),
        ("linen", _) => Tile("slub", 9, 7, lines(".25", "M0 1.5H5M2 0V4M6.5 3V7")),
        ("suede" | "fur", _) => Tile("nap", 6, 6, lines(".3", "M1 2h.2M4 5h.2M4 1h.2")),
        _ => return None,
    })
}
