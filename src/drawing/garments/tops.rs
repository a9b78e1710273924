//! T-shirts, tops, shirts, blouses and polos.

use super::drawing::{
    Garment,
    Paint::{Button, Cloth, Deep, Fold, Light, Seam, Shade, Sheen, Stitch},
    Part, folded, one, pair,
};

pub(super) fn of(kind: &str, gender: &str) -> Option<&'static Garment> {
    Some(match (kind, gender) {
        ("t-shirt", "women") => &FITTED_T_SHIRT,
        ("t-shirt", _) => &T_SHIRT,
        ("top", _) => &TOP,
        ("shirt", _) => &SHIRT,
        ("blouse", _) => &BLOUSE,
        ("polo", _) => &POLO,
        _ => return None,
    })
}

/// The shadow on the right side of a body that is 86 wide.
const SHADOW: Part = one(Fold, "M139 98C139 135 141 170 142 204L129 206C134 170 136 132 139 98Z");
const SHORT_SLEEVE: Part = pair(Cloth, "M66 49C54 53 46 59 41 69L18 110L46 124L63 98Z");
const SHORT_SLEEVE_HEM: Part = pair(Stitch, "M20.5 105.5L48.5 119.5");
const INSIDE: Part = folded(Deep, "M100 51C92 51 86 48 81 43C84 56 91 63 100 63");

const T_SHIRT: Garment = Garment::knitted(&[
    SHORT_SLEEVE,
    SHORT_SLEEVE_HEM,
    INSIDE,
    folded(
        Cloth,
        "M100 64C91 64 84 57 81 43L66 49C61 66 60 84 62 100C61 135 60 170 58 204C72 207 86 208 100 208",
    ),
    pair(Seam, "M100 69.5C88 69.5 79 62 75.5 45"),
    pair(Stitch, "M59 198C72 201 86 202 100 202"),
    SHADOW,
    one(Light, "M70 104C68 132 67 160 66 188L72 188C73 160 74 130 76 108Z"),
]);

const FITTED_T_SHIRT: Garment = Garment::knitted(&[
    pair(Cloth, "M69 48C58 51 50 57 46 67L30 102L53 113L65 94Z"),
    pair(Stitch, "M32 97.5L55 108.5"),
    folded(Deep, "M100 56C90 56 83 52 77 44C80 64 88 74 100 74"),
    folded(
        Cloth,
        "M100 75C87 75 79 64 77 44L69 48C63 64 62 82 64 96C69 118 70 134 67 152C64 170 62 186 61 202C74 205 87 206 100 206",
    ),
    pair(Seam, "M100 79.5C85 79.5 76 68 73 46"),
    pair(Stitch, "M61.5 197C74 200 87 201 100 201"),
    one(
        Fold,
        "M136 96C131 118 130 134 133 152C136 170 138 186 139 202L126 204C127 182 122 160 123 140C125 124 131 112 136 96Z",
    ),
    one(Light, "M74 104C76 122 76 138 74 154L79 154C81 138 82 122 80 108Z"),
]);

const TOP: Garment = Garment::woven(&[
    folded(Deep, "M100 68C92 68 85 64 79 54C82 78 90 90 100 90"),
    folded(
        Cloth,
        "M100 91C88 91 80 76 78 40L71 40C71 68 67 84 56 98C60 122 60 140 55 160C52 176 50 190 48 204C66 209 84 210 100 210",
    ),
    pair(Stitch, "M100 95.5C85 95.5 76 80 74.5 46"),
    pair(Seam, "M49 198C66 203 84 204 100 204"),
    pair(Seam, "M59 108C66 114 72 116 78 116"),
    one(
        Fold,
        "M143 98C140 122 140 140 145 160C148 176 150 190 152 204L137 207C137 180 128 160 129 138C131 122 137 110 143 98Z",
    ),
    one(Fold, "M86 208C88 190 91 172 90 152C95 172 94 192 93 209Z"),
    one(Sheen, "M70 112C71 140 66 168 63 192"),
]);

const SHIRT: Garment = Garment::woven(&[
    pair(Cloth, "M66 47C54 51 47 58 44 72L20 184L42 190L63 106Z"),
    pair(Seam, "M22 172L45 178"),
    pair(Button, "M38 183"),
    folded(Deep, "M100 35L86 36L86 46L100 64"),
    folded(
        Cloth,
        "M100 60L85 42L66 47C61 66 60 84 62 102C61 134 60 160 58 188C60 202 70 208 82 210C88 211 94 211 100 211",
    ),
    one(Seam, "M94.5 57L94.5 210.5M105.5 57L105.5 210.5"),
    one(Button, "M100 76M100 100M100 124M100 148M100 172M100 196"),
    pair(Seam, "M66 54C71 57 77 58 84 58"),
    one(Seam, "M114 92L134 92L134 110L124 117L114 110ZM114 97L134 97"),
    one(Fold, "M139 102C139 134 140 160 142 188C140 201 132 206 124 209C131 180 134 140 139 102Z"),
    pair(Cloth, "M84 36C88 33 94 34 100 36C93 42 88 48 87 66L72 51C75 44 79 39 84 36Z"),
]);

const BLOUSE: Garment = Garment::woven(&[
    pair(Cloth, "M68 49C55 52 48 62 44 78C37 108 20 138 19 162C22 172 34 178 44 174C55 160 60 134 63 104Z"),
    pair(Shade, "M25 169C31 174 37 175 42 173L43 186L27 184Z"),
    pair(
        Fold,
        "M44 172C42 152 46 132 54 112C52 136 52 158 44 172ZM30 170C28 156 32 142 38 130C36 146 34 160 30 170Z",
    ),
    folded(Deep, "M100 52C93 52 88 49 84 44L86 56L100 74"),
    folded(
        Cloth,
        "M100 74C92 66 87 56 84 43L68 49C62 66 61 84 63 102C66 124 66 140 63 158C60 176 58 190 57 204C72 209 86 210 100 210",
    ),
    one(Seam, "M100 80L100 210M74 70C77 82 77 92 75 102M126 70C123 82 123 92 125 102"),
    one(Button, "M100 118M100 142M100 166M100 190"),
    one(Fold, "M137 102C134 124 134 140 137 158C140 176 142 190 143 204L128 207C130 180 124 160 126 138Z"),
    pair(Cloth, "M98 76C92 96 86 112 78 128L91 132C97 114 101 96 102 78Z"),
    pair(Cloth, "M100 74C92 60 76 56 70 64C67 74 72 86 80 87C88 86 95 80 100 74Z"),
    pair(Seam, "M97 74C90 70 84 70 79 72M96 77C91 79 86 80 82 79"),
    one(Cloth, "M94 68C98 66 102 66 106 68C108 73 108 78 105 82C102 84 98 84 95 82C92 78 92 73 94 68Z"),
]);

const POLO: Garment = Garment::knitted(&[
    SHORT_SLEEVE,
    pair(Shade, "M20.5 105.5L18 110L46 124L48.5 119.5Z"),
    folded(Deep, "M100 39L86 40L86 52L100 70"),
    folded(Cloth, "M100 66L84 42L66 49C61 66 60 84 62 100C61 135 60 170 58 204C72 207 86 208 100 208"),
    one(Seam, "M93 62L93 112L107 112L107 62M93 106L107 106"),
    one(Button, "M100 72M100 86M100 100"),
    pair(Stitch, "M59 198C72 201 86 202 100 202"),
    SHADOW,
    pair(Shade, "M83 38C88 35 94 36 100 40C94 46 90 54 90 68L72 54C74 47 78 42 83 38Z"),
]);
