//! Validates a request and encodes it for a model.

use std::{borrow::Cow, sync::Arc};

use atelier_core::{
    domain::{ArticleId, Mask, Method, OutfitSize, RuleDigest, list_methods},
    util::text::abbreviate,
};
use atelier_engine::inference::{Articles, BLANK, Question};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    MAX_VARIED, Request, Served, Suggestion, admissible,
    budget::Budget,
    reading::Reading,
    steer::{Asked, Counted, Steer},
};
use crate::platform::fault::{Fault, Field};

/// Something that may be wrong with the request, although there is an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Warning {
    /// Identifies the kind of warning; it never changes.
    #[schema(examples("article-not-in-release"))]
    pub code: &'static str,
    /// The finding, and what it means for the answer.
    pub detail: String,
    // Its subject, for pages with their own words: an article's id, a store, or a feature and its value.
    #[serde(skip)]
    pub about: Vec<String>,
}

impl Warning {
    pub(crate) fn new(code: &'static str, detail: String) -> Self {
        Self { code, detail, about: Vec::new() }
    }
}

/// The most warnings of an answer: a request must not be able to produce megabytes of them.
pub(super) const MOST_WARNINGS: usize = 20;
/// The warnings about the answer itself, before those about what the request has and models do not see.
const FIRST: [&str; 5] = [
    "nothing-admissible",
    "nothing-fits",
    "unknown-store",
    "no-go-without-articles",
    "profile-not-understood",
];
/// The most characters of a warning, which may quote a long text.
const WARNING_LENGTH: usize = 500;

/// The warnings of an answer: those that matter first, at most [`MOST_WARNINGS`], and how many are left out. `left_out` were not
/// made at all.
pub(crate) fn bounded(mut warnings: Vec<Warning>, left_out: usize) -> Vec<Warning> {
    let left_out = left_out + warnings.len().saturating_sub(MOST_WARNINGS);
    warnings
        .sort_by_key(|warning| FIRST.iter().position(|code| *code == warning.code).unwrap_or(FIRST.len()));
    warnings.truncate(MOST_WARNINGS);
    for warning in &mut warnings {
        abbreviate(&mut warning.detail, WARNING_LENGTH);
    }
    if left_out > 0 {
        let detail = format!("{left_out} more warnings are left out");
        warnings.push(Warning::new("more-warnings", detail));
    }
    warnings
}

/// A request as a model needs it.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) articles: Arc<Articles>,
    /// The outfit by the articles' positions, without those that the method does not know.
    pub(super) slots: Vec<u32>,
    /// For each of `slots`, its position in the request's outfit.
    pub(super) positions: Vec<usize>,
    /// See [`Completion::outfit`](super::Completion::outfit).
    pub(super) outfit: Vec<Option<u32>>,
    pub(super) blanks: Vec<Blank>,
    pub(super) budget: Option<Budget>,
    /// None if no rule can concern it, or none does yet.
    pub(super) asked: Option<Asked>,
    pub(super) steer: Option<Steer>,
    /// Passes the filters for any blank.
    pub(super) common: Arc<Mask>,
    pub(super) reading: Arc<Reading>,
    pub(super) placements_of: Vec<Option<u32>>,
    pub(super) one_per_type: bool,
    pub(super) warnings: Vec<Warning>,
}

#[derive(Debug, Clone)]
pub(super) struct Blank {
    /// In the request's outfit.
    pub(super) slot: usize,
    /// In [`Prepared::slots`].
    pub(super) position: usize,
    pub(super) admissible: Arc<Mask>,
    /// If nothing passes the filters: which of them to leave out, and how many articles there are then.
    pub(super) alternatives: Vec<(Vec<&'static str>, usize)>,
    /// See [`super::Blank::counted`].
    pub(super) counted: Vec<RuleDigest>,
}

impl Prepared {
    /// For completing. An outfit without blanks gets one.
    pub(super) fn new(served: Served<'_>, request: &Request) -> Result<Self, Vec<Fault>> {
        let mut outfit = Cow::Borrowed(&request.outfit);
        if outfit.iter().all(Option::is_some) {
            outfit.to_mut().push(None);
        }
        let mut draft = Draft::new(served, request);
        let most = draft.size().most;
        if let Err(error) = draft.size().check_slots(outfit.len()) {
            let detail = if request.outfit.len() == most {
                format!(
                    "an outfit has at most {most} slots; all are filled, so there is no room for another article"
                )
            } else {
                error.to_string()
            };
            draft.refuse("outfit", detail);
            return Err(draft.faults);
        }
        if !(1..=request.most).contains(&request.k) {
            let detail = format!("k is from 1 to {}, found {}", request.most, request.k);
            draft.refuse("k", detail);
        }
        if !(0.0..=1.0).contains(&request.diversity) {
            let detail = format!("diversity is from 0 to 1, found {}", request.diversity);
            draft.refuse("diversity", detail);
        }
        if request.diversity > 0.0 && request.k > MAX_VARIED {
            let detail = format!("with diversity k is at most {MAX_VARIED}, found {}", request.k);
            draft.refuse("k", detail);
        }
        Self::build(draft, &outfit)
    }

    /// For scoring: an outfit without blanks.
    pub(super) fn for_scoring(served: Served<'_>, request: &Request) -> Result<Self, Vec<Fault>> {
        let mut draft = Draft::new(served, request);
        let most = draft.size().most;
        if !(2..=most).contains(&request.outfit.len()) {
            let detail =
                format!("an outfit to score has 2 to {most} articles, this one has {}", request.outfit.len());
            draft.refuse("outfit", detail);
        }
        for (slot, _) in request.outfit.iter().enumerate().filter(|(_, article)| article.is_none()) {
            draft.refuse(Field::from("outfit").item(&slot), "an outfit to score has no blanks");
        }
        if draft.faults.is_empty() { Self::build(draft, &request.outfit) } else { Err(draft.faults) }
    }

    /// The question about the blank at a position of the slots. The caller adds the figures that it wants.
    pub(super) fn question(&self, slots: Vec<u32>, position: usize) -> Question {
        Question::new(Arc::clone(&self.articles), slots, position, Arc::clone(&self.reading.context))
    }

    /// The question about a blank, of how likely some suggestions for it are among all that it admits.
    pub(super) fn question_about(&self, blank: &Blank, suggestions: &[Suggestion]) -> Question {
        Question {
            admissible: Some(Arc::clone(&blank.admissible)),
            only_admissible: true,
            placements_of: suggestions.iter().map(|suggestion| suggestion.index).collect(),
            ..self.question(self.slots.clone(), blank.position)
        }
    }

    fn build(mut draft: Draft<'_>, outfit: &[Option<ArticleId>]) -> Result<Self, Vec<Fault>> {
        let (served, request) = (draft.served, draft.request);
        if !draft.has_method() {
            return Err(draft.faults);
        }
        let reading = Reading::of(&mut draft);
        let slots = Slots::new(&mut draft, outfit);
        for id in &request.live {
            let position = served.catalogue.position_of(id.as_str());
            if position.and_then(|position| served.catalogue.article(position)).is_none() {
                let detail = format!("there is no article {id}, so `live` says nothing of it");
                draft.warn("unknown-article", detail, [id.as_str()]);
            }
        }
        let known = known(served, request.method);
        let asked = Asked::new(&draft, &reading, &slots);
        let steer = asked.as_ref().and_then(|asked| Steer::new(asked, request));
        let excluded = steer.as_ref().and_then(|steer| steer.excluded.clone());
        let counted = Counted::new(&draft, &reading, &slots);
        let (common, mut blanks) =
            admissible::blanks(&mut draft, known, &slots, &reading, excluded, counted.as_ref());
        let budget = Budget::apply(&mut draft, &slots, &mut blanks);
        if !draft.faults.is_empty() {
            return Err(draft.faults);
        }
        let size = draft.size();
        if outfit.len() < size.least {
            let detail = format!(
                "models were trained on outfits of {size} articles; this one has {} slots",
                outfit.len()
            );
            draft.warn("short-outfit", detail, []);
        }
        Ok(Self {
            articles: Arc::clone(served.articles),
            slots: slots.held,
            positions: slots.positions,
            outfit: slots.outfit,
            blanks,
            budget,
            asked,
            steer,
            common,
            reading,
            placements_of: positions(served, request),
            one_per_type: request.one_per_type,
            warnings: draft.warnings,
        })
    }
}

/// A request that is being checked, and what was found so far.
pub(super) struct Draft<'a> {
    pub(super) served: Served<'a>,
    pub(super) request: &'a Request,
    pub(super) warnings: Vec<Warning>,
    pub(super) faults: Vec<Fault>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(served: Served<'a>, request: &'a Request) -> Self {
        Self { served, request, warnings: Vec::new(), faults: Vec::new() }
    }

    pub(super) fn warn<'w>(
        &mut self,
        code: &'static str,
        detail: String,
        about: impl IntoIterator<Item = &'w str>,
    ) {
        self.warnings.push(Warning {
            about: about.into_iter().map(str::to_owned).collect(),
            ..Warning::new(code, detail)
        });
    }

    pub(super) fn refuse(&mut self, field: impl Into<Field>, detail: impl Into<String>) {
        self.faults.push(Fault::new(field, detail));
    }

    fn size(&self) -> OutfitSize {
        self.served.serving.release().schema().outfit_size()
    }

    pub(super) fn has_method(&mut self) -> bool {
        let (served, request) = (self.served, self.request);
        let has = served.serving.has(request.method);
        if !has {
            let methods = list_methods(served.serving.methods());
            self.refuse("method", format!("this release has no method {}; it has {methods}", request.method));
        }
        has
    }
}

/// The articles that a method of the release knows.
pub(super) fn known(served: Served<'_>, method: Method) -> &Mask {
    served.articles.known(method).expect("the method was checked")
}

/// The positions of the named articles; None for articles that the method does not know.
fn positions(served: Served<'_>, request: &Request) -> Vec<Option<u32>> {
    let known = known(served, request.method);
    let position = |id: &ArticleId| {
        served.catalogue.position_of(id.as_str()).filter(|position| known.contains(*position))
    };
    request.placements_of.iter().map(position).collect()
}

/// The outfit by the articles' positions.
#[derive(Debug)]
pub(super) struct Slots {
    /// The method's view: positions and blanks.
    pub(super) held: Vec<u32>,
    /// For each of `held`, its slot in the request.
    pub(super) positions: Vec<usize>,
    /// The positions of all articles of the outfit, alone and by the request's slots.
    pub(super) articles: Vec<u32>,
    outfit: Vec<Option<u32>>,
    /// The blanks: the slot in the request and the position in `held`.
    pub(super) blanks: Vec<(usize, usize)>,
}

impl Slots {
    pub(super) fn new(draft: &mut Draft<'_>, outfit: &[Option<ArticleId>]) -> Self {
        let (served, method) = (draft.served, draft.request.method);
        let known = known(served, method);
        let size = outfit.len();
        let (held, positions) = (Vec::with_capacity(size), Vec::with_capacity(size));
        let (articles, blanks) = (Vec::with_capacity(size), Vec::new());
        let mut slots = Self { held, positions, articles, outfit: vec![None; size], blanks };
        for (slot, article) in outfit.iter().enumerate() {
            let Some(id) = article else {
                slots.blanks.push((slot, slots.held.len()));
                slots.push(slot, BLANK);
                continue;
            };
            if outfit[..slot].contains(article) {
                let detail = format!("article {id} is in the outfit twice; remove one");
                draft.refuse(Field::from("outfit").item(&slot), detail);
                continue;
            }
            let Some(position) = served.catalogue.position_of(id.as_str()) else {
                if draft.request.skip_unknown {
                    let detail = format!("there is no article {id}: slot {slot} of the outfit is left out");
                    draft.warn("unknown-article", detail, [id.as_str()]);
                } else {
                    let detail = format!("there is no article {id}; `skip_unknown` leaves it out");
                    draft.refuse(Field::from("outfit").item(&slot), detail);
                }
                continue;
            };
            if slots.articles.contains(&position) {
                let article = served.catalogue.any_article(position).map_or(id, |article| &article.id);
                let detail = format!(
                    "{id} belongs to article {article}, which the outfit already has; it counts once"
                );
                draft.warn("same-article", detail, [id.as_str()]);
                continue;
            }
            slots.articles.push(position);
            slots.outfit[slot] = Some(position);
            if !known.contains(position) {
                let detail = format!(
                    "{id} is in the catalogue, but release {} was trained without it: {method} does not see it",
                    served.serving.release().manifest().name
                );
                draft.warn("article-not-in-release", detail, [id.as_str()]);
                continue;
            }
            if served.catalogue.article(position).is_none() {
                let detail = format!("{id} is no longer in the catalogue; the release still has it");
                draft.warn("article-not-in-catalogue", detail, [id.as_str()]);
            }
            slots.push(slot, position);
        }
        slots
    }

    fn push(&mut self, slot: usize, held: u32) {
        self.held.push(held);
        self.positions.push(slot);
    }
}
