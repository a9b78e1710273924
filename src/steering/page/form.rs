//! A rule as a form has it.

use atelier_core::{domain::Method, util::zone::Zone};

use super::fields::{
    Fields, Wrong, bars, number, range, range_lines, range_text, ranges, split, whole, word_lines, words,
};
use crate::completion::rules::{Conditions, Effect, Rule, State, When};

/// The form of a rule, or the first field that the form cannot write as it is.
pub(super) fn write(rule: &Rule, zone: Zone) -> Result<Fields, String> {
    let mut form = Fields::default();
    form.set("effect", &rule.effect);
    for (name, number) in [("rank", rule.rank), ("least", rule.least)] {
        form.set(name, &number.map(|number| number.to_string()).unwrap_or_default());
    }
    form.set("factor", &rule.factor.map(|factor| factor.to_string()).unwrap_or_default());
    form.set("state", &rule.state);
    form.set_times([&rule.starts_at, &rule.ends_at], &rule.window(), zone);
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
    form.set_audience(&rule.when);
    let methods: Vec<String> = rule.when.methods.iter().map(ToString::to_string).collect();
    form.set("methods", &bars(&methods));
    form.if_faithful(rule, |form| read(form, zone))
}

/// The rule, which is not checked yet, or what is wrong field by field.
pub(super) fn read(form: &Fields, zone: Zone) -> Result<Rule, Wrong> {
    let mut wrong = Wrong::new();
    let effect = form.value("effect", &mut wrong, str::parse).unwrap_or(Effect::Exclude);
    // The form hides the fields of other effects, and keeps what is in them.
    let takes = |field: &str| effect.about().takes == field;
    let mut rule = Rule {
        name: None,
        effect,
        articles: conditions(form, "articles", &mut wrong),
        others: if takes("others") { conditions(form, "others", &mut wrong) } else { Conditions::default() },
        factor: takes("factor").then(|| form.value("factor", &mut wrong, number)).flatten(),
        rank: takes("rank").then(|| form.value("rank", &mut wrong, whole)).flatten(),
        least: takes("least").then(|| form.value("least", &mut wrong, whole)).flatten(),
        when: When {
            outfit: conditions(form, "outfit", &mut wrong),
            methods: form.value("methods", &mut wrong, methods).unwrap_or_default(),
            ..form.read_audience(&mut wrong)
        },
        state: form.value("state", &mut wrong, str::parse::<State>).unwrap_or_default(),
        starts_at: None,
        ends_at: None,
        priority: form.value("priority", &mut wrong, whole).unwrap_or_default(),
        owner: form.text("owner"),
        note: form.text("note").map(|note| note.replace("\r\n", "\n")),
    };
    [rule.starts_at, rule.ends_at] = form.read_times(&mut wrong, zone);
    if wrong.is_empty() { Ok(rule) } else { Err(wrong) }
}

fn conditions(form: &Fields, prefix: &str, wrong: &mut Wrong) -> Conditions {
    let name = |field: &str| format!("{prefix}.{field}");
    Conditions {
        types: split(form.field(prefix, "types")),
        ids: split(form.field(prefix, "ids")),
        attributes: form.value(&name("attributes"), wrong, words).unwrap_or_default(),
        price: form.value(&name("price"), wrong, range).unwrap_or_default(),
        numbers: form.value(&name("numbers"), wrong, ranges).unwrap_or_default(),
        new: form.value(&name("new"), wrong, |text| text.parse().map_err(|_| "yes or no".to_owned())),
    }
}

/// Whether a form limits the requests.
pub(super) fn has_when(form: &Fields) -> bool {
    form.names().any(|name| {
        name.starts_with("outfit.") || ["features", "numbers", "stores", "methods"].contains(&name)
    })
}

fn methods(text: &str) -> Result<Vec<Method>, String> {
    split(text).iter().map(|name| name.parse::<Method>().map_err(|error| error.to_string())).collect()
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
        let form = write(&rule, zone).expect("the form can write it");
        assert_eq!(form.get("starts_at"), "2026-07-01T10:00", "by the shop's clock");
        assert_eq!(form.get("articles.price"), "20 to 49.5");
        assert_eq!(read(&form, zone).unwrap(), rule);
        // A word with a bar would come back as two.
        let odd: Rule =
            serde_json::from_value(json!({"effect": "exclude", "articles": {"attributes": {"a": ["b|c"]}}}))
                .unwrap();
        assert_eq!(write(&odd, zone).unwrap_err(), "articles.attributes.a");
    }

    #[test]
    fn a_time_that_clocks_show_twice_stays() {
        let zone = Zone::new("Europe/Zurich").unwrap();
        let rule: Rule = serde_json::from_value(json!({
            "effect": "exclude", "articles": {"types": ["coat"]},
            "starts_at": "2026-10-25T00:30:00Z", "ends_at": "2026-10-25T01:30:00Z",
        }))
        .unwrap();
        let mut form = write(&rule, zone).expect("the form can write it");
        assert_eq!([form.get("starts_at"), form.get("ends_at")], ["2026-10-25T02:30"; 2]);
        assert_eq!(read(&form, zone).unwrap(), rule);
        form.set("ends_at", "2026-10-25T02:45");
        assert_eq!(read(&form, zone).unwrap().ends_at.as_deref(), Some("2026-10-25T00:45:00Z"), "the first");
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
            assert!(write(&rule, zone).is_ok(), "{rule:?}");
            assert!(write(&rule.checked().unwrap(), zone).is_ok());
        }
    }

    #[test]
    fn what_is_wrong_is_said_by_field() {
        let mut form = Fields::default();
        let filled = "effect: pin, factor: hidden, rank: first, articles.price: cheap, features: female, ends_at: soon";
        for (name, text) in filled.split(", ").filter_map(|field| field.split_once(": ")) {
            form.set(name, text);
        }
        let wrong = read(&form, Zone::new("UTC").unwrap()).unwrap_err();
        let fields: Vec<&str> = wrong.iter().map(|(field, _)| &**field).collect();
        assert_eq!(fields, ["articles.price", "rank", "features", "ends_at"]);
    }
}
