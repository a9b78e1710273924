//! Experiments that compare the live release with a second one, which is loaded beside it.

use std::fs;

use atelier::{config::Limits, releases as live_release};
use atelier_core::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Service, models, operations::releases::two_releases, outfits::change_file, releases::copy};
use crate::{
    harness::{TestDatabase, apply, contract, on_sqlite},
    web::experiments::customers,
};

const AUTUMN: &str = "/experiments/autumn";

fn arms() -> Value {
    json!([{"name": "today", "share": 1}, {"name": "new", "release": "less", "share": 1}])
}

/// A service with the release `demo` live, whose folder also has `less`.
async fn start(db: &TestDatabase) -> (Service, TempDir) {
    let folder = two_releases();
    crate::web::fill(db).await;
    let service = Service::start_in(db, Limits::default(), folder.path().to_owned()).await;
    service.ask_ok("/releases/demo/activate", &json!({})).await;
    (service, folder)
}

impl Service {
    async fn change(&self, path: &str, change: &Value) -> (u16, Value) {
        let answer = self.patch(path, change).await;
        (answer.status(), answer.json())
    }

    async fn follow(&self) {
        self.releases.refresh().await.unwrap();
    }

    /// The arm, the release and the method that answer a customer.
    async fn answering(&self, customer: &str) -> [String; 3] {
        let body = json!({"outfit": ["a-00134", null], "customer": customer});
        let answer = self.ask_ok("/complete", &body).await;
        ["arm", "release", "method"].map(|name| answer[name].as_str().unwrap_or("-").to_owned())
    }

    async fn suggestions(&self, customer: &str) -> Vec<String> {
        let body = json!({"outfit": ["a-00134", null], "customer": customer, "k": 20, "filters": {"types": {"1": ["coat"]}}});
        let answer = self.ask_ok("/complete", &body).await;
        let all = answer["blanks"][0]["suggestions"].as_array().unwrap();
        all.iter().map(|one| one["article"]["id"].as_str().unwrap().to_owned()).collect()
    }
}

const OLD: [&str; 3] = ["autumn/today", "demo", "match"];
const NEW: [&str; 3] = ["autumn/new", "less", "gsu"];

#[apply(on_sqlite)]
async fn a_second_release_answers_its_arm(db: TestDatabase) {
    let (service, folder) = start(&db).await;
    let replica = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    replica.follow().await;
    let all = customers(40);

    // How much memory it takes is said before.
    service.put(AUTUMN, &json!({"arms": arms()})).is(201).await;
    let figures = service.json(&format!("{AUTUMN}/figures")).await;
    let second = &figures["second_release"];
    assert_eq!((&second["release"], &second["is_loaded"]), (&json!("less"), &json!(false)), "{second}");
    assert!(second["memory_bytes"].as_u64().unwrap() > 10_000_000, "{second}");
    let admin = service.signed_in(Role::Admin).await;
    let list = admin.page("/operations/experiments").await;
    assert!(list.contains("<option>less</option>") && !list.contains("<option>demo</option>"), "{list}");
    let form = [("name", "spring"), ("arm-0", "today"), ("arm-1", "new"), ("release-1", "less")];
    admin.post("/operations/experiments", &form).is(303).await;
    let html = admin.page("/operations/experiments/spring").await;
    assert!(
        html.contains("less is loaded beside the live release when it starts, and takes about "),
        "{html}"
    );
    assert!(html.contains("the default method of less"), "{html}");
    assert_eq!(service.answering(&all[0]).await, ["-", "demo", "match"]);
    assert_eq!(service.json("/readyz").await["second_release"], Value::Null);

    let (status, started) = service.change(AUTUMN, &json!({"state": "running"})).await;
    assert_eq!(status, 200, "{started}");
    // What arms mean stays, whatever changes later.
    let pinned = json!([{"name": "today", "release": "demo", "method": "match", "share": 1},
        {"name": "new", "release": "less", "method": "gsu", "share": 1}]);
    assert_eq!(started["arms"], pinned);
    let loaded = json!({"release": "less", "experiment": "autumn", "loaded": true});
    assert_eq!(service.json("/readyz").await["second_release"], loaded);
    let metrics = service.get("/metrics").await.text();
    for line in [
        "atelier_second_release_loaded{release=\"less\",experiment=\"autumn\"} 1\n",
        "atelier_workers{method=\"gsu\",release=\"less\"} 1\n",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    replica.follow().await;
    assert_eq!(replica.json("/readyz").await["second_release"], loaded);
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for customer in &all {
        let found = service.answering(customer).await;
        assert_eq!(replica.answering(customer).await, found, "replicas agree");
        if found == NEW {
            new.push(customer.as_str());
        } else {
            assert_eq!(found, OLD);
            old.push(customer.as_str());
        }
    }
    assert!(old.len() > 10 && new.len() > 10, "{old:?} {new:?}");
    let tenth = new[0];

    // Every kind of answer is wholly by the arm's release.
    let items: Vec<Value> =
        all.iter().map(|one| json!({"outfit": ["a-00134", null], "customer": one})).collect();
    let batch = service.ask_ok("/complete/batch", &json!({"items": items})).await;
    for (customer, item) in all.iter().zip(batch["items"].as_array().unwrap()) {
        let release = if new.contains(&customer.as_str()) { "less" } else { "demo" };
        assert_eq!(item["release"], release, "{item}");
    }
    for (customer, release) in [(Some(tenth), "less"), (Some(old[0]), "demo"), (None, "demo")] {
        let query = customer.map(|customer| format!("?customer={customer}")).unwrap_or_default();
        let looks = service.json(&format!("/articles/a-00134/looks{query}")).await;
        assert_eq!(looks["release"], release, "{looks}");
        assert!(!looks["looks"].as_array().unwrap().is_empty(), "{looks}");
        let body = json!({"outfit": ["a-00134", "a-01243"], "customer": customer});
        assert_eq!(service.ask_ok("/score", &body).await["release"], release);
        assert!(
            !service.json(&format!("/articles/a-00134/similar{query}")).await["items"]
                .as_array()
                .unwrap()
                .is_empty()
        );
    }
    let named = json!({"outfit": [null], "customer": tenth, "method": "gsu"});
    assert_eq!(
        service.ask_ok("/complete", &named).await["release"],
        "demo",
        "a named method is the live release's"
    );
    let live =
        json!({"outfit": ["a-00134", null], "customer": tenth, "live": {"a-01243": {"in_stock": false}}});
    assert_eq!(service.ask_ok("/complete", &live).await["release"], "less");
    let html = admin.page(&format!("/studio?customer={tenth}&slot=a-00134&slot=")).await;
    assert!(html.contains("less") && html.contains("gsu"), "{html}");

    // Feedback counts for the arm.
    let body = json!({"outfit": ["a-00134", null], "customer": tenth});
    let answer = service.ask_ok("/complete", &body).await;
    let article = &answer["blanks"][0]["suggestions"][0]["article"]["id"];
    let shown = json!({"id": "1", "completion_id": answer["completion_id"], "kind": "shown", "slot": 1, "article": article,
        "customer": tenth});
    service.ask_ok("/feedback", &shown).await;
    let figures = service.json(&format!("{AUTUMN}/figures")).await;
    let found = (&figures["arms"][0]["shown"], &figures["arms"][1]["shown"]);
    assert_eq!(found, (&json!(0), &json!(9)), "the page showed eight");
    assert_eq!(figures["second_release"]["is_loaded"], true);
}

#[apply(on_sqlite)]
async fn the_live_release_stays_until_the_second_one_is_shipped(db: TestDatabase) {
    let (service, folder) = start(&db).await;
    let replica = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    service.put(AUTUMN, &json!({"arms": arms(), "state": "running"})).is(201).await;
    replica.follow().await;
    let (mut old, mut new) = (String::new(), String::new());
    for customer in customers(20) {
        let is_new = service.answering(&customer).await == NEW;
        *(if is_new { &mut new } else { &mut old }) = customer;
    }

    // The live release stays while it is compared.
    for release in ["less", "demo"] {
        let (status, problem) = replica.ask(&format!("/releases/{release}/activate"), &json!({})).await;
        assert_eq!((status, &problem["code"]), (409, &json!("conflict")), "{problem}");
        assert!(
            problem["detail"].as_str().unwrap().contains("the experiment autumn compares releases"),
            "{problem}"
        );
    }
    assert_eq!(service.change(AUTUMN, &json!({"share": 60})).await.0, 200);
    let third = json!([{"name": "today", "share": 1}, {"name": "new", "release": "third", "share": 1}]);
    let refused =
        service.put("/experiments/winter", &json!({"arms": third, "state": "running", "share": 40})).await;
    assert_eq!(refused.status(), 422);
    let problem: Value = refused.json();
    assert_eq!(problem["errors"][0]["pointer"], "/arms/1/release", "{problem}");
    assert!(problem["errors"][0]["detail"].as_str().unwrap().contains("stop autumn first"), "{problem}");
    // Another experiment may compare the same two.
    let winter = json!({"arms": arms(), "state": "running", "share": 40});
    service.put("/experiments/winter", &winter).is(201).await;
    let shipping = json!({"state": "shipped", "winner": "new"});
    let (status, problem) = service.change(AUTUMN, &shipping).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/winner")), "{problem}");
    assert_eq!(service.change("/experiments/winter", &json!({"state": "stopped"})).await.0, 200);

    // An erased customer is unknown to it.
    service.delete(&format!("/customers/{new}")).is(204).await;
    let erased = json!({"outfit": ["a-00134", null], "customer": new});
    assert_eq!(service.ask("/complete", &erased).await.0, 422);

    let (status, shipped) = service.change(AUTUMN, &shipping).await;
    assert_eq!((status, &shipped["state"]), (200, &json!("shipped")), "{shipped}");
    let actions: Vec<(String, String)> =
        service.log(2).await.iter().map(|entry| (entry.action.clone(), entry.subject.clone())).collect();
    let expected = [("experiment.put", "autumn"), ("release.activate", "less")];
    assert_eq!(actions, expected.map(|(action, subject)| (action.to_owned(), subject.to_owned())));
    assert_eq!(json!(service.log(2).await[1].details), json!({"before": "demo", "after": "less"}));
    assert_eq!(live_release::activated(&service.store).await.unwrap().as_deref(), Some("less"));
    replica.follow().await;
    for one in [&service, &replica] {
        let ready = one.json("/readyz").await;
        assert_eq!((&ready["release"], &ready["second_release"]), (&json!("less"), &Value::Null));
        assert_eq!(one.answering(&old).await, ["-", "less", "gsu"]);
    }
}

#[apply(on_sqlite)]
async fn a_second_release_follows_every_change(db: TestDatabase) {
    let (service, folder) = start(&db).await;
    let replica = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    service.put(AUTUMN, &json!({"arms": arms(), "state": "running"})).is(201).await;
    replica.follow().await;
    let mut customer = String::new();
    for one in customers(40) {
        if service.answering(&one).await == NEW {
            customer = one;
        }
    }
    let everywhere = async || {
        replica.follow().await;
        let found = service.suggestions(&customer).await;
        assert_eq!(replica.suggestions(&customer).await, found);
        assert_eq!(service.answering(&customer).await, NEW);
        found
    };
    let before = everywhere().await;
    assert!(before.len() > 5, "{before:?}");

    // Stock, a deleted article, a changed type.
    assert_eq!(service.change(&format!("/articles/{}", before[0]), &json!({"in_stock": false})).await.0, 200);
    service.delete(&format!("/articles/{}", before[1])).is(204).await;
    assert_eq!(service.change(&format!("/articles/{}", before[2]), &json!({"type": "jacket"})).await.0, 200);
    let after = everywhere().await;
    assert!(!before[..3].iter().any(|gone| after.contains(gone)), "{before:?} {after:?}");
    assert!(before[3..6].iter().all(|kept| after.contains(kept)), "{before:?} {after:?}");

    // Rules, from the next request on; and without them.
    let rule = json!({"effect": "exclude", "articles": {"ids": [after[0]]}, "state": "active"});
    assert!(service.put("/rules/recall", &rule).await.is_ok());
    assert!(!everywhere().await.contains(&after[0]));
    service.delete("/rules/recall").is(204).await;
    assert_eq!(everywhere().await, after);

    // A published look.
    let look = json!({"title": "Autumn", "articles": ["a-00134", after[0], "a-00568", "a-00259"], "state": "published"});
    service.put("/looks/autumn", &look).is(201).await;
    replica.follow().await;
    for one in [&service, &replica] {
        let looks = one.json(&format!("/articles/a-00134/looks?customer={customer}")).await;
        assert_eq!(
            (&looks["release"], &looks["looks"][0]["look"]),
            (&json!("less"), &json!("autumn")),
            "{looks}"
        );
    }

    // An import that changes more than can be read one by one.
    service.bring_in_demo().await;
    service.follow().await;
    assert_eq!(everywhere().await, before);

    // A routing does not change what the arm is, and a stopped experiment needs no release.
    service.put("/routing", &json!({"default_method": "gs"})).is(200).await;
    everywhere().await;
    assert_eq!(service.change(AUTUMN, &json!({"state": "stopped"})).await.0, 200);
    replica.follow().await;
    for one in [&service, &replica] {
        assert_eq!(one.answering(&customer).await, ["-", "demo", "gs"]);
        assert!(one.releases.current().unwrap().second().is_none());
        assert_eq!(one.json("/readyz").await["second_release"], Value::Null);
    }
    // It can still be shipped: then it is loaded again.
    assert_eq!(service.change(AUTUMN, &json!({"state": "shipped", "winner": "new"})).await.0, 200);
    assert_eq!(service.answering(&customer).await, ["-", "less", "gsu"]);
    assert_eq!(service.json("/routing").await, json!({"default_method": "gsu"}));
    let actions: Vec<String> = service.log(3).await.iter().map(|entry| entry.action.clone()).collect();
    assert_eq!(actions, ["experiment.put", "routing.set", "release.activate"]);
}

#[apply(on_sqlite)]
async fn a_release_that_cannot_be_loaded_answers_nobody(db: TestDatabase) {
    let (service, folder) = start(&db).await;
    let alone = tempfile::tempdir().unwrap();
    copy(&models().join("demo"), &alone.path().join("demo"));
    let replica = Service::start_in(&db, Limits::default(), alone.path().to_owned()).await;
    replica.follow().await;
    let start = json!({"arms": arms(), "state": "running"});
    // Where it is missing or broken, the experiment does not start.
    let broken = alone.path().join("less");
    for reason in ["there is no release \"less\"", "format 7"] {
        let refused = replica.put(AUTUMN, &start).is(422).await;
        let problem: Value = refused.json();
        assert_eq!(problem["errors"][0]["pointer"], "/arms/1/release", "{problem}");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains(reason), "{problem}");
        let entry = &replica.log(1).await[0];
        assert_eq!((&*entry.action, &*entry.subject), ("release.refused", "less"));
        if !broken.exists() {
            fs::create_dir(&broken).unwrap();
            fs::write(broken.join("release.json"), "{\"format\":7}").unwrap();
        }
    }
    replica.get(AUTUMN).is(404).await;
    let two =
        json!([{"name": "a", "release": "less", "share": 1}, {"name": "b", "release": "other", "share": 1}]);
    let refused = service.put(AUTUMN, &json!({"arms": two, "state": "running"})).await;
    let problem: Value = refused.json();
    assert_eq!(problem["errors"][0]["pointer"], "/arms/1/release", "{problem}");

    // A replica that finds the experiment says so, and its customers get the live release, uncounted.
    service.put(AUTUMN, &start).is(201).await;
    replica.follow().await;
    let missing = json!({"release": "less", "experiment": "autumn", "loaded": false});
    assert_eq!(replica.json("/readyz").await["second_release"], missing);
    let metrics = replica.get("/metrics").await.text();
    assert!(
        metrics.contains("atelier_second_release_loaded{release=\"less\",experiment=\"autumn\"} 0\n"),
        "{metrics}"
    );
    let figures = replica.json(&format!("{AUTUMN}/figures")).await;
    assert!(figures["second_release"]["reason"].as_str().unwrap().contains("format 7"), "{figures}");
    for customer in customers(10) {
        assert!(service.answering(&customer).await[0].starts_with("autumn/"));
        assert_eq!(replica.answering(&customer).await, ["-", "demo", "match"]);
    }
    // A replica that starts now loads both.
    let third = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    third.releases.serve("demo").await.unwrap();
    assert_eq!(third.json("/readyz").await["second_release"]["loaded"], true);
    for customer in customers(10) {
        assert_eq!(third.answering(&customer).await, service.answering(&customer).await);
    }
}

#[apply(contract)]
async fn two_experiments_that_start_at_once_share_no_customer(db: TestDatabase) {
    let (service, replica) = (Service::demo(&db).await, Service::start(&db).await);
    replica.serve_demo().await;
    let body = json!({"arms": [{"name": "a", "share": 1}, {"name": "b", "share": 1}], "share": 60, "state": "running"});
    for round in 0..5 {
        let [one, other] = ["one", "other"].map(|name| format!("/experiments/{name}-{round}"));
        let (one, other) = tokio::join!(service.put(&one, &body), replica.put(&other, &body));
        let mut statuses = [one.status(), other.status()];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 422], "together they want 120 %");
        for name in ["one", "other"] {
            let path = format!("/experiments/{name}-{round}");
            if service.get(&path).await.status() == 200 {
                assert_eq!(service.change(&path, &json!({"state": "stopped"})).await.0, 200);
            }
        }
    }
}

#[apply(on_sqlite)]
async fn an_arm_stays_what_it_was_when_the_experiment_started(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let body = json!({"arms": [{"name": "today", "share": 1}, {"name": "new", "method": "gsu", "share": 1}], "state": "running"});
    let put = service.put(AUTUMN, &body).await;
    let version = put.header("etag").to_owned();
    assert_eq!(put.json()["arms"][0]["method"], "match");
    service.put("/routing", &json!({"default_method": "np"})).is(200).await;
    for customer in customers(20) {
        let [arm, _, method] = service.answering(&customer).await;
        assert_eq!(method, if arm == "autumn/new" { "gsu" } else { "match" });
    }
    // The same request again is no change.
    let again = service.put(AUTUMN, &body).await;
    assert_eq!((again.status(), again.header("etag")), (200, &*version));
    let (status, _) = service.change(AUTUMN, &json!({"state": "shipped", "winner": "today"})).await;
    assert_eq!((status, service.json("/routing").await), (200, json!({"default_method": "match"})));
}

#[apply(on_sqlite)]
async fn a_release_that_takes_less_than_the_live_one_is_not_compared(db: TestDatabase) {
    let (service, folder) = start(&db).await;
    change_file(&folder.path().join("less"), "schema.toml", |schema| {
        let schema = String::from_utf8(schema).unwrap();
        schema.replace("outfit = {least = 4, most = 8}", "outfit = {least = 4, most = 7}").into_bytes()
    });
    let experiment = json!({"arms": arms(), "state": "running"});
    let problem = service.put(AUTUMN, &experiment).is(422).await.json();
    assert_eq!(problem["errors"][0]["pointer"], "/arms/1/release", "{problem}");
    let detail = "the release less takes outfits of 4 to 7 articles, the live one of 4 to 8";
    assert_eq!(problem["errors"][0]["detail"], detail, "{problem}");
    assert_eq!(service.json("/readyz").await["second_release"], Value::Null);
}

#[apply(on_sqlite)]
async fn a_replica_that_is_behind_starts_no_experiment(db: TestDatabase) {
    let (service, folder) = start(&db).await;
    let replica = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    replica.follow().await;
    service.ask_ok("/releases/less/activate", &json!({})).await;
    let experiment =
        json!({"arms": [{"name": "a", "share": 1}, {"name": "b", "share": 1}], "state": "running"});
    let refused = replica.put(AUTUMN, &experiment).await;
    assert_eq!(refused.status(), 422, "its arms would have the methods of another release");
    replica.follow().await;
    replica.put(AUTUMN, &experiment).is(201).await;
    assert_eq!(replica.json(AUTUMN).await["arms"][0]["method"], "gsu");
}
