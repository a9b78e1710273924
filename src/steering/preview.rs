//! Tries a rule on recent questions: what would change if it applied now.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use atelier_core::{
    domain::{ArticleId, Method, RuleName},
    util::json_fields::write_text,
};
use serde::Serialize;
use tokio::task;
use utoipa::ToSchema;

use crate::{
    completion::{
        Blank, Completion, Request, Served, Sets,
        asking::{Times, resolve},
        complete_many,
        profiles::Profiles,
        rules::Rule,
        sample::Sample,
    },
    platform::fault::ServiceError,
    releases::{LiveRelease, routing::Route},
};

/// The most articles that a preview names as gaining, and as losing.
const MOST_MOVES: usize = 50;

/// The changes if the rule applied now.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = RulePreview)]
pub struct Preview {
    /// Number of recent questions that were asked again: at most 300, without features of customers.
    pub questions: usize,
    /// Number of answers that would change.
    pub changed: usize,
    /// The probability, by the models, that a stylist would choose one of the suggestions for a blank, today.
    pub share: f64,
    /// The same with the rule.
    pub share_with: f64,
    /// The articles that would be in more answers: at most 50, those that gain most first.
    pub gains: Vec<Move>,
    /// The articles that would be in fewer answers.
    pub losses: Vec<Move>,
}

#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = RuleMove)]
pub struct Move {
    /// The article, by its id.
    #[serde(serialize_with = "write_text")]
    #[schema(value_type = String)]
    pub article: ArticleId,
    /// In how many more or fewer answers it would be.
    pub answers: u32,
}

/// Asks the sampled questions again, with today's rules and with this rule as if it were active; or without it.
pub async fn preview(
    live: &Arc<LiveRelease>,
    profiles: &Profiles,
    (name, rule): (&RuleName, Option<&Rule>),
    times: Times,
) -> Result<Preview, ServiceError> {
    let mut asked: BTreeMap<Method, Vec<Request>> = BTreeMap::new();
    for question in live.follower::<Sample>().list(times.now) {
        // A customer is gone, perhaps on another replica.
        if let Some(id) = &question.customer
            && profiles.get(id, times.begun).await?.is_none()
        {
            live.follower::<Sample>().forget(id);
            continue;
        }
        let mut route = Arc::clone(live).route(question.named, question.customer);
        if !Arc::ptr_eq(&route.live, live) {
            // Who is in an arm of another release.
            route = Arc::clone(live).route(Some(live.default_method()), route.customer);
        }
        match resolve(&route, profiles, plain(question.request, &route, times), times.begun).await {
            Ok(resolved) => asked.entry(route.method).or_default().push(resolved.request),
            Err(ServiceError::Faults(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let (compiled_for, name, rule) = (Arc::clone(live), name.clone(), rule.cloned());
    let compile = move || compiled_for.rules().with_rule(&name, rule.as_ref(), &compiled_for.catalogue);
    let rules = task::spawn_blocking(compile).await;
    let rules = Arc::new(rules.expect("compiling rules does not panic"));
    let (today, then) = (live.served(), Served { rules: &rules, ..live.served() });
    let mut tally = Tally::default();
    for (method, requests) in asked {
        let before = complete_many(today, method, &requests, times.deadline).await?;
        let after = complete_many(then, method, &requests, times.deadline).await?;
        for pair in before.into_iter().zip(after) {
            if let (Ok(before), Ok(after)) = pair {
                tally.add(&before, &after);
            }
        }
    }
    Ok(tally.finish())
}

/// The same question for the lists of its blanks alone.
fn plain(request: Request, route: &Route, times: Times) -> Request {
    Request {
        method: route.method,
        without_rules: Arc::clone(&route.without_rules),
        probability: true,
        rules: Some(times.now),
        lift: false,
        explain: false,
        sets: Sets::default(),
        placements_of: Vec::new(),
        skip_unknown: true,
        admitted: false,
        ..request
    }
}

#[derive(Debug, Default)]
struct Tally {
    preview: Preview,
    blanks: u32,
    /// In how many more answers an article is.
    moves: HashMap<ArticleId, i32>,
}

impl Tally {
    fn add(&mut self, before: &Completion, after: &Completion) {
        let ids = |blank: &Blank| -> Vec<ArticleId> {
            blank.suggestions.iter().map(|suggestion| suggestion.article.id.clone()).collect()
        };
        let lists = |answer: &Completion| -> Vec<_> { answer.blanks.iter().map(ids).collect() };
        self.compare(&lists(before), &lists(after));
        for (before, after) in before.blanks.iter().zip(&after.blanks) {
            let probability = |blank: &Blank| -> f64 {
                blank.suggestions.iter().filter_map(|suggestion| suggestion.probability).sum()
            };
            let share = before.suggestions.iter().map(|suggestion| suggestion.share).sum();
            self.weigh(share, probability(before), probability(after));
        }
    }

    fn compare(&mut self, before: &[Vec<ArticleId>], after: &[Vec<ArticleId>]) {
        for (lists, by) in [(before, -1), (after, 1)] {
            for id in lists.iter().flatten().collect::<BTreeSet<_>>() {
                *self.moves.entry(id.clone()).or_default() += by;
            }
        }
        self.preview.questions += 1;
        self.preview.changed += usize::from(before != after);
    }

    /// Compares what the suggestions for a blank have: `share` today, of which the rule changes the probability.
    fn weigh(&mut self, share: f64, before: f64, after: f64) {
        // The models may rule out all that the shop's rules left.
        if share > 0.0 && before > 0.0 {
            self.blanks += 1;
            self.preview.share += share;
            // Shares with the rule are among fewer articles if it excludes some.
            self.preview.share_with += share * after / before;
        }
    }

    fn finish(self) -> Preview {
        let blanks = f64::from(self.blanks.max(1));
        let sorted = |sign: i32| {
            let moves = self.moves.iter().filter(|(_, by)| by.signum() == sign);
            let mut moves: Vec<Move> =
                moves.map(|(id, by)| Move { article: id.clone(), answers: by.unsigned_abs() }).collect();
            moves.sort_by(|a, b| b.answers.cmp(&a.answers).then_with(|| a.article.cmp(&b.article)));
            moves.truncate(MOST_MOVES);
            moves
        };
        let (gains, losses) = (sorted(1), sorted(-1));
        let (share, share_with) = (self.preview.share / blanks, self.preview.share_with / blanks);
        Preview { share, share_with, gains, losses, ..self.preview }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(ids: &[&[&str]]) -> Vec<Vec<ArticleId>> {
        let list = |ids: &&[&str]| ids.iter().map(|id| ArticleId::new(*id).unwrap()).collect();
        ids.iter().map(list).collect()
    }

    #[test]
    fn an_answer_counts_once_whatever_its_blanks() {
        let mut tally = Tally::default();
        tally.compare(&lists(&[&["a", "b"], &["a", "c"]]), &lists(&[&["b", "d"], &["c", "d"]]));
        tally.compare(&lists(&[&["a"], &["b"]]), &lists(&[&["b"], &["a"]]));
        let found = tally.finish();
        assert_eq!((found.questions, found.changed), (2, 2));
        let moved = |id: &str| vec![Move { article: ArticleId::new(id).unwrap(), answers: 1 }];
        assert_eq!((found.gains, found.losses), (moved("d"), moved("a")));
    }

    #[test]
    fn what_models_rule_out_leaves_the_shares_numbers() {
        let mut tally = Tally::default();
        tally.weigh(0.5, 0.2, 0.1);
        tally.weigh(0.3, 0.0, 0.0);
        let found = tally.finish();
        assert_eq!((found.share, found.share_with), (0.5, 0.25));
    }
}
