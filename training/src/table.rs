//! One table of many evaluations: methods over their seeds, baselines, the oracle's bounds, and the paper's
//! figures.
//!
//! Evaluations and the oracle's report come in from the files of other commands; Markdown and JSON go out.
//! The module computes only means, standard errors over seeds, and shares of the oracle's gap.

use std::fmt::Write;

use anyhow::{Result, bail};
use atelier_engine::evaluation::{PAPER, PaperRow};
use indicatif::HumanCount;
use serde::{Deserialize, Serialize};

use crate::{
    baselines::{Baseline, NewBaseline},
    evaluate::{Evaluation, MethodResult, NewArticleFigures, Scores, Shares, Spread},
    metrics::{Answered, Estimate, Summary},
};

/// The oracle's answers, by what it knows of the customer and the occasion.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Customer and occasion known: exact.
    pub known: Summary,
    /// The same, with the missing article's type known, too.
    pub known_told_type: Summary,
    /// The same as `known`, for customers with training outfits.
    pub known_seen: Summary,
    /// The same, for customers without training outfits.
    pub known_unseen: Summary,
    /// Neither known.
    pub unknown: Unknown,
    /// Occasion known, customer not.
    pub occasion: Unknown,
}

/// Answers without the customer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// By the number of contexts: each overstates the cross-entropy, the last one least.
    pub sizes: Vec<AtSize>,
    /// With the slot's own context added to the largest draw: understates the cross-entropy.
    pub with_own: Summary,
    /// The cross-entropy as the draw grows, extrapolated from the ratio of the last two gains. At least
    /// that of `with_own`; `None` with fewer than three sizes.
    pub limit: Option<f64>,
    /// The gain in nats from knowing everything, against the largest draw.
    pub worth_at_most: Estimate,
    /// The gain in nats from knowing everything, against `with_own`.
    pub worth_at_least: Estimate,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtSize {
    pub contexts: usize,
    /// The effective number of contexts: the mean over slots of (Σw)²/Σw².
    pub effective_contexts: f64,
    pub answers: Summary,
    /// The same, with the missing article's type known.
    pub told_type: Summary,
}

#[derive(Debug, Serialize)]
pub struct Table {
    pub data: String,
    pub fingerprint: String,
    pub outfits: usize,
    pub slots: u64,
    /// Also those whose article no training outfit has.
    pub all_slots: usize,
    pub methods: Vec<MethodResult>,
    pub baselines: Vec<Baseline>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub new_article_baselines: Vec<NewBaseline>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    pub paper: &'static [PaperRow],
}

/// The oracle's bounds, for a sample of the slots.
#[derive(Debug, Serialize)]
pub struct Bounds {
    /// Customer and occasion known: no method can be better.
    pub known: Summary,
    pub known_told_type: Summary,
    /// Nothing known, with the largest draw: overstates the cross-entropy a little.
    pub unknown: Summary,
    pub unknown_told_type: Summary,
    /// The cross-entropy with nothing known, extrapolated to an infinite draw.
    pub unknown_limit: Option<f64>,
}

/// Of new articles' figures, those of one kind of answer.
type OfMethod = fn(&NewArticleFigures<Scores, Spread>) -> &Answered<Scores>;
type OfBaseline = fn(&NewBaseline) -> &Answered<Summary>;

impl Table {
    /// Fails if there are no evaluations, or if their data differs.
    pub fn new(
        evaluations: &[Evaluation],
        baselines: Vec<Baseline>,
        new_article_baselines: Vec<NewBaseline>,
        oracle: Option<&Report>,
    ) -> Result<Self> {
        let Some(first) = evaluations.first() else { bail!("there are no evaluations") };
        if let Some(other) = evaluations.iter().find(|other| other.fingerprint != first.fingerprint) {
            bail!(
                "evaluations of different data cannot be in one table: {} has fingerprint {}, {} has {}",
                first.data,
                first.fingerprint,
                other.data,
                other.fingerprint
            );
        }
        Ok(Self {
            data: first.data.clone(),
            fingerprint: first.fingerprint.clone(),
            outfits: first.outfits,
            slots: first.summary.slots,
            all_slots: first.all_slots,
            methods: MethodResult::from_evaluations(&evaluations.iter().collect::<Vec<_>>()),
            baselines,
            new_article_baselines,
            bounds: oracle.map(Bounds::new),
            paper: if first.synthetic { &PAPER } else { &[] },
        })
    }

    pub fn markdown(&self) -> String {
        let mut text = format!(
            "Validation split of {}: {} outfits, {} of their {} slots masked in turn, those with articles of training \
             outfits; ranks over these articles. ± is the standard error over seeds if a method has several runs.\n\n",
            self.data, self.outfits, self.slots, self.all_slots
        );
        text += "| method | runs | cross-entropy | recall@1 % | recall@5 % | recall@250 % | MRR | NDCG@10 | \
                 coverage@5 % | calibration error | parameters |";
        text += if self.bounds.is_some() { " share of the gap |\n" } else { "\n" };
        text += "|---|---|---|---|---|---|---|---|---|---|---|";
        text += if self.bounds.is_some() { "---|\n" } else { "\n" };
        self.methods.iter().for_each(|method| self.write_method(&mut text, method));
        for Baseline { name, summary, .. } in &self.baselines {
            write_plain(&mut text, name, summary, self.bounds.is_some());
        }
        if let Some(bounds) = &self.bounds {
            write_plain(&mut text, "oracle, customer unknown", &bounds.unknown, true);
            write_plain(&mut text, "oracle, customer known", &bounds.known, true);
            let _ = writeln!(
                text,
                "\nThe oracle answered {} of the slots and bounds every method. The share of the gap is the part \
                 of the distance between the oracle's cross-entropies with the customer unknown{} and known that \
                 a method covers.",
                bounds.known.slots,
                bounds
                    .unknown_limit
                    .map_or_else(String::new, |limit| format!(" (estimated limit {limit:.4})")),
            );
        }
        self.write_told_type(&mut text);
        self.write_new_articles(&mut text);
        if self.paper.is_empty() {
            return text;
        }
        text += "\nTable 1 of the paper, on **another data set**: its figures cannot be compared with those \
                 above.\n\n\
                 | method | cross-entropy | recall@1 % | recall@5 % | recall@250 % | parameters |\n\
                 |---|---|---|---|---|---|\n";
        for row in self.paper {
            let pair =
                |(mean, error): (f64, f64), digits: usize| format!("{mean:.digits$} ± {error:.digits$}");
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} |",
                row.method,
                pair(row.cross_entropy, 4),
                pair(row.recall_at_1, 2),
                pair(row.recall_at_5, 2),
                pair(row.recall_at_250, 2),
                HumanCount(row.parameters)
            );
        }
        text
    }

    /// The figures with the type known.
    fn write_told_type(&self, text: &mut String) {
        *text += "\nWith the missing article's type known, among the articles that are not in the outfit. The \
                  cross-entropy is in two parts: of the type, and within it.\n\n\
                  | method | of the type | within the type | recall@1 % | recall@5 % |\n|---|---|---|---|---|\n";
        for method in &self.methods {
            let told = &method.told_type;
            let _ = writeln!(
                text,
                "| {} | {:.4} | {} | {} | {} |",
                method.name(),
                method.cross_entropy.mean - told.cross_entropy.mean,
                format_spread(told.cross_entropy, 4),
                format_percent(told.recall_at_1),
                format_percent(told.recall_at_5),
            );
        }
        let baselines = self
            .baselines
            .iter()
            .map(|baseline| (baseline.name.as_str(), &baseline.summary, &baseline.told_type));
        let bounds = self.bounds.iter().flat_map(|bounds| {
            [
                ("oracle, customer unknown", &bounds.unknown, &bounds.unknown_told_type),
                ("oracle, customer known", &bounds.known, &bounds.known_told_type),
            ]
        });
        for (name, summary, told) in baselines.chain(bounds) {
            let _ = writeln!(
                text,
                "| *{name}* | {:.4} | {:.4} | {:.2} | {:.2} |",
                summary.cross_entropy.mean - told.cross_entropy.mean,
                told.cross_entropy.mean,
                100.0 * told.recall_at_1.mean,
                100.0 * told.recall_at_5.mean,
            );
        }
    }

    /// The figures of new articles, if there are any.
    fn write_new_articles(&self, text: &mut String) {
        let open =
            || self.methods.iter().filter_map(|method| Some((method.name(), method.new_articles.as_ref()?)));
        if open().next().is_none() && self.new_article_baselines.is_empty() {
            return;
        }
        *text += "\nNew articles are those that no training outfit has. All articles are candidates here, new and known.\n";
        let groups: [(&str, OfMethod, OfBaseline); 2] = [
            ("a new article", |figures| &figures.new, |baseline| &baseline.new),
            ("another article", |figures| &figures.known, |baseline| &baseline.known),
        ];
        for (what, of_method, of_baseline) in groups {
            let methods = open().map(|(name, figures)| (name, of_method(figures).clone()));
            let baselines = self.new_article_baselines.iter().map(|baseline| {
                let Answered { any, told_type } = of_baseline(baseline);
                let answered =
                    Answered { any: Scores::from_summary(any), told_type: Scores::from_summary(told_type) };
                (format!("*{}*", baseline.name), answered)
            });
            let lines: Vec<(String, Answered<Scores>)> = methods.chain(baselines).collect();
            let slots = lines[0].1.any.slots;
            let _ = writeln!(text, "\n{slots} slots have {what} as their answer.");
            if slots > 0 {
                write_answered(text, &lines);
            }
        }
        if open().next().is_some() {
            *text += "\nThe share of new articles, in %. If they are suggested as often as they are the answer, the last three are \
                      like that of the answers.\n\n\
                      | method | of articles | of answers | of the probability | of it within the type | of the first five |\n\
                      |---|---|---|---|---|---|\n";
        }
        for (name, figures) in open() {
            let Shares { of_articles, of_answers, of_probability, of_probability_within_type, of_first_five } =
                figures.shares;
            let shares = [of_articles, of_answers, of_probability, of_probability_within_type, of_first_five];
            let _ = writeln!(text, "| {name} | {} |", shares.map(format_percent).join(" | "));
        }
        let closed: Vec<String> = self
            .methods
            .iter()
            .filter(|method| method.new_articles.is_none())
            .map(MethodResult::name)
            .collect();
        if !closed.is_empty() {
            let _ = writeln!(
                text,
                "\n{} cannot suggest new articles: a run without `--attributes` knows only those of its training outfits, and ranks \
                 only these.",
                closed.join(", ")
            );
        }
    }

    /// Says which methods lose to a baseline that knows no more than they do, by their means alone.
    pub fn losses(&self) -> Vec<String> {
        self.methods.iter().filter_map(|method| self.losses_of(method)).collect()
    }

    fn losses_of(&self, method: &MethodResult) -> Option<String> {
        let equals = self.baselines.iter().filter(|baseline| !baseline.knows_type);
        let better = equals.filter_map(|Baseline { name, summary, .. }| {
            let figures = [
                ("cross-entropy", method.cross_entropy.mean - summary.cross_entropy.mean),
                ("recall@1", summary.recall_at_1.mean - method.recall_at_1.mean),
                ("recall@5", summary.recall_at_5.mean - method.recall_at_5.mean),
            ];
            let lost: Vec<&str> =
                figures.into_iter().filter(|(_, behind)| *behind > 0.0).map(|(figure, _)| figure).collect();
            (!lost.is_empty()).then(|| format!("{name} ({})", lost.join(", ")))
        });
        let better: Vec<String> = better.collect();
        (!better.is_empty()).then(|| format!("- **{} loses to** {}.", method.name(), better.join("; ")))
    }

    fn write_method(&self, text: &mut String, result: &MethodResult) {
        let _ = write!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            result.name(),
            result.runs,
            format_spread(result.cross_entropy, 4),
            format_percent(result.recall_at_1),
            format_percent(result.recall_at_5),
            format_percent(result.recall_at_250),
            format_spread(result.mrr, 4),
            format_spread(result.ndcg_at_10, 4),
            format_percent(result.coverage_at_5),
            format_spread(result.calibration_error, 4),
            HumanCount(result.parameters),
        );
        if let Some(bounds) = &self.bounds {
            let _ = write!(text, " {:.0} % |", 100.0 * bounds.share_of_gap(result.cross_entropy.mean));
        }
        text.push('\n');
    }
}

impl Bounds {
    fn new(report: &Report) -> Self {
        let unknown = &report.unknown;
        let largest = unknown.sizes.last().expect("the oracle draws at least eight contexts");
        Self {
            known: report.known.clone(),
            known_told_type: report.known_told_type.clone(),
            unknown: largest.answers.clone(),
            unknown_told_type: largest.told_type.clone(),
            unknown_limit: unknown.limit,
        }
    }

    /// The share of the gain from knowing the customer that a method achieves.
    fn share_of_gap(&self, cross_entropy: f64) -> f64 {
        let unknown = self.unknown_limit.unwrap_or(self.unknown.cross_entropy.mean);
        (unknown - cross_entropy) / (unknown - self.known.cross_entropy.mean)
    }
}

/// Writes a table of figures of the same slots.
fn write_answered(text: &mut String, lines: &[(String, Answered<Scores>)]) {
    *text += "\n| method | cross-entropy | recall@1 % | recall@5 % | recall@250 % | mean rank | \
              type known: cross-entropy | recall@1 % | recall@5 % | mean rank |\n|---|---|---|---|---|---|---|---|---|---|\n";
    for (name, Answered { any, told_type }) in lines {
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            format_spread(any.cross_entropy, 4),
            format_percent(any.recall_at_1),
            format_percent(any.recall_at_5),
            format_percent(any.recall_at_250),
            format_spread(any.mean_rank, 1),
            format_spread(told_type.cross_entropy, 4),
            format_percent(told_type.recall_at_1),
            format_percent(told_type.recall_at_5),
            format_spread(told_type.mean_rank, 1),
        );
    }
}

/// Writes a line without seeds.
fn write_plain(text: &mut String, name: &str, summary: &Summary, with_gap: bool) {
    let percent = |mean: f64| format!("{:.2}", 100.0 * mean);
    let _ = writeln!(
        text,
        "| *{name}* | | {:.4} | {} | {} | {} | {:.4} | {:.4} | | | |{}",
        summary.cross_entropy.mean,
        percent(summary.recall_at_1.mean),
        percent(summary.recall_at_5.mean),
        percent(summary.recall_at_250.mean),
        summary.mrr.mean,
        summary.ndcg_at_10.mean,
        if with_gap { " |" } else { "" },
    );
}

fn format_spread(Spread { mean, standard_error }: Spread, digits: usize) -> String {
    let error = standard_error.map_or_else(String::new, |error| format!(" ± {error:.digits$}"));
    format!("{mean:.digits$}{error}")
}

fn format_percent(Spread { mean, standard_error }: Spread) -> String {
    let standard_error = standard_error.map(|error| 100.0 * error);
    format_spread(Spread { mean: 100.0 * mean, standard_error }, 2)
}
