//! Changing articles and customers in part, versions of them, and compressed bodies.

use std::io::Write;

use atelier::config::Limits;
use flate2::{Compression, write::GzEncoder};
use reqwest::Method;
use serde_json::{Value, json};

use super::Service;
use crate::harness::{Answer, Call, TestDatabase, apply, contract, on_sqlite};

const PATCH: &str = "application/merge-patch+json";
const NDJSON: &str = "application/x-ndjson";

fn patch(service: &Service, path: &str, body: &Value) -> Call {
    service.call(Method::PATCH, path).body(PATCH, body.to_string())
}

async fn problem(answer: Answer) -> (u16, String, String) {
    let status = answer.status();
    let problem: Value = answer.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (status, text(&problem["code"]), text(&problem["errors"][0]["pointer"]))
}

#[apply(on_sqlite)]
async fn a_patch_changes_what_it_names(service: Service) {
    let coat = json!({"type": "coat", "colour": "red", "price": 79, "stock": {"S": 1, "M": 2}});
    service.put("/articles/a", &coat).await;
    let change = json!({"in_stock": "nein", "colour": null, "stock": {"M": 0, "S": null}, "id": "a"});
    let answer = patch(&service, "/articles/a", &change).is(200).await;
    let expected = json!({"id": "a", "type": "coat", "price": 79, "in_stock": false, "stock": {"M": 0}});
    let mut answered: Value = answer.json();
    assert_eq!(answered.as_object_mut().unwrap().remove("warnings"), Some(json!([])));
    assert_eq!(answered, expected);
    assert_eq!(service.json("/articles/a").await, expected);
    let retyped = service.patch("/articles/a", json!({"type": "parka"})).await.json();
    assert_eq!(retyped["type"], "parka", "also as application/json");
    let revision = service.store.articles().revision().await.unwrap();
    patch(&service, "/articles/a", &json!({})).is(200).await;
    assert_eq!(service.store.articles().revision().await, Ok(revision), "nothing changed");
    assert_eq!(patch(&service, "/articles/b", &coat).await.status(), 404, "a patch adds nothing");
    service.put("/articles/bulk", &coat).await;
    assert_eq!(
        patch(&service, "/articles/bulk", &json!({"price": 1})).await.status(),
        200,
        "an id like others"
    );

    let features = json!({"age": 28, "gender": "female", "fit": "slim"});
    service.put("/customers/c", &json!({"features": features})).await;
    let answer =
        patch(&service, "/customers/c", &json!({"features": {"age": 29, "fit": null, "mood": "good"}})).await;
    let changed: Value = answer.json();
    assert_eq!(changed["features"], json!({"age": 29, "gender": "female", "mood": "good"}));
    assert_eq!(changed["warnings"][0]["pointer"], "/features/mood");
    assert_eq!(service.json("/customers/c").await["features"], changed["features"]);
    patch(&service, "/customers/d", &json!({"features": {}})).is(404).await;
    let last = &service.log(1).await[0];
    assert_eq!((last.action.as_str(), last.subject.as_str()), ("customer.put", "c"));
}

#[apply(on_sqlite)]
async fn what_a_patch_leaves_invalid_is_refused(service: Service) {
    service.put("/articles/a", &json!({"type": "coat", "price": 79})).await;
    service.put("/customers/c", &json!({"features": {"age": 28}})).await;
    for (path, body, pointer) in [
        ("/articles/a", json!({"type": null}), "/type"),
        ("/articles/a", json!({"type": "a|b"}), "/type"),
        ("/articles/a", json!({"price": "cheap"}), "/price"),
        ("/articles/a", json!({"in_stock": {"M": 1}}), "/in_stock"),
        ("/articles/a", json!({"id": "b"}), "/id"),
        ("/articles/a", json!({"": 1}), "/"),
        ("/articles/a", json!({"x": ["\u{0}"]}), "/x"),
        ("/articles/a", json!([]), ""),
        ("/customers/c", json!({"features": {"age": "old"}}), "/features/age"),
        ("/customers/c", json!({"features": null}), "/features"),
        ("/customers/c", json!({"age": 29}), "/age"),
        ("/customers/c", json!({"id": "d"}), "/id"),
    ] {
        let told = problem(patch(&service, path, &body).await).await;
        assert_eq!(told, (422, "invalid".into(), pointer.into()), "{body}");
    }
    for (methods, path, body) in [
        (&[Method::PUT, Method::PATCH][..], "/articles/a", r#"{"type": "coat", "price": 1, "price": 2}"#),
        (&[Method::PUT, Method::PATCH], "/customers/c", r#"{"features": {"age": 29, "age": 30}}"#),
        (
            &[Method::POST],
            "/outfits",
            r#"{"customer": "c", "articles": ["a"], "features": {"age": 29, "age": 30}}"#,
        ),
    ] {
        for method in methods.iter().cloned() {
            let answer = service.call(method, path).body("application/json", body).await;
            assert_eq!(answer.status(), 422, "{body}");
            assert!(answer.text().contains("appears twice"), "one of the values would be lost");
        }
    }
    assert_eq!(service.json("/articles/a").await, json!({"id": "a", "type": "coat", "price": 79}));
    assert_eq!(service.json("/customers/c").await["features"], json!({"age": 28}));
    // The other kind of patch has other rules.
    let json_patch = service.call(Method::PATCH, "/articles/a").body("application/json-patch+json", "[]");
    json_patch.is(415).await;
}

/// Each changes another attribute, so none of them may overwrite the others' changes.
#[apply(contract)]
async fn patches_at_the_same_time_are_all_kept(service: Service) {
    service.put("/articles/a", &json!({"type": "coat"})).await;
    service.put("/customers/c", &json!({"features": {}})).await;
    let changes = (0..12).map(|number| {
        let service = &service;
        async move {
            let name = format!("n{number}");
            patch(service, "/articles/a", &json!({&name: number})).is(200).await;
            patch(service, "/customers/c", &json!({"features": {&name: number}})).is(200).await;
        }
    });
    futures_util::future::join_all(changes).await;
    let (article, customer) = (service.json("/articles/a").await, service.json("/customers/c").await);
    for number in 0..12 {
        assert_eq!(article[format!("n{number}")], number);
        assert_eq!(customer["features"][format!("n{number}")], number);
    }
}

#[apply(contract)]
async fn a_stream_of_patches_keeps_the_rest(service: Service) {
    service.put("/articles/a", &json!({"type": "coat", "colour": "red", "in_stock": true})).await;
    service.put("/articles/b", &json!({"type": "hat", "colour": "blue"})).await;
    let lines = "{\"id\":\"a\",\"in_stock\":false}\n{\"id\":\"new\",\"type\":\"boot\",\"price\":9}\n\
                 {\"id\":\"unknown\",\"in_stock\":true}\n{\"id\":\"b\",\"price\":\"cheap\"}\n{\"id\":\"b\",\"colour\":null}\n";
    let refused = service.post("/articles/bulk?mode=merge", NDJSON, lines).is(422).await.json();
    assert_eq!(
        refused["detail"],
        "nothing was stored: 3 of 5 lines are bad; fix them, or store the 2 good ones with ?skip_bad=true"
    );
    assert_eq!(service.json("/articles/a").await["in_stock"], true);
    let brought = service.post("/articles/bulk?mode=merge&skip_bad=true", NDJSON, lines).await;
    let brought: Value = brought.json();
    let [bad, added, changed] = ["bad", "added", "changed"].map(|name| brought[name].as_u64().unwrap());
    assert_eq!((bad, added, changed), (3, 1, 1), "{brought}");
    let mut errors: Vec<String> =
        brought["errors"].as_array().unwrap().iter().map(|error| error["detail"].to_string()).collect();
    errors.sort();
    assert!(errors[0].contains("a price is a number of 0 or more"), "{errors:?}");
    assert!(errors[1].contains("article \\\"b\\\" is already in line 4"), "{errors:?}");
    assert!(
        errors[2].contains("there is no article \\\"unknown\\\" in the catalogue, and without a type"),
        "{errors:?}"
    );
    assert_eq!(
        service.json("/articles/a").await,
        json!({"id": "a", "type": "coat", "colour": "red", "in_stock": false})
    );
    assert_eq!(service.json("/articles/new").await["type"], "boot");
    let entry = &service.log(1).await[0];
    assert_eq!(Value::from(entry.details.clone()), json!({"added": 1, "changed": 1, "bad": 3}));

    service.put("/customers/c", &json!({"features": {"age": 28, "fit": "slim"}})).await;
    let lines = "{\"id\":\"c\",\"features\":{\"fit\":null,\"height\":170}}\n{\"id\":\"d\",\"features\":{\"age\":30}}\n";
    service.post("/customers/bulk?mode=merge", NDJSON, lines).is(200).await;
    assert_eq!(service.json("/customers/c").await["features"], json!({"age": 28, "height": 170}));
    assert_eq!(service.json("/customers/d").await["features"], json!({"age": 30}));
    service
        .post("/customers/bulk?mode=replace", NDJSON, "{\"id\":\"c\",\"features\":{\"age\":31}}\n")
        .is(200)
        .await;
    assert_eq!(service.json("/customers/c").await["features"], json!({"age": 31}));
    service.post("/customers/bulk?mode=mix", NDJSON, "").is(422).await;
}

#[apply(on_sqlite)]
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
        service.delete(path).await;
        // Also within the same millisecond.
        assert_ne!(put(&other).await, patched.header("etag"), "another after it was deleted");
    }
}

#[apply(contract)]
async fn only_the_expected_version_is_changed(service: Service) {
    for (path, body) in [
        ("/articles/a", json!({"type": "coat", "price": 5})),
        ("/customers/c", json!({"features": {"age": 28}})),
    ] {
        let send =
            |method: Method, name: &str, tag: &str| service.call(method, path).header(name, tag).json(&body);
        let stale = service.put(path, &body).await.header("etag").to_owned();
        let other = if path.starts_with("/articles") {
            json!({"type": "hat"})
        } else {
            json!({"features": {"age": 30}})
        };
        let current = service.put(path, &other).await.header("etag").to_owned();
        for method in [Method::PUT, Method::PATCH, Method::DELETE, Method::GET] {
            let answer = send(method.clone(), "if-match", &stale).await;
            assert_eq!(answer.status(), 412, "{method} {path}");
            let told: Value = answer.json();
            assert_eq!(told["code"], "precondition-failed");
            let detail = told["detail"].as_str().unwrap();
            assert!(detail.contains(&current), "{detail}");
            send(method.clone(), "if-match", "nonsense").is(422).await;
            assert_eq!(send(method, "if-match", "").await.status(), 412, "no version is the current one");
        }
        assert_eq!(send(Method::PUT, "if-none-match", "*").await.status(), 412, "it exists");
        let weak = format!("W/{current}");
        assert_eq!(send(Method::PUT, "if-match", &weak).await.status(), 412, "tags are compared strongly");
        assert_eq!(service.get(path).await.header("etag"), current, "nothing was changed");

        let two = format!("{stale}, {current}");
        let patched = send(Method::PATCH, "if-match", &two).is(200).await;
        let next = patched.header("etag").to_owned();
        let put = send(Method::PUT, "if-match", &next).await;
        assert_eq!((put.status(), put.header("etag")), (200, &*next), "the same contents");
        send(Method::PUT, "if-match", "*").is(200).await;
        send(Method::DELETE, "if-match", &next).is(204).await;
        assert_eq!(send(Method::PUT, "if-match", "*").await.status(), 412, "there is nothing to replace");
        send(Method::PATCH, "if-match", "*").is(404).await;
        send(Method::DELETE, "if-match", "*").is(404).await;
        send(Method::PUT, "if-none-match", "*").is(201).await;
        assert_eq!(send(Method::PUT, "if-none-match", "").await.status(), 200, "no version is refused");
    }
}

#[apply(contract)]
async fn one_of_many_creators_wins(service: Service) {
    let creations = (0..8).map(|number| {
        let put = service.put("/articles/a", json!({"type": "coat", "n": number}));
        async { put.header("if-none-match", "*").await.status }
    });
    let mut statuses = futures_util::future::join_all(creations).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 412, 412, 412, 412, 412, 412, 412]);
}

#[apply(on_sqlite)]
async fn a_caller_with_the_version_gets_no_body(service: Service) {
    let tag = service.put("/articles/a", &json!({"type": "coat"})).await.header("etag").to_owned();
    let get = |tags: &str| service.get("/articles/a").header("if-none-match", tags);
    for tags in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
        let answer = get(&tags).await;
        assert_eq!((answer.status(), answer.header("etag")), (304, &*tag), "{tags}");
        assert_eq!(answer.text(), "");
    }
    for other in ["\"x\"", "", " ", ", ,"] {
        assert_eq!(get(other).await.status(), 200, "{other:?}");
    }
    get("x").is(422).await;
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[apply(on_sqlite)]
async fn compressed_bodies_are_read_up_to_the_limit(db: TestDatabase) {
    let limits = Limits { body_bytes: 1 << 16, bulk_bytes: 1 << 20, ..Limits::default() };
    let service = Service::start_with(&db, limits).await;
    let send = |method: Method, path: &str, kind: &str, encoding: &str, body: Vec<u8>| {
        service.call(method, path).header("content-encoding", encoding).body(kind, body)
    };
    let coat = json!({"type": "coat", "colour": "red"}).to_string();
    for (path, encoding) in [("/articles/a", "gzip"), ("/articles/b", "X-GZIP")] {
        send(Method::PUT, path, "application/json", encoding, gzip(coat.as_bytes())).is(201).await;
        assert_eq!(service.json(path).await["colour"], "red");
    }
    send(Method::PUT, "/articles/c", "application/json", "identity", coat.clone().into()).is(201).await;
    let lines: Vec<String> =
        (0..9000).map(|n| format!("{{\"id\":\"a-{n}\",\"type\":\"coat\",\"n\":{n}}}\n")).collect();
    let body = gzip(lines.concat().as_bytes());
    let brought = send(Method::POST, "/articles/bulk", NDJSON, "gzip", body.clone()).await;
    assert_eq!(brought.json()["added"], 9000);

    for encoding in ["br", "deflate", "gzip, gzip"] {
        let answer =
            send(Method::PUT, "/articles/a", "application/json", encoding, gzip(coat.as_bytes())).await;
        assert_eq!((answer.status(), answer.header("accept-encoding")), (415, "gzip"));
        assert_eq!(problem(answer).await.1, "unsupported-encoding");
    }
    // A megabyte of spaces is a kilobyte.
    let bomb = gzip(&vec![b' '; 1 << 24]);
    for (method, path, kind) in
        [(Method::PUT, "/articles/a", "application/json"), (Method::POST, "/articles/bulk", NDJSON)]
    {
        let answer = send(method.clone(), path, kind, "gzip", bomb.clone()).await;
        assert_eq!(problem(answer).await.0, 413, "{path}");
        let packed = gzip(coat.as_bytes());
        for broken in [packed[..packed.len() / 2].to_vec(), coat.clone().into_bytes()] {
            let answer = send(method.clone(), path, kind, "gzip", broken).await;
            assert_eq!(problem(answer).await.0, 400, "{path}");
        }
        // Without the header it is not inflated.
        let answer = service.call(method, path).body(kind, gzip(coat.as_bytes()));
        let status = answer.await.status();
        assert!([400, 422].contains(&status), "{path}: {status}");
    }
}
