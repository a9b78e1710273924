//! Whether reasons name what the stylists of the demo world looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Value, json};

use crate::harness::{
    Demo, apply,
    json::{list, text},
    on_sqlite,
};

/// Of the reasons that are shown for a type, most name a feature that the world's choice of this type depends on;
/// `atelier-training`'s tests make the file.
#[apply(on_sqlite)]
async fn reasons_name_what_the_choice_depended_on(Demo(service): Demo) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/demo-choices.json");
    let depends: BTreeMap<String, BTreeSet<String>> =
        serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let customers = service.json("/customers?n=40").await["items"].take();
    let mut kinds = depends.keys().cycle();
    let (mut right, mut wrong) = (0, BTreeMap::<_, usize>::new());
    for customer in list(&customers) {
        let asked: Vec<&String> = kinds.by_ref().take(5).collect();
        let types: Value = (1..).zip(&asked).map(|(slot, kind)| (slot.to_string(), json!([kind]))).collect();
        let outfit = json!(["a-00134", null, null, null, null, null]);
        let request = json!({"customer": text(&customer["id"]), "features": {"occasion": "office"}, "outfit": outfit,
            "k": 8, "explain": true, "filters": {"types": types}});
        let answer = service.complete(request).await;
        for (blank, kind) in list(&answer["blanks"]).iter().zip(asked) {
            let reasons = list(&blank["suggestions"]).iter().flat_map(|one| list(&one["reasons"]));
            for feature in reasons.filter_map(|reason| reason["feature"].as_object()?.keys().next()) {
                if depends[kind].contains(feature) {
                    right += 1;
                } else {
                    *wrong.entry((kind.clone(), feature.clone())).or_default() += 1;
                }
            }
        }
    }
    let all = right + wrong.values().sum::<usize>();
    println!("{right} of {all} reasons name what the choice depended on");
    assert!(right > 1000 && 100 * right >= 95 * all, "{right} of {all} are right: {wrong:?}");
}
