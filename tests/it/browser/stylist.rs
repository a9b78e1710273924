//! A stylist completes an outfit for a customer and saves it, with and without scripts.

use atelier::{
    domain::{CustomerId, Role},
    store::FeedbackKind,
};

use futures_util::TryStreamExt;

use super::signed_in;
use crate::{
    harness::{
        TestDatabase,
        browser::{Eyes, chromium},
        contracts,
    },
    web::Service,
};

contracts!(
    completes_and_saves_an_outfit needs chromium,
    completes_and_saves_an_outfit_without_scripts needs chromium,
    sees_how_a_changed_feature_moves_suggestions needs chromium,
);

async fn completes_and_saves_an_outfit(db: TestDatabase) {
    story(db, Eyes::default()).await;
}

async fn completes_and_saves_an_outfit_without_scripts(db: TestDatabase) {
    story(db, Eyes { scripts: false, ..Eyes::default() }).await;
}

async fn story(db: TestDatabase, eyes: Eyes) {
    let service = Service::demo(&db).await;
    let customer = CustomerId::new("c-014871").unwrap();
    let before = service.store.outfits().for_customer(&customer, 0, 100).await.unwrap();
    let window = signed_in(&service, Role::Stylist, eyes).await;

    // The customer: with scripts, the search starts by itself.
    window.goto(&format!("{}/studio", service.url)).await;
    window.fill("#find", "sweden 0148").await;
    if !eyes.scripts {
        window.click_words("Find").await;
    }
    window.until("document.querySelectorAll('#found li').length === 1").await;
    window.click_words("c-014871").await;
    window.until_words("no leather").await;

    // A stored outfit; its first article is replaced by another of its type.
    window.click(".outfits a").await;
    window.until_words("given the rest of the outfit").await;
    let was = window.text("#slot-0 .name").await;
    window.click("#slot-0").await;
    window.until_words("Which bag?").await;
    let suggested = window.text(".suggestions .name").await;

    // Reject the first suggestion, so that the next one moves up, and accept that.
    window.click_words("Not this one").await;
    let first = "document.querySelector('.suggestions .name').innerText";
    window.until(&format!("{first} !== {suggested:?}")).await;
    if window.text(".suggestions .name").await == was {
        window.click_words("Not this one").await;
        window.until(&format!("{first} !== {was:?}")).await;
    }
    let taken = window.text(".suggestions .name").await;
    window.click_words("Use this").await;
    window.until(&format!("document.querySelector('#slot-0 .name')?.innerText === {taken:?}")).await;

    window.click("#save").await;
    window.until_words("Saved as outfit").await;
    let outfits = service.store.outfits().for_customer(&customer, 0, 100).await.unwrap();
    assert_eq!(outfits.len(), before.len() + 1);
    let kept = &outfits.last().unwrap().outfit;
    let first = service.store.articles().get(&kept.articles()[0]).await.unwrap().unwrap();
    assert_eq!(first.words("name").next(), Some(taken.as_str()));
    assert_eq!(kept.articles()[1..], before[0].outfit.articles()[1..]);
    assert_eq!(kept.features, before[0].outfit.features, "the occasion is the outfit's");

    let events = service.store.feedback().for_customer(&customer).try_collect::<Vec<_>>().await.unwrap();
    let kinds: Vec<FeedbackKind> = events.iter().map(|event| event.kind).collect();
    let kinds: Vec<FeedbackKind> = kinds.into_iter().filter(|kind| *kind != FeedbackKind::Shown).collect();
    let (accepted, rejected) = kinds.split_last().unwrap();
    assert_eq!(*accepted, FeedbackKind::Accepted);
    assert!(!rejected.is_empty() && rejected.iter().all(|kind| *kind == FeedbackKind::Rejected), "{kinds:?}");
    let used = events.iter().find(|event| event.kind == FeedbackKind::Accepted).unwrap();
    assert_eq!(used.article, kept.articles()[0]);
    let shown = events.iter().filter(|event| event.kind == FeedbackKind::Shown).count();
    assert_eq!(shown, 8 + rejected.len(), "each tile was shown once");
}

async fn sees_how_a_changed_feature_moves_suggestions(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let window = signed_in(&service, Role::Stylist, Eyes::default()).await;
    let outfit = "slot=a-00134&slot=&slot=a-00568&slot=a-00259";
    window.goto(&format!("{}/studio?customer=c-014871&{outfit}&type=1:coat", service.url)).await;
    window.choose("#changing", "fit").await;
    window.choose("#control", "slim").await;
    window.click_words("Show changes").await;
    window.until_words("fit: slim").await;
    window.until_words("instead of relaxed").await;
    let moved = window.text(".suggestions").await;
    assert!(moved.contains("from ") || moved.contains("was below"), "{moved}");
    window.click_words("Undo").await;
    window.until("!location.href.includes('if.fit')").await;
    assert!(!window.text(".suggestions").await.contains("from "));
}
