//! Scores an outfit: each article's likelihood given the others.

use std::{sync::Arc, time::Instant};

use atelier_core::domain::Mask;
use atelier_engine::{
    inference::{Admission, BLANK, Question},
    packed_article::PackedArticle,
};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::{Cost, Request, Served, Warning, bounded, conversation::Conversation, prepare::Prepared};
use crate::{
    catalogue::api::ArticleBody,
    platform::fault::{Fault, ServiceError},
};

#[derive(Debug, Clone)]
pub struct OutfitScore {
    /// Mean natural logarithm of the articles' probabilities.
    pub mean_log_probability: f64,
    pub articles: Vec<ArticleScore>,
    /// The slot of the least likely article relative to its own type.
    pub weakest: usize,
    pub warnings: Vec<Warning>,
    pub cost: Cost,
}

/// One article, given the others.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ArticleScore {
    /// Its place in the outfit, from 0.
    pub slot: usize,
    #[serde(serialize_with = "write_article")]
    #[schema(value_type = ArticleBody)]
    pub article: Arc<PackedArticle>,
    /// The probability of this article at its place, given the others.
    pub probability: f64,
    /// The natural logarithm of `probability`.
    pub log_probability: f64,
    /// Among all articles of its type, from 1.
    pub rank: usize,
    /// Number of articles of its type.
    pub of_type: usize,
    /// Share of the probability of all articles of its type.
    pub share: f64,
}

fn write_article<S: Serializer>(article: &Arc<PackedArticle>, serializer: S) -> Result<S::Ok, S::Error> {
    (**article).serialize(serializer)
}

/// Scores how well the articles of an outfit go together for a customer. Each is ranked among the articles of its type that
/// pass the filters, and those of the outfit.
pub async fn score(
    served: Served<'_>,
    request: &Request,
    deadline: Instant,
) -> Result<OutfitScore, ServiceError> {
    let prepared = Prepared::for_scoring(served, request)?;
    let catalogue = served.catalogue;
    let mut scored = Vec::new();
    let mut questions = Vec::new();
    for (position, &index) in prepared.slots.iter().enumerate() {
        // Articles that left the catalogue are seen by the model, but not scored.
        let Some(article) = catalogue.article(index) else { continue };
        let of_type = catalogue.sets().of_type(article.kind()).expect("the catalogue has its type");
        let of_type = among(served, request, &prepared, position, &of_type);
        let mut slots = prepared.slots.clone();
        slots[position] = BLANK;
        questions.push(Question {
            admissible: Some(Arc::new(of_type)),
            placements_of: vec![index],
            ranks: true,
            ..prepared.question(slots, position)
        });
        scored.push((prepared.positions[position], Arc::clone(article)));
    }
    if questions.is_empty() {
        let detail = "none of its articles is in the catalogue and known to the method";
        return Err(Fault::new("outfit", detail).into());
    }
    let admission = Admission::New { follow_ups: 0 };
    let (conversation, answers) =
        Conversation::open(served.serving, request.method, deadline, admission, questions).await?;
    let articles: Vec<ArticleScore> = scored
        .into_iter()
        .zip(answers)
        .map(|((slot, article), answer)| {
            let placement = answer.placements[0];
            let of_type = answer.admissible_probability;
            let probability = placement.log_probability.exp();
            let share = if of_type > 0.0 { probability / of_type } else { 0.0 };
            ArticleScore {
                slot,
                article,
                probability,
                log_probability: placement.log_probability,
                rank: placement.rank.expect("ranks were asked for"),
                share: share.min(1.0),
                of_type: answer.admissible,
            }
        })
        .collect();
    let count = f64::from(u32::try_from(articles.len()).expect("an outfit is small"));
    let sum: f64 = articles.iter().map(|article| article.log_probability).sum();
    // Types differ in size; relative to its own type a belt can be as good as a coat.
    let against_type = |article: &ArticleScore| {
        article.share * f64::from(u32::try_from(article.of_type).unwrap_or(u32::MAX))
    };
    let weakest = articles
        .iter()
        .min_by(|a, b| against_type(a).total_cmp(&against_type(b)))
        .map(|article| article.slot)
        .expect("there is an article");
    Ok(OutfitScore {
        mean_log_probability: sum / count,
        articles,
        weakest,
        warnings: bounded(prepared.warnings, prepared.reading.left_out),
        cost: conversation.cost(),
    })
}

/// The articles of a type that an article of the outfit is ranked among.
fn among(
    served: Served<'_>,
    request: &Request,
    prepared: &Prepared,
    position: usize,
    of_type: &Mask,
) -> Mask {
    let mut among = Mask::clone(&prepared.common);
    if let Some(total) = request.filters.most_total {
        let others = prepared.slots.iter().enumerate().filter(|(other, _)| *other != position);
        let prices = others.map(|(_, index)| served.catalogue.sets().price(*index));
        let spent: f64 = prices.filter(|price| !price.is_nan()).sum();
        among.intersect(&served.catalogue.sets().priced(None, Some(total - spent)));
    }
    for article in &prepared.slots {
        among.insert(*article);
    }
    among.intersect(of_type);
    among
}
