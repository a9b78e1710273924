use serde_json::{Value, json};

use crate::{
    analysis::evaluation::text,
    harness::{
        Guarded, Html, Service, Stylist, TestDatabase, apply, contract, each, json_lines, on_sqlite, pick,
    },
};

#[apply(contract)]
async fn put_get_and_erase(service: Service) {
    let features = json!({"age": 28.0, "preferred_colours": ["grey", "red"], "country": null});
    let answer = service.put("/customers/c-1", json!({"features": features})).is(201).await;
    let stored = json!({"id": "c-1", "features": {"age": 28, "preferred_colours": ["grey", "red"]}});
    let expected = json!({"id": "c-1", "features": stored["features"], "warnings": []});
    assert_eq!(answer.json(), expected);
    assert_eq!(service.json("/customers/c-1").await, stored);
    // A GET's answer can be PUT back.
    service.put("/customers/c-1", &stored).is(200).await;

    service.delete("/customers/c-1").is(204).await;
    let gone = service.get("/customers/c-1").is(404).await.json();
    assert_eq!(gone["detail"], "there is no customer \"c-1\"");
    service.delete("/customers/c-1").is(404).await;
}

#[apply(on_sqlite)]
async fn features_are_checked_against_the_schema(service: Service) {
    let given = json!({"features": {"gender": "other", "hat size": 57}});
    let stored = service.put("/customers/c", &given).is(201).await.json();
    assert_eq!(stored["features"], given["features"], "it is stored");
    let warnings = json!([
        {"pointer": "/features/gender", "detail": "feature \"gender\" has no value \"other\"; models do not see it"},
        {"pointer": "/features/hat size", "detail": "the schema has no feature \"hat size\"; models do not see it"},
    ]);
    assert_eq!(stored["warnings"], warnings);
    let wrong = json!({"features": {"age": "old", "fit": ["slim"]}});
    let problem = service.put("/customers/c", wrong).is(422).await.json();
    assert_eq!(problem["code"], "invalid");
    let errors = json!([
        {"pointer": "/features/age", "detail": "feature \"age\" takes a finite number, found the string \"old\""},
        {"pointer": "/features/fit", "detail": "feature \"fit\" takes a string or a whole number, found a list of 1"},
    ]);
    assert_eq!(problem["errors"], errors);
    assert_eq!(service.json("/customers/c").await["features"], given["features"], "nothing changed");
    service.put("/customers/c", json!({"id": "d", "features": {}})).await.assert_problem(422, &["/id"]);
}

#[apply(on_sqlite)]
async fn ids_may_be_any_text(service: Service) {
    for (path, id) in [("/customers/a%2Fb%20%C3%A4%3F", "a/b ä?"), ("/customers/%F0%9F%98%80%25", "😀%")] {
        service.put(path, json!({"features": {}})).is(201).await;
        assert_eq!(service.json(path).await["id"], id);
        assert_eq!(service.json(format!("{path}/outfits")).await, json!({"items": [], "next_cursor": null}));
        service.delete(path).is(204).await;
    }
    // Addresses lose the segments `.` and `..`, so such a customer could never be read or erased.
    for id in [".", ".."] {
        let line = json!({"id": id, "features": {}}).to_string();
        service.lines("/customers/bulk", line).is(422).await;
        service.send("/outfits", json!({"customer": id, "articles": ["a", "b"]})).is(422).await;
    }
    assert_eq!(service.store.customers().count().await, Ok(0));
}

#[apply(contract)]
async fn a_list_continues_at_its_cursor(service: Service) {
    for (id, gender, colour) in
        [("c 1", "male", "red"), ("c 2", "female", "Grün"), ("ä", "male", "Grün"), ("b", "diverse", "red")]
    {
        let features = json!({"gender": gender, "preferred_colours": [colour], "nogo_colours": ["navy"]});
        service.put(format!("/customers/{id}"), json!({"features": features})).is(201).await;
    }
    for (query, ids, cursor) in [
        ("n=2", json!(["b", "c 1"]), json!("after:c 1")),
        ("n=2&cursor=after:c+1", json!(["c 2", "ä"]), Value::Null),
        // Words are whole ones, whatever comes in pages, and what they never wear is not theirs.
        ("search=male&n=1", json!(["c 1"]), json!("after:c 1")),
        ("search=male&n=1&cursor=after:c+1", json!(["ä"]), Value::Null),
        ("search=GR%C3%9CN,male", json!(["ä"]), Value::Null),
        ("search=gender:female", json!(["c 2"]), Value::Null),
        ("search=navy", json!([]), Value::Null),
        ("search=fem", json!([]), Value::Null),
    ] {
        let page = service.json(format!("/customers?{query}")).await;
        assert_eq!((each(&page["items"], "id"), &page["next_cursor"]), (ids, &cursor), "{query}");
    }
}

#[apply(on_sqlite)]
async fn a_stream_is_imported(service: Service) {
    service.put("/customers/c-1", json!({"features": {"age": 1}})).await;
    let line = |n: u32| format!("{{\"id\":\"c-{n}\",\"features\":{{\"age\":{},\"x\":1}}}}\n", 20 + n % 50);
    let lines: String = (0..4500).map(line).collect();
    let brought = service.lines("/customers/bulk", lines.clone()).ok().await;
    let warning = json!({"line": 1, "detail": "the schema has no feature \"x\"; models do not see it (4500 rows in all)"});
    let expected = json!({"added": 4499, "changed": 1, "unchanged": 0, "deleted": 0, "absent": 0, "bad": 0,
        "errors": [], "warnings": [warning]});
    assert_eq!(brought, expected);
    assert_eq!(service.lines("/customers/bulk", lines).ok().await["unchanged"], 4500);
    assert_eq!(service.store.customers().count().await, Ok(4500));
}

#[apply(on_sqlite)]
async fn a_bad_line_refuses_the_stream(service: Service) {
    let bad = "{\"id\":\"c\",\"features\":{\"age\":\"old\"}}\n".repeat(25);
    let lines = format!("{{\"id\":\"good\",\"features\":{{}}}}\n\n{bad}");
    let problem = service.lines("/customers/bulk", lines.clone()).is(422).await.json();
    let detail =
        "nothing was stored: 25 of 26 rows are bad; fix them, or store the 1 good ones with skip_bad=true";
    assert_eq!(problem["detail"], detail);
    assert_eq!(problem["errors"].as_array().unwrap().len(), 20);
    let first =
        json!({"line": 3, "detail": "feature \"age\" takes a finite number, found the string \"old\""});
    assert_eq!(problem["errors"][0], first);
    assert_eq!(service.store.customers().count().await, Ok(0));

    let brought = service.lines("/customers/bulk?skip_bad=true", lines).ok().await;
    assert_eq!(pick(&brought, "added bad"), json!([1, 25]));
    // No line is good.
    service.lines("/customers/bulk?skip_bad=true", "nonsense\n").is(422).await;
    service.post("/customers/bulk", "application/json", "{}").is(415).await;
    assert_eq!(service.store.customers().count().await, Ok(1));
}

#[apply(on_sqlite)]
async fn a_stream_has_its_own_limit(db: TestDatabase) {
    let limits = atelier::config::Limits { body_bytes: 1024, bulk_bytes: 4096, ..Default::default() };
    let service = Service::start_with(&db, limits).await;
    let send = |bytes: usize| {
        let line = format!("{{\"id\":\"c\",\"features\":{{}}}}{}\n", " ".repeat(bytes - 25));
        service.lines("/customers/bulk", line)
    };
    send(4096).is(200).await;
    let problem = send(4097).await.assert_problem(413, &[]);
    assert_eq!(problem["detail"], "the body is longer than this path's limit of 4096 bytes");
}

/// Each different row is remembered, and takes memory.
#[apply(on_sqlite)]
async fn a_stream_has_a_limit_of_rows(db: TestDatabase) {
    let limits = atelier::config::Limits { bulk_rows: 3, ..Default::default() };
    let service = Service::start_with(&db, limits).await;
    let send = |query: &str, ids: &str| {
        let rows = ids.chars().map(|id| json!({"id": id.to_string(), "features": {}}));
        service.lines(format!("/customers/bulk{query}"), json_lines(rows))
    };
    send("", "abc").is(200).await;
    let twice = send("", "dedf").is(422).await.json();
    assert_eq!(twice["errors"], json!([{"line": 3, "detail": "customer \"d\" is already in line 1"}]));
    for query in ["", "?skip_bad=true"] {
        let problem = send(query, "dedfg").is(422).await.json();
        assert_eq!(problem["detail"], "nothing was stored: an import takes at most 3 rows; split it");
        let error = json!([{"line": 5, "detail": "an import takes at most 3 rows; split it"}]);
        assert_eq!(problem["errors"], error);
    }
    assert_eq!(service.store.customers().count().await, Ok(3));
}

#[apply(on_sqlite)]
async fn an_item_called_bulk_is_like_any_other(Guarded(guarded): Guarded, db: TestDatabase) {
    let service = Service::start(&db).await;
    for (path, body) in
        [("/customers/bulk", json!({"features": {}})), ("/articles/bulk", json!({"type": "coat"}))]
    {
        guarded.put(path, &body).is(401).await;
        service.get(path).is(404).await;
        service.put(path, &body).is(201).await;
        for address in [path, &path.replace("bulk", "%62ulk")] {
            assert_eq!(service.json(address).await["id"], "bulk");
        }
        let mut line = body.clone();
        line["id"] = json!("x");
        service.lines(path, format!("{line}\n")).is(200).await;
        service.delete(path).is(204).await;
        service.get(path).is(404).await;
        service.call(reqwest::Method::TRACE, path).is(405).await;
    }
    for id in ["bulk", "export", "outfits"] {
        let path = format!("/customers/{id}");
        service.put(&path, json!({"features": {}})).is(201).await;
        assert_eq!(service.json(format!("{path}/export")).await["customer"]["id"], id);
        assert_eq!(service.json(format!("{path}/outfits")).await["items"], json!([]));
        service.delete(path).is(204).await;
    }
}

/// A Mac writes ü as u and two dots; a byte order mark and a zero-width space are invisible.
#[apply(on_sqlite)]
async fn an_id_is_one_in_every_form_of_its_letters(service: Service) {
    for (table, mut body) in [("customers", json!({"features": {}})), ("articles", json!({"type": "coat"}))] {
        body["id"] = json!("zu\u{308}");
        for (form, status) in
            [("z%C3%BC", 201), ("zu%CC%88", 200), ("%EF%BB%BFz%C3%BC", 200), ("z%E2%80%8Bu%CC%88", 200)]
        {
            let path = format!("/{table}/{form}");
            assert_eq!(service.put(&path, &body).is(status).await.json()["id"], "zü");
            assert_eq!(service.json(path).await["id"], "zü");
        }
        assert_eq!(service.json(format!("/{table}")).await["items"].as_array().unwrap().len(), 1);
    }
    let twice = "{\"id\":\"z\u{fc}\",\"features\":{}}\n{\"id\":\"zu\u{308}\",\"features\":{}}\n";
    let problem = service.lines("/customers/bulk", twice).is(422).await.json();
    assert_eq!(problem["errors"], json!([{"line": 2, "detail": "customer \"zü\" is already in line 1"}]));
    service.delete("/customers/zu%CC%88").is(204).await;
    service.get("/customers/z%C3%BC").is(404).await;
}

#[apply(on_sqlite)]
async fn numbers_out_of_any_sense_are_warned_of(service: Service) {
    for (features, warned) in [
        (json!({"age": 1e308, "height": -5}), json!(["/features/age", "/features/height"])),
        (json!({"height": 1.72, "weight": 72_000}), json!(["/features/height", "/features/weight"])),
        (json!({"age": 0, "height": 235, "weight": 170}), json!([])),
        (json!({"age": 122, "height": 115, "weight": 0}), json!([])),
    ] {
        let stored = service.put("/customers/c", json!({"features": features})).await.json();
        assert_eq!(each(&stored["warnings"], "pointer"), warned, "{features}");
    }
    let stored = service.put("/customers/c", json!({"features": {"age": 1e308}})).await.json();
    let detail = "feature \"age\" is 1e+308, but 0 to 122 years is plausible; models see the nearest bucket";
    assert_eq!(stored["warnings"][0]["detail"], detail);
    // In a file, one warning counts all its rows.
    let lines = (0..30).map(|n| format!("{}\n", json!({"id": n.to_string(), "features": {"age": -1 - n}})));
    let brought = service.lines("/customers/bulk", lines.collect::<String>()).ok().await;
    assert_eq!(brought["warnings"].as_array().unwrap().len(), 1, "{brought}");
    assert!(brought["warnings"][0]["detail"].as_str().unwrap().ends_with("(30 rows in all)"), "{brought}");

    service.bring_in_demo().await;
    service.serve_demo().await;
    let request =
        json!({"outfit": [null, null, null, null], "k": 1, "features": {"age": -5, "height": 1e300}});
    let answer = service.ask_ok("/complete", request).await;
    assert_eq!(each(&answer["warnings"], "code"), json!(vec!["implausible-number"; 2]));
}

#[apply(on_sqlite)]
async fn a_customer_is_added_and_corrected(Stylist(service, browser): Stylist) {
    let mut form = vec![
        ("id", "c-014871"),
        ("is.name", "Jana Müller"),
        ("is.shoe_size", "38"),
        ("is.height", "165"),
        ("is.preferred_colours", "navy"),
    ];
    let refused = browser.post("/studio/new-customer", &form).is(409).await.text();
    refused.has(["class=\"notice\"", "there is already a customer c-014871", "value=\"Jana Müller\""]);
    form[0].1 = "jana";
    let there = browser.change("/studio/new-customer", &form).await;
    text(&browser.page(there).await).has(["For Jana Müller", "shoe size 38"]);
    let html = browser.page("/studio/customers/jana").await;
    html.has(["<h1>Profile of Jana Müller</h1>"]);
    form[0] = ("version", html.after("name=\"version\" value=\"").split('"').next().unwrap());
    form[2].1 = "39";
    let there = browser.change("/studio/customers/jana", &form).await;
    text(&browser.page(there).await).has(["For Jana Müller", "shoe size 39"]);
    let features =
        json!({"name": "Jana Müller", "shoe_size": "39", "height": 165, "preferred_colours": ["navy"]});
    assert_eq!(service.json("/customers/jana").await["features"], features);

    // The name leads everywhere.
    let outfit = "customer=jana&slot=a-00134&slot=&slot=a-00568&slot=a-00259";
    let saved = browser.change("/studio/outfits", &[("view", outfit)]).await;
    let page = browser.page(format!("/studio/outfits/{}", saved.after("saved="))).await;
    text(&page).has(["For Jana Müller · jana"]);
    text(&browser.page("/studio/outfits").await).has(["for Jana Müller · jana"]);
    // An id may be the word of an address.
    let there = browser.change("/studio/new-customer", &[("id", "new"), ("is.name", "Nia")]).await;
    assert_eq!(there, "/studio?customer=new");
    browser.page("/studio/customers/new").await.has(["<h1>Profile of Nia</h1>"]);
    browser.page("/studio/new-customer").await.has(["<h1>New customer</h1>"]);
}
