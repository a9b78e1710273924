//! `/personas`: the page shows the models' answers, which this test asks for itself.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use atelier_core::domain::{CustomerId, Method, Outfit, Role};
use atelier_engine::{
    catalogue::ArticleIndex,
    inference::{BLANK, Context, Question, Serving},
};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    analysis::evaluation::{lack::demo_but, text},
    harness::{Browser, Html, Service, Stylist, TestDatabase, Unconditional, apply, on_sqlite, rows, until},
};

/// The page, once its figures are computed: until then it reloads itself.
async fn ready(browser: &Browser, query: &str) -> String {
    let began = Instant::now();
    loop {
        assert!(began.elapsed().as_secs() < 30, "the figures of {query} were not computed within 30 s");
        let answer = browser.get(format!("/personas?{query}")).is(200).await;
        if answer.header("refresh").is_empty() {
            return answer.text();
        }
        assert_eq!(answer.header("refresh"), "2");
        answer.text().has(["Computing personas", "<progress"]);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The demo release with some of its methods.
fn demo_with(methods: [&'static str; 2]) -> TempDir {
    demo_but(|_, manifest| {
        let all = manifest["methods"].as_array_mut().unwrap();
        all.retain(|one| methods.iter().any(|kept| one["method"] == *kept));
    })
}

/// The mixes in the model's answers.
async fn ask(serving: &Serving, method: Method, outfits: &[Vec<u32>]) -> Vec<Vec<f32>> {
    let release = serving.release();
    let context: Context = vec![Vec::new(); release.schema().features().len()].into();
    let articles = Arc::new(serving.articles(ArticleIndex::of_release(release)));
    let question = |outfit: &Vec<u32>| {
        let slots = [&[BLANK], outfit.as_slice()].concat();
        Question::new(Arc::clone(&articles), slots, 0, context.clone())
    };
    let mut mixes = Vec::new();
    for outfits in outfits.chunks(256) {
        let questions = outfits.iter().map(question).collect();
        let answered = serving.ask(method, questions, Instant::now() + Duration::from_mins(1)).await.unwrap();
        mixes.extend(answered.answers.into_iter().map(|answer| answer.personas.unwrap()));
    }
    mixes
}

fn percent(share: f32) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[apply(on_sqlite)]
async fn typical_articles_have_the_largest_share(Stylist(service, stylist): Stylist) {
    let html = ready(&stylist, "method=latent").await;
    assert!(html.len() < 60_000, "{} bytes", html.len());
    let serving = &service.releases.current().unwrap().serving;
    let articles: Vec<Vec<u32>> = (0..1451).map(|index| vec![index]).collect();
    let mixes = ask(serving, Method::Latent, &articles).await;
    let cards: Vec<&str> = html.split("<article class=\"card\">").skip(1).collect();
    assert_eq!(cards.len(), 8);
    for (place, card) in cards.iter().enumerate() {
        let share = |index: &usize| mixes[*index][place];
        let first = (0..mixes.len()).max_by(|one, other| share(one).total_cmp(&share(other))).unwrap();
        let article = serving.release().articles()[first].unpack();
        let name = article.words("name").next().unwrap();
        card.between("<ul class=\"typical\">", "</li>").has([name, &percent(share(&first))]);
        let mean = mixes.iter().map(|mix| f64::from(mix[place])).sum::<f64>() / 1451.0;
        card.has([format!("{:.1} % of the average article", 100.0 * mean)]);
    }
    let largest = percent(mixes.iter().flatten().copied().fold(0.0, f32::max));
    html.has([
        &*format!("has {largest} of persona"),
        "an even mix has 12.5 %",
        "the first 333 stored outfits",
    ]);

    // The other methods have their own personas, computed only now. The pages differ in the tokens of their forms.
    let html = text(&html);
    assert_ne!(text(&ready(&stylist, "method=latent-universal").await), html);
    assert_eq!(text(&ready(&stylist, "").await), html, "latent is the first method with personas");
}

#[apply(on_sqlite)]
async fn the_mix_of_a_customer_is_the_mean_of_their_outfits(Stylist(service, stylist): Stylist) {
    let outfits = rows::<Outfit>();
    let of = |customer: &CustomerId| {
        outfits.iter().filter(|outfit| outfit.customer == *customer).collect::<Vec<_>>()
    };
    let most = outfits.iter().max_by_key(|outfit| of(&outfit.customer).len()).unwrap();
    let own = of(&most.customer);
    assert!(own.len() > 1, "one customer has several outfits");
    let serving = &service.releases.current().unwrap().serving;
    let index = |outfit: &&Outfit| {
        let vocabulary = serving.release().vocabulary();
        let known = outfit.articles().iter().filter_map(|id| vocabulary.index_of(id.as_str()));
        known.take(7).collect()
    };
    let mixes = ask(serving, Method::LatentUniversal, &own.iter().map(index).collect::<Vec<_>>()).await;
    let page = async |query: &str| ready(&stylist, &format!("method=latent-universal&{query}")).await;
    let html = page(&format!("customer={}", most.customer)).await;
    let mixture = html.between("<section class=\"mixture\">", "</section>");
    for place in 0..8 {
        let count = f64::from(u32::try_from(mixes.len()).unwrap());
        let mean = mixes.iter().map(|mix| f64::from(mix[place])).sum::<f64>() / count;
        mixture.has([format!("{:.1} % of persona {}", 100.0 * mean, place + 1)]);
    }
    assert_eq!(mixture.matches("largest: ").count(), own.len().min(8));

    // One outfit, by the link of a card; another method shows the same one.
    let number = html.between("/personas?method=latent-universal&amp;outfit=", "\"");
    let one = page(&format!("outfit={number}")).await;
    one.has(["An outfit of ", &format!("/personas?method=latent&amp;outfit={number}\"")]);
    assert_eq!(one.matches("largest: ").count(), 1, "{one}");
    page("customer=+").await.lacks(["largest: "]);
    page("customer=c-nobody").await.has(["There is no customer c-nobody."]);
    service.put("/customers/bare", json!({"features": {}})).await;
    page("customer=bare").await.has(["This customer has no outfits"]);
}

#[apply(on_sqlite)]
async fn erased_customers_are_not_shown(Stylist(service, stylist): Stylist) {
    let shown = ready(&stylist, "method=latent").await.between(" · c-", "<");
    let customer = CustomerId::new(format!("c-{shown}")).unwrap();
    assert!(service.store.customers().remove(&customer, std::time::SystemTime::now().into()).await.unwrap());
    ready(&stylist, "method=latent").await.lacks([customer.as_str()]);
    // The typical articles are computed again from the customers who are left.
    let left = service.store.outfits().count().await.unwrap();
    let expected = format!("the first {left} stored outfits");
    until!(ready(&stylist, "method=latent").await.contains(&expected));
}

#[apply(on_sqlite)]
async fn invalid_queries_are_refused(Stylist(_service, stylist): Stylist) {
    ready(&stylist, "").await;
    for (query, status, says) in [
        ("method=gsu", 422, "gsu has no personas in the live release"),
        ("method=bert", 422, "bert has no personas in the live release"),
        ("outfit=x", 422, "cannot read &#34;x&#34; as its outfit"),
        ("customer=a%7Cb", 422, "control characters or"),
        ("persona=3&_hsenc=1", 200, "Personas"),
        ("outfit=999999999", 404, "There is no stored outfit 999999999."),
    ] {
        stylist.get(format!("/personas?{query}")).is(status).await.text().has(["<h1>", says]);
    }
}

#[apply(on_sqlite)]
async fn releases_without_personas_say_what_to_do(db: TestDatabase) {
    let folder = demo_with(["none", "gsu"]);
    let service = Service::of(&db, &folder).await;
    let stylist = service.signed_in(Role::Stylist).await;
    stylist.page("/personas").await.has(["No release is live"]);
    service.releases.serve("demo").await.unwrap();
    stylist.page("/personas").await.has(["No method of demo has personas", "fit --method latent"]);
}

#[apply(on_sqlite)]
async fn cached_personas_end_with_the_release(db: TestDatabase) {
    let folder = demo_with(["gsu", "latent"]);
    let service = Service::filled(&db, &folder).await;
    let stylist = service.signed_in(Role::Stylist).await;
    service.releases.serve("demo").await.unwrap();
    let before = Arc::downgrade(&service.releases.current().unwrap().serving);
    stylist.page("/personas").await.has(["Computing personas"]);
    service.releases.serve("demo").await.unwrap();
    until!(before.upgrade().is_none());
    ready(&stylist, "").await.has(["Persona 8"]);
}
