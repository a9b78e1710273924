//! A refresh's results, for people and programs: `model-card.md` and `model-card.json` of the candidate.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{Gain, Segment};

/// A candidate, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    pub name: String,
    /// RFC 3339.
    pub created: String,
    pub live: Live,
    /// Why no candidate is proposed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused: Option<String>,
    pub data: Learned,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub training: Option<Training>,
    /// Both on the validation split, all slots first.
    pub figures: Vec<Segment>,
    pub notes: Vec<String>,
}

/// The release that the candidate is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Live {
    pub name: String,
    pub created: String,
    pub method: String,
    pub fingerprint: String,
}

/// The part read of the export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    pub fingerprint: String,
    /// The first and last time of an outfit that has one, and the time after which outfits are for validation; RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub learned_until: Option<String>,
    pub articles: usize,
    /// In training outfits.
    pub known_articles: usize,
    pub customers: usize,
    pub order_lines: u64,
    pub returned_lines: u64,
    pub outfits_of_orders: usize,
    /// Besides those that were saved or bought.
    pub accepted_outfits: usize,
    pub training: usize,
    pub development: usize,
    pub validation: usize,
}

/// How the candidate learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    pub method: String,
    pub seed: u64,
    /// `the live release` or `anew`, whichever knew the development split better.
    pub began_at: String,
    /// On the development split, in nats: before, by beginning.
    pub live_start: f64,
    pub new_start: f64,
    /// After the best epoch.
    pub development: f64,
    pub best_epoch: u32,
    pub epochs: u32,
    pub minutes: f64,
}

impl Card {
    pub fn is_candidate(&self) -> bool {
        self.refused.is_none()
    }

    /// The segments in which the candidate is worse, and not by chance.
    pub fn worse(&self) -> impl Iterator<Item = &Segment> {
        self.figures.iter().filter(|segment| segment.is_worse())
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a card is JSON") + "\n"
    }

    /// The card as Markdown.
    pub fn to_markdown(&self) -> String {
        self.write().expect("a string takes any text")
    }

    fn write(&self) -> Result<String, std::fmt::Error> {
        let mut text = format!("# {}\n\n", self.name);
        let Live { name, created, method, .. } = &self.live;
        match &self.refused {
            None => writeln!(text, "A candidate to follow the release {name} ({method}, made {created}).\n")?,
            Some(reason) => writeln!(text, "**No candidate**: {reason}\n")?,
        }
        let data = &self.data;
        let none = "not known".to_owned();
        let time = |time: &Option<String>| time.clone().unwrap_or_else(|| none.clone());
        writeln!(text, "| | |\n|---|---|\n| data | {} |", data.fingerprint)?;
        for (what, value) in [
            ("first outfit with a time", time(&data.from)),
            ("learned until", time(&data.learned_until)),
            ("compared until", time(&data.until)),
            ("articles", format!("{}, {} of them learned", data.articles, data.known_articles)),
            ("customers", data.customers.to_string()),
            (
                "lines of orders",
                format!(
                    "{}, {} of them returned; {} outfits",
                    data.order_lines, data.returned_lines, data.outfits_of_orders
                ),
            ),
            (
                "outfits",
                format!(
                    "{} to learn from, {} for development, {} to compare with; only accepted: {}",
                    data.training, data.development, data.validation, data.accepted_outfits
                ),
            ),
        ] {
            writeln!(text, "| {what} | {value} |")?;
        }
        if let Some(training) = &self.training {
            let Training { method, seed, began_at, live_start, new_start, development, .. } = training;
            writeln!(text, "| method | {method}, seed {seed} |")?;
            writeln!(
                text,
                "| began | at {began_at}: {live_start:.4} nats on the development split at the live weights, {new_start:.4} anew |"
            )?;
            writeln!(
                text,
                "| learned | epoch {} of {} kept, {development:.4} nats; {:.1} minutes |",
                training.best_epoch, training.epochs, training.minutes
            )?;
        }
        if !self.figures.is_empty() {
            text += "\nBoth on the same slots; differences with 95 % intervals, in points. *Of its type*: the article is among the \
                     first five of its type.\n\n\
                     | | slots | live: of its type % | candidate | difference | live: recall@5 % | candidate | difference |\n\
                     |---|---|---|---|---|---|---|---|\n";
            let show = |live: f64, candidate: f64, gain: Gain| {
                let Gain { difference, low, high } = gain;
                let [difference, low, high] = [difference, low, high].map(|points| 100.0 * points);
                format!(
                    "{:.2} | {:.2} | {difference:+.2} ({low:+.2} to {high:+.2})",
                    100.0 * live,
                    100.0 * candidate
                )
            };
            for segment in &self.figures {
                let Segment { by, value, slots, live, candidate, .. } = segment;
                let what = if by == "all" { String::new() } else { format!("{by}: ") };
                writeln!(
                    text,
                    "| {what}{value} | {slots} | {} | {} |",
                    show(live.of_type_at_5, candidate.of_type_at_5, segment.of_type_at_5),
                    show(live.recall_at_5, candidate.recall_at_5, segment.recall_at_5)
                )?;
            }
            let worse: Vec<String> =
                self.worse().map(|segment| format!("{} {}", segment.by, segment.value)).collect();
            let worse =
                if worse.is_empty() { "no segment beyond chance".to_owned() } else { worse.join(", ") };
            writeln!(text, "\nWorse at: {worse}.")?;
        }
        for note in &self.notes {
            writeln!(text, "\n- {note}")?;
        }
        Ok(text)
    }
}
