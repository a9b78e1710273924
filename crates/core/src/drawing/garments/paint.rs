//! Fills the parts of a drawing with the tones of one colour.

use std::fmt::Write as _;

use super::{
    Look,
    palette::{Palette, Tone},
    weave::{Grain, Weave},
};

const METAL: Tone = Tone::hex(0xcbb98b);
const METAL_LINE: Tone = Tone::hex(0x7d6941);
const COPPER: Tone = Tone::hex(0xd8984e);

/// Paints a file of `svg/`.
pub(super) fn paint(drawing: &str, look: &Look<'_>) -> String {
    let palette = Palette::new(look.colour, look.material);
    let grain = if drawing.contains(" class=\"across\">") { Grain::Across } else { Grain::Upright };
    let weave = Weave::new(look, &palette, grain);
    let mut svg = String::with_capacity(3000);
    svg.push_str("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 200 240\">");
    svg.push_str("<g fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\" stroke-width=\"1.5\">");
    if parts(drawing).any(|(class, _)| matches!(class, "cloth" | "sheer")) {
        svg.push_str(&weave.definition);
    }
    for (class, path) in parts(drawing) {
        for attributes in strokes(class, look.material, &palette, &weave) {
            write!(svg, "<path {attributes} d=\"{path}\"/>").expect("writing to a String never fails");
        }
    }
    svg.push_str("</g></svg>");
    svg
}

/// The class and the path of each part, from back to front.
pub(super) fn parts(drawing: &str) -> impl Iterator<Item = (&str, &str)> {
    drawing
        .lines()
        .filter_map(|line| line.strip_prefix("<path class=\"")?.strip_suffix("\"/>")?.split_once("\" d=\""))
}

/// The attributes of each stroke that paints a part, one over the other; empty where the material has no such part.
fn strokes(class: &str, material: &str, palette: &Palette, weave: &Weave) -> Vec<String> {
    let Palette { cloth, shade, deep, gloss, seam, line, .. } = *palette;
    let fill = |tone: Tone| vec![format!("fill=\"{tone}\" stroke=\"{line}\"")];
    let stroke = |tone: Tone, width: f32| format!("stroke=\"{tone}\" stroke-width=\"{width}\"");
    let edged = |width: f32| vec![stroke(line, width + 2.4), stroke(cloth, width)];
    let metal = |tone: Tone| vec![format!("fill=\"{tone}\" stroke=\"{METAL_LINE}\"")];
    match (class, material) {
        // Cloth has the pattern, plain cloth has not. A metal article is of one metal.
        ("cloth", _) => vec![format!("fill=\"{}\" stroke=\"{line}\"", weave.fill)],
        ("plain", _) | ("metal", "metal") => fill(cloth),
        // Ribs, straps, turned parts.
        ("shade", _) => fill(shade),
        // The inside.
        ("deep", _) => fill(deep),
        // Soft shadow and soft light.
        ("fold", _) => vec![format!("fill=\"{deep}\" opacity=\".28\"")],
        ("light", _) => vec![format!("fill=\"{gloss}\" opacity=\".35\"")],
        ("sheen", "leather" | "silk" | "rubber" | "metal") => {
            vec![format!("{} opacity=\".75\"", stroke(gloss, 2.2))]
        }
        ("quilt", "down") => vec![stroke(seam, 1.3)],
        ("sheen" | "quilt", _) | ("stitch", "metal") => vec![],
        ("seam", _) => vec![stroke(seam, 1.1)],
        ("stitch", "denim") => vec![format!("{} stroke-dasharray=\"2.6 1.6\"", stroke(COPPER, 1.2))],
        ("stitch", _) => vec![format!("{} stroke-dasharray=\"2.6 1.8\"", stroke(seam, 0.9))],
        // Buttons, eyelets and rivets; smaller are holes and brogueing.
        ("button", "denim") => vec![stroke(METAL_LINE, 5.4), stroke(METAL, 3.8)],
        ("button", _) => vec![stroke(line, 5.0), stroke(shade, 2.8)],
        ("dot", _) => vec![stroke(seam, 2.2)],
        ("zip", _) => vec![
            stroke(METAL_LINE, 2.8),
            format!("{} stroke-dasharray=\"1 1\" stroke-linecap=\"butt\"", stroke(METAL, 2.0)),
        ],
        ("metal", _) => metal(METAL),
        // Cords and straps show their edges.
        ("cord", _) => edged(2.6),
        ("strap", _) => edged(6.5),
        ("lace", _) => vec![stroke(line, 4.2), stroke(gloss, 2.4)],
        // Light rubber, then leather soles and heels.
        ("sole", _) => metal(Tone::hex(0xf1ebdf)),
        ("heel", _) => vec!["fill=\"#4a372b\" stroke=\"#a08873\" stroke-width=\"1.2\"".to_owned()],
        ("fur", _) => vec!["fill=\"#cdb391\" stroke=\"#7c6244\" stroke-width=\"1.3\"".to_owned()],
        ("glass", _) => vec!["fill=\"#33363b\" stroke=\"#7f8388\"".to_owned()],
        ("dial", _) => metal(Tone::hex(0xf6f2ea)),
        // Skin and tile show through sheer cloth.
        ("sheer", _) => vec![format!(
            "fill=\"{}\" fill-opacity=\".84\" stroke=\"{line}\" stroke-width=\"1.3\"",
            weave.fill
        )],
        _ => panic!("no paint is called {class:?}"),
    }
}
