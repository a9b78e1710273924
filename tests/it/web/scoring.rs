//! `/score` on the demo release.

use atelier_core::domain::{ArticleId, Outfit};
use serde_json::json;

use super::{Demo, outfits};
use crate::harness::{apply, on_sqlite};

#[apply(on_sqlite)]
async fn scores_an_outfit(Demo(service): Demo) {
    let outfits = outfits();
    let mut better = 0;
    for outfit in &outfits[..20] {
        let articles: Vec<&str> = outfit.articles().iter().map(ArticleId::as_str).collect();
        let request = json!({"customer": outfit.customer.as_str(), "outfit": articles});
        let score = service.ask_ok("/score", &request).await;
        assert_eq!(score["articles"].as_array().unwrap().len(), articles.len());
        let mean = score["articles"]
            .as_array()
            .unwrap()
            .iter()
            .map(|article| article["log_probability"].as_f64().unwrap())
            .sum::<f64>()
            / f64::from(u32::try_from(articles.len()).unwrap());
        assert!((mean - score["mean_log_probability"].as_f64().unwrap()).abs() < 1e-9);
        for article in score["articles"].as_array().unwrap() {
            assert!(article["rank"].as_u64().unwrap() <= article["of_type"].as_u64().unwrap());
            assert!((0.0..=1.0).contains(&article["share"].as_f64().unwrap()));
        }
        // Mixed with articles of another outfit, the same articles score lower.
        let mut mixed: Vec<&str> = articles.clone();
        let stranger = outfits.iter().rev().flat_map(Outfit::articles).map(ArticleId::as_str);
        let stranger: Vec<&str> = stranger.filter(|id| !articles.contains(id)).take(2).collect();
        mixed[0] = stranger[0];
        mixed[1] = stranger[1];
        if stranger[0] == stranger[1] {
            continue;
        }
        let request = json!({"customer": outfit.customer.as_str(), "outfit": mixed});
        let other = service.ask_ok("/score", &request).await;
        better +=
            usize::from(score["mean_log_probability"].as_f64() > other["mean_log_probability"].as_f64());
    }
    assert!(better >= 15, "of twenty outfits {better} score above their mixtures");
    let (status, problem) =
        service.ask("/score", &json!({"outfit": [outfits[0].articles()[0].as_str()]})).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/outfit")));
}
