//! A ticket's contents. It spells out methods and the outfit's own articles. Suggested articles are marks: the
//! first bytes of a keyed hash of their ids. So it needs no release to be read, and stays small.

use atelier_core::domain::{ArticleId, CustomerId, RuleDigest, Timestamp};

use super::{
    Key,
    bytes::{Reader, optional, put, put_text},
};

/// The first byte of a ticket, and of one whose answer many callers share. A new format has others.
const VERSION: u8 = 8;
const SHARED: u8 = 9;
/// How many suggestions a ticket remembers, divided evenly among its blanks: twenty each of seven, and all of one blank's
/// first 140.
pub const REMEMBERED: usize = 140;
/// The most rules in a ticket: a bit each says which of a blank's suggestions they could change.
const MOST_RULES: usize = 24;
/// About the size of a ticket of twenty suggestions.
const TYPICAL_BYTES: usize = 256;
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
    /// Whom it is for, if it is for a customer.
    pub customer: Option<CustomerId>,
    /// Whether many callers get the same answer, so that each one's feedback counts.
    pub is_shared: bool,
    /// Whether the shop's rules did not apply because the customer is in the holdout.
    pub held_out: bool,
    /// None is a blank.
    pub outfit: Vec<Option<ArticleId>>,
    pub blanks: Vec<SuggestedFor>,
}

/// What was suggested for a blank.
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

/// The record of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    pub release: String,
    pub method: String,
    pub arm: Option<String>,
    pub at: Timestamp,
    /// Whom it is for, if it is for a customer.
    pub customer: Option<CustomerMark>,
    pub is_shared: bool,
    pub held_out: bool,
    /// The outfit, where None is a blank. None if its ids were too long for a ticket.
    pub outfit: Option<Vec<Option<ArticleId>>>,
    pub blanks: Vec<Blank>,
}

/// A customer in a ticket. Only its key tells who it is, or that two tickets are for the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CustomerMark {
    /// The ticket's own number.
    number: [u8; 8],
    mark: Mark,
}

/// The record of a blank's suggestions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blank {
    pub slot: usize,
    /// How many articles were suggested.
    pub count: usize,
    /// The marks of the first ones, by rank.
    pub first: Vec<Mark>,
    /// Ranks of sets, and marks of articles in them that are not among the first.
    pub in_sets: Vec<(usize, Mark)>,
    pub rules: Vec<RuleDigest>,
}

impl Blank {
    /// The rank at which the article was suggested, or that of the best set that it was suggested in.
    pub fn rank_of(&self, mark: Mark) -> Option<usize> {
        let first = self.first.iter().position(|first| *first == mark).map(|place| place + 1);
        first.or_else(|| self.in_sets.iter().find(|(_, in_set)| *in_set == mark).map(|(rank, _)| *rank))
    }
}

/// What a ticket has beside its marks.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    outfit: bool,
    sets: bool,
}

/// From the whole ticket to the smallest.
pub(super) const PARTS: [Parts; 3] = [
    Parts { outfit: true, sets: true },
    Parts { outfit: true, sets: false },
    Parts { outfit: false, sets: false },
];

impl Suggested {
    /// The ticket's bytes without the signature. `number` is this ticket's own.
    pub(super) fn encode(&self, key: &Key, number: u64, parts: Parts) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(TYPICAL_BYTES);
        bytes.push(if self.is_shared { SHARED } else { VERSION });
        put(&mut bytes, key.id as usize);
        bytes.extend(number.to_be_bytes());
        bytes.extend(self.at.millis().to_be_bytes());
        put_text(&mut bytes, &self.release);
        put_text(&mut bytes, &self.method);
        put_text(&mut bytes, self.arm.as_deref().unwrap_or_default());
        // One more than its slots, because an outfit may have none.
        let outfit = parts.outfit.then_some(&self.outfit);
        put(&mut bytes, outfit.map_or(0, |outfit| outfit.len() + 1));
        for slot in outfit.into_iter().flatten() {
            put_text(&mut bytes, slot.as_ref().map_or("", ArticleId::as_str));
        }
        put(&mut bytes, self.held_out.into());
        put(&mut bytes, self.customer.is_some().into());
        bytes
            .extend(self.customer.iter().flat_map(|id| key.mark_customer(number.to_be_bytes(), id.as_str())));
        let mut rules: Vec<RuleDigest> = Vec::new();
        for rule in self.blanks.iter().flat_map(|blank| &blank.rules) {
            if rules.len() < MOST_RULES && !rules.contains(rule) {
                rules.push(*rule);
            }
        }
        put(&mut bytes, rules.len());
        bytes.extend(rules.as_flattened());
        put(&mut bytes, self.blanks.len());
        for blank in &self.blanks {
            blank.encode(&mut bytes, key, REMEMBERED / self.blanks.len(), parts.sets);
            let bits = (0..).zip(&rules).filter(|(_, rule)| blank.rules.contains(rule));
            put(&mut bytes, bits.fold(0, |bits, (at, _)| bits | 1 << at));
        }
        bytes
    }
}

impl SuggestedFor {
    fn encode(&self, bytes: &mut Vec<u8>, key: &Key, remembered: usize, sets: bool) {
        let first = &self.articles[..self.articles.len().min(remembered)];
        put(bytes, self.slot);
        put(bytes, self.articles.len());
        put(bytes, first.len());
        for article in first {
            bytes.extend(key.mark(article.as_str()));
        }
        let is_new = |(place, article): &(usize, &ArticleId)| {
            !first.contains(article) && !self.in_sets[..*place].contains(article)
        };
        let in_sets: Vec<_> =
            self.in_sets.iter().enumerate().filter(is_new).take(if sets { usize::MAX } else { 0 }).collect();
        put(bytes, in_sets.len());
        for (place, article) in in_sets {
            put(bytes, place + 1);
            bytes.extend(key.mark(article.as_str()));
        }
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
    /// Reads what [`Suggested::encode`] wrote.
    pub(super) fn decode(body: &[u8]) -> Option<Self> {
        let mut reader = Reader(body);
        let is_shared = body.first() == Some(&SHARED);
        let _key = read_key_id(&mut reader)?;
        let number = reader.array()?;
        let at = Timestamp::from_millis(i64::from_be_bytes(reader.array()?));
        let (release, method, arm) = (reader.text()?, reader.text()?, optional(reader.text()?));
        let slots = reader.number()?;
        let slot = |_| match optional(reader.text()?) {
            Some(id) => ArticleId::new(id).ok().map(Some),
            None => Some(None),
        };
        let outfit = (1..slots).map(slot).collect::<Option<_>>()?;
        let outfit = Some(outfit).filter(|_| slots > 0);
        let held_out = reader.number()? == 1;
        let customer = match reader.number()? {
            0 => None,
            _ => Some(CustomerMark { number, mark: reader.array()? }),
        };
        let rules = reader.list(Reader::array)?;
        let blanks = reader.list(|reader| Blank::decode(reader, &rules))?;
        Some(Self { release, method, arm, at, customer, is_shared, held_out, outfit, blanks })
    }
}

impl Ticket {
    /// Whether it is for a customer, and not for this one. `key` signed it.
    pub fn is_for_another(&self, key: &Key, customer: &CustomerId) -> bool {
        let is_theirs = |own: CustomerMark| key.mark_customer(own.number, customer.as_str()) == own.mark;
        self.customer.is_some_and(|own| !is_theirs(own))
    }

    /// The rules for which feedback on the suggestions for a slot counts.
    pub fn rules_of(&self, slot: u32) -> CountedRules {
        let blank = self.blanks.iter().find(|blank| u32::try_from(blank.slot) == Ok(slot));
        let rules = blank.map(|blank| blank.rules.clone()).unwrap_or_default();
        CountedRules { held_out: self.held_out, rules }
    }
}

/// The key that signed a ticket.
pub(super) fn key_id(body: &[u8]) -> Option<u32> {
    read_key_id(&mut Reader(body))
}

fn read_key_id(reader: &mut Reader<'_>) -> Option<u32> {
    if ![VERSION, SHARED].contains(reader.take(1)?.first()?) {
        return None;
    }
    reader.number()?.try_into().ok()
}

impl Blank {
    fn decode(reader: &mut Reader<'_>, rules: &[RuleDigest]) -> Option<Self> {
        let (slot, count) = (reader.number()?, reader.number()?);
        let first = reader.list(Reader::array)?;
        let in_sets = reader.list(|reader| Some((reader.number()?, reader.array()?)))?;
        let bits = reader.number()?;
        let rules = rules.iter().take(MOST_RULES).enumerate().filter(|(at, _)| bits >> at & 1 == 1);
        Some(Self { slot, count, first, in_sets, rules: rules.map(|(_, rule)| *rule).collect() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        let ticket = Ticket::decode(&suggested.encode(&key, 1, PARTS[0])).unwrap();
        assert!([("c-1", false), ("c-2", true)].into_iter().all(|(id, is_for_another)| {
            ticket.is_for_another(&key, &CustomerId::new(id).unwrap()) == is_for_another
        }));
        let Suggested { release, method, arm, at, outfit, .. } = suggested;
        assert_eq!((ticket.release, ticket.method, ticket.arm), (release, method, arm));
        assert_eq!((ticket.at, ticket.outfit), (at, Some(outfit)));
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
        assert_eq!(first.rules, [[1; 6], [2; 6]]);
        assert_eq!(second.rules, (2..25).map(|rule| [rule; 6]).collect::<Vec<_>>());
        let other = Keys::first([8; 32], Timestamp::from_millis(0));
        assert_ne!(other.signing().mark("d"), key.mark("d"), "only the key's owner can tell");
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let read = |parts| Ticket::decode(&suggested().encode(&key(), 1, parts)).unwrap();
        let without_sets = read(PARTS[1]);
        assert!(without_sets.outfit.is_some() && without_sets.blanks[0].in_sets.is_empty());
        assert_eq!(without_sets.blanks[0].first.len(), 70);
        assert_eq!(read(PARTS[2]).outfit, None);
    }

    proptest! {
        #[test]
        fn damaged_tickets_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), place in 0..200_usize) {
            // As if the signature were valid.
            let _ = Ticket::decode(&bytes);
            let mut ticket = suggested().encode(&key(), 1, PARTS[0]);
            ticket[place] ^= bytes.first().copied().unwrap_or(1);
            let _ = Ticket::decode(&ticket);
        }
    }
}
