//! Baselines that count: the figures to compare every method with.
//!
//! A baseline is fitted to the training outfits, chooses its one parameter on the development split, and
//! answers a [`Question`] with a probability for every article. It must not know the world or the true
//! article: a question holds only what a baseline may see.

mod alike;
mod cooccurrence;
mod ease;
mod history;
mod logit;
mod popularity;
mod profile;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    data::Data,
    judge::{FIRST, Verdict, judge_within},
    metrics::{Answered, Summary, Tally, rank},
};

pub(crate) use self::logit::Terms;
pub use self::{
    alike::Alike,
    cooccurrence::{Cooccurrence, Neighbours, Pairs, Sharpened},
    ease::Ease,
    history::{Histories, History, count_histories},
    logit::Logit,
    popularity::{Popularity, TypePopularity},
    profile::{Cells, ProfilePopularity},
};

/// One blank of an outfit, without the true article.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The encoded features of the customer and the outfit, feature by feature of the schema.
    pub features: &'a [Vec<u32>],
    /// Whose outfit it is.
    pub customer: u32,
    /// The other articles.
    pub visible: &'a [u32],
    /// The type of the missing article, for the baselines that are told it and say so in their name.
    pub told_type: usize,
}

/// Answers questions.
pub trait Answers: Sync + std::fmt::Debug {
    /// Whether it reads the question's type.
    fn knows_type(&self) -> bool {
        false
    }

    /// Writes Pr(article) for the whole vocabulary.
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]);
}

/// A baseline's figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    #[serde(rename = "baseline")]
    pub name: String,
    #[serde(rename = "answers")]
    pub summary: Summary,
    /// Whether it is told the missing article's type, which methods are not.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub knows_type: bool,
    /// The same answers with the missing article's type known and the outfit's articles left out.
    pub told_type: Summary,
}

/// A baseline's answers to the slots of some outfits, and their figures.
#[derive(Debug)]
pub struct Asked {
    pub baseline: Baseline,
    /// Slot by slot.
    pub(crate) verdicts: Vec<Verdict>,
}

impl Baseline {
    /// Its figures on the validation split.
    pub fn new(name: impl Into<String>, data: &Data, baseline: &dyn Answers) -> Self {
        Asked::new(name.into(), data, data.validation(), baseline).baseline
    }
}

impl Asked {
    fn new(name: String, data: &Data, outfits: &[u32], baseline: &dyn Answers) -> Self {
        let by_outfit = ask_of_learned(data, outfits, baseline);
        let Tallies { any, told_type } = Tallies::of(&by_outfit);
        let knows_type = baseline.knows_type();
        let baseline = Baseline { name, summary: any.summary(), knows_type, told_type: told_type.summary() };
        Self { baseline, verdicts: by_outfit.concat() }
    }
}

/// The baselines that every method is compared with, on the slots of these outfits.
pub fn beside_methods(data: &Data, outfits: &[u32]) -> Vec<Asked> {
    let popularity = Popularity::fit(data);
    let told = TypePopularity::fit(data);
    let pairs = Pairs::count(data);
    let cooccurrence = Cooccurrence::fit(data, &popularity, &pairs);
    let logit = Logit::fit_without_histories(data);
    let baselines: [(&str, &dyn Answers); 4] = [
        ("popularity", &popularity),
        ("popularity, told the type", &told),
        ("co-occurrence", &cooccurrence),
        ("logit", &logit),
    ];
    baselines.map(|(name, baseline)| Asked::new(name.to_owned(), data, outfits, baseline)).into()
}

/// A baseline's figures of new articles and of all others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewBaseline {
    #[serde(rename = "baseline")]
    pub name: String,
    /// Whether it is told the missing article's type, which methods are not.
    pub knows_type: bool,
    pub new: Answered<Summary>,
    pub known: Answered<Summary>,
}

/// The figures of the baselines that methods are compared with where articles count as new, on the validation split.
pub fn beside_new_articles(data: &Data, is_new: &(dyn Fn(u32) -> bool + Sync)) -> Vec<NewBaseline> {
    let popularity = Popularity::fit(data);
    let told = TypePopularity::fit(data);
    let pairs = Pairs::count(data);
    let cooccurrence = Cooccurrence::fit(data, &popularity, &pairs);
    let (as_type, as_nearest) = (Alike::of_type(data, &told), Alike::by_attributes(data, &told));
    let beside = Alike::by_attributes(data, &cooccurrence);
    let baselines: [(&str, &dyn Answers); 4] = [
        ("popularity, told the type", &told),
        ("popularity, told the type; new as the mean of their type", &as_type),
        ("popularity, told the type; new as their neighbours", &as_nearest),
        ("co-occurrence; new as their neighbours", &beside),
    ];
    let figures = |(name, baseline): (&str, &dyn Answers)| {
        let answered = |which: &(dyn Fn(u32) -> bool + Sync)| {
            Tallies::of(&ask(data, data.validation(), baseline, which, data.articles().len())).into()
        };
        NewBaseline {
            name: name.to_owned(),
            knows_type: baseline.knows_type(),
            new: answered(is_new),
            known: answered(&|article| !is_new(article)),
        }
    };
    baselines.map(figures).into()
}

/// The figures of answers, of any article and with the type known.
#[derive(Debug, Default)]
pub struct Tallies {
    pub any: Tally,
    pub told_type: Tally,
}

impl Tallies {
    pub(crate) fn of(by_outfit: &[Vec<Verdict>]) -> Self {
        let mut tallies = Self::default();
        for verdicts in by_outfit {
            tallies.any.add_outfit(verdicts.iter().map(|verdict| (verdict.probability(), verdict.rank)));
            let within = verdicts.iter().filter_map(|verdict| verdict.within_type);
            tallies.told_type.add_outfit(within.map(|within| ((-within.cross_entropy).exp(), within.rank)));
        }
        tallies
    }
}

impl From<Tallies> for Answered<Summary> {
    fn from(tallies: Tallies) -> Self {
        Self { any: tallies.any.summary(), told_type: tallies.told_type.summary() }
    }
}

/// Asks about every slot of these outfits in turn, except those of articles without training outfits: methods are asked
/// about the same slots.
pub fn evaluate(data: &Data, outfits: &[u32], baseline: &dyn Answers) -> Tallies {
    Tallies::of(&ask_of_learned(data, outfits, baseline))
}

/// Asks about learned articles, and among them.
fn ask_of_learned(data: &Data, outfits: &[u32], baseline: &dyn Answers) -> Vec<Vec<Verdict>> {
    ask(data, outfits, baseline, &|article| data.is_known(article), data.count_known())
}

/// Asks about the slots with these articles among the first `count`, for each outfit that has some.
fn ask(
    data: &Data,
    outfits: &[u32],
    baseline: &dyn Answers,
    is_asked: &(dyn Fn(u32) -> bool + Sync),
    count: usize,
) -> Vec<Vec<Verdict>> {
    let answer = |(probabilities, features): &mut (Vec<f64>, Vec<Vec<u32>>), &outfit: &u32| {
        data.features_of(outfit, features);
        let articles = data.outfits().articles(outfit);
        let asked = articles.iter().enumerate().filter(|(_, missing)| is_asked(**missing));
        asked
            .map(|(slot, &missing)| {
                let mut visible = articles.to_vec();
                visible.remove(slot);
                let question = Question {
                    features,
                    customer: data.outfits().customer(outfit),
                    visible: &visible,
                    told_type: data.type_of(missing),
                };
                baseline.answer(&question, probabilities);
                let among = &probabilities[..count];
                let of_type = data.articles_of_type(data.type_of(missing));
                let of_type = &of_type[..of_type.partition_point(|&article| (article as usize) < count)];
                let within = judge_within(of_type, articles, missing, |article| among[article as usize]);
                Verdict {
                    cross_entropy: (among.iter().sum::<f64>() / among[missing as usize]).ln(),
                    rank: rank(among, missing as usize),
                    first: [u32::MAX; FIRST],
                    confidence: 0.0,
                    within_type: Some(within),
                    new_articles: None,
                }
            })
            .collect()
    };
    let workspace = || (vec![0.0; data.vocabulary().len()], Vec::new());
    let answers = outfits.par_iter().map_init(workspace, answer);
    answers.filter(|verdicts: &Vec<Verdict>| !verdicts.is_empty()).collect()
}

/// Chooses the candidate with the lowest cross-entropy on the development split; the first if the split is
/// empty.
fn choose<T: Answers>(data: &Data, candidates: &[f64], mut make: impl FnMut(f64) -> T) -> T {
    let mut best: Option<(T, f64)> = None;
    for parameter in candidates {
        let candidate = make(*parameter);
        let loss = evaluate(data, data.development(), &candidate).any.summary().cross_entropy.mean;
        if best.as_ref().is_none_or(|(_, least)| loss < *least) {
            best = Some((candidate, loss));
        }
    }
    best.expect("there are candidates").0
}

#[cfg(test)]
mod tests;
