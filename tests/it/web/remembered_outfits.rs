//! Whole outfits that a method remembers: what they change in an answer, and that they are named as a reason.

use atelier::config::Limits;
use atelier_core::domain::Article;
use serde_json::{Map, Value, json};

use super::{Service, models, outfits::change_file, releases::copy, rows};
use crate::harness::{TestDatabase, apply, on_sqlite};

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
    let weights: Vec<u8> =
        [3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0_f32].iter().flat_map(|weight| weight.to_le_bytes()).collect();
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
    let (coat, jeans, shirt, hat) = (of("coat"), of("jeans"), of("shirt"), of("hat"));
    let id = |number: usize| articles[number].id.as_str();
    let folder = tempfile::tempdir().unwrap();
    let release = folder.path().join("demo");
    copy(&models().join("demo"), &release);
    let ask = async |service: &Service, outfit: &[Option<&str>]| {
        let blank = outfit.iter().position(Option::is_none).unwrap().to_string();
        let filters = json!({"types": {blank: ["hat", "shirt"]}, "fit": false, "in_stock": false});
        let request =
            json!({"outfit": outfit, "method": "match", "k": 250, "explain": true, "filters": filters});
        let mut answer = service.ask_ok("/complete", &request).await;
        let Value::Array(suggestions) = answer["blanks"][0]["suggestions"].take() else { panic!("{answer}") };
        let remembered = |suggestion: &Value| {
            let reasons = suggestion["reasons"].as_array().unwrap();
            reasons.iter().find(|reason| reason["outfits"].is_object()).cloned()
        };
        let named: Vec<&Value> = suggestions
            .iter()
            .filter(|one| remembered(one).is_some())
            .map(|one| &one["article"]["id"])
            .collect();
        let hat = suggestions.iter().find(|suggestion| suggestion["article"]["id"] == id(hat));
        let hat = hat.expect("a hat");
        (remembered(hat), hat["share"].as_f64().unwrap(), json!(named))
    };
    let two = [Some(id(coat)), None, Some(id(jeans))];
    let (scarf, boot) = (of("scarf"), of("boot"));

    // One outfit, of other articles.
    change_file(&release, "match.safetensors", |tables| remember(&tables, &[vec![scarf, boot]]));
    crate::web::fill(&db).await;
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    service.ask_ok("/releases/demo/activate", &json!({})).await;
    let (reason, share, _) = ask(&service, &two).await;
    assert_eq!(reason, None);
    service.stop().await;

    change_file(&release, "match.safetensors", |tables| {
        let mut outfits =
            vec![vec![coat, jeans, hat], vec![shirt, coat, jeans, hat], vec![coat, hat], vec![shirt, coat]];
        outfits.push(vec![scarf, boot, hat]);
        outfits.extend(vec![vec![scarf, boot, shirt]; 20]);
        remember(&tables, &outfits)
    });
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    service.ask_ok("/releases/demo/activate", &json!({})).await;
    let (reason, now, named) = ask(&service, &two).await;
    let reason = reason.expect("the hat was made with both");
    assert_eq!(
        (&reason["outfits"], named),
        (&json!({"count": 2, "slots": [0, 2]}), json!([id(shirt), id(hat)]))
    );
    let factor = reason["factor"].as_f64().unwrap();
    assert!(factor > 1.1 && (now / share / factor - 1.0).abs() < 1e-3, "{share} to {now}, {factor} times");
    let (reason, ..) = ask(&service, &[Some(id(shirt)), Some(id(coat)), None, Some(id(jeans))]).await;
    assert_eq!(reason.unwrap()["outfits"], json!({"count": 1, "slots": [0, 1, 3]}));
    let (reason, ..) = ask(&service, &[Some(id(coat)), None]).await;
    assert_eq!(reason, None, "outfits that share one article say nothing");
    let (reason, _, named) = ask(&service, &[Some(id(scarf)), None, Some(id(boot))]).await;
    assert_eq!(
        (reason, named),
        (None, json!([id(shirt)])),
        "the shirt is in so many that they speak against the hat"
    );
}
