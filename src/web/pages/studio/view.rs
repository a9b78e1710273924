//! The studio's state, parsed from its address. A link is a changed view, written as an address again.

use std::{collections::BTreeMap, fmt, str::FromStr};

use atelier_core::domain::{
    ArticleId, CustomerId, FeatureValue, Features, Kind, MAX_SLOTS, MIN_ARTICLES, Method, Schema, parse_price,
};
use atelier_engine::evaluation::PAPER;
use axum::{extract::FromRequestParts, http::request::Parts};

use crate::{
    service::completion::Filters,
    web::{
        http::Problem,
        pages::form::{each_parameter, lost_parts, too_long},
    },
};

/// The default number of suggestions for each blank.
const DEFAULT_K: usize = 8;
const MAX_K: usize = 24;
/// Refused articles in a link to Side by side: addresses have a limit.
const MOST_SENT: usize = 200;
/// Suggestions on one page.
const MAX_TOTAL: usize = 32;
/// Ideas for the whole outfit shown at a time.
pub(super) const SETS: usize = 4;
/// In place of a feature's value: the feature counts as unknown.
pub(super) const NOT_GIVEN: &str = "(not given)";

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct View {
    pub(super) customer: Option<CustomerId>,
    /// The words of a customer search.
    pub(super) find: String,
    /// None for a blank.
    pub(super) slots: Vec<Option<ArticleId>>,
    /// The only type that a blank takes, by its slot.
    pub(super) types: BTreeMap<usize, String>,
    /// By slot, the name of the suggestion that its article came from.
    pub(super) suggested: BTreeMap<usize, String>,
    pub(super) method: Option<Method>,
    pub(super) k: Option<usize>,
    pub(super) least_price: Option<f64>,
    pub(super) most_price: Option<f64>,
    /// The most that the whole outfit costs.
    pub(super) most_total: Option<f64>,
    /// Only what is in stock in this store.
    pub(super) store: Option<String>,
    pub(super) widened: Widened,
    pub(super) exclude: Vec<ArticleId>,
    /// What was refused here, where no customer's record remembers it.
    pub(super) left_out: Vec<Refusal>,
    /// Nothing that is shown or used counts: the outfit was opened to look at.
    pub(super) trial: bool,
    pub(super) varied: bool,
    /// The outfit's own features, such as the occasion; saved with it.
    pub(super) own: FeatureWords,
    /// Changed features of the customer ("What if").
    pub(super) changed: FeatureWords,
    /// The feature whose value is being chosen.
    pub(super) changing: Option<String>,
    /// The slot to search an article for, and the words of the search.
    pub(super) pick: Option<usize>,
    pub(super) search: String,
    /// The only value of an attribute that the search admits, by the attribute.
    pub(super) by: BTreeMap<String, String>,
    /// The article that what is searched for is like.
    pub(super) similar: Option<ArticleId>,
    /// The page of what a search found, from 1.
    pub(super) page: Option<usize>,
    /// The combinations that were seen.
    pub(super) skipped_sets: usize,
    /// The saved outfit that is being changed.
    pub(super) edited: Option<Edited>,
    /// The outfit that was just saved.
    pub(super) saved: Option<i64>,
    /// What was just refused.
    pub(super) refused: Option<Refusal>,
    /// What the customer refused before; not part of the address.
    pub(super) refused_before: Vec<ArticleId>,
    /// The parts of an old link that no longer work, and were left out; not part of the address.
    pub(super) ignored: Vec<String>,
}

/// What is suggested besides what the default filters admit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Widened {
    /// What does not fit the customer.
    pub(super) unfit: bool,
    /// What is out of stock.
    pub(super) sold_out: bool,
    /// What the customer never wears.
    pub(super) no_gos: bool,
}

/// A saved outfit in the revision that was read: `17.2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edited {
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
pub(super) struct Refusal {
    pub(super) slot: usize,
    /// The suggestion's name.
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

/// Values by feature's name, as in an address.
pub(in crate::web::pages) type FeatureWords = BTreeMap<String, Vec<String>>;

impl<S: Send + Sync> FromRequestParts<S> for View {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Ok(Self::read(parts.uri.query().unwrap_or_default()))
    }
}

impl View {
    /// The view of a link, without the parts that no longer work.
    fn read(query: &str) -> Self {
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
        view
    }

    /// The view of a form.
    pub(super) fn parse(query: &str) -> Result<Self, Problem> {
        let mut view = Self::default();
        let mut wrong = each_parameter(query, |name, value| view.take(name, value));
        wrong.extend(too_long(&view.slots));
        if wrong.is_empty() { Ok(view) } else { Err(Problem::invalid(wrong)) }
    }

    /// An empty field counts as missing. If a name may occur once only, the last one counts.
    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        let text = || (!value.is_empty()).then(|| value.to_owned());
        match name {
            "slot" => self.slots.push(id(value)?),
            "customer" => {
                self.customer = text().map(CustomerId::new).transpose().map_err(|error| error.to_string())?;
            }
            "find" => value.clone_into(&mut self.find),
            "type" => at_slot(&mut self.types, value)?,
            "from" => at_slot(&mut self.suggested, value)?,
            "method" => {
                self.method = text()
                    .map(|name| name.parse())
                    .transpose()
                    .map_err(|error: atelier_core::domain::InvalidMethod| error.to_string())?;
            }
            "k" => self.k = text().map(|_| number(value)).transpose()?.map(|k| k.clamp(1, MAX_K)),
            "price_min" => self.least_price = price(value)?,
            "price_max" => self.most_price = price(value)?,
            "total" => self.most_total = price(value)?,
            "store" => self.store = text(),
            "unfit" => self.widened.unfit = value == "on",
            "sold_out" => self.widened.sold_out = value == "on",
            "any" => self.widened.no_gos = value == "on",
            "varied" => self.varied = value == "on",
            "exclude" => self.exclude.extend(id(value)?),
            "left_out" => self.left_out.extend(text().map(|text| text.parse::<Refusal>()).transpose()?),
            "trial" => self.trial = value == "on",
            "changing" => self.changing = text(),
            "pick" => self.pick = text().map(|_| number(value)).transpose()?,
            "search" => value.clone_into(&mut self.search),
            "similar" => self.similar = id(value)?,
            "skipped_sets" => self.skipped_sets = text().map(|_| number(value)).transpose()?.unwrap_or(0),
            "page" => self.page = text().map(|_| number(value)).transpose()?,
            "outfit" => self.edited = text().map(|text| text.parse()).transpose()?,
            "saved" => self.saved = value.parse().ok(),
            "refused" => self.refused = value.parse().ok(),
            other => match other.split_once('.') {
                Some(("own", feature)) => add(&mut self.own, feature, value),
                Some(("if", feature)) => add(&mut self.changed, feature, value),
                Some(("by", attribute)) => self.by.extend(text().map(|word| (attribute.to_owned(), word))),
                // Mails and advertisements add theirs to links, and older versions had others.
                _ => {}
            },
        }
        Ok(())
    }

    /// The view as names and values.
    pub(super) fn pairs(&self) -> Vec<(String, String)> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        let mut put = |name: &str, value: String| pairs.push((name.to_owned(), value));
        if let Some(customer) = &self.customer {
            put("customer", customer.to_string());
        }
        for slot in &self.slots {
            put("slot", slot.as_ref().map(ToString::to_string).unwrap_or_default());
        }
        for (slot, kind) in &self.types {
            put("type", format!("{slot}:{kind}"));
        }
        for (slot, name) in &self.suggested {
            put("from", format!("{slot}:{name}"));
        }
        for id in &self.exclude {
            put("exclude", id.to_string());
        }
        for refusal in &self.left_out {
            put("left_out", refusal.to_string());
        }
        for (prefix, features) in [("own", &self.own), ("if", &self.changed)] {
            for (feature, values) in features {
                for value in values {
                    put(&format!("{prefix}.{feature}"), value.clone());
                }
            }
        }
        for (attribute, word) in &self.by {
            put(&format!("by.{attribute}"), word.clone());
        }
        let once = [
            ("method", self.method.map(|method| method.to_string())),
            ("k", self.k.map(|k| k.to_string())),
            ("price_min", self.least_price.map(|price| price.to_string())),
            ("price_max", self.most_price.map(|price| price.to_string())),
            ("total", self.most_total.map(|price| price.to_string())),
            ("store", self.store.clone()),
            ("unfit", self.widened.unfit.then(|| "on".to_owned())),
            ("sold_out", self.widened.sold_out.then(|| "on".to_owned())),
            ("any", self.widened.no_gos.then(|| "on".to_owned())),
            ("varied", self.varied.then(|| "on".to_owned())),
            ("trial", self.trial.then(|| "on".to_owned())),
            ("changing", self.changing.clone()),
            ("pick", self.pick.map(|slot| slot.to_string())),
            ("search", Some(self.search.clone()).filter(|search| !search.is_empty())),
            ("similar", self.similar.as_ref().map(ToString::to_string)),
            (
                "skipped_sets",
                Some(self.skipped_sets).filter(|skipped| *skipped > 0).map(|skipped| skipped.to_string()),
            ),
            ("page", self.page.map(|page| page.to_string())),
            ("find", Some(self.find.clone()).filter(|find| !find.is_empty())),
            ("outfit", self.edited.map(|edited| edited.to_string())),
            ("saved", self.saved.map(|seq| seq.to_string())),
            ("refused", self.refused.as_ref().map(ToString::to_string)),
        ];
        for (name, value) in once {
            if let Some(value) = value {
                put(name, value);
            }
        }
        pairs
    }

    /// The hidden fields of a form that has fields for `own` itself.
    pub(super) fn besides(&self, own: &[&str]) -> Vec<(String, String)> {
        self.pairs()
            .into_iter()
            .filter(|(name, _)| {
                !own.contains(&name.as_str()) && !["saved", "refused"].contains(&name.as_str())
            })
            .collect()
    }

    pub(super) fn query(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(self.pairs()).finish()
    }

    pub(super) fn href(&self) -> String {
        format!("/studio?{}", self.query())
    }

    /// The same question about a blank in Side by side, for the usual methods that the release has and the one that is named.
    pub(super) fn side_by_side(&self, blank: usize, methods: &[Method]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.pairs().into_iter().filter(|(name, _)| is_of_question(name)));
        query.extend_pairs(self.refused_articles().take(MOST_SENT).map(|id| ("exclude", id.as_str())));
        for (slot, article) in self.slots.iter().enumerate() {
            match article {
                Some(article) => query.append_pair("slot", article.as_str()),
                None if slot == blank => query.append_pair("slot", ""),
                None => &mut query,
            };
        }
        if let Some(kind) = self.types.get(&blank) {
            query.append_pair("type", kind);
        }
        if let Some(named) = self.method {
            let usual = PAPER.iter().map(|row| row.method).filter(|method| methods.contains(method));
            for method in usual.chain([named]) {
                query.append_pair("method", method.as_str());
            }
        }
        format!("/side-by-side?{}", query.finish())
    }

    /// What the customer refused before, and what was refused here.
    pub(super) fn refused_articles(&self) -> impl Iterator<Item = &ArticleId> {
        self.refused_before.iter().chain(self.left_out.iter().map(|refusal| &refusal.article))
    }

    /// With a search for the slot's article.
    pub(super) fn picking(&self, slot: usize) -> Self {
        self.with(|view| {
            view.close_pick();
            view.pick = Some(slot);
        })
    }

    /// With a search for articles like this one, for a slot.
    pub(super) fn like(&self, slot: usize, article: &str) -> Self {
        self.picking(slot).with(|view| view.similar = ArticleId::new(article).ok())
    }

    pub(super) fn with_best_sets(&self) -> Self {
        self.with(|view| view.skipped_sets = 0)
    }

    /// A changed copy, without the notice of a saved outfit or a refusal.
    pub(super) fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut view = Self { saved: None, refused: None, ..self.clone() };
        change(&mut view);
        view
    }

    pub(super) fn filled(&self, slot: usize, article: &ArticleId) -> Self {
        self.with(|view| {
            view.slots[slot] = Some(article.clone());
            view.types.remove(&slot);
            view.suggested.remove(&slot);
            view.skipped_sets = 0;
            view.close_pick();
        })
    }

    /// Ends the search for an article.
    pub(super) fn close_pick(&mut self) {
        (self.pick, self.page, self.similar) = (None, None, None);
        (self.search, self.by) = (String::new(), BTreeMap::new());
    }

    /// With an article that was suggested, under the suggestion's name. The blank's type is kept for `regenerated`.
    pub(super) fn filled_from(&self, slot: usize, article: &ArticleId, name: String) -> Self {
        let mut view = self.filled(slot, article);
        view.types.clone_from(&self.types);
        view.suggested.insert(slot, name);
        view
    }

    /// The blank takes the type of the article that was there.
    pub(super) fn blanked(&self, slot: usize, kind: Option<&str>) -> Self {
        self.with(|view| {
            view.slots[slot] = None;
            view.suggested.remove(&slot);
            view.skipped_sets = 0;
            match kind {
                Some(kind) => view.types.insert(slot, kind.to_owned()),
                None => view.types.remove(&slot),
            };
        })
    }

    pub(super) fn without(&self, slot: usize) -> Self {
        self.with(|view| {
            view.slots.remove(slot);
            for words in [&mut view.types, &mut view.suggested] {
                let others = std::mem::take(words).into_iter().filter(|(other, _)| *other != slot);
                *words = others
                    .map(|(other, word)| (if other > slot { other - 1 } else { other }, word))
                    .collect();
            }
            view.skipped_sets = 0;
            view.close_pick();
        })
    }

    /// The same outfit, where what is shown and used counts.
    pub(super) fn in_earnest(&self) -> Self {
        self.with(|view| {
            view.trial = false;
            view.left_out.clear();
        })
    }

    /// With one more blank.
    pub(super) fn grown(&self) -> Self {
        self.with(|view| {
            view.slots.push(None);
            (view.page, view.skipped_sets) = (None, 0);
        })
    }

    /// With one more blank, and a search for its article.
    pub(super) fn searching(&self) -> Self {
        self.grown().picking(self.slots.len())
    }

    /// With blanks for the rest of a whole outfit.
    pub(super) fn completed(&self) -> Self {
        self.with(|view| {
            view.slots.resize(view.slots.len().max(MIN_ARTICLES), None);
            view.skipped_sets = 0;
        })
    }

    /// With blanks for what suggestions filled, and other ideas for them. None if the stylist chose each piece.
    pub(super) fn regenerated(&self) -> Option<Self> {
        let filled: Vec<usize> = self.suggested.keys().copied().collect();
        let slots = self.slots.len();
        let is_filled = |slot: &&usize| **slot < slots;
        (filled.iter().any(|slot| is_filled(&slot))).then(|| {
            self.with(|view| {
                for slot in filled.iter().filter(is_filled) {
                    view.slots[*slot] = None;
                }
                view.suggested.clear();
                view.close_pick();
                view.skipped_sets = SETS;
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

    /// Whether it is too small for a whole outfit, or has blanks.
    pub(super) fn is_draft(&self) -> bool {
        self.slots.len() < MIN_ARTICLES || self.blanks() > 0
    }

    /// How many pieces a whole outfit still needs, in words.
    pub(super) fn missing(&self) -> Option<&'static str> {
        let words = ["one more piece", "two more pieces", "three more pieces", "four pieces"];
        words.get(MIN_ARTICLES.checked_sub(self.slots.len() + 1)?).copied()
    }

    /// The method that the address names, or an empty text.
    pub(super) fn method_name(&self) -> &str {
        self.method.as_ref().map_or("", Method::as_str)
    }

    pub(super) fn k(&self) -> usize {
        self.k.unwrap_or(DEFAULT_K)
    }

    /// Suggestions for each blank: fewer if there are many blanks, so that the page stays short.
    pub(super) fn k_each(&self) -> usize {
        self.k().min((MAX_TOTAL / self.blanks().max(1)).max(4))
    }

    pub(super) fn blanks(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_none()).count()
    }

    pub(super) fn filters(&self) -> Filters {
        let types = self.types.iter().filter(|(slot, _)| self.slots.get(**slot) == Some(&None));
        Filters {
            types: types.map(|(slot, kind)| (*slot, vec![kind.clone()])).collect(),
            exclude: self.exclude.clone(),
            refused: self.refused_articles().cloned().collect(),
            least_price: self.least_price,
            most_price: self.most_price,
            most_total: self.most_total,
            fit: !self.widened.unfit,
            in_stock: !self.widened.sold_out,
            store: self.store.clone().filter(|_| !self.widened.sold_out),
            no_gos: !self.widened.no_gos,
            ..Filters::default()
        }
    }
}

/// Whether Studio and Side by side both ask with this parameter, under the same name.
pub(in crate::web::pages) fn is_of_question(name: &str) -> bool {
    const NAMES: [&str; 9] =
        ["customer", "exclude", "price_min", "price_max", "total", "store", "unfit", "sold_out", "any"];
    NAMES.contains(&name) || name.starts_with("own.") || name.starts_with("if.")
}

/// Features for the encoder, which reports values that do not fit the schema.
pub(in crate::web::pages) fn features(words: &FeatureWords, schema: &Schema) -> Features {
    let value = |name: &String, words: &Vec<String>| {
        let last = words.last().cloned().unwrap_or_default();
        match schema.feature(name).map(|feature| &feature.kind) {
            Some(Kind::Set) => FeatureValue::Many(words.clone()),
            Some(Kind::Number { .. }) => last.parse().map_or(FeatureValue::Text(last), FeatureValue::Number),
            _ => FeatureValue::Text(last),
        }
    };
    words.iter().map(|(name, words)| (name.clone(), value(name, words))).collect()
}

/// The values of features as an address has them.
pub(in crate::web::pages) fn values(features: &Features) -> FeatureWords {
    let words = |value: &FeatureValue| match value {
        FeatureValue::Text(word) => vec![word.clone()],
        FeatureValue::Many(words) => words.clone(),
        FeatureValue::Number(number) => vec![number.to_string()],
    };
    features.iter().map(|(name, value)| (name.to_owned(), words(value))).collect()
}

/// Reads a slot and its word, as in `2:coat`.
fn at_slot(words: &mut BTreeMap<usize, String>, value: &str) -> Result<(), String> {
    if let Some((slot, word)) = value.split_once(':') {
        let slot = number(slot)?;
        if !word.is_empty() {
            words.insert(slot, word.to_owned());
        }
    }
    Ok(())
}

/// Adds a value. Of `NOT_GIVEN` and values, the last counts: forms send it before their fields, which may all be empty.
pub(in crate::web::pages) fn add(words: &mut FeatureWords, feature: &str, value: &str) {
    if !value.is_empty() {
        let words = words.entry(feature.to_owned()).or_default();
        words.retain(|word| word != NOT_GIVEN && value != NOT_GIVEN);
        words.push(value.to_owned());
    }
}

fn id(value: &str) -> Result<Option<ArticleId>, String> {
    let id = (!value.is_empty()).then(|| ArticleId::new(value));
    id.transpose().map_err(|error| error.to_string())
}

fn number(value: &str) -> Result<usize, String> {
    value.parse().map_err(|_| format!("expected a whole number, found {value:?}"))
}

pub(in crate::web::pages) fn price(value: &str) -> Result<Option<f64>, String> {
    if value.is_empty() {
        return Ok(None);
    }
    // Our own links and a browser's number field write 1.5 for one and a half, whatever the language.
    let price = value.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
    price.map_or_else(|| parse_price(value), Ok).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_the_whole_view() {
        let query = "customer=c-1&slot=a-1&slot=&slot=a%263&type=1%3Acoat&exclude=a-7&own.occasion=date\
                     &if.age=34&if.preferred_colours=red&if.preferred_colours=blue&method=gsu&price_max=120&outfit=17.2";
        let view = View::parse(query).unwrap();
        assert_eq!(view.query(), query);
        assert_eq!(View::parse(&view.query()).unwrap(), view);
        assert_eq!((view.blanks(), view.filters().most_price), (1, Some(120.0)));
        assert!(view.filters().fit && view.filters().in_stock);
        let widened = View::parse("slot=&unfit=on&sold_out=on").unwrap();
        assert_eq!(widened.query(), "slot=&unfit=on&sold_out=on");
        assert!(!widened.filters().fit && !widened.filters().in_stock);
        let changed = features(&view.changed, &Schema::default_schema());
        assert_eq!(changed.get("age"), Some(&FeatureValue::Number(34.0)));
        let both = FeatureValue::Many(vec!["red".into(), "blue".into()]);
        assert_eq!(changed.get("preferred_colours"), Some(&both));
    }

    #[test]
    fn empty_parameters_are_missing() {
        let view = View::parse("customer=&method=&k=&price_min=&price_max=&search=&type=&type=1:&in_stock=")
            .unwrap();
        assert_eq!(view, View::default());
        assert_eq!(view.href(), "/studio?");
    }

    #[test]
    fn an_old_link_keeps_what_it_can() {
        let many = "slot=a&".repeat(9);
        let view =
            View::read(&format!("{many}slot=%00&k=x&method=Best&yclid=1&_hsenc=2&mkt_tok=3&type=1:coat"));
        assert_eq!(view.slots.len(), MAX_SLOTS);
        assert_eq!(view.ignored, ["a piece", "the number of suggestions", "a method"]);
        assert_eq!(View::read("twclid=7&in_stock=on&customer=c-1").query(), "customer=c-1");
    }

    #[test]
    fn other_ideas_replace_what_was_suggested() {
        let view = View::parse("slot=a&slot=b&slot=c&from=1:7f&from=2:8e").unwrap();
        assert_eq!(view.regenerated().unwrap().query(), "slot=a&slot=&slot=&skipped_sets=4");
        let typed = View::parse("slot=a&slot=&type=1:hat").unwrap();
        let used = typed.filled_from(1, &ArticleId::new("b").unwrap(), "7f".into());
        assert_eq!(used.regenerated().unwrap().query(), "slot=a&slot=&type=1%3Ahat&skipped_sets=4");
        assert_eq!(View::parse("slot=a&slot=b").unwrap().regenerated(), None);
        assert_eq!(View::parse("slot=a&from=7:b").unwrap().regenerated(), None);
    }

    #[test]
    fn types_stay_with_their_blanks() {
        let view = View::parse("slot=a&slot=&slot=&type=1:coat&type=2:hat").unwrap();
        let fewer = view.without(1);
        assert_eq!(fewer.query(), "slot=a&slot=&type=1%3Ahat");
        let filled = fewer.filled(1, &ArticleId::new("b").unwrap());
        assert_eq!(filled.query(), "slot=a&slot=b");
        assert_eq!(filled.blanked(0, Some("boot")).query(), "slot=&slot=b&type=0%3Aboot");

        let used = fewer.filled_from(1, &ArticleId::new("b").unwrap(), "7f".into());
        assert_eq!(used.query(), "slot=a&slot=b&type=1%3Ahat&from=1%3A7f");
        assert_eq!(View::parse(&used.query()).unwrap(), used);
        assert_eq!(used.without(0).query(), "slot=b&type=0%3Ahat&from=0%3A7f");
        assert_eq!(used.blanked(1, None).query(), "slot=a&slot=");
        assert_eq!(used.filled(1, &ArticleId::new("c").unwrap()).query(), "slot=a&slot=c");
    }

    #[test]
    fn another_question_begins_at_the_best_ideas_and_at_a_new_search() {
        let view = View::parse("slot=a&slot=&pick=1&search=boot&similar=b&page=2&skipped_sets=4").unwrap();
        for changed in [view.blanked(0, None), view.grown(), view.without(0), view.completed()] {
            assert_eq!(changed.skipped_sets, 0, "{changed:?}");
        }
        assert_eq!(view.picking(0).query(), "slot=a&slot=&pick=0&skipped_sets=4");
        assert_eq!(view.searching().query(), "slot=a&slot=&slot=&pick=2");
        assert_eq!(view.like(0, "c").query(), "slot=a&slot=&pick=0&similar=c&skipped_sets=4");
    }

    #[test]
    fn not_given_stands_for_all_values() {
        for (query, kept) in [
            ("if.age=(not given)&if.age=", "if.age=%28not+given%29"),
            ("if.age=(not given)&if.age=34", "if.age=34"),
            ("if.fit=slim&if.fit=loose&if.fit=(not given)", "if.fit=%28not+given%29"),
        ] {
            assert_eq!(View::parse(query).unwrap().query(), kept);
        }
    }

    #[test]
    fn side_by_side_asks_the_same_question() {
        let question = "customer=c-1&exclude=a-7&own.occasion=date&if.age=34&price_max=120&store=Graz&any=on";
        let mut view = View::parse(&format!("{question}&slot=a-1&slot=&slot=&type=2:coat&k=4")).unwrap();
        view.refused_before.push(ArticleId::new("a-8").unwrap());
        let methods = [Method::Np, Method::Gsu, Method::Match];
        assert_eq!(
            view.side_by_side(2, &methods),
            format!("/side-by-side?{question}&exclude=a-8&slot=a-1&slot=&type=coat")
        );
        view.method = Some(Method::Match);
        assert!(
            view.side_by_side(1, &methods).ends_with("&slot=a-1&slot=&method=np&method=gsu&method=match")
        );
    }

    #[test]
    fn findings_name_the_parameter() {
        let many = "slot=a&".repeat(9);
        for (query, name) in [
            ("k=x", "k"),
            ("price_max=-1", "price_max"),
            ("price_min=NaN", "price_min"),
            ("method=Best", "method"),
            ("customer=%00", "customer"),
            ("page=x", "page"),
            ("outfit=17", "outfit"),
            (&*many, "slot"),
        ] {
            let problem = View::parse(query).unwrap_err();
            assert_eq!(problem.shown_to_caller().2[0].parameter.as_deref(), Some(name), "{query}");
        }
    }
}
