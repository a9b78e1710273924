//! How well articles go together, by colour, style and pattern.
//!
//! Harmony sees only an article's class (colour, style, bold or not) and is a product of a factor for
//! each, so that sums over all classes stay cheap and the oracle exact.

use super::lexicon::{
    Colour::{
        self, Beige, Black, Blue, Brown, Burgundy, Green, Grey, LightBlue, Navy, Olive, Orange, Pink, Purple,
        Red, White, Yellow,
    },
    Family, Style, Word,
};

/// How strongly articles of two families have to go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closeness {
    /// One of them is small, like a watch.
    Loose = 0,
    Plain = 1,
    /// Belt and shoes.
    Close = 2,
}

impl Closeness {
    pub(crate) const ALL: [Closeness; 3] = [Closeness::Loose, Closeness::Plain, Closeness::Close];

    pub(crate) fn between(a: Family, b: Family) -> Self {
        match (a, b) {
            (Family::Belt, Family::Shoes) | (Family::Shoes, Family::Belt) => Closeness::Close,
            (Family::Bag, Family::Shoes) | (Family::Shoes, Family::Bag) => Closeness::Plain,
            _ if is_small(a) || is_small(b) => Closeness::Loose,
            _ => Closeness::Plain,
        }
    }

    fn strength(self) -> f64 {
        match self {
            Closeness::Loose => 0.7,
            Closeness::Plain => 1.4,
            Closeness::Close => 2.2,
        }
    }
}

fn is_small(family: Family) -> bool {
    use Family as F;
    matches!(
        family,
        F::Hosiery | F::Bag | F::Belt | F::Headwear | F::Scarf | F::Jewellery | F::Watch | F::Eyewear
    )
}

/// The colour, the style and the boldness of an article.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class(u16);

impl Class {
    pub(crate) const COUNT: usize = Colour::COUNT * Style::COUNT * 2;

    pub(crate) fn new(colour: Colour, style: Style, bold: bool) -> Self {
        let index = (colour.index() * Style::COUNT + style.index()) * 2 + usize::from(bold);
        Self(u16::try_from(index).expect("there are 320 classes"))
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    fn parts(self) -> (usize, usize, usize) {
        let index = self.index();
        (index / (Style::COUNT * 2), index / 2 % Style::COUNT, index % 2)
    }
}

/// The factors `exp(strength × score)` of one closeness.
#[derive(Debug)]
struct Factors {
    colours: [[f64; Colour::COUNT]; Colour::COUNT],
    styles: [[f64; Style::COUNT]; Style::COUNT],
    bold: [[f64; 2]; 2],
}

/// How well any two classes go together, as factors of a probability.
#[derive(Debug)]
pub(crate) struct Harmony([Factors; 3]);

impl Harmony {
    pub(crate) fn new() -> Self {
        Self(Closeness::ALL.map(|closeness| {
            let strength = closeness.strength();
            let factor = |score: f64| (strength * score).exp();
            Factors {
                colours: std::array::from_fn(|a| {
                    std::array::from_fn(|b| factor(colour_score(Colour::ALL[a], Colour::ALL[b])))
                }),
                styles: std::array::from_fn(|a| {
                    std::array::from_fn(|b| factor(style_score(Style::ALL[a], Style::ALL[b])))
                }),
                bold: [[1.0, 1.0], [1.0, factor(TWO_BOLD)]],
            }
        }))
    }

    /// The factor of two articles in one outfit.
    pub(crate) fn factor(&self, closeness: Closeness, a: Class, b: Class) -> f64 {
        let factors = &self.0[closeness as usize];
        let ((colour, style, bold), (colour_b, style_b, bold_b)) = (a.parts(), b.parts());
        factors.colours[colour][colour_b] * factors.styles[style][style_b] * factors.bold[bold][bold_b]
    }

    /// The factors of one class with every class.
    pub(crate) fn factors_with(&self, closeness: Closeness, class: Class) -> [f64; Class::COUNT] {
        let factors = &self.0[closeness as usize];
        let (colour, style, bold) = class.parts();
        let mut all = [0.0; Class::COUNT];
        for (row, by_colour) in all.chunks_exact_mut(Style::COUNT * 2).zip(factors.colours[colour]) {
            for (pair, by_style) in row.chunks_exact_mut(2).zip(factors.styles[style]) {
                for (out, by_bold) in pair.iter_mut().zip(factors.bold[bold]) {
                    *out = by_colour * by_style * by_bold;
                }
            }
        }
        all
    }

    /// For each class, the sum over all classes of `weight × factor`. Summing over boldness, style and
    /// colour in turn takes 320 × 28 products instead of 320 × 320.
    pub(crate) fn spread(&self, closeness: Closeness, weights: &[f64; Class::COUNT]) -> [f64; Class::COUNT] {
        const ROW: usize = Style::COUNT * 2;
        let factors = &self.0[closeness as usize];
        let mut bolds = [0.0; Class::COUNT];
        for (pair, out) in weights.chunks_exact(2).zip(bolds.chunks_exact_mut(2)) {
            out[0] = pair[0] * factors.bold[0][0] + pair[1] * factors.bold[1][0];
            out[1] = pair[0] * factors.bold[0][1] + pair[1] * factors.bold[1][1];
        }
        let mut styles = [0.0; Class::COUNT];
        for (row, out) in bolds.chunks_exact(ROW).zip(styles.chunks_exact_mut(ROW)) {
            for (pair, from) in row.chunks_exact(2).zip(&factors.styles) {
                for (pair_out, factor) in out.chunks_exact_mut(2).zip(from) {
                    pair_out[0] += pair[0] * factor;
                    pair_out[1] += pair[1] * factor;
                }
            }
        }
        let mut all = [0.0; Class::COUNT];
        for (row, from) in styles.chunks_exact(ROW).zip(&factors.colours) {
            for (row_out, factor) in all.chunks_exact_mut(ROW).zip(from) {
                for (out, value) in row_out.iter_mut().zip(row) {
                    *out += value * factor;
                }
            }
        }
        all
    }
}

/// Two bold patterns in one outfit.
const TWO_BOLD: f64 = -2.6;

/// Colours that stylists combine, and those they keep apart. [`colour_score`] has a rule for all others.
#[rustfmt::skip]
const COLOUR_PAIRS: &[(Colour, Colour, f64)] = &[
    (Black, White, 0.45), (Black, Grey, 0.40), (Black, Red, 0.25), (Black, Brown, -0.45), (Black, Navy, -0.35),
    (White, Navy, 0.50), (White, Blue, 0.40), (White, LightBlue, 0.40), (White, Beige, 0.30),
    (Grey, Navy, 0.25), (Grey, Pink, 0.30), (Grey, Burgundy, 0.25), (Grey, Brown, -0.30), (Grey, Beige, -0.10),
    (Beige, Brown, 0.55), (Beige, Navy, 0.40), (Beige, Olive, 0.45), (Beige, LightBlue, 0.30), (Beige, Burgundy, 0.25),
    (Brown, Navy, 0.30), (Brown, Olive, 0.35), (Brown, Orange, 0.30), (Brown, Blue, 0.25), (Brown, Burgundy, 0.15),
    (Brown, LightBlue, 0.25), (Brown, Green, 0.20), (Brown, Pink, -0.30), (Brown, Purple, -0.50),
    (Navy, Red, 0.25), (Navy, LightBlue, 0.35), (Navy, Burgundy, 0.30), (Navy, Pink, 0.20), (Navy, Blue, 0.10),
    (Blue, LightBlue, 0.25), (Blue, Yellow, 0.05), (Blue, Red, -0.05), (Blue, Orange, -0.10),
    (Olive, Burgundy, 0.15), (Olive, Orange, 0.20), (Olive, Pink, -0.40), (Olive, Green, -0.10),
    (Green, Red, -0.95), (Green, Burgundy, -0.30), (Green, Orange, -0.60), (Green, Pink, -0.40), (Green, Purple, -0.70),
    (Yellow, Orange, 0.10), (Yellow, Purple, -0.80), (Yellow, Pink, -0.50), (Yellow, Red, -0.60), (Yellow, Burgundy, -0.50),
    (Orange, Red, -0.50), (Orange, Pink, -0.70), (Orange, Purple, -0.90), (Orange, Burgundy, -0.40),
    (Red, Pink, -0.45), (Red, Purple, -0.80), (Red, Burgundy, 0.10), (Pink, Purple, 0.15), (Pink, Burgundy, 0.25),
    (LightBlue, Pink, 0.15), (Burgundy, Purple, -0.10),
];

/// A neutral goes with any colour; two brights clash unless [`COLOUR_PAIRS`] has them.
fn colour_score(a: Colour, b: Colour) -> f64 {
    if a == b {
        return match a {
            Black => 0.55,
            White | Beige | Navy => 0.35,
            Grey => 0.20,
            Brown | Olive | Burgundy | LightBlue => 0.30,
            Blue => 0.0,
            Green | Red | Pink | Purple => 0.25,
            Yellow | Orange => -0.10,
        };
    }
    let named = COLOUR_PAIRS.iter().find(|(x, y, _)| (*x, *y) == (a, b) || (*x, *y) == (b, a));
    let neutral = |colour| matches!(colour, Black | White | Grey | Beige | Brown | Navy);
    named.map_or(if neutral(a) || neutral(b) { 0.10 } else { -0.40 }, |(_, _, score)| *score)
}

#[rustfmt::skip]
const STYLE_PAIRS: [[f64; Style::COUNT]; Style::COUNT] = [
//  cla    cas    spo    str    min    rom    boh    gla    pre    roc
  [ 0.75, -0.10, -0.90, -0.90,  0.40,  0.20, -0.45,  0.25,  0.50, -0.60], // classic
  [-0.10,  0.45,  0.25,  0.30,  0.20,  0.00,  0.20, -0.55,  0.05,  0.15], // casual
  [-0.90,  0.25,  0.90,  0.45, -0.10, -0.95, -0.70, -0.90, -0.30, -0.35], // sporty
  [-0.90,  0.30,  0.45,  0.85, -0.10, -0.70, -0.35, -0.30, -0.60,  0.40], // street
  [ 0.40,  0.20, -0.10, -0.10,  0.60, -0.10, -0.30, -0.10,  0.10, -0.15], // minimal
  [ 0.20,  0.00, -0.95, -0.70, -0.10,  0.75,  0.40,  0.25,  0.05, -0.50], // romantic
  [-0.45,  0.20, -0.70, -0.35, -0.30,  0.40,  0.95, -0.20, -0.45,  0.10], // boho
  [ 0.25, -0.55, -0.90, -0.30, -0.10,  0.25, -0.20,  0.85, -0.30,  0.20], // glamour
  [ 0.50,  0.05, -0.30, -0.60,  0.10,  0.05, -0.45, -0.30,  0.85, -0.75], // preppy
  [-0.60,  0.15, -0.35,  0.40, -0.15, -0.50,  0.10,  0.20, -0.75,  0.95], // rock
];

fn style_score(a: Style, b: Style) -> f64 {
    STYLE_PAIRS[a.index()][b.index()]
}
