//! The stylist: draws a template for a context, then fills its slots one after the other.
//!
//! An article's weight is `exp(u) × harmony with the articles picked before it`; drawing in proportion to
//! weights is the best choice under Gumbel noise. The generator and the oracle both take `exp(u)` and its
//! sums by class from [`Scores`].

use std::ops::Range;

use crate::random::Stream;

use super::{
    catalogue::Catalogue,
    harmony::{Class, Closeness, Harmony},
    lexicon::{ArticleType, Family},
    profile::Context,
    taste::Taste,
    template::{Affinity, Templates},
};

/// The tables that do not depend on the context.
#[derive(Debug)]
pub(crate) struct Stylist {
    pub(crate) harmony: Harmony,
    affinity: Affinity,
}

impl Stylist {
    pub(crate) fn new() -> Self {
        Self { harmony: Harmony::new(), affinity: Affinity::new() }
    }

    pub(crate) fn templates(&self, context: Context<'_>) -> Templates<'_> {
        Templates::new(&self.affinity, context)
    }

    /// Draws an outfit: places on the catalogue's shelf, in the order of their families. `factors` multiply the articles' weights.
    pub(crate) fn draw_outfit(
        &self,
        catalogue: &Catalogue,
        context: Context<'_>,
        factors: Option<&[f64]>,
        stream: &mut Stream,
    ) -> Vec<usize> {
        let types = self.templates(context).draw(stream);
        let taste = Taste::new(context);
        let mut picked: Vec<usize> = Vec::with_capacity(types.len());
        for kind in types {
            let mut scores = Scores::for_type(catalogue, &taste, kind);
            if let Some(factors) = factors {
                scores.multiply(catalogue, factors);
            }
            let earlier: Vec<(Family, Class)> = picked
                .iter()
                .map(|place| (catalogue.at(*place).kind.family(), catalogue.at(*place).class()))
                .collect();
            let cells = catalogue.cells_of_type(kind);
            let weights: Vec<f64> = cells
                .clone()
                .map(|cell| {
                    let class = catalogue.cells()[cell].class;
                    scores.cell(cell) * self.harmony_with(kind.family(), class, &earlier)
                })
                .collect();
            let cell = &catalogue.cells()[cells.start + stream.weighted(&weights)];
            let within: Vec<f64> = cell.places.clone().map(|place| scores.place(place)).collect();
            picked.push(cell.places.start + stream.weighted(&within));
        }
        picked
    }

    /// The factor of a class in a family, given the earlier picks.
    pub(crate) fn harmony_with(&self, family: Family, class: Class, earlier: &[(Family, Class)]) -> f64 {
        earlier
            .iter()
            .map(|(other, theirs)| self.harmony.factor(Closeness::between(family, *other), class, *theirs))
            .product()
    }
}

/// `exp(u)` of articles in one context, and their sums over each cell of the catalogue.
#[derive(Debug)]
pub(crate) struct Scores {
    first_place: usize,
    places: Vec<f64>,
    first_cell: usize,
    cells: Vec<f64>,
}

impl Scores {
    pub(crate) fn for_all(catalogue: &Catalogue, taste: &Taste) -> Self {
        Self::for_cells(catalogue, taste, 0..catalogue.cells().len())
    }

    pub(crate) fn for_type(catalogue: &Catalogue, taste: &Taste, kind: ArticleType) -> Self {
        Self::for_cells(catalogue, taste, catalogue.cells_of_type(kind))
    }

    fn for_cells(catalogue: &Catalogue, taste: &Taste, cells: Range<usize>) -> Self {
        let first_cell = cells.start;
        let cells = &catalogue.cells()[cells];
        let (Some(first), Some(last)) = (cells.first(), cells.last()) else {
            unreachable!("a catalogue has articles of every type")
        };
        let first_place = first.places.start;
        let mut places = Vec::with_capacity(last.places.end - first_place);
        let mut sums = Vec::with_capacity(cells.len());
        for cell in cells {
            let before = places.len();
            places.extend(
                catalogue.shelf()[cell.places.clone()].iter().map(|article| taste.utility(article).exp()),
            );
            sums.push(places[before..].iter().sum());
        }
        Self { first_place, places, first_cell, cells: sums }
    }

    /// Multiplies the scores by a factor for each place of the shelf.
    fn multiply(&mut self, catalogue: &Catalogue, factors: &[f64]) {
        let places = self.first_place..self.first_place + self.places.len();
        self.places.iter_mut().zip(&factors[places]).for_each(|(score, factor)| *score *= factor);
        for place in 0..self.cells.len() {
            let of_cell = catalogue.cells()[self.first_cell + place].places.clone();
            self.cells[place] = self.places(of_cell).iter().sum();
        }
    }

    pub(crate) fn place(&self, place: usize) -> f64 {
        self.places[place - self.first_place]
    }

    pub(crate) fn places(&self, places: Range<usize>) -> &[f64] {
        &self.places[places.start - self.first_place..places.end - self.first_place]
    }

    pub(crate) fn cell(&self, cell: usize) -> f64 {
        self.cells[cell - self.first_cell]
    }

    /// The sum over these cells of score × factor.
    pub(crate) fn sum(&self, cells: Range<usize>, factors: &[f64]) -> f64 {
        let cells = &self.cells[cells.start - self.first_cell..cells.end - self.first_cell];
        cells.iter().zip(factors).map(|(score, factor)| score * factor).sum()
    }
}
