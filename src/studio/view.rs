//! The studio's state, parsed from its address. A link is a changed view, written as an address again.

use std::{collections::BTreeMap, fmt, str::FromStr};

use atelier_core::domain::{ArticleId, CustomerId, MAX_SLOTS, Method, OutfitSize, Timestamp};
use atelier_engine::evaluation::PAPER;

use crate::{
    completion::Filters,
    platform::{
        http::Problem,
        page::address::{Address, FeatureWords, each_parameter, lost_parts, parameters, too_long, words},
    },
    studio::side_by_side,
};

/// The default number of suggestions for each blank.
const DEFAULT_K: usize = 8;
const MAX_K: usize = 24;
/// Refused articles in a link to Side by side: addresses have a limit.
const MOST_SENT: usize = 200;
/// Ideas for the whole outfit shown at a time.
pub(super) const SETS: usize = 4;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct View {
    pub(crate) customer: Option<CustomerId>,
    /// The words of a customer search.
    pub(crate) find: String,
    /// None for a blank.
    pub(crate) slots: Vec<Option<ArticleId>>,
    /// How many of them a whole outfit has. The live schema says so, not the address.
    pub(crate) size: OutfitSize,
    /// The only type that a blank takes, by its slot.
    pub(crate) types: BTreeMap<usize, String>,
    /// By slot, the name of the suggestion that its article came from.
    pub(crate) suggested: BTreeMap<usize, String>,
    /// The slots that other ideas may change. A piece that the stylist chose is locked until they unlock it.
    pub(crate) loose: Vec<usize>,
    /// The blank whose suggestions are shown.
    pub(crate) asked: Option<usize>,
    /// When the outfit was begun, which tells it from the customer's others of the day.
    pub(crate) begun: Option<i64>,
    pub(crate) method: Option<Method>,
    pub(crate) k: Option<usize>,
    pub(crate) filter: Filters,
    /// The articles refused here, where no customer's record remembers it.
    pub(crate) left_out: Vec<Refusal>,
    /// Nothing that is shown or used counts: the outfit was opened to look at.
    pub(crate) trial: bool,
    pub(crate) varied: bool,
    /// The outfit's own features, such as the occasion; saved with it.
    pub(crate) own: FeatureWords,
    /// Changed features of the customer ("What if").
    pub(crate) changed: FeatureWords,
    /// The feature whose value is being chosen.
    pub(crate) changing: Option<String>,
    pub(crate) pick: Picking,
    /// The page of what a search found, from 1.
    pub(crate) page: Option<usize>,
    /// The combinations that were seen. Beside an idea that was used, those that were seen with it.
    pub(crate) skipped_sets: usize,
    /// The saved outfit that is being changed.
    pub(crate) edited: Option<Edited>,
    /// The outfit that was just saved.
    pub(crate) saved: Option<i64>,
    /// The article just refused.
    pub(crate) refused: Option<Refusal>,
    /// The query of the board before the change just made; empty if it was none of its pieces.
    pub(crate) undo: String,
    /// The articles that the customer refused before; not part of the address.
    pub(crate) refused_before: Vec<ArticleId>,
    /// The parts of an old link that no longer work, and were left out; not part of the address.
    pub(crate) ignored: Vec<String>,
}

/// The search for an article.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Picking {
    /// The slot that the article is for; none if nothing is searched for.
    pub(super) slot: Option<usize>,
    pub(super) search: String,
    /// The article that what is searched for is like.
    pub(super) similar: Option<ArticleId>,
}

/// A saved outfit in the revision that was read: `17.2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edited {
    pub(super) seq: i64,
    pub(super) revision: i64,
}

impl fmt::Display for Edited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seq, self.revision)
    }
}

impl FromStr for Edited {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers =
            text.split_once('.').and_then(|(seq, revision)| seq.parse().ok().zip(revision.parse().ok()));
        let (seq, revision) = numbers.ok_or_else(|| {
            format!("expected an outfit's number and revision, such as 17.2, found {text:?}")
        })?;
        Ok(Self { seq, revision })
    }
}

/// A refused suggestion, as addresses and forms have it: `1/7f0c…/a-12`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(super) slot: usize,
    pub(super) name: String,
    pub(super) article: ArticleId,
}

impl Refusal {
    /// Of an article that was refused before, for whatever slot.
    pub(super) fn of(article: ArticleId) -> Self {
        Self { slot: 0, name: "-".to_owned(), article }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.slot, self.name, self.article)
    }
}

impl FromStr for Refusal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.splitn(3, '/').collect();
        let [slot, name, article] = parts[..] else {
            return Err(format!("expected a slot, a suggestion's name and its article, found {text:?}"));
        };
        let slot = slot.parse().map_err(|_| format!("a slot is a whole number, found {slot:?}"))?;
        let article = ArticleId::new(article).map_err(|error| error.to_string())?;
        Ok(Self { slot, name: name.to_owned(), article })
    }
}

parameters!(View, "/studio":
    "customer" => customer,
    "slot" => slots,
    "type" => types,
    "from" => suggested,
    "loose" => loose,
    "ask" => asked,
    "begun" => begun,
    "exclude" => filter.exclude,
    "left_out" => left_out,
    "own." => own,
    "if." => changed,
    "by." => filter.words,
    "method" => method,
    "k" => k,
    "price_min" => filter.least_price,
    "price_max" => filter.most_price,
    "total" => filter.most_total,
    "store" => filter.store,
    "unfit" => filter.unfit,
    "sold_out" => filter.sold_out,
    "any" => filter.no_gos,
    "varied" => varied,
    "trial" => trial,
    "changing" => changing,
    "pick" => pick.slot,
    "search" => pick.search,
    "similar" => pick.similar,
    "skipped_sets" => skipped_sets,
    "page" => page,
    "find" => find,
    "outfit" => edited,
    "saved" => saved,
    "refused" => refused,
    "undo" => undo,
);

words!(Edited: str::parse::<Edited>, Refusal: str::parse::<Refusal>);

impl View {
    /// The view of a link, without the parts that no longer work.
    pub(super) fn read(query: &str) -> Self {
        let mut view = Self::default();
        let wrong = each_parameter(query, |name, value| {
            let taken = view.take(name, value);
            if taken.is_err() && name == "slot" {
                view.slots.push(None);
            }
            taken
        });
        view.ignored = lost_parts(wrong.into_iter().chain(too_long(&view.slots)).collect());
        view.slots.truncate(MAX_SLOTS);
        view.k = view.k.map(|k| k.clamp(1, MAX_K));
        view
    }

    /// The view of a form.
    pub(super) fn parse(query: &str) -> Result<Self, Problem> {
        let mut view = Self::default();
        let mut wrong = each_parameter(query, |name, value| view.take(name, value));
        wrong.extend(too_long(&view.slots));
        view.k = view.k.map(|k| k.clamp(1, MAX_K));
        if wrong.is_empty() { Ok(view) } else { Err(Problem::invalid(wrong)) }
    }

    /// The hidden fields of a form that has fields for `own` itself.
    pub(super) fn besides(&self, own: &[&str]) -> Vec<(String, String)> {
        Address::besides(&self.with(|_| ()), own)
    }

    /// The same question about a blank in Side by side, for the usual methods that the release has and the one that is named.
    pub(super) fn side_by_side(&self, blank: usize, methods: &[Method]) -> String {
        let slots = self.slots.iter().enumerate();
        let slots = slots.filter(|(slot, article)| *slot == blank || article.is_some());
        let usual = PAPER.iter().map(|paper| paper.method).filter(|method| methods.contains(method));
        let mut filter = self.filter.clone();
        filter.exclude.extend(self.refused_articles().take(MOST_SENT).cloned());
        let view = side_by_side::View {
            customers: self.customer.iter().cloned().collect(),
            slots: slots.map(|(_, article)| article.clone()).collect(),
            methods: self.method.map(|named| usual.chain([named]).collect()).unwrap_or_default(),
            kind: self.types.get(&blank).cloned(),
            filter,
            own: self.own.clone(),
            changed: self.changed.clone(),
            ..side_by_side::View::default()
        };
        view.href()
    }

    /// The articles that the customer refused before, and those refused here.
    pub(super) fn refused_articles(&self) -> impl Iterator<Item = &ArticleId> {
        self.refused_before.iter().chain(self.left_out.iter().map(|refusal| &refusal.article))
    }

    /// With a search for the slot's article.
    pub(super) fn picking(&self, slot: usize) -> Self {
        self.with(|view| {
            view.close_pick();
            view.pick.slot = Some(slot);
        })
    }

    /// With a search for articles like this one, for a slot.
    pub(super) fn like(&self, slot: usize, article: &str) -> Self {
        self.picking(slot).with(|view| view.pick.similar = ArticleId::new(article).ok())
    }

    pub(super) fn with_best_sets(&self) -> Self {
        self.with(|view| view.skipped_sets = 0)
    }

    /// A changed copy, without the notice of what was just done.
    pub(super) fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut view = Self { saved: None, refused: None, undo: String::new(), ..self.clone() };
        change(&mut view);
        view
    }

    /// The address of the board with other pieces, where Undo leads back to this one.
    pub(super) fn undoable(&self, changed: Self) -> String {
        Self { undo: self.with(|_| ()).query(), ..changed }.href()
    }

    pub(super) fn filled(&self, slot: usize, article: &ArticleId) -> Self {
        self.with(|view| {
            view.slots[slot] = Some(article.clone());
            view.types.remove(&slot);
            view.suggested.remove(&slot);
            view.loose.retain(|other| *other != slot);
            view.asked.take_if(|asked| *asked == slot);
            view.skipped_sets = 0;
            view.close_pick();
        })
    }

    pub(super) fn close_pick(&mut self) {
        (self.pick, self.page) = (Picking::default(), None);
    }

    /// With an article that was suggested, under the suggestion's name. The blank's type is kept for `regenerated`.
    pub(super) fn filled_from(&self, slot: usize, article: &ArticleId, name: String) -> Self {
        let mut view = self.filled(slot, article);
        view.types.clone_from(&self.types);
        view.suggested.insert(slot, name);
        view
    }

    /// With suggestions for the slot. It takes the type of the article that was there.
    pub(super) fn blanked(&self, slot: usize, kind: Option<&str>) -> Self {
        self.with(|view| {
            view.slots[slot] = None;
            view.suggested.remove(&slot);
            view.loose.retain(|other| *other != slot);
            match kind {
                Some(kind) => view.types.insert(slot, kind.to_owned()),
                None => view.types.remove(&slot),
            };
        })
        .asking(slot, &BTreeMap::new())
    }

    /// With suggestions for a blank. Without a type, it takes that of `kinds`.
    pub(super) fn asking(&self, slot: usize, kinds: &BTreeMap<usize, String>) -> Self {
        self.with(|view| {
            if let Some(kind) = kinds.get(&slot) {
                view.types.entry(slot).or_insert_with(|| kind.clone());
            }
            view.asked = Some(slot);
            view.skipped_sets = 0;
            view.close_pick();
        })
    }

    /// The blank whose suggestions are shown: the only one, or the one that is asked for.
    pub(super) fn shown_blank(&self) -> Option<usize> {
        let is_blank = |slot: &usize| self.slots.get(*slot) == Some(&None);
        let only = || (0..self.slots.len()).find(is_blank).filter(|_| self.blanks() == 1);
        self.asked.filter(is_blank).or_else(only)
    }

    pub(super) fn is_loose(&self, slot: usize) -> bool {
        self.loose.contains(&slot)
    }

    /// With the piece locked, or unlocked if it is.
    pub(super) fn toggled(&self, slot: usize) -> Self {
        self.with(|view| {
            view.loose.retain(|other| *other != slot);
            if !self.is_loose(slot) {
                view.loose.push(slot);
            }
            // Other pieces have other ideas, of which none was seen.
            view.skipped_sets = 0;
        })
    }

    pub(super) fn without(&self, slot: usize) -> Self {
        self.with(|view| {
            view.slots.remove(slot);
            let moved = |other| (other != slot).then_some(if other > slot { other - 1 } else { other });
            for words in [&mut view.types, &mut view.suggested] {
                let others = std::mem::take(words).into_iter();
                *words = others.filter_map(|(other, word)| Some((moved(other)?, word))).collect();
            }
            view.loose = view.loose.iter().copied().filter_map(moved).collect();
            view.asked = view.asked.and_then(moved);
            view.skipped_sets = 0;
            view.close_pick();
        })
    }

    /// The same outfit, where what is shown and used counts.
    pub(super) fn without_trial(&self) -> Self {
        self.with(|view| {
            view.trial = false;
            view.left_out.clear();
        })
    }

    /// With one more blank, and suggestions for it.
    pub(super) fn grown(&self) -> Self {
        let grown = self.with(|view| view.slots.push(None));
        grown.asking(self.slots.len(), &BTreeMap::new())
    }

    /// An outfit of blanks for the same customer.
    pub(super) fn new_outfit(&self, now: Timestamp) -> Self {
        Self { size: self.size, begun: Some(now.millis()), ..self.cleared() }.completed()
    }

    /// With blanks for the rest of a whole outfit.
    pub(super) fn completed(&self) -> Self {
        self.with(|view| {
            view.slots.resize(view.slots.len().max(view.size.least), None);
            (view.asked, view.skipped_sets) = (None, 0);
        })
    }

    /// With blanks for the pieces that are not locked, and other ideas for them. None if all are locked.
    pub(super) fn regenerated(&self) -> Option<Self> {
        let loose: Vec<usize> = self.loose.iter().copied().filter(|slot| *slot < self.slots.len()).collect();
        (!loose.is_empty()).then(|| {
            self.with(|view| {
                for slot in loose {
                    view.slots[slot] = None;
                    view.suggested.remove(&slot);
                }
                view.loose.clear();
                view.asked = None;
                view.close_pick();
            })
        })
    }

    /// With the customer only.
    pub(super) fn cleared(&self) -> Self {
        Self { customer: self.customer.clone(), ..Self::default() }
    }

    /// The customer's id, or an empty text.
    pub(super) fn customer_id(&self) -> &str {
        self.customer.as_ref().map_or("", CustomerId::as_str)
    }

    /// Whether it is saved as a draft: it is not whole, or for no customer yet.
    pub(super) fn is_draft(&self) -> bool {
        !self.is_whole() || self.customer.is_none()
    }

    /// Whether it has enough pieces, and no blank.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_small() && self.blanks() == 0
    }

    pub(super) fn is_small(&self) -> bool {
        self.slots.len() < self.size.least
    }

    /// How many pieces a whole outfit still needs, in words.
    pub(super) fn missing(&self) -> Option<String> {
        match self.size.least.saturating_sub(self.slots.len()) {
            0 => None,
            1 => Some("one more piece".to_owned()),
            more => Some(format!("{more} more pieces")),
        }
    }

    pub(super) fn k(&self) -> usize {
        self.k.unwrap_or(DEFAULT_K)
    }

    pub(super) fn blanks(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_none()).count()
    }

    pub(super) fn filters(&self) -> Filters {
        let types = self.types.iter().filter(|(slot, _)| self.slots.get(**slot) == Some(&None));
        let types = types.map(|(slot, kind)| (*slot, vec![kind.clone()])).collect();
        Filters { refused: self.refused_articles().cloned().collect(), ..self.filter.with_types(types) }
    }
}

#[cfg(test)]
mod tests {
    use atelier_core::domain::{FeatureValue, Schema};

    use super::*;

    type Change<'a> = &'a dyn Fn(&View) -> View;
    use crate::platform::page::address;

    fn id(text: &str) -> ArticleId {
        ArticleId::new(text).unwrap()
    }

    #[test]
    fn an_address_holds_the_whole_view() {
        let query = "customer=c-1&slot=a-1&slot=&slot=a%263&type=1%3Acoat&exclude=a-7&own.occasion=date\
                     &if.age=34&if.preferred_colours=red&if.preferred_colours=blue&method=gsu&price_max=120&outfit=17.2";
        let view = View::parse(query).unwrap();
        assert_eq!(view.query(), query);
        assert_eq!((view.blanks(), view.filters().most_price), (1, Some(120.0)));
        assert!(!view.filters().unfit && !view.filters().sold_out);
        let widened = View::parse("slot=&unfit=on&sold_out=on").unwrap();
        assert_eq!(widened.query(), "slot=&unfit=on&sold_out=on");
        assert!(widened.filters().unfit && widened.filters().sold_out);
        let changed = address::features(&view.changed, &Schema::default_schema());
        assert_eq!(changed.get("age"), Some(&FeatureValue::Number(34.0)));
        let both = FeatureValue::Many(vec!["red".into(), "blue".into()]);
        assert_eq!(changed.get("preferred_colours"), Some(&both));
        let empty = "customer=&method=&k=&price_min=&price_max=&search=&type=&type=1:&in_stock=";
        assert_eq!((View::parse(empty).unwrap(), &*View::default().href()), (View::default(), "/studio?"));
        for (query, kept) in [
            ("if.age=(not given)&if.age=", "if.age=%28not+given%29"),
            ("if.age=(not given)&if.age=34", "if.age=34"),
            ("if.fit=slim&if.fit=loose&if.fit=(not given)", "if.fit=%28not+given%29"),
        ] {
            assert_eq!(View::parse(query).unwrap().query(), kept);
        }
    }

    #[test]
    fn an_old_link_keeps_what_it_can() {
        let many = "slot=a&".repeat(13);
        let view =
            View::read(&format!("{many}slot=%00&k=x&method=Best&yclid=1&_hsenc=2&mkt_tok=3&type=1:coat"));
        assert_eq!(view.slots.len(), MAX_SLOTS);
        assert_eq!(view.ignored, ["a piece", "the number of suggestions", "a method"]);
        assert_eq!(View::read("twclid=7&in_stock=on&customer=c-1").query(), "customer=c-1");
    }

    #[test]
    fn a_change_of_a_view_is_an_address() {
        const FILLED: &str = "slot=a&slot=b&type=1:hat&from=1:7f";
        const ASKED: &str = "slot=&slot=a&slot=&type=0:hat&type=2:bag&ask=2";
        const SUGGESTED: &str = "slot=a&slot=b&slot=c&from=1:7f&from=2:8e&loose=1&loose=2";
        const SEEN: &str = "slot=a&slot=b&slot=c&from=1:7f&from=2:8e&loose=1&loose=2&skipped_sets=4";
        const PICKING: &str = "slot=a&slot=&pick=1&search=boot&similar=b&page=2&skipped_sets=4";
        let kinds = || BTreeMap::from([(0, "coat".to_owned()), (2, "bag".to_owned())]);
        let use_it = |view: &View| view.filled_from(1, &id("b"), "7f".into());
        let others = |view: View| view.regenerated().unwrap();
        let cases: [(&str, Change<'_>, &str); 22] = [
            // Types stay with their blanks.
            ("slot=a&slot=&slot=&type=1:coat&type=2:hat", &|view| view.without(1), "slot=a&slot=&type=1:hat"),
            ("slot=a&slot=&type=1:hat", &|view| view.filled(1, &id("b")), "slot=a&slot=b"),
            ("slot=a&slot=b", &|view| view.blanked(0, Some("boot")), "slot=&slot=b&type=0:boot&ask=0"),
            ("slot=a&slot=&type=1:hat", &use_it, FILLED),
            (FILLED, &|view| view.without(0), "slot=b&type=0:hat&from=0:7f"),
            (FILLED, &|view| view.blanked(1, None), "slot=a&slot=&ask=1"),
            (FILLED, &|view| view.filled(1, &id("c")), "slot=a&slot=c"),
            ("slot=&slot=a&slot=", &|view| view.asking(2, &kinds()), "slot=&slot=a&slot=&type=2:bag&ask=2"),
            ("slot=&slot=a&slot=&type=0:hat", &|view| view.asking(2, &kinds()), ASKED),
            (ASKED, &|view| view.without(1), "slot=&slot=&type=0:hat&type=1:bag&ask=1"),
            (ASKED, &|view| view.filled(2, &id("b")), "slot=&slot=a&slot=b&type=0:hat"),
            // Other ideas replace what was suggested, and come after those that were seen beside it.
            (SUGGESTED, &|view| others(view.clone()), "slot=a&slot=&slot="),
            (SEEN, &|view| others(view.clone()), "slot=a&slot=&slot=&skipped_sets=4"),
            // With a piece more, none was seen.
            (SEEN, &|view| others(view.toggled(1)), "slot=a&slot=b&slot=&from=1:7f"),
            (SEEN, &|view| others(view.toggled(1).toggled(1)), "slot=a&slot=&slot="),
            ("slot=a&slot=&type=1:hat", &|view| others(use_it(view).toggled(1)), "slot=a&slot=&type=1:hat"),
            // Another question begins at the best ideas and at a new search.
            (PICKING, &|view| view.picking(0), "slot=a&slot=&pick=0&skipped_sets=4"),
            (PICKING, &|view| view.grown().picking(2), "slot=a&slot=&slot=&ask=2&pick=2"),
            (PICKING, &|view| view.like(0, "c"), "slot=a&slot=&pick=0&similar=c&skipped_sets=4"),
            ("slot=a&skipped_sets=4", &|view| view.blanked(0, None), "slot=&ask=0"),
            ("slot=a&skipped_sets=4", &View::grown, "slot=a&slot=&ask=1"),
            ("slot=a&slot=b&skipped_sets=4", &|view| view.without(0), "slot=b"),
        ];
        for (before, change, after) in cases {
            let changed = change(&View::parse(before).unwrap()).query();
            assert_eq!(changed.replace("%3A", ":"), after, "after {before}");
            assert_eq!(View::parse(&changed).unwrap().query(), changed);
        }
        assert_eq!(View::parse(PICKING).unwrap().completed().skipped_sets, 0);
        // Pieces chosen one by one are locked.
        for chosen in [FILLED, "slot=a&loose=7"] {
            assert_eq!(View::parse(chosen).unwrap().regenerated(), None);
        }
    }

    #[test]
    fn a_blank_is_shown_once_it_is_asked_for() {
        let shown = |query: &str| View::parse(query).unwrap().shown_blank();
        let queries = ["slot=a&slot=", "slot=&slot=", "slot=&slot=&ask=1", "slot=a&slot=&slot=&ask=0"];
        assert_eq!(queries.map(shown), [Some(1), None, Some(1), None]);
    }

    #[test]
    fn side_by_side_asks_the_same_question() {
        let query = "customer=c-1&exclude=a-7&own.occasion=date&if.age=34&price_max=120&store=Graz&any=on";
        let mut view = View::parse(&format!("{query}&slot=a-1&slot=&slot=&type=2:coat&k=4")).unwrap();
        view.refused_before.push(id("a-8"));
        let methods = [Method::Np, Method::Gsu, Method::Match];
        assert_eq!(
            view.side_by_side(2, &methods),
            "/side-by-side?customer=c-1&slot=a-1&slot=&type=coat&any=on&price_max=120&store=Graz&exclude=a-7&exclude=a-8\
             &own.occasion=date&if.age=34"
        );
        view.method = Some(Method::Match);
        let other = view.side_by_side(1, &methods);
        assert!(other.contains("&slot=a-1&slot=&method=np&method=gsu&method=match&any"), "{other}");
    }

    #[test]
    fn findings_name_the_parameter() {
        let many = "slot=a&".repeat(13);
        let wrong =
            ["k=x", "price_max=-1", "price_min=NaN", "method=Best", "customer=%00", "page=x", "outfit=17"];
        for query in wrong.into_iter().chain([&*many]) {
            let problem = View::parse(query).unwrap_err();
            let name = query.split('=').next();
            assert_eq!(problem.shown_to_caller().2[0].parameter.as_deref(), name, "{query}");
        }
    }
}
