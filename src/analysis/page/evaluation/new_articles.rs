//! How well the methods suggest articles that no training outfit has.

use atelier_engine::evaluation::{Answered, Comparison, MethodResult, NewArticles, NewBaseline};

use crate::platform::page::format;

#[derive(Debug)]
pub(super) struct NewArticlesTable {
    /// The number of slots whose answer is a new article.
    pub(super) slots: String,
    /// Their share of all slots, if a method can suggest new articles.
    pub(super) share: Option<String>,
    /// Methods, then baselines; each with its share of the probability, if it is a method.
    pub(super) groups: [Vec<(String, Answered, String)>; 2],
    /// The methods that cannot suggest new articles.
    pub(super) closed: Vec<String>,
}

/// The methods that can suggest new articles.
pub(super) fn open(comparison: &Comparison) -> impl Iterator<Item = (String, NewArticles)> {
    comparison.methods.iter().filter_map(|result| Some((result.name(), result.new_articles?)))
}

impl NewArticlesTable {
    /// `None` if the release has no new articles.
    pub(super) fn new(comparison: &Comparison) -> Option<Self> {
        let results = &comparison.methods;
        let open = || open(comparison);
        let baselines = &comparison.new_article_baselines;
        let answered =
            open().map(|(_, figures)| figures.new).chain(baselines.iter().map(|one| one.new)).next()?;
        let closed = results.iter().filter(|result| result.new_articles.is_none()).map(MethodResult::name);
        let methods = open()
            .map(|(name, figures)| (name, figures.new, format::percent(figures.shares.of_probability.mean)));
        let of_baseline = |baseline: &NewBaseline| (baseline.name.clone(), baseline.new, String::new());
        Some(Self {
            slots: format::count(answered.any.slots),
            share: open().next().map(|(_, figures)| format::percent(figures.shares.of_answers.mean)),
            groups: [methods.collect(), baselines.iter().map(of_baseline).collect()],
            closed: closed.collect(),
        })
    }
}
