//! Which method answers by default.

use atelier_core::domain::Role;
use serde_json::json;

use super::last;
use crate::{
    harness::{apply, on_sqlite},
    web::Demo,
};

#[apply(on_sqlite)]
async fn routing_is_confirmed_before_it_is_set(Demo(service): Demo) {
    let admin = service.signed_in(Role::Admin).await;
    let html = admin.page("/operations/routing").await;
    assert!(html.contains("Default method: match, set by release demo"), "{html}");

    let asked = admin.page("/operations/routing/change?default_method=np").await;
    assert!(asked.contains("<dd><strong>np</strong></dd>"), "{asked}");
    let before = "the release's default";
    assert_eq!(service.json("/routing").await, json!({"default_method": null}), "the page changes nothing");

    let fields = [("before", before), ("default_method", "np")];
    let set = admin.post("/operations/routing", &fields).await;
    assert_eq!((set.status(), set.header("location")), (303, "/operations/routing"));
    assert_eq!(service.json("/routing").await, json!({"default_method": "np"}));
    let (_, action, subject, details) = last(&service).await.unwrap();
    assert_eq!((action.as_str(), subject.as_str()), ("routing.set", "routing"));
    assert_eq!(details, json!({"before": before, "after": "np"}));

    // The same form again is refused: it was made before the change.
    let late = admin.post("/operations/routing", &fields).is(409).await;
    assert!(late.text().contains("the routing was changed in the meantime, so nothing was set"));
    let same = admin.page("/operations/routing/change?default_method=np").await;
    assert!(
        same.contains("Nothing would change") && !same.contains("action=\"/operations/routing\""),
        "{same}"
    );
}

#[apply(on_sqlite)]
async fn invalid_routing_is_explained(Demo(service): Demo) {
    let admin = service.signed_in(Role::Admin).await;
    for (method, said) in [("BERT", "hyphens, found &#34;BERT&#34;"), ("bert", "no method bert")] {
        let answer = admin.get(&format!("/operations/routing/change?default_method={method}")).await;
        assert_eq!(answer.status(), 422, "{method}");
        let html = answer.text();
        let (_, wrong) = html.split_once("role=\"alert\">").expect("it says what is wrong");
        assert!(wrong.split("</div>").next().unwrap().contains(said), "{method}: {html}");
        let fields = [("default_method", method)];
        assert_eq!(admin.post("/operations/routing", &fields).await.status(), 422, "{method}");
    }
    assert_eq!(last(&service).await, None);
}

#[apply(on_sqlite)]
async fn analysts_see_it_and_change_nothing(Demo(service): Demo) {
    let arms = json!([{"name": "a", "method": "gsu", "share": 1}, {"name": "b", "share": 1}]);
    service.put("/experiments/autumn", &json!({"arms": arms, "state": "running"})).await;
    let analyst = service.signed_in(Role::Analyst).await;
    for path in [
        "/operations",
        "/operations/acceptance",
        "/operations/articles",
        "/operations/releases",
        "/operations/experiments",
        "/operations/experiments/autumn",
        "/operations/routing",
    ] {
        let html = analyst.page(path).await;
        let (_, main) = html.split_once("<main").unwrap();
        for change in ["method=\"post\"", "/operations/routing/change", "/operations/releases/demo"] {
            assert!(!main.contains(change), "{path} has {change}");
        }
    }
    for path in ["/operations/routing/change", "/operations/releases/demo"] {
        assert_eq!(analyst.get(path).await.status(), 403, "{path}");
    }
    for path in ["/operations/routing", "/operations/releases/demo"] {
        assert_eq!(analyst.post(path, &[("before", "x")]).await.status(), 403, "{path}");
    }
    let stylist = service.signed_in(Role::Stylist).await;
    for path in ["/operations/routing", "/operations/experiments/autumn"] {
        assert_eq!(stylist.get(path).await.status(), 403, "{path}");
    }
}
