//! The questions of the validation split, and a method's answers to them.

use std::{
    fs, io,
    num::NonZero,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use atelier_core::domain::Article;
use atelier_engine::{
    catalogue::{ArticleIndex, Catalogue},
    inference::{Articles, BLANK, ModelError, Question, Scorer},
    onnx_runtime::OnnxRuntime,
    release::{MethodEntry, Release},
};

use super::{About, NewArticles, Refusal, model_file::refused};
use crate::{
    data::Data,
    judge::{ShareOfNew, Verdict, judge, judge_within},
    number::real,
};

/// One masked slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    pub outfit: u32,
    pub slot: u32,
    /// The article that was there.
    pub target: u32,
}

/// All cases, outfit by outfit in the file's order, slot by slot.
#[derive(Debug, Default)]
pub struct Cases(Vec<Case>);

/// Cases per batch: near ONNX Runtime's fastest on one thread, and small in memory.
const BATCH: usize = 64;

impl Cases {
    /// About the articles that are in training outfits.
    pub fn of_validation(data: &Data) -> Self {
        Self::of_outfits(data, data.validation())
    }

    /// The same of these outfits.
    pub fn of_outfits(data: &Data, outfits: &[u32]) -> Self {
        Self::about(data, outfits, Some(true))
    }

    /// About all articles.
    pub(crate) fn of_all_articles(data: &Data) -> Self {
        Self::about(data, data.validation(), None)
    }

    /// Some of the cases, and their places.
    pub(crate) fn select(&self, takes: impl Fn(&Case) -> bool) -> (Self, Vec<usize>) {
        let places: Vec<usize> = (0..self.0.len()).filter(|&place| takes(&self.0[place])).collect();
        (Self(places.iter().map(|&place| self.0[place]).collect()), places)
    }

    /// About the articles that are new to models.
    pub fn of_new_articles(data: &Data) -> Self {
        Self::about(data, data.validation(), Some(false))
    }

    fn about(data: &Data, outfits: &[u32], known: Option<bool>) -> Self {
        let mut cases = Vec::new();
        for &outfit in outfits {
            let articles = (0..).zip(data.outfits().articles(outfit));
            let asked =
                articles.filter(|(_, target)| known.is_none_or(|known| data.is_known(**target) == known));
            cases.extend(asked.map(|(slot, &target)| Case { outfit, slot, target }));
        }
        Self(cases)
    }

    pub fn as_slice(&self) -> &[Case] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The cases of each outfit, in order.
    pub fn by_outfit(&self) -> impl Iterator<Item = &[Case]> {
        self.0.chunk_by(|one, next| one.outfit == next.outfit)
    }

    /// The cases of each outfit with their verdicts.
    pub(crate) fn with<'a>(
        &'a self,
        verdicts: &'a [Verdict],
    ) -> impl Iterator<Item = (&'a [Case], &'a [Verdict])> {
        let mut rest = verdicts;
        self.by_outfit().map(move |outfit| {
            let (verdicts, others) = rest.split_at(outfit.len());
            rest = others;
            (outfit, verdicts)
        })
    }

    /// These and then the others.
    pub(crate) fn append(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Batches of case indices. The outfits of a batch have one length, so that nothing is padded.
    pub(super) fn batches(&self, data: &Data) -> Vec<Vec<usize>> {
        let length = |index: &usize| data.outfits().articles(self.0[*index].outfit).len();
        let mut indices: Vec<usize> = (0..self.0.len()).collect();
        indices.sort_by_key(length);
        indices
            .chunk_by(|one, next| length(one) == length(next))
            .flat_map(|same| same.chunks(BATCH).map(<[usize]>::to_vec))
            .collect()
    }
}

/// A file's answers.
#[derive(Debug)]
pub struct Answers {
    pub about: About,
    /// In the order of the cases, among learned articles: all that baselines and closed methods can suggest.
    pub(crate) verdicts: Vec<Verdict>,
    /// The same among all articles that the method can suggest.
    pub(crate) open: Vec<Verdict>,
    /// The mean number of steps of a universal trunk.
    pub(crate) steps: Option<f64>,
    /// Whether there are new articles, and the method can suggest them.
    pub(crate) suggests_new: bool,
}

impl Answers {
    /// The cases of each outfit with their verdicts.
    pub(super) fn by_outfit<'a>(
        &'a self,
        cases: &'a Cases,
    ) -> impl Iterator<Item = (&'a [Case], &'a [Verdict])> {
        cases.with(&self.verdicts)
    }
}

/// One thread's answers: case indices, verdicts among learned articles and among all, and steps.
type Share = Vec<(usize, [Verdict; 2], Option<f32>)>;

/// A method of a release, with the articles of a data folder.
#[derive(Debug)]
pub struct Subject<'a> {
    release: &'a Release,
    method: &'a MethodEntry,
    index: ArticleIndex,
    /// By the data's index: an article's position.
    position_of: Vec<u32>,
    new: Option<NewArticles>,
    with_features: bool,
}

impl<'a> Subject<'a> {
    pub fn new(data: &Data, release: &'a Release, method: &'a MethodEntry) -> Self {
        let catalogue = Catalogue::build(data.articles(), release);
        let position = |article: &Article| {
            catalogue.position_of(article.id.as_str()).expect("the catalogue is made of these articles")
        };
        let position_of = data.articles().iter().map(position).collect();
        let (index, new) = (catalogue.index().clone(), NewArticles::find(data));
        Self { release, method, index, position_of, new, with_features: true }
    }

    /// Counts other articles as new.
    #[must_use]
    pub fn counting_as_new(self, new: Option<NewArticles>) -> Self {
        Self { new, ..self }
    }

    /// Asks as if nothing was known of the customers and of the outfits.
    #[must_use]
    pub fn without_features(self) -> Self {
        Self { with_features: false, ..self }
    }

    /// The articles that count as new.
    pub fn new_articles(&self) -> Option<&NewArticles> {
        self.new.as_ref()
    }

    fn about(&self) -> io::Result<About> {
        let files = [Some(self.release.model_path(self.method)), self.release.tables_path(self.method)];
        let sizes = files.into_iter().flatten().map(|path| Ok(fs::metadata(path)?.len()));
        let bytes = sizes.sum::<io::Result<u64>>()?;
        Ok(About { method: self.method.method, parameters: self.method.parameters, bytes })
    }

    /// The method's pair file, if it has one.
    pub(super) fn pair_path(&self) -> Option<PathBuf> {
        self.release.pair_path(self.method)
    }

    /// The position of an article of the data.
    pub(super) fn position(&self, article: usize) -> usize {
        self.position_of[article] as usize
    }

    pub(super) fn open(&self, runtime: &OnnxRuntime) -> Result<Scorer, ModelError> {
        Scorer::open(runtime, self.release, self.method, self.index.clone())
    }

    /// The question about a case.
    fn question(&self, data: &Data, articles: &Arc<Articles>, case: Case) -> Question {
        let visible = (0..).zip(data.outfits().articles(case.outfit));
        let visible = visible.filter(|(slot, _)| *slot != case.slot).map(|(_, article)| *article);
        self.ask_beside(data, articles, case.outfit, visible)
    }

    /// The question which article goes with these, for the customer of an outfit.
    pub(super) fn ask_beside(
        &self,
        data: &Data,
        articles: &Arc<Articles>,
        outfit: u32,
        visible: impl Iterator<Item = u32>,
    ) -> Question {
        let known = articles.known(self.method.method).expect("the method is the subject");
        let positions = visible.map(|article| self.position_of[article as usize]);
        let mut slots: Vec<u32> = positions.filter(|&position| known.contains(position)).collect();
        let blank = slots.len();
        slots.push(BLANK);
        let mut features = Vec::new();
        data.features_of(outfit, &mut features);
        if !self.with_features {
            features.iter_mut().for_each(Vec::clear);
        }
        Question::new(Arc::clone(articles), slots, blank, features.into())
    }
}

/// Asks a method about all cases, on all threads. Calls `tell` with the number of cases done.
///
/// Each thread has its own single-threaded session: inference and judging then keep every core busy, which
/// one session with many threads does not.
pub fn ask(
    runtime: &OnnxRuntime,
    subject: &Subject<'_>,
    data: &Data,
    cases: &Cases,
    tell: &(dyn Fn(usize) + Sync),
) -> Result<Answers, Refusal> {
    let about =
        subject.about().map_err(|error| refused(&subject.release.model_path(subject.method), &error))?;
    let first = subject.open(runtime)?;
    // A closed method has logits of the articles that it was trained with, which come first if that was this data.
    let is_own = subject.release.vocabulary().iter().eq(data.vocabulary().iter().take(data.count_known()));
    let asks_new = cases.as_slice().iter().any(|case| !data.is_known(case.target));
    let count =
        if first.is_open() || !is_own || asks_new { data.articles().len() } else { data.count_known() };
    let new = subject.new_articles().filter(|new| new.are_among(count));
    let batches = cases.batches(data);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = |mut scorer: Scorer| -> Result<Share, Refusal> {
        let articles = Arc::clone(scorer.articles());
        let mut share = Vec::new();
        let mut logits = vec![0.0; count];
        while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
            let asked: Vec<_> = batch.iter().map(|&index| cases.as_slice()[index]).collect();
            let questions: Vec<_> =
                asked.iter().map(|&case| subject.question(data, &articles, case)).collect();
            for (at, (scores, &Case { outfit, target, .. })) in
                scorer.scores(&questions)?.into_iter().zip(&asked).enumerate()
            {
                for (logit, &position) in logits.iter_mut().zip(&subject.position_of) {
                    *logit = scores.logits[position as usize];
                }
                let beside = data.outfits().articles(outfit);
                let own = logits[target as usize];
                let weight = |article: u32| f64::from(logits[article as usize] - own).exp();
                let of_type = |count: usize| {
                    let of_type = data.articles_of_type(data.type_of(target));
                    &of_type[..of_type.partition_point(|&article| (article as usize) < count)]
                };
                let judge_among = |count: usize| Verdict {
                    within_type: Some(judge_within(of_type(count), beside, target, weight)),
                    ..judge(&logits[..count], target)
                };
                let mut verdict = judge_among(count);
                let learned = data.count_known();
                let among_learned = if (target as usize) < learned { judge_among(learned) } else { verdict };
                verdict.new_articles = new.map(|new| {
                    let sum = |articles: &mut dyn Iterator<Item = u32>| articles.map(weight).sum::<f64>();
                    let choice = of_type(count)
                        .iter()
                        .copied()
                        .filter(|article| *article == target || !beside.contains(article));
                    ShareOfNew {
                        any: verdict.probability() * sum(&mut new.iter()),
                        within_type: sum(&mut choice.clone().filter(|article| new.contains(*article)))
                            / sum(&mut choice.clone()),
                    }
                });
                share.push((batch[at], [among_learned, verdict], scores.steps));
            }
            tell(done.fetch_add(batch.len(), Ordering::Relaxed) + batch.len());
        }
        Ok(share)
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut scorers = Vec::new();
    for _ in 1..threads {
        scorers.push(first.another(runtime, subject.release, subject.method)?);
    }
    scorers.push(first);
    let shares = thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = scorers.into_iter().map(|scorer| scope.spawn(move || work(scorer))).collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("judging does not panic"));
        joined.collect::<Result<Vec<_>, _>>()
    })?;
    let mut all: Share = shares.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(index, ..)| *index);
    let steps: Option<Vec<f64>> = all.iter().map(|(.., steps)| steps.map(f64::from)).collect();
    Ok(Answers {
        about,
        steps: steps.map(|steps| steps.iter().sum::<f64>() / real(steps.len().max(1))),
        suggests_new: new.is_some(),
        verdicts: all.iter().map(|(_, [among_learned, _], _)| *among_learned).collect(),
        open: all.into_iter().map(|(_, [_, open], _)| open).collect(),
    })
}
