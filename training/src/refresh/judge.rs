//! A candidate next to the live release on the outfits of the last weeks, over all and by segment.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use atelier_engine::{
    evaluation::Metric,
    onnx_runtime::OnnxRuntime,
    release::{MethodEntry, Release},
};
use serde::{Deserialize, Serialize};

use crate::{
    data::Data,
    evaluate::{Case, Cases, Subject, ask, differences},
    judge::Verdict,
    number::real,
};

/// A type with fewer slots says little.
const LEAST: usize = 100;
/// Suggestions that a customer looks at.
const SHOWN: f64 = 5.0;

/// The figures of both on some slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// `all`, `customer`, `article` or `type`.
    pub by: String,
    pub value: String,
    pub outfits: usize,
    pub slots: usize,
    pub live: Scores,
    pub candidate: Scores,
    pub of_type_at_5: Gain,
    pub recall_at_5: Gain,
    pub mrr: Gain,
}

/// Among all articles that the release can suggest, except `of_type_at_5`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scores {
    pub recall_at_1: f64,
    pub recall_at_5: f64,
    pub mrr: f64,
    /// How often the article is among the first five of its type, as customers see them.
    pub of_type_at_5: f64,
}

/// The candidate's figure less the live one's, and its 95 % interval by a bootstrap of outfits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gain {
    pub difference: f64,
    pub low: f64,
    pub high: f64,
}

impl Segment {
    /// Whether the candidate is worse, and not by chance.
    pub fn is_worse(&self) -> bool {
        [self.of_type_at_5, self.recall_at_5, self.mrr].iter().any(|gain| gain.high < 0.0)
    }
}

/// One of the two, with the data as its schema reads it.
pub(super) type Asked<'a> = (&'a Release, &'a MethodEntry, &'a Data);

/// Asks both about these slots. `data` is as the candidate reads it.
pub(super) fn compare(
    runtime: &OnnxRuntime,
    cases: &Cases,
    live: Asked<'_>,
    candidate: Asked<'_>,
) -> Result<Vec<Segment>> {
    let data = candidate.2;
    let verdicts = |(release, method, data): Asked<'_>| -> Result<Vec<Verdict>> {
        Ok(ask(runtime, &Subject::new(data, release, method), data, cases, &|_| {})?.open)
    };
    let (lives, candidates) = (verdicts(live)?, verdicts(candidate)?);
    let was_known = |article: u32| {
        let id = data.articles()[article as usize].id.as_str();
        live.0.vocabulary().index_of(id).is_some()
    };
    let mut segments = Vec::new();
    let mut add = |by: &str, value: &str, least: usize, takes: &dyn Fn(&Case) -> bool| {
        let (selected, places) = cases.select(takes);
        if places.len() >= least {
            segments.push(segment(by, value, &selected, &pick(&lives, &places), &pick(&candidates, &places)));
        }
    };
    add("all", "all slots", 1, &|_| true);
    let is_seen = |case: &Case| data.is_seen(data.outfits().customer(case.outfit));
    add("customer", "known", 1, &is_seen);
    add("customer", "new", 1, &|case| !is_seen(case));
    add("article", "known to the live release", 1, &|case| was_known(case.target));
    add("article", "new to the live release", 1, &|case| !was_known(case.target));
    let types: BTreeMap<&str, usize> = data.types().iter().map(String::as_str).zip(0..).collect();
    for (name, kind) in types {
        add("type", name, LEAST, &|case| data.type_of(case.target) == kind);
    }
    Ok(segments)
}

fn pick(verdicts: &[Verdict], places: &[usize]) -> Vec<Verdict> {
    places.iter().map(|&place| verdicts[place]).collect()
}

fn segment(by: &str, value: &str, cases: &Cases, live: &[Verdict], candidate: &[Verdict]) -> Segment {
    let find = |live: &[Verdict], candidate: &[Verdict]| {
        let runs = [("candidate".to_owned(), vec![candidate]), ("live".to_owned(), vec![live])];
        let found = differences(cases, &runs);
        move |metric: Metric| {
            let found = found.iter().find(|difference| difference.metric == metric);
            let found = found.expect("every metric has a difference");
            Gain { difference: found.difference, low: found.low, high: found.high }
        }
    };
    let gain = find(live, candidate);
    let gain_of_type = find(&told_type(live), &told_type(candidate));
    Segment {
        by: by.to_owned(),
        value: value.to_owned(),
        outfits: cases.by_outfit().count(),
        slots: cases.as_slice().len(),
        live: scores(live),
        candidate: scores(candidate),
        of_type_at_5: gain_of_type(Metric::RecallAt5),
        recall_at_5: gain(Metric::RecallAt5),
        mrr: gain(Metric::Mrr),
    }
}

/// The same answers, with the type of the missing article known.
fn told_type(verdicts: &[Verdict]) -> Vec<Verdict> {
    let told = |verdict: &Verdict| {
        let rank = verdict.within_type.map_or(f64::INFINITY, |within_type| within_type.rank);
        Verdict { rank, ..*verdict }
    };
    verdicts.iter().map(told).collect()
}

fn scores(verdicts: &[Verdict]) -> Scores {
    let share =
        |of: &dyn Fn(&Verdict) -> f64| verdicts.iter().map(of).sum::<f64>() / real(verdicts.len().max(1));
    let within = |rank: f64, most: f64| f64::from(u8::from(rank <= most));
    Scores {
        recall_at_1: share(&|verdict| within(verdict.rank, 1.0)),
        recall_at_5: share(&|verdict| within(verdict.rank, SHOWN)),
        mrr: share(&|verdict| 1.0 / verdict.rank),
        of_type_at_5: share(&|verdict| {
            verdict.within_type.map_or(0.0, |within_type| within(within_type.rank, SHOWN))
        }),
    }
}

/// How often the article that a customer took is among the first five of its type, and the number of slots: what acceptance
/// means where outfits are known. `folder` has these outfits, all of the validation split.
///
/// # Errors
/// If the folder cannot be read, or the release's files break the contract.
pub fn acceptance(runtime: &OnnxRuntime, release: &Release, folder: &Path) -> Result<(f64, usize)> {
    let data = Data::load_by_time(folder, Some(release.schema()))?;
    let default = release.manifest().default_method;
    let method = release.manifest().methods.iter().find(|entry| entry.method == default);
    let method = method.expect("the default method is one of them");
    let cases = Cases::of_all_articles(&data);
    let answers = ask(runtime, &Subject::new(&data, release, method), &data, &cases, &|_| {})?;
    Ok((scores(&answers.open).of_type_at_5, cases.as_slice().len()))
}
