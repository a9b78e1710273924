//! Completes an outfit: which articles belong in its blanks, for this customer.
//!
//! A [`Request`] in the shop's own words (ids, features, types) comes in; a [`Completion`] goes out. Between them the outfit
//! becomes indices, filters become sets of articles, a model is asked, and its answer becomes articles again. Only
//! `asking` and `comparison` read the profile, and only `api` knows HTTP.

mod admissible;
pub(crate) mod answers;
pub(crate) mod api;
pub mod asking;
mod budget;
mod compare;
pub mod comparison;
mod conversation;
mod diversity;
mod explain;
mod joint;
mod many;
mod offered;
pub mod offline;
mod prepare;
pub mod profiles;
mod reading;
pub mod rules;
pub mod sample;
mod score;
pub mod similar;
mod steer;
pub mod tickets;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Instant,
};

use atelier_core::domain::{ArticleId, Features, Method, RuleDigest, RuleName, Timestamp};
use atelier_engine::{
    catalogue::{Catalogue, Choice, Needs},
    inference::{self, Admission, Answer, Articles, AskError, Candidate, Context, Question, Serving},
    packed_article::PackedArticle,
};
use serde::Serialize;
use utoipa::ToSchema;

use self::{conversation::Conversation, prepare::Prepared};
use crate::{
    completion::rules::Rules,
    platform::fault::ServiceError,
    releases::{LiveRelease, routing::Route},
};

pub(crate) use self::prepare::bounded;
pub use self::{
    compare::{overlap, rank_biased_overlap},
    conversation::Cost,
    diversity::MAX_VARIED,
    explain::{Cause, Reason, reasons},
    joint::{MAX_SETS, OutfitSet},
    many::complete_many,
    offered::Offered,
    prepare::Warning,
    reading::Stored,
    score::{ArticleScore, OutfitScore, score},
    steer::MovedBy,
};

/// Most suggestions for one blank.
pub const MAX_K: usize = 250;

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Request {
    /// The customer's profile, which `asking` reads unless the caller did. What is wrong with it is a warning.
    pub stored: Option<Arc<Stored>>,
    /// The features that the caller sent, if any; they win over the profile. What is wrong with them is a fault.
    pub given: Option<Features>,
    /// `None` is a blank. Without a blank, one more article is suggested.
    pub outfit: Vec<Option<ArticleId>>,
    pub method: Method,
    pub k: usize,
    /// The largest `k`: more for a list that a person pages through.
    pub most: usize,
    pub filters: Filters,
    /// From 0 (the most likely first) to 1 (as different from each other as possible).
    pub diversity: f64,
    pub lift: bool,
    pub explain: bool,
    pub sets: Sets,
    /// Articles whose placement the answer has, suggested or not.
    pub placements_of: Vec<ArticleId>,
    /// Whether the answer has probabilities over the whole vocabulary. They take a pass over all of it, where filters leave few.
    pub probability: bool,
    /// At most one suggestion of each type, and none of a type that the outfit has.
    pub one_per_type: bool,
    /// Leaves out articles of the outfit that neither the shop nor the release has, with a warning; otherwise they are a fault.
    pub skip_unknown: bool,
    /// The ids of articles in the request's `live`: those that the shop lacks get a warning.
    pub live: Vec<ArticleId>,
    /// Whether it is part of a batch that was admitted.
    pub admitted: bool,
    /// The time at which it is asked, if the shop's rules apply.
    pub rules: Option<Timestamp>,
    /// The same, whether they apply or not, if feedback counts for the rules that could change the answer.
    pub counted: Option<Timestamp>,
    /// Rules that do not apply nevertheless.
    pub without_rules: Arc<[RuleName]>,
}

impl Request {
    /// A plain question to what answers.
    pub fn routed(outfit: Vec<Option<ArticleId>>, route: &Route) -> Self {
        Self { without_rules: Arc::clone(&route.without_rules), ..Self::new(outfit, route.method) }
    }

    /// A plain question to one method: one suggestion for each blank, the default filters, nothing else.
    pub fn new(outfit: Vec<Option<ArticleId>>, method: Method) -> Self {
        Self {
            stored: None,
            given: None,
            outfit,
            method,
            k: 1,
            most: MAX_K,
            filters: Filters::default(),
            diversity: 0.0,
            lift: false,
            explain: false,
            sets: Sets::default(),
            placements_of: Vec::new(),
            probability: false,
            one_per_type: false,
            skip_unknown: false,
            live: Vec::new(),
            admitted: false,
            rules: None,
            counted: None,
            without_rules: Arc::default(),
        }
    }
}

/// Outfits with all blanks filled together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sets {
    /// None if 0.
    pub most: usize,
    /// Whether each differs from those before in half of the articles for its blanks at least.
    pub distinct: bool,
}

/// Which articles may be suggested, as requests and the addresses of pages say it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filters {
    /// The types that may fill a slot of the outfit.
    pub types: BTreeMap<usize, Vec<String>>,
    pub exclude: Vec<ArticleId>,
    /// Refused by the customer; there may be any number.
    pub refused: Vec<ArticleId>,
    /// Only some of these.
    pub only: Option<Vec<ArticleId>>,
    /// Only what has these words: one of each facet, folded.
    pub words: BTreeMap<String, String>,
    pub least_price: Option<f64>,
    pub most_price: Option<f64>,
    /// The most that the whole outfit costs: what is in it, and what is suggested for all of its blanks together.
    pub most_total: Option<f64>,
    /// Only what is in stock in this store.
    pub store: Option<String>,
    /// Includes what does not fit the customer, by what the schema's features require.
    pub unfit: bool,
    /// Includes what is out of stock: in a size that fits the customer, if only that is suggested.
    pub sold_out: bool,
    /// Includes what the customer never wears, and what they own.
    pub no_gos: bool,
}

impl Filters {
    pub fn everything() -> Self {
        Self { unfit: true, sold_out: true, no_gos: true, ..Self::default() }
    }

    /// Those of a page, with the types that its blanks take. A store limits what is in stock.
    pub(crate) fn with_types(&self, types: BTreeMap<usize, Vec<String>>) -> Self {
        Self { types, store: self.store.clone().filter(|_| !self.sold_out), ..self.clone() }
    }
}

#[derive(Debug, Clone)]
pub struct Completion {
    /// The positions of the request's articles by its slots. A basket holds variants, maybe two of an article, which an outfit
    /// has once.
    pub outfit: Vec<Option<u32>>,
    pub blanks: Vec<Blank>,
    pub sets: Vec<OutfitSet>,
    pub variants: Variants,
    pub warnings: Vec<Warning>,
    /// The outfit's mix of personas, if the method has them.
    pub personas: Option<Vec<f32>>,
    /// Mean steps, if the method has a universal trunk.
    pub steps: Option<f32>,
    pub cost: Cost,
}

/// Which variant the customer needs of each suggested article that has some.
pub type Variants = HashMap<ArticleId, Choice>;

#[derive(Debug, Clone)]
pub struct Blank {
    /// Its slot in the outfit; one past the end if the outfit had no blank.
    pub slot: usize,
    pub suggestions: Vec<Suggestion>,
    /// How many articles pass the filters.
    pub admissible: usize,
    /// If that is none: which filters to leave out, by their names in requests, and how many articles pass then.
    pub alternatives: Vec<(Vec<&'static str>, usize)>,
    /// In the order of the request's `placements_of`; `None` if the release does not know the article.
    pub placements: Vec<Option<Placement>>,
    /// The rules that could change the suggestions, whether they apply or not, if feedback counts for them.
    pub counted: Vec<RuleDigest>,
}

#[derive(Debug, Clone)]
pub struct Suggestion {
    pub index: u32,
    pub article: Arc<PackedArticle>,
    /// Over the whole vocabulary, if the request asks for it.
    pub probability: Option<f64>,
    /// Of the probability of all articles that pass the filters.
    pub share: f64,
    /// The share, over what it is without the customer's features.
    pub lift: Option<f64>,
    pub reasons: Option<Vec<Reason>>,
    /// Its rank by the model alone, if it was counted.
    own_rank: Option<usize>,
    pub rules: Vec<MovedBy>,
}

impl Suggestion {
    /// Of which the figures are not known yet.
    fn new(catalogue: &Catalogue, index: u32) -> Self {
        let article = catalogue.article(index);
        Self {
            index,
            article: Arc::clone(article.expect("only what the shop has is admissible")),
            probability: None,
            share: 0.0,
            lift: None,
            reasons: None,
            own_rank: None,
            rules: Vec::new(),
        }
    }

    /// The share, over what another answer says of the same article among the same ones.
    fn change_from(&self, other: &inference::Placement) -> f64 {
        (self.share.ln() - other.log_probability).exp()
    }
}

/// The rank of an article that the request named.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Placement {
    /// Among all articles that the filters admit.
    pub rank: usize,
    /// Over all articles that the method knows, if the request asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Of the probability of all articles that the filters admit, if they admit this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Whether the filters admit it.
    pub admissible: bool,
}

/// Release and the catalogue that completions are made from.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    pub serving: &'a Serving,
    pub catalogue: &'a Arc<Catalogue>,
    /// The catalogue as the models take it.
    pub articles: &'a Arc<Articles>,
    /// The shop's, compiled for the catalogue.
    pub rules: &'a Arc<Rules>,
    /// The types of articles that are suggested to customers who own them.
    pub bought_again: &'a [String],
}

impl LiveRelease {
    pub fn rules(&self) -> &Arc<Rules> {
        self.follower()
    }

    pub fn served(&self) -> Served<'_> {
        Served {
            serving: &self.serving,
            catalogue: &self.catalogue,
            articles: &self.rows,
            rules: self.rules(),
            bought_again: &self.bought_again,
        }
    }
}

pub async fn complete(
    served: Served<'_>,
    request: &Request,
    deadline: Instant,
) -> Result<Completion, ServiceError> {
    let mut prepared = Prepared::new(served, request)?;
    let alternatives =
        request.explain.then(|| explain::alternatives(served.serving, request.method, &prepared));
    let explaining =
        (alternatives.as_ref().map_or(0, Vec::len) + usize::from(request.lift)) * prepared.blanks.len();
    let follow_ups = explaining + joint::most_questions(&prepared, request.sets);
    let admission =
        if request.admitted { Admission::OfBatch { follow_ups } } else { Admission::New { follow_ups } };
    let first = questions(&prepared, request);
    let (mut conversation, answers) =
        Conversation::open(served.serving, request.method, deadline, admission, first).await?;
    let mut completion = read_answers(served, request, &mut prepared, &mut answers.into_iter());
    let blanks = &mut completion.blanks;
    if request.lift {
        add_lift(&mut conversation, served, &prepared, blanks).await?;
    }
    if let Some(alternatives) = alternatives {
        let schema = served.serving.release().schema();
        explain::explain(&mut conversation, schema, &prepared, &alternatives, blanks).await?;
    }
    if request.sets.most > 0 {
        completion.sets = joint::fill(&mut conversation, served.catalogue, &prepared, request.sets).await?;
    }
    completion.add_variants(served, request, &prepared);
    completion.cost = conversation.cost();
    Ok(completion)
}

fn questions(prepared: &Prepared, request: &Request) -> Vec<Question> {
    let named: Vec<u32> = prepared.placements_of.iter().flatten().copied().collect();
    let question = |blank: &prepare::Blank| Question {
        admissible: Some(Arc::clone(&blank.admissible)),
        k: if request.one_per_type { MAX_K } else { diversity::pool(request.k, request.diversity) },
        placements_of: named.clone(),
        only_admissible: !request.probability,
        // Counting ranks looks at every article, so it is done only if an article is named.
        ranks: !named.is_empty(),
        steering: prepared.steer.as_ref().and_then(|steer| steer.steering.clone()),
        ..prepared.question(prepared.slots.clone(), blank.position)
    };
    prepared.blanks.iter().map(question).collect()
}

/// Turns the answers to a request's questions into suggestions for its blanks.
fn read_answers(
    served: Served<'_>,
    request: &Request,
    prepared: &mut Prepared,
    answers: &mut impl Iterator<Item = Answer>,
) -> Completion {
    let (mut personas, mut steps, mut unmet) = (None, None, Vec::new());
    let outfit = std::mem::take(&mut prepared.outfit);
    let mut blanks = Vec::with_capacity(prepared.blanks.len());
    for blank in &prepared.blanks {
        let mut answer = answers.next().expect("each question has its answer");
        personas = personas.or(answer.personas.take());
        steps = steps.or(answer.steps);
        blanks.push(read_answer(served, request, prepared, blank, answer, &mut unmet));
    }
    let mut warnings = std::mem::take(&mut prepared.warnings);
    warnings.extend(steer::warn_unmet(unmet));
    let warnings = bounded(warnings, prepared.reading.left_out);
    let (sets, variants, cost) = (Vec::new(), Variants::new(), Cost::default());
    Completion { outfit, blanks, sets, variants, warnings, personas, steps, cost }
}

/// Turns an answer's indices into articles, and puts them where rules want them.
fn read_answer(
    served: Served<'_>,
    request: &Request,
    prepared: &Prepared,
    blank: &prepare::Blank,
    answer: Answer,
    unmet: &mut Vec<(usize, String)>,
) -> Blank {
    let of_admissible = if answer.top.len() == answer.admissible {
        // The engine's sum is rounded.
        answer.top.iter().map(|candidate| candidate.probability).sum()
    } else {
        answer.admissible_probability
    };
    let share =
        |probability: f64| if of_admissible > 0.0 { (probability / of_admissible).min(1.0) } else { 0.0 };
    let suggestion = |candidate: Candidate| Suggestion {
        probability: request.probability.then_some(candidate.probability),
        share: share(candidate.probability),
        own_rank: candidate.own_rank,
        ..Suggestion::new(served.catalogue, candidate.article)
    };
    let mut pool: Vec<Suggestion> = answer.top.into_iter().map(suggestion).collect();
    if request.one_per_type {
        keep_first_of_each_type(&mut pool);
    }
    let mut suggestions = match &prepared.steer {
        None => diversity::choose(pool, request.k, request.diversity, |suggestion| suggestion.share),
        Some(steer) => {
            let weight = |suggestion: &Suggestion| suggestion.share * steer.offset(suggestion.index).exp();
            let chosen = diversity::choose(pool, request.k, request.diversity, weight);
            let (placed, in_vain) = steer.place(chosen, &answer.wanted, suggestion);
            unmet.extend(in_vain.into_iter().map(|detail| (blank.slot, detail)));
            placed
        }
    };
    if request.one_per_type {
        // Rules place any.
        keep_first_of_each_type(&mut suggestions);
    }
    let mut found = answer.placements.into_iter();
    let placements = prepared.placements_of.iter().map(|index| {
        let (index, placement) = ((*index)?, found.next()?);
        let (admissible, probability) = (blank.admissible.contains(index), placement.log_probability.exp());
        Some(Placement {
            rank: placement.rank.expect("ranks were asked for"),
            probability: request.probability.then_some(probability),
            share: admissible.then(|| share(probability)),
            admissible,
        })
    });
    Blank {
        slot: blank.slot,
        placements: placements.collect(),
        suggestions,
        admissible: answer.admissible,
        alternatives: blank.alternatives.clone(),
        counted: blank.counted.clone(),
    }
}

fn keep_first_of_each_type(suggestions: &mut Vec<Suggestion>) {
    let mut types = HashSet::new();
    suggestions.retain(|suggestion| types.insert(suggestion.article.kind().to_owned()));
}

impl Completion {
    fn add_variants(&mut self, served: Served<'_>, request: &Request, prepared: &Prepared) {
        let alone = self.blanks.iter().flat_map(|blank| &blank.suggestions);
        let alone = alone.map(|suggestion| &suggestion.article);
        let all = alone.chain(self.sets.iter().flat_map(|set| &set.articles).map(|(_, article)| article));
        self.variants = choose_variants(served, request, &prepared.reading.needs, all);
    }
}

fn choose_variants<'b>(
    served: Served<'_>,
    request: &Request,
    needs: &Needs,
    articles: impl Iterator<Item = &'b Arc<PackedArticle>>,
) -> Variants {
    let mut articles = articles.filter(|article| !article.offers().is_empty()).peekable();
    if articles.peek().is_none() {
        return Variants::new();
    }
    let wanted = served.catalogue.sets().supply().wanted(needs);
    let store = request.filters.store.as_deref();
    let choose = |article: &Arc<PackedArticle>| {
        let position = served.catalogue.position_of(article.id.as_str())?;
        Some((article.id.clone(), wanted.choose(position, article, store)?))
    };
    articles.filter_map(choose).collect()
}

/// Compares with what the same method answers for an unknown customer: features of the outfit, such as the occasion, stay.
async fn add_lift(
    conversation: &mut Conversation<'_>,
    served: Served<'_>,
    prepared: &Prepared,
    blanks: &mut [Blank],
) -> Result<(), AskError> {
    let features = served.serving.release().schema().features().iter();
    let own = features
        .zip(prepared.reading.context.iter())
        .map(|(feature, indices)| if feature.of_outfit { indices.clone() } else { Vec::new() });
    let context: Context = own.collect::<Vec<_>>().into();
    let question = |(blank, found): (&prepare::Blank, &Blank)| Question {
        context: context.clone(),
        ..prepared.question_about(blank, &found.suggestions)
    };
    let questions = prepared.blanks.iter().zip(blanks.iter()).map(question).collect();
    let answers = conversation.follow_up(questions).await?;
    for (blank, answer) in blanks.iter_mut().zip(answers) {
        for (suggestion, placement) in blank.suggestions.iter_mut().zip(answer.placements) {
            suggestion.lift = Some(suggestion.change_from(&placement));
        }
    }
    Ok(())
}
