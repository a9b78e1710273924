//! How well the methods suggest articles that no training outfit has.

use atelier_engine::evaluation::{
    Answered, Comparison, Figure, MethodResult, Metric, NewArticles, NewBaseline,
};

use crate::platform::page::format;

/// The rows of the table.
#[derive(Debug)]
pub(super) struct NewArticlesTable {
    /// The number of slots whose answer is a new article.
    pub(super) slots: String,
    /// Their share of all slots, if a method can suggest new articles.
    pub(super) share: Option<String>,
    /// Methods, then baselines.
    pub(super) groups: [Vec<NewArticlesRow>; 2],
    /// The methods that cannot suggest new articles.
    pub(super) closed: Vec<String>,
}

#[derive(Debug)]
pub(super) struct NewArticlesRow {
    pub(super) name: String,
    /// Recall at 1 and 5, mean rank and cross-entropy among all articles; the same within the type.
    pub(super) cells: Vec<String>,
    /// Of the probability, for methods.
    pub(super) share: String,
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
        let methods = open().map(|(name, figures)| {
            NewArticlesRow::new(name, &figures.new, format::percent(figures.shares.of_probability.mean))
        });
        let of_baseline =
            |baseline: &NewBaseline| NewArticlesRow::new(baseline.name.clone(), &baseline.new, String::new());
        Some(Self {
            slots: format::count(answered.any.slots),
            share: open().next().map(|(_, figures)| format::percent(figures.shares.of_answers.mean)),
            groups: [methods.collect(), baselines.iter().map(of_baseline).collect()],
            closed: closed.collect(),
        })
    }
}

impl NewArticlesRow {
    fn new(name: String, Answered { any, told_type }: &Answered, share: String) -> Self {
        let recall = |figure: Figure| format::figure(Metric::RecallAt1, figure.mean);
        let rank = |figure: Figure| format!("{:.1}", figure.mean);
        let entropy = |figure: Figure| format::figure(Metric::CrossEntropy, figure.mean);
        let cells = [any, told_type].into_iter().flat_map(|scores| {
            [
                recall(scores.recall_at_1),
                recall(scores.recall_at_5),
                rank(scores.mean_rank),
                entropy(scores.cross_entropy),
            ]
        });
        Self { name, cells: cells.collect(), share }
    }
}
