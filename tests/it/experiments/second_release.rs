//! Experiments that compare the live release with a second one, which is loaded beside it.

use std::fs;

use atelier::{config::Limits, releases as live_release};
use atelier_core::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    experiments::arms::customers,
    harness::{
        Html, Replicated, Service, TestDatabase, apply, assert_has, contract, ids, json::with, models,
        on_sqlite,
    },
    outfits::api::change_file,
    releases::{api::copy, operations::releases::two_releases},
};

const AUTUMN: &str = "/experiments/autumn";
/// The arm, the release and the method that answer a customer of either arm.
const OLD: [&str; 3] = ["autumn/today", "demo", "match"];
const NEW: [&str; 3] = ["autumn/new", "less", "gsu"];

fn arms() -> Value {
    json!([{"name": "today", "share": 1}, {"name": "new", "release": "less", "share": 1}])
}

fn running() -> Value {
    json!({"arms": arms(), "state": "running"})
}

/// A running experiment without a second release.
fn plain(share: u8) -> Value {
    let arms = json!([{"name": "a", "share": 1}, {"name": "b", "share": 1}]);
    json!({"arms": arms, "share": share, "state": "running"})
}

/// A service with the release `demo` live, and a replica of it; their folder also has `less`.
async fn start(db: &TestDatabase) -> (Service, Service, TempDir) {
    let folder = two_releases();
    let [service, replica] = [Service::filled(db, &folder).await, Service::of(db, &folder).await];
    service.ask_ok("/releases/demo/activate", json!({})).await;
    replica.follow().await;
    (service, replica, folder)
}

impl Service {
    async fn follow(&self) {
        self.releases.refresh().await.unwrap();
    }

    /// The arm, the release and the method that answer a customer.
    async fn answering(&self, customer: &str) -> [String; 3] {
        let body = json!({"outfit": ["a-00134", null], "customer": customer});
        let answer = self.ask_ok("/complete", body).await;
        ["arm", "release", "method"].map(|name| answer[name].as_str().unwrap_or("-").to_owned())
    }

    /// The coats for a customer.
    async fn coats(&self, customer: &str) -> Vec<String> {
        let body = json!({"outfit": ["a-00134", null], "customer": customer, "k": 20, "filters": {"types": {"1": ["coat"]}}});
        ids(&self.ask_ok("/complete", body).await["blanks"][0]["suggestions"])
    }

    async fn second_release(&self) -> Value {
        self.json("/readyz").await["second_release"].take()
    }
}

/// Of some customers, one who has the live release and one who has the second one.
async fn one_of_each(service: &Service) -> [String; 2] {
    let [mut old, mut new] = [String::new(), String::new()];
    for customer in customers(40) {
        let is_new = service.answering(&customer).await == NEW;
        *(if is_new { &mut new } else { &mut old }) = customer;
    }
    [old, new]
}

#[apply(on_sqlite)]
async fn a_second_release_answers_its_arm(db: TestDatabase) {
    let (service, replica, _folder) = start(&db).await;
    let all = customers(40);

    // How much memory it takes is said before.
    service.put(AUTUMN, json!({"arms": arms()})).is(201).await;
    let figures = async || service.json(format!("{AUTUMN}/figures")).await;
    let second = figures().await["second_release"].take();
    assert_has(&second, json!({"release": "less", "is_loaded": false}));
    assert!(second["memory_bytes"].as_u64().unwrap() > 10_000_000, "{second}");
    let admin = service.signed_in(Role::Admin).await;
    let list = admin.page("/operations/experiments").await;
    list.has(["<option>less</option>"]).lacks(["<option>demo</option>"]);
    let form = [("name", "spring"), ("arm-0", "today"), ("arm-1", "new"), ("release-1", "less")];
    admin.post("/operations/experiments", &form).is(303).await;
    let memory = "less is loaded beside the live release when it starts, and takes about ";
    let html = admin.page("/operations/experiments/spring").await;
    html.has([memory, "the default method of less"]);
    assert_eq!(service.answering(&all[0]).await, ["-", "demo", "match"]);
    assert_eq!(service.second_release().await, Value::Null);

    // What arms mean stays, whatever changes later.
    let started = service.patch(AUTUMN, json!({"state": "running"})).ok().await;
    let pinned = json!([{"name": "today", "release": "demo", "method": "match", "share": 1},
        {"name": "new", "release": "less", "method": "gsu", "share": 1}]);
    assert_eq!(started["arms"], pinned);
    let again = service.put(AUTUMN, running()).ok().await;
    assert_eq!(again["arms"], pinned, "the same request is no change");
    replica.follow().await;
    for one in [&service, &replica] {
        let loaded = json!({"release": "less", "experiment": "autumn", "loaded": true});
        assert_eq!(one.second_release().await, loaded);
    }
    let metrics = [
        "atelier_second_release_loaded{release=\"less\",experiment=\"autumn\"} 1\n",
        "atelier_workers{method=\"gsu\",release=\"less\"} 1\n",
    ];
    service.get("/metrics").await.text().has(metrics);
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for customer in &all {
        let found = service.answering(customer).await;
        assert_eq!(replica.answering(customer).await, found, "replicas agree");
        assert!(found == OLD || found == NEW, "{found:?}");
        (if found == NEW { &mut new } else { &mut old }).push(customer.as_str());
    }
    assert!(old.len() > 10 && new.len() > 10, "{old:?} {new:?}");
    let tenth = new[0];

    // Every kind of answer is wholly by the arm's release.
    let items: Vec<Value> =
        all.iter().map(|one| json!({"outfit": ["a-00134", null], "customer": one})).collect();
    let batch = service.ask_ok("/complete/batch", json!({"items": items})).await;
    for (customer, item) in all.iter().zip(batch["items"].as_array().unwrap()) {
        let release = if new.contains(&customer.as_str()) { "less" } else { "demo" };
        assert_eq!(item["release"], release, "{item}");
    }
    for (customer, release) in [(Some(tenth), "less"), (Some(old[0]), "demo"), (None, "demo")] {
        let query = customer.map(|customer| format!("?customer={customer}")).unwrap_or_default();
        let looks = service.json(format!("/articles/a-00134/looks{query}")).await;
        assert_eq!(looks["release"], release, "{looks}");
        assert_ne!(looks["looks"], json!([]));
        let body = json!({"outfit": ["a-00134", "a-01243"], "customer": customer});
        assert_eq!(service.ask_ok("/score", body).await["release"], release);
        assert_ne!(service.json(format!("/articles/a-00134/similar{query}")).await["items"], json!([]));
    }
    let own = json!({"outfit": ["a-00134", null], "customer": tenth});
    let named = service.ask_ok("/complete", with(own.clone(), json!({"method": "gsu"}))).await;
    assert_eq!(named["release"], "demo", "a named method is the live release's");
    let live = with(own.clone(), json!({"live": {"a-01243": {"in_stock": false}}}));
    assert_eq!(service.ask_ok("/complete", live).await["release"], "less");
    let html = admin.page(format!("/studio?customer={tenth}&slot=a-00134&slot=")).await;
    html.has(["less", "gsu"]);

    // Feedback counts for the arm; the page showed eight.
    let answer = service.ask_ok("/complete", own).await;
    let article = &answer["blanks"][0]["suggestions"][0]["article"]["id"];
    let shown = json!({"id": "1", "completion_id": answer["completion_id"], "kind": "shown", "slot": 1, "article": article,
        "customer": tenth});
    service.ask_ok("/feedback", shown).await;
    let expected = json!({"arms": [{"shown": 0}, {"shown": 9}], "second_release": {"is_loaded": true}});
    assert_has(&figures().await, expected);
}

#[apply(on_sqlite)]
async fn the_live_release_stays_until_the_second_one_is_shipped(db: TestDatabase) {
    let (service, replica, _folder) = start(&db).await;
    service.put(AUTUMN, running()).is(201).await;
    replica.follow().await;
    let [old, new] = one_of_each(&service).await;

    // The live release stays while it is compared.
    for release in ["less", "demo"] {
        let refused = replica.send(format!("/releases/{release}/activate"), json!({})).is(409).await.json();
        assert_eq!(refused["code"], "conflict");
        refused["detail"].to_string().has(["the experiment autumn compares releases"]);
    }
    service.patch(AUTUMN, json!({"share": 60})).is(200).await;
    let third = json!([{"name": "today", "share": 1}, {"name": "new", "release": "third", "share": 1}]);
    let winter = with(running(), json!({"share": 40}));
    let refused = service.put("/experiments/winter", with(winter.clone(), json!({"arms": third}))).await;
    let problem = refused.assert_problem(422, &["/arms/1/release"]);
    problem["errors"][0]["detail"].to_string().has(["stop autumn first"]);
    // Another experiment may compare the same two.
    service.put("/experiments/winter", winter).is(201).await;
    let shipping = json!({"state": "shipped", "winner": "new"});
    service.patch(AUTUMN, &shipping).await.assert_problem(422, &["/winner"]);
    service.patch("/experiments/winter", json!({"state": "stopped"})).is(200).await;

    // An erased customer is unknown to it.
    service.delete(format!("/customers/{new}")).is(204).await;
    service.send("/complete", json!({"outfit": ["a-00134", null], "customer": new})).is(422).await;

    assert_eq!(service.patch(AUTUMN, &shipping).ok().await["state"], "shipped");
    assert_eq!(service.actions(2).await, ["experiment.put autumn", "release.activate less"]);
    let shipped = json!({"before": "demo", "after": "less"});
    assert_eq!(json!(service.log(2).await[1].details), shipped);
    assert_eq!(live_release::activated(&service.store).await.unwrap().as_deref(), Some("less"));
    replica.follow().await;
    for one in [&service, &replica] {
        assert_has(&one.json("/readyz").await, json!({"release": "less", "second_release": null}));
        assert_eq!(one.answering(&old).await, ["-", "less", "gsu"]);
    }
}

#[apply(on_sqlite)]
async fn a_second_release_follows_every_change(db: TestDatabase) {
    let (service, replica, _folder) = start(&db).await;
    service.put(AUTUMN, running()).is(201).await;
    replica.follow().await;
    let [_, customer] = one_of_each(&service).await;
    let everywhere = async || {
        replica.follow().await;
        let found = service.coats(&customer).await;
        assert_eq!(replica.coats(&customer).await, found);
        assert_eq!(service.answering(&customer).await, NEW);
        found
    };
    let before = everywhere().await;
    assert!(before.len() > 5, "{before:?}");

    // Stock, a deleted article, a changed type.
    service.patch(format!("/articles/{}", before[0]), json!({"in_stock": false})).is(200).await;
    service.delete(format!("/articles/{}", before[1])).is(204).await;
    service.patch(format!("/articles/{}", before[2]), json!({"type": "jacket"})).is(200).await;
    let after = everywhere().await;
    assert!(!before[..3].iter().any(|gone| after.contains(gone)), "{before:?} {after:?}");
    assert!(before[3..6].iter().all(|kept| after.contains(kept)), "{before:?} {after:?}");

    // Rules, from the next request on; and without them.
    let rule = json!({"effect": "exclude", "articles": {"ids": [after[0]]}, "state": "active"});
    service.put("/rules/recall", rule).is(201).await;
    assert!(!everywhere().await.contains(&after[0]));
    service.delete("/rules/recall").is(204).await;
    assert_eq!(everywhere().await, after);

    // A published look.
    let look = json!({"title": "Autumn", "articles": ["a-00134", after[0], "a-00568", "a-00259"], "state": "published"});
    service.put("/looks/autumn", look).is(201).await;
    replica.follow().await;
    for one in [&service, &replica] {
        let looks = one.json(format!("/articles/a-00134/looks?customer={customer}")).await;
        assert_eq!((&looks["release"], &looks["looks"][0]["look"]), (&json!("less"), &json!("autumn")));
    }

    // An import that changes more than can be read one by one.
    service.bring_in_demo().await;
    service.follow().await;
    assert_eq!(everywhere().await, before);

    // A routing does not change what the arm is, and a stopped experiment needs no release.
    service.put("/routing", json!({"default_method": "gs"})).is(200).await;
    everywhere().await;
    service.patch(AUTUMN, json!({"state": "stopped"})).is(200).await;
    replica.follow().await;
    for one in [&service, &replica] {
        assert_eq!(one.answering(&customer).await, ["-", "demo", "gs"]);
        assert!(one.releases.current().unwrap().second().is_none());
        assert_eq!(one.second_release().await, Value::Null);
    }
    // It can still be shipped: then it is loaded again.
    service.patch(AUTUMN, json!({"state": "shipped", "winner": "new"})).is(200).await;
    assert_eq!(service.answering(&customer).await, ["-", "less", "gsu"]);
    assert_eq!(service.json("/routing").await, json!({"default_method": "gsu"}));
    let log = service.log(3).await;
    let actions = ["experiment.put", "routing.set", "release.activate"];
    assert!(log.iter().map(|entry| &*entry.action).eq(actions), "{log:?}");
}

#[apply(on_sqlite)]
async fn a_release_that_cannot_be_loaded_answers_nobody(db: TestDatabase) {
    let (service, _, folder) = start(&db).await;
    let alone = tempfile::tempdir().unwrap();
    copy(&models().join("demo"), &alone.path().join("demo"));
    let replica = Service::of(&db, &alone).await;
    replica.follow().await;
    // Where it is missing or broken, the experiment does not start.
    let broken = alone.path().join("less");
    for reason in ["there is no release \\\"less\\\"", "format 7"] {
        let problem = replica.put(AUTUMN, running()).await.assert_problem(422, &["/arms/1/release"]);
        problem["errors"][0]["detail"].to_string().has([reason]);
        assert_eq!(replica.actions(1).await, ["release.refused less"]);
        if !broken.exists() {
            fs::create_dir(&broken).unwrap();
            fs::write(broken.join("release.json"), "{\"format\":7}").unwrap();
        }
    }
    replica.get(AUTUMN).is(404).await;
    let two =
        json!([{"name": "a", "release": "less", "share": 1}, {"name": "b", "release": "other", "share": 1}]);
    let refused = service.put(AUTUMN, with(running(), json!({"arms": two}))).await;
    refused.assert_problem(422, &["/arms/1/release"]);

    // A replica that finds the experiment says so, and its customers get the live release, uncounted.
    service.put(AUTUMN, running()).is(201).await;
    replica.follow().await;
    let missing = json!({"release": "less", "experiment": "autumn", "loaded": false});
    assert_eq!(replica.second_release().await, missing);
    let metric = "atelier_second_release_loaded{release=\"less\",experiment=\"autumn\"} 0\n";
    replica.get("/metrics").await.text().has([metric]);
    let figures = replica.json(format!("{AUTUMN}/figures")).await;
    figures["second_release"]["reason"].as_str().unwrap().has(["format 7"]);
    // A replica that starts now loads both.
    let third = Service::of(&db, &folder).await;
    third.releases.serve("demo").await.unwrap();
    assert_eq!(third.second_release().await["loaded"], true);
    for customer in customers(10) {
        let found = service.answering(&customer).await;
        assert!(found[0].starts_with("autumn/"), "{found:?}");
        assert_eq!(third.answering(&customer).await, found);
        assert_eq!(replica.answering(&customer).await, ["-", "demo", "match"]);
    }
}

#[apply(contract)]
async fn two_experiments_that_start_at_once_share_no_customer(Replicated(service, replica): Replicated) {
    for round in 0..5 {
        let paths = ["one", "other"].map(|name| format!("/experiments/{name}-{round}"));
        let (one, other) = tokio::join!(service.put(&paths[0], plain(60)), replica.put(&paths[1], plain(60)));
        let mut statuses = [one.status(), other.status()];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 422], "together they want 120 %");
        let started = &paths[usize::from(other.status() == 201)];
        service.patch(started, json!({"state": "stopped"})).is(200).await;
    }
}

#[apply(on_sqlite)]
async fn a_release_that_takes_less_than_the_live_one_is_not_compared(db: TestDatabase) {
    let (service, _, folder) = start(&db).await;
    change_file(&folder.path().join("less"), "schema.toml", |schema| {
        let schema = String::from_utf8(schema).unwrap();
        schema.replace("outfit = {least = 4, most = 8}", "outfit = {least = 4, most = 7}").into_bytes()
    });
    let problem = service.put(AUTUMN, running()).await.assert_problem(422, &["/arms/1/release"]);
    let detail = "the release less takes outfits of 4 to 7 articles, the live one of 4 to 8";
    assert_eq!(problem["errors"][0]["detail"], detail, "{problem}");
    assert_eq!(service.second_release().await, Value::Null);
}

/// Issue 65: each has a catalogue of its own, and one was counted.
#[apply(contract)]
async fn a_second_release_that_does_not_fit_is_not_compared(db: TestDatabase) {
    let (service, _, folder) = start(&db).await;
    let bytes = service.releases.current().unwrap().memory.bytes().unsigned_abs();
    let limits = Limits { catalogue_bytes: Some(bytes / 2 * 3), ..Limits::default() };
    let tight = Service::start_in(&db, limits, folder.path().to_owned()).await;
    tight.follow().await;
    let refused = "the catalogue of two releases would take ";
    let problem = tight.put(AUTUMN, running()).await.assert_problem(422, &["/arms/1/release"]);
    problem["errors"][0]["detail"].to_string().has([refused, "limits.catalogue_bytes"]);
    assert_eq!(tight.actions(1).await, ["release.refused less"]);
    // Another replica has the memory for both.
    service.put(AUTUMN, running()).is(201).await;
    tight.follow().await;
    assert_eq!(tight.second_release().await["loaded"], false);
    let figures = tight.json(format!("{AUTUMN}/figures")).await;
    figures["second_release"]["reason"].as_str().unwrap().has([refused]);
    assert!(service.releases.current().unwrap().memory.bytes().unsigned_abs() > bytes / 2 * 3);
    let problem = tight.put("/articles/more", json!({"type": "coat"})).is(422).await.json();
    problem["detail"].to_string().has([refused]);
    service.patch(AUTUMN, json!({"state": "stopped"})).is(200).await;
    tight.put("/articles/more", json!({"type": "coat"})).is(201).await;
}

#[apply(on_sqlite)]
async fn a_replica_that_is_behind_starts_no_experiment(db: TestDatabase) {
    let (service, replica, _folder) = start(&db).await;
    service.ask_ok("/releases/less/activate", json!({})).await;
    // Its arms would have the methods of another release.
    replica.put(AUTUMN, plain(100)).is(422).await;
    replica.follow().await;
    replica.put(AUTUMN, plain(100)).is(201).await;
    assert_eq!(replica.json(AUTUMN).await["arms"][0]["method"], "gsu");
}
