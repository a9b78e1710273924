//! A rule as a form has it.

use atelier_core::util::zone::Zone;
use serde_json::json;

use super::fields::{AUDIENCE, Fields, FormField, Kind, Wrong, field};
use crate::completion::rules::{EFFECT_NUMBERS, Effect, Rule};

const CONDITIONS: [(&str, Kind); 6] = [
    ("types", Kind::Words),
    ("attributes", Kind::Rows),
    ("price", Kind::Range),
    ("numbers", Kind::Ranges),
    ("ids", Kind::Lines),
    ("new", Kind::Flag),
];

/// The fields that rules have besides conditions on articles and what their effects take.
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

pub(super) fn write(rule: &Rule, zone: Zone) -> Fields {
    Fields::fill(&json!(rule), &fields(Some(rule.effect)), zone)
}

pub(super) fn read(form: &Fields, zone: Zone) -> Result<Rule, Wrong> {
    form.read(&fields(form.get("effect").parse().ok()), zone)
}

/// Whether a form limits the requests.
pub(super) fn has_when(form: &Fields) -> bool {
    let names = ["features", "numbers", "stores", "methods", "outfit"];
    form.names().filter_map(|name| name.split('.').next()).any(|name| names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_clocks_show_twice_stays() {
        let zone = Zone::new("Europe/Zurich").unwrap();
        let rule: Rule = serde_json::from_value(json!({
            "effect": "exclude", "articles": {"types": ["coat"]},
            "starts_at": "2026-10-25T00:30:00Z", "ends_at": "2026-10-25T01:30:00Z",
        }))
        .unwrap();
        let mut form = write(&rule, zone);
        assert_eq!([form.get("starts_at"), form.get("ends_at")], ["2026-10-25T02:30"; 2]);
        assert_eq!(read(&form, zone).unwrap(), rule);
        form.set("ends_at", "2026-10-25T02:45");
        assert_eq!(read(&form, zone).unwrap().ends_at.as_deref(), Some("2026-10-25T00:45:00Z"), "the first");
    }
}
