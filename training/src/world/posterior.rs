//! The exact answer to a blank: how likely each article is, given the others and a context.
//!
//! The stylist picks the slots one after the other, so a blank's article also moved whatever was
//! picked after it, and the template as a whole. For an article a of type τ and class κ,
//!
//! ```text
//! Pr(a, others | context) = exp(u(a)) · G(τ, κ)
//! G(τ, κ) = Pr(template of the others and τ) · harmony(κ, earlier) / Z_τ
//!           · Π over the others t: exp(u(t)) · harmony(t, picked before it) / Z_t
//! Z_t     = Σ over classes k: W(type of t, k) · harmony(k, picked before it)
//! ```
//!
//! where W sums exp(u) over the articles of a type and class. G depends on the article through its
//! type and class alone, which is what makes the answer for all articles cheap. Everything comes from
//! the stylist's own `Scores`, `Harmony` and `TemplateLaw`.

use std::{collections::BTreeMap, ops::Range};

use super::{
    World,
    context::Context,
    harmony::{Class, Closeness},
    lexicon::{ArticleType, Family, Word},
    stylist::Scores,
    taste::Taste,
    template::TemplateLaw,
};

/// What is known of an outfit with one blank, and all that follows from it without a context.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
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
    /// The harmony of each cell of its type with what was picked before it, the blank aside.
    harmony: Vec<f64>,
}

/// A type that can fill the blank.
#[derive(Debug, Clone)]
struct Completion {
    family: Family,
    template: Vec<ArticleType>,
    cells: Range<usize>,
    /// The harmony of each cell of the type with what was picked before it.
    harmony: Vec<f64>,
}

/// All that a context says about any blank.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    pub(crate) scores: Scores,
    law: TemplateLaw<'a>,
}

/// `G` for each cell of the catalogue that can hold the missing article.
#[derive(Debug, Default)]
pub(crate) struct Posterior {
    /// Cells with their factors.
    pub(crate) cells: Vec<(usize, f64)>,
    /// Pr(others | context): the sum over all articles of `exp(u) · G`.
    pub(crate) evidence: f64,
}

impl World {
    /// The evidence that these articles, by their numbers, are of an outfit with one blank.
    pub(crate) fn evidence(&self, others: impl Iterator<Item = u32>) -> Evidence {
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
                let cells = self.catalogue.cells_of(*kind);
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
                TemplateLaw::is_template(&template).then(|| Completion {
                    family: kind.family(),
                    template,
                    cells: self.catalogue.cells_of(*kind),
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
        self.catalogue.cells()[self.catalogue.cells_of(kind)]
            .iter()
            .map(|cell| self.stylist.harmony_with(family, cell.class, &earlier))
            .collect()
    }

    /// What this context says about any blank: the costly part, done once for many blanks.
    pub(crate) fn read(&self, context: Context<'_>) -> Reading<'_> {
        Reading {
            scores: Scores::of_all(&self.catalogue, &Taste::new(context)),
            law: self.stylist.template_law(context),
        }
    }

    /// `None` where the context, before the blank's pull on later picks is reckoned, makes the others
    /// less likely than `floor`: not worth finishing.
    pub(crate) fn posterior(
        &self,
        evidence: &Evidence,
        reading: &Reading<'_>,
        floor: f64,
    ) -> Option<Posterior> {
        let scores = &reading.scores;
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
        // A template's probability is at most one, and takes longer to find out.
        if base < floor {
            return None;
        }
        let templates: Vec<f64> = evidence
            .completions
            .iter()
            .map(|completion| reading.law.probability(&completion.template))
            .collect();
        if base * templates.iter().sum::<f64>() < floor {
            return None;
        }
        let mut posterior = Posterior::default();
        let mut moved = BTreeMap::<Family, [f64; Class::COUNT]>::new();
        for (completion, template) in evidence.completions.iter().zip(templates) {
            let moved = moved
                .entry(completion.family)
                .or_insert_with(|| self.moved(evidence, &normalisers, scores, completion.family));
            let common = template * base / scores.sum(completion.cells.clone(), &completion.harmony);
            for (cell, harmony) in completion.cells.clone().zip(&completion.harmony) {
                let factor = common * harmony * moved[self.catalogue.cells()[cell].class.index()];
                posterior.evidence += scores.cell(cell) * factor;
                posterior.cells.push((cell, factor));
            }
        }
        Some(posterior)
    }

    /// What an article of each class in this family's slot does to the picks after it: the product of
    /// its harmony with each, over what it does to their normalisers.
    fn moved(
        &self,
        evidence: &Evidence,
        normalisers: &[f64],
        scores: &Scores,
        family: Family,
    ) -> [f64; Class::COUNT] {
        let mut moved = [1.0; Class::COUNT];
        for (other, normaliser) in evidence.others.iter().zip(normalisers) {
            if other.family < family {
                continue;
            }
            let mut weights = [0.0; Class::COUNT];
            for (cell, harmony) in other.cells.clone().zip(&other.harmony) {
                weights[self.catalogue.cells()[cell].class.index()] = scores.cell(cell) * harmony;
            }
            let closeness = Closeness::of(other.family, family);
            let sums = self.stylist.harmony.spread(closeness, &weights);
            let harmony = self.stylist.harmony.from(closeness, other.class);
            for ((moved, sum), factor) in moved.iter_mut().zip(sums).zip(harmony) {
                *moved *= factor * normaliser / sum;
            }
        }
        moved
    }

    /// Where an article stands on the shelf.
    pub(crate) fn place_of(&self, number: u32) -> usize {
        self.catalogue.place_of(number as usize)
    }

    /// The places of a cell.
    pub(crate) fn places_of(&self, cell: usize) -> Range<usize> {
        self.catalogue.cells()[cell].places.clone()
    }
}
