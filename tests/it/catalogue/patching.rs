//! Changing articles and customers in part, versions of them, and compressed bodies.

use atelier::config::Limits;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Call, Html, Service, TestDatabase, apply, assert_has, contract, gzip, on_sqlite};

fn patch(service: &Service, path: &str, body: &Value) -> Call {
    service.call(Method::PATCH, path).body("application/merge-patch+json", body.to_string())
}

#[apply(contract)]
async fn a_patch_changes_what_it_names(service: Service) {
    let coat = json!({"type": "coat", "colour": "red", "price": 79, "stock": {"S": 1, "M": 2}});
    service.put("/articles/a", &coat).is(201).await;
    let change = json!({"in_stock": "nein", "colour": null, "stock": {"M": 0, "S": null}, "id": "a"});
    let answered = patch(&service, "/articles/a", &change).ok().await;
    let expected = json!({"id": "a", "type": "coat", "price": 79, "in_stock": false, "stock": {"M": 0}});
    assert_has(&answered, &expected);
    assert_has(&answered, json!({"warnings": [], "colour": null}));
    assert_eq!(service.json("/articles/a").await, expected);
    let retyped = service.patch("/articles/a", json!({"type": "parka"})).ok().await;
    assert_eq!(retyped["type"], "parka", "also as application/json");
    let revision = service.store.articles().revision().await.unwrap();
    patch(&service, "/articles/a", &json!({})).is(200).await;
    assert_eq!(service.store.articles().revision().await, Ok(revision), "nothing changed");
    // A patch adds nothing.
    patch(&service, "/articles/b", &coat).is(404).await;
    // An id like others.
    service.put("/articles/bulk", &coat).is(201).await;
    patch(&service, "/articles/bulk", &json!({"price": 1})).is(200).await;

    let features = json!({"age": 28, "gender": "female", "fit": "slim"});
    service.put("/customers/c", json!({"features": features})).is(201).await;
    let change = json!({"features": {"age": 29, "fit": null, "mood": "good"}});
    let changed = patch(&service, "/customers/c", &change).ok().await;
    assert_eq!(changed["features"], json!({"age": 29, "gender": "female", "mood": "good"}));
    assert_eq!(changed["warnings"][0]["pointer"], "/features/mood");
    assert_eq!(service.json("/customers/c").await["features"], changed["features"]);
    patch(&service, "/customers/d", &json!({"features": {}})).is(404).await;
    assert_eq!(service.actions(1).await, ["customer.put c"]);
}

#[apply(on_sqlite)]
async fn what_a_patch_leaves_invalid_is_refused(service: Service) {
    service.put("/articles/a", json!({"type": "coat", "price": 79})).is(201).await;
    service.put("/customers/c", json!({"features": {"age": 28}})).is(201).await;
    for (path, body, pointer) in [
        ("/articles/a", json!({"type": null}), "/type"),
        ("/articles/a", json!({"price": "cheap"}), "/price"),
        ("/articles/a", json!({"id": "b"}), "/id"),
        ("/articles/a", json!({"x": ["\u{0}"]}), "/x"),
        ("/articles/a", json!([]), ""),
        ("/customers/c", json!({"features": {"age": "old"}}), "/features/age"),
        ("/customers/c", json!({"features": null}), "/features"),
        ("/customers/c", json!({"age": 29}), "/age"),
        ("/customers/c", json!({"id": "d"}), "/id"),
    ] {
        let problem = patch(&service, path, &body).await.assert_problem(422, &[pointer]);
        assert_eq!(problem["code"], "invalid", "{body}");
    }
    // One of the values would be lost.
    let twice = r#"{"customer": "c", "articles": ["a"], "features": {"age": 29, "age": 30}}"#;
    for (method, path, body) in [
        (Method::PUT, "/articles/a", r#"{"type": "coat", "price": 1, "price": 2}"#),
        (Method::PATCH, "/articles/a", r#"{"type": "coat", "price": 1, "price": 2}"#),
        (Method::PUT, "/customers/c", r#"{"features": {"age": 29, "age": 30}}"#),
        (Method::PATCH, "/customers/c", r#"{"features": {"age": 29, "age": 30}}"#),
        (Method::POST, "/outfits", twice),
    ] {
        let refused = service.call(method, path).body("application/json", body).is(422).await;
        refused.text().has(["appears twice"]);
    }
    assert_eq!(service.json("/articles/a").await, json!({"id": "a", "type": "coat", "price": 79}));
    assert_eq!(service.json("/customers/c").await["features"], json!({"age": 28}));
    // The other kind of patch has other rules.
    service.call(Method::PATCH, "/articles/a").body("application/json-patch+json", "[]").is(415).await;
}

/// Each changes another attribute, so none of them may overwrite the others' changes.
#[apply(contract)]
async fn patches_at_the_same_time_are_all_kept(service: Service) {
    service.put("/articles/a", json!({"type": "coat"})).is(201).await;
    service.put("/customers/c", json!({"features": {}})).is(201).await;
    let changes = (0..12).map(|number| {
        let change = json!({format!("n{number}"): number});
        let article = patch(&service, "/articles/a", &change).is(200);
        let customer = patch(&service, "/customers/c", &json!({"features": change})).is(200);
        async { (article.await, customer.await) }
    });
    join_all(changes).await;
    let (article, customer) = (service.json("/articles/a").await, service.json("/customers/c").await);
    for number in 0..12 {
        assert_eq!(article[format!("n{number}")], number);
        assert_eq!(customer["features"][format!("n{number}")], number);
    }
}

#[apply(contract)]
async fn a_stream_of_patches_keeps_the_rest(service: Service) {
    let bulk =
        |path: &str, query: &str, lines: &'static str| service.lines(format!("/{path}/bulk?{query}"), lines);
    service.put("/articles/a", json!({"type": "coat", "colour": "red", "in_stock": true})).is(201).await;
    service.put("/articles/b", json!({"type": "hat", "colour": "blue"})).is(201).await;
    let lines = "{\"id\":\"a\",\"in_stock\":false}\n{\"id\":\"new\",\"type\":\"boot\",\"price\":9}\n\
                 {\"id\":\"unknown\",\"in_stock\":true}\n{\"id\":\"b\",\"price\":\"cheap\"}\n{\"id\":\"b\",\"colour\":null}\n";
    let refused = bulk("articles", "mode=merge", lines).is(422).await.json();
    let detail =
        "nothing was stored: 3 of 5 rows are bad; fix them, or store the 2 good ones with skip_bad=true";
    assert_eq!(refused["detail"], detail);
    assert_eq!(service.json("/articles/a").await["in_stock"], true);
    let brought = bulk("articles", "mode=merge&skip_bad=true", lines).ok().await;
    assert_has(&brought, json!({"bad": 3, "added": 1, "changed": 1, "errors": [{}, {}, {}]}));
    let errors = [
        "a price is a number of 0 or more",
        "article \\\"b\\\" is already in line 4",
        "there is no article \\\"unknown\\\" in the catalogue, and without a type",
    ];
    brought["errors"].to_string().has(errors);
    let kept = json!({"id": "a", "type": "coat", "colour": "red", "in_stock": false});
    assert_eq!(service.json("/articles/a").await, kept);
    assert_eq!(service.json("/articles/new").await["type"], "boot");
    let entry = service.log(1).await.remove(0);
    assert_eq!(Value::from(entry.details), json!({"added": 1, "changed": 1, "bad": 3}));

    service.put("/customers/c", json!({"features": {"age": 28, "fit": "slim"}})).is(201).await;
    let features = async |id: &str| service.json(format!("/customers/{id}")).await["features"].clone();
    let lines = "{\"id\":\"c\",\"features\":{\"fit\":null,\"height\":170}}\n{\"id\":\"d\",\"features\":{\"age\":30}}\n";
    bulk("customers", "mode=merge", lines).is(200).await;
    assert_eq!(features("c").await, json!({"age": 28, "height": 170}));
    assert_eq!(features("d").await, json!({"age": 30}));
    bulk("customers", "mode=replace", "{\"id\":\"c\",\"features\":{\"age\":31}}\n").is(200).await;
    assert_eq!(features("c").await, json!({"age": 31}));
    bulk("customers", "mode=mix", "").is(422).await;
}

#[apply(contract)]
async fn a_version_follows_every_change(service: Service) {
    for (path, body, other) in [
        ("/articles/a", json!({"type": "coat"}), json!({"type": "coat", "price": 1})),
        ("/customers/c", json!({"features": {}}), json!({"features": {"age": 28}})),
    ] {
        let put = async |body: &Value| service.put(path, body).await.header("etag").to_owned();
        let get = async || service.get(path).await.header("etag").to_owned();
        let first = put(&body).await;
        assert!(first.starts_with('"') && first.ends_with('"') && first.len() > 20, "{first}: a strong tag");
        assert_eq!(get().await, first);
        assert_eq!(put(&body).await, first, "nothing changed");
        let second = put(&other).await;
        assert_ne!(second, first);
        let third = put(&body).await;
        assert!(third != first && third != second, "the same contents after a change");
        let patched = patch(&service, path, &other).await;
        assert_eq!(patched.header("etag"), get().await);
        service.delete(path).is(204).await;
        // Also within the same millisecond.
        assert_ne!(put(&other).await, patched.header("etag"), "another after it was deleted");
    }
}

#[apply(contract)]
async fn only_the_expected_version_is_changed(service: Service) {
    use Method as M;
    for (path, body, other) in [
        ("/articles/a", json!({"type": "coat", "price": 5}), json!({"type": "hat"})),
        ("/customers/c", json!({"features": {"age": 28}}), json!({"features": {"age": 30}})),
    ] {
        let send =
            |method: M, name: &str, tag: &str| service.call(method, path).header(name, tag).json(&body);
        let stale = service.put(path, &body).await.header("etag").to_owned();
        let current = service.put(path, &other).await.header("etag").to_owned();
        for method in [M::PUT, M::PATCH, M::DELETE, M::GET] {
            let problem = send(method.clone(), "if-match", &stale).is(412).await.json();
            assert_eq!(problem["code"], "precondition-failed");
            problem["detail"].as_str().unwrap().has([&current]);
            send(method.clone(), "if-match", "nonsense").is(422).await;
            // No version is the current one.
            send(method, "if-match", "").is(412).await;
        }
        // It exists, and tags are compared strongly.
        send(M::PUT, "if-none-match", "*").is(412).await;
        send(M::PUT, "if-match", &format!("W/{current}")).is(412).await;
        assert_eq!(service.get(path).await.header("etag"), current, "nothing was changed");

        let patched = send(M::PATCH, "if-match", &format!("{stale}, {current}")).is(200).await;
        let next = patched.header("etag");
        let same = send(M::PUT, "if-match", next).is(200).await;
        assert_eq!(same.header("etag"), next, "the same contents");
        send(M::PUT, "if-match", "*").is(200).await;
        send(M::DELETE, "if-match", next).is(204).await;
        // There is nothing to replace.
        for (method, status) in [(M::PUT, 412), (M::PATCH, 404), (M::DELETE, 404)] {
            send(method, "if-match", "*").is(status).await;
        }
        send(M::PUT, "if-none-match", "*").is(201).await;
        // No version is refused.
        send(M::PUT, "if-none-match", "").is(200).await;
    }
}

#[apply(contract)]
async fn one_of_many_creators_wins(service: Service) {
    let creations = (0..8).map(|number| {
        let put = service.put("/articles/a", json!({"type": "coat", "n": number}));
        async { put.header("if-none-match", "*").await.status }
    });
    let mut statuses = join_all(creations).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 412, 412, 412, 412, 412, 412, 412]);
}

#[apply(on_sqlite)]
async fn a_caller_with_the_version_gets_no_body(service: Service) {
    let tag = service.put("/articles/a", json!({"type": "coat"})).await.header("etag").to_owned();
    let get = |tags: &str| service.get("/articles/a").header("if-none-match", tags);
    for tags in [format!("\"x\", W/{tag}"), "*".to_owned()] {
        let answer = get(&tags).is(304).await;
        assert_eq!((answer.header("etag"), &*answer.text()), (&*tag, ""), "{tags}");
    }
    for (other, status) in [("\"x\"", 200), ("", 200), (" , ,", 200), ("x", 422)] {
        get(other).is(status).await;
    }
    for listed in [format!("\"a, b\",{tag}"), format!(",{tag},,"), format!("\"x\", {tag}")] {
        get(&listed).is(304).await;
    }
    let wrong = "a|\"a\", b|W/a|\"a|b\"|a\"b\"|\"a\"b|\"a\"b\"|\"a\" \"b\"|\"a\", *";
    for wrong in wrong.split('|') {
        let problem = get(wrong).is(422).await.json();
        assert_eq!(problem["errors"][0]["parameter"], "if-none-match", "{wrong}");
    }
}

#[apply(on_sqlite)]
async fn compressed_bodies_are_read_up_to_the_limit(db: TestDatabase) {
    let limits = Limits { body_bytes: 1 << 16, bulk_bytes: 1 << 20, ..Limits::default() };
    let service = Service::start_with(&db, limits).await;
    let put = |path: &str, encoding: &str, body: Vec<u8>| {
        let call = service.call(Method::PUT, path).header("content-encoding", encoding);
        call.body("application/json", body)
    };
    let bulk = |body: Vec<u8>| service.lines("/articles/bulk", body).header("content-encoding", "gzip");
    let coat = json!({"type": "coat", "colour": "red"}).to_string().into_bytes();
    let packed = gzip(&coat);
    for (path, encoding, body) in [
        ("/articles/a", "gzip", &packed),
        ("/articles/b", "X-GZIP", &packed),
        ("/articles/c", "identity", &coat),
    ] {
        put(path, encoding, body.clone()).is(201).await;
        assert_eq!(service.json(path).await["colour"], "red");
    }
    let lines: Vec<String> =
        (0..9000).map(|n| format!("{{\"id\":\"a-{n}\",\"type\":\"coat\",\"n\":{n}}}\n")).collect();
    assert_eq!(bulk(gzip(lines.concat().as_bytes())).ok().await["added"], 9000);

    for encoding in ["br", "deflate", "gzip, gzip"] {
        let answer = put("/articles/a", encoding, packed.clone()).is(415).await;
        assert_eq!(answer.header("accept-encoding"), "gzip");
        assert_eq!(answer.json()["code"], "unsupported-encoding");
    }
    // A megabyte of spaces is a kilobyte.
    for (status, body) in
        [(413, gzip(&vec![b' '; 1 << 24])), (400, packed[..packed.len() / 2].to_vec()), (400, coat)]
    {
        put("/articles/a", "gzip", body.clone()).await.assert_problem(status, &[]);
        bulk(body).await.assert_problem(status, &[]);
    }
    // Without the header it is not inflated.
    let plain = service.call(Method::PUT, "/articles/a").body("application/json", packed.clone());
    for call in [plain, service.lines("/articles/bulk", packed)] {
        let answer = call.await;
        assert!([400, 422].contains(&answer.status), "{}", answer.text());
    }
}
