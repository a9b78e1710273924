use atelier::{
    domain::{Article, ArticleId, Customer, CustomerId, Features, Outfit},
    store::{Origin, Timestamp},
};
use serde_json::json;

use super::{Service, header};
use crate::harness::{TestDatabase, contracts};

contracts!(empty_says_how_to_fill_it, shows_outfits_in_words);

const NOW: Timestamp = Timestamp::from_millis(1);

async fn empty_says_how_to_fill_it(db: TestDatabase) {
    let page = Service::start(&db).await.page("/").await;
    assert_eq!(page.status(), 200);
    assert_eq!(header(&page, "content-type"), "text/html; charset=utf-8");
    let html = page.text().await.unwrap();
    assert!(html.contains("atelier import"), "{html}");
    assert!(html.contains("no model to complete outfits with"), "{html}");
}

async fn shows_outfits_in_words(db: TestDatabase) {
    let service = Service::start(&db).await;
    let ids = ["a", "b", "c", "gone"].map(|id| ArticleId::new(id).unwrap());
    for (id, kind) in ids.iter().zip(["coat", "hat", "boot"]) {
        let attributes = json!({"colour": "red", "brand": "<b>Fjell</b>"}).as_object().unwrap().clone();
        let article = Article::new(id.clone(), kind, attributes).unwrap();
        service.store.articles().put(&article, NOW).await.unwrap();
    }
    let customer = Customer { id: CustomerId::new("c-1").unwrap(), features: Features::default() };
    service.store.customers().put(&customer, NOW).await.unwrap();
    let outfit = Outfit::new(customer.id, ids.to_vec(), None, Features::default()).unwrap();
    service.store.outfits().save(&outfit, Origin::Saved, None, NOW).await.unwrap();

    // The outfit is found though it is not of one of the first customers.
    for number in 0..9 {
        let id = CustomerId::new(format!("c-0{number}")).unwrap();
        service.store.customers().put(&Customer { id, features: Features::default() }, NOW).await.unwrap();
    }

    let html = service.page("/").await.text().await.unwrap();
    assert!(html.contains("For c-1"), "{html}");
    assert!(html.contains("<li>red coat, &#60;b&#62;Fjell&#60;/b&#62;</li>"), "{html}");
    assert!(html.contains("<li>gone, no longer in the catalogue</li>"), "{html}");
}
