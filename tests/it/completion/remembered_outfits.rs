//! Whole outfits that a method remembers: what they change in an answer, and that they are named as a reason.

use atelier_core::domain::Article;
use serde_json::{Map, Value, json};

use crate::{
    harness::{
        Service, TestDatabase, apply,
        json::{list, number},
        models, on_sqlite, rows,
    },
    outfits::api::change_file,
    releases::api::copy,
};

/// The demo release's known articles.
const KNOWN: usize = 1451;

/// Replaces what a method's tables remember by outfits of articles by number; the number of those with two shared articles counts.
fn remember(tables: &[u8], outfits: &[Vec<usize>]) -> Vec<u8> {
    let (length, rest) = tables.split_at(8);
    let (header, before) = rest.split_at(usize::from_le_bytes(length.try_into().unwrap()));
    let mut header: Map<String, Value> = serde_json::from_slice(header).unwrap();
    header.retain(|name, _| !name.starts_with("memory.outfits"));
    let mut data = Vec::new();
    for (_, tensor) in header.iter_mut().filter(|(name, _)| *name != "__metadata__") {
        let place = ["/data_offsets/0", "/data_offsets/1"];
        let [from, to] =
            place.map(|end| usize::try_from(tensor.pointer(end).unwrap().as_u64().unwrap()).unwrap());
        tensor["data_offsets"] = json!([data.len(), data.len() + to - from]);
        data.extend(&before[from..to]);
    }
    let numbers: Vec<u8> = outfits
        .iter()
        .flat_map(|outfit| outfit.iter().copied().chain([KNOWN]))
        .flat_map(|article| u32::try_from(article).unwrap().to_le_bytes())
        .collect();
    let weights = [3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0_f32].map(f32::to_le_bytes).concat();
    for (name, kind, bytes) in
        [("memory.outfits", "I32", numbers), ("memory.outfits.weights", "F32", weights)]
    {
        let place = [data.len(), data.len() + bytes.len()];
        let tensor = json!({"dtype": kind, "shape": [bytes.len() / 4], "data_offsets": place});
        header.insert(name.to_owned(), tensor);
        data.extend(bytes);
    }
    let mut header = Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    [&header.len().to_le_bytes()[..], &header, &data].concat()
}

#[apply(on_sqlite)]
async fn stylists_outfits_are_named_as_reasons(db: TestDatabase) {
    let articles = rows::<Article>();
    let of = |kind: &str| articles[..KNOWN].iter().position(|article| article.kind() == kind).unwrap();
    let [coat, jeans, shirt, hat, scarf, boot] = ["coat", "jeans", "shirt", "hat", "scarf", "boot"].map(of);
    let id = |number: usize| articles[number].id.as_str();
    let folder = tempfile::tempdir().unwrap();
    let release = folder.path().join("demo");
    copy(&models().join("demo"), &release);
    crate::harness::fill(&db).await;
    let serve = async |outfits: Vec<Vec<usize>>| {
        change_file(&release, "match.safetensors", |tables| remember(&tables, &outfits));
        let service = Service::of(&db, &folder).await;
        service.ask_ok("/releases/demo/activate", json!({})).await;
        service
    };
    // What the hat's reason says of outfits, its factor, the hat's share, and all articles with such a reason.
    let ask = async |service: &Service, outfit: &[Option<usize>]| {
        let blank = outfit.iter().position(Option::is_none).unwrap().to_string();
        let filters = json!({"types": {blank: ["hat", "shirt"]}, "fit": false, "in_stock": false});
        let outfit: Vec<_> = outfit.iter().map(|article| article.map(id)).collect();
        let request =
            json!({"outfit": outfit, "method": "match", "k": 250, "explain": true, "filters": filters});
        let suggestions = service.suggest(request).await;
        let remembered =
            |one: &Value| list(&one["reasons"]).iter().find(|reason| reason["outfits"].is_object()).cloned();
        let named = list(&suggestions).iter().filter(|one| remembered(one).is_some());
        let named: Value = named.map(|one| one["article"]["id"].clone()).collect();
        let hat = list(&suggestions).iter().find(|one| one["article"]["id"] == id(hat)).expect("a hat");
        let reason = remembered(hat).unwrap_or_default();
        (reason["outfits"].clone(), reason["factor"].as_f64(), number(&hat["share"]), named)
    };
    let two = [Some(coat), None, Some(jeans)];

    // One outfit, of other articles.
    let service = serve(vec![vec![scarf, boot]]).await;
    let (reason, _, share, _) = ask(&service, &two).await;
    assert_eq!(reason, Value::Null);
    service.stop().await;

    let mut outfits =
        vec![vec![coat, jeans, hat], vec![shirt, coat, jeans, hat], vec![coat, hat], vec![shirt, coat]];
    outfits.push(vec![scarf, boot, hat]);
    outfits.extend(vec![vec![scarf, boot, shirt]; 20]);
    let service = serve(outfits).await;
    let (reason, factor, now, named) = ask(&service, &two).await;
    assert_eq!(reason, json!({"count": 2, "slots": [0, 2]}), "the hat was made with both");
    assert_eq!(named, json!([id(shirt), id(hat)]));
    let factor = factor.unwrap();
    assert!(factor > 1.1 && (now / share / factor - 1.0).abs() < 1e-3, "{share} to {now}, {factor} times");
    let (reason, ..) = ask(&service, &[Some(shirt), Some(coat), None, Some(jeans)]).await;
    assert_eq!(reason, json!({"count": 1, "slots": [0, 1, 3]}));
    let (reason, ..) = ask(&service, &[Some(coat), None]).await;
    assert_eq!(reason, Value::Null, "outfits that share one article say nothing");
    // The shirt is in so many that they speak against the hat.
    let (reason, .., named) = ask(&service, &[Some(scarf), None, Some(boot)]).await;
    assert_eq!((reason, named), (Value::Null, json!([id(shirt)])));
}
