//! Suggestions that are not all alike.
//!
//! The next one is always that with the greatest `(1 − d) · likelihood − d · likeness`: how likely it is
//! beside the most likely one, and how like those already chosen (the share of type and attributes that two
//! articles have in common). At d = 0 that is the order of the probabilities; at 1 it is variety alone.

use super::Suggestion;
use crate::domain::Article;

/// Most suggestions of one blank where variety is wanted: choosing them costs their number times the pool's.
pub const MAX_VARIED: usize = 50;
/// How many times `k` candidates are looked at where variety is wanted, and how many at least.
const POOL: usize = 2;
const LEAST_POOL: usize = 50;

/// How many candidates are needed to choose `k` from.
pub(super) fn pool(k: usize, diversity: f64) -> usize {
    if diversity > 0.0 { (k * POOL).max(LEAST_POOL) } else { k }
}

/// Chooses `k`; as many as there are if there are fewer.
pub(super) fn choose(mut pool: Vec<Suggestion>, k: usize, diversity: f64) -> Vec<Suggestion> {
    if diversity == 0.0 {
        pool.truncate(k);
        return pool;
    }
    let Some(first) = pool.first().map(|suggestion| suggestion.probability) else { return pool };
    let mut alike = vec![0.0_f64; pool.len()];
    let mut chosen: Vec<Suggestion> = Vec::with_capacity(k);
    while chosen.len() < k && !pool.is_empty() {
        let worth =
            |place: usize| (1.0 - diversity) * (pool[place].probability / first) - diversity * alike[place];
        let next = (0..pool.len())
            .reduce(|best, place| if worth(place) > worth(best) { place } else { best })
            .expect("the pool is not empty; this is a bug");
        // Order in the pool breaks ties, so it is kept.
        let next_one = pool.remove(next);
        alike.remove(next);
        for (alike, other) in alike.iter_mut().zip(&pool) {
            *alike = alike.max(likeness(&next_one.article, &other.article));
        }
        chosen.push(next_one);
    }
    chosen
}

/// From 0 to 1: the share of what both say of themselves in words that is the same.
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
    use crate::domain::{Article, ArticleId};

    fn suggestion(index: u32, kind: &str, colour: &str, probability: f64) -> Suggestion {
        let attributes = json!({"colour": colour, "price": 3}).as_object().unwrap().clone();
        let id = ArticleId::new(format!("a-{index}")).unwrap();
        let article = Arc::new(Article::new(id, kind, attributes).unwrap().into());
        Suggestion { index, article, probability, share: 0.0, lift: None, reasons: None }
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
            let chosen = choose(pool.to_vec(), k, diversity);
            chosen.iter().map(|suggestion| suggestion.index).collect::<Vec<_>>()
        };
        assert_eq!(order(0.0, 3), [0, 1, 2]);
        assert_eq!(order(1.0, 3), [0, 3, 2]);
        assert_eq!(order(0.5, 2), [0, 3]);
        assert_eq!(order(0.1, 4).len(), 4, "k are found whenever k exist");
        assert_eq!(order(1.0, 9).len(), 4);
        assert!(choose(Vec::new(), 3, 0.5).is_empty());
    }
}
