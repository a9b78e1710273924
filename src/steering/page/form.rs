//! A rule as a form has it.

use atelier_core::util::zone::Zone;

use super::fields::{AUDIENCE, Fields, FormField, Kind, Wrong, field};
use crate::completion::rules::{EFFECT_NUMBERS, Effect, Rule};

const CONDITIONS: [(&str, Kind); 6] = [
    ("types", Kind::Words),
    ("attributes", Kind::WordLines),
    ("price", Kind::Range),
    ("numbers", Kind::Ranges),
    ("ids", Kind::Words),
    ("new", Kind::Flag),
];

/// The fields that rules have beside conditions on articles and what their effects take.
const FIELDS: [(&str, Kind); 8] = [
    ("effect", Kind::Text),
    ("when.methods", Kind::Words),
    ("state", Kind::Text),
    ("starts_at", Kind::Time),
    ("ends_at", Kind::Time),
    ("priority", Kind::Whole),
    ("owner", Kind::Text),
    ("note", Kind::Text),
];

/// The fields of a rule with this effect. The form hides those of other effects, and keeps what is in them.
fn fields(effect: Option<Effect>) -> Vec<FormField> {
    let takes = effect.map_or("", |effect| effect.about().takes);
    let own = EFFECT_NUMBERS.iter().filter(|number| number.name == takes);
    let own = own.map(|number| (number.name, if number.is_whole { Kind::Whole } else { Kind::Number }));
    let conditions =
        ["articles", "others", "when.outfit"].into_iter().filter(|of| *of != "others" || takes == "others");
    let conditions =
        conditions.flat_map(|of| CONDITIONS.map(|(name, kind)| field((&format!("{of}.{name}"), kind))));
    own.map(field).chain(conditions).chain(AUDIENCE.map(field)).chain(FIELDS.map(field)).collect()
}

/// The form of a rule, or the first field that the form cannot write as it is.
pub(super) fn write(rule: &Rule, zone: Zone) -> Result<Fields, String> {
    Fields::write(rule, &fields(Some(rule.effect)), zone, |form| read(form, zone))
}

pub(super) fn read(form: &Fields, zone: Zone) -> Result<Rule, Wrong> {
    form.read(&fields(form.get("effect").parse().ok()), zone)
}

/// Whether a form limits the requests.
pub(super) fn has_when(form: &Fields) -> bool {
    let names = ["features", "numbers", "stores", "methods"];
    form.names().any(|name| name.starts_with("outfit.") || names.contains(&name))
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
        assert_eq!(fields, ["rank", "articles.price", "features", "ends_at"]);
    }
}
