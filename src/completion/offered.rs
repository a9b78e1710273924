//! Articles to offer with an outfit, whether or not a method can rank it: for lists that no model orders.

use std::sync::Arc;

use atelier_core::domain::{Features, Mask};
use atelier_engine::{inference::Candidate, packed_article::PackedArticle};

use super::{
    MovedBy, Request, Served, Suggestion, Variants, Warning, admissible,
    budget::Budget,
    prepare::{Blank, Draft, Slots},
    reading::Reading,
    steer::{Asked, Steer, warn_unmet},
};
use crate::platform::fault::Fault;

/// Articles that a request's filters and rules let pass.
#[derive(Debug)]
pub struct Offered<'a> {
    served: Served<'a>,
    request: &'a Request,
    reading: Arc<Reading>,
    asked: Option<Asked>,
    steer: Option<Steer>,
    admissible: Arc<Mask>,
    pub(super) blanks: Vec<Blank>,
    /// There may be any number: `bounded` cuts them.
    pub warnings: Vec<Warning>,
}

impl<'a> Offered<'a> {
    pub fn new(served: Served<'a>, request: &'a Request) -> Result<Self, Vec<Fault>> {
        let mut draft = Draft::new(served, request);
        if !draft.has_method() {
            return Err(draft.faults);
        }
        let reading = Reading::of(&mut draft);
        let slots = Slots::new(&mut draft, &request.outfit);
        let asked = Asked::new(&draft, &reading, &slots);
        let steer = asked.as_ref().and_then(|asked| Steer::new(asked, request));
        let excluded = steer.as_ref().and_then(|steer| steer.excluded.clone());
        let present = served.catalogue.sets().present();
        let (admissible, mut blanks) =
            admissible::blanks(&mut draft, present, &slots, &reading, excluded, None);
        Budget::apply(&mut draft, &slots, &mut blanks);
        if !draft.faults.is_empty() {
            return Err(draft.faults);
        }
        let warnings = draft.warnings;
        Ok(Self { served, request, reading, asked, steer, admissible, blanks, warnings })
    }

    pub fn features(&self) -> &Features {
        &self.reading.features
    }

    pub fn admits(&self, article: u32) -> bool {
        self.admissible.contains(article)
    }

    /// Whether a rule keeps one of these articles from the outfit with the others.
    pub fn forbids(&self, added: &[u32]) -> bool {
        let Some(asked) = &self.asked else { return false };
        added.iter().any(|article| {
            let others: Vec<u32> = added.iter().copied().filter(|other| other != article).collect();
            asked.filled_with(&others).excluded.is_some_and(|excluded| excluded.contains(*article))
        })
    }

    /// The admissible ones of some articles, where rules want them, and warnings of what rules want in vain. `ranked` are the best
    /// first, each with the logarithm of how good it is.
    pub fn rank(&self, ranked: &[(u32, f64)]) -> (Vec<(u32, Vec<MovedBy>)>, Vec<Warning>) {
        let k = self.request.k;
        let admitted = ranked.iter().filter(|(article, _)| self.admits(*article));
        let Some(steer) = &self.steer else {
            return (admitted.take(k).map(|(article, _)| (*article, Vec::new())).collect(), Vec::new());
        };
        let mut found: Vec<(f64, Candidate)> = admitted
            .zip(1..)
            .map(|((article, score), rank)| {
                let candidate = Candidate { article: *article, probability: 0.0, own_rank: Some(rank) };
                (score + steer.offset(*article), candidate)
            })
            .collect();
        found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let best = || found.iter().map(|(_, candidate)| *candidate);
        let wanted = steer.steering.iter().flat_map(|steering| &steering.wanted);
        let wanted: Vec<Vec<Candidate>> = wanted
            .map(|(set, most)| best().filter(|found| set.contains(found.article)).take(*most).collect())
            .collect();
        let read = |candidate: Candidate| Suggestion {
            own_rank: candidate.own_rank,
            ..Suggestion::new(self.served.catalogue, candidate.article)
        };
        let (placed, unmet) = steer.place(best().take(k).map(read).collect(), &wanted, read);
        let unmet = warn_unmet(unmet.into_iter().map(|detail| (0, detail)).collect());
        (placed.into_iter().map(|suggestion| (suggestion.index, suggestion.rules)).collect(), unmet)
    }

    /// Which variant the customer needs of each article that has some.
    pub fn choose_variants<'b>(&self, articles: impl Iterator<Item = &'b Arc<PackedArticle>>) -> Variants {
        super::choose_variants(self.served, self.request, &self.reading.needs, articles)
    }
}
