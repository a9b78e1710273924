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
    domain::{Article, ArticleId, CustomerId, Role, Schema},
    util::calendar::rfc3339,
};
use atelier_files::{EventRow, Table};
use serde_json::{Value, json};

use crate::{
    harness::{
        Demo, Html, NOW, Service, TestDatabase, Unconditional, apply, coat, contract, each,
        json::{text, with},
        json_lines, on_sqlite, pick, rows, with_customers,
    },
    outcomes::feedback::{completion, suggested},
    outfits::api::{change_file, folder_with_schema},
};

async fn send(service: &Service, events: impl Into<Value>) -> Vec<Value> {
    service.ask_ok("/events", events.into()).await.as_array().unwrap().clone()
}

/// What happened to the suggested article, and more about it; null removes.
fn event(id: &str, kind: &str, more: Value) -> Value {
    let mut event = with(json!({"id": id, "kind": kind, "article": "a-7", "customer": "c"}), more);
    event.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    event
}

/// The articles of these events.
async fn with_articles(service: &Service, ids: &[&str]) {
    for id in ids {
        service.store.articles().set(&coat(id), NOW).await.unwrap();
    }
}

fn days_ago(days: u64) -> String {
    rfc3339(SystemTime::now() - Duration::from_hours(24 * days))
}

#[apply(contract)]
async fn each_event_has_its_own_answer(service: Service) {
    with_customers(&service.store, &["c"]).await;
    with_articles(&service, &["a", "a-7"]).await;
    let good = json!({"id": "e-1", "kind": "viewed", "article": "a"});
    let bad = [
        ("kind", json!("seen")),
        ("article", json!("a\u{0}")),
        ("customer", json!("nobody")),
        ("id", json!("")),
        ("colour", json!("red")),
        ("value", json!(-1)),
        ("value", json!(1e9)),
        ("time", json!("yesterday")),
        ("time", json!(days_ago(91))),
        ("time", json!("2999-01-01T00:00:00Z")),
    ];
    let mut events = vec![good.clone(), json!(7)];
    events.extend(bad.iter().map(|(field, value)| event("bad", "bought", json!({*field: value}))));
    events.push(event("late", "bought", json!({"time": days_ago(89)})));
    let answers = send(&service, events).await;
    let answer = |id: &str, recorded: bool| json!({"id": id, "recorded": recorded, "attribution": null});
    assert_eq!((&answers[0], &answers[12]), (&answer("e-1", true), &answer("late", true)));
    assert_eq!(answers[1]["errors"][0]["detail"], "expected an object, found a number");
    for ((field, value), answer) in bad.iter().zip(&answers[2..]) {
        let found = pick(answer, "status errors/0/pointer");
        assert_eq!(found, json!([422, format!("/{field}")]), "{value}: {answer}");
    }
    assert_eq!(send(&service, good).await, [answer("e-1", false)], "sent again, alone");
    let counts = service.json("/events/counts?days=90").await;
    assert_eq!(each(&counts["items"], "kind"), json!(["viewed", "bought"]));
    assert_eq!(each(&counts["items"], "events"), json!([1, 1]));
    let problem = service.send("/events", json!(vec![json!({}); 1001])).await.assert_problem(422, &[""]);
    assert_eq!(problem["detail"], "a list has at most 1000 events, found 1001; split it");
    service.get("/metrics").await.text().has([
        "atelier_events_total{kind=\"viewed\",result=\"recorded\"} 1",
        "atelier_events_total{kind=\"viewed\",result=\"known\"} 1",
        "atelier_events_total{kind=\"\",result=\"refused\"} 5",
    ]);
}

/// A shop that sends another kind of id hears of it, and loses nothing.
#[apply(contract)]
async fn an_event_of_an_unknown_article_is_kept_with_a_warning(Demo(service): Demo) {
    let customer = crate::harness::outfits()[0].customer.to_string();
    let bought =
        |id: &str, article: &str| event(id, "bought", json!({"customer": customer, "article": article}));
    service.delete("/articles/a-01243").is(204).await;
    // One that the release knows may be returned after it left the shop.
    let answers =
        send(&service, vec![bought("1", "a-00134"), bought("2", "SKU-9"), bought("3", "a-01243")]).await;
    assert_eq!(each(&json!(answers), "recorded"), json!([true, true, true]));
    assert_eq!(each(&json!(answers), "warning/code"), json!([null, "unknown-article", null]));
    text(&answers[1]["warning"]["detail"]).has(["no article or variant \"SKU-9\"", "kept"]);
    let alone = &send(&service, bought("4", "SKU-9")).await[0];
    assert_eq!(alone["warning"]["code"], "unknown-article");
    let lines = format!("{}\n{}\n", bought("5", "a-00134"), bought("6", "SKU-9"));
    let summary = service.lines("/events/bulk", lines.clone()).ok().await;
    assert_eq!(pick(&summary, "recorded unknown_articles unattributed"), json!([2, 1, 0]));
    assert_eq!(each(&summary["warnings"], "line"), json!([2]), "{summary}");
    let again = service.lines("/events/bulk", lines).ok().await;
    assert_eq!(pick(&again, "known unknown_articles"), json!([2, 1]));
    let export = service.json(format!("/customers/{customer}/export")).await;
    let kept = export["purchases"].as_array().unwrap().iter().find(|one| one["article"] == "SKU-9").unwrap();
    assert_eq!(kept["bought"], 3, "{export}");
    service.get("/metrics").await.text().has(["atelier_events_unknown_article_total 3\n"]);
    let analyst = service.signed_in(Role::Analyst).await;
    analyst.page("/operations").await.has(["<dt>events of unknown articles</dt><dd>3</dd>"]);
}

#[apply(on_sqlite)]
async fn an_event_is_read_as_a_line_of_a_stream_is(service: Service) {
    with_customers(&service.store, &["c"]).await;
    let day = &days_ago(1)[..10];
    let german = format!("{}.{}.{}", &day[8..], &day[5..7], &day[..4]);
    let written = [
        json!({"time": day}),
        json!({"time": german, "value": "12,5"}),
        json!({"time": format!("{day} 00:00"), "value": "1.299,00", "kind": "viewed"}),
        json!({"time": format!("{day}T00:00:00"), "consent": "ja", "order": 7}),
        json!({"article": null, "variant": "a-7-M", "value": 3}),
    ];
    for (number, more) in written.into_iter().enumerate() {
        let [alone, in_stream] =
            ["alone", "stream"].map(|way| event(&format!("{number} {way}"), "bought", more.clone()));
        assert_eq!(send(&service, alone).await[0]["recorded"], true, "{more}");
        let summary = service.lines("/events/bulk", format!("{in_stream}\n")).ok().await;
        assert_eq!(summary["recorded"], 1, "{summary}");
        let export = service.json("/customers/c/export").await;
        let [.., alone, in_stream] = &export["events"].as_array().unwrap()[..] else { panic!("{export}") };
        if more["time"].is_string() {
            assert_eq!(alone, in_stream, "{more}");
            text(&alone["time"]).has([day]);
        }
        assert_eq!(pick(alone, "kind article value order"), pick(in_stream, "kind article value order"));
    }
    let wrong = json!({"id": null, "time": "yesterday", "value": [1], "consent": "maybe", "when": 1});
    let problem = service
        .send("/events", wrong)
        .await
        .assert_problem(422, &["/when", "/consent", "/value", "/time", "/id", "/kind", "/article"]);
    let said = ["must be true or false", "a price is a number", "must be a time such as", "is missing"];
    for (number, said) in (1..).zip(said) {
        text(&problem["errors"][number]["detail"]).has([said]);
    }
}

#[apply(on_sqlite)]
async fn a_ticket_makes_an_event_feedback(service: Service) {
    with_customers(&service.store, &["c"]).await;
    let sale = json!({"order": "7", "value": 64.5, "ticket": completion(&service)});
    let mut events = ["viewed", "added", "bought"].map(|kind| event(kind, kind, sale.clone())).to_vec();
    events.push(event("returned", "returned", with(sale, json!({"ticket": null}))));
    for answer in send(&service, events).await {
        assert_eq!(pick(&answer, "recorded attribution"), json!([true, "ticket"]), "{answer}");
    }
    let gsu = &service.json("/feedback/counts").await["items"][0];
    let found = pick(gsu, "release method shown accepted rejected bought returned kept revenue in_window");
    let in_window = json!({"bought": 0, "returned": 0, "kept": 0, "revenue": 0.0});
    assert_eq!(found, json!(["spring", "gsu", 1, 0, 0, 1, 1, 0, 0.0, in_window]));
    let export = service.json("/customers/c/export").await;
    assert_eq!(each(&export["events"], "attribution"), json!(vec!["ticket"; 4]));
    assert_eq!(pick(&export["purchases"][0], "bought returned"), json!([1, 1]));

    // What the ticket does not say.
    let long_ago = (SystemTime::now() - Duration::from_hours(24 * 91)).into();
    let old = service.state.tickets().issue(Suggested { at: long_ago, ..suggested("gsu", None) });
    let answers = send(
        &service,
        vec![
            event("5", "viewed", json!({"article": "a-9", "ticket": completion(&service)})),
            event("6", "viewed", json!({"ticket": "made-up"})),
            event("7", "viewed", json!({"ticket": old})),
        ],
    )
    .await;
    assert_eq!(answers[0]["errors"][0]["pointer"], "/ticket", "{answers:?}");
    assert_eq!(answers[1]["status"], 404);
    assert_eq!(pick(&answers[2], "recorded attribution"), json!([true, null]));

    // Without a ticket, shown a moment ago.
    let window = event("8", "bought", json!({"order": "8", "value": 64.5}));
    assert_eq!(send(&service, window).await[0]["attribution"], "window");
    let total = &service.json("/feedback/acceptance?by=method").await["total"]["in_window"];
    assert_eq!(pick(total, "bought revenue"), json!([1, 64.5]), "{total}");
}

/// It counts for whom it was made, or for someone who is not named.
#[apply(contract)]
async fn a_ticket_for_one_customer_does_not_count_for_another(service: Service) {
    with_customers(&service.store, &["c", "d"]).await;
    with_articles(&service, &["a-7"]).await;
    let issue = |customer: Option<&str>| {
        let customer = customer.map(|id| CustomerId::new(id).unwrap());
        service.state.tickets().issue(Suggested { customer, ..suggested("gsu", None) })
    };
    let (of_c, of_all) = (issue(Some("c")), issue(None));
    let sale = |id: &str, customer: Value, ticket: &str| {
        event(id, "bought", json!({"customer": customer, "ticket": ticket, "order": id, "value": 9}))
    };
    let events = vec![
        sale("1", json!("d"), &of_c),
        sale("2", json!("c"), &of_c),
        sale("3", Value::Null, &issue(Some("c"))),
        sale("4", json!("d"), &of_all),
    ];
    let answers = send(&service, events.clone()).await;
    assert_eq!(each(&json!(answers), "recorded"), json!(vec![true; 4]));
    assert_eq!(each(&json!(answers), "attribution"), json!([null, "ticket", "ticket", "ticket"]));
    assert_eq!(answers[0]["warning"]["code"], "ticket-of-another-customer");
    text(&answers[0]["warning"]["detail"]).has(["for another customer than d"]);
    assert!(answers[1..].iter().all(|answer| answer.get("warning").is_none()), "{answers:?}");
    let bought = async || service.json("/feedback/counts").await["items"][0]["bought"].clone();
    assert_eq!(bought().await, 3);

    // A stream says so by line, and feedback is about the suggestion alone.
    let summary = service.lines("/events/bulk", json_lines(&events)).ok().await;
    assert_eq!(pick(&summary, "recorded known unattributed"), json!([0, 4, 1]));
    assert_eq!(each(&summary["warnings"], "line"), json!([1]), "{summary}");
    let mut feedback = crate::outcomes::feedback::event(&of_c, "5", "accepted");
    feedback["customer"] = "d".into();
    let problem = service.send("/feedback", &feedback).await.assert_problem(422, &["/customer"]);
    text(&problem["detail"]).has(["for another customer than d"]);
    feedback["customer"] = "c".into();
    assert_eq!(service.ask_ok("/feedback", feedback).await["recorded"], true);
    assert_eq!(bought().await, 3);
}

#[apply(on_sqlite)]
async fn a_batch_is_read_as_it_happened(service: Service) {
    with_customers(&service.store, &["c", "d"]).await;
    let viewed = event("1", "viewed", json!({"ticket": completion(&service)}));
    let bought = event("2", "bought", json!({"order": "", "value": 10.0}));
    let answers = send(&service, vec![bought, viewed.clone()]).await;
    assert_eq!(answers[0]["attribution"], "window", "shown in the same batch: {answers:?}");
    // An order without a name is none: nobody else's return belongs to it.
    let returned = event("3", "returned", json!({"customer": "d", "order": ""}));
    assert_eq!(send(&service, returned).await[0]["attribution"], Value::Null);
    let of_another = with(viewed.clone(), json!({"customer": "d"}));
    assert_eq!(send(&service, of_another).await[0]["status"], 409, "the id of another customer's event");
    assert_eq!(send(&service, viewed).await[0]["recorded"], false, "again");
}

/// The demo's styles become articles that customers had.
#[apply(contract)]
async fn purchases_are_what_the_customer_had(db: TestDatabase) {
    let bags = rows::<Article>().into_iter().filter(|article| article.kind() == "bag");
    let ids: Vec<String> = bags.take(10).map(|article| article.id.to_string()).collect();
    let folder = folder_with_schema(|schema| {
        let begin = schema.find("name = \"preferred_styles\"").unwrap();
        let end = begin + schema[begin..].find("]\n").unwrap();
        let had = format!("name = \"had\"\nkind = \"set\"\nvalues = {ids:?}\n");
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
    let service = Service::filled(&db, &folder).await;
    service.releases.serve("next").await.unwrap();
    let profile = json!({"features": {"gender": "female"}});
    service.put("/customers/c", &profile).await;
    let suggestions = async |no_gos: bool| {
        let filters = json!({"types": {"3": ["bag"]}, "no_gos": no_gos, "fit": false, "in_stock": false});
        let asked = json!({"customer": "c", "outfit": ["a-00315", "a-01317", "a-00587", null], "method": "gsu",
                           "k": 250, "filters": filters});
        let answer = service.ask_ok("/complete", asked).await;
        assert_eq!(answer["warnings"], json!([]), "{answer}");
        let suggested = &answer["blanks"][0]["suggestions"];
        (each(suggested, "article/id").as_array().unwrap().clone(), each(suggested, "share"))
    };
    let before = suggestions(true).await;
    let is_known = |id: &&Value| ids.iter().any(|known| **id == *known);
    let bag = before.0.iter().find(is_known).expect("one that the model knows as had");
    send(&service, event("1", "bought", json!({"article": bag}))).await;
    let after = suggestions(true).await;
    assert!(after.0.len() + 1 == before.0.len() && !after.0.contains(bag), "not again");
    assert_ne!(suggestions(false).await, before, "the model sees it at once");
    service.put("/customers/c", profile).await;
    assert_eq!(suggestions(true).await, after, "a profile that is replaced keeps it");
    send(&service, event("2", "returned", json!({"article": bag}))).await;
    assert_eq!(suggestions(true).await, before, "it came back");
}

#[apply(contract)]
async fn nothing_of_a_visitor_is_kept_without_consent(service: Service, db: TestDatabase) {
    let bought = |id: &str, consent: Value| {
        let visitor =
            json!({"customer": null, "visitor": "Vera", "order": "Order of Vera", "consent": consent});
        event(id, "bought", visitor)
    };
    let mut raw = db.raw().await;
    let named = "select order_id from events where visitor_hash is not null or order_id is not null";
    send(&service, bought("1", Value::Null)).await;
    crate::customers::sql::erasing::everything(&db, &mut raw).await.lacks(["Vera"]);
    let kept: Vec<String> = sqlx::query_scalar(named).fetch_all(&mut raw).await.unwrap();
    assert_eq!(kept, Vec::<String>::new());
    send(&service, bought("2", true.into())).await;
    let kept: Vec<String> = sqlx::query_scalar(named).fetch_all(&mut raw).await.unwrap();
    assert_eq!(kept, ["Order of Vera"]);
    crate::customers::sql::erasing::everything(&db, &mut raw).await.lacks(["\nVera\n"]);
}

fn views(count: usize) -> Vec<String> {
    (0..count)
        .map(|n| json!({"id": format!("s-{n}"), "kind": "viewed", "article": "a"}).to_string())
        .collect()
}

#[apply(on_sqlite)]
async fn a_stream_is_recorded_without_its_bad_lines(service: Service) {
    let mut lines = views(1200);
    lines[3] = "{".into();
    lines[700] = json!({"id": "x", "kind": "seen", "article": "a"}).to_string();
    lines[900] = event("y", "bought", json!({"customer": "nobody"})).to_string();
    lines.swap_remove(1100);
    lines.push(lines[0].clone());
    let found = service.lines("/events/bulk", lines.join("\n")).ok().await;
    assert_eq!(pick(&found, "recorded known refused"), json!([1196, 1, 3]), "{found}");
    let mut said: Vec<u64> = serde_json::from_value(each(&found["errors"], "line")).unwrap();
    said.sort_unstable();
    assert_eq!(said, [4, 701, 901], "{found}");
    let again = service.lines("/events/bulk", lines.join("\n")).ok().await;
    assert_eq!(pick(&again, "recorded known"), json!([0, 1197]));
}

#[apply(on_sqlite)]
async fn the_page_shows_sales_beside_acceptance(Demo(service): Demo) {
    let customer = crate::harness::outfits()[0].customer.to_string();
    let asked = json!({"customer": customer, "outfit": ["a-00134", null], "k": 1});
    let answer = service.ask_ok("/complete", asked).await;
    let article = &answer["blanks"][0]["suggestions"][0]["article"]["id"];
    let sold = |id: &str, kind: &str, ticket: &Value| {
        let sale =
            json!({"article": article, "customer": customer, "order": id, "value": 64.5, "ticket": ticket});
        event(id, kind, sale)
    };
    let ticket = &answer["completion_id"];
    send(&service, vec![sold("1", "bought", ticket), sold("2", "kept", ticket)]).await;
    send(&service, sold("3", "bought", &Value::Null)).await;
    let analyst = service.signed_in(Role::Analyst).await;
    for by in ["method", "customer.gender"] {
        let html = analyst.page(format!("/operations/acceptance?by={by}&days=7")).await;
        let cells = html.after("<tfoot>").all_between("<td class=\"number\">", "</td>");
        let expected = ["1", "0", "0", "1", "0", "1", "€64.50", "1", "0", "0", "€64.50"];
        assert_eq!(cells[..11], expected, "{by}: {html}");
        let row =
            "<tr><th scope=\"row\">bought</th><td class=\"number\">2</td><td class=\"number\">€129</td></tr>";
        html.has([row]);
    }
    let csv = analyst.page("/operations/acceptance.csv?by=customer.gender&days=7").await;
    csv.lines().nth(1).unwrap().has([",1,0,0,1,0,1,64.5,1,0,0,64.5,"]);
}

#[apply(on_sqlite)]
async fn a_stream_has_a_limit_of_lines(db: TestDatabase) {
    let service = Service::start_with(&db, Limits { bulk_rows: 700, ..Limits::default() }).await;
    let lines = views(701);
    let refused = service.lines("/events/bulk", lines.join("\n")).is(422).await.json();
    let said = "there are more than 700 lines (limits.bulk_rows); the first 700 were recorded, so send only the rest";
    assert_eq!(refused["detail"], said);
    assert_eq!(service.json("/events/counts").await["items"][0]["events"], 700);
    let rest = service.lines("/events/bulk", lines[1..].join("\n")).ok().await;
    assert_eq!(rest["recorded"], 1);
}

/// What files say without a time of day happened after all that was seen on that day.
#[apply(on_sqlite)]
async fn a_purchase_with_a_date_alone_belongs_to_what_was_seen_that_day(service: Service) {
    with_customers(&service.store, &["c"]).await;
    let viewed = event("1", "viewed", json!({"ticket": completion(&service)}));
    let today = &rfc3339(SystemTime::now())[..10];
    let (year, month, day) = (&today[..4], &today[5..7], &today[8..]);
    for (date, attribution) in [
        (today.to_owned(), json!("window")),
        (format!("{day}.{month}.{year}"), json!("window")),
        (format!("{today} 00:00"), Value::Null),
    ] {
        let bought = event(&date, "bought", json!({"order": date, "value": 10, "time": date}));
        let summary = service.lines("/events/bulk", format!("{viewed}\n{bought}\n")).ok().await;
        assert_eq!(summary["refused"], 0, "{summary}");
        let export = service.json("/customers/c/export").await;
        let stored = export["events"].as_array().unwrap();
        let found = stored.iter().find(|event| event["order"] == json!(date)).unwrap();
        assert_eq!(found["attribution"], attribution, "{date}");
    }
}

/// `atelier import --events` has no live release.
#[apply(on_sqlite)]
async fn events_of_files_count_for_the_articles_type(Demo(service): Demo) {
    let mut about = suggested("gsu", None);
    about.blanks[0].articles = vec![ArticleId::new("a-00134").unwrap()];
    let ticket = service.state.tickets().issue(about);
    let row = event("1", "added", json!({"article": "a-00134", "customer": null, "ticket": ticket}));
    let (row, _) =
        EventRow::from_fields(row.as_object().unwrap().clone(), &Schema::default_schema()).unwrap();
    let (store, tickets) = (&service.store, service.state.tickets());
    let recorder = Recorder { store, tickets, terms: config::Events::default().terms(), serving: None };
    let result = recorder.record(vec![row], SystemTime::now().into()).await.unwrap().remove(0).unwrap();
    assert!(result.event.counts);
    let by_type = service.json("/feedback/acceptance?by=type").await;
    assert_eq!(pick(&by_type["items"][0], "value accepted"), json!(["blouse", 1]));
}

#[apply(on_sqlite)]
async fn an_article_that_two_slots_suggest_counts_where_it_ranks_best(service: Service) {
    with_customers(&service.store, &["c"]).await;
    let mut about = suggested("gsu", None);
    let article = |id| ArticleId::new(id).unwrap();
    let blank = |slot, articles| SuggestedFor { slot, articles, in_sets: Vec::new(), rules: Vec::new() };
    about.outfit = vec![None, None];
    about.blanks = vec![blank(0, vec![article("a-3"), article("a-7")]), blank(1, vec![article("a-7")])];
    let ticket = service.state.tickets().issue(about);
    send(&service, event("1", "added", json!({"ticket": ticket}))).await;
    let export = service.json("/customers/c/export").await;
    let found = (each(&export["feedback"], "slot"), each(&export["feedback"], "rank"));
    assert_eq!(found, (json!([1, 1]), json!([1, 1])));
}

/// Everybody gets the same look, and each visitor counts once.
#[apply(contract)]
async fn a_shared_look_is_shown_once_to_each_visitor(service: Service, db: TestDatabase) {
    with_customers(&service.store, &["erika-4711", "d"]).await;
    let ticket = service.state.tickets().issue(Suggested { is_shared: true, ..suggested("look", None) });
    let shown = |(id, customer, visitor): (u8, &Value, &Value)| {
        let who = json!({"customer": customer, "visitor": visitor, "completion_id": ticket, "slot": 1});
        event(&id.to_string(), "shown", who)
    };
    let (erika, d, v, w, none) = (json!("erika-4711"), json!("d"), json!("v"), json!("w"), Value::Null);
    let events = [
        (1, &none, &v),
        (2, &none, &v),
        (3, &none, &w),
        (4, &erika, &none),
        (5, &erika, &v),
        (6, &d, &none),
        (7, &none, &none),
        (8, &none, &none),
    ];
    let answers = service.ask_ok("/feedback", json!(events.map(&shown))).await;
    assert_eq!(each(&answers, "recorded"), json!([true, false, true, true, false, true, true, true]));
    // The same visitor in an event, who is counted and not kept.
    send(&service, event("9", "viewed", json!({"customer": null, "visitor": "v", "ticket": ticket}))).await;
    let counted = async || service.json("/feedback/counts").await["items"][0]["shown"].clone();
    assert_eq!(counted().await, 6);
    let long = shown((10, &none, &json!("v".repeat(201))));
    service.send("/feedback", long).await.assert_problem(422, &["/visitor"]);

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
    assert_eq!(counted().await, 6);
}
