//! A ticket's contents. It spells out methods and the outfit's own articles. Suggested articles are marks: the
//! first bytes of a keyed hash of their ids. So it needs no release to be read, and stays small.

use atelier_core::domain::{ArticleId, CustomerId, RuleDigest, Timestamp};
use serde::{Deserialize, Serialize};

use super::Key;

/// The first byte of a ticket. A new format has another.
const VERSION: u8 = 10;
/// How many suggestions a ticket remembers, divided evenly among its blanks: twenty each of seven, and all of one blank's
/// first 140.
pub const REMEMBERED: usize = 140;
/// The most rules in a ticket: a bit each says which of a blank's suggestions they could change.
const MOST_RULES: usize = 24;
/// The bytes of most tickets are fewer.
const ROOM: usize = 512;
/// 48 bits of a keyed hash: an article that was not suggested has the mark of one of 140 with probability 5e-13.
pub type Mark = [u8; 6];

/// A completion, for its ticket.
#[derive(Debug, Clone)]
pub struct Suggested {
    pub release: String,
    pub method: String,
    /// The arm of the experiment that chose the method, if one did.
    pub arm: Option<String>,
    pub at: Timestamp,
    pub customer: Option<CustomerId>,
    /// Whether many callers get the same answer, so that each one's feedback counts.
    pub is_shared: bool,
    /// Whether the shop's rules did not apply because the customer is in the holdout.
    pub held_out: bool,
    /// None is a blank.
    pub outfit: Vec<Option<ArticleId>>,
    pub blanks: Vec<SuggestedFor>,
}

/// The suggestions for a blank.
#[derive(Debug, Clone)]
pub struct SuggestedFor {
    pub slot: usize,
    /// By rank.
    pub articles: Vec<ArticleId>,
    /// By the rank of their set: articles that were suggested as part of an outfit with all blanks filled.
    pub in_sets: Vec<ArticleId>,
    /// The rules that could change them, if feedback counts for these.
    pub rules: Vec<RuleDigest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Its own number. With it, only the key tells that two tickets are for the same customer.
    pub number: [u8; 8],
    pub release: String,
    pub method: String,
    pub arm: Option<String>,
    /// In milliseconds.
    pub at: i64,
    pub customer: Option<Mark>,
    pub is_shared: bool,
    pub held_out: bool,
    /// The ids of the outfit, where None is a blank. None if they were too long for a ticket.
    pub outfit: Option<Vec<Option<ArticleId>>>,
    /// The rules that could change suggestions, if feedback counts for these.
    pub rules: Vec<RuleDigest>,
    pub blanks: Vec<Blank>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blank {
    pub slot: usize,
    pub count: usize,
    /// The marks of the first ones, by rank.
    pub first: Vec<Mark>,
    /// Ranks of sets, and marks of articles in them that are not among the first.
    pub in_sets: Vec<(usize, Mark)>,
    /// A bit for each of the ticket's rules.
    pub rules: u32,
}

impl Blank {
    fn new(suggested: &SuggestedFor, key: &Key, remembered: usize, rules: &[RuleDigest]) -> Self {
        let SuggestedFor { slot, articles, in_sets, rules: own } = suggested;
        let mark = |article: &ArticleId| key.mark(article.as_str());
        let first = &articles[..articles.len().min(remembered)];
        let is_new = |(place, article): &(usize, &ArticleId)| {
            !first.contains(article) && !in_sets[..*place].contains(article)
        };
        let in_sets = in_sets.iter().enumerate().filter(is_new);
        let bits = (0..).zip(rules).filter(|(_, rule)| own.contains(rule));
        Self {
            slot: *slot,
            count: articles.len(),
            first: first.iter().map(mark).collect(),
            in_sets: in_sets.map(|(place, article)| (place + 1, mark(article))).collect(),
            rules: bits.fold(0, |bits, (at, _)| bits | 1 << at),
        }
    }

    /// The rank at which the article was suggested, or that of the best set that it was suggested in.
    pub fn rank_of(&self, mark: Mark) -> Option<usize> {
        let first = self.first.iter().position(|first| *first == mark).map(|place| place + 1);
        first.or_else(|| self.in_sets.iter().find(|(_, in_set)| *in_set == mark).map(|(rank, _)| *rank))
    }
}

/// The rules that could change a suggestion, if feedback counts for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountedRules {
    /// Whether they did not apply.
    pub held_out: bool,
    pub rules: Vec<RuleDigest>,
}

impl CountedRules {
    /// As an event has them: a byte for `held_out`, and the rules. None without rules.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        let bytes = || [&[u8::from(self.held_out)], self.rules.as_flattened()].concat();
        (!self.rules.is_empty()).then(bytes)
    }

    /// Reads what [`CountedRules::to_bytes`] wrote.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let (held_out, rules) = bytes.split_at_checked(1).unwrap_or_default();
        Self { held_out: held_out == [1], rules: rules.as_chunks().0.to_vec() }
    }
}

impl Ticket {
    pub(super) fn new(suggested: Suggested, key: &Key, number: u64) -> Self {
        let Suggested { release, method, arm, at, customer, is_shared, held_out, outfit, blanks } = suggested;
        let mut rules: Vec<RuleDigest> = Vec::new();
        for rule in blanks.iter().flat_map(|blank| &blank.rules) {
            if rules.len() < MOST_RULES && !rules.contains(rule) {
                rules.push(*rule);
            }
        }
        let (number, remembered) = (number.to_be_bytes(), REMEMBERED / blanks.len().max(1));
        Self {
            number,
            release,
            method,
            arm,
            at: at.millis(),
            customer: customer.map(|id| key.mark_customer(number, id.as_str())),
            is_shared,
            held_out,
            outfit: Some(outfit),
            blanks: blanks.iter().map(|blank| Blank::new(blank, key, remembered, &rules)).collect(),
            rules,
        }
    }

    /// Leaves out what is needed least of what there is: the sets, then the outfit. False if both are left out.
    pub(super) fn shrink(&mut self) -> bool {
        let has_sets = self.blanks.iter().any(|blank| !blank.in_sets.is_empty());
        self.blanks.iter_mut().for_each(|blank| blank.in_sets.clear());
        has_sets || self.outfit.take().is_some()
    }

    /// The ticket's bytes without the signature.
    pub(super) fn encode(&self, key: &Key) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ROOM);
        bytes.push(VERSION);
        bytes.extend(key.id.to_be_bytes());
        postcard::to_extend(self, bytes).expect("a ticket has texts and numbers")
    }

    /// Reads what [`Ticket::encode`] wrote. The signature is valid, so only a ticket of another version can be unreadable.
    pub(super) fn decode(body: &[u8]) -> Option<Self> {
        postcard::from_bytes(read_key_id(body)?.1).ok()
    }

    /// Whether it is for a customer, and not for this one. `key` signed it.
    pub fn is_for_another(&self, key: &Key, customer: &CustomerId) -> bool {
        self.customer.is_some_and(|own| own != key.mark_customer(self.number, customer.as_str()))
    }

    /// The rules for which feedback on the suggestions for a slot counts.
    pub fn rules_of(&self, slot: u32) -> CountedRules {
        let blank = self.blanks.iter().find(|blank| u32::try_from(blank.slot) == Ok(slot));
        let bits = blank.map_or(0, |blank| blank.rules);
        let rules = (0..MOST_RULES).zip(&self.rules).filter(|(at, _)| bits >> at & 1 == 1);
        CountedRules { held_out: self.held_out, rules: rules.map(|(_, rule)| *rule).collect() }
    }
}

/// The id of the key that signed a ticket, and the rest of its bytes.
pub(super) fn read_key_id(body: &[u8]) -> Option<(u32, &[u8])> {
    let (id, rest) = body.strip_prefix(&[VERSION])?.split_first_chunk()?;
    Some((u32::from_be_bytes(*id), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::tickets::keys::Keys;

    fn key() -> Key {
        Key::clone(Keys::first([7; 32], Timestamp::from_millis(0)).signing())
    }

    fn id(text: &str) -> ArticleId {
        ArticleId::new(text).unwrap()
    }

    fn suggested() -> Suggested {
        let many = (0..250).map(|n| id(&format!("b-{n}"))).collect();
        let in_sets = ["b-3", "c-1", "c-2", "c-1"].map(id).into();
        let rules = (2..40).map(|rule| [rule; 6]).collect();
        Suggested {
            release: "demo".into(),
            method: "Größe/β 😀".into(),
            arm: Some("autumn/β".into()),
            at: Timestamp::from_millis(1_790_000_000_000),
            customer: Some(CustomerId::new("c-1").unwrap()),
            is_shared: false,
            held_out: true,
            outfit: vec![Some(id("a-1")), None, Some(id("Mäntel/17 b")), None],
            blanks: vec![
                SuggestedFor { slot: 1, articles: many, in_sets, rules: vec![[1; 6], [2; 6]] },
                // The last rules have no room.
                SuggestedFor { slot: 3, articles: vec![id("d")], in_sets: Vec::new(), rules },
            ],
        }
    }

    #[test]
    fn a_ticket_is_read_as_it_was_written() {
        let (suggested, key) = (suggested(), key());
        let ticket = Ticket::decode(&Ticket::new(suggested.clone(), &key, 1).encode(&key)).unwrap();
        assert!([("c-1", false), ("c-2", true)].into_iter().all(|(id, is_for_another)| {
            ticket.is_for_another(&key, &CustomerId::new(id).unwrap()) == is_for_another
        }));
        let Suggested { release, method, arm, at, outfit, .. } = suggested;
        assert_eq!((&ticket.release, &ticket.method, &ticket.arm), (&release, &method, &arm));
        assert_eq!((ticket.at, &ticket.outfit), (at.millis(), &Some(outfit)));
        let [first, second] = &ticket.blanks[..] else { panic!("two blanks") };
        let rank = |blank: &Blank, article: &str| blank.rank_of(key.mark(article));
        assert_eq!((first.slot, first.count, first.first.len()), (1, 250, 70));
        assert_eq!([rank(first, "b-0"), rank(first, "b-69"), rank(first, "b-70")], [Some(1), Some(70), None]);
        // b-3 has a rank of its own; c-1 has that of its first set.
        let in_sets = ["b-3", "c-1", "c-2", "c-3"].map(|article| rank(first, article));
        assert_eq!(in_sets, [Some(4), Some(2), Some(3), None]);
        assert_eq!((second.slot, second.count), (3, 1));
        assert_eq!([rank(second, "d"), rank(second, "b-0")], [Some(1), None]);
        assert!(ticket.held_out);
        assert_eq!(ticket.rules_of(1).rules, [[1; 6], [2; 6]]);
        assert_eq!(ticket.rules_of(3).rules, (2..25).map(|rule| [rule; 6]).collect::<Vec<_>>());
        let other = Keys::first([8; 32], Timestamp::from_millis(0));
        assert_ne!(other.signing().mark("d"), key.mark("d"), "only the key's owner can tell");
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut ticket = Ticket::new(suggested(), &key(), 1);
        assert!(ticket.shrink());
        assert!(ticket.outfit.is_some() && ticket.blanks[0].in_sets.is_empty());
        assert_eq!(ticket.blanks[0].first.len(), 70);
        assert!(ticket.shrink() && ticket.outfit.is_none());
        assert!(!ticket.shrink(), "nothing else can be left out");
    }
}
