//! Jeans, trousers, chinos, shorts, leggings, tights and skirts.

use super::drawing::{
    Garment,
    Paint::{Button, Cloth, Deep, Fold, Light, Plain, Seam, Shade, Sheen, Sheer, Stitch},
    Part, folded, one, pair,
};

pub(super) fn of(kind: &str) -> Option<&'static Garment> {
    Some(match kind {
        "jeans" => &JEANS,
        "trousers" => &TROUSERS,
        "chinos" => &CHINOS,
        "shorts" => &SHORTS,
        "leggings" => &LEGGINGS,
        "tights" => &TIGHTS,
        "skirt" => &SKIRT,
        _ => return None,
    })
}

/// The waist's back, seen over the front.
const WAIST_BACK: Part = folded(Deep, "M100 18C88 18 76 17 66 15L65 26C77 29 88 30 100 30");

const JEANS: Garment = Garment::woven(&[
    WAIST_BACK,
    folded(
        Cloth,
        "M100 27C88 27 76 26 65 23C60 42 57 60 56 78C56 130 58 180 61 226C70 229 80 229 89 227C91 180 95 130 100 90",
    ),
    folded(Plain, "M100 25C88 25 76 24 66 20L63 31C75 35 88 36 100 36"),
    pair(Plain, "M74 21L79 22L78 37L73 36ZM98 25L98 38L93 38L93 25Z"),
    pair(Stitch, "M60 48C68 56 80 54 84 38M60 44C66 52 78 51 81 37"),
    pair(Button, "M62 47M83 40"),
    one(Seam, "M100 36L100 88"),
    one(Stitch, "M104 38L104 66C104 74 102 78 100 80M107 38L107 68C107 78 104 84 100 87"),
    one(Button, "M100 31"),
    pair(Stitch, "M60 74C60 130 62 180 64 226M95 100C90 140 87 180 86 226"),
    pair(Stitch, "M61 221C70 224 80 224 89 222"),
    pair(Light, "M70 70C68 98 69 124 73 146C80 124 82 98 80 70Z"),
    pair(
        Fold,
        "M86 84L99 92M88 94L97 98C92 104 87 104 82 102ZM66 150C74 154 82 154 90 150C84 160 72 160 66 150Z",
    ),
]);

const TROUSERS: Garment = Garment::woven(&[
    WAIST_BACK,
    folded(
        Cloth,
        "M100 27C88 27 76 26 65 23C57 44 51 66 50 88C47 134 46 180 46 226C60 230 74 230 87 227C90 180 95 134 100 94",
    ),
    folded(Cloth, "M100 25C88 25 76 24 66 20L64 30C76 34 88 35 100 35"),
    one(Seam, "M100 35L100 92M106 36C107 60 106 74 100 84"),
    pair(Seam, "M80 34C76 60 72 120 67 228M88 35C87 46 85 54 82 62"),
    pair(Seam, "M70 33C68 44 64 54 57 62"),
    pair(Fold, "M80 36C76 70 72 130 68 228L58 229C64 150 70 90 80 36Z"),
    pair(Fold, "M100 94C95 134 90 180 87 227L80 229C84 180 90 134 100 94Z"),
    one(Plain, "M96 25L108 25L108 35L96 35Z"),
]);

const CHINOS: Garment = Garment::woven(&[
    WAIST_BACK,
    folded(
        Cloth,
        "M100 27C88 27 76 26 65 23C59 42 55 62 55 82C56 128 59 172 62 212L90 212C92 172 95 130 100 92",
    ),
    folded(Cloth, "M100 25C88 25 76 24 66 20L63 31C75 35 88 36 100 36"),
    pair(Plain, "M75 21L79 22L78 37L74 36Z"),
    one(Seam, "M100 36L100 90"),
    one(Stitch, "M107 37L107 64C107 74 104 80 100 82"),
    one(Button, "M101 31"),
    pair(Seam, "M74 36C72 48 66 58 57 66"),
    pair(Stitch, "M77 37C75 50 69 60 58 69"),
    pair(Fold, "M100 92C95 130 92 172 90 212L82 212C85 172 90 130 100 92Z"),
    pair(Light, "M68 76C66 104 68 150 71 200L76 200C74 150 74 104 76 76Z"),
    pair(Shade, "M60 210L92 210L91 224L61 224Z"),
    pair(Seam, "M61 217L91.5 217"),
]);

const SHORTS: Garment = Garment::woven(&[
    folded(Deep, "M100 60C86 60 74 59 62 57L61 68C74 71 87 72 100 72"),
    folded(Cloth, "M100 69C86 69 74 68 61 65C52 94 44 130 40 170C56 177 74 179 92 177C94 156 97 138 100 124"),
    folded(Cloth, "M100 67C86 67 74 66 62 62L58 75C72 79 86 80 100 80"),
    pair(Seam, "M72 66L71 78"),
    one(Seam, "M100 80L100 122"),
    one(Stitch, "M108 81L108 100C108 108 105 113 100 116"),
    one(Button, "M101 73.5"),
    pair(Seam, "M70 79C68 92 60 102 50 108"),
    pair(Stitch, "M73 79C71 94 63 105 50 111.5M41 164C57 171 75 173 92 171"),
    pair(Fold, "M100 124C97 138 94 156 92 177L82 178C86 156 92 140 100 124Z"),
    pair(Light, "M62 112C58 130 55 146 54 162L61 163C62 146 64 130 69 112Z"),
]);

const LEGGINGS: Garment = Garment::knitted(&[
    folded(
        Cloth,
        "M100 40C89 40 78 39 69 38C63 56 60 72 60 90C61 122 68 146 69 168C70 190 72 208 74 228C79 230 84 230 88 229C91 196 95 132 100 94",
    ),
    folded(Shade, "M100 20C90 20 80 19 71 17C69 26 68 34 67 42C78 46 89 47 100 47"),
    pair(Stitch, "M68 37C78 41 89 42 100 42"),
    one(Seam, "M100 47L100 94"),
    pair(Fold, "M100 94C95 132 91 196 88 229L83 230C85 190 90 130 100 94Z"),
    pair(Light, "M70 62C66 94 72 126 75 160L79 160C77 126 74 94 77 62Z"),
    pair(Stitch, "M74 223C79 225 84 225 88.5 224"),
    pair(Seam, "M64 70C68 100 76 150 78 228"),
]);

const TIGHTS: Garment = Garment::knitted(&[
    folded(
        Sheer,
        "M100 26C89 26 79 25 71 24C66 44 63 60 64 78C66 110 73 132 73 152C73 172 77 188 79 204C76 216 68 222 60 226C58 231 62 233 68 233L88 232C92 228 93 222 92 214C91 170 96 124 100 84",
    ),
    folded(Plain, "M100 40C90 40 78 39 68 36L64 64C76 72 90 80 100 94"),
    folded(Shade, "M100 16C90 16 80 15 73 13L70 27C80 30 90 31 100 31"),
    one(Seam, "M100 31L100 92"),
    pair(Light, "M72 90C76 120 79 148 82 186L86 186C84 148 81 118 79 92Z"),
    pair(Fold, "M79 204C76 216 68 222 60 226C58 231 62 233 68 233L74 233C70 226 80 216 79 204Z"),
]);

const SKIRT: Garment = Garment::woven(&[
    folded(Deep, "M100 44C90 44 80 43 73 41L72 52C80 55 90 56 100 56"),
    folded(Cloth, "M100 60L71 58C64 100 50 148 36 192C56 203 78 207 100 207"),
    pair(
        Fold,
        "M80 62C76 104 68 152 56 200L48 197C62 150 74 104 80 62ZM94 63C94 110 92 160 86 206L78 205C88 160 92 110 94 63Z",
    ),
    one(Fold, "M129 60C136 100 150 148 164 192L150 199C140 152 132 104 126 62Z"),
    one(Sheen, "M73 84C66 116 58 144 50 172"),
    folded(Cloth, "M100 53C90 53 80 52 73 49L70 63C80 67 90 68 100 68"),
    one(Button, "M122 59"),
    pair(Stitch, "M38 187C57 198 78 202 100 202"),
]);
