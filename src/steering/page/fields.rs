//! A form of texts: a field may have several, and a condition is a row of a name with its values or limits.

use std::collections::{BTreeMap, HashSet};

use atelier_core::{
    domain::is_ambiguous_price,
    util::{calendar, zone::Zone},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{completion::rules::Range, steering::documents::Document};

/// Problems by the names of fields.
pub(crate) type Wrong = Vec<(String, String)>;

/// The texts of fields by their names; one that is missing is empty.
///
/// The rows of a field `f` are numbered: `f.0` is the name of one, `f.0.is` has its values, `f.0.min` and `f.0.max` its limits. A row
/// whose name is missing was removed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct Fields(BTreeMap<String, Vec<String>>);

/// Up to this many suggestions are all shown.
const FEW: usize = 12;

impl Fields {
    /// The last text counts: a button comes after the hidden field that it overrides.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).and_then(|texts| texts.last()).map_or("", |text| text.trim())
    }

    /// The texts of a field, each once.
    pub(super) fn all(&self, name: &str) -> Vec<String> {
        let mut seen = HashSet::new();
        let texts = self.0.get(name).into_iter().flatten().map(|text| text.replace("\r\n", "\n"));
        let texts = texts.map(|text| text.trim().to_owned());
        texts.filter(|text| !text.is_empty() && seen.insert(text.clone())).collect()
    }

    /// The same, of a field that has one a line.
    pub(super) fn lines(&self, name: &str) -> Vec<String> {
        let mut seen = HashSet::new();
        let lines = self.0.get(name).into_iter().flatten().flat_map(|text| text.lines()).map(str::trim);
        lines.filter(|line| !line.is_empty() && seen.insert(*line)).map(str::to_owned).collect()
    }

    /// Words to tick, each with whether it is chosen: these first, then those that are suggested, if they are few.
    pub(super) fn ticks(&self, name: &str, suggested: &[String]) -> Vec<(String, bool)> {
        let chosen = self.all(name);
        let few = suggested.iter().filter(|word| suggested.len() <= FEW && !chosen.contains(word));
        let others: Vec<_> = few.map(|word| (word.clone(), false)).collect();
        chosen.into_iter().map(|word| (word, true)).chain(others).collect()
    }

    /// The rows of a field by their numbers, each with its name. One that somebody filled in without a name is there, too.
    pub(super) fn rows(&self, field: &str) -> Vec<(usize, String)> {
        let row = |key: &String| key.strip_prefix(field)?.strip_prefix('.')?.parse::<usize>().ok();
        let mut rows: Vec<usize> = self.0.keys().filter_map(row).collect();
        rows.sort_unstable();
        let rows = rows.into_iter().map(|row| (row, self.get(&format!("{field}.{row}")).to_owned()));
        let is_filled = |row: usize, part: &str| !self.get(&format!("{field}.{row}.{part}")).is_empty();
        rows.filter(|(row, name)| {
            !name.is_empty() || ["is", "min", "max"].iter().any(|part| is_filled(*row, part))
        })
        .collect()
    }

    /// The number of the next row.
    pub(super) fn spare(&self, field: &str) -> usize {
        self.rows(field).last().map_or(0, |(row, _)| row + 1)
    }

    pub(crate) fn has(&self, name: &str, text: &str) -> bool {
        self.get(name) == text
    }

    pub(crate) fn take(&mut self, name: &str) -> String {
        let texts = self.0.remove(name).unwrap_or_default();
        texts.last().map(|text| text.trim().to_owned()).unwrap_or_default()
    }

    /// The names of the fields that are filled in.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let is_filled = |texts: &[String]| texts.iter().any(|text| !text.trim().is_empty());
        self.0.iter().filter(move |(_, texts)| is_filled(texts)).map(|(name, _)| &**name)
    }

    pub(crate) fn set(&mut self, name: &str, text: &(impl ToString + ?Sized)) {
        self.set_all(name, Some(text.to_string()).filter(|text| !text.is_empty()).into_iter().collect());
    }

    pub(super) fn set_all(&mut self, name: &str, texts: Vec<String>) {
        if texts.is_empty() {
            self.0.remove(name);
        } else {
            self.0.insert(name.to_owned(), texts);
        }
    }

    /// The form of a document's JSON.
    pub(crate) fn fill(document: &Value, fields: &[FormField], zone: Zone) -> Self {
        let mut form = Self::default();
        for field in fields {
            if let Some(value) = field.find(document) {
                form.write(field.name(), field.kind, value, zone);
            }
        }
        form
    }

    fn write(&mut self, name: &str, kind: Kind, value: &Value, zone: Zone) {
        match kind {
            Kind::Text => self.set(name, value.as_str().unwrap_or_default()),
            Kind::Number => self.set(name, &value.as_f64().unwrap_or_default()),
            Kind::Whole | Kind::Flag => self.set(name, value),
            Kind::Time => {
                let text = value.as_str().unwrap_or_default();
                let shown = calendar::parse_moment(text).map(|millis| zone.show(millis));
                self.set(name, &shown.unwrap_or_default());
                self.set(&format!("{name}.was"), text);
            }
            Kind::Words => self.set_all(name, typed(value)),
            Kind::Lines => self.set(name, &typed::<Vec<String>>(value).join("\n")),
            Kind::Range => self.set_range(name, typed(value)),
            Kind::Rows => {
                for (row, (own, words)) in
                    typed::<BTreeMap<String, Vec<String>>>(value).into_iter().enumerate()
                {
                    self.set(&format!("{name}.{row}"), &own);
                    self.set_all(&format!("{name}.{row}.is"), words);
                }
            }
            Kind::Ranges => {
                for (row, (own, range)) in typed::<BTreeMap<String, Range>>(value).into_iter().enumerate() {
                    self.set(&format!("{name}.{row}"), &own);
                    self.set_range(&format!("{name}.{row}"), range);
                }
            }
        }
    }

    fn set_range(&mut self, name: &str, range: Range) {
        for (limit, number) in [("min", range.min), ("max", range.max)] {
            self.set(
                &format!("{name}.{limit}"),
                &number.map(|number| number.to_string()).unwrap_or_default(),
            );
        }
    }

    /// The document, which is not checked yet, or what is wrong field by field.
    pub(crate) fn read<D: Document>(&self, fields: &[FormField], zone: Zone) -> Result<D, Wrong> {
        let (mut json, mut wrong) = (json!({}), Wrong::new());
        for field in fields {
            let place = field.path.split('.').fold(&mut json, |object, step| &mut object[step]);
            match self.value(field.name(), field.kind, zone) {
                Ok(value) => *place = value,
                Err(detail) => wrong.push((field.name().to_owned(), detail)),
            }
        }
        remove_nulls(&mut json);
        if wrong.is_empty() {
            return serde_path_to_error::deserialize(json).map_err(|error| {
                let path = error.path().to_string();
                let name = short(path.split('[').next().unwrap_or_default());
                vec![(name.trim_matches('.').to_owned(), error.inner().to_string())]
            });
        }
        Err(wrong)
    }

    fn value(&self, name: &str, kind: Kind, zone: Zone) -> Result<Value, String> {
        let text = self.get(name);
        Ok(match kind {
            Kind::Words => self.all(name).into(),
            Kind::Lines => self.lines(name).into(),
            Kind::Rows => {
                let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
                for (row, own) in self.named_rows(name)? {
                    rows.entry(own).or_default().extend(self.all(&format!("{name}.{row}.is")));
                }
                json!(rows)
            }
            Kind::Range => json!(self.range(name)?),
            Kind::Ranges => {
                let mut rows = BTreeMap::new();
                for (row, own) in self.named_rows(name)? {
                    if rows.insert(own.clone(), self.range(&format!("{name}.{row}"))?).is_some() {
                        return Err(format!("expected one row for {own}, found several"));
                    }
                }
                json!(rows)
            }
            Kind::Time if self.is_untouched(name, zone) => self.get(&format!("{name}.was")).into(),
            _ if text.is_empty() => Value::Null,
            Kind::Text => text.replace("\r\n", "\n").into(),
            Kind::Number => number(text)?.into(),
            Kind::Whole => {
                text.parse::<u64>().map_err(|_| format!("expected a whole number, found {text:?}"))?.into()
            }
            Kind::Flag => text.parse::<bool>().map_err(|_| "yes or no".to_owned())?.into(),
            Kind::Time => {
                let moment = zone.read(text).map(|millis| calendar::moment(millis, 1000, true));
                moment
                    .ok_or_else(|| format!("expected a time such as 2026-11-27T09:00, found {text:?}"))?
                    .into()
            }
        })
    }

    fn named_rows(&self, field: &str) -> Result<Vec<(usize, String)>, String> {
        let rows = self.rows(field);
        match rows.iter().find(|(_, name)| name.is_empty()) {
            Some(_) => {
                Err("a row has values but no name; choose what they are of, or empty the row".to_owned())
            }
            None => Ok(rows),
        }
    }

    fn range(&self, name: &str) -> Result<Range, String> {
        let limit = |limit: &str| {
            let text = self.get(&format!("{name}.{limit}"));
            (!text.is_empty()).then(|| number(text)).transpose()
        };
        Ok(Range { min: limit("min")?, max: limit("max")? })
    }

    /// Whether a field shows the stored time as it is: where clocks show a time twice, that says which is meant.
    fn is_untouched(&self, name: &str, zone: Zone) -> bool {
        let was = calendar::parse_moment(self.get(&format!("{name}.was")));
        was.is_some_and(|was| zone.read(&zone.show(was)) == zone.read(self.get(name)))
    }
}

/// A field of a document, and how its form has it.
#[derive(Debug, Clone)]
pub(crate) struct FormField {
    /// The steps to it, with dots.
    path: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    Whole,
    Flag,
    /// By the clock of the shop.
    Time,
    Words,
    /// One a line.
    Lines,
    /// A row of words for each name.
    Rows,
    Range,
    /// A row of limits for each name.
    Ranges,
}

/// The customers and stores that a rule or a look is for.
pub(super) const AUDIENCE: [(&str, Kind); 3] =
    [("when.features", Kind::Rows), ("when.numbers", Kind::Ranges), ("when.stores", Kind::Words)];

pub(crate) fn field((path, kind): (&str, Kind)) -> FormField {
    FormField { path: path.to_owned(), kind }
}

impl FormField {
    fn name(&self) -> &str {
        short(&self.path)
    }

    fn find<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.path.split('.').try_fold(document, |object, step| object.get(step))
    }
}

/// A field's label in its form.
fn short(path: &str) -> &str {
    path.strip_prefix("when.").or(path.strip_prefix("options.")).unwrap_or(path)
}

fn typed<T: DeserializeOwned + Default>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_default()
}

fn remove_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(remove_nulls);
    }
}

fn number(text: &str) -> Result<f64, String> {
    if text.contains(',') && is_ambiguous_price(text.trim_start_matches(['-', '+'])) {
        let (thousands, decimals) = (text.replace(',', ""), text.replace(',', "."));
        return Err(format!("{text:?} can mean {thousands} or {decimals}: write one of these"));
    }
    let number = text.replace(',', ".").parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("expected a number, found {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_not_misread() {
        for (text, found) in [("49,5", 49.5), ("0,125", 0.125), ("1.125", 1.125), ("1000,125", 1000.125)] {
            assert_eq!(number(text), Ok(found));
        }
        assert_eq!(number("1,000").unwrap_err(), "\"1,000\" can mean 1000 or 1.000: write one of these");
        assert!(number("-1,000").is_err());
    }
}
