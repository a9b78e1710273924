//! Figures for segments of the validation split: by article type, by customers seen in training or not, by
//! outfit length, and by each feature's values, unless these are articles.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Answers, Cases};
use crate::{
    data::Data,
    judge::Verdict,
    metrics::{Summary, Tally},
};

/// The figures of one segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// `type` (of the missing article), `customer`, `articles` (the number in the outfit), or the name of a
    /// feature. With a set, an outfit is in the segment of each of its values.
    pub by: String,
    pub value: String,
    pub summary: Summary,
}

const TYPE: &str = "type";
const CUSTOMER: &str = "customer";
const LENGTH: &str = "articles";

/// The figures over all cases, as if the missing article's type had been told.
pub(super) fn told_type(cases: &Cases, answers: &Answers) -> Summary {
    let mut tally = Tally::default();
    for (_, verdicts) in answers.by_outfit(cases) {
        let within = verdicts.iter().filter_map(|verdict| verdict.within_type);
        tally.add_outfit(within.map(|within| ((-within.cross_entropy).exp(), within.rank)));
    }
    tally.summary()
}

/// The figures over all cases.
pub(super) fn summary(cases: &Cases, answers: &Answers) -> Summary {
    let mut tally = Tally::default();
    answers.by_outfit(cases).for_each(|(_, verdicts)| add(&mut tally, verdicts));
    tally.summary()
}

pub(super) fn segments(data: &Data, cases: &Cases, answers: &Answers) -> Vec<Segment> {
    let mut types = vec![Tally::default(); data.types().len()];
    let mut seen = [Tally::default(), Tally::default()];
    let mut lengths = BTreeMap::<usize, Tally>::new();
    let features = data.schema().features();
    let mut values: Vec<Vec<Tally>> =
        features.iter().map(|feature| vec![Tally::default(); feature.rows()]).collect();
    let mut encoded = Vec::new();
    for (outfit, verdicts) in answers.by_outfit(cases) {
        for (case, verdict) in outfit.iter().zip(verdicts) {
            add(&mut types[data.type_of(case.target)], std::slice::from_ref(verdict));
        }
        let number = outfit[0].outfit;
        let customer = data.outfits().customer(number);
        add(&mut seen[usize::from(data.is_seen(customer))], verdicts);
        add(lengths.entry(outfit.len()).or_default(), verdicts);
        data.features_of(number, &mut encoded);
        for (tallies, indices) in values.iter_mut().zip(&encoded) {
            let not_given: &[u32] = &[0];
            for &value in if indices.is_empty() { not_given } else { indices } {
                add(&mut tallies[value as usize], verdicts);
            }
        }
    }
    let mut segments = Vec::new();
    let mut put = |by: &str, value: &str, tally: &Tally| {
        let summary = tally.summary();
        if summary.slots > 0 {
            segments.push(Segment { by: by.to_owned(), value: value.to_owned(), summary });
        }
    };
    put(CUSTOMER, "unseen in training", &seen[0]);
    put(CUSTOMER, "seen in training", &seen[1]);
    for (length, tally) in &lengths {
        put(LENGTH, &length.to_string(), tally);
    }
    for (name, tally) in data.types().iter().zip(&types) {
        put(TYPE, name, tally);
    }
    // A segment for each article that customers had would say little, and there are thousands.
    for (feature, tallies) in
        features.iter().zip(&values).filter(|(feature, _)| data.named_by(feature).is_none())
    {
        for (row, tally) in (0..).zip(tallies) {
            put(&feature.name, &feature.row_name(row), tally);
        }
    }
    segments
}

fn add(tally: &mut Tally, verdicts: &[Verdict]) {
    tally.add_outfit(verdicts.iter().map(|verdict| (verdict.probability(), verdict.rank)));
}
