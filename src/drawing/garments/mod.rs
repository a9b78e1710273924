//! Drawn garments, for articles whose shop sends no photo.
//!
//! A few words come in ([`Look`]), a complete SVG on a canvas of 200 by 240 goes out. Unknown words still give a
//! picture: undyed cloth, or a hanger. Must not know HTTP, articles and their ids, or models.
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

macro_rules! svg {
    ($name:literal) => {
        include_str!(concat!("svg/", $name, ".svg"))
    };
}

/// The drawing of this type, else of the type in its last word (`rain-boot` is a boot), else a hanger.
fn find_drawing(kind: &str, gender: &str) -> &'static str {
    let last_word = kind.rsplit(['-', ' ', '_']).next().unwrap_or_default();
    drawing(kind, gender).or_else(|| drawing(last_word, gender)).unwrap_or(svg!("hanger"))
}

fn drawing(kind: &str, gender: &str) -> Option<&'static str> {
    Some(match (kind, gender) {
        ("t-shirt", "women") => svg!("t-shirt-fitted"),
        ("t-shirt", _) => svg!("t-shirt"),
        ("top", _) => svg!("top"),
        ("shirt", _) => svg!("shirt"),
        ("blouse", _) => svg!("blouse"),
        ("polo", _) => svg!("polo"),

        ("sweater", _) => svg!("sweater"),
        ("cardigan", _) => svg!("cardigan"),
        ("hoodie", _) => svg!("hoodie"),
        ("waistcoat", _) => svg!("waistcoat"),

        ("blazer", _) => svg!("blazer"),
        ("bomber-jacket" | "jacket", _) => svg!("bomber-jacket"),
        ("denim-jacket", _) => svg!("denim-jacket"),
        ("leather-jacket", _) => svg!("leather-jacket"),

        ("coat", _) => svg!("coat"),
        ("trench-coat", _) => svg!("trench-coat"),
        ("parka", _) => svg!("parka"),
        ("rain-jacket" | "raincoat", _) => svg!("rain-jacket"),

        ("dress", _) => svg!("dress"),
        ("jumpsuit", _) => svg!("jumpsuit"),

        ("jeans", _) => svg!("jeans"),
        ("trousers", _) => svg!("trousers"),
        ("chinos", _) => svg!("chinos"),
        ("shorts", _) => svg!("shorts"),
        ("leggings", _) => svg!("leggings"),
        ("tights", _) => svg!("tights"),
        ("skirt", _) => svg!("skirt"),

        ("sneaker" | "shoe", _) => svg!("sneaker"),
        ("boot", "women") => svg!("boot-heeled"),
        ("boot", _) => svg!("boot-laced"),
        ("loafer", _) => svg!("loafer"),
        ("lace-up", _) => svg!("lace-up"),
        ("heel", _) => svg!("heel"),
        ("ballerina", _) => svg!("ballerina"),
        ("sandal", _) => svg!("sandal"),

        ("bag" | "handbag", _) => svg!("bag"),
        ("backpack", _) => svg!("backpack"),
        ("belt", _) => svg!("belt"),

        ("scarf", _) => svg!("scarf"),
        ("hat", _) => svg!("hat"),
        ("cap", _) => svg!("cap"),
        ("beanie", _) => svg!("beanie"),
        ("sunglasses", _) => svg!("sunglasses"),
        ("watch", _) => svg!("watch"),
        ("jewellery", "men") => svg!("jewellery-mens"),
        ("jewellery", _) => svg!("jewellery"),
        _ => return None,
    })
}
