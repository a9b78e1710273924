//! `/personas`: the page shows the models' answers, which this test asks for itself.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use atelier::config::Limits;
use atelier_core::domain::{CustomerId, Method, Outfit, Role};
use atelier_engine::{
    catalogue::ArticleIndex,
    inference::{BLANK, Context, Question, Serving},
};
use serde_json::Value;

use super::{
    Browser, Demo, Service,
    evaluation::{lack::demo_but, text},
    rows, until,
};
use crate::harness::{TestDatabase, apply, on_sqlite};

/// The page, once its figures are computed: until then it reloads itself.
async fn ready(browser: &Browser, path: &str) -> String {
    let began = Instant::now();
    loop {
        assert!(began.elapsed().as_secs() < 30, "the figures of {path} were not computed within 30 s");
        let answer = browser.get(path).await;
        let refresh = answer.header("refresh").to_owned();
        let (status, html) = (answer.status(), answer.text());
        assert_eq!(status, 200, "{html}");
        if refresh.is_empty() {
            return html;
        }
        assert_eq!(refresh, "2");
        assert!(html.contains("Computing personas") && html.contains("<progress"), "{html}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
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
async fn typical_articles_have_the_largest_share(Demo(service): Demo) {
    let stylist = service.signed_in(Role::Stylist).await;
    let html = ready(&stylist, "/personas?method=latent").await;
    assert!(html.len() < 60_000, "{} bytes", html.len());
    let serving = &service.releases.current().unwrap().serving;
    let articles: Vec<Vec<u32>> = (0..1451).map(|index| vec![index]).collect();
    let mixes = ask(serving, Method::Latent, &articles).await;
    let cards: Vec<&str> = html.split("<article class=\"card\">").skip(1).collect();
    assert_eq!(cards.len(), 8);
    for (place, card) in cards.iter().enumerate() {
        let first = (0..mixes.len())
            .max_by(|one, other| mixes[*one][place].total_cmp(&mixes[*other][place]))
            .unwrap();
        let article = serving.release().articles()[first].unpack();
        let name = article.words("name").next().unwrap();
        let shown = card.split("<ul class=\"typical\">").nth(1).unwrap().split("</li>").next().unwrap();
        assert!(shown.contains(name) && shown.contains(&percent(mixes[first][place])), "{name}: {shown}");
        let mean = mixes.iter().map(|mix| f64::from(mix[place])).sum::<f64>() / 1451.0;
        assert!(card.contains(&format!("{:.1} % of the average article", 100.0 * mean)), "{card}");
    }
    let largest = mixes.iter().flatten().copied().fold(0.0, f32::max);
    assert!(html.contains(&format!("has {} of persona", percent(largest))), "{html}");
    assert!(
        html.contains("an even mix has 12.5 %") && html.contains("the first 333 stored outfits"),
        "{html}"
    );

    // The other methods have their own personas, computed only now.
    let other = ready(&stylist, "/personas?method=latent-universal").await;
    // The pages differ in the tokens of their forms.
    let (other, html) = (text(&other), text(&html));
    assert_ne!(other, html);
    assert_eq!(text(&ready(&stylist, "/personas").await), html, "latent is the first method with personas");
}

#[apply(on_sqlite)]
async fn the_mix_of_a_customer_is_the_mean_of_their_outfits(Demo(service): Demo) {
    let stylist = service.signed_in(Role::Stylist).await;
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
    let html =
        ready(&stylist, &format!("/personas?method=latent-universal&customer={}", most.customer)).await;
    let mixture =
        html.split("<section class=\"mixture\">").nth(1).unwrap().split("</section>").next().unwrap();
    for place in 0..8 {
        let count = f64::from(u32::try_from(mixes.len()).unwrap());
        let mean = mixes.iter().map(|mix| f64::from(mix[place])).sum::<f64>() / count;
        let share = format!("{:.1} % of persona {}", 100.0 * mean, place + 1);
        assert!(mixture.contains(&share), "{share}: {mixture}");
    }
    assert_eq!(mixture.matches("largest: ").count(), own.len().min(8));

    // One outfit, by the link of a card.
    let link = html
        .split("href=\"")
        .find_map(|rest| rest.strip_prefix("/personas?method=latent-universal&amp;outfit="));
    let number = link.unwrap().split('"').next().unwrap();
    let one = ready(&stylist, &format!("/personas?method=latent-universal&outfit={number}")).await;
    assert!(one.contains("An outfit of c-") && one.matches("largest: ").count() == 1, "{one}");
    let tab = format!("/personas?method=latent&amp;outfit={number}\"");
    assert!(one.contains(&tab), "another method shows the same outfit: {one}");
    assert!(!ready(&stylist, "/personas?method=latent-universal&customer=+").await.contains("largest: "));
    let unknown = ready(&stylist, "/personas?method=latent-universal&customer=c-nobody").await;
    assert!(unknown.contains("There is no customer c-nobody."));
    service.put("/customers/bare", &serde_json::json!({"features": {}})).await;
    let bare = ready(&stylist, "/personas?method=latent-universal&customer=bare").await;
    assert!(bare.contains("This customer has no outfits"));
}

#[apply(on_sqlite)]
async fn erased_customers_are_not_shown(Demo(service): Demo) {
    let stylist = service.signed_in(Role::Stylist).await;
    let html = ready(&stylist, "/personas?method=latent").await;
    let shown = html.split("for c-").nth(1).unwrap().split('<').next().unwrap();
    let customer = CustomerId::new(format!("c-{shown}")).unwrap();
    assert!(service.store.customers().erase(&customer, std::time::SystemTime::now().into()).await.unwrap());
    let html = ready(&stylist, "/personas?method=latent").await;
    assert!(!html.contains(customer.as_str()), "{customer} disappears at once");
    // The typical articles are computed again from the customers who are left.
    let left = service.store.outfits().count().await.unwrap();
    let expected = format!("the first {left} stored outfits");
    until!(ready(&stylist, "/personas?method=latent").await.contains(&expected));
}

#[apply(on_sqlite)]
async fn invalid_queries_are_refused(Demo(service): Demo) {
    let stylist = service.signed_in(Role::Stylist).await;
    ready(&stylist, "/personas").await;
    for (path, status, says) in [
        ("/personas?method=gsu", 422, "gsu has no personas in the live release"),
        ("/personas?method=bert", 422, "bert has no personas in the live release"),
        ("/personas?outfit=x", 422, "cannot read &#34;x&#34; as its outfit"),
        ("/personas?customer=a%7Cb", 422, "control characters or"),
        ("/personas?persona=3&_hsenc=1", 200, "Personas"),
        ("/personas?outfit=999999999", 404, "there is no stored outfit 999999999"),
    ] {
        let answer = stylist.get(path).await;
        assert_eq!(answer.status(), status, "{path}");
        let html = answer.text();
        assert!(html.contains("<h1>") && html.contains(says), "{path}: {html}");
    }
}

#[apply(on_sqlite)]
async fn releases_without_personas_say_what_to_do(db: TestDatabase) {
    let folder = demo_but(|_, manifest| {
        manifest["methods"]
            .as_array_mut()
            .unwrap()
            .retain(|one| one["method"] == "none" || one["method"] == "gsu");
    });
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    let stylist = service.signed_in(Role::Stylist).await;
    assert!(stylist.page("/personas").await.contains("No release is live"));
    service.releases.serve("demo").await.unwrap();
    let html = stylist.page("/personas").await;
    assert!(
        html.contains("No method of demo has personas") && html.contains("fit --method latent"),
        "{html}"
    );
}

#[apply(on_sqlite)]
async fn cached_personas_end_with_the_release(db: TestDatabase) {
    let folder = demo_but(|_, manifest| {
        let kept = |one: &Value| one["method"] == "gsu" || one["method"] == "latent";
        manifest["methods"].as_array_mut().unwrap().retain(kept);
    });
    crate::web::fill(&db).await;
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    let stylist = service.signed_in(Role::Stylist).await;
    service.releases.serve("demo").await.unwrap();
    let before = Arc::downgrade(&service.releases.current().unwrap().serving);
    assert!(stylist.page("/personas").await.contains("Computing personas"));
    service.releases.serve("demo").await.unwrap();
    until!(before.upgrade().is_none());
    assert!(ready(&stylist, "/personas").await.contains("Persona 8"), "the new release has its own");
}
