//! Which method answers by default.

use atelier_core::domain::Role;
use serde_json::json;

use crate::{
    harness::{Demo, Html, apply, assert_has, json::with, on_sqlite},
    releases::operations::last,
};

#[apply(on_sqlite)]
async fn routing_is_confirmed_before_it_is_set(Demo(service): Demo) {
    let admin = service.signed_in(Role::Admin).await;
    let html = admin.page("/operations/routing").await;
    html.has(["Default method: match, set by release demo"]);

    let confirm = "/operations/routing/change?default_method=np";
    admin.page(confirm).await.has(["<li>np answers instead of match.</li>", "Make np the default</button>"]);
    let before = "the release's default";
    assert_eq!(service.json("/routing").await, json!({"default_method": null}), "the page changes nothing");

    let set = || admin.post("/operations/routing", &[("before", before), ("default_method", "np")]);
    let offered = admin.page(set().is(303).await.header("location")).await;
    let entry = offered.has(["The default method is np now."]).between("name=\"undo\" value=\"", "\"");
    assert_eq!(service.json("/routing").await, json!({"default_method": "np"}));
    let (_, action, subject, details) = last(&service).await.unwrap();
    assert_eq!((&*action, &*subject), ("routing.set", "routing"));
    assert_eq!(details, json!({"before": before, "after": "np"}));

    for (more, method) in [(json!({}), "np"), (json!({"method": "c"}), "c")] {
        let answer = service.ask_ok("/complete", with(json!({"outfit": [null]}), &more)).await;
        assert_has(&answer, json!({"method": method, "arm": null}));
    }

    // The same form again is refused: it was made before the change.
    let late = set().is(409).await.text();
    late.has(["The routing was changed in the meantime, so nothing was set"]);
    let same = admin.page(confirm).await;
    same.has(["Nothing would change"]);
    same.lacks(["action=\"/operations/routing\""]);
    let undo = || {
        let fields = [("before", "np"), ("default_method", ""), ("undo", &entry)];
        admin.post("/operations/routing", &fields)
    };
    undo().is(303).await;
    assert_eq!(service.json("/routing").await, json!({"default_method": null}));
    undo().is(409).await.text().has(["was changed in the meantime, so nothing was set"]);
}

#[apply(on_sqlite)]
async fn invalid_routing_is_explained(Demo(service): Demo) {
    let admin = service.signed_in(Role::Admin).await;
    for (method, said) in [("BERT", "hyphens, found &#34;BERT&#34;"), ("bert", "no method bert")] {
        let confirm = format!("/operations/routing/change?default_method={method}");
        let html = admin.get(confirm).is(422).await.text();
        html.after("role=\"alert\">").split("</div>").next().unwrap().has([said]);
        admin.post("/operations/routing", &[("default_method", method)]).is(422).await;
    }
    for (wrong, pointer) in
        [(json!({"default_method": "bert"}), "/default_method"), (json!({"experiment": {}}), "/experiment")]
    {
        service.put("/routing", wrong).await.assert_problem(422, &[pointer]);
    }
    assert_eq!(last(&service).await, None);
}

#[apply(on_sqlite)]
async fn analysts_see_it_and_change_nothing(Demo(service): Demo) {
    let arms = json!([{"name": "a", "method": "gsu", "share": 1}, {"name": "b", "share": 1}]);
    service.put("/experiments/autumn", json!({"arms": arms, "state": "running"})).is(201).await;
    let analyst = service.signed_in(Role::Analyst).await;
    let changes = ["method=\"post\"", "/operations/routing/change", "/operations/releases/demo"];
    for path in [
        "/operations",
        "/operations/acceptance",
        "/operations/articles",
        "/operations/releases",
        "/operations/experiments",
        "/operations/experiments/autumn",
        "/operations/routing",
    ] {
        analyst.page(path).await.after("<main").lacks(changes);
    }
}
