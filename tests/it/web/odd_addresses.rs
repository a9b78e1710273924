//! Addresses of pages with made-up queries.

use atelier_core::domain::Role;

use super::Service;
use crate::harness::{TestDatabase, apply, on_sqlite};

#[apply(on_sqlite)]
async fn an_odd_next_leads_to_the_studio(service: Service) {
    let someone = service.signed_in(Role::Stylist).await;
    for (next, to) in [
        ("/%01", "/studio"),
        ("/%00", "/studio"),
        ("/%7F", "/studio"),
        ("/%0d%0aSet-Cookie:%20x=1", "/studio"),
        ("/%C3%A4", "/studio"),
        ("/%FF", "/studio"),
        ("/a%20b", "/studio"),
        ("/%E2%80%A8", "/studio"),
        ("%2F%2Fevil.example", "/studio"),
        ("/%5Cevil.example", "/studio"),
        ("%09//evil.example", "/studio"),
        ("https:evil.example", "/studio"),
        ("/personas", "/personas"),
        ("/studio%3Ffind%3D%2501", "/studio?find=%01"),
    ] {
        // For those who are signed in already, and on the way out of the form.
        let answer = someone.get(&format!("/sign-in?next={next}")).await;
        assert_eq!((answer.status(), answer.header("location")), (303, to), "{next}");
        let page = service.page(&format!("/sign-in?next={next}")).await;
        assert_eq!(page.status(), 200, "{next}");
        let form = format!("name=nobody&password=nobody-at-all&next={next}");
        let refused = service.post("/sign-in", "application/x-www-form-urlencoded", form).await;
        assert!(refused.is_refused(), "{next}: {}", refused.status());
    }
    // The way to the sign-in page carries the address of the page.
    for path in ["/studio?find=%01", "/studio?find=%C3%A4&x=%0d%0a", "/personas?%00"] {
        let answer = service.get(path).await;
        assert_eq!(answer.status(), 303, "{path}");
        assert!(answer.header("location").starts_with("/sign-in?next=%2F"), "{path}");
    }
}

#[apply(on_sqlite)]
async fn a_page_says_saved_only_of_the_outfit_that_it_shows(db: TestDatabase) {
    const OUTFIT: &str = "slot=a-00134&slot=a-00568&slot=a-00259&slot=a-01130&own.occasion=office";
    let service = Service::demo(&db).await;
    let someone = service.signed_in(Role::Stylist).await;
    let view = format!("customer=c-014871&{OUTFIT}");
    let saved = someone.post("/studio/outfits", &[("view", &view)]).await;
    let there = saved.header("location").to_owned();
    let (_, seq) = there.rsplit_once("saved=").unwrap();
    assert!(someone.page(&there).await.contains(&format!("Saved as outfit {seq}.")));
    let other: u64 = seq.parse::<u64>().unwrap() - 1;
    for (view, seq) in [
        (view.clone(), "99999"),
        (view.clone(), "-1"),
        (view.clone(), "x"),
        (view.clone(), other.to_string().as_str()),
        // Another customer, other articles, another occasion, an outfit that is not complete.
        (format!("customer=c-000001&{OUTFIT}"), seq),
        (OUTFIT.to_owned(), seq),
        (view.replace("a-01130", "a-01243"), seq),
        (view.replace("office", "wedding"), seq),
        (view.replace("a-01130", ""), seq),
        ("customer=c-014871".to_owned(), seq),
    ] {
        let html = someone.page(&format!("/studio?{view}&saved={seq}")).await;
        assert!(!html.contains("Saved as outfit") && !html.contains("saved="), "{view} {seq}");
    }
}
