//! Dresses and jumpsuits.

use super::drawing::{
    Garment,
    Paint::{Button, Cloth, Cord, Deep, Fold, Light, Plain, Seam, Sheen, Stitch},
    folded, one, pair,
};

pub(super) fn of(kind: &str) -> Option<&'static Garment> {
    Some(match kind {
        "dress" => &DRESS,
        "jumpsuit" => &JUMPSUIT,
        _ => return None,
    })
}

const DRESS: Garment = Garment::woven(&[
    pair(Cloth, "M76 26C66 28 60 34 56 44L46 64C52 72 60 76 70 76L72 56Z"),
    pair(Fold, "M48 66C54 72 60 74 68 74L62 56C58 62 54 66 48 66Z"),
    folded(Deep, "M100 32C94 32 89 30 85 24C86 42 92 54 100 60"),
    folded(Cloth, "M100 62C90 54 84 42 83 23L76 26C71 40 70 56 71 70C74 82 76 92 77 104L100 106"),
    pair(Seam, "M88 74C86 86 86 96 87 104"),
    folded(Cloth, "M100 104L77 103C70 136 54 178 40 214C58 224 80 227 100 227"),
    pair(
        Fold,
        "M84 106C80 144 72 186 60 220L54 218C66 184 78 144 84 106ZM97 106C97 146 96 190 92 226L86 226C92 190 96 146 97 106Z",
    ),
    one(Fold, "M123 106C130 136 146 178 160 214L146 219C136 180 126 142 121 106Z"),
    one(Sheen, "M76 124C70 150 62 176 54 198"),
    folded(Plain, "M100 100L76 99L76 106L100 108"),
    pair(Stitch, "M43 209C60 219 80 222 100 222"),
]);

const JUMPSUIT: Garment = Garment::woven(&[
    folded(Deep, "M100 30C92 30 86 28 80 24C84 44 92 54 100 62"),
    folded(Cloth, "M100 62C88 52 80 38 78 16L67 19C68 36 66 48 58 56C63 70 67 82 69 94L100 96"),
    pair(Seam, "M83 66C82 78 82 86 83 93"),
    one(Seam, "M100 62L100 95"),
    folded(Cloth, "M100 94L69 93C61 126 54 180 50 230C63 233 76 233 88 230C92 192 96 156 100 134"),
    pair(
        Fold,
        "M80 96C76 140 71 190 68 231L60 231C64 190 71 140 80 96ZM100 134C96 156 92 192 88 230L82 231C86 192 92 156 100 134Z",
    ),
    one(Fold, "M131 94C139 126 146 180 150 230L141 231C138 184 133 134 128 96Z"),
    one(Light, "M66 122C62 152 58 186 56 214L60 215C63 186 67 152 72 122Z"),
    pair(Seam, "M76 101C77 113 73 122 66 128"),
    folded(Plain, "M100 91L68 90L68 99L100 101"),
    one(Plain, "M96 89L104 89L106 102L94 102Z"),
    one(Cord, "M98 101C96 112 93 122 89 130M102 101C104 114 106 124 109 134"),
    one(Button, "M100 72M100 83"),
]);
