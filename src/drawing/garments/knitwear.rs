//! Sweaters, cardigans, hoodies and waistcoats.

use super::drawing::{
    Garment,
    Paint::{Button, Cloth, Cord, Deep, Dot, Fold, Light, Seam, Shade, Stitch},
    Part, folded, one, pair,
};

pub(super) fn of(kind: &str) -> Option<&'static Garment> {
    Some(match kind {
        "sweater" => &SWEATER,
        "cardigan" => &CARDIGAN,
        "hoodie" => &HOODIE,
        "waistcoat" => &WAISTCOAT,
        _ => return None,
    })
}

const SLEEVE: Part = pair(Cloth, "M66 50C53 54 46 62 42 78L20 172L44 178L63 110Z");
const CUFF: Part = pair(Shade, "M20 172C30 172 37 174 44 178L41 194L20 189Z");
const CUFF_RIBS: Part = pair(Seam, "M25 175L24 189M31 176L29 190M37 178L35 191");
const HEM: Part = folded(Shade, "M100 192C86 192 72 191 60 188L62 206C74 208 87 209 100 209");
const HEM_RIBS: Part =
    pair(Seam, "M66 192L67 205M72 193L73 206M78 194L79 206M84 194L84 207M90 195L90 207M96 195L96 207");
const SHADOW: Part = one(Fold, "M139 104C140 135 141 164 141 187L128 190C133 160 136 132 139 104Z");

const SWEATER: Garment = Garment::knitted(&[
    SLEEVE,
    CUFF,
    CUFF_RIBS,
    folded(Deep, "M100 50C92 50 86 47 81 42C84 55 91 62 100 62"),
    folded(
        Cloth,
        "M100 62C91 62 84 55 80 44L66 50C61 66 60 84 62 106C60 136 59 164 60 190C74 193 87 194 100 194",
    ),
    HEM,
    HEM_RIBS,
    SHADOW,
    folded(Shade, "M100 61C91 61 84 54 81 41L73 46C76 62 86 71 100 71"),
    pair(Seam, "M78.5 48L75 51M82 56L78 59.5M87 62L84 66M94 65.5L92.5 70"),
]);

const CARDIGAN: Garment = Garment::knitted(&[
    SLEEVE,
    CUFF,
    CUFF_RIBS,
    folded(Deep, "M100 50C92 50 86 47 81 42C82 70 90 96 100 112"),
    folded(
        Cloth,
        "M100 114C88 96 81 70 80 43L66 50C61 66 60 84 62 106C60 136 59 164 60 190C74 193 87 194 100 194",
    ),
    HEM,
    HEM_RIBS,
    SHADOW,
    pair(Seam, "M68 158L86 158L86 184M68 158L68 184M68 162L86 162"),
    one(
        Shade,
        "M81 41L74 45C76 72 83 98 96 117L96 209L104 209L104 117C117 98 124 72 126 45L119 41C118 70 110 94 100 110C90 94 82 70 81 41Z",
    ),
    one(Button, "M100 122M100 140M100 158M100 176M100 198"),
]);

const HOODIE: Garment = Garment::knitted(&[
    SLEEVE,
    CUFF,
    CUFF_RIBS,
    folded(Cloth, "M100 20C80 20 66 32 66 54L70 66C80 72 90 74 100 74"),
    folded(Deep, "M100 30C88 30 78 38 78 52C79 66 86 80 100 90"),
    pair(Stitch, "M74 60C71 42 80 26 100 25"),
    folded(
        Cloth,
        "M100 84C88 80 76 70 70 58L64 52C60 68 60 84 62 106C60 136 59 164 60 190C74 193 87 194 100 194",
    ),
    HEM,
    HEM_RIBS,
    SHADOW,
    pair(Seam, "M100 140L80 140C76 152 70 160 64 164L65 189M100 189L65 189"),
    pair(Stitch, "M83 143C79 153 74 160 67 165"),
    pair(Seam, "M70 58C76 72 88 84 100 89"),
    pair(Dot, "M90 81"),
    pair(Cord, "M90 81C89 92 91 102 89 116"),
    one(Light, "M70 112C69 130 68 140 68 152L73 148C74 134 76 124 77 112Z"),
]);

const WAISTCOAT: Garment = Garment::woven(&[
    folded(Deep, "M100 46C90 46 84 44 80 38L66 46C68 90 84 130 100 140"),
    folded(Cloth, "M100 126C88 108 78 76 78 36L62 44C66 66 66 86 52 104C56 130 56 156 52 184L84 210L100 190"),
    pair(Seam, "M82 39C84 76 91 104 100 118M66 46C70 68 70 88 57 106"),
    one(Seam, "M104 124L104 194"),
    one(Button, "M98 134M98 150M98 166M98 182"),
    pair(Shade, "M62 158L84 162L84 168L62 164Z"),
    pair(Shade, "M66 110L80 112L80 117L66 115Z"),
    pair(Seam, "M76 120C75 140 75 150 77 160"),
    one(Fold, "M148 104C144 130 144 156 148 184L134 195C138 164 138 134 148 104Z"),
]);
