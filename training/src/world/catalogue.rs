//! The shop's catalogue: every article with its attributes, and the shelves on which the stylist
//! finds those of one type and class together.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    articles::draw_article,
    harmony::Class,
    lexicon::{ArticleType, Colour, Fit, Material, Pattern, Style, Wearer, Word},
};

/// An article as the stylist sees it.
#[derive(Debug, Clone)]
pub(crate) struct ArticleTraits {
    pub(crate) kind: ArticleType,
    pub(crate) brand: u8,
    pub(crate) colour: Colour,
    pub(crate) pattern: Pattern,
    pub(crate) material: Material,
    pub(crate) style: Style,
    pub(crate) fit: Option<Fit>,
    pub(crate) wearer: Wearer,
    /// First and last size on its scale; accessories have none.
    pub(crate) sizes: Option<(u8, u8)>,
    pub(crate) price_cents: u32,
    /// The logarithm of its price over its type's median: what price bands speak of.
    pub(crate) price_level: f64,
    /// How sought after it is, before anybody's taste: `-ln(U + head)`, so that weights `exp(θ · this)`
    /// follow Zipf's law as Mandelbrot has it, with exponent θ. No attribute shows it; only outfits do.
    pub(crate) ln_popularity: f64,
    pub(crate) in_stock: bool,
}

impl ArticleTraits {
    pub(crate) fn class(&self) -> Class {
        Class::new(self.colour, self.style, self.pattern.is_bold())
    }
}

/// Articles of one type and class, side by side on the shelf.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) class: Class,
    /// Places on the shelf.
    pub(crate) places: Range<usize>,
}

/// All articles, shelved by type and class. A *place* is an article's position on the shelf, its
/// *number* its position in the file; the file is in no order that tells anything.
#[derive(Debug)]
pub(crate) struct Catalogue {
    shelf: Vec<ArticleTraits>,
    number_of_place: Vec<u32>,
    place_of_number: Vec<u32>,
    cells: Vec<Cell>,
    cells_of_type: Vec<Range<usize>>,
}

impl Catalogue {
    /// `count` articles, at least one of each type.
    pub(crate) fn new(seed: u64, count: usize) -> Self {
        let articles: Vec<ArticleTraits> =
            (0..count).into_par_iter().map(|number| draw_article(seed, number)).collect();
        Self::shelve(&articles)
    }

    fn shelve(articles: &[ArticleTraits]) -> Self {
        let mut order: Vec<usize> = (0..articles.len()).collect();
        order.sort_by_key(|&number| (articles[number].kind, articles[number].class(), number));
        let short = |n: usize| u32::try_from(n).expect("a catalogue of four billion articles is a bug");
        let mut place_of_number = vec![0; articles.len()];
        for (place, &number) in order.iter().enumerate() {
            place_of_number[number] = short(place);
        }
        let shelf: Vec<ArticleTraits> = order.iter().map(|&number| articles[number].clone()).collect();
        let mut cells: Vec<Cell> = Vec::new();
        let mut cells_of_type = Vec::with_capacity(ArticleType::COUNT);
        let mut place = 0;
        for kind in ArticleType::ALL {
            let first = cells.len();
            while place < shelf.len() && shelf[place].kind == *kind {
                let class = shelf[place].class();
                let start = place;
                while place < shelf.len() && shelf[place].kind == *kind && shelf[place].class() == class {
                    place += 1;
                }
                cells.push(Cell { class, places: start..place });
            }
            cells_of_type.push(first..cells.len());
        }
        let number_of_place = order.into_iter().map(short).collect();
        Self { shelf, number_of_place, place_of_number, cells, cells_of_type }
    }

    pub(crate) fn len(&self) -> usize {
        self.shelf.len()
    }

    pub(crate) fn shelf(&self) -> &[ArticleTraits] {
        &self.shelf
    }

    pub(crate) fn at(&self, place: usize) -> &ArticleTraits {
        &self.shelf[place]
    }

    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Which of [`Catalogue::cells`] hold this type.
    pub(crate) fn cells_of(&self, kind: ArticleType) -> Range<usize> {
        self.cells_of_type[kind.index()].clone()
    }

    pub(crate) fn number_of(&self, place: usize) -> u32 {
        self.number_of_place[place]
    }

    pub(crate) fn place_of(&self, number: usize) -> usize {
        self.place_of_number[number] as usize
    }

    pub(crate) fn numbered(&self, number: usize) -> &ArticleTraits {
        self.at(self.place_of(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shelves_hold_every_article_once_under_its_type_and_class() {
        let catalogue = Catalogue::new(3, 500);
        let mut seen = vec![false; 500];
        for kind in ArticleType::ALL {
            assert!(!catalogue.cells_of(*kind).is_empty(), "{} has an article", kind.word());
            for cell in &catalogue.cells()[catalogue.cells_of(*kind)] {
                for place in cell.places.clone() {
                    let article = catalogue.at(place);
                    assert_eq!((article.kind, article.class()), (*kind, cell.class));
                    let number = catalogue.number_of(place) as usize;
                    assert_eq!(catalogue.place_of(number), place);
                    assert!(!std::mem::replace(&mut seen[number], true));
                }
            }
        }
        assert!(seen.iter().all(|seen| *seen));
    }

    #[test]
    fn articles_are_made_of_what_their_type_is_made_of() {
        let catalogue = Catalogue::new(1, 3000);
        for article in catalogue.shelf() {
            let traits = article.kind.traits();
            assert!(traits.materials.iter().any(|(material, _)| *material == article.material));
            assert_eq!(article.fit.is_some(), traits.family.is_cut());
            assert_eq!(article.sizes.is_some(), traits.family.size_scale().is_some());
            assert!(article.sizes.is_none_or(|(first, last)| first < last));
            assert!((395..500_000).contains(&article.price_cents), "{article:?}");
        }
    }
}
