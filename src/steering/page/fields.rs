//! A form of texts: a bar separates several words, and a line has a name, a colon and its values.

use std::collections::{BTreeMap, BTreeSet};

use atelier_core::{
    domain::is_ambiguous_price,
    util::{calendar, zone::Zone},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    completion::rules::{Range, When, Window},
    steering::documents::Document,
};

/// What is wrong, by the names of fields.
pub(super) type Wrong = Vec<(String, String)>;

/// The fields by their names; one that is missing is empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Fields(BTreeMap<String, String>);

impl Fields {
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |text| text.trim())
    }

    /// A field of the conditions with this prefix.
    pub(super) fn field(&self, prefix: &str, name: &str) -> &str {
        self.get(&format!("{prefix}.{name}"))
    }

    pub(super) fn has(&self, name: &str, text: &str) -> bool {
        self.get(name) == text
    }

    pub(super) fn has_field(&self, prefix: &str, name: &str, text: &str) -> bool {
        self.field(prefix, name) == text
    }

    pub(super) fn take(&mut self, name: &str) -> String {
        self.0.remove(name).unwrap_or_default().trim().to_owned()
    }

    /// The names of the fields that are filled in.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, text)| !text.trim().is_empty()).map(|(name, _)| &**name)
    }

    pub(super) fn set(&mut self, name: &str, text: &(impl ToString + ?Sized)) {
        let text = text.to_string();
        if text.is_empty() {
            self.0.remove(name)
        } else {
            self.0.insert(name.to_owned(), text)
        };
    }

    /// The times of a rule or a look, by the clock of the shop.
    pub(super) fn set_times(&mut self, times: [&Option<String>; 2], window: &Window, zone: Zone) {
        let millis = [window.start, window.end];
        for ((name, time), millis) in ["starts_at", "ends_at"].into_iter().zip(times).zip(millis) {
            self.set(name, &time.as_ref().map(|_| zone.show(millis)).unwrap_or_default());
            self.set(&format!("{name}.was"), time.as_deref().unwrap_or_default());
        }
    }

    pub(super) fn read_times(&self, wrong: &mut Wrong, zone: Zone) -> [Option<String>; 2] {
        ["starts_at", "ends_at"]
            .map(|name| self.value(name, wrong, |text| moment(text, self.get(&format!("{name}.was")), zone)))
    }

    /// The customers and stores for which something is.
    pub(super) fn set_audience(&mut self, when: &When) {
        self.set("features", &word_lines(&when.features));
        self.set("numbers", &range_lines(&when.numbers));
        self.set("stores", &bars(&when.stores));
    }

    pub(super) fn read_audience(&self, wrong: &mut Wrong) -> When {
        When {
            features: self.value("features", wrong, words).unwrap_or_default(),
            numbers: self.value("numbers", wrong, ranges).unwrap_or_default(),
            stores: split(self.get("stores")),
            ..When::default()
        }
    }

    /// A text that may be missing.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        Some(self.get(name).to_owned()).filter(|text| !text.is_empty())
    }

    /// The form of a document, or the first field that the form cannot write as it is.
    pub(super) fn if_faithful<D: Document + Clone>(
        self,
        document: &D,
        read: impl FnOnce(&Self) -> Result<D, Wrong>,
    ) -> Result<Self, String> {
        let json = |document: D| serde_json::to_value(document.with_name(None)).unwrap_or_default();
        let stored = document.clone().checked().unwrap_or_else(|_| document.clone());
        let read = read(&self).map_err(|mut wrong| wrong.remove(0).0)?;
        let read = read.checked().map_err(|faults| faults[0].field.to_string())?;
        match first_other(&json(stored), &json(read)) {
            Some(field) => Err(field),
            None => Ok(self),
        }
    }

    /// A field that is filled in.
    pub(super) fn value<T>(
        &self,
        name: &str,
        wrong: &mut Wrong,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = Some(self.get(name)).filter(|text| !text.is_empty())?;
        read(text).map_err(|detail| wrong.push((name.to_owned(), detail))).ok()
    }
}

/// The path of the first field in which two values differ.
fn first_other(a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let names: BTreeSet<&String> = x.keys().chain(y.keys()).collect();
            names.into_iter().find_map(|name| {
                let rest = first_other(&a[name], &b[name])?;
                Some(if rest.is_empty() { name.clone() } else { format!("{name}.{rest}") })
            })
        }
        _ => (a != b).then(String::new),
    }
}

pub(super) fn bars(words: &[String]) -> String {
    words.join(" | ")
}

pub(super) fn split(text: &str) -> Vec<String> {
    text.split(['|', '\n']).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn lines(text: &str) -> impl Iterator<Item = Result<(String, &str), String>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| {
        let parts = line.split_once(':').map(|(name, rest)| (name.trim().to_owned(), rest.trim()));
        parts.ok_or_else(|| format!("expected a name, a colon and a value, found {line:?}"))
    })
}

pub(super) fn word_lines(words: &BTreeMap<String, Vec<String>>) -> String {
    let line = |(name, values): (&String, &Vec<String>)| format!("{name}: {}", bars(values));
    words.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub(super) fn words(text: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut words: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines(text) {
        let (name, values) = line?;
        words.entry(name).or_default().extend(split(values));
    }
    Ok(words)
}

pub(super) fn range_lines(ranges: &BTreeMap<String, Range>) -> String {
    let line = |(name, range): (&String, &Range)| format!("{name}: {}", range_text(*range));
    ranges.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub(super) fn ranges(text: &str) -> Result<BTreeMap<String, Range>, String> {
    let mut ranges = BTreeMap::new();
    for line in lines(text) {
        let (name, limits) = line?;
        if ranges.insert(name.clone(), range(limits)?).is_some() {
            return Err(format!("expected one line for {name}, found several"));
        }
    }
    Ok(ranges)
}

/// `20 to 50`, `20 to`, `to 50`
pub(super) fn range_text(range: Range) -> String {
    let [min, max] =
        [range.min, range.max].map(|limit| limit.map(|limit| limit.to_string()).unwrap_or_default());
    if range.min.or(range.max).is_none() {
        String::new()
    } else {
        format!("{min} to {max}").trim().to_owned()
    }
}

pub(super) fn range(text: &str) -> Result<Range, String> {
    let limits = text.split_once("to").map(|(min, max)| [min.trim(), max.trim()]);
    let [min, max] =
        limits.ok_or_else(|| format!("expected limits such as 20 to 50, 20 to, or to 50, found {text:?}"))?;
    let limit = |text: &str| if text.is_empty() { Ok(None) } else { number(text).map(Some) };
    Ok(Range { min: limit(min)?, max: limit(max)? })
}

pub(super) fn number(text: &str) -> Result<f64, String> {
    if text.contains(',') && is_ambiguous_price(text.trim_start_matches(['-', '+'])) {
        let (thousands, decimals) = (text.replace(',', ""), text.replace(',', "."));
        return Err(format!("{text:?} can mean {thousands} or {decimals}: write one of these"));
    }
    let number = text.replace(',', ".").parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("expected a number, found {text:?}"))
}

pub(super) fn whole<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected a whole number, found {text:?}"))
}

/// `was` is the stored time: where clocks show a time twice, it says which is meant as long as nobody changes it.
fn moment(text: &str, was: &str, zone: Zone) -> Result<String, String> {
    let shown = calendar::parse_moment(was).map(|millis| zone.show(millis));
    if shown.is_some_and(|shown| zone.read(&shown) == zone.read(text)) {
        return Ok(was.to_owned());
    }
    let moment = zone.read(text).map(|millis| calendar::moment(millis, 1000, true));
    moment.ok_or_else(|| format!("expected a time such as 2026-11-27T09:00, found {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lines_are_not_misread() {
        for (text, found) in [("49,5", 49.5), ("0,125", 0.125), ("1.125", 1.125), ("1000,125", 1000.125)] {
            assert_eq!(number(text), Ok(found));
        }
        let error = range("1,000 to 2,000").unwrap_err();
        assert_eq!(error, "\"1,000\" can mean 1000 or 1.000: write one of these");
        assert!(number("-1,000").is_err());
        let brands = [("brand".to_owned(), vec!["Linden".to_owned(), "Tiber".to_owned()])];
        assert_eq!(words("brand: Linden\nbrand: Tiber"), Ok(brands.into()));
        assert!(ranges("age: 20 to\nage: to 30").unwrap_err().contains("one line for age"));
    }
}
