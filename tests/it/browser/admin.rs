//! An admin activates a release, and adds a person and an API key.

use atelier::config::Limits;
use atelier_core::domain::Role;
use serde_json::json;

use super::signed_in;
use crate::{
    harness::{
        TestDatabase, apply,
        browser::{Eyes, Window},
        in_chromium,
    },
    web::{Demo, Service, operations::releases::two_releases},
};

#[apply(in_chromium)]
async fn activates_a_release(db: TestDatabase) {
    activating(db, Eyes::default()).await;
}

#[apply(in_chromium)]
async fn activates_a_release_without_scripts(db: TestDatabase) {
    activating(db, Eyes { scripts: false, ..Eyes::default() }).await;
}

async fn activating(db: TestDatabase, eyes: Eyes) {
    let models = two_releases();
    crate::web::fill(&db).await;
    let service = Service::start_in(&db, Limits::default(), models.path().to_owned()).await;
    service.releases.serve("demo").await.unwrap();
    let window = signed_in(&service, Role::Admin, eyes).await;
    window.goto(&format!("{}/operations", service.url)).await;
    window.until_words("Release demo is live").await;
    window.click_words("Releases").await;
    window.click("a[href$='/releases/less']").await;
    window.until_words("Removed: c, np.").await;
    assert_eq!(service.releases.current().unwrap().name(), "demo", "looking changes nothing");
    window.click_words("Activate less").await;
    window.until_words("less live").await;
    assert_eq!(service.releases.current().unwrap().name(), "less");

    // The log names the admin.
    window.goto(&format!("{}/access/audit", service.url)).await;
    assert_eq!(window.text("tbody th").await, "release.activate");
    assert_eq!(window.text("tbody .details").await, "demo → less");
}

#[apply(in_chromium)]
async fn compares_two_releases_and_goes_back(db: TestDatabase) {
    let models = two_releases();
    crate::web::fill(&db).await;
    let service = Service::start_in(&db, Limits::default(), models.path().to_owned()).await;
    service.releases.serve("demo").await.unwrap();
    let window = signed_in(&service, Role::Admin, Eyes::default()).await;
    window.goto(&format!("{}/operations/releases", service.url)).await;
    window.click("a[href$='/releases/less/comparison']").await;
    window.until_words("less beside demo").await;
    window.until_words("Where they differ most: cases").await;
    window.click_words("Activate less …").await;
    window.until_words("Activate less?").await;
    window.click("main form button").await;
    window.until_words("less live").await;
    window.click_words("Back to demo").await;
    window.until_words("demo live").await;
    assert_eq!(service.releases.current().unwrap().name(), "demo");
    assert_eq!(window.text("#history ~ .scroll tbody tr td:nth-child(3)").await, "less");
}

#[apply(in_chromium)]
async fn starts_stops_and_ships_an_experiment(Demo(service): Demo) {
    let window = signed_in(&service, Role::Admin, Eyes::default()).await;
    window.goto(&format!("{}/operations/experiments", service.url)).await;
    window.fill("#name", "spring").await;
    window.fill("#arm-0", "today").await;
    window.fill("#arm-1", "new").await;
    window.fill("#rules-1", "no such rule").await;
    window.click_words("Store draft").await;
    window.until_words("A draft: no customer is in it.").await;
    window.click("main form button.primary").await;
    window.until_words("there is no active rule").await;
    window.click_words("Delete draft").await;
    window.until_words("No experiments").await;
    window.fill("#name", "spring").await;
    window.fill("#arm-0", "today").await;
    window.fill("#arm-1", "new").await;
    window.choose("#method-1", "gsu").await;
    window.click_words("Store draft").await;
    window.until_words("A draft: no customer is in it.").await;
    window.fill("#share", "20").await;
    window.click("main form button.primary").await;
    window.until_words("with 20 % of the known customers").await;
    window.until_words("No decision yet").await;
    window.click_words("Stop").await;
    window.until_words("Stopped after 0.0 days").await;
    window.choose("#winner", "new").await;
    window.click_words("Ship").await;
    window.until_words("Shipped after 0.0 days: new").await;
    assert_eq!(service.json("/routing").await, json!({"default_method": "gsu"}));
}

#[apply(in_chromium)]
async fn adds_a_person_and_an_api_key(db: TestDatabase) {
    letting_in(db, Eyes::default()).await;
}

#[apply(in_chromium)]
async fn adds_a_person_and_an_api_key_without_scripts(db: TestDatabase) {
    letting_in(db, Eyes { scripts: false, ..Eyes::default() }).await;
}

async fn letting_in(db: TestDatabase, eyes: Eyes) {
    let service = Service::guarded(&db).await;
    let window = signed_in(&service, Role::Admin, eyes).await;
    window.goto(&format!("{}/access", service.url)).await;
    window.fill("#name", "Mara").await;
    window.click_twice("main form .primary").await;
    window.until_words("Sign-in link for Mara").await;
    let link = window.text(".secret").await;
    let colleague = Window::open(eyes).await;
    colleague.goto(&link).await;
    colleague.click_words("Go to the studio").await;
    colleague.until_words("Who are you styling?").await;

    window.click_words("API keys").await;
    window.fill("#label", "Web shop").await;
    window.click("#scope-catalogue").await;
    window.click_words("Create key").await;
    window.until_words("API key Web shop").await;
    let key = window.text(".secret").await;
    let asked = service.http.get(format!("{}/articles", service.url)).bearer_auth(&key);
    assert_eq!(asked.send().await.unwrap().status(), 200);
    window.click_words("Back to all keys").await;
    window.click_words("Revoke …").await;
    window.until_words("Revoke the key Web shop?").await;
    window.click("main button").await;
    window.until_words("revoked 20").await;
    let asked = service.http.get(format!("{}/articles", service.url)).bearer_auth(&key);
    assert_eq!(asked.send().await.unwrap().status(), 401);
}

#[apply(in_chromium)]
async fn sees_figures_refresh_by_themselves(Demo(service): Demo) {
    let window = signed_in(&service, Role::Admin, Eyes::default()).await;
    window.goto(&format!("{}/operations", service.url)).await;
    window.until("[...document.querySelectorAll('dt')].some(dt => dt.innerText === 'outfits')").await;
    window.run("document.querySelector('#live').classList.add('still-the-same')").await;
    service.put("/articles/new", &json!({"type": "coat"})).await;
    let articles = "document.querySelector('dl.figures dd').innerText.replace(',', '')";
    window.until(&format!("{articles} === '1501'")).await;
    assert!(window.address().await.ends_with("/operations"));
}
