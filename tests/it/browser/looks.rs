//! A merchandiser publishes a saved outfit as a look, puts it before another, and takes it back.

use atelier_core::domain::Role;
use serde_json::{Value, json};

use super::signed_in;
use crate::{
    harness::{TestDatabase, apply, browser::Eyes, in_chromium},
    web::Service,
};

async fn shown(service: &Service) -> Vec<Value> {
    let answer = service.json("/articles/a-00134/looks").await;
    answer["looks"].as_array().unwrap().iter().map(|look| look["title"].clone()).collect()
}

#[apply(in_chromium)]
async fn a_saved_outfit_becomes_a_look(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let other =
        json!({"title": "Other", "articles": ["a-00134", "a-00259"], "state": "published", "order": 5});
    assert_eq!(service.put("/looks/other", &other).await.status(), 201);
    let body = json!({"articles": ["a-00134", "a-00568", "a-00259", "a-01130"], "name": "Autumn office"});
    let (_, saved) = service.ask("/outfits", &body).await;
    let page = format!("{}/studio/outfits/{}", service.url, saved["id"]);
    let stylist = signed_in(&service, Role::Stylist, Eyes::default()).await;
    stylist.goto(&page).await;
    stylist.until_words("for no customer yet").await;
    assert_eq!(stylist.run("return document.querySelectorAll('#publish-button').length").await, 0);

    let window = signed_in(&service, Role::Merchandiser, Eyes::default()).await;
    window.goto(&page).await;
    window.click("#publish-button").await;
    window.until("document.querySelectorAll('tbody tr').length === 2").await;
    assert_eq!(shown(&service).await, ["Autumn office".into(), "Other".into(), Value::Null]);
    // The other way round.
    let order = format!("tr:has([value='outfit-{}']) [name=order]", saved["id"]);
    window.fill(&order, "9").await;
    window.click(&format!("tr:has([value='outfit-{}']) form:has([name=order]) button", saved["id"])).await;
    window.until("document.querySelector('tbody tr th').innerText.startsWith('Other')").await;
    assert_eq!(shown(&service).await, ["Other".into(), "Autumn office".into(), Value::Null]);
    window.click(&format!("tr:has([value='outfit-{}']) [name=state]", saved["id"])).await;
    window.until("[...document.querySelectorAll('td')].some(cell => cell.innerText === 'draft')").await;
    assert_eq!(shown(&service).await, ["Other".into(), Value::Null, Value::Null]);
    let log = service.log(3).await;
    assert!(log.iter().all(|entry| entry.action == "look.put"), "{log:?}");
}

#[apply(in_chromium)]
async fn a_look_is_edited_in_a_form(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let window = signed_in(&service, Role::Merchandiser, Eyes::default()).await;
    window.goto(&format!("{}/merchandising/looks", service.url)).await;
    window.click_words("New look").await;
    window.fill("#name", "Rain & office").await;
    window.fill("#title", "Rain").await;
    window.fill("#articles", "a-00134\na-00259").await;
    window.fill("#pictures", "javascript:alert(1)").await;
    window.fill("#order", "first").await;
    window.fill("#note", "The rack at the door").await;
    window.choose("#state", "published").await;
    window.click("#store").await;
    window.until_words("expected a whole number, found \"first\"").await;
    assert_eq!(window.text("#order-wrong").await, "expected a whole number, found \"first\"");
    window.fill("#order", "3").await;
    window.click("#store").await;
    window.until_words("an address that begins with https:// or /").await;
    assert!(window.text("#pictures-wrong").await.starts_with("no. 1: expected an address"));
    let kept = window
        .run("return ['#name', '#title', '#note', '#articles'].map(id => document.querySelector(id).value)")
        .await;
    assert_eq!(kept, json!(["Rain & office", "Rain", "The rack at the door", "a-00134\na-00259"]));
    window.fill("#pictures", "/looks/rain.jpg").await;
    window.click("#store").await;
    window.until("document.querySelectorAll('tbody tr').length === 1").await;
    assert_eq!(shown(&service).await[0], "Rain");

    // An article that the shop has not is named on the look's page; another version is not overwritten.
    window.click_words("Rain").await;
    window.until("document.querySelector('#order')?.value === '3'").await;
    window.fill("#articles", "a-00134\na-00259\nnowhere").await;
    window.choose("#if_missing", "withhold").await;
    window.click("#store").await;
    window.until_words("the catalogue has no article \"nowhere\"").await;
    let stored = service.json("/looks/Rain%20%26%20office").await;
    assert_eq!(
        (&stored["articles"][2], &stored["if_missing"], &stored["pictures"][0], &stored["order"]),
        (&json!("nowhere"), &json!("withhold"), &json!("/looks/rain.jpg"), &json!(3))
    );
    let other = json!({"title": "Other", "articles": ["a-00134", "a-00259"]});
    assert_eq!(service.put("/looks/Rain%20%26%20office", &other).await.status(), 200);
    window.fill("#title", "Mine").await;
    window.click("#store").await;
    window.until_words("changed or deleted meanwhile").await;
    assert_eq!(window.run("return document.querySelector('#title').value").await, "Mine");
    assert_eq!(service.json("/looks/Rain%20%26%20office").await["title"], "Other");
}
