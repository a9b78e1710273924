//! A rule as a form has it: every condition is a text, in which a bar separates several words.

use std::collections::{BTreeMap, BTreeSet};

use atelier_core::{
    domain::{Method, is_ambiguous_price},
    util::{calendar, zone::Zone},
};
use serde::Deserialize;
use serde_json::Value;

use crate::service::rules::{Conditions, Effect, Range, Rule, State, When};

/// The fields by their names; one that is missing is empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct RuleForm(BTreeMap<String, String>);

impl RuleForm {
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

    /// Whether it limits the requests.
    pub(super) fn has_when(&self) -> bool {
        let is_outfit = |name: &str| name.starts_with("outfit.");
        let is_when =
            |name: &str| is_outfit(name) || ["features", "numbers", "stores", "methods"].contains(&name);
        self.0.iter().any(|(name, text)| is_when(name) && !text.trim().is_empty())
    }

    pub(super) fn set(&mut self, name: &str, text: &(impl ToString + ?Sized)) {
        let text = text.to_string();
        if text.is_empty() {
            self.0.remove(name)
        } else {
            self.0.insert(name.to_owned(), text)
        };
    }

    /// The form of a rule, or the first field that the form cannot write as it is.
    pub(super) fn new(rule: &Rule, zone: Zone) -> Result<Self, String> {
        let mut form = Self::default();
        let shown = |millis| zone.show(millis);
        form.set("effect", &rule.effect);
        for (name, number) in [("rank", rule.rank), ("least", rule.least)] {
            form.set(name, &number.map(|number| number.to_string()).unwrap_or_default());
        }
        form.set("factor", &rule.factor.map(|factor| factor.to_string()).unwrap_or_default());
        form.set("state", &rule.state);
        form.set("starts_at", &rule.starts_at.as_ref().map(|_| shown(rule.starts())).unwrap_or_default());
        form.set("ends_at", &rule.ends_at.as_ref().map(|_| shown(rule.ends())).unwrap_or_default());
        for (name, time) in [("starts_at.was", &rule.starts_at), ("ends_at.was", &rule.ends_at)] {
            form.set(name, time.as_deref().unwrap_or_default());
        }
        form.set("priority", &rule.priority);
        form.set("owner", &rule.owner.as_deref().unwrap_or_default());
        form.set("note", &rule.note.as_deref().unwrap_or_default());
        for (prefix, conditions) in
            [("articles", &rule.articles), ("others", &rule.others), ("outfit", &rule.when.outfit)]
        {
            let Conditions { types, ids, attributes, price, numbers, new } = conditions;
            form.set(&format!("{prefix}.types"), &bars(types));
            form.set(&format!("{prefix}.ids"), &bars(ids));
            form.set(&format!("{prefix}.attributes"), &word_lines(attributes));
            form.set(&format!("{prefix}.price"), &range_text(*price));
            form.set(&format!("{prefix}.numbers"), &range_lines(numbers));
            form.set(&format!("{prefix}.new"), &new.map(|new| new.to_string()).unwrap_or_default());
        }
        form.set("features", &word_lines(&rule.when.features));
        form.set("numbers", &range_lines(&rule.when.numbers));
        let methods: Vec<String> = rule.when.methods.iter().map(ToString::to_string).collect();
        form.set("methods", &bars(&methods));
        form.set("stores", &bars(&rule.when.stores));
        let fields = |rule: Rule| serde_json::to_value(Rule { name: None, ..rule }).unwrap_or_default();
        let stored = rule.clone().checked().unwrap_or_else(|_| rule.clone());
        let read = form.read(zone).map_err(|mut wrong| wrong.remove(0))?;
        let read = read.checked().map_err(|faults| faults[0].field.to_string())?;
        match first_other(&fields(stored), &fields(read)) {
            Some(field) => Err(field),
            None => Ok(form),
        }
    }

    /// The rule, which is not checked yet, or what is wrong field by field.
    pub(super) fn read(&self, zone: Zone) -> Result<Rule, Vec<String>> {
        let mut wrong = Vec::new();
        let effect = self.value("effect", &mut wrong, str::parse).unwrap_or(Effect::Exclude);
        // The form hides the fields of other effects, and keeps what is in them.
        let of_boosts = matches!(effect, Effect::Boost | Effect::Bury);
        let of_pairs = matches!(effect, Effect::Pair | Effect::NeverTogether);
        let (of_pins, of_quotas) = (effect == Effect::Pin, effect == Effect::Quota);
        let rule = Rule {
            name: None,
            effect,
            articles: self.conditions("articles", &mut wrong),
            others: if of_pairs { self.conditions("others", &mut wrong) } else { Conditions::default() },
            factor: of_boosts.then(|| self.value("factor", &mut wrong, number)).flatten(),
            rank: of_pins.then(|| self.value("rank", &mut wrong, whole)).flatten(),
            least: of_quotas.then(|| self.value("least", &mut wrong, whole)).flatten(),
            when: When {
                features: self.value("features", &mut wrong, words).unwrap_or_default(),
                numbers: self.value("numbers", &mut wrong, ranges).unwrap_or_default(),
                outfit: self.conditions("outfit", &mut wrong),
                methods: self.value("methods", &mut wrong, methods).unwrap_or_default(),
                stores: split(self.get("stores")),
            },
            state: self.value("state", &mut wrong, str::parse::<State>).unwrap_or_default(),
            starts_at: self
                .value("starts_at", &mut wrong, |text| moment(text, self.get("starts_at.was"), zone)),
            ends_at: self.value("ends_at", &mut wrong, |text| moment(text, self.get("ends_at.was"), zone)),
            priority: self.value("priority", &mut wrong, whole).unwrap_or_default(),
            owner: Some(self.get("owner").to_owned()).filter(|text| !text.is_empty()),
            note: Some(self.get("note").replace("\r\n", "\n")).filter(|text| !text.is_empty()),
        };
        if wrong.is_empty() { Ok(rule) } else { Err(wrong) }
    }

    fn conditions(&self, prefix: &str, wrong: &mut Vec<String>) -> Conditions {
        let name = |field: &str| format!("{prefix}.{field}");
        Conditions {
            types: split(self.get(&name("types"))),
            ids: split(self.get(&name("ids"))),
            attributes: self.value(&name("attributes"), wrong, words).unwrap_or_default(),
            price: self.value(&name("price"), wrong, range).unwrap_or_default(),
            numbers: self.value(&name("numbers"), wrong, ranges).unwrap_or_default(),
            new: self.value(&name("new"), wrong, |text| text.parse().map_err(|_| "yes or no".to_owned())),
        }
    }

    /// A field that is filled in.
    fn value<T>(
        &self,
        name: &str,
        wrong: &mut Vec<String>,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = Some(self.get(name)).filter(|text| !text.is_empty())?;
        read(text).map_err(|detail| wrong.push(format!("{name}: {detail}"))).ok()
    }
}

/// The path of the first field in which the rules differ.
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

fn bars(words: &[String]) -> String {
    words.join(" | ")
}

fn split(text: &str) -> Vec<String> {
    text.split(['|', '\n']).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn lines(text: &str) -> impl Iterator<Item = Result<(String, &str), String>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| {
        let parts = line.split_once(':').map(|(name, rest)| (name.trim().to_owned(), rest.trim()));
        parts.ok_or_else(|| format!("expected a name, a colon and a value, found {line:?}"))
    })
}

fn word_lines(words: &BTreeMap<String, Vec<String>>) -> String {
    let line = |(name, values): (&String, &Vec<String>)| format!("{name}: {}", bars(values));
    words.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn words(text: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut words: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines(text) {
        let (name, values) = line?;
        words.entry(name).or_default().extend(split(values));
    }
    Ok(words)
}

fn range_lines(ranges: &BTreeMap<String, Range>) -> String {
    let line = |(name, range): (&String, &Range)| format!("{name}: {}", range_text(*range));
    ranges.iter().map(line).collect::<Vec<_>>().join("\n")
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
fn range_text(range: Range) -> String {
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

fn whole<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected a whole number, found {text:?}"))
}

fn methods(text: &str) -> Result<Vec<Method>, String> {
    split(text).iter().map(|name| name.parse::<Method>().map_err(|error| error.to_string())).collect()
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_has_all_of_a_rule() {
        let zone = Zone::new("Europe/Zurich").unwrap();
        let conditions = json!({"types": ["coat", "t-shirt"], "ids": ["a b", "c,d"], "attributes": {"brand": ["A, B", "C"], "season": ["x"]},
            "price": {"min": 20, "max": 49.5}, "numbers": {"margin": {"max": 0.4}, "weight": {"min": -1}}, "new": false});
        let rule: Rule = serde_json::from_value(json!({
            "effect": "pair", "articles": conditions, "others": {"types": ["bag"]}, "state": "active", "priority": 7,
            "starts_at": "2026-07-01T08:00:00Z", "ends_at": "2026-11-27T22:59:59Z", "owner": "Ada", "note": "One\nTwo",
            "when": {"features": {"gender": ["female"]}, "numbers": {"age": {"min": 20}}, "outfit": {"new": true},
                "methods": ["match", "gsu"], "stores": ["zurich", "basel"]},
        }))
        .unwrap();
        let form = RuleForm::new(&rule, zone).expect("the form can write it");
        assert_eq!(form.get("starts_at"), "2026-07-01T10:00", "by the shop's clock");
        assert_eq!(form.get("articles.price"), "20 to 49.5");
        assert_eq!(form.read(zone).unwrap(), rule);
        // A word with a bar would come back as two.
        let odd: Rule =
            serde_json::from_value(json!({"effect": "exclude", "articles": {"attributes": {"a": ["b|c"]}}}))
                .unwrap();
        assert_eq!(RuleForm::new(&odd, zone).unwrap_err(), "articles.attributes.a");
    }

    #[test]
    fn a_time_that_clocks_show_twice_stays() {
        let zone = Zone::new("Europe/Zurich").unwrap();
        let rule: Rule = serde_json::from_value(json!({
            "effect": "exclude", "articles": {"types": ["coat"]},
            "starts_at": "2026-10-25T00:30:00Z", "ends_at": "2026-10-25T01:30:00Z",
        }))
        .unwrap();
        let mut form = RuleForm::new(&rule, zone).expect("the form can write it");
        assert_eq!([form.get("starts_at"), form.get("ends_at")], ["2026-10-25T02:30"; 2]);
        assert_eq!(form.read(zone).unwrap(), rule);
        form.set("ends_at", "2026-10-25T02:45");
        assert_eq!(form.read(zone).unwrap().ends_at.as_deref(), Some("2026-10-25T00:45:00Z"), "the first");
    }

    #[test]
    fn what_a_program_stored_opens_in_the_form() {
        let zone = Zone::new("UTC").unwrap();
        for (part, value) in [
            ("owner", json!("")),
            ("owner", json!(" Ada ")),
            ("note", json!("One\r\nTwo\n")),
            ("articles", json!({"types": [" coat"], "ids": ["a "], "attributes": {"brand": ["Linden "]}})),
            ("when", json!({"stores": [" zurich"], "features": {"gender": ["female "]}})),
        ] {
            let mut rule = json!({"effect": "exclude", "articles": {"types": ["coat"]}});
            rule[part] = value;
            let rule: Rule = serde_json::from_value(rule).unwrap();
            assert!(RuleForm::new(&rule, zone).is_ok(), "{rule:?}");
            assert!(RuleForm::new(&rule.checked().unwrap(), zone).is_ok());
        }
    }

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

    #[test]
    fn what_is_wrong_is_said_by_field() {
        let mut form = RuleForm::default();
        for (name, text) in [
            ("effect", "pin"),
            ("factor", "hidden"),
            ("rank", "first"),
            ("articles.price", "cheap"),
            ("features", "female"),
            ("ends_at", "soon"),
        ] {
            form.set(name, text);
        }
        let wrong = form.read(Zone::new("UTC").unwrap()).unwrap_err();
        let fields: Vec<&str> = wrong.iter().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(fields, ["articles.price", "rank", "features", "ends_at"]);
    }
}
