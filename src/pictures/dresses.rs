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
    folded(Deep, "M100 34C92 34 86 32 80 28C84 50 92 62 100 70"),
    folded(Cloth, "M100 72C88 60 80 44 78 22L68 25C69 44 66 58 58 68C64 82 67 96 68 112L100 114"),
    pair(Seam, "M83 76C82 90 82 100 83 110"),
    one(Seam, "M100 72L100 112"),
    folded(Cloth, "M100 112L68 111C60 146 52 190 46 228C60 231 76 231 90 228C92 196 96 172 100 152"),
    pair(Fold, "M78 114C74 150 70 190 68 229L60 230C64 190 70 150 78 114Z"),
    one(Fold, "M132 114C140 146 148 190 154 228L144 230C140 190 134 150 132 114Z"),
    one(Light, "M64 136C60 164 56 190 54 216L58 216C62 190 66 162 70 136Z"),
    pair(Seam, "M74 120C76 132 72 142 66 148"),
    folded(Plain, "M100 108L67 107L67 117L100 119"),
    one(Plain, "M96 106L104 106L106 120L94 120Z"),
    one(Cord, "M98 119C96 130 94 138 90 146M102 119C104 132 105 140 108 150"),
    one(Button, "M100 84M100 97"),
]);
