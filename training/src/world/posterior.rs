//! The exact answer to a blank: the probability of each article, given the other articles and a context.
//!
//! The stylist fills slots one after the other, so the missing article also influenced the template and
//! every later pick. For an article a of type τ and class κ,
//!
//! ```text
//! Pr(a, others | context) = exp(u(a)) · G(τ, κ)
//! G(τ, κ) = Pr(template of the others and τ) · harmony(κ, earlier) / Z_τ
//!           · Π over the others t: exp(u(t)) · harmony(t, picked before it) / Z_t
//! Z_t     = Σ over classes k: W(type of t, k) · harmony(k, picked before it)
//! ```
//!
//! where W sums exp(u) over the articles of a type and class. G depends only on the article's type and
//! class, so the answer for all articles is cheap.

use std::{collections::BTreeMap, ops::Range};

use super::{
    World,
    harmony::{Class, Closeness},
    lexicon::{ArticleType, Family, Word},
    profile::Context,
    stylist::Scores,
    taste::Taste,
    template::Templates,
};

/// An outfit with one blank, and everything that follows from it without a context.
#[derive(Debug, Clone)]
pub struct Evidence {
    others: Vec<Other>,
    completions: Vec<Completion>,
}

/// One of the other articles.
#[derive(Debug, Clone)]
struct Other {
    family: Family,
    class: Class,
    place: usize,
    cell: usize,
    cells: Range<usize>,
    /// The harmony of each cell of its type with the articles picked before it, without the blank.
    harmony: Vec<f64>,
}

/// A type that can fill the blank.
#[derive(Debug, Clone)]
struct Completion {
    family: Family,
    template: Vec<ArticleType>,
    cells: Range<usize>,
    /// The harmony of each cell of the type with the articles picked before it.
    harmony: Vec<f64>,
}

/// A context's probabilities for any blank.
#[derive(Debug)]
pub struct ScoredContext<'a> {
    pub(super) scores: Scores,
    templates: Templates<'a>,
}

/// `G` for each cell of the catalogue that can hold the missing article.
#[derive(Debug, Default)]
pub struct Posterior {
    /// Cells with their factors.
    pub cells: Vec<(usize, f64)>,
    /// Pr(others | context): the sum over all articles of `exp(u) · G`.
    pub evidence: f64,
}

impl ScoredContext<'_> {
    /// Scores of the articles at these places.
    pub fn scores(&self, places: Range<usize>) -> &[f64] {
        self.scores.places(places)
    }
}

impl World {
    /// The evidence from an outfit with one blank and these other articles, by number.
    pub fn evidence(&self, others: impl Iterator<Item = u32>) -> Evidence {
        let mut places: Vec<usize> = others.map(|number| self.catalogue.place_of(number as usize)).collect();
        places.sort_by_key(|place| self.catalogue.at(*place).kind.family());
        let types: Vec<ArticleType> = places.iter().map(|place| self.catalogue.at(*place).kind).collect();
        let picked: Vec<(Family, Class)> = places
            .iter()
            .map(|place| (self.catalogue.at(*place).kind.family(), self.catalogue.at(*place).class()))
            .collect();
        let others = places
            .iter()
            .zip(&types)
            .map(|(&place, kind)| {
                let cells = self.catalogue.cells_of_type(*kind);
                let before =
                    self.catalogue.cells()[cells.clone()].partition_point(|cell| cell.places.end <= place);
                Other {
                    family: kind.family(),
                    class: self.catalogue.at(place).class(),
                    place,
                    cell: cells.start + before,
                    harmony: self.harmony_of_cells(*kind, &picked),
                    cells,
                }
            })
            .collect();
        let completions = ArticleType::ALL
            .iter()
            .filter_map(|kind| {
                let mut template = types.clone();
                template.push(*kind);
                template.sort_by_key(|kind| kind.family());
                Templates::is_template(&template).then(|| Completion {
                    family: kind.family(),
                    template,
                    cells: self.catalogue.cells_of_type(*kind),
                    harmony: self.harmony_of_cells(*kind, &picked),
                })
            })
            .collect();
        Evidence { others, completions }
    }

    fn harmony_of_cells(&self, kind: ArticleType, picked: &[(Family, Class)]) -> Vec<f64> {
        let family = kind.family();
        let earlier: Vec<(Family, Class)> =
            picked.iter().filter(|(other, _)| *other < family).copied().collect();
        self.catalogue.cells()[self.catalogue.cells_of_type(kind)]
            .iter()
            .map(|cell| self.stylist.harmony_with(family, cell.class, &earlier))
            .collect()
    }

    /// Scores every article in a context: the costly part, done once for many blanks.
    pub fn score(&self, context: Context<'_>) -> ScoredContext<'_> {
        ScoredContext {
            scores: Scores::for_all(&self.catalogue, &Taste::new(context)),
            templates: self.stylist.templates(context),
        }
    }

    /// `None` if the context makes the others less likely than `floor`, before the blank's influence on
    /// later picks is computed.
    pub fn posterior(
        &self,
        evidence: &Evidence,
        context: &ScoredContext<'_>,
        floor: f64,
    ) -> Option<Posterior> {
        let scores = &context.scores;
        let normalisers: Vec<f64> =
            evidence.others.iter().map(|other| scores.sum(other.cells.clone(), &other.harmony)).collect();
        let base: f64 = evidence
            .others
            .iter()
            .zip(&normalisers)
            .map(|(other, sum)| {
                scores.place(other.place) * other.harmony[other.cell - other.cells.start] / sum
            })
            .product();
        // A template's probability is at most one, and costs more to compute.
        if base < floor {
            return None;
        }
        let templates: Vec<f64> = evidence
            .completions
            .iter()
            .map(|completion| context.templates.probability(&completion.template))
            .collect();
        if base * templates.iter().sum::<f64>() < floor {
            return None;
        }
        let mut posterior = Posterior::default();
        let mut influences = BTreeMap::<Family, [f64; Class::COUNT]>::new();
        for (completion, template) in evidence.completions.iter().zip(templates) {
            let influence = influences
                .entry(completion.family)
                .or_insert_with(|| self.influence(evidence, &normalisers, scores, completion.family));
            let common = template * base / scores.sum(completion.cells.clone(), &completion.harmony);
            for (cell, harmony) in completion.cells.clone().zip(&completion.harmony) {
                let factor = common * harmony * influence[self.catalogue.cells()[cell].class.index()];
                posterior.evidence += scores.cell(cell) * factor;
                posterior.cells.push((cell, factor));
            }
        }
        Some(posterior)
    }

    /// The influence of an article of each class in this family's slot on the later picks: the product of
    /// its harmony with each of them, divided by its effect on their normalisers.
    fn influence(
        &self,
        evidence: &Evidence,
        normalisers: &[f64],
        scores: &Scores,
        family: Family,
    ) -> [f64; Class::COUNT] {
        let mut influence = [1.0; Class::COUNT];
        for (other, normaliser) in evidence.others.iter().zip(normalisers) {
            if other.family < family {
                continue;
            }
            let mut weights = [0.0; Class::COUNT];
            for (cell, harmony) in other.cells.clone().zip(&other.harmony) {
                weights[self.catalogue.cells()[cell].class.index()] = scores.cell(cell) * harmony;
            }
            let closeness = Closeness::between(other.family, family);
            let sums = self.stylist.harmony.spread(closeness, &weights);
            let harmony = self.stylist.harmony.factors_with(closeness, other.class);
            for ((influence, sum), factor) in influence.iter_mut().zip(sums).zip(harmony) {
                *influence *= factor * normaliser / sum;
            }
        }
        influence
    }

    /// An article's place on the shelf.
    pub fn place_of(&self, number: u32) -> usize {
        self.catalogue.place_of(number as usize)
    }

    /// The places of all articles with the type of the one at `place`.
    pub fn places_of_same_type(&self, place: usize) -> Range<usize> {
        let cells = &self.catalogue.cells()[self.catalogue.cells_of_type(self.catalogue.at(place).kind)];
        cells[0].places.start..cells[cells.len() - 1].places.end
    }

    /// The places of a cell.
    pub fn places_of(&self, cell: usize) -> Range<usize> {
        self.catalogue.cells()[cell].places.clone()
    }
}
