//! A garment as a table of parts, and the table as SVG.

use std::fmt::Write as _;

use super::{
    Look,
    palette::{Palette, Tone},
    path,
    weave::{Grain, Weave},
};

/// What a garment is made of, from back to front.
#[derive(Debug, Clone, Copy)]
pub(super) struct Garment {
    pub(super) parts: &'static [Part],
    pub(super) grain: Grain,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    paint: Paint,
    shape: Shape,
    path: &'static str,
}

/// What a part's path stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// The left half of one symmetrical shape.
    Folded,
    /// One of a pair.
    Paired,
    /// Itself.
    Single,
}

/// How a part is painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    /// The main cloth, with its pattern.
    Cloth,
    /// The same without pattern.
    Plain,
    /// Ribs, straps, turned parts.
    Shade,
    /// The inside.
    Deep,
    /// A soft shadow.
    Fold,
    /// A soft light.
    Light,
    /// The light on leather, silk, rubber and metal; other materials go without.
    Sheen,
    /// The quilting of down; other materials go without.
    Quilt,
    Seam,
    /// A row of stitches; denim's is in copper thread, metal has none.
    Stitch,
    /// Dots: buttons, eyelets, rivets.
    Button,
    /// Small dots: holes, brogueing.
    Dot,
    Zip,
    Metal,
    /// A cord or thin strap that shows its own edges.
    Cord,
    /// The same, broader.
    Strap,
    /// Laces.
    Lace,
    /// Light rubber.
    Sole,
    /// Leather soles and heels.
    Heel,
    Fur,
    /// Dark glass.
    Glass,
    /// A dial.
    Dial,
    /// Sheer cloth: skin and tile show through.
    Sheer,
}

pub(super) const fn folded(paint: Paint, half: &'static str) -> Part {
    Part { paint, shape: Shape::Folded, path: half }
}

pub(super) const fn pair(paint: Paint, path: &'static str) -> Part {
    Part { paint, shape: Shape::Paired, path }
}

pub(super) const fn one(paint: Paint, path: &'static str) -> Part {
    Part { paint, shape: Shape::Single, path }
}

const METAL: Tone = Tone::hex("cbb98b");
const METAL_LINE: Tone = Tone::hex("7d6941");
const COPPER: Tone = Tone::hex("d8984e");

impl Garment {
    pub(super) const fn knitted(parts: &'static [Part]) -> Self {
        Self { parts, grain: Grain::Across }
    }

    pub(super) const fn woven(parts: &'static [Part]) -> Self {
        Self { parts, grain: Grain::Upright }
    }

    pub(super) fn draw(&self, look: &Look<'_>) -> String {
        let palette = Palette::of(look.colour, look.material);
        let weave = Weave::of(look, &palette, self.grain);
        let mut svg = String::with_capacity(3000);
        svg.push_str("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 200 240\">");
        svg.push_str(
            "<g fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\" stroke-width=\"1.5\">",
        );
        if self.parts.iter().any(|part| matches!(part.paint, Paint::Cloth | Paint::Sheer)) {
            svg.push_str(&weave.definition);
        }
        for part in self.parts {
            let path = match part.shape {
                Shape::Folded => path::folded(part.path),
                Shape::Paired => path::paired(part.path),
                Shape::Single => path::single(part.path),
            };
            for attributes in part.paint.strokes(look.material, &palette, &weave) {
                write!(svg, "<path {attributes} d=\"{path}\"/>")
                    .expect("a string takes what is written; this is a bug");
            }
        }
        svg.push_str("</g></svg>");
        svg
    }
}

impl Paint {
    /// The attributes of each stroke of the brush, one after another; none where the material does without.
    fn strokes(self, material: &str, palette: &Palette, weave: &Weave) -> Vec<String> {
        let Palette { cloth, shade, deep, gloss, seam, line, .. } = *palette;
        let fill = |tone: Tone| format!("fill=\"{tone}\" stroke=\"{line}\"");
        let stroke = |tone: Tone, width: f32| format!("stroke=\"{tone}\" stroke-width=\"{width}\"");
        let cased = |width: f32| vec![stroke(line, width + 2.4), stroke(cloth, width)];
        let metal = |tone: Tone| format!("fill=\"{tone}\" stroke=\"{METAL_LINE}\"");
        match self {
            Paint::Cloth => vec![format!("fill=\"{}\" stroke=\"{line}\"", weave.fill)],
            Paint::Plain => vec![fill(cloth)],
            Paint::Shade => vec![fill(shade)],
            Paint::Deep => vec![fill(deep)],
            Paint::Fold => vec![format!("fill=\"{deep}\" opacity=\".28\"")],
            Paint::Light => vec![format!("fill=\"{gloss}\" opacity=\".35\"")],
            Paint::Sheen if matches!(material, "leather" | "silk" | "rubber" | "metal") => {
                vec![format!("{} opacity=\".75\"", stroke(gloss, 2.2))]
            }
            Paint::Quilt if material == "down" => vec![stroke(seam, 1.3)],
            Paint::Stitch if material == "metal" => vec![],
            Paint::Sheen | Paint::Quilt => vec![],
            Paint::Seam => vec![stroke(seam, 1.1)],
            Paint::Stitch if material == "denim" => {
                vec![format!("{} stroke-dasharray=\"2.6 1.6\"", stroke(COPPER, 1.2))]
            }
            Paint::Stitch => vec![format!("{} stroke-dasharray=\"2.6 1.8\"", stroke(seam, 0.9))],
            Paint::Button if material == "denim" => vec![stroke(METAL_LINE, 5.4), stroke(METAL, 3.8)],
            Paint::Button => vec![stroke(line, 5.0), stroke(shade, 2.8)],
            Paint::Dot => vec![stroke(seam, 2.2)],
            Paint::Zip => vec![
                stroke(METAL_LINE, 2.8),
                format!("{} stroke-dasharray=\"1 1\" stroke-linecap=\"butt\"", stroke(METAL, 2.0)),
            ],
            // What is all of metal is of one metal.
            Paint::Metal if material == "metal" => vec![fill(cloth)],
            Paint::Metal => vec![metal(METAL)],
            Paint::Cord => cased(2.6),
            Paint::Strap => cased(6.5),
            Paint::Lace => vec![stroke(line, 4.2), stroke(gloss, 2.4)],
            Paint::Sole => vec![metal(Tone::hex("f1ebdf"))],
            Paint::Heel => vec![format!("fill=\"#4a372b\" stroke=\"#a08873\" stroke-width=\"1.2\"")],
            Paint::Fur => vec![format!("fill=\"#cdb391\" stroke=\"#7c6244\" stroke-width=\"1.3\"")],
            Paint::Glass => vec![format!("fill=\"#33363b\" stroke=\"#7f8388\"")],
            Paint::Dial => vec![format!("fill=\"#f6f2ea\" stroke=\"{METAL_LINE}\"")],
            Paint::Sheer => {
                vec![format!(
                    "fill=\"{}\" fill-opacity=\".84\" stroke=\"{line}\" stroke-width=\"1.3\"",
                    weave.fill
                )]
            }
        }
    }
}
