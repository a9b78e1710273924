//! How often suggestions are accepted: the page, its file and the API have the same figures.

use serde_json::{Value, json};

use crate::{
    harness::{
        Analyst, Html, Service, apply, assert_has, contract,
        json::{list, with},
        on_sqlite,
    },
    releases::operations::row,
};

/// Four suggestions for a woman of an experiment, of which one was accepted, and a suggestion for nobody. Returns the arm.
pub async fn with_feedback(service: &Service) -> String {
    let arms =
        json!([{"name": "gsu", "method": "gsu", "share": 1}, {"name": "none", "method": "none", "share": 1}]);
    service.put("/experiments/autumn", json!({"arms": arms, "state": "running"})).is(201).await;
    let ask = async |kind: &str, more: Value| {
        let filters = json!({"types": {"1": [kind]}});
        let request = json!({"outfit": ["a-00134", null], "filters": filters});
        service.ask_ok("/complete", with(request, &more)).await
    };
    let coats = ask("coat", json!({"customer": "c-014871", "k": 4})).await;
    let event = |answer: &Value, kind: &str, place: usize| {
        json!({"id": format!("{kind}-{place}"), "completion_id": answer["completion_id"], "kind": kind, "slot": 1,
            "article": answer["blanks"][0]["suggestions"][place]["article"]["id"]})
    };
    let mut events: Vec<Value> = (0..4).map(|place| event(&coats, "shown", place)).collect();
    events.push(event(&coats, "accepted", 0));
    for event in &mut events {
        event["customer"] = json!("c-014871");
    }
    let bag = ask("bag", json!({"method": "np", "k": 1})).await;
    events.push(event(&bag, "rejected", 0));
    service.ask_ok("/feedback", Value::Array(events)).await;
    coats["arm"].as_str().unwrap().to_owned()
}

#[apply(contract)]
async fn figures_are_by_day_method_arm_type_and_feature(Analyst(service, analyst): Analyst) {
    let page = async |query: &str| analyst.page(format!("/operations/acceptance?{query}")).await;
    let figures = async |query: &str| service.json(format!("/feedback/acceptance?{query}")).await;
    page("").await.has(["No suggestions were shown in the last 30 days"]);
    let arm = with_feedback(&service).await;
    let (_, method) = arm.split_once('/').unwrap();
    // Wilson's interval for one of four.
    let quarter = ["25.0 % (4.6 to 69.9)", "4", "1", "0", "0"];
    let nothing = ["0.0 % (0.0 to 79.3)", "1", "0", "1", "0"];
    for (by, first, second) in [
        ("method", method, "np"),
        ("arm", &arm, "no experiment"),
        ("type", "coat", "bag"),
        ("customer.gender", "female", "unknown customer"),
    ] {
        let html = page(&format!("by={by}&days=7")).await;
        for (value, figures) in [(first, quarter), (second, nothing)] {
            assert_eq!(row(&html, &format!("<th scope=\"row\">{value}</th>"))[..5], figures, "{by}");
        }
        let pointed_at = format!("{first}: 25.0 % (4.6 to 69.9)</text>");
        html.has(["<svg class=\"chart whiskers\"", &pointed_at]);
        let csv = analyst.get(format!("/operations/acceptance.csv?by={by}&days=7")).await;
        let file = format!("attachment; filename=\"acceptance-{by}-7-days.csv\"");
        assert_eq!(csv.header("content-disposition"), file);
        let csv = csv.text();
        let head = "shown,accepted,rejected,bought,returned,kept,revenue,window_bought,window_returned,window_kept,window_revenue,acceptance,low,high";
        let lines = [format!("{by},{head}"), format!("{first},4,1,0,0,0,0,0,0,0,0,0,0.25,0.045587,0.699358")];
        assert_eq!(csv.lines().take(2).collect::<Vec<_>>(), lines);
        assert_eq!(csv.lines().count(), 3, "{csv}");
        let json = figures(&format!("by={by}&days=1")).await;
        assert_has(&json["items"][0], json!({"value": first, "shown": 4}));
        assert_has(&json["total"], json!({"shown": 5, "accepted": 1}));
    }
    let html = page("").await;
    html.has(["<svg class=\"chart lines\"", "class=\"band\""]);
    assert_eq!(row(&html, "<tfoot><tr><th scope=\"row\">all</th>")[1..3], ["5", "1"]);
    let known = figures("by=articles").await;
    let items = list(&known["items"]);
    assert_eq!(items.iter().map(|item| item["shown"].as_u64().unwrap()).sum::<u64>(), 5, "{known}");
    assert!(items.iter().all(|item| item["value"] == "known" || item["value"] == "new"), "{known}");

    // By place, and of some suggestions only.
    assert_eq!(row(&page("by=slot").await, "<th scope=\"row\">piece 2</th>")[1..3], ["5", "1"]);
    assert_eq!(figures("by=slot").await["items"][0]["value"], "1");
    for (only, shown, accepted) in [
        (&*format!("type=coat&arm={arm}&slot=1&release=demo"), 4, 1),
        ("method=np", 1, 0),
        ("method=np&type=coat", 0, 0),
        ("slot=0", 0, 0),
    ] {
        for query in ["type", "customer.gender"].map(|by| format!("by={by}&{only}")) {
            let total = json!({"shown": shown, "accepted": accepted});
            assert_has(&figures(&query).await["total"], total);
            let html = page(&query).await;
            if shown == 0 {
                html.has(["No suggestions match"]);
                continue;
            }
            let all = row(&html, "<tfoot><tr><th scope=\"row\">all</th>");
            assert_eq!(all[1..3], [shown.to_string(), accepted.to_string()], "{query}");
            let link = html.between("href=\"/operations/acceptance.csv?", "\"");
            let csv = analyst.page(format!("/operations/acceptance.csv?{link}")).await;
            let counted = |line: &str| line.split(',').nth(1).unwrap().parse::<u64>().unwrap();
            assert_eq!(csv.lines().skip(1).map(counted).sum::<u64>(), shown, "{csv}");
        }
    }
    let chosen =
        ["<option value=\"coat\" selected>coat</option>", "<option value=\"1\" selected>piece 2</option>"];
    page("type=coat&slot=1").await.has(chosen);

    service.delete("/customers/c-014871").is(204).await;
    let erased = json!({"items": [{"value": "unknown customer", "shown": 5}]});
    assert_has(&figures("by=customer.gender").await, erased);
}

#[apply(on_sqlite)]
async fn invalid_periods_and_features_are_refused(Analyst(service, analyst): Analyst) {
    for (query, said) in [
        ("by=weather", "expected day, method, release, arm, type, slot, articles, source or customer."),
        ("slot=x", "cannot read &#34;x&#34; as its slot"),
        ("by=customer.mood", "the schema has no feature"),
        ("days=8", "a period has 7, 30 or 90 days, found 8"),
        ("days=x", "cannot read &#34;x&#34; as its days"),
    ] {
        for path in ["/operations/acceptance", "/operations/acceptance.csv"] {
            analyst.get(format!("{path}?{query}")).is(422).await.text().has([said]);
        }
    }
    analyst.get("/operations/acceptance?days=7&yclid=1&colour=red").is(200).await;
    let answer = service.get("/feedback/acceptance?by=day&days=0").is(422).await;
    answer.text().has(["a period has 1 to 3650 days, found 0"]);
}
