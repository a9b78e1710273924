//! Puts the variants of an article together.

use std::{
    collections::{HashMap, HashSet, VecDeque, hash_map::Entry},
    mem,
};

use atelier_core::domain::fold;
use serde_json::{Map, Value};

use crate::{
    Warning,
    json::{Fields, size},
    row::Bad,
};

/// The age groups of Google and Shopify that are not adults, folded.
const CHILDREN: [&str; 8] =
    ["newborn", "newborns", "infant", "babies", "toddler", "toddlers", "kids", "children"];
/// The most bytes of articles whose variants may still come. Feeds of Google's name variants in any order.
const MOST_BYTES: usize = 1 << 30;

/// An article in one size.
pub(super) struct Variant {
    /// Its fields in the article's list of variants, with its id.
    pub(super) fields: Map<String, Value>,
    /// The id of the article.
    pub(super) article: String,
    pub(super) kind: String,
    /// The group that the entry names; without one it is an article of its own.
    pub(super) group: Option<String>,
    /// The entry's id, if it has neither size nor colour: variants may name it as their group, and then it is their parent.
    pub(super) parent: Option<String>,
    /// Whether no variants of earlier articles follow.
    pub(super) completes_others: bool,
    /// Whether it can be bought now, if the feed says so.
    pub(super) in_stock: Option<bool>,
    /// The feed's word for a variant that can only be ordered.
    pub(super) later: Option<&'static str>,
    /// Attributes that all variants of an article share.
    pub(super) shared: Vec<(&'static str, Value)>,
    /// Attributes that each variant has its own of, such as its page. Those of the first are kept.
    pub(super) own: Vec<(&'static str, Value)>,
    pub(super) warning: Option<Warning>,
}

/// A complete article, at the line of its first variant.
pub(super) struct Article {
    pub(super) line: u64,
    pub(super) fields: Fields,
    pub(super) warnings: Vec<Warning>,
}

/// The articles whose variants may still come, and those that are complete.
#[derive(Default)]
pub(super) struct Variants {
    open: Vec<Group>,
    /// The indices of their articles in `open`, by their groups and ids. Two groups with the same id are two articles, which the
    /// check of repeated ids refuses.
    by_article: HashMap<(String, String), usize>,
    /// Entries that are parents if one of `groups` has their id.
    parents: Vec<(u64, Variant)>,
    /// The groups of the variants that are no such entries, and whether some variant has a size or a colour.
    groups: HashMap<String, bool>,
    left_out: u64,
    bytes: usize,
    complete: VecDeque<Article>,
}

struct Group {
    line: u64,
    first: Variant,
    variants: Vec<Value>,
    /// The ids of the variants, of which a group may have as many as a feed has entries.
    ids: HashSet<String>,
    warnings: Vec<Warning>,
}

impl Variants {
    /// Gives a reason if the variant is one that its article has. An error ends the file.
    pub(super) fn add(&mut self, line: u64, variant: Variant) -> Result<Option<Bad>, String> {
        let mut refusal = None;
        if variant.completes_others {
            self.complete();
        }
        if variant.parent.is_some() {
            self.bytes += variant.bytes();
            self.parents.push((line, variant));
        } else {
            if let Some(group) = &variant.group {
                let differs = variant.fields.contains_key("size") || variant.has_colour();
                *self.groups.entry(group.clone()).or_default() |= differs;
            }
            refusal = self.put(line, variant);
        }
        if self.bytes > MOST_BYTES {
            return Err(format!(
                "the variants of the articles so far take more than {} GiB; split the feed",
                MOST_BYTES >> 30
            ));
        }
        Ok(refusal)
    }

    fn put(&mut self, line: u64, variant: Variant) -> Option<Bad> {
        let Some(group) = variant.group.clone() else {
            self.complete.push_back(Group::new(line, variant).into_article());
            return None;
        };
        self.bytes += variant.bytes();
        match self.by_article.entry((group, variant.article.clone())) {
            Entry::Occupied(entry) => self.open[*entry.get()].add(line, variant),
            Entry::Vacant(entry) => {
                entry.insert(self.open.len());
                self.open.push(Group::new(line, variant));
                None
            }
        }
    }

    /// Completes all articles: no other variants follow.
    pub(super) fn complete(&mut self) {
        let groups = mem::take(&mut self.groups);
        for (line, variant) in mem::take(&mut self.parents) {
            let of = variant.parent.as_ref().and_then(|id| groups.get(id));
            // One that names itself may be a variant like the others, which differ in something else.
            if of.is_some_and(|differ| *differ || variant.group.is_none()) {
                self.left_out += 1;
            } else {
                self.put(line, variant);
            }
        }
        self.by_article.clear();
        self.bytes = 0;
        self.complete.extend(mem::take(&mut self.open).into_iter().map(Group::into_article));
    }

    /// How many entries were parents of others.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    pub(super) fn next(&mut self) -> Option<Article> {
        self.complete.pop_front()
    }
}

impl Variant {
    fn has_colour(&self) -> bool {
        self.shared.iter().any(|(name, _)| *name == "colour")
    }

    fn bytes(&self) -> usize {
        let attributes =
            self.shared.iter().chain(&self.own).map(|(_, value)| value).chain(self.fields.values());
        self.article.len() + self.kind.len() + attributes.map(|value| 32 + size(value)).sum::<usize>()
    }
}

impl Group {
    fn new(line: u64, mut first: Variant) -> Self {
        let fields = mem::take(&mut first.fields);
        let ids = fields.get("id").and_then(Value::as_str).map(str::to_owned).into_iter().collect();
        let warnings = first.warning.take().into_iter().collect();
        Self { line, first, variants: vec![fields.into()], ids, warnings }
    }

    /// Adds a variant. Where it disagrees, the first is right about the article, and a warning says so.
    fn add(&mut self, line: u64, variant: Variant) -> Option<Bad> {
        let Variant { mut fields, kind, in_stock, later, shared, own, warning, .. } = variant;
        let id = fields.get("id").and_then(Value::as_str).unwrap_or_default();
        if !self.ids.insert(id.to_owned()) {
            let of = &self.first.article;
            let reason = format!(
                "two variants of article {of:?} have the id {id:?}; give each an id of its own, in Shopify a SKU"
            );
            return Some(Bad { reason, ids: vec![of.clone()] });
        }
        // The type is the first variant's, so a number without a name matters only there.
        let warning = warning.filter(|warning| !matches!(warning, Warning::Category(_)));
        self.warnings.extend(warning.filter(|warning| !self.warnings.contains(warning)));
        if kind != self.first.kind {
            let (kept, found) = (self.first.kind.clone().into(), kind.into());
            self.disagree("type", line, &kept, &found);
        }
        for (name, value) in shared {
            match self.first.shared.iter().find(|(other, _)| *other == name) {
                None => self.first.shared.push((name, value)),
                Some((_, kept)) if *kept == value => {}
                Some((_, kept)) => {
                    let kept = kept.clone();
                    self.disagree(name, line, &kept, &value);
                    fields.entry(name).or_insert(value);
                }
            }
        }
        for (name, value) in own {
            if self.first.own.iter().all(|(other, _)| *other != name) {
                self.first.own.push((name, value));
            }
        }
        // `Some(true)` is the greatest, and `None` the least.
        self.first.in_stock = self.first.in_stock.max(in_stock);
        self.first.later = self.first.later.or(later);
        self.variants.push(fields.into());
        None
    }

    fn disagree(&mut self, attribute: &'static str, line: u64, kept: &Value, found: &Value) {
        let known = |warning: &Warning| matches!(warning, Warning::Variants { attribute: other, .. } if *other == attribute);
        if !self.warnings.iter().any(known) {
            let (kept, found) = (kept.to_string(), found.to_string());
            self.warnings.push(Warning::Variants { attribute, line, kept, found });
        }
    }

    fn into_article(self) -> Article {
        let Self { line, first, variants, warnings, .. } = self;
        let mut fields = vec![("id", first.article.into()), ("type", first.kind.into())];
        fields.extend(first.shared.into_iter().chain(first.own));
        if let Some(in_stock) = first.in_stock {
            fields.push(("in_stock", in_stock.into()));
            if let Some(later) = first.later.filter(|_| !in_stock) {
                fields.push(("availability", later.into()));
            }
        }
        fields.push(("variants", variants.into()));
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Article { line, fields, warnings }
    }
}

/// The id of an article that comes in several colours: each is an article of its own. Likewise of a variant without an id.
pub(super) fn colour_id(group: &str, colour: Option<&str>) -> String {
    let words: Vec<String> = colour
        .unwrap_or_default()
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    if words.is_empty() { group.to_owned() } else { format!("{group}-{}", words.join("-")) }
}

/// Who wears an article, in the words of the default schema. Feeds say `female` and `male` of the articles, as the schema
/// does of customers. What is for children fits no adult.
pub(super) fn read_gender(gender: &str, age_group: Option<&str>) -> String {
    let is_for_children = age_group.is_some_and(|group| CHILDREN.contains(&fold(group).as_str()));
    let wearer = |word: &str| match (fold(word).as_str(), is_for_children) {
        ("female" | "women", false) => "women".to_owned(),
        ("male" | "men", false) => "men".to_owned(),
        ("unisex", false) => "unisex".to_owned(),
        ("female" | "women", true) => "girls".to_owned(),
        ("male" | "men", true) => "boys".to_owned(),
        ("unisex", true) => "kids".to_owned(),
        _ => word.to_owned(),
    };
    // A list of Shopify's has semicolons.
    let wearers = gender.split([';', ',']).map(str::trim).filter(|word| !word.is_empty()).map(wearer);
    wearers.collect::<Vec<_>>().join(", ")
}

/// The last part of a path such as `Women > Coats > Parkas`.
pub(super) fn last_of_path(path: &str) -> Option<&str> {
    path.rsplit('>').map(str::trim).find(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gender_is_in_the_schemas_words() {
        for (gender, age_group, wearer) in [
            ("female", None, "women"),
            ("Male", Some("adult"), "men"),
            ("unisex", Some("adult"), "unisex"),
            ("female", Some("Kids"), "girls"),
            ("male", Some("toddler"), "boys"),
            ("unisex", Some("infant"), "kids"),
            ("Female; Male", None, "women, men"),
            ("Damen", None, "Damen"),
        ] {
            assert_eq!(read_gender(gender, age_group), wearer, "{gender} {age_group:?}");
        }
    }
}
