//! Variants: what a basket holds of an article, which ids name as they name articles.

use std::fs;

use atelier::platform::db::Store;
use atelier_core::domain::Role;
use serde_json::{Value, json};

use crate::{
    cli::{atelier, path, run, stderr},
    harness::{
        Call, Demo, Html, NOW, Service, TestDatabase, Unconditional, apply, article, article_id, assert_has,
        contract, each,
        json::{list, text},
        json_lines, on_sqlite, pick,
    },
};

fn shirt() -> Value {
    json!({"type": "shirt", "variants": [
        {"id": "TSH-M", "size": "M", "price": "19,90", "stock": 0, "gtin": 4_006_381_333_931_u64},
        {"id": "TSH-L", "size": "L", "price": 21.9, "stock": 2, "link": "/l"},
    ]})
}

fn bulk(service: &Service, mode: &str, rows: &[Value]) -> Call {
    service.lines(format!("/articles/bulk?mode={mode}"), json_lines(rows))
}

#[apply(contract)]
async fn an_article_keeps_its_variants_and_is_known_by_them(service: Service) {
    let patch = |id: &str, change| service.patch(format!("/articles/{id}"), change);
    service.put("/articles/TSH", shirt()).is(201).await;
    let stored = json!({"id": "TSH", "type": "shirt", "in_stock": true, "sizes": ["M", "L"], "stock": {"M": 0, "L": 2}, "price": 21.9, "variants": [
        {"id": "TSH-M", "size": "M", "price": 19.9, "stock": 0, "gtin": "4006381333931"},
        {"id": "TSH-L", "size": "L", "price": 21.9, "stock": 2, "link": "/l"},
    ]});
    assert_eq!(service.json("/articles/TSH").await, stored);
    assert_eq!(service.json("/articles/TSH-L").await, stored, "by its variant's id");

    // A change of stock names the variant.
    let patched = patch("TSH-M", json!({"stock": 3, "price": 17})).ok().await;
    assert_has(&patched, json!({"id": "TSH", "stock": {"M": 3, "L": 2}}));
    let rows = [json!({"id": "TSH-M", "in_stock": false}), json!({"id": "TSH-L", "in_stock": "nein"})];
    assert_has(&bulk(&service, "merge", &rows).ok().await, json!({"added": 0, "changed": 1}));
    let variants = json!([{"price": 17, "stock": false}, {"link": "/l"}]);
    let expected = json!({"stock": {"M": 0, "L": 0}, "in_stock": false, "variants": variants});
    assert_has(&service.json("/articles/TSH").await, expected);
    let ambiguous = patch("TSH", json!({"stock": 3})).await.assert_problem(422, &["/stock"]);
    let detail = "the stock of this article follows from its variants: change them by their ids";
    assert_eq!(ambiguous["errors"][0]["detail"], detail);
    patch("TSH-M", json!({"type": "hat"})).await.assert_problem(422, &["/type"]);
    let restocked = patch("TSH-L", json!({"stock": 4})).ok().await;
    assert_has(&restocked, json!({"stock": {"M": 0, "L": 4}, "in_stock": true}));
    // What is sold in one size has one id.
    let belt = json!({"type": "belt", "price": 20, "variants": [{"id": "belt", "price": 20, "stock": 1}]});
    service.put("/articles/belt", belt).is(201).await;
    let belt = patch("belt", json!({"stock": 0, "price": 9, "brand": "Fjord"})).ok().await;
    let variants = json!([{"id": "belt", "price": 9, "stock": 0}]);
    assert_has(&belt, json!({"price": 9, "stock": 0, "brand": "Fjord", "variants": variants}));
    // New variants say the sizes and the stock anew.
    let bare = patch("TSH", json!({"variants": null})).ok().await;
    assert_eq!(bare, json!({"id": "TSH", "type": "shirt", "warnings": []}));
    service.put("/articles/TSH", shirt()).is(200).await;

    // Outfits hold articles, and two variants of one are one article twice.
    for id in ["a", "b", "c"] {
        service.put(format!("/articles/{id}"), json!({"type": "hat"})).is(201).await;
    }
    service.put("/customers/c", json!({"features": {}})).is(201).await;
    let save = |articles: Value| service.send("/outfits", json!({"customer": "c", "articles": articles}));
    let saved = save(json!(["a", "TSH-L", "b", "c"])).is(201).await.json();
    assert_eq!(saved["articles"], json!(["a", "TSH", "b", "c"]));
    let twice = save(json!(["a", "TSH-L", "b", "TSH-M"])).is(422).await.json();
    assert_eq!(twice["errors"][0]["detail"], "article \"TSH\" appears twice in the outfit");
    let again = json_lines(&[json!({"customer": "c", "articles": ["TSH-M", "c", "b", "a"]})]);
    let imported = service.lines("/outfits/bulk", again).ok().await;
    assert_eq!(imported["unchanged"], 1, "the same outfit: {imported}");

    // A deleted article's variants are free.
    service.delete("/articles/TSH").is(204).await;
    service.get("/articles/TSH-L").is(404).await;
    service.put("/articles/TSH-L", json!({"type": "shirt"})).is(201).await;
}

#[apply(contract)]
async fn ids_of_articles_and_variants_do_not_clash(service: Service) {
    service.put("/articles/TSH", shirt()).is(201).await;
    service.put("/articles/own", json!({"type": "hat", "variants": [{"id": "own"}]})).is(201).await;
    for (id, variants, pointer, detail) in [
        ("TSH-M", json!([]), "/id", "\"TSH-M\" is the id of a variant of article \"TSH\""),
        ("hat", json!([{"id": "TSH-M"}]), "/variants", "\"TSH-M\" is a variant of article \"TSH\""),
        ("hat", json!([{"id": "TSH"}]), "/variants", "\"TSH\" is the id of another article"),
        ("hat", json!([{"size": "x"}]), "/variants", "variant 1: it has no id"),
    ] {
        let body = json!({"type": "hat", "variants": variants});
        let problem = service.put(format!("/articles/{id}"), body).is(422).await.json();
        assert_eq!(problem["errors"], json!([{"pointer": pointer, "detail": detail}]));
    }
    let hat = |id: &str, variant: &str| json!({"id": id, "type": "hat", "variants": [{"id": variant}]});
    let plain = |id: &str| json!({"id": id, "type": "hat"});
    for (rows, detail) in [
        (vec![plain("TSH-M")], "article \"TSH-M\" has the id of a variant of article \"TSH\""),
        (
            vec![hat("hat", "TSH-M")],
            "the variant \"TSH-M\" of article \"hat\" is one of article \"TSH\" already",
        ),
        (
            vec![plain("hat"), hat("cap", "hat")],
            "the variant \"hat\" of article \"cap\" has the id of an article",
        ),
        (vec![hat("hat", "x"), plain("x")], "article \"x\" has the id of a variant of article \"hat\""),
    ] {
        let problem = bulk(&service, "replace", &rows).is(422).await.json();
        assert_eq!(problem["errors"], json!([{"line": rows.len(), "detail": detail}]));
    }
    // A row that replaces the article gives its old variants up.
    bulk(&service, "replace", &[hat("TSH", "TSH-S"), hat("hat", "TSH-M")]).is(200).await;
    assert_eq!(service.json("/articles/TSH-M").await["id"], "hat");
    assert_eq!(service.json("/articles/TSH-S").await["id"], "TSH");
    service.get("/articles/TSH-L").is(404).await;
}

/// A row of the article changes the price and the stock of all its variants, and what it says itself is the dearest's.
#[apply(contract)]
async fn an_article_and_its_variants_agree(service: Service) {
    service.put("/articles/TSH", shirt()).is(201).await;
    let patch = |id: &str, change| service.patch(format!("/articles/{id}"), change);
    let priced = patch("TSH", json!({"price": 9.5, "in_stock": "nein"})).ok().await;
    let variants =
        json!([{"id": "TSH-M", "price": 9.5, "stock": false}, {"id": "TSH-L", "price": 9.5, "stock": false}]);
    assert_has(&priced, json!({"price": 9.5, "in_stock": false, "variants": variants}));
    let rows = [json!({"id": "TSH", "in_stock": true}), json!({"id": "TSH-L", "price": 12})];
    bulk(&service, "merge", &rows).is(200).await;
    let variants = json!([{"price": 9.5, "stock": true}, {"price": 12, "stock": true}]);
    assert_has(
        &service.json("/articles/TSH").await,
        json!({"price": 12, "in_stock": true, "variants": variants}),
    );
    let unpriced = patch("TSH", json!({"price": null})).ok().await;
    assert_eq!(pick(&unpriced, "price variants/0/price variants/1/price"), json!([null, null, null]));
    // What a whole row says of the article is that of the variants that say nothing.
    let whole =
        json!({"type": "shirt", "price": 49.9, "variants": [{"id": "s"}, {"id": "m", "price": 91.9}]});
    service.put("/articles/whole", whole).is(201).await;
    let stored = service.json("/articles/whole").await;
    assert_eq!(pick(&stored, "price variants/0/price variants/1/price"), json!([91.9, 49.9, 91.9]));
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
    import("dark navy").await.has(["articles: 1 new, 0 changed, 4 unchanged, 1 retired"]);
    let service = Service::start(&db).await;
    assert_eq!(service.json("/articles/TSH-M").await["id"], "TSH-dark-navy");
    service.get("/articles/TSH-navy").is(404).await;
}

/// What a killed import wrote is not known by its variants, and what it replaced is.
#[apply(contract)]
async fn a_killed_import_leaves_the_variants(store: Store) {
    let hat = |id: &str, variants: Value| article(id, "hat", json!({"variants": variants}));
    let ids = ["v1", "v2", "v3"].map(article_id);
    let named = async || {
        let named = store.articles().named(&ids).await.unwrap();
        ids.iter().filter_map(|id| Some(format!("{id} {}", named.get(id)?))).collect::<Vec<_>>()
    };
    store.articles().set(&hat("a", json!([{"id": "v1"}, {"id": "v2"}])), NOW).await.unwrap();
    let moved = [hat("a", json!([{"id": "v1"}])), hat("b", json!([{"id": "v2"}, {"id": "v3"}]))];
    let mut import = store.import(NOW).await.unwrap();
    import.put(&moved).await.unwrap();
    assert_eq!(named().await, ["v1 a", "v2 a"]);
    drop(import);
    store.clean_up_imports(NOW).await.unwrap();
    assert_eq!(named().await, ["v1 a", "v2 a"]);
    let mut import = store.import(NOW).await.unwrap();
    assert_eq!(import.variants().await.unwrap().len(), 2);
    import.put(&moved).await.unwrap();
    import.commit().await.unwrap();
    assert_eq!(named().await, ["v1 a", "v2 b", "v3 b"]);
}

#[apply(on_sqlite)]
async fn a_limit_of_prices_holds_for_what_answers_show(Demo(service): Demo) {
    let coats = each(&service.json("/articles?type=coat&n=500").await["items"], "id");
    let coats: Vec<&str> = list(&coats).iter().map(text).collect();
    let change =
        |id: &&str| json!({"id": id, "price": null, "variants": [{"id": format!("{id}-M"), "price": 91.9}]});
    bulk(&service, "merge", &coats.iter().map(change).collect::<Vec<_>>()).is(200).await;
    let boot = service.json("/articles?type=boot&n=1").await["items"][0]["id"].clone();
    let under_50 = async || {
        let filters = json!({"types": {"1": ["coat"]}, "price": {"max": 50}});
        list(&service.suggest(json!({"outfit": [boot, null], "filters": filters, "k": 250})).await).to_vec()
    };
    assert!(under_50().await.is_empty());
    bulk(&service, "merge", &[json!({"id": coats[0], "price": 49.9})]).is(200).await;
    let found = under_50().await;
    let variant = &service.json(format!("/articles/{}", coats[0])).await["variants"][0];
    assert_eq!((found.len(), &variant["price"]), (1, &json!(49.9)));
    assert_eq!(pick(&found[0]["article"], "id price"), json!([coats[0], 49.9]));
}

#[apply(on_sqlite)]
async fn suggestions_name_what_the_customer_puts_into_the_basket(Demo(service): Demo) {
    // Every coat comes in two sizes, of which one is sold out.
    let coats = each(&service.json("/articles?type=coat&n=500").await["items"], "id");
    let coats: Vec<&str> = list(&coats).iter().map(text).collect();
    let change = |id: &&str| {
        let variant = |size: &str, stock: u32| json!({"id": format!("{id}-{size}"), "size": size, "stock": stock, "link": size});
        let variants = [variant("M", 1), variant("L", 0)];
        json!({"id": id, "variants": variants, "gender": null, "in_stock": true})
    };
    bulk(&service, "merge", &coats.iter().map(change).collect::<Vec<_>>()).is(200).await;
    let boot = service.json("/articles?type=boot&n=1").await["items"][0]["id"].clone();
    let first = coats[0];
    let complete = async |features: Value, mut filters: Value| {
        filters["types"] = json!({"1": ["coat"]});
        filters["exclude"] = json!([format!("{first}-L")]);
        let body = json!({"features": features, "outfit": [boot, null], "filters": filters, "k": 250});
        list(&service.suggest(body).await).to_vec()
    };
    let of_size = complete(json!({"top_size": "M"}), json!({})).await;
    assert_eq!(of_size.len(), coats.len() - 1, "one is excluded by a variant's id");
    for suggestion in of_size {
        let id = text(&suggestion["article"]["id"]);
        assert_ne!(id, first);
        let expected =
            json!({"id": format!("{id}-M"), "size": "M", "stock": 1, "link": "M", "in_stock": true});
        assert_eq!((&suggestion["variant"], suggestion.get("no_variant")), (&expected, None));
    }
    assert!(complete(json!({"top_size": "L"}), json!({})).await.is_empty(), "sold out");
    for (features, filters, expected) in [
        (json!({"top_size": "L"}), json!({"in_stock": false}), json!({"variant": {"in_stock": false}})),
        (
            json!({"top_size": "S"}),
            json!({"in_stock": false, "fit": false}),
            json!({"no_variant": "none-fits"}),
        ),
        (json!({}), json!({}), json!({"no_variant": "size-unknown", "variant": null})),
    ] {
        let found = complete(features, filters).await;
        assert!(!found.is_empty(), "{expected}");
        for suggestion in found {
            assert_has(&suggestion, &expected);
        }
    }
    let boots = json!({"outfit": [first, null], "filters": {"types": {"1": ["boot"]}}});
    assert_eq!(service.suggest(boots).await[0].get("variant"), None, "the article itself is bought");

    let stylist = service.signed_in(Role::Stylist).await;
    service.put("/customers/mona", json!({"features": {"top_size": "M"}})).is(201).await;
    let boot = boot.as_str().unwrap();
    let page = stylist.page(format!("/studio?customer=mona&slot={boot}&slot=&type=1:coat")).await;
    assert!(coats.iter().any(|id| page.contains(&format!(">M ({id}-M)</span>"))), "{page}");

    // The basket's own ids are an outfit, and feedback.
    let twice = json!({"outfit": [format!("{first}-M"), format!("{first}-L"), null, boot]});
    let answer = service.ask_ok("/complete", twice).await;
    let once = format!("{first}-L belongs to article {first}, which the outfit already has; it counts once");
    answer["warnings"].to_string().has([once]);
    assert_eq!(answer["blanks"][0]["slot"], 2);
    let filters = json!({"types": {"1": ["coat"]}});
    let body = json!({"features": {"top_size": "M"}, "outfit": [format!("{first}-M"), null], "filters": filters, "sets": 1});
    let answer = service.ask_ok("/complete", body).await;
    let suggestion = &answer["blanks"][0]["suggestions"][0];
    assert_ne!(suggestion["article"]["id"], first);
    assert_eq!(answer["sets"][0]["articles"][0]["variant"]["size"], "M");
    let completion = answer["completion_id"].as_str().unwrap();
    let event = json!({"id": "e-1", "completion_id": completion, "slot": 1, "kind": "bought",
                       "article": suggestion["variant"]["id"]});
    let recorded = service.ask_ok("/feedback", event).await;
    assert_eq!(recorded, json!({"id": "e-1", "recorded": true}));
    let events = service.store.feedback().for_training(completion).await.unwrap();
    assert_eq!(events[0].article.as_str(), suggestion["article"]["id"]);
}
