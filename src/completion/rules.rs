//! The shop's rules, by which its merchandisers change what the models suggest.
//!
//! A [`Rule`] looks the same in JSON and in the database. [`Rules`] are the active ones, compiled for a catalogue: what a rule says of
//! articles is a set of them, which follows the catalogue. [`Rules::matching`] says which rules concern a request; `steer`
//! applies them; `steering` stores them. Must not know HTTP, the database or models.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use atelier_core::{
    domain::{
        Article, FeatureValue, Features, Mask, Method, RuleDigest, RuleName, Schema, Timestamp, fold,
        fold_for, no_go_key,
    },
    named,
    util::{
        calendar,
        json_fields::{read_integer, read_object, read_optional_integer},
    },
};
use atelier_engine::{catalogue::Catalogue, inference::Offsets, packed_article::PackedArticle};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Warning;
use crate::platform::fault::{Fault, Field};

/// The largest factor of a boost; the smallest of a bury is its inverse.
const MOST_FACTOR: f64 = 1000.0;
/// The last rank that a pin or a quota can name: most suggestions for one blank.
const MOST_RANK: u64 = 250;
/// The most ids of a list: a rule that names more is better told by an attribute.
const MOST_IDS: usize = 5000;
const OWNER_CHARS: usize = 128;
const NOTE_CHARS: usize = 2000;
/// How many different sums of offsets are kept.
const KEPT_OFFSETS: usize = 64;

/// An effect of rules, as the form and the words on pages have it.
#[derive(Debug)]
pub struct EffectAbout {
    pub effect: Effect,
    /// The field of a rule that only some effects take, and that these need; empty for none.
    pub takes: &'static str,
    /// In the form.
    pub label: &'static str,
    /// The effect in words, with the names of its fields in braces.
    pub words: &'static str,
}

/// Makes [`Effect`] and [`EFFECTS`], in the order of the form.
macro_rules! effects {
    ($all:literal; $($(#[doc = $doc:literal])+ $effect:ident = $word:literal, $takes:literal, $label:literal, $words:expr;)+) => {
        /// A rule's effect.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "kebab-case")]
        #[schema(as = RuleEffect)]
        pub enum Effect {
            $($(#[doc = $doc])+ $effect),+
        }

        named!(Effect, $all, $($effect = $word),+);

        pub static EFFECTS: &[EffectAbout] = &[
            $(EffectAbout { effect: Effect::$effect, takes: $takes, label: $label, words: $words }),+
        ];
    };
}

const RANKS: &str = "Ranks {articles} as if they were {factor} times as likely.";

effects! {
    "an effect is exclude, boost, bury, pin, quota, pair or never-together";
    /// The articles are never suggested.
    Exclude = "exclude", "", "Never suggest the articles", "Never suggests {articles}.";
    /// The articles are ranked as if they were `factor` times as likely, above 1.
    Boost = "boost", "factor", "Suggest them more", RANKS;
    /// The same, below 1.
    Bury = "bury", "factor", "Suggest them less", RANKS;
    /// The most likely of the articles is at `rank`.
    Pin = "pin", "rank", "Put the most likely at a rank", "Puts the most likely of {articles} at rank {rank}.";
    /// At least `least` of the suggestions for a blank are of the articles.
    Quota = "quota", "least", "Suggest at least some",
        "Takes at least {least} of {articles} among the suggestions for a blank.";
    /// Where the outfit has one of `others`, the most likely of the articles comes first.
    Pair = "pair", "others", "Put the most likely first next to others",
        "Where the outfit has one of {others}, puts the most likely of {articles} first.";
    /// No outfit gets one of the articles with one of `others`.
    NeverTogether = "never-together", "others", "Never with others",
        "Gives no outfit one of {articles} with one of {others}.";
}

impl Effect {
    pub fn about(self) -> &'static EffectAbout {
        &EFFECTS[self as usize]
    }
}

/// A number that some effects take, as the form asks for it.
#[derive(Debug)]
pub struct EffectNumber {
    pub name: &'static str,
    pub label: &'static str,
    pub is_whole: bool,
}

pub static EFFECT_NUMBERS: [EffectNumber; 3] = [
    EffectNumber { name: "factor", label: "Times as likely (2, or 0.5 to suggest less)", is_whole: false },
    EffectNumber { name: "rank", label: "Rank, from 1", is_whole: true },
    EffectNumber { name: "least", label: "Minimum number", is_whole: true },
];

named! {
    "a state is draft, active or off"
    /// Whether a rule applies: a draft does not yet, and one that is off no longer does.
    #[derive(Default, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    #[schema(as = RuleState)]
    pub enum State {
        #[default]
        Draft = "draft",
        Active = "active",
        Off = "off",
    }
}

/// A merchandiser's rule, which changes suggestions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "effect": "boost", "factor": 2, "articles": {"attributes": {"brand": ["Linden"]}}, "state": "active",
    "ends_at": "2027-02-28T23:00:00Z", "note": "The new season's own brand",
}))]
pub struct Rule {
    /// Optional in a request; must be the name in the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("new-season"))]
    pub name: Option<String>,
    pub effect: Effect,
    /// The articles that it applies to: at least one condition.
    #[serde(deserialize_with = "read_object")]
    pub articles: Conditions,
    /// Of `pair` and `never-together`: the other articles.
    #[serde(default, deserialize_with = "read_object", skip_serializing_if = "Conditions::is_empty")]
    pub others: Conditions,
    /// Of `boost` above 1, of `bury` below 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.001, maximum = 1000)]
    pub factor: Option<f64>,
    /// Of `pin`: from 1. The article is last if fewer are found, and not there if the request asks for fewer.
    #[serde(default, deserialize_with = "read_optional_integer", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 250)]
    pub rank: Option<usize>,
    /// Of `quota`: how many of the suggestions for a blank; all if fewer are asked for.
    #[serde(default, deserialize_with = "read_optional_integer", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 250)]
    pub least: Option<usize>,
    /// The requests that it applies to; all without a condition.
    #[serde(default, deserialize_with = "read_object", skip_serializing_if = "When::is_empty")]
    pub when: When,
    #[serde(default)]
    pub state: State,
    /// It applies from then until `ends_at`. Answers have both in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub starts_at: Option<String>,
    /// It stops applying at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub ends_at: Option<String>,
    /// If two rules contradict each other, the one with the higher priority applies, then the first by name.
    #[serde(default, deserialize_with = "read_integer")]
    #[schema(maximum = 1000)]
    pub priority: u32,
    /// Who is responsible for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128)]
    pub owner: Option<String>,
    /// Why there is this rule, for the shop's own people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2000)]
    pub note: Option<String>,
}

/// Articles that meet every condition given. Words are compared as in filters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = RuleArticles)]
pub struct Conditions {
    /// Of one of these types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(examples(json!(["coat", "blazer"])))]
    pub types: Vec<String>,
    /// One of these, by its own id or a variant's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 5000)]
    pub ids: Vec<String>,
    /// For each attribute, one of its values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(examples(json!({"brand": ["Linden"], "season": ["winter"]})))]
    pub attributes: BTreeMap<String, Vec<String>>,
    /// In the shop's currency, as in filters.
    #[serde(deserialize_with = "read_object", skip_serializing_if = "Range::is_empty")]
    pub price: Range,
    /// For each numeric attribute, its limits.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(examples(json!({"margin": {"min": 0.4}})))]
    pub numbers: BTreeMap<String, Range>,
    /// Whether the live release was trained without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<bool>,
}

/// Limits of a number, both inclusive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object such as {\"min\": 10}")]
#[schema(as = RuleRange)]
pub struct Range {
    /// The lowest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The highest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// Requests that meet every condition given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = RuleWhen)]
pub struct When {
    /// For each feature of the customer or the outfit, one of its values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(examples(json!({"gender": ["female"], "occasion": ["office", "wedding"]})))]
    pub features: BTreeMap<String, Vec<String>>,
    /// For each numeric feature, its limits.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(examples(json!({"age": {"max": 30}})))]
    pub numbers: BTreeMap<String, Range>,
    /// The outfit has such an article.
    #[serde(deserialize_with = "read_object", skip_serializing_if = "Conditions::is_empty")]
    pub outfit: Conditions,
    /// The method is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub methods: Vec<Method>,
    /// The request's filter names one of these stores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<String>,
}

impl Rule {
    /// Takes outer spaces and empty texts away, and writes its times in UTC.
    pub(crate) fn checked(mut self) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        self.check_effect(&mut faults);
        self.articles.check("articles", &mut faults);
        self.others.check("others", &mut faults);
        self.when.check(&mut faults);
        if self.articles.is_empty() {
            faults.push(Fault::new("articles", "a rule needs at least one condition on articles"));
        }
        check_window("the rule", &mut self.starts_at, &mut self.ends_at, &mut faults);
        for (field, text, most) in
            [("owner", &mut self.owner, OWNER_CHARS), ("note", &mut self.note, NOTE_CHARS)]
        {
            check_text(field, text, most, &mut faults);
        }
        if self.priority > 1000 {
            faults.push(Fault::new("priority", format!("from 0 to 1000, found {}", self.priority)));
        }
        if faults.is_empty() { Ok(self) } else { Err(faults) }
    }

    /// Each effect needs its own fields, and takes no other's.
    fn check_effect(&self, faults: &mut Vec<Fault>) {
        let json = serde_json::to_value(self).unwrap_or_default();
        for field in EFFECT_NUMBERS.iter().map(|number| number.name).chain(["others"]) {
            let is_there = json.get(field).is_some();
            let needed = self.effect.about().takes == field;
            let detail = match (needed, is_there) {
                (true, false) => format!("{} needs {field}", self.effect),
                (false, true) => format!("{} does not take {field}; remove it", self.effect),
                _ => continue,
            };
            faults.push(Fault::new(field, detail));
        }
        let detail = match (self.effect, self.factor) {
            (Effect::Boost, Some(factor)) if !(factor > 1.0 && factor <= MOST_FACTOR) => {
                format!(
                    "a boost's factor is above 1 and at most {MOST_FACTOR}, found {factor}; bury takes those below 1"
                )
            }
            (Effect::Bury, Some(factor)) if !(1.0 / MOST_FACTOR..1.0).contains(&factor) => {
                format!("a bury's factor is below 1 and at least {}, found {factor}", 1.0 / MOST_FACTOR)
            }
            _ => String::new(),
        };
        if !detail.is_empty() {
            faults.push(Fault::new("factor", detail));
        }
        for number in EFFECT_NUMBERS.iter().filter(|number| number.is_whole) {
            if let Some(found) = json[number.name].as_u64().filter(|found| !(1..=MOST_RANK).contains(found)) {
                faults.push(Fault::new(number.name, format!("from 1 to {MOST_RANK}, found {found}")));
            }
        }
    }

    /// The rank that it claims.
    pub(super) fn place(&self) -> Option<usize> {
        if self.effect == Effect::Pair { Some(1) } else { self.rank }
    }

    pub fn window(&self) -> Window {
        window(self.starts_at.as_deref(), self.ends_at.as_deref())
    }
}

/// From when until when something counts, in milliseconds.
pub type Window = std::ops::Range<i64>;

pub(crate) fn window(starts_at: Option<&str>, ends_at: Option<&str>) -> Window {
    starts_at.and_then(calendar::parse_moment).unwrap_or(i64::MIN)
        ..ends_at.and_then(calendar::parse_moment).unwrap_or(i64::MAX)
}

/// Takes outer spaces and empty texts away, and checks the rest. Postgres stores no NUL.
pub(crate) fn check_text(field: &str, text: &mut Option<String>, most: usize, faults: &mut Vec<Fault>) {
    let tidy = text.take().map(|text| text.replace("\r\n", "\n").trim().to_owned());
    *text = tidy.filter(|text| !text.is_empty());
    check_length(field.into(), text.as_deref().unwrap_or_default(), most, faults);
}

pub(crate) fn check_length(field: Field, text: &str, most: usize, faults: &mut Vec<Fault>) {
    let found = text.chars().count();
    if found > most {
        faults.push(Fault::new(field, format!("at most {most} characters, found {found}")));
    } else if text.contains('\0') {
        faults.push(Fault::new(field, "it contains the character NUL (\\u0000); remove it"));
    }
}

/// Checks the times, and writes them in UTC.
pub(crate) fn check_window(
    what: &str,
    starts_at: &mut Option<String>,
    ends_at: &mut Option<String>,
    faults: &mut Vec<Fault>,
) {
    for (field, time) in [("starts_at", &mut *starts_at), ("ends_at", &mut *ends_at)] {
        let Some(text) = time else { continue };
        let utc = calendar::parse_moment(text).map(|millis| calendar::moment(millis, 1000, true));
        // In UTC it may be before the year 0 or after 9999.
        if let Some(utc) = utc.filter(|utc| calendar::parse_moment(utc).is_some()) {
            *text = utc;
        } else {
            let detail = format!("expected a time such as 2026-11-27T08:00:00Z or …+01:00, found {text:?}");
            faults.push(Fault::new(field, detail));
        }
    }
    if window(starts_at.as_deref(), ends_at.as_deref()).is_empty() {
        faults.push(Fault::new("ends_at", format!("{what} ends before it starts")));
    }
}

fn check_words(field: &str, words: &mut BTreeMap<String, Vec<String>>, faults: &mut Vec<Fault>) {
    for (name, values) in words {
        let field = Field::from(field).item(name);
        if values.is_empty() {
            faults.push(Fault::new(field, "give at least one value"));
        } else {
            check_list(field, values, faults);
        }
    }
}

/// Takes outer spaces away; an empty word is a fault, because without it the rule may match more.
fn check_list(field: Field, words: &mut [String], faults: &mut Vec<Fault>) {
    for word in &mut *words {
        *word = word.trim().to_owned();
    }
    if words.iter().any(String::is_empty) {
        faults.push(Fault::new(field, "expected words, found an empty one"));
    }
}

fn check_numbers(field: &str, numbers: &BTreeMap<String, Range>, faults: &mut Vec<Fault>) {
    for (name, range) in numbers {
        if range.is_empty() || range.min > range.max && range.max.is_some() {
            let detail = "give `min`, `max` or both; `min` must not be above `max`";
            faults.push(Fault::new(Field::from(field).item(name), detail));
        }
    }
}

impl Conditions {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn check(&mut self, field: &str, faults: &mut Vec<Fault>) {
        for (name, words) in [("types", &mut self.types), ("ids", &mut self.ids)] {
            check_list(format!("{field}.{name}").as_str().into(), words, faults);
        }
        if self.ids.len() > MOST_IDS {
            let found = self.ids.len();
            let detail = format!(
                "at most {MOST_IDS} ids, found {found}; give the articles an attribute, and use that instead"
            );
            faults.push(Fault::new(&*format!("{field}.ids"), detail));
        }
        check_words(&format!("{field}.attributes"), &mut self.attributes, faults);
        check_numbers(&format!("{field}.numbers"), &self.numbers, faults);
        if !self.price.is_empty() {
            check_numbers(field, &[("price".to_owned(), self.price)].into(), faults);
        }
    }
}

impl Range {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// NaN is never within.
    fn contains(self, number: f64) -> bool {
        number >= self.min.unwrap_or(f64::NEG_INFINITY) && number <= self.max.unwrap_or(f64::INFINITY)
    }
}

impl When {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn check(&mut self, faults: &mut Vec<Fault>) {
        self.outfit.check("when.outfit", faults);
        check_words("when.features", &mut self.features, faults);
        check_list("when.stores".into(), &mut self.stores, faults);
        check_numbers("when.numbers", &self.numbers, faults);
    }
}

/// When a rule or look applies, and to whom.
#[derive(Debug, Clone)]
pub(crate) struct Audience {
    pub(crate) window: Window,
    /// Folded.
    features: Vec<(String, Vec<String>)>,
    stores: Vec<String>,
    numbers: BTreeMap<String, Range>,
}

impl Audience {
    pub(crate) fn new(when: &When, starts_at: Option<&str>, ends_at: Option<&str>) -> Self {
        let fold_all = |values: &Vec<String>| values.iter().map(|value| fold(value)).collect();
        Self {
            window: window(starts_at, ends_at),
            features: when.features.iter().map(|(name, values)| (name.clone(), fold_all(values))).collect(),
            stores: fold_all(&when.stores),
            numbers: when.numbers.clone(),
        }
    }

    pub(crate) fn has(&self, now: Timestamp, store: Option<&str>, features: &Features) -> bool {
        let Self { window, stores, .. } = self;
        window.contains(&now.millis())
            && (stores.is_empty() || store.is_some_and(|store| stores.contains(&fold(store))))
            && self.features.iter().all(|(name, values)| match features.get(name) {
                Some(FeatureValue::Number(number)) => values.contains(&number.to_string()),
                Some(value) => value.words().iter().any(|word| values.contains(&fold(word))),
                None => false,
            })
            && self.numbers.iter().all(|(name, range)| match features.get(name) {
                Some(FeatureValue::Number(number)) => range.contains(*number),
                _ => false,
            })
    }
}

/// Conditions on articles with their words folded.
#[derive(Debug)]
struct Selector {
    conditions: Conditions,
    ids: HashSet<String>,
    words: Vec<(String, Vec<String>)>,
    /// By attribute of `words`: the synonyms of its words.
    synonyms: Vec<Vec<String>>,
}

impl Selector {
    fn new(conditions: Conditions, catalogue: &Catalogue) -> Self {
        let types = (!conditions.types.is_empty()).then_some(("type", &conditions.types));
        let words = || conditions.attributes.iter().map(|(name, values)| (&**name, values)).chain(types);
        let others = |(name, values): (&str, &Vec<String>)| {
            values.iter().flat_map(|value| catalogue.sets().forms(name, value).split_off(1)).collect()
        };
        let fold = |(name, values): (&str, &Vec<String>)| {
            (name.to_owned(), values.iter().map(|value| fold_for(name, value)).collect())
        };
        let ids = conditions.ids.iter().cloned().collect();
        Self { words: words().map(fold).collect(), synonyms: words().map(others).collect(), ids, conditions }
    }

    fn admits(
        &self,
        catalogue: &Catalogue,
        position: u32,
        packed: &PackedArticle,
        article: &Article,
    ) -> bool {
        let Conditions { price, numbers, new, .. } = &self.conditions;
        let is_named = |id: &str| self.ids.contains(id);
        (self.ids.is_empty()
            || is_named(article.id.as_str())
            || packed.offers().iter().any(|offer| is_named(&offer.variant.id)))
            && new.is_none_or(|new| new == catalogue.is_new(position))
            && (price.is_empty() || price.contains(catalogue.sets().price(position)))
            && numbers
                .iter()
                .all(|(name, range)| number(article, name).is_some_and(|found| range.contains(found)))
            && self.words.iter().zip(&self.synonyms).all(|((name, words), synonyms)| {
                says(article, name, words)
                    || (!synonyms.is_empty()
                        && article.folded_words(name).iter().any(|word| synonyms.contains(&no_go_key(word))))
            })
    }
}

fn says(article: &Article, attribute: &str, words: &[String]) -> bool {
    let flag = article.attribute(attribute).and_then(serde_json::Value::as_bool);
    let flag = flag.map(|flag| if flag { "true" } else { "false" });
    flag.is_some_and(|flag| words.iter().any(|word| word == flag))
        || article.folded_words(attribute).iter().any(|word| words.contains(word))
}

fn number(article: &Article, attribute: &str) -> Option<f64> {
    let value = article.attribute(attribute)?;
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// The parts of a request that a rule's conditions read.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    pub now: Timestamp,
    pub method: Method,
    pub store: Option<&'a str>,
    pub features: &'a Features,
    /// The positions of the outfit's articles.
    pub outfit: &'a [u32],
}

/// A rule with its sets of articles.
#[derive(Debug, Clone)]
pub struct Compiled {
    pub name: RuleName,
    pub digest: RuleDigest,
    pub rule: Rule,
    pub articles: Arc<Mask>,
    pub others: Arc<Mask>,
    outfit: Option<Arc<Mask>>,
    audience: Audience,
}

impl Compiled {
    fn concerns(&self, situation: &Situation<'_>) -> bool {
        let Situation { now, method, store, features, outfit } = *situation;
        let methods = &self.rule.when.methods;
        (methods.is_empty() || methods.contains(&method))
            && self.audience.has(now, store, features)
            && self.outfit.as_ref().is_none_or(|set| meets(set, outfit))
            && (self.rule.effect != Effect::Pair || meets(&self.others, outfit))
    }

    /// Whether it could change the suggestions for a blank of this outfit that these articles may fill, if it concerns the request.
    pub fn could_change(&self, outfit: &[u32], admissible: &Mask) -> bool {
        let sets = [(&self.articles, &self.others), (&self.others, &self.articles)];
        match self.rule.effect {
            Effect::NeverTogether => {
                sets.iter().any(|(one, other)| meets(one, outfit) && other.meets(admissible))
            }
            _ => self.articles.meets(admissible),
        }
    }

    /// The addition to the logits of its articles for their order.
    pub fn offset(&self) -> Option<f32> {
        #[expect(clippy::cast_possible_truncation, reason = "models return float32")]
        self.rule.factor.map(|factor| factor.ln() as f32)
    }
}

/// Whether the set has one of the articles at these positions.
pub fn meets(set: &Mask, articles: &[u32]) -> bool {
    articles.iter().any(|article| set.contains(*article))
}

/// The active rules, compiled for a catalogue, those of the highest priority first.
#[derive(Debug, Default)]
pub struct Rules {
    list: Arc<[(RuleName, Rule)]>,
    compiled: Vec<Compiled>,
    /// By the conditions as JSON.
    sets: HashMap<String, (Arc<Selector>, Arc<Mask>)>,
    /// By the rules that they are of. Most requests are concerned by the same ones.
    offsets: Mutex<HashMap<Vec<usize>, Arc<Offsets>>>,
}

impl Rules {
    /// The active ones of these. What stayed since `before`, which is of another catalogue perhaps, is not looked at again.
    pub fn compile(
        mut list: Vec<(RuleName, Rule)>,
        catalogue: &Catalogue,
        before: Option<(&Self, &Catalogue)>,
    ) -> Self {
        list.retain(|(_, rule)| rule.state == State::Active);
        list.sort_by(|(a, x), (b, y)| y.priority.cmp(&x.priority).then_with(|| a.cmp(b)));
        Self::follow(list.into(), catalogue, before)
    }

    /// These, with a rule as if it were active at every time, or without it, in place of the one of its name.
    pub fn with_rule(&self, name: &RuleName, rule: Option<&Rule>, catalogue: &Catalogue) -> Self {
        let others = self.list.iter().filter(|(other, _)| other != name).cloned();
        let always =
            |rule: &Rule| Rule { state: State::Active, starts_at: None, ends_at: None, ..rule.clone() };
        let own = rule.map(|rule| (name.clone(), always(rule)));
        Self::compile(others.chain(own).collect(), catalogue, Some((self, catalogue)))
    }

    /// The same rules for the next catalogue. Most changes of articles change no rule's sets. `positions` are those of the articles
    /// that are others, if they are known.
    pub fn with_catalogue(
        self: &Arc<Self>,
        before: &Catalogue,
        next: &Catalogue,
        positions: Option<&[u32]>,
    ) -> Arc<Self> {
        let length = |catalogue: &Catalogue| catalogue.sets().present().length();
        if self.is_empty() {
            return Arc::clone(self);
        }
        let stays = |position: &u32| {
            let article = next.any_article(*position).map(|packed| (packed, packed.unpack()));
            self.sets.values().all(|(selector, mask)| {
                let admits = |(packed, article): &(&Arc<PackedArticle>, Article)| {
                    selector.admits(next, *position, packed, article)
                };
                article.as_ref().is_some_and(admits) == mask.contains(*position)
            })
        };
        let stay = || match positions {
            Some(positions) => positions.iter().all(stays),
            None => changed(before, next).iter().all(stays),
        };
        if length(before) == length(next) && before.sets().has_synonyms_of(next.sets()) && stay() {
            return Arc::clone(self);
        }
        Arc::new(Self::follow(Arc::clone(&self.list), next, Some((self, before))))
    }

    fn follow(
        list: Arc<[(RuleName, Rule)]>,
        catalogue: &Catalogue,
        before: Option<(&Self, &Catalogue)>,
    ) -> Self {
        if list.is_empty() {
            return Self::default();
        }
        let length = catalogue.sets().present().length();
        let before = before.filter(|(_, before)| {
            before.sets().present().length() == length && before.sets().has_synonyms_of(catalogue.sets())
        });
        let changed: Vec<u32> = before.map_or(Vec::new(), |(_, before)| changed(before, catalogue));
        let (mut sets, mut fresh) = (HashMap::new(), Vec::new());
        let rules = list.iter().map(|(_, rule)| rule);
        let conditions = rules.flat_map(|rule| [&rule.articles, &rule.others, &rule.when.outfit]);
        for conditions in conditions.filter(|conditions| !conditions.is_empty()) {
            let key = key(conditions);
            if sets.contains_key(&key) {
                continue;
            }
            let kept = before.and_then(|(rules, _)| rules.sets.get(&key));
            let (selector, mut mask) = kept.cloned().unwrap_or_else(|| {
                fresh.push(key.clone());
                (Arc::new(Selector::new(conditions.clone(), catalogue)), Arc::new(Mask::none(length)))
            });
            if kept.is_some() {
                for &position in &changed {
                    let admits = catalogue
                        .any_article(position)
                        .is_some_and(|packed| selector.admits(catalogue, position, packed, &packed.unpack()));
                    if admits != mask.contains(position) {
                        let mask = Arc::make_mut(&mut mask);
                        if admits { mask.insert(position) } else { mask.remove(position) }
                    }
                }
            }
            sets.insert(key, (selector, mask));
        }
        let selectors: Vec<&Selector> = fresh.iter().map(|key| &*sets[key].0).collect();
        for (set, mask) in fresh.iter().zip(select(&selectors, catalogue)) {
            sets.get_mut(set).expect("it was just added").1 = Arc::new(mask);
        }
        let none = Arc::new(Mask::none(length));
        let set = |conditions: &Conditions| sets.get(&key(conditions)).map(|(_, mask)| Arc::clone(mask));
        let compile = |(name, rule): &(RuleName, Rule)| Compiled {
            articles: set(&rule.articles).unwrap_or_else(|| Arc::clone(&none)),
            others: set(&rule.others).unwrap_or_else(|| Arc::clone(&none)),
            outfit: set(&rule.when.outfit),
            audience: Audience::new(&rule.when, rule.starts_at.as_deref(), rule.ends_at.as_deref()),
            digest: name.digest(),
            name: name.clone(),
            rule: rule.clone(),
        };
        let compiled = list.iter().map(compile).collect();
        Self { compiled, list, sets, offsets: Mutex::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.compiled.is_empty()
    }

    pub fn has(&self, name: &str) -> bool {
        self.list.iter().any(|(other, _)| other.as_str() == name)
    }

    /// The rules that concern a request, by their numbers.
    pub fn matching(&self, situation: &Situation<'_>) -> Vec<usize> {
        let all = self.compiled.iter().enumerate();
        all.filter(|(_, rule)| rule.concerns(situation)).map(|(number, _)| number).collect()
    }

    /// When rules begin or end to count next.
    pub fn next_change(&self, now: Timestamp) -> Option<i64> {
        next_change(self.compiled.iter().map(|rule| &rule.audience), now)
    }

    pub fn get(&self, number: usize) -> &Compiled {
        &self.compiled[number]
    }

    /// The sum of what some boosts and buries add.
    pub fn offsets(&self, of: Vec<usize>) -> Arc<Offsets> {
        let mut kept = self.offsets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offsets) = kept.get(&of) {
            return Arc::clone(offsets);
        }
        let rules = of.iter().map(|number| self.get(*number));
        let sets: Vec<(&Mask, f32)> =
            rules.filter_map(|rule| Some((&*rule.articles, rule.offset()?))).collect();
        let length = sets.first().map_or(0, |(set, _)| set.length());
        let offsets = Arc::new(Offsets::new(length, sets));
        if kept.len() == KEPT_OFFSETS {
            kept.clear();
        }
        kept.insert(of, Arc::clone(&offsets));
        offsets
    }
}

pub(crate) fn next_change<'a>(audiences: impl Iterator<Item = &'a Audience>, now: Timestamp) -> Option<i64> {
    let times = audiences.flat_map(|Audience { window, .. }| [window.start, window.end]);
    times.filter(|time| *time > now.millis()).min()
}

fn key(conditions: &Conditions) -> String {
    serde_json::to_string(conditions).expect("conditions are plain JSON")
}

/// The positions whose articles are others, or are in the shop in only one of the catalogues.
fn changed(before: &Catalogue, next: &Catalogue) -> Vec<u32> {
    let differ = |position: &u32| {
        let article = |catalogue: &Catalogue| catalogue.any_article(*position).map(Arc::as_ptr);
        let is_present = |catalogue: &Catalogue| catalogue.sets().present().contains(*position);
        article(before) != article(next) || is_present(before) != is_present(next)
    };
    positions(next).filter(differ).collect()
}

fn positions(catalogue: &Catalogue) -> std::ops::Range<u32> {
    0..u32::try_from(catalogue.sets().present().length()).expect("articles are counted in 32 bits")
}

/// The articles that each selector admits. All look at an article together, since unpacking it takes longest.
fn select(selectors: &[&Selector], catalogue: &Catalogue) -> Vec<Mask> {
    let mut masks = vec![Mask::none(catalogue.sets().present().length()); selectors.len()];
    if selectors.is_empty() {
        return masks;
    }
    let admitting = |position: u32| {
        let Some(packed) = catalogue.any_article(position) else { return Vec::new() };
        let article = packed.unpack();
        let selectors = selectors.iter().enumerate();
        let admitting =
            selectors.filter(|(_, selector)| selector.admits(catalogue, position, packed, &article));
        admitting.map(|(number, _)| number).collect()
    };
    let found: Vec<Vec<usize>> = positions(catalogue).into_par_iter().map(admitting).collect();
    for (position, numbers) in (0..).zip(found) {
        for number in numbers {
            masks[number].insert(position);
        }
    }
    masks
}

/// How many of the shop's articles a rule matches now, and what may be wrong with it next to the others.
pub(crate) fn review(
    name: &RuleName,
    rule: &Rule,
    others: &Rules,
    catalogue: &Catalogue,
    schema: &Schema,
) -> (usize, Vec<Warning>) {
    let active = Rule { state: State::Active, ..rule.clone() };
    let own = Rules::compile(vec![(name.clone(), active)], catalogue, None);
    let (own, sets) = (own.get(0), catalogue.sets());
    let articles = own.articles.count_common(sets.present());
    let mut warnings = Vec::new();
    let mut warn = |code, detail: String| warnings.push(Warning::new(code, detail));
    if articles == 0 {
        warn("no-articles", "none of the shop's articles meets `articles`; check the spelling".into());
    }
    if rule.effect.about().takes == "others" && own.others.is_empty() {
        warn("no-articles", "none of the shop's articles meets `others`; check the spelling".into());
    }
    let named = rule.when.features.keys().chain(rule.when.numbers.keys());
    for feature in named.filter(|name| !schema.features().iter().any(|feature| feature.name == **name)) {
        warn("unknown-feature", format!("the live release's schema has no feature {feature:?}"));
    }
    if matches!(rule.effect, Effect::Pin | Effect::Pair | Effect::Quota) && articles > 0 {
        let mut rest = Mask::clone(&own.articles);
        rest.intersect(sets.present());
        rest.subtract(sets.out_of_stock());
        if rest.is_empty() {
            warn("out-of-stock", "all of its articles are out of stock".into());
        }
    }
    for other in others.compiled.iter().filter(|other| other.name != *name) {
        let meet = other.articles.meets(&own.articles);
        if rule.place().is_some() && rule.place() == other.rule.place() {
            warn("same-rank", format!("rule {:?} claims the same rank", other.name));
        }
        let excludes = [(own, other), (other, own)].into_iter().any(|(one, other)| {
            one.rule.effect == Effect::Exclude && other.rule.effect != Effect::Exclude && meet
        });
        if excludes {
            warn(
                "excluded",
                format!(
                    "rule {:?} and this one contradict each other: one excludes the other's articles",
                    other.name
                ),
            );
        }
    }
    (articles, warnings)
}
