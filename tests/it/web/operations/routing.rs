//! Which method answers by default.

use atelier_core::domain::Role;
use serde_json::{Value, json};

use super::{last, row};
use crate::{
    harness::{apply, contract},
    web::{Demo, header},
};

#[apply(contract)]
async fn routing_is_confirmed_before_it_is_set(Demo(service): Demo) {
    let admin = service.signed_in(Role::Admin).await;
    let html = admin.page("/operations/routing").await;
    assert!(html.contains("Default method: match, set by release demo"), "{html}");
    assert!(html.contains("No experiment runs"), "{html}");

    // As a browser sends the form, with all of its fields.
    let arms = [("share-c", ""), ("share-gsu", "9"), ("share-none", "1"), ("share-np", " ")];
    let query = "default_method=np&experiment=autumn&share-none=1&share-c=&share-np=+&share-gs=&share-gsu=9";
    let asked = admin.page(&format!("/operations/routing/change?{query}")).await;
    let before = "the release's default, no experiment";
    let after = "np, experiment autumn (none 1, gsu 9)";
    assert!(asked.contains(&format!("<dd><strong>{after}</strong></dd>")), "{asked}");
    assert!(asked.contains("Known customers are split between the arms"), "{asked}");
    assert_eq!(
        service.json("/routing").await["experiment"],
        Value::Null,
        "the confirmation page changes nothing"
    );

    let fields: Vec<(&str, &str)> = [("before", before), ("default_method", "np"), ("experiment", "autumn")]
        .into_iter()
        .chain(arms)
        .collect();
    let set = admin.post("/operations/routing", &fields).await;
    assert_eq!((set.status().as_u16(), header(&set, "location")), (303, "/operations/routing"));
    let arms = json!([{"method": "none", "share": 1}, {"method": "gsu", "share": 9}]);
    let routing = json!({"default_method": "np", "experiment": {"name": "autumn", "arms": arms}});
    assert_eq!(service.json("/routing").await, routing);
    let (_, action, subject, details) = last(&service).await.unwrap();
    assert_eq!((action.as_str(), subject.as_str()), ("routing.set", "routing"));
    assert_eq!(details, json!({"before": before, "after": after}));
    let html = admin.page("/operations/routing").await;
    assert_eq!(row(&html, "<th scope=\"row\">gsu</th>"), ["9", "90 %"]);
    assert!(
        html.contains("id=\"share-none\" value=\"1\""),
        "the form starts from the current routing: {html}"
    );

    // The same form again is refused: it was made before the change.
    let late = admin.post("/operations/routing", &fields).await;
    assert_eq!(late.status(), 409);
    assert!(
        late.text().await.unwrap().contains("the routing was changed in the meantime, so nothing was set")
    );
    let same = admin.page(&format!("/operations/routing/change?{query}")).await;
    assert!(
        same.contains("Nothing would change") && !same.contains("action=\"/operations/routing\""),
        "{same}"
    );

    let ended = admin.page("/operations/routing/change?default_method=np").await;
    assert!(ended.contains("The experiment ends"), "{ended}");
    let fields = [("before", after), ("default_method", "np")];
    assert_eq!(admin.post("/operations/routing", &fields).await.status(), 303);
    assert_eq!(service.json("/routing").await, json!({"default_method": "np", "experiment": null}));
}

#[apply(contract)]
async fn invalid_routing_is_explained(Demo(service): Demo) {
    let admin = service.signed_in(Role::Admin).await;
    for (query, said) in [
        ("default_method=BERT", "hyphens, found &#34;BERT&#34;"),
        ("default_method=bert", "no method bert"),
        ("experiment=x&share-bert=1&share-np=1", "no method bert"),
        ("experiment=x&share-gsu=1", "an experiment has two to twenty arms, this one has 1"),
        ("experiment=a+b&share-gsu=1&share-np=1", "an experiment&#39;s name has 1 to 64 letters"),
        ("share-gsu=1&share-np=1", "an experiment&#39;s name has 1 to 64 letters"),
        (
            "experiment=x&share-gsu=half&share-np=1",
            "the share of gsu is a whole number, found &#34;half&#34;",
        ),
        ("experiment=x&share-gsu=0&share-np=1", "the arm of gsu has no share; leave it out"),
        ("experiment=x&share-gsu=-1&share-np=1", "the share of gsu is a whole number"),
    ] {
        let answer = admin.get(&format!("/operations/routing/change?{query}")).await;
        assert_eq!(answer.status(), 422, "{query}");
        let html = answer.text().await.unwrap();
        let (_, wrong) = html.split_once("role=\"alert\"><ul>").expect("it says what is wrong");
        assert!(wrong.split("</ul>").next().unwrap().contains(said), "{query}: {html}");
        let fields: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(admin.post("/operations/routing", &fields).await.status(), 422, "{query}");
    }
    let typed = admin.get("/operations/routing/change?experiment=a+b&share-gsu=half").await;
    let html = typed.text().await.unwrap();
    assert!(html.contains("value=\"a b\"") && html.contains("id=\"share-gsu\" value=\"half\""), "{html}");
    assert_eq!(last(&service).await, None);
}

#[apply(contract)]
async fn analysts_see_it_and_change_nothing(Demo(service): Demo) {
    let arms = json!([{"method": "gsu", "share": 1}, {"method": "none", "share": 1}]);
    service.put("/routing", &json!({"experiment": {"name": "autumn", "arms": arms}})).await;
    let analyst = service.signed_in(Role::Analyst).await;
    assert_eq!(row(&analyst.page("/operations/routing").await, "<th scope=\"row\">gsu</th>"), ["1", "50 %"]);
    let arms = json!([{"method": "gsu", "share": 1}, {"method": "match", "share": 999}]);
    service.put("/routing", &json!({"experiment": {"name": "autumn", "arms": arms}})).await;
    let html = analyst.page("/operations/routing").await;
    assert_eq!(row(&html, "<th scope=\"row\">gsu</th>"), ["1", "under 1 %"]);
    assert_eq!(row(&html, "<th scope=\"row\">match</th>"), ["999", "over 99 %"]);
    for path in [
        "/operations",
        "/operations/acceptance",
        "/operations/articles",
        "/operations/releases",
        "/operations/routing",
    ] {
        let html = analyst.page(path).await;
        let (_, main) = html.split_once("<main").unwrap();
        for change in ["method=\"post\"", "/operations/routing/change", "/operations/releases/demo"] {
            assert!(!main.contains(change), "{path} has {change}");
        }
    }
    assert!(analyst.page("/operations/routing").await.contains("<strong>autumn</strong>"));
    for path in ["/operations/routing/change", "/operations/releases/demo"] {
        assert_eq!(analyst.get(path).await.status(), 403, "{path}");
    }
    for path in ["/operations/routing", "/operations/releases/demo"] {
        assert_eq!(analyst.post(path, &[("before", "x")]).await.status(), 403, "{path}");
    }
    let stylist = service.signed_in(Role::Stylist).await;
    assert_eq!(stylist.get("/operations/routing").await.status(), 403);
}
