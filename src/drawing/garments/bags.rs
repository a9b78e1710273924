//! Bags, backpacks and belts.

use super::drawing::{
    Garment,
    Paint::{Cloth, Cord, Deep, Dot, Fold, Light, Metal, Plain, Seam, Shade, Sheen, Stitch, Strap, Zip},
    folded, one, pair,
};

pub(super) fn of(kind: &str) -> Option<&'static Garment> {
    Some(match kind {
        "bag" | "handbag" => &BAG,
        "backpack" => &BACKPACK,
        "belt" => &BELT,
        _ => return None,
    })
}

const BAG: Garment = Garment::woven(&[
    one(Strap, "M66 96C66 30 134 30 134 96"),
    folded(Cloth, "M100 84L48 84C40 84 37 90 35 98L24 190C23 202 28 208 38 208L100 208"),
    one(Fold, "M165 98L176 190C177 202 172 208 162 208L148 208C156 170 156 130 152 84C160 84 163 90 165 98Z"),
    pair(Stitch, "M100 202L39 202C32 202 29 198 30 190L34 154"),
    folded(Cloth, "M100 84L48 84C41 84 38 88 36 96L32 128C34 142 48 150 66 152L100 153"),
    pair(Stitch, "M100 147.5L67 147C50 144 39 138 37.5 127"),
    one(Sheen, "M46 94C44 106 42 116 42 126M44 160C42 172 41 182 42 192"),
    folded(Metal, "M100 142L92 142L90 164L100 166"),
    one(Dot, "M100 154"),
    pair(Metal, "M61 88L71 88L71 104L61 104Z"),
]);

const BACKPACK: Garment = Garment::woven(&[
    pair(Cord, "M46 96C30 120 28 170 42 202"),
    one(Strap, "M82 38C82 14 118 14 118 38"),
    folded(Cloth, "M100 34C70 34 48 44 46 78L44 204C44 212 50 217 58 217L100 218"),
    one(Fold, "M154 78L156 204C156 212 150 217 142 217L134 217C144 170 144 110 138 46C150 54 153 64 154 78Z"),
    pair(Zip, "M54 118C54 72 66 52 100 52"),
    one(Light, "M54 84C56 66 64 54 76 48C66 58 60 74 60 100L54 110Z"),
    folded(Cloth, "M100 128L66 128C58 128 55 132 55 140L54 198C54 206 58 209 66 209L100 209"),
    pair(Zip, "M62 142L100 142"),
    pair(Stitch, "M100 204L66 204C61 204 59 202 59 197L60 150"),
    one(Metal, "M66 142L72 142L73 154L65 154Z"),
    one(Shade, "M88 78L112 78L112 98L88 98Z"),
    one(Seam, "M92 88L108 88"),
    pair(Plain, "M45 168L38 172L38 210L46 214Z"),
    one(Sheen, "M52 128C51 150 51 176 52 196"),
]);

const BELT: Garment = Garment::woven(&[
    folded(Deep, "M100 76C54 76 22 90 20 112C24 134 58 146 100 146"),
    folded(Shade, "M100 70C52 70 20 86 20 110L22 116C28 98 60 88 100 88"),
    folded(Cloth, "M100 134C58 134 26 124 20 108L20 136C26 156 58 166 100 166"),
    pair(Stitch, "M22 117C32 130 62 138 100 138M22 138C32 152 62 161 100 161"),
    one(Sheen, "M30 130C40 140 56 145 74 147"),
    one(Seam, "M70 135L70 166"),
    one(
        Metal,
        "M76 128C96 130 112 130 126 127L128 173C112 176 94 176 76 173ZM83 135L83 167C96 169 108 169 121 167L119.5 134C108 136 96 136 83 135Z",
    ),
    one(Metal, "M78 148C92 150 110 150 124 147L124 151.5C110 154 92 154 78 152Z"),
    one(Dot, "M136 149M147 146M157 142"),
]);
