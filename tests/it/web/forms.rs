//! Forms of merchandisers, admins and stylists, as a browser without scripts sends them.

use std::collections::BTreeMap;

use atelier_core::domain::Role;
use serde_json::json;

use super::{Demo, Stylist, evaluation::text};
use crate::harness::{Html, apply, each, on_sqlite, pick};

#[apply(on_sqlite)]
async fn a_saved_outfit_becomes_a_look(Demo(service): Demo) {
    let other =
        json!({"title": "Other", "articles": ["a-00134", "a-00259"], "state": "published", "order": 5});
    service.put("/looks/other", other).is(201).await;
    let body = json!({"articles": ["a-00134", "a-00568", "a-00259", "a-01130"], "name": "Autumn office"});
    let seq = service.send("/outfits", body).is(201).await.json()["id"].to_string();
    let (page, name) = (format!("/studio/outfits/{seq}"), format!("outfit-{seq}"));
    service.signed_in(Role::Stylist).await.page(&page).await.lacks(["publish-button"]);
    let merchandiser = service.signed_in(Role::Merchandiser).await;
    merchandiser.page(page).await.has(["publish-button"]);
    for (path, fields, shown) in [
        ("/merchandising/looks/outfit", &[("outfit", &*seq)][..], json!(["Autumn office", "Other", null])),
        ("/merchandising/looks", &[("name", &name), ("order", "9")], json!(["Other", "Autumn office", null])),
        ("/merchandising/looks", &[("name", &name), ("state", "draft")], json!(["Other", null, null])),
    ] {
        merchandiser.change(path, fields).await;
        let looks = service.json("/articles/a-00134/looks").await;
        assert_eq!(each(&looks["looks"], "title"), shown, "{fields:?}");
    }
    let log = service.log(3).await;
    assert!(log.iter().all(|entry| entry.action == "look.put"), "{log:?}");
}

#[apply(on_sqlite)]
async fn a_look_is_edited_in_a_form(Demo(service): Demo) {
    let merchandiser = service.signed_in(Role::Merchandiser).await;
    let path = "/looks/Rain%20%26%20office";
    let mut form = BTreeMap::from([
        ("name", "Rain & office"),
        ("title", "Rain"),
        ("articles", "a-00134\na-00259"),
        ("pictures", "javascript:alert(1)"),
        ("order", "first"),
        ("note", "The rack at the door"),
        ("state", "published"),
        ("version", ""),
    ]);
    let store = |form: &BTreeMap<&str, &str>| {
        let fields: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, *value)).collect();
        merchandiser.post("/merchandising/look", &fields)
    };
    let refused = store(&form).is(422).await.text();
    refused
        .has(["id=\"order-wrong\">expected a whole number, found &#34;first&#34;", ">The rack at the door<"]);
    form.insert("order", "3");
    store(&form).is(422).await.text().has(["id=\"pictures-wrong\">no. 1: expected an address that begins"]);
    form.insert("pictures", "/looks/rain.jpg");
    store(&form).is(303).await;
    assert_eq!(service.json("/articles/a-00134/looks").await["looks"][0]["title"], "Rain");

    // An article that the shop has not is named on the look's page; another version is not overwritten.
    let html = merchandiser.page("/merchandising/look?name=Rain+%26+office").await;
    html.has(["id=\"order\" value=\"3\""]);
    let version = html.between("name=\"version\" value=\"", "\"");
    form.extend([
        ("version", &*version),
        ("articles", "a-00134\na-00259\nnowhere"),
        ("if_missing", "withhold"),
    ]);
    let stored = store(&form).is(303).await;
    merchandiser
        .page(stored.header("location"))
        .await
        .has(["the catalogue has no article &#34;nowhere&#34;"]);
    let expected = json!(["nowhere", "withhold", "/looks/rain.jpg", 3]);
    assert_eq!(pick(&service.json(path).await, "articles/2 if_missing pictures/0 order"), expected);
    form.insert("title", "Mine");
    store(&form).is(422).await.text().has(["changed or deleted meanwhile", "value=\"Mine\""]);
    assert_eq!(service.json(path).await["title"], "Rain");
}

#[apply(on_sqlite)]
async fn an_experiment_is_started_stopped_and_shipped(Demo(service): Demo) {
    const SPRING: &str = "/operations/experiments/spring";
    let admin = service.signed_in(Role::Admin).await;
    let draft = async |rules: &str, method: &str| {
        let arms = [("arm-0", "today"), ("arm-1", "new"), ("rules-1", rules), ("method-1", method)];
        admin.change("/operations/experiments", &[&[("name", "spring")][..], &arms].concat()).await;
        text(&admin.page(SPRING).await).has(["A draft: no customer is in it."]);
    };
    let change = async |fields: &[(&str, &str)]| {
        let version = admin.page(SPRING).await.between("name=\"version\" value=\"", "\"");
        admin.post(SPRING, &[fields, &[("version", &*version)]].concat()).await
    };
    draft("no such rule", "").await;
    let refused = change(&[("to", "running"), ("share", "20")]).await;
    text(&refused.text()).has(["there is no active rule"]);
    change(&[("to", "delete")]).await;
    admin.page("/operations/experiments").await.has(["No experiments"]);
    draft("", "gsu").await;
    for (fields, said) in [
        (&[("to", "running"), ("share", "20")][..], "with 20 % of the known customers"),
        (&[("to", "stopped")], "Stopped after 0.0 days"),
        (&[("to", "shipped"), ("winner", "new")], "Shipped after 0.0 days: new"),
    ] {
        assert_eq!(change(fields).await.status, 303, "{said}");
        text(&admin.page(SPRING).await).has([said]);
    }
    assert_eq!(service.json("/routing").await, json!({"default_method": "gsu"}));
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
