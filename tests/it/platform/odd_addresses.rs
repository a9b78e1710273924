//! Addresses of pages with made-up queries. Those of the sign-in page are in `sign_in`.

use crate::harness::{Stylist, apply, on_sqlite};

#[apply(on_sqlite)]
async fn a_page_says_saved_only_of_the_outfit_that_it_shows(Stylist(_service, someone): Stylist) {
    const OUTFIT: &str = "slot=a-00134&slot=a-00568&slot=a-00259&slot=a-01130&own.occasion=office";
    let view = format!("customer=c-014871&{OUTFIT}");
    let saved = someone.post("/studio/outfits", &[("view", &view)]).await;
    let there = saved.header("location");
    let (_, seq) = there.rsplit_once("saved=").unwrap();
    assert!(someone.page(there).await.contains(&format!("Saved as outfit {seq}.")));
    let other = (seq.parse::<u64>().unwrap() - 1).to_string();
    for (view, seq) in [
        (view.clone(), "99999"),
        (view.clone(), "-1"),
        (view.clone(), "x"),
        (view.clone(), &other),
        // Another customer, other articles, another occasion, an outfit that is not complete.
        (format!("customer=c-000001&{OUTFIT}"), seq),
        (OUTFIT.to_owned(), seq),
        (view.replace("a-01130", "a-01243"), seq),
        (view.replace("office", "wedding"), seq),
        (view.replace("a-01130", ""), seq),
        ("customer=c-014871".to_owned(), seq),
    ] {
        let html = someone.page(format!("/studio?{view}&saved={seq}")).await;
        assert!(!html.contains("Saved as outfit") && !html.contains("saved="), "{view} {seq}");
    }
}
