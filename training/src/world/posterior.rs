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

use std::collections::BTreeMap;

use super::{
    World,
    context::Context,
    harmony::{Class, Closeness},
    lexicon::{ArticleType, Family, Word},
    stylist::Scores,
    taste::Taste,
    template::TemplateLaw,
};

/// What is known of an outfit with one blank: the other articles, as places, in slot order.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    places: Vec<usize>,
    /// The types that can fill the blank, and for each the whole template.
    completions: Vec<(ArticleType, Vec<ArticleType>)>,
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

struct Known {
    family: Family,
    class: Class,
    kind: ArticleType,
    /// Number of the cell that holds it.
    cell: usize,
    place: usize,
}

impl World {
    /// The evidence that these articles, by their numbers, are of an outfit with one blank.
    pub(crate) fn evidence(&self, others: impl Iterator<Item = u32>) -> Evidence {
        let mut places: Vec<usize> = others.map(|number| self.catalogue.place_of(number as usize)).collect();
        places.sort_by_key(|place| self.catalogue.at(*place).kind.family());
        let types: Vec<ArticleType> = places.iter().map(|place| self.catalogue.at(*place).kind).collect();
        let completions = ArticleType::ALL
            .iter()
            .filter(|kind| types.iter().all(|other| other.family() != kind.family()))
            .filter(|kind| completes(&types, **kind))
            .map(|kind| {
                let mut whole = types.clone();
                whole.push(*kind);
                whole.sort_by_key(|kind| kind.family());
                (*kind, whole)
            })
            .collect();
        Evidence { places, completions }
    }

    /// What this context says about any blank: the costly part, done once for many blanks.
    pub(crate) fn read(&self, context: Context<'_>) -> Reading<'_> {
        Reading {
            scores: Scores::of_all(&self.catalogue, &Taste::new(context)),
            law: self.stylist.template_law(context),
        }
    }

    pub(crate) fn posterior(&self, evidence: &Evidence, reading: &Reading<'_>) -> Posterior {
        let known = self.known(evidence);
        let base = Base::new(self, &known, &reading.scores);
        let mut posterior = Posterior::default();
        let mut later = BTreeMap::<Family, [f64; Class::COUNT]>::new();
        for (kind, template) in &evidence.completions {
            let template = reading.law.probability(template);
            let family = kind.family();
            let earlier: Vec<(Family, Class)> = known
                .iter()
                .filter(|other| other.family < family)
                .map(|other| (other.family, other.class))
                .collect();
            let moved = later.entry(family).or_insert_with(|| base.moved(self, &known, family));
            let cells = self.catalogue.cells_of(*kind);
            let harmony: Vec<f64> = cells
                .clone()
                .map(|cell| self.stylist.harmony_with(family, self.catalogue.cells()[cell].class, &earlier))
                .collect();
            let normaliser: f64 =
                cells.clone().zip(&harmony).map(|(cell, harmony)| reading.scores.cell(cell) * harmony).sum();
            for (cell, harmony) in cells.zip(harmony) {
                let class = self.catalogue.cells()[cell].class;
                let factor = template * base.product * harmony / normaliser * moved[class.index()];
                posterior.evidence += reading.scores.cell(cell) * factor;
                posterior.cells.push((cell, factor));
            }
        }
        posterior
    }

    fn known(&self, evidence: &Evidence) -> Vec<Known> {
        evidence
            .places
            .iter()
            .map(|&place| {
                let article = self.catalogue.at(place);
                let cells = self.catalogue.cells_of(article.kind);
                let within =
                    self.catalogue.cells()[cells.clone()].partition_point(|cell| cell.places.end <= place);
                Known {
                    family: article.kind.family(),
                    class: article.class(),
                    kind: article.kind,
                    cell: cells.start + within,
                    place,
                }
            })
            .collect()
    }

    /// Where an article stands on the shelf.
    pub(crate) fn place_of(&self, number: u32) -> usize {
        self.catalogue.place_of(number as usize)
    }

    /// The places of a cell.
    pub(crate) fn places_of(&self, cell: usize) -> std::ops::Range<usize> {
        self.catalogue.cells()[cell].places.clone()
    }
}

/// The others among themselves, as if there were no blank.
struct Base {
    /// Π exp(u) · harmony / Z over the others.
    product: f64,
    /// For each of the others, its Z and the weights by class that it sums.
    normalisers: Vec<(f64, [f64; Class::COUNT])>,
}

impl Base {
    fn new(world: &World, known: &[Known], scores: &Scores) -> Self {
        let mut product = 1.0;
        let mut normalisers = Vec::with_capacity(known.len());
        for (order, one) in known.iter().enumerate() {
            let earlier: Vec<(Family, Class)> =
                known[..order].iter().map(|other| (other.family, other.class)).collect();
            let mut weights = [0.0; Class::COUNT];
            let mut own = 0.0;
            for cell in world.catalogue.cells_of(one.kind) {
                let class = world.catalogue.cells()[cell].class;
                let harmony = world.stylist.harmony_with(one.family, class, &earlier);
                weights[class.index()] = scores.cell(cell) * harmony;
                if cell == one.cell {
                    own = scores.place(one.place) * harmony;
                }
            }
            let normaliser: f64 = weights.iter().sum();
            product *= own / normaliser;
            normalisers.push((normaliser, weights));
        }
        Self { product, normalisers }
    }

    /// What an article of each class in this family's slot does to the picks after it: the product of
    /// its harmony with each, over what it does to their normalisers.
    fn moved(&self, world: &World, known: &[Known], family: Family) -> [f64; Class::COUNT] {
        let mut moved = [1.0; Class::COUNT];
        for (one, (normaliser, weights)) in known.iter().zip(&self.normalisers) {
            if one.family < family {
                continue;
            }
            let closeness = Closeness::of(one.family, family);
            let spread = world.stylist.harmony.spread(closeness, weights);
            let harmony = world.stylist.harmony.from(closeness, one.class);
            for ((moved, sum), factor) in moved.iter_mut().zip(spread).zip(harmony) {
                *moved *= factor * normaliser / sum;
            }
        }
        moved
    }
}

/// Whether an outfit of these types, in the order of their families, lacks just this one.
fn completes(types: &[ArticleType], kind: ArticleType) -> bool {
    let mut families: Vec<Family> = types.iter().map(|kind| kind.family()).collect();
    families.push(kind.family());
    families.sort_unstable();
    TemplateLaw::is_outfit(&families)
}
