//! Tickets of older versions. They name articles by their numbers in the vocabulary of a release, and remember the first
//! twenty suggestions of each blank. Needed until the last of them has expired, and for the events that they came with.

use atelier_core::domain::{ArticleId, Timestamp, Vocabulary};
use atelier_engine::release::VocabularyMark;

use super::{
    Blank, Mark, Ticket,
    bytes::{Reader, optional},
};
use crate::service::{completion::MAX_K, live_release::Releases};

const VERSION: u8 = 2;
/// The version before tickets had a vocabulary.
const WITHOUT_VOCABULARY: u8 = 1;
/// How many suggestions of a blank such a ticket remembers.
const REMEMBERED: usize = 20;
/// The methods by their numbers in such a ticket, whatever methods there are now.
const METHODS: [&str; 10] =
    ["none", "c", "np", "gs", "gsu", "latent", "universal", "latent-universal", "gsx", "gsx-latent"];

#[derive(Debug)]
pub(super) struct OldTicket {
    pub(super) release: String,
    pub(super) at: Timestamp,
    /// The vocabulary of its article indices; None in tickets of the first version.
    vocabulary: Option<VocabularyMark>,
    method: &'static str,
    arm: Option<String>,
    /// The outfit by vocabulary indices; None for blanks and articles outside the release.
    slots: Vec<Option<u32>>,
    /// Each blank's slot and its first suggestions.
    blanks: Vec<(usize, Vec<u32>)>,
}

impl OldTicket {
    pub(super) fn decode(body: &[u8]) -> Option<Self> {
        let mut reader = Reader(body);
        let version = reader.take(1)?[0];
        let method = METHODS.get(reader.number()?)?;
        let release = reader.text()?;
        let vocabulary = match version {
            VERSION => Some(reader.array()?),
            WITHOUT_VOCABULARY => None,
            _ => return None,
        };
        let arm = optional(reader.text()?);
        let at = Timestamp::from_millis(i64::from_be_bytes(reader.array()?));
        let slots = reader.list(|reader| {
            let number = reader.number()?;
            number.checked_sub(1).map_or(Some(None), |index| u32::try_from(index).ok().map(Some))
        })?;
        let index = |reader: &mut Reader<'_>| u32::try_from(reader.number()?).ok();
        let blanks = reader.list(|reader| Some((reader.number()?, reader.list(index)?)))?;
        Some(Self { release, at, vocabulary, method, arm, slots, blanks })
    }

    /// The same ticket with articles by their ids. None if the release is gone or has other articles by now.
    pub(super) async fn name(&self, releases: &Releases, mark: impl Fn(&str) -> Mark) -> Option<Ticket> {
        let named = |vocabulary: &Vocabulary| self.named_by(vocabulary, mark);
        releases.with_vocabulary(&self.release, self.vocabulary, named).await?
    }

    fn named_by(&self, vocabulary: &Vocabulary, mark: impl Fn(&str) -> Mark) -> Option<Ticket> {
        let is_blank = |slot: usize| self.blanks.iter().any(|(blank, _)| *blank == slot);
        let slots = self.slots.iter().enumerate().map(|(slot, index)| match index {
            Some(index) => vocabulary.article(*index).map(|id| Some(ArticleId::clone(id))),
            None => is_blank(slot).then_some(None),
        });
        let blank = |(slot, indices): &(usize, Vec<u32>)| {
            let first = indices.iter().map(|index| vocabulary.article(*index).map(|id| mark(id.as_str())));
            let first: Vec<_> = first.collect::<Option<_>>()?;
            // It does not say how many there were.
            let count = if first.len() == REMEMBERED { MAX_K } else { first.len() };
            Some(Blank { slot: *slot, count, first, in_sets: Vec::new() })
        };
        Some(Ticket {
            release: self.release.clone(),
            method: self.method.to_owned(),
            arm: self.arm.clone(),
            at: self.at,
            outfit: slots.collect(),
            blanks: self.blanks.iter().map(blank).collect::<Option<_>>()?,
        })
    }
}
