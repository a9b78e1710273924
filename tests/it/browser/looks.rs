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
