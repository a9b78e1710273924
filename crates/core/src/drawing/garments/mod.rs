//! Drawn garments, for articles whose shop sends no photo.
//!
//! Takes a few words ([`Look`]), and returns a complete SVG on a canvas of 200 by 240. Unknown words still give
//! a picture: undyed cloth, or a hanger. Must not know HTTP, articles and their ids, or models.
//!
//! The drawings are SVG files in `svg/`, with one `<path class="…" d="…"/>` a line from back to front. A
//! path's class says how to `paint` it, in tones of one colour (`palette`); cloth gets the pattern and the
//! texture of the material (`weave`). The class of the file's `<svg>` is the direction of the stripes, `across` or
//! `upright`. In a browser the files show undyed cloth, as `svg/preview.css` paints it.

#[expect(clippy::unreadable_literal, reason = "colours are written as 0xrrggbb")]
mod paint;
#[expect(clippy::unreadable_literal, reason = "colours are written as 0xrrggbb")]
mod palette;
#[cfg(test)]
mod tests;
mod weave;

/// A garment in words; an empty word means unknown.
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

/// Draws the garment as SVG.
pub fn garment(look: &Look<'_>) -> String {
    let [kind, colour, pattern, material, gender] =
        [look.kind, look.colour, look.pattern, look.material, look.gender].map(str::to_ascii_lowercase);
    let look = Look { kind: &kind, colour: &colour, pattern: &pattern, material: &material, gender: &gender };
    paint::paint(find_drawing(look.kind, look.gender), &look)
}

macro_rules! drawings {
    ($($name:literal)+) => { [$(($name, include_str!(concat!("svg/", $name, ".svg")))),+] };
}

/// By name, most of which are those of types.
const DRAWINGS: [(&str, &str); 47] = drawings![
    "t-shirt-fitted" "t-shirt" "top" "shirt" "blouse" "polo" "sweater" "cardigan" "hoodie" "waistcoat"
    "blazer" "bomber-jacket" "denim-jacket" "leather-jacket" "coat" "trench-coat" "parka" "rain-jacket"
    "dress" "jumpsuit" "jeans" "trousers" "chinos" "shorts" "leggings" "tights" "skirt" "sneaker"
    "boot-heeled" "boot-laced" "loafer" "lace-up" "heel" "ballerina" "sandal" "bag" "backpack" "belt" "scarf"
    "hat" "cap" "beanie" "sunglasses" "watch" "jewellery-mens" "jewellery" "hanger"
];

/// The drawing of this type, else of the type in its last word (`rain-boot` is a boot), else a hanger.
fn find_drawing(kind: &str, gender: &str) -> &'static str {
    let last_word = kind.rsplit(['-', ' ', '_']).next().unwrap_or_default();
    let drawing =
        drawing(kind, gender).or_else(|| drawing(last_word, gender)).or_else(|| drawing("hanger", gender));
    drawing.expect("there is a hanger")
}

fn drawing(kind: &str, gender: &str) -> Option<&'static str> {
    let name = match (kind, gender) {
        ("t-shirt", "women") => "t-shirt-fitted",
        ("boot", "women") => "boot-heeled",
        ("boot", _) => "boot-laced",
        ("jewellery", "men") => "jewellery-mens",
        ("jacket", _) => "bomber-jacket",
        ("raincoat", _) => "rain-jacket",
        ("shoe", _) => "sneaker",
        ("handbag", _) => "bag",
        _ => kind,
    };
    DRAWINGS.iter().find(|(other, _)| *other == name).map(|(_, drawing)| *drawing)
}
