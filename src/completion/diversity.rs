//! Diverse suggestions.
//!
//! Each next suggestion has the greatest `(1 − d) · likelihood − d · likeness`: its share relative to that of the most
//! likely one, and its similarity to those already chosen (the share of type and attributes in common). At d = 0 the
//! order is by probability; at 1 by variety alone.

use atelier_core::domain::Article;

use super::Suggestion;

/// The most diverse suggestions for one blank: the cost is their number times the pool's size.
pub const MAX_VARIED: usize = 50;
/// The pool's size as a multiple of `k`, and at least.
const POOL: usize = 2;
const LEAST_POOL: usize = 50;

/// The number of candidates to choose `k` from.
pub(super) fn pool(k: usize, diversity: f64) -> usize {
    if diversity > 0.0 { (k * POOL).max(LEAST_POOL) } else { k }
}

/// Chooses `k` suggestions, or all if the pool has fewer. `weight` is how likely one counts; the first one's is the highest.
pub(super) fn choose(
    mut pool: Vec<Suggestion>,
    k: usize,
    diversity: f64,
    weight: impl Fn(&Suggestion) -> f64,
) -> Vec<Suggestion> {
    if diversity == 0.0 {
        pool.truncate(k);
        return pool;
    }
    let Some(first) = pool.first().map(&weight) else { return pool };
    let mut articles: Vec<Article> = pool.iter().map(|suggestion| suggestion.article.unpack()).collect();
    let mut alike = vec![0.0_f64; pool.len()];
    let mut chosen: Vec<Suggestion> = Vec::with_capacity(k);
    while chosen.len() < k && !pool.is_empty() {
        let worth = |position: usize| {
            (1.0 - diversity) * (weight(&pool[position]) / first) - diversity * alike[position]
        };
        let next = (0..pool.len())
            .reduce(|best, position| if worth(position) > worth(best) { position } else { best })
            .expect("the pool is not empty");
        // `remove` keeps the pool's order, which breaks ties.
        let next_suggestion = pool.remove(next);
        alike.remove(next);
        let article = articles.remove(next);
        for (alike, other) in alike.iter_mut().zip(&articles) {
            *alike = alike.max(likeness(&article, other));
        }
        chosen.push(next_suggestion);
    }
    chosen
}

/// From 0 to 1: the share of equal values among the type and the text attributes that both articles have.
fn likeness(one: &Article, other: &Article) -> f64 {
    let (mut same, mut both) = (u32::from(one.kind() == other.kind()), 1);
    for (name, value) in one.attributes() {
        let (true, Some(theirs)) = (value.is_string(), other.attribute(name)) else { continue };
        both += 1;
        same += u32::from(value == theirs);
    }
    f64::from(same) / f64::from(both)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use atelier_core::domain::{Article, ArticleId};

    fn suggestion(index: u32, kind: &str, colour: &str, share: f64) -> Suggestion {
        let attributes = json!({"colour": colour, "price": 3}).as_object().unwrap().clone();
        let id = ArticleId::new(format!("a-{index}")).unwrap();
        let article = Arc::new((&Article::new(id, kind, attributes).unwrap()).into());
        let (own_rank, rules) = (None, Vec::new());
        Suggestion { index, article, probability: None, share, lift: None, reasons: None, own_rank, rules }
    }

    #[test]
    fn variety_costs_likelihood() {
        let pool = [
            suggestion(0, "coat", "red", 0.4),
            suggestion(1, "coat", "red", 0.3),
            suggestion(2, "coat", "blue", 0.1),
            suggestion(3, "hat", "green", 0.05),
        ];
        let order = |diversity: f64, k: usize| {
            let chosen = choose(pool.to_vec(), k, diversity, |suggestion| suggestion.share);
            chosen.iter().map(|suggestion| suggestion.index).collect::<Vec<_>>()
        };
        assert_eq!(order(0.0, 3), [0, 1, 2]);
        assert_eq!(order(1.0, 3), [0, 3, 2]);
        assert_eq!(order(0.5, 2), [0, 3]);
        assert_eq!(order(0.1, 4).len(), 4, "k are found whenever k exist");
        assert_eq!(order(1.0, 9).len(), 4);
        assert!(choose(Vec::new(), 3, 0.5, |_| 1.0).is_empty());
    }
}
