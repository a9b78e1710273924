use std::{
    fs,
    time::{Duration, SystemTime},
};

use atelier::{
    completion::tickets::{Suggested, SuggestedFor},
    config::{self, Limits},
    outcomes::events::Recorder,
};
use atelier_core::{
    domain::{Article, ArticleId, Schema},
    util::calendar::rfc3339,
};
use atelier_files::{EventRow, Table};
use serde_json::{Value, json};

use super::{
    Demo, Service,
    feedback::suggested,
    outfits::{change_file, folder_with_schema},
    rows,
};
use crate::harness::{TestDatabase, apply, contract, on_sqlite};

const JSON: &str = "application/json";

async fn send(service: &Service, events: &Value) -> Vec<Value> {
    let (status, answer) = service.ask("/events", events).await;
    assert_eq!(status, 200, "{answer}");
    answer.as_array().unwrap().clone()
}

fn days_ago(days: u64) -> String {
    rfc3339(SystemTime::now() - Duration::from_hours(24 * days))
}

#[apply(on_sqlite)]
async fn each_event_has_its_own_answer(service: Service) {
    service.put("/customers/c", &json!({"features": {}})).await;
    let good = json!({"id": "e-1", "kind": "viewed", "article": "a"});
    let with = |field: &str, value: Value| {
        let mut event = json!({"id": format!("bad {field}"), "kind": "bought", "article": "a"});
        event[field] = value;
        event
    };
    let bad = [
        ("kind", json!("seen"), "/kind"),
        ("article", json!("a\u{0}"), "/article"),
        ("customer", json!("nobody"), "/customer"),
        ("id", json!(""), "/id"),
        ("colour", json!("red"), "/colour"),
        ("value", json!(-1), "/value"),
        ("value", json!(1e9), "/value"),
        ("time", json!("yesterday"), "/time"),
        ("time", json!(days_ago(91)), "/time"),
        ("time", json!("2999-01-01T00:00:00Z"), "/time"),
    ];
    let mut events = vec![good.clone(), json!(7)];
    events.extend(bad.iter().map(|(field, value, _)| with(field, value.clone())));
    events
        .push(json!({"id": "late", "kind": "bought", "article": "a", "time": days_ago(89), "customer": "c"}));
    let answers = send(&service, &Value::Array(events.clone())).await;
    assert_eq!(answers.len(), events.len());
    let recorded = |id: &str| json!({"id": id, "recorded": true, "attribution": null});
    assert_eq!(answers[0], recorded("e-1"));
    assert_eq!(answers[1]["errors"][0]["detail"], "expected an object, found a number");
    for ((field, _, pointer), answer) in bad.iter().zip(&answers[2..]) {
        let found = (&answer["status"], &answer["errors"][0]["pointer"]);
        assert_eq!(found, (&json!(422), &json!(pointer)), "{field}: {answer}");
    }
    assert_eq!(*answers.last().unwrap(), recorded("late"));
    // Sent again, alone.
    let again = send(&service, &good).await;
    assert_eq!(again, [json!({"id": "e-1", "recorded": false, "attribution": null})]);
    let counts = service.json("/events/counts?days=90").await;
    let kinds: Vec<_> =
        counts["items"].as_array().unwrap().iter().map(|one| (&one["kind"], &one["events"])).collect();
    assert_eq!(kinds, [(&json!("viewed"), &json!(1)), (&json!("bought"), &json!(1))]);
    let many: Vec<Value> = (0..1001).map(|_| json!({})).collect();
    let (status, problem) = service.ask("/events", &Value::Array(many)).await;
    assert_eq!(
        (status, &problem["detail"]),
        (422, &json!("a list has at most 1000 events, found 1001; split it"))
    );
    let metrics = service.get("/metrics").await.text();
    for line in [
        "atelier_events_total{kind=\"viewed\",result=\"recorded\"} 1",
        "atelier_events_total{kind=\"viewed\",result=\"known\"} 1",
        "atelier_events_total{kind=\"\",result=\"refused\"} 6",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[apply(on_sqlite)]
async fn a_ticket_makes_an_event_feedback(service: Service) {
    service.put("/customers/c", &json!({"features": {}})).await;
    let ticket = service.state.tickets().issue(&suggested("gsu", None));
    let event = |id: &str, kind: &str| json!({"id": id, "kind": kind, "article": "a-7", "customer": "c", "order": "7", "value": 64.5, "ticket": ticket});
    let mut returned = event("4", "returned");
    returned.as_object_mut().unwrap().remove("ticket");
    let answers =
        send(&service, &json!([event("1", "viewed"), event("2", "added"), event("3", "bought"), returned]))
            .await;
    for answer in &answers {
        assert_eq!(
            (&answer["recorded"], &answer["attribution"]),
            (&json!(true), &json!("ticket")),
            "{answer}"
        );
    }
    let counts = service.json("/feedback/counts").await;
    let gsu = &counts["items"][0];
    let expected = json!({"release": "spring", "method": "gsu", "shown": 1, "accepted": 0, "rejected": 0, "bought": 1,
        "returned": 1, "kept": 0, "revenue": 0.0, "in_window": {"bought": 0, "returned": 0, "kept": 0, "revenue": 0.0}});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(gsu[name], *value, "{name}: {gsu}");
    }
    let export = service.json("/customers/c/export").await;
    assert_eq!(export["events"].as_array().unwrap().len(), 4);
    assert_eq!(export["events"][2]["attribution"], "ticket");
    assert_eq!(
        (&export["purchases"][0]["bought"], &export["purchases"][0]["returned"]),
        (&json!(1), &json!(1))
    );

    // What the ticket does not say.
    let mut other = event("5", "viewed");
    other["article"] = "a-9".into();
    let mut made_up = event("6", "viewed");
    made_up["ticket"] = "made-up".into();
    let old = Suggested {
        at: (SystemTime::now() - Duration::from_hours(24 * 91)).into(),
        ..suggested("gsu", None)
    };
    let mut expired = event("7", "viewed");
    expired["ticket"] = service.state.tickets().issue(&old).into();
    let answers = send(&service, &json!([other, made_up, expired])).await;
    assert_eq!(answers[0]["errors"][0]["pointer"], "/ticket", "{answers:?}");
    assert_eq!(answers[1]["status"], 404);
    assert_eq!((&answers[2]["recorded"], &answers[2]["attribution"]), (&json!(true), &Value::Null));

    // Without a ticket, shown a moment ago.
    let mut window = event("8", "bought");
    window.as_object_mut().unwrap().remove("ticket");
    window["order"] = "8".into();
    assert_eq!(send(&service, &window).await[0]["attribution"], "window");
    let total = &service.json("/feedback/acceptance?by=method").await["total"];
    assert_eq!(
        (&total["in_window"]["bought"], &total["in_window"]["revenue"]),
        (&json!(1), &json!(64.5)),
        "{total}"
    );
}

#[apply(on_sqlite)]
async fn a_batch_is_read_as_it_happened(service: Service) {
    for customer in ["c", "d"] {
        service.put(&format!("/customers/{customer}"), &json!({"features": {}})).await;
    }
    let ticket = service.state.tickets().issue(&suggested("gsu", None));
    let viewed = json!({"id": "1", "kind": "viewed", "article": "a-7", "customer": "c", "ticket": ticket});
    let bought =
        json!({"id": "2", "kind": "bought", "article": "a-7", "customer": "c", "order": "", "value": 10.0});
    let answers = send(&service, &json!([bought, viewed])).await;
    assert_eq!(answers[0]["attribution"], "window", "shown in the same batch: {answers:?}");
    // An order without a name is none: nobody else's return belongs to it.
    let returned = json!({"id": "3", "kind": "returned", "article": "a-7", "customer": "d", "order": ""});
    assert_eq!(send(&service, &returned).await[0]["attribution"], Value::Null);
    let mut of_another = viewed.clone();
    of_another["customer"] = "d".into();
    assert_eq!(send(&service, &of_another).await[0]["status"], 409, "the id of another customer's event");
    assert_eq!(send(&service, &viewed).await[0]["recorded"], false, "again");
}

/// The demo's styles become articles that customers had.
#[apply(contract)]
async fn purchases_are_what_the_customer_had(db: TestDatabase) {
    let ids: Vec<String> = rows::<Article>()
        .into_iter()
        .filter(|article| article.kind() == "bag")
        .take(10)
        .map(|article| article.id.to_string())
        .collect();
    let folder = folder_with_schema(|schema| {
        let begin = schema.find("name = \"preferred_styles\"").unwrap();
        let end = begin + schema[begin..].find("]\n").unwrap();
        let had = format!("name = \"had\"\nkind = \"set\"\nagain = false\nvalues = {ids:?}\n");
        format!("{}{had}{}", &schema[..begin], &schema[end + 2..])
    });
    // The tables' names are as long as before.
    for file in fs::read_dir(folder.path().join("next")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".safetensors") {
            change_file(&folder.path().join("next"), &name, |mut bytes| {
                let (old, new) = (&b".preferred_styles\""[..], &b".had\"             "[..]);
                let found = |bytes: &[u8]| bytes.windows(old.len()).position(|window| window == old);
                while let Some(at) = found(&bytes) {
                    bytes[at..at + old.len()].copy_from_slice(new);
                }
                bytes
            });
        }
    }
    crate::web::fill(&db).await;
    let service = Service::start_in(&db, super::Limits::default(), folder.path().to_owned()).await;
    service.releases.serve("next").await.unwrap();
    service.put("/customers/c", &json!({"features": {"gender": "female"}})).await;
    let suggestions = async |no_gos: bool| {
        let filters = json!({"types": {"3": ["bag"]}, "no_gos": no_gos, "fit": false, "in_stock": false});
        let asked = json!({"customer": "c", "outfit": ["a-00315", "a-01317", "a-00587", null], "method": "gsu", "k": 250, "filters": filters});
        let answer = service.ask_ok("/complete", &asked).await;
        assert_eq!(answer["warnings"], json!([]), "{answer}");
        let suggested = answer["blanks"][0]["suggestions"].as_array().unwrap();
        suggested
            .iter()
            .map(|one| (one["article"]["id"].as_str().unwrap().to_owned(), one["share"].as_f64().unwrap()))
            .collect::<Vec<_>>()
    };
    let before = suggestions(true).await;
    let (bag, _) = before.iter().find(|(id, _)| ids.contains(id)).expect("one that the model knows as had");
    let bought = |id: &str, kind: &str| json!({"id": id, "kind": kind, "customer": "c", "article": bag});
    send(&service, &bought("1", "bought")).await;
    let after = suggestions(true).await;
    assert!(after.len() + 1 == before.len() && after.iter().all(|(id, _)| id != bag), "not again");
    assert_ne!(suggestions(false).await, before, "the model sees it at once");
    service.put("/customers/c", &json!({"features": {"gender": "female"}})).await;
    assert_eq!(suggestions(true).await, after, "a profile that is replaced keeps it");
    send(&service, &bought("2", "returned")).await;
    assert_eq!(suggestions(true).await, before, "it came back");
}

#[apply(contract)]
async fn nothing_of_a_visitor_is_kept_without_consent(db: TestDatabase) {
    let service = Service::start(&db).await;
    let event =
        json!({"id": "1", "kind": "bought", "article": "a", "visitor": "Vera", "order": "Order of Vera"});
    send(&service, &event).await;
    let mut raw = db.raw().await;
    let stored = crate::store::erasing::everything(&db, &mut raw).await;
    assert!(!stored.contains("Vera"), "{stored}");
    let kept: Vec<i64> = sqlx::query_scalar(
        "select count(*) from events where visitor_hash is not null or order_id is not null",
    )
    .fetch_all(&mut raw)
    .await
    .unwrap();
    assert_eq!(kept, [0]);
    let mut consented = event;
    consented["id"] = "2".into();
    consented["consent"] = true.into();
    send(&service, &consented).await;
    let kept: Vec<String> = sqlx::query_scalar("select order_id from events where visitor_hash is not null")
        .fetch_all(&mut raw)
        .await
        .unwrap();
    assert_eq!(kept, ["Order of Vera"]);
    assert!(!crate::store::erasing::everything(&db, &mut raw).await.contains("\nVera\n"));
}

#[apply(on_sqlite)]
async fn a_stream_is_recorded_without_its_bad_lines(service: Service) {
    let mut lines: Vec<String> = (0..1200)
        .map(|n| json!({"id": format!("s-{n}"), "kind": "viewed", "article": "a"}).to_string())
        .collect();
    lines[3] = "{".into();
    lines[700] = json!({"id": "x", "kind": "seen", "article": "a"}).to_string();
    lines[900] = json!({"id": "y", "kind": "bought", "article": "a", "customer": "nobody"}).to_string();
    let first = lines[0].clone();
    lines[1100] = first;
    let found = service.post("/events/bulk", "application/x-ndjson", lines.join("\n")).ok().await;
    assert_eq!(
        (&found["recorded"], &found["known"], &found["refused"]),
        (&json!(1196), &json!(1), &json!(3)),
        "{found}"
    );
    let mut said: Vec<u64> =
        found["errors"].as_array().unwrap().iter().map(|error| error["line"].as_u64().unwrap()).collect();
    said.sort_unstable();
    assert_eq!(said, [4, 701, 901], "{found}");
    let again = service.post("/events/bulk", "application/x-ndjson", lines.join("\n")).await;
    let again: Value = again.json();
    assert_eq!((&again["recorded"], &again["known"]), (&json!(0), &json!(1197)));
    service.post("/events/bulk", JSON, "[]").is(415).await;
}

#[apply(on_sqlite)]
async fn the_page_shows_sales_beside_acceptance(Demo(service): Demo) {
    let customer = super::outfits()[0].customer.to_string();
    let asked = json!({"customer": customer, "outfit": ["a-00134", null], "k": 1});
    let answer = service.ask_ok("/complete", &asked).await;
    let article = &answer["blanks"][0]["suggestions"][0]["article"]["id"];
    let event = |id: &str, kind: &str, ticket: &Value| json!({"id": id, "kind": kind, "article": article, "customer": customer, "order": id, "value": 64.5, "ticket": ticket});
    let ticket = &answer["completion_id"];
    send(&service, &json!([event("1", "bought", ticket), event("2", "kept", ticket)])).await;
    send(&service, &event("3", "bought", &Value::Null)).await;
    let analyst = service.signed_in(atelier_core::domain::Role::Analyst).await;
    for by in ["method", "customer.gender"] {
        let html = analyst.page(&format!("/operations/acceptance?by={by}&days=7")).await;
        let foot = html.split("<tfoot>").nth(1).unwrap();
        let cells: Vec<&str> = foot
            .split("<td class=\"number\">")
            .skip(1)
            .map(|cell| cell.split("</td>").next().unwrap())
            .collect();
        assert_eq!(
            cells[..11],
            ["1", "0", "0", "1", "0", "1", "€64.50", "1", "0", "0", "€64.50"],
            "{by}: {html}"
        );
        assert!(html.contains("<tr><th scope=\"row\">bought</th><td class=\"number\">2</td><td class=\"number\">€129</td></tr>"), "{html}");
    }
    let csv = analyst.get("/operations/acceptance.csv?by=customer.gender&days=7").await.text();
    let row = csv.lines().nth(1).unwrap();
    assert!(row.contains(",1,0,0,1,0,1,64.5,1,0,0,64.5,"), "{csv}");
}

#[apply(on_sqlite)]
async fn a_stream_has_a_limit_of_lines(db: TestDatabase) {
    let service = Service::start_with(&db, Limits { bulk_rows: 700, ..Limits::default() }).await;
    let lines =
        (0..701).map(|n| json!({"id": format!("s-{n}"), "kind": "viewed", "article": "a"}).to_string());
    let lines: Vec<String> = lines.collect();
    let problem = service.post("/events/bulk", "application/x-ndjson", lines.join("\n")).is(422).await.json();
    let said = "there are more than 700 lines (limits.bulk_rows); the first 700 were recorded, so send only the rest";
    assert_eq!(problem["detail"], said);
    let counts = service.json("/events/counts").await;
    assert_eq!(counts["items"][0]["events"], 700);
    let all = service.post("/events/bulk", "application/x-ndjson", lines[1..].join("\n")).await;
    assert_eq!(all.json()["recorded"], 1);
}

/// What files say without a time of day happened after all that was seen on that day.
#[apply(on_sqlite)]
async fn a_purchase_with_a_date_alone_belongs_to_what_was_seen_that_day(service: Service) {
    service.put("/customers/c", &json!({"features": {}})).await;
    let ticket = service.state.tickets().issue(&suggested("gsu", None));
    let viewed = json!({"id": "1", "kind": "viewed", "article": "a-7", "customer": "c", "ticket": ticket});
    let bought = |id: &str, date: &str| json!({"id": id, "kind": "bought", "article": "a-7", "customer": "c", "order": id, "value": 10, "time": date});
    let today = &rfc3339(SystemTime::now())[..10];
    let (year, rest) = today.split_once('-').unwrap();
    let (month, day) = rest.split_once('-').unwrap();
    for (date, attribution) in [
        (today.to_owned(), "window"),
        (format!("{day}.{month}.{year}"), "window"),
        (format!("{today} 00:00"), ""),
    ] {
        let service = &service;
        let lines = format!("{viewed}\n{}\n", bought(&date, &date));
        let answer = service.post("/events/bulk", "application/x-ndjson", lines).await;
        let summary: Value = answer.json();
        assert_eq!(summary["refused"], 0, "{summary}");
        let export = service.json("/customers/c/export").await;
        let stored = export["events"].as_array().unwrap();
        let found = &stored.iter().find(|event| event["order"] == json!(date)).unwrap()["attribution"];
        assert_eq!(found.as_str().unwrap_or_default(), attribution, "{date}");
    }
}

/// `atelier import --events` has no live release.
#[apply(on_sqlite)]
async fn events_of_files_count_for_the_articles_type(Demo(service): Demo) {
    let mut about = suggested("gsu", None);
    about.blanks[0].articles = vec![ArticleId::new("a-00134").unwrap()];
    let ticket = service.state.tickets().issue(&about);
    let row = json!({"id": "1", "kind": "added", "article": "a-00134", "ticket": ticket});
    let Value::Object(row) = row else { unreachable!() };
    let (row, _) = EventRow::from_fields(row, &Schema::default_schema()).unwrap();
    let state = &service.state;
    let recorder = Recorder {
        store: &service.store,
        tickets: state.tickets(),
        terms: config::Events::default().terms(),
        serving: None,
    };
    let result = recorder.record(vec![row], SystemTime::now().into()).await.unwrap().remove(0).unwrap();
    assert!(result.counts);
    let by_type = service.json("/feedback/acceptance?by=type").await;
    assert_eq!(
        (&by_type["items"][0]["value"], &by_type["items"][0]["accepted"]),
        (&json!("blouse"), &json!(1))
    );
}

#[apply(on_sqlite)]
async fn an_article_that_two_slots_suggest_counts_where_it_ranks_best(service: Service) {
    service.put("/customers/c", &json!({"features": {}})).await;
    let mut about = suggested("gsu", None);
    let article = |id| ArticleId::new(id).unwrap();
    let blank = |slot, articles| SuggestedFor { slot, articles, in_sets: Vec::new(), rules: Vec::new() };
    about.outfit = vec![None, None];
    about.blanks = vec![blank(0, vec![article("a-3"), article("a-7")]), blank(1, vec![article("a-7")])];
    let ticket = service.state.tickets().issue(&about);
    send(&service, &json!({"id": "1", "kind": "added", "article": "a-7", "customer": "c", "ticket": ticket}))
        .await;
    let export = service.json("/customers/c/export").await;
    let found: Vec<_> =
        export["feedback"].as_array().unwrap().iter().map(|one| (&one["slot"], &one["rank"])).collect();
    assert_eq!(found, [(&json!(1), &json!(1)); 2]);
}

/// Everybody gets the same look, and each visitor counts once.
#[apply(contract)]
async fn a_shared_look_is_shown_once_to_each_visitor(db: TestDatabase) {
    let service = Service::start(&db).await;
    for customer in ["erika-4711", "d"] {
        service.put(&format!("/customers/{customer}"), &json!({"features": {}})).await;
    }
    let ticket = service.state.tickets().issue(&Suggested { is_shared: true, ..suggested("look", None) });
    let shown = |id: &str, who: Value| {
        let mut event =
            json!({"id": id, "completion_id": ticket, "kind": "shown", "slot": 1, "article": "a-7"});
        event.as_object_mut().unwrap().extend(who.as_object().unwrap().clone());
        event
    };
    let visitor = |id: &str| json!({"visitor": id});
    let customer = |id: &str| json!({"customer": id});
    let events = json!([
        shown("1", visitor("v")),
        shown("2", visitor("v")),
        shown("3", visitor("w")),
        shown("4", customer("erika-4711")),
        shown("5", json!({"customer": "erika-4711", "visitor": "v"})),
        shown("6", customer("d")),
        shown("7", json!({})),
        shown("8", json!({})),
    ]);
    let (status, answers) = service.ask("/feedback", &events).await;
    assert_eq!(status, 200);
    let recorded: Vec<bool> =
        answers.as_array().unwrap().iter().map(|answer| answer["recorded"] == true).collect();
    assert_eq!(recorded, [true, false, true, true, false, true, true, true]);
    // The same visitor in an event, who is counted and not kept.
    let event = json!({"id": "9", "kind": "viewed", "article": "a-7", "visitor": "v", "ticket": ticket});
    send(&service, &event).await;
    assert_eq!(service.json("/feedback/counts").await["items"][0]["shown"], 6);
    let long = shown("10", visitor(&"v".repeat(201)));
    assert_eq!(service.ask("/feedback", &long).await.1["errors"][0]["pointer"], "/visitor");

    // Nobody learns from what is stored who it was, and less after an erasure.
    let mut raw = db.raw().await;
    let ids = "select completion_id from feedback_events where customer_id is not null order by at, key_hash";
    let ids: Vec<String> = sqlx::query_scalar(ids).fetch_all(&mut raw).await.unwrap();
    assert!(ids.iter().all(|id| id.starts_with(&format!("{ticket}."))), "{ids:?}");
    let digest = atelier_core::util::digest::sha256(b"erika-4711");
    assert!(ids.iter().all(|id| !id.contains(&digest[..16])), "no key is needed to make that one");
    service.delete("/customers/erika-4711").is(204).await;
    let all = "select completion_id from feedback_events where kind = 'shown'";
    let all: Vec<String> = sqlx::query_scalar(all).fetch_all(&mut raw).await.unwrap();
    assert_eq!(all.iter().filter(|id| **id == ticket).count(), 2, "{all:?}");
    assert_eq!(service.json("/feedback/counts").await["items"][0]["shown"], 6);
}
