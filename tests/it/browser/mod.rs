//! What people do, from beginning to end, in a real browser.

pub mod admin;
pub mod analyst;
pub mod every_page;
pub mod looks;
pub mod merchandiser;
pub mod place;
pub mod saved_outfits;
pub mod studio;
pub mod stylist;
pub mod widget;

use atelier_core::domain::Role;
use serde_json::json;

use crate::{
    harness::{
        TestDatabase,
        browser::{Eyes, Window},
    },
    web::Service,
};

/// A window with a signed-in person of that role, before the first page.
async fn signed_in(service: &Service, role: Role, eyes: Eyes) -> Window {
    let window = Window::open(eyes).await;
    let session = service.signed_in(role).await.session;
    let cookie = json!({"name": "atelier_session", "value": session.as_str(), "url": service.url});
    window.chromium("Network.setCookie", &cookie).await;
    window
}

/// A service with the demo release, and a stylist's window at a path.
async fn stylist(db: &TestDatabase, path: &str) -> (Service, Window) {
    let service = Service::demo(db).await;
    let window = signed_in(&service, Role::Stylist, Eyes::default()).await;
    window.goto(&format!("{}{path}", service.url)).await;
    (service, window)
}
