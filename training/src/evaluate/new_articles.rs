//! Figures of articles that no training outfit has: how well a method suggests them, and how often.

use std::collections::HashSet;

use atelier_engine::onnx_runtime::OnnxRuntime;
use serde::{Deserialize, Serialize};

use super::{Answers, Case, Cases, Refusal, Subject, ask};
use crate::{
    baselines::{NewBaseline, Tallies, beside_new_articles},
    data::Data,
    judge::{FIRST, Verdict},
    metrics::{Answered, Summary},
    number::real,
};

/// The articles that count as new.
#[derive(Debug, Clone)]
pub struct NewArticles {
    is_new: Vec<bool>,
}

impl NewArticles {
    /// Those that no training outfit has. `None` if there are none.
    pub fn find(data: &Data) -> Option<Self> {
        Self::not_empty((0..data.articles().len()).map(|article| article >= data.count_known()).collect())
    }

    /// Those that no training outfit of `other` has, data with the same articles. So the answers of a run that was trained
    /// with all articles are compared with those of one that was trained without some, on the same slots.
    pub fn of_other(data: &Data, other: &Data) -> Option<Self> {
        let new: HashSet<&str> =
            other.articles()[other.count_known()..].iter().map(|article| article.id.as_str()).collect();
        Self::not_empty(data.articles().iter().map(|article| new.contains(article.id.as_str())).collect())
    }

    fn not_empty(is_new: Vec<bool>) -> Option<Self> {
        is_new.contains(&true).then_some(Self { is_new })
    }

    pub fn contains(&self, article: u32) -> bool {
        self.is_new[article as usize]
    }

    /// The new ones, in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.is_new).filter(|(_, is_new)| **is_new).map(|(article, _)| article)
    }

    /// Whether a method with logits of the first `count` articles can suggest them.
    pub(super) fn are_among(&self, count: usize) -> bool {
        !self.is_new[count..].contains(&true)
    }

    /// The figures of the baselines next to which methods suggest new articles.
    pub fn baselines(&self, data: &Data) -> Vec<NewBaseline> {
        beside_new_articles(data, &|article| self.contains(article))
    }
}

/// Figures of the slots whose answer is a new article, and of all others. All articles are candidates, known and new.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewArticleFigures<T, S> {
    pub new: Answered<T>,
    pub known: Answered<T>,
    pub shares: Shares<S>,
}

/// New articles' shares: if they are suggested as often as they are the answer, the others are like that of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shares<S> {
    pub of_articles: S,
    /// Of the slots whose answer is new.
    pub of_answers: S,
    /// The mean probability of all new articles together.
    pub of_probability: S,
    /// The same with the missing article's type known.
    pub of_probability_within_type: S,
    /// Of the first five suggestions.
    pub of_first_five: S,
}

/// Figures with the verdicts behind them.
type OfAllSlots = (NewArticleFigures<Summary, f64>, Vec<Verdict>);

/// Asks a method about the slots whose answer is new to it, next to those that it has answered: the figures, and its answers
/// to all slots. `None` if the data has no new articles or the method cannot suggest them.
///
/// # Errors
/// If the method's files break the contract.
pub(super) fn ask_about_new(
    runtime: &OnnxRuntime,
    subject: &Subject<'_>,
    data: &Data,
    answered: (&Cases, &Answers),
    tell: &(dyn Fn(usize) + Sync),
) -> Result<Option<OfAllSlots>, Refusal> {
    let Some(new) = subject.new_articles().filter(|_| answered.1.suggests_new) else { return Ok(None) };
    let cases = Cases::of_new_articles(data);
    let answers = (!cases.is_empty()).then(|| ask(runtime, subject, data, &cases, tell)).transpose()?;
    let outfits = answered.0.with(&answered.1.open);
    let more = answers.iter().flat_map(|answers| cases.with(&answers.open));
    let figures = NewArticleFigures::new(new, outfits.chain(more));
    let all = answered.1.open.iter().chain(answers.iter().flat_map(|answers| &answers.open)).copied();
    Ok(Some((figures, all.collect())))
}

impl NewArticleFigures<Summary, f64> {
    /// `outfits` has cases of outfits, with verdicts. An outfit may come twice, with different slots.
    fn new<'a>(new: &NewArticles, outfits: impl Iterator<Item = (&'a [Case], &'a [Verdict])>) -> Self {
        let mut tallies = [Tallies::default(), Tallies::default()];
        let (mut slots, mut answers, mut first) = (0, 0, 0);
        let (mut any, mut within_type) = (0.0, 0.0);
        for (cases, verdicts) in outfits {
            for (is_new, tallies) in [true, false].into_iter().zip(&mut tallies) {
                let verdicts = || {
                    let asked = cases.iter().zip(verdicts);
                    asked.filter(|(case, _)| new.contains(case.target) == is_new).map(|(_, verdict)| verdict)
                };
                if verdicts().next().is_none() {
                    continue;
                }
                tallies.any.add_outfit(verdicts().map(|verdict| (verdict.probability(), verdict.rank)));
                let within = verdicts().filter_map(|verdict| verdict.within_type);
                tallies
                    .told_type
                    .add_outfit(within.map(|within| ((-within.cross_entropy).exp(), within.rank)));
            }
            slots += cases.len();
            answers += cases.iter().filter(|case| new.contains(case.target)).count();
            for verdict in verdicts {
                // Out of bounds if there are fewer than five articles.
                let is_new = |article: &&u32| new.is_new.get(**article as usize) == Some(&true);
                first += verdict.first.iter().filter(is_new).count();
                if let Some(share) = verdict.new_articles {
                    any += share.any;
                    within_type += share.within_type;
                }
            }
        }
        let slots = real(slots.max(1));
        let shares = Shares {
            of_articles: real(new.iter().count()) / real(new.is_new.len()),
            of_answers: real(answers) / slots,
            of_probability: any / slots,
            of_probability_within_type: within_type / slots,
            of_first_five: real(first) / (slots * real(FIRST)),
        };
        let [new, known] = tallies.map(Answered::from);
        Self { new, known, shares }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        judge::{ShareOfNew, WithinType},
        testing::near,
    };

    #[test]
    fn slots_are_split_by_their_answer() {
        let new = NewArticles::not_empty(vec![false, false, false, true]).unwrap();
        let case = |target| Case { outfit: 1, slot: 0, target };
        let verdict = |rank: f64, within: f64, first: [u32; FIRST], any: f64, within_type: f64| Verdict {
            cross_entropy: 2.0_f64.ln(),
            rank,
            first,
            confidence: 0.5,
            within_type: Some(WithinType { cross_entropy: 0.0, rank: within }),
            new_articles: Some(ShareOfNew { any, within_type }),
        };
        let (cases, answers) = (
            [case(0), case(3), case(2)],
            [
                verdict(3.0, 1.0, [0, 1, 2, 3, u32::MAX], 0.25, 0.5),
                verdict(7.0, 2.0, [3, 1, 2, 0, u32::MAX], 0.5, 1.0),
                verdict(5.0, 3.0, [0, 1, 2, u32::MAX, u32::MAX], 0.0, 0.0),
            ],
        );
        let NewArticleFigures { new, known, shares } =
            NewArticleFigures::new(&new, [(&cases[..], &answers[..])].into_iter());
        assert_eq!((new.any.slots, known.any.slots), (1, 2));
        near(new.any.mean_rank.mean, 7.0, 1e-12);
        near(known.any.mean_rank.mean, 4.0, 1e-12);
        near(new.told_type.mean_rank.mean, 2.0, 1e-12);
        near(known.told_type.mean_rank.mean, 2.0, 1e-12);
        near(known.any.recall_at_5.mean, 1.0, 1e-12);
        near(new.any.cross_entropy.mean, 2.0_f64.ln(), 1e-12);
        near(shares.of_articles, 0.25, 1e-12);
        near(shares.of_answers, 1.0 / 3.0, 1e-12);
        near(shares.of_probability, 0.25, 1e-12);
        near(shares.of_probability_within_type, 0.5, 1e-12);
        near(shares.of_first_five, 2.0 / 15.0, 1e-12);
    }
}
