//! A form of texts: a bar separates several words, and a line has a name, a colon and its values.

use std::collections::{BTreeMap, BTreeSet};

use atelier_core::{
    domain::is_ambiguous_price,
    util::{calendar, zone::Zone},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{completion::rules::Range, steering::documents::Document};

/// What is wrong, by the names of fields.
pub(crate) type Wrong = Vec<(String, String)>;

/// The fields by their names; one that is missing is empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct Fields(BTreeMap<String, String>);

impl Fields {
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |text| text.trim())
    }

    /// A field of the conditions with this prefix.
    pub(super) fn field(&self, prefix: &str, name: &str) -> &str {
        self.get(&format!("{prefix}.{name}"))
    }

    pub(crate) fn has(&self, name: &str, text: &str) -> bool {
        self.get(name) == text
    }

    pub(super) fn has_field(&self, prefix: &str, name: &str, text: &str) -> bool {
        self.field(prefix, name) == text
    }

    pub(crate) fn take(&mut self, name: &str) -> String {
        self.0.remove(name).unwrap_or_default().trim().to_owned()
    }

    /// The names of the fields that are filled in.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, text)| !text.trim().is_empty()).map(|(name, _)| &**name)
    }

    pub(crate) fn set(&mut self, name: &str, text: &(impl ToString + ?Sized)) {
        let text = text.to_string();
        if text.is_empty() {
            self.0.remove(name)
        } else {
            self.0.insert(name.to_owned(), text)
        };
    }

    /// The form of a document's JSON.
    pub(crate) fn fill(document: &Value, fields: &[FormField], zone: Zone) -> Self {
        let mut form = Self::default();
        for field in fields {
            let Some(value) = field.find(document) else { continue };
            form.set(field.name(), &field.kind.write(value, zone));
            if field.kind == Kind::Time {
                form.set(&format!("{}.was", field.name()), value.as_str().unwrap_or_default());
            }
        }
        form
    }

    /// The form of a document, or the first field that the form cannot write as it is.
    pub(super) fn write<D: Document>(
        document: &D,
        fields: &[FormField],
        zone: Zone,
        read: impl FnOnce(&Self) -> Result<D, Wrong>,
    ) -> Result<Self, String> {
        let json = |document: D| serde_json::to_value(document.with_name(None)).unwrap_or_default();
        let form = Self::fill(&json(document.clone()), fields, zone);
        let stored = document.clone().checked().unwrap_or_else(|_| document.clone());
        let read = read(&form).map_err(|mut wrong| wrong.remove(0).0)?;
        let read = read.checked().map_err(|faults| faults[0].field.to_string())?;
        match first_other(&json(stored), &json(read)) {
            Some(field) => Err(field),
            None => Ok(form),
        }
    }

    /// The document, which is not checked yet, or what is wrong field by field.
    pub(crate) fn read<D: Document>(&self, fields: &[FormField], zone: Zone) -> Result<D, Wrong> {
        let (mut json, mut wrong) = (json!({}), Wrong::new());
        for field in fields {
            let (name, text) = (field.name(), self.get(field.name()));
            let place = field.path.split('.').fold(&mut json, |object, step| &mut object[step]);
            match field.kind {
                Kind::Words | Kind::Lines => *place = split(text).into(),
                Kind::Time if self.is_untouched(name, zone) => *place = self.field(name, "was").into(),
                _ if text.is_empty() => {}
                kind => match kind.read(text, zone) {
                    Ok(value) => *place = value,
                    Err(detail) => wrong.push((name.to_owned(), detail)),
                },
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

    /// Whether a field shows the stored time as it is: where clocks show a time twice, that says which is meant.
    fn is_untouched(&self, name: &str, zone: Zone) -> bool {
        let shown = calendar::parse_moment(self.field(name, "was")).map(|millis| zone.show(millis));
        shown.is_some_and(|shown| zone.read(&shown) == zone.read(self.get(name)))
    }
}

/// A field of a document, and how its form writes it.
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
    /// With bars between them.
    Words,
    /// One a line.
    Lines,
    /// A line for each name.
    WordLines,
    Range,
    Ranges,
}

/// The customers and stores that a rule or a look is for.
pub(super) const AUDIENCE: [(&str, Kind); 3] =
    [("when.features", Kind::WordLines), ("when.numbers", Kind::Ranges), ("when.stores", Kind::Words)];

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

/// What a field's form calls it.
fn short(path: &str) -> &str {
    path.strip_prefix("when.").or(path.strip_prefix("options.")).unwrap_or(path)
}

impl Kind {
    fn write(self, value: &Value, zone: Zone) -> String {
        match self {
            Self::Text => value.as_str().unwrap_or_default().to_owned(),
            Self::Number => value.as_f64().unwrap_or_default().to_string(),
            Self::Whole | Self::Flag => value.to_string(),
            Self::Time => {
                let millis = value.as_str().and_then(calendar::parse_moment);
                millis.map(|millis| zone.show(millis)).unwrap_or_default()
            }
            Self::Words => typed::<Vec<String>>(value).join(" | "),
            Self::Lines => typed::<Vec<String>>(value).join("\n"),
            Self::WordLines => lines_of(&typed(value), |values: &Vec<String>| values.join(" | ")),
            Self::Range => range_text(&typed(value)),
            Self::Ranges => lines_of(&typed(value), range_text),
        }
    }

    fn read(self, text: &str, zone: Zone) -> Result<Value, String> {
        Ok(match self {
            Self::Text | Self::Words | Self::Lines => text.replace("\r\n", "\n").into(),
            Self::Number => number(text)?.into(),
            Self::Whole => {
                text.parse::<u64>().map_err(|_| format!("expected a whole number, found {text:?}"))?.into()
            }
            Self::Flag => text.parse::<bool>().map_err(|_| "yes or no".to_owned())?.into(),
            Self::Time => {
                let moment = zone.read(text).map(|millis| calendar::moment(millis, 1000, true));
                moment
                    .ok_or_else(|| format!("expected a time such as 2026-11-27T09:00, found {text:?}"))?
                    .into()
            }
            Self::WordLines => words(text)?.into(),
            Self::Range => json!(range(text)?),
            Self::Ranges => json!(ranges(text)?),
        })
    }
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

pub(crate) fn split(text: &str) -> Vec<String> {
    text.split(['|', '\n']).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn lines(text: &str) -> impl Iterator<Item = Result<(String, &str), String>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| {
        let parts = line.split_once(':').map(|(name, rest)| (name.trim().to_owned(), rest.trim()));
        parts.ok_or_else(|| format!("expected a name, a colon and a value, found {line:?}"))
    })
}

fn lines_of<T>(values: &BTreeMap<String, T>, write: impl Fn(&T) -> String) -> String {
    values.iter().map(|(name, value)| format!("{name}: {}", write(value))).collect::<Vec<_>>().join("\n")
}

fn words(text: &str) -> Result<Map<String, Value>, String> {
    let mut words: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines(text) {
        let (name, values) = line?;
        words.entry(name).or_default().extend(split(values));
    }
    Ok(words.into_iter().map(|(name, values)| (name, values.into())).collect())
}

fn ranges(text: &str) -> Result<BTreeMap<String, Range>, String> {
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
fn range_text(range: &Range) -> String {
    let [min, max] =
        [range.min, range.max].map(|limit| limit.map(|limit| limit.to_string()).unwrap_or_default());
    if range.min.or(range.max).is_none() {
        String::new()
    } else {
        format!("{min} to {max}").trim().to_owned()
    }
}

fn range(text: &str) -> Result<Range, String> {
    let limits = text.split_once("to").map(|(min, max)| [min.trim(), max.trim()]);
    let [min, max] =
        limits.ok_or_else(|| format!("expected limits such as 20 to 50, 20 to, or to 50, found {text:?}"))?;
    let limit = |text: &str| if text.is_empty() { Ok(None) } else { number(text).map(Some) };
    Ok(Range { min: limit(min)?, max: limit(max)? })
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
    fn numbers_and_lines_are_not_misread() {
        for (text, found) in [("49,5", 49.5), ("0,125", 0.125), ("1.125", 1.125), ("1000,125", 1000.125)] {
            assert_eq!(number(text), Ok(found));
        }
        let error = range("1,000 to 2,000").unwrap_err();
        assert_eq!(error, "\"1,000\" can mean 1000 or 1.000: write one of these");
        assert!(number("-1,000").is_err());
        let brands = [("brand".to_owned(), json!(["Linden", "Tiber"]))].into_iter().collect();
        assert_eq!(words("brand: Linden\nbrand: Tiber"), Ok(brands));
        assert!(ranges("age: 20 to\nage: to 30").unwrap_err().contains("one line for age"));
    }
}
