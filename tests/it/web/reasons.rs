//! Whether reasons name what the stylists of the demo world looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Value, json};

use super::Demo;
use crate::harness::{apply, on_sqlite};

/// Of the reasons that are shown for a type, most name a feature that the world's choice of this type depends on;
/// `atelier-training`'s tests make the file.
#[apply(on_sqlite)]
async fn name_what_the_choice_depended_on(Demo(service): Demo) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/demo-choices.json");
    let depends: BTreeMap<String, BTreeSet<String>> =
        serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let page = service.json("/customers?n=40").await;
    let customers: Vec<&str> =
        page["items"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    let kinds: Vec<&String> = depends.keys().collect();
    let (mut right, mut wrong) = (0, BTreeMap::<(String, String), usize>::new());
    for (number, customer) in customers.iter().enumerate() {
        let asked: Vec<&String> = (0..5).map(|blank| kinds[(5 * number + blank) % kinds.len()]).collect();
        let types: Value = (1..).zip(&asked).map(|(slot, kind)| (slot.to_string(), json!([kind]))).collect();
        let outfit = json!(["a-00134", null, null, null, null, null]);
        let features = json!({"occasion": "office"});
        let answer = service
            .ask_ok(
                "/complete",
                &json!({"customer": customer, "features": features, "outfit": outfit, "k": 8, "explain": true,
                    "filters": {"types": types}}),
            )
            .await;
        for (blank, kind) in answer["blanks"].as_array().unwrap().iter().zip(asked) {
            let suggestions = blank["suggestions"].as_array().unwrap();
            for reason in suggestions.iter().flat_map(|suggestion| suggestion["reasons"].as_array().unwrap())
            {
                let Some(feature) = reason["feature"].as_object().and_then(|feature| feature.keys().next())
                else {
                    continue;
                };
                if depends[kind].contains(feature) {
                    right += 1;
                } else {
                    *wrong.entry((kind.clone(), feature.clone())).or_default() += 1;
                }
            }
        }
    }
    let others: usize = wrong.values().sum();
    let share = f64::from(u32::try_from(right).unwrap()) / f64::from(u32::try_from(right + others).unwrap());
    println!(
        "{right} of {} reasons name what the choice depended on: {:.1} %",
        right + others,
        100.0 * share
    );
    assert!(right > 1000 && share >= 0.95, "{right} right, {others} wrong: {wrong:?}");
}
