//! `/score` on the demo release.

use atelier_core::domain::{ArticleId, Outfit};
use serde_json::json;

use crate::harness::{
    Demo, apply,
    json::{list, number},
    on_sqlite, outfits,
};

#[apply(on_sqlite)]
async fn an_outfit_scores_above_a_mixture(Demo(service): Demo) {
    let outfits = outfits();
    let mut better = 0;
    for outfit in &outfits[..20] {
        let articles: Vec<&str> = outfit.articles().iter().map(ArticleId::as_str).collect();
        let ask = |articles: &[&str]| {
            service.ask_ok("/score", json!({"customer": outfit.customer.as_str(), "outfit": articles}))
        };
        let score = ask(&articles).await;
        let scored = list(&score["articles"]);
        assert_eq!(scored.len(), articles.len());
        let sum: f64 = scored.iter().map(|article| number(&article["log_probability"])).sum();
        let mean = number(&score["mean_log_probability"]);
        assert!((sum / f64::from(u32::try_from(scored.len()).unwrap()) - mean).abs() < 1e-9);
        for article in scored {
            assert!(number(&article["rank"]) <= number(&article["of_type"]), "{article}");
            assert!((0.0..=1.0).contains(&number(&article["share"])), "{article}");
        }
        // Mixed with articles of another outfit, the same articles score lower.
        let strangers = outfits.iter().rev().flat_map(Outfit::articles).map(ArticleId::as_str);
        let mut strangers = strangers.filter(|id| !articles.contains(id));
        let first = strangers.next().unwrap();
        let second = strangers.find(|id| *id != first).unwrap();
        let mixed = [&[first, second][..], &articles[2..]].concat();
        better += usize::from(mean > number(&ask(&mixed).await["mean_log_probability"]));
    }
    assert!(better >= 15, "of twenty outfits {better} score above their mixtures");
    let alone = json!({"outfit": [outfits[0].articles()[0].as_str()]});
    service.send("/score", alone).await.assert_problem(422, &["/outfit"]);
}
