//! An admin adds a person and an API key, and reads figures.

use atelier_core::domain::Role;
use serde_json::json;

use crate::{
    browser::{open, signed_in},
    harness::{
        Demo, Service, TestDatabase, apply,
        browser::{Eyes, Window},
        in_chromium,
    },
};

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
    window.goto("/access").await;
    window.fill("#name", "Mara").await;
    window.click_twice("main form .primary").await;
    window.until_words("Sign-in link for Mara").await;
    let link = window.text(".secret").await;
    let colleague = Window::open(eyes).await;
    colleague.goto(&link).await;
    colleague.click_words_until("Go to the studio", "Who are you styling?").await;

    window.click_words("API keys").await;
    window.fill("#label", "Web shop").await;
    window.click("#scope-catalogue").await;
    window.click_words_until("Create key", "API key Web shop").await;
    let key = window.text(".secret").await;
    service.get("/articles").key(&key).is(200).await;
    window.click_words("Back to all keys").await;
    window.click_words_until("Revoke …", "Revoke the key Web shop?").await;
    window.click_until("main button", "revoked 20").await;
    service.get("/articles").key(&key).is(401).await;
}

#[apply(in_chromium)]
async fn sees_figures_refresh_by_themselves(Demo(service): Demo) {
    let window = open(&service, Role::Admin, "/operations").await;
    window.until("[...document.querySelectorAll('dt')].some(dt => dt.innerText === 'outfits')").await;
    window.run("document.querySelector('#live').classList.add('still-the-same')").await;
    service.put("/articles/new", json!({"type": "coat"})).await;
    let articles = "document.querySelector('dl.figures dd').innerText.replace(',', '')";
    window.until(&format!("{articles} === '1501'")).await;
    assert!(window.address().await.ends_with("/operations"));
}
