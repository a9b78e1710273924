//! Variants: what a basket holds of an article, which ids name as they name articles.

use std::{fmt::Write, fs};

use atelier::platform::db::Store;
use atelier_core::domain::Role;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Demo, Service};
use crate::{
    cli::{atelier, path, run, stderr},
    harness::{Answer, Call, TestDatabase, apply, contract, on_sqlite},
};

const LINES: &str = "application/x-ndjson";

fn shirt() -> Value {
    json!({"type": "shirt", "variants": [
        {"id": "TSH-M", "size": "M", "price": "19,90", "stock": 0, "gtin": 4_006_381_333_931_u64},
        {"id": "TSH-L", "size": "L", "price": 21.9, "stock": 2, "link": "/l"},
    ]})
}

fn problem(answer: &Answer) -> Value {
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    answer.json()["errors"].clone()
}

fn patch(service: &Service, path: &str, body: &Value) -> Call {
    service.patch(path, body)
}

#[apply(contract)]
async fn an_article_keeps_its_variants_and_is_known_by_them(service: Service) {
    assert_eq!(service.put("/articles/TSH", &shirt()).await.status(), StatusCode::CREATED);
    let stored = json!({"id": "TSH", "type": "shirt", "in_stock": true, "sizes": ["M", "L"], "stock": {"M": 0, "L": 2}, "variants": [
        {"id": "TSH-M", "size": "M", "price": 19.9, "stock": 0, "gtin": "4006381333931"},
        {"id": "TSH-L", "size": "L", "price": 21.9, "stock": 2, "link": "/l"},
    ]});
    assert_eq!(service.json("/articles/TSH").await, stored);
    assert_eq!(service.json("/articles/TSH-L").await, stored, "by its variant's id");

    // A change of stock names the variant.
    let change = json!({"stock": 3, "price": 17});
    let patched: Value = patch(&service, "/articles/TSH-M", &change).await.json();
    assert_eq!((&patched["id"], &patched["stock"]), (&json!("TSH"), &json!({"M": 3, "L": 2})));
    let lines = "{\"id\":\"TSH-M\",\"in_stock\":false}\n{\"id\":\"TSH-L\",\"in_stock\":\"nein\"}\n";
    let merged: Value = service.post("/articles/bulk?mode=merge", LINES, lines).await.json();
    assert_eq!((&merged["added"], &merged["changed"]), (&json!(0), &json!(1)));
    let now = service.json("/articles/TSH").await;
    assert_eq!((&now["stock"], &now["in_stock"]), (&json!({"M": 0, "L": 0}), &json!(false)));
    assert_eq!((&now["variants"][0]["price"], &now["variants"][0]["stock"]), (&json!(17), &json!(false)));
    assert_eq!(now["variants"][1]["link"], "/l");
    let ambiguous = patch(&service, "/articles/TSH", &json!({"stock": 3})).await;
    assert_eq!(
        problem(&ambiguous),
        json!([{"pointer": "/stock", "detail": "the stock of this article follows from its variants: change them by their ids"}])
    );
    let retyped = patch(&service, "/articles/TSH-M", &json!({"type": "hat"})).await;
    assert_eq!(problem(&retyped)[0]["pointer"], "/type");
    let restocked: Value = patch(&service, "/articles/TSH-L", &json!({"stock": 4})).await.json();
    assert_eq!((&restocked["stock"], &restocked["in_stock"]), (&json!({"M": 0, "L": 4}), &json!(true)));
    // What is sold in one size has one id.
    let belt = json!({"type": "belt", "price": 20, "variants": [{"id": "belt", "price": 20, "stock": 1}]});
    service.put("/articles/belt", &belt).await;
    let belt: Value =
        patch(&service, "/articles/belt", &json!({"stock": 0, "price": 9, "brand": "Fjord"})).await.json();
    assert_eq!((&belt["price"], &belt["stock"], &belt["brand"]), (&json!(9), &json!(0), &json!("Fjord")));
    assert_eq!(belt["variants"], json!([{"id": "belt", "price": 9, "stock": 0}]));
    // New variants say the sizes and the stock anew.
    let bare: Value = patch(&service, "/articles/TSH", &json!({"variants": null})).await.json();
    assert_eq!(bare, json!({"id": "TSH", "type": "shirt", "warnings": []}));
    service.put("/articles/TSH", &shirt()).await;

    // Outfits hold articles, and two variants of one are one article twice.
    for id in ["a", "b", "c"] {
        service.put(&format!("/articles/{id}"), &json!({"type": "hat"})).await;
    }
    service.put("/customers/c", &json!({"features": {}})).await;
    let save = async |articles: Value| {
        service.ask("/outfits", &json!({"customer": "c", "articles": articles})).await
    };
    let (status, saved) = save(json!(["a", "TSH-L", "b", "c"])).await;
    assert_eq!((status, &saved["articles"]), (201, &json!(["a", "TSH", "b", "c"])));
    let (status, twice) = save(json!(["a", "TSH-L", "b", "TSH-M"])).await;
    assert_eq!(
        (status, &twice["errors"][0]["detail"]),
        (422, &json!("article \"TSH\" appears twice in the outfit"))
    );
    let lines = "{\"customer\":\"c\",\"articles\":[\"TSH-M\",\"c\",\"b\",\"a\"]}\n";
    let imported: Value = service.post("/outfits/bulk", LINES, lines).await.json();
    assert_eq!(imported["unchanged"], 1, "the same outfit: {imported}");

    // A deleted article's variants are free.
    assert_eq!(service.delete("/articles/TSH").await.status(), StatusCode::NO_CONTENT);
    assert_eq!(service.get("/articles/TSH-L").await.status(), StatusCode::NOT_FOUND);
    assert_eq!(service.put("/articles/TSH-L", &json!({"type": "shirt"})).await.status(), StatusCode::CREATED);
}

#[apply(contract)]
async fn ids_of_articles_and_variants_do_not_clash(service: Service) {
    assert!(service.put("/articles/TSH", &shirt()).await.is_ok());
    service.put("/articles/own", json!({"type": "hat", "variants": [{"id": "own"}]})).is(201).await;
    let put = async |id: &str, variants: Value| {
        problem(&service.put(format!("/articles/{id}"), json!({"type": "hat", "variants": variants})).await)
    };
    for (id, variants, pointer, detail) in [
        ("TSH-M", json!([]), "/id", "\"TSH-M\" is the id of a variant of article \"TSH\""),
        ("hat", json!([{"id": "TSH-M"}]), "/variants", "\"TSH-M\" is a variant of article \"TSH\""),
        ("hat", json!([{"id": "TSH"}]), "/variants", "\"TSH\" is the id of another article"),
        ("hat", json!([{"id": "x"}, {"id": "x"}]), "/variants", "variant 2: its id \"x\" is another's, too"),
        ("hat", json!([{"size": "x"}]), "/variants", "variant 1: it has no id"),
    ] {
        assert_eq!(put(id, variants).await, json!([{"pointer": pointer, "detail": detail}]));
    }
    let bulk = async |lines: &str| {
        let problem: Value = service.post("/articles/bulk", LINES, lines.to_owned()).await.json();
        problem["errors"].clone()
    };
    for (lines, line, detail) in [
        (
            "{\"id\":\"TSH-M\",\"type\":\"hat\"}\n",
            1,
            "article \"TSH-M\" has the id of a variant of article \"TSH\"",
        ),
        (
            "{\"id\":\"hat\",\"type\":\"hat\",\"variants\":[{\"id\":\"TSH-M\"}]}\n",
            1,
            "the variant \"TSH-M\" of article \"hat\" is one of article \"TSH\" already",
        ),
        (
            "{\"id\":\"hat\",\"type\":\"hat\"}\n{\"id\":\"cap\",\"type\":\"hat\",\"variants\":[{\"id\":\"hat\"}]}\n",
            2,
            "the variant \"hat\" of article \"cap\" has the id of an article",
        ),
        (
            "{\"id\":\"hat\",\"type\":\"hat\",\"variants\":[{\"id\":\"x\"}]}\n{\"id\":\"x\",\"type\":\"hat\"}\n",
            2,
            "article \"x\" has the id of a variant of article \"hat\"",
        ),
    ] {
        assert_eq!(bulk(lines).await, json!([{"line": line, "detail": detail}]), "{lines}");
    }
    // A row that replaces the article gives its old variants up.
    let moved = "{\"id\":\"TSH\",\"type\":\"shirt\",\"variants\":[{\"id\":\"TSH-S\"}]}\n\
                 {\"id\":\"hat\",\"type\":\"hat\",\"variants\":[{\"id\":\"TSH-M\"}]}\n";
    assert_eq!(service.post("/articles/bulk", LINES, moved).await.status(), StatusCode::OK);
    assert_eq!(service.json("/articles/TSH-M").await["id"], "hat");
    assert_eq!(service.json("/articles/TSH-S").await["id"], "TSH");
    assert_eq!(service.get("/articles/TSH-L").await.status(), StatusCode::NOT_FOUND);
}

/// A colour is renamed in the shop's feed: the article has another id, and the same SKUs.
#[apply(contract)]
async fn a_mirrored_feed_may_move_variants(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let feed = folder.path().join("feed.tsv");
    let import = async |colour: &str| {
        let head = "id\titem_group_id\tproduct_type\tcolor\tsize\n";
        let rows = |id: &str, colour: &str| {
            format!("{id}-S\t{id}\tHats\t{colour}\tS\n{id}-M\t{id}\tHats\t{colour}\tM\n")
        };
        let others: String = (0..4).map(|n| rows(&format!("H{n}"), "red")).collect();
        fs::write(&feed, format!("{head}{others}{}", rows("TSH", colour))).unwrap();
        let output = run(atelier(&db, &["import", "--mirror", "--articles", path(&feed)])).await;
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    import("navy").await;
    let said = import("dark navy").await;
    assert!(said.contains("articles: 1 new, 0 changed, 4 unchanged, 1 retired"), "{said}");
    let service = Service::start(&db).await;
    assert_eq!(service.json("/articles/TSH-M").await["id"], "TSH-dark-navy");
    assert_eq!(service.get("/articles/TSH-navy").await.status(), StatusCode::NOT_FOUND);
}

/// What a killed import wrote is not known by its variants, and what it replaced is.
#[apply(contract)]
async fn a_killed_import_leaves_the_variants(store: Store) {
    let article = |id: &str, variants: Value| {
        let Value::Object(attributes) = json!({"variants": variants}) else { unreachable!() };
        let id = atelier_core::domain::ArticleId::new(id).unwrap();
        atelier_core::domain::Article::new(id, "hat", attributes).unwrap()
    };
    let ids = ["v1", "v2", "v3"].map(|id| atelier_core::domain::ArticleId::new(id).unwrap());
    let named = async || {
        let named = store.articles().named(&ids).await.unwrap();
        ids.iter().filter_map(|id| Some(format!("{id} {}", named.get(id)?))).collect::<Vec<_>>()
    };
    let now = std::time::SystemTime::now().into();
    store.articles().put(&article("a", json!([{"id": "v1"}, {"id": "v2"}])), now).await.unwrap();
    let mut import = store.import(now).await.unwrap();
    import
        .put(&[article("a", json!([{"id": "v1"}])), article("b", json!([{"id": "v2"}, {"id": "v3"}]))])
        .await
        .unwrap();
    assert_eq!(named().await, ["v1 a", "v2 a"]);
    drop(import);
    store.clean_up_imports().await.unwrap();
    assert_eq!(named().await, ["v1 a", "v2 a"]);
    let mut import = store.import(now).await.unwrap();
    assert_eq!(import.variants().await.unwrap().len(), 2);
    import
        .put(&[article("a", json!([{"id": "v1"}])), article("b", json!([{"id": "v2"}, {"id": "v3"}]))])
        .await
        .unwrap();
    import.commit().await.unwrap();
    assert_eq!(named().await, ["v1 a", "v2 b", "v3 b"]);
}

#[apply(on_sqlite)]
async fn suggestions_name_what_the_customer_puts_into_the_basket(demo: Demo) {
    let Demo(service) = demo;
    // Every coat comes in two sizes, of which one is sold out.
    let coats = service.json("/articles?type=coat&n=500").await["items"].clone();
    let coats: Vec<&str> =
        coats.as_array().unwrap().iter().map(|coat| coat["id"].as_str().unwrap()).collect();
    let mut lines = String::new();
    for id in &coats {
        let variant = |size: &str, stock: u32| json!({"id": format!("{id}-{size}"), "size": size, "stock": stock, "link": size});
        let variants = [variant("M", 1), variant("L", 0)];
        let change = json!({"id": id, "variants": variants, "gender": null, "in_stock": true});
        writeln!(lines, "{change}").unwrap();
    }
    let merged = service.post("/articles/bulk?mode=merge", LINES, lines).await;
    assert_eq!(merged.status(), StatusCode::OK);
    let boot = service.json("/articles?type=boot&n=1").await["items"][0]["id"].clone();
    let first = coats[0];
    let complete = async |features: Value, mut filters: Value| {
        filters["types"] = json!({"1": ["coat"]});
        filters["exclude"] = json!([format!("{first}-L")]);
        let body = json!({"features": features, "outfit": [boot, null], "filters": filters, "k": 250});
        service.ask_ok("/complete", &body).await["blanks"][0]["suggestions"].as_array().unwrap().clone()
    };
    let of_size = complete(json!({"top_size": "M"}), json!({})).await;
    assert_eq!(of_size.len(), coats.len() - 1, "one is excluded by a variant's id");
    for suggestion in of_size {
        let id = suggestion["article"]["id"].as_str().unwrap();
        assert_ne!(id, first);
        let expected =
            json!({"id": format!("{id}-M"), "size": "M", "stock": 1, "link": "M", "in_stock": true});
        assert_eq!((&suggestion["variant"], suggestion.get("no_variant")), (&expected, None));
    }
    assert!(complete(json!({"top_size": "L"}), json!({})).await.is_empty(), "sold out");
    let sold_out = complete(json!({"top_size": "L"}), json!({"in_stock": false})).await;
    assert!(!sold_out.is_empty() && sold_out.iter().all(|found| found["variant"]["in_stock"] == false));
    let unfit = complete(json!({"top_size": "S"}), json!({"in_stock": false, "fit": false})).await;
    assert!(!unfit.is_empty() && unfit.iter().all(|found| found["no_variant"] == "none-fits"));
    let unknown = complete(json!({}), json!({})).await;
    let is_unknown = |found: &Value| found["no_variant"] == "size-unknown" && found["variant"].is_null();
    assert!(!unknown.is_empty() && unknown.iter().all(is_unknown));
    let boots = json!({"outfit": [first, null], "filters": {"types": {"1": ["boot"]}}, "sets": 1});
    let answer = service.ask_ok("/complete", &boots).await;
    assert_eq!(answer["blanks"][0]["suggestions"][0].get("variant"), None, "the article itself is bought");

    let stylist = service.signed_in(Role::Stylist).await;
    service.put("/customers/mona", &json!({"features": {"top_size": "M"}})).await;
    let boot = boot.as_str().unwrap();
    let page = stylist.page(&format!("/studio?customer=mona&slot={boot}&slot=&type=1:coat")).await;
    assert!(coats.iter().any(|id| page.contains(&format!(">M ({id}-M)</span>"))), "{page}");

    // The basket's own ids are an outfit, and feedback.
    let twice = json!({"outfit": [format!("{first}-M"), format!("{first}-L"), null, boot]});
    let answer = service.ask_ok("/complete", &twice).await;
    let once = format!("{first}-L belongs to article {first}, which the outfit already has; it counts once");
    assert!(
        answer["warnings"].as_array().unwrap().iter().any(|warning| warning["detail"] == once),
        "{answer}"
    );
    assert_eq!(answer["blanks"][0]["slot"], 2);
    let filters = json!({"types": {"1": ["coat"]}});
    let body = json!({"features": {"top_size": "M"}, "outfit": [format!("{first}-M"), null], "filters": filters, "sets": 1});
    let answer = service.ask_ok("/complete", &body).await;
    let suggestion = &answer["blanks"][0]["suggestions"][0];
    assert_ne!(suggestion["article"]["id"], first);
    assert_eq!(answer["sets"][0]["articles"][0]["variant"]["size"], "M");
    let event = json!({"id": "e-1", "completion_id": answer["completion_id"], "slot": 1, "kind": "bought",
                       "article": suggestion["variant"]["id"]});
    assert_eq!(service.ask("/feedback", &event).await, (200, json!({"id": "e-1", "recorded": true})));
    let events =
        service.store.feedback().for_completion(answer["completion_id"].as_str().unwrap()).await.unwrap();
    assert_eq!(events[0].article.as_str(), suggestion["article"]["id"]);
}
