//! How often suggestions are accepted: the page, its file and the API have the same figures.

use atelier_core::domain::Role;
use serde_json::{Value, json};

use super::row;
use crate::{
    harness::{apply, contract, on_sqlite},
    web::{Analyst, Demo, Service},
};

/// Four suggestions for a woman of an experiment, of which one was accepted, and a suggestion for nobody. Returns the arm.
pub async fn with_feedback(service: &Service) -> String {
    let arms =
        json!([{"name": "gsu", "method": "gsu", "share": 1}, {"name": "none", "method": "none", "share": 1}]);
    service.put("/experiments/autumn", &json!({"arms": arms, "state": "running"})).await;
    let request = json!({"customer": "c-014871", "outfit": ["a-00134", null], "k": 4,
        "filters": {"types": {"1": ["coat"]}}});
    let answer = service.ask_ok("/complete", &request).await;
    let arm = answer["arm"].as_str().unwrap().to_owned();
    let mut events = Vec::new();
    for (number, suggestion) in (0..).zip(answer["blanks"][0]["suggestions"].as_array().unwrap()) {
        for kind in if number == 0 { &["shown", "accepted"][..] } else { &["shown"] } {
            events.push(json!({"id": format!("{kind}-{number}"), "completion_id": answer["completion_id"], "kind": kind,
                "slot": 1, "article": suggestion["article"]["id"], "customer": "c-014871"}));
        }
    }
    let request =
        json!({"outfit": ["a-00134", null], "method": "np", "k": 1, "filters": {"types": {"1": ["bag"]}}});
    let answer = service.ask_ok("/complete", &request).await;
    events.push(json!({"id": "bag", "completion_id": answer["completion_id"], "kind": "rejected", "slot": 1,
        "article": answer["blanks"][0]["suggestions"][0]["article"]["id"]}));
    service.ask_ok("/feedback", &Value::Array(events)).await;
    arm
}

#[apply(contract)]
async fn figures_are_by_day_method_arm_type_and_feature(Analyst(service, analyst): Analyst) {
    let none = analyst.page("/operations/acceptance").await;
    assert!(none.contains("No suggestions were shown in the last 30 days"), "{none}");
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
        let html = analyst.page(&format!("/operations/acceptance?by={by}&days=7")).await;
        for (value, figures) in [(first, quarter), (second, nothing)] {
            assert_eq!(row(&html, &format!("<th scope=\"row\">{value}</th>"))[..5], figures, "{by}");
        }
        assert!(html.contains("<svg class=\"chart whiskers\""), "{by}: {html}");
        assert!(
            html.contains(&format!("{first}: 25.0 % (4.6 to 69.9)</text>")),
            "{by} says it when it is pointed at"
        );
        let csv = analyst.get(&format!("/operations/acceptance.csv?by={by}&days=7")).await;
        let file = format!("attachment; filename=\"acceptance-{by}-7-days.csv\"");
        assert_eq!(csv.header("content-disposition"), file);
        let csv = csv.text();
        let mut lines = csv.lines();
        let head = format!(
            "{by},shown,accepted,rejected,bought,returned,kept,revenue,window_bought,window_returned,window_kept,window_revenue,acceptance,low,high"
        );
        assert_eq!(lines.next(), Some(head.as_str()));
        assert_eq!(lines.next().unwrap(), format!("{first},4,1,0,0,0,0,0,0,0,0,0,0.25,0.045587,0.699358"));
        assert_eq!(lines.count(), 1, "{csv}");
        let json = service.json(&format!("/feedback/acceptance?by={by}&days=1")).await;
        assert_eq!(
            (&json["items"][0]["value"], &json["items"][0]["shown"]),
            (&json!(first), &json!(4)),
            "{json}"
        );
        assert_eq!((&json["total"]["shown"], &json["total"]["accepted"]), (&json!(5), &json!(1)), "{json}");
    }
    let html = analyst.page("/operations/acceptance").await;
    assert!(html.contains("<svg class=\"chart lines\"") && html.contains("class=\"band\""), "{html}");
    assert_eq!(row(&html, "<tfoot><tr><th scope=\"row\">all</th>")[1..3], ["5", "1"]);
    let known = service.json("/feedback/acceptance?by=articles").await;
    let items = known["items"].as_array().unwrap();
    let shown = items.iter().map(|item| item["shown"].as_u64().unwrap()).sum::<u64>();
    assert!(
        shown == 5 && items.iter().all(|item| item["value"] == "known" || item["value"] == "new"),
        "{known}"
    );

    // By place, and of some suggestions only.
    let html = analyst.page("/operations/acceptance?by=slot").await;
    assert_eq!(row(&html, "<th scope=\"row\">piece 2</th>")[1..3], ["5", "1"]);
    assert_eq!(service.json("/feedback/acceptance?by=slot").await["items"][0]["value"], "1");
    for (only, shown, accepted) in [
        (format!("type=coat&arm={arm}&slot=1&release=demo"), 4, 1),
        ("method=np".to_owned(), 1, 0),
        ("method=np&type=coat".to_owned(), 0, 0),
        ("slot=0".to_owned(), 0, 0),
    ] {
        for by in ["type", "customer.gender"] {
            let json = service.json(&format!("/feedback/acceptance?by={by}&{only}")).await;
            let total = &json["total"];
            assert_eq!(
                (&total["shown"], &total["accepted"]),
                (&json!(shown), &json!(accepted)),
                "{by} {only}"
            );
            let html = analyst.page(&format!("/operations/acceptance?by={by}&{only}")).await;
            if shown == 0 {
                assert!(html.contains("No suggestions match"), "{html}");
                continue;
            }
            let all = row(&html, "<tfoot><tr><th scope=\"row\">all</th>");
            assert_eq!(all[1..3], [shown.to_string(), accepted.to_string()], "{by} {only}");
            let csv =
                html.split_once("href=\"/operations/acceptance.csv?").unwrap().1.split('"').next().unwrap();
            let csv =
                analyst.page(&format!("/operations/acceptance.csv?{}", csv.replace("&#38;", "&"))).await;
            let counted = |line: &str| line.split(',').nth(1).unwrap().parse::<u64>().unwrap();
            assert_eq!(csv.lines().skip(1).map(counted).sum::<u64>(), shown, "{csv}");
        }
    }
    let html = analyst.page("/operations/acceptance?type=coat&slot=1").await;
    assert!(html.contains("<option value=\"coat\" selected>coat</option>"), "{html}");
    assert!(html.contains("<option value=\"1\" selected>piece 2</option>"), "{html}");

    service.delete("/customers/c-014871").await;
    let erased = service.json("/feedback/acceptance?by=customer.gender").await;
    assert_eq!(erased["items"][0]["value"], "unknown customer", "{erased}");
    assert_eq!((&erased["items"][0]["shown"], erased["items"].as_array().unwrap().len()), (&json!(5), 1));
}

#[apply(on_sqlite)]
async fn invalid_periods_and_features_are_refused(Analyst(service, analyst): Analyst) {
    for (query, said) in [
        ("by=weather", "expected day, method, release, arm, type, slot, articles or customer."),
        ("slot=x", "cannot read &#34;x&#34; as its slot"),
        ("by=customer.mood", "the schema has no feature"),
        ("days=8", "a period has 7, 30 or 90 days, found 8"),
        ("days=x", "cannot read &#34;x&#34; as its days"),
    ] {
        for path in ["/operations/acceptance", "/operations/acceptance.csv"] {
            let answer = analyst.get(&format!("{path}?{query}")).await;
            assert_eq!(answer.status(), 422, "{path}?{query}");
            let html = answer.text();
            assert!(html.contains(said), "{query}: {html}");
        }
    }
    analyst.get("/operations/acceptance?days=7&yclid=1&colour=red").is(200).await;
    let answer = service.get("/feedback/acceptance?by=day&days=0").is(422).await;
    assert!(answer.text().contains("a period has 1 to 3650 days, found 0"));
}

#[apply(on_sqlite)]
async fn only_analysts_see_it(Demo(service): Demo) {
    let stylist = service.signed_in(Role::Stylist).await;
    for path in ["/operations/acceptance", "/operations/acceptance.csv"] {
        assert_eq!(stylist.get(path).await.status(), 403, "{path}");
    }
}
