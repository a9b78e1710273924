//! What people do, from beginning to end, in a real browser.

pub mod analyst;
pub mod every_page;
pub mod merchandiser;
pub mod place;
pub mod saved_outfits;
pub mod studio;
pub mod stylist;
pub mod widget;

use atelier::people::Token;
use atelier_core::domain::Role;
use serde_json::json;

use crate::harness::{
    Service, TestDatabase,
    browser::{Eyes, Window},
};

/// A window with a signed-in person of that role, before the first page.
async fn signed_in(service: &Service, role: Role, eyes: Eyes) -> Window {
    window_of(service, &service.signed_in(role).await.session, eyes).await
}

async fn window_of(service: &Service, session: &Token, eyes: Eyes) -> Window {
    let mut window = Window::open(eyes).await;
    window.origin.clone_from(&service.url);
    let cookie = json!({"name": "atelier_session", "value": session.as_str(), "url": service.url});
    window.chromium("Network.setCookie", &cookie).await;
    window
}

/// A window with a signed-in person of that role at a path.
async fn open(service: &Service, role: Role, path: &str) -> Window {
    let window = signed_in(service, role, Eyes::default()).await;
    window.goto(path).await;
    window
}

/// A service with the demo release, and a stylist's window at a path.
async fn stylist(db: &TestDatabase, path: &str) -> (Service, Window) {
    let service = Service::demo(db).await;
    let window = open(&service, Role::Stylist, path).await;
    (service, window)
}
