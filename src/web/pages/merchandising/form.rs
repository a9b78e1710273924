//! A rule as a form has it: every condition is a text, in which a bar separates several words.

use std::collections::BTreeMap;

use atelier_core::{
    domain::Method,
    util::{calendar, zone::Zone},
};
use serde::Deserialize;

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

    /// The form of a rule; None if it has words that the form cannot write.
    pub(super) fn new(rule: &Rule, zone: Zone) -> Option<Self> {
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
        let bare = Rule { name: None, ..rule.clone() };
        let is_whole = form.read(zone).is_ok_and(|read| read.checked().is_ok_and(|read| read == bare));
        is_whole.then_some(form)
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
            starts_at: self.value("starts_at", &mut wrong, |text| moment(text, zone)),
            ends_at: self.value("ends_at", &mut wrong, |text| moment(text, zone)),
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
    lines(text).map(|line| line.map(|(name, values)| (name, split(values)))).collect()
}

fn range_lines(ranges: &BTreeMap<String, Range>) -> String {
    let line = |(name, range): (&String, &Range)| format!("{name}: {}", range_text(*range));
    ranges.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn ranges(text: &str) -> Result<BTreeMap<String, Range>, String> {
    lines(text).map(|line| line.and_then(|(name, limits)| Ok((name, range(limits)?)))).collect()
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
    let number = text.replace(',', ".").parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("expected a number, found {text:?}"))
}

fn whole<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected a whole number, found {text:?}"))
}

fn methods(text: &str) -> Result<Vec<Method>, String> {
    split(text).iter().map(|name| name.parse::<Method>().map_err(|error| error.to_string())).collect()
}

fn moment(text: &str, zone: Zone) -> Result<String, String> {
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
        assert_eq!(RuleForm::new(&odd, zone), None);
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
