//! Changes of stored articles and customers, as a JSON Merge Patch (RFC 7396) describes them: what it names replaces the
//! stored value, null removes it, and everything else stays.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Article, ArticleError, ArticleId, Customer, CustomerId, Features,
    article::{ALL_SIZES, IN_STOCK, PRICE, STOCK},
    stock::read_stock,
    variant::{self, VARIANTS, Variant},
};

/// A change of an article or of one of its variants, which may also add an article.
#[derive(Debug, Clone, PartialEq)]
pub struct ArticlePatch {
    pub id: ArticleId,
    /// `None` keeps the type.
    pub kind: Option<String>,
    /// Attributes to set, or with null to remove. An object is merged into a stored object.
    pub attributes: Map<String, Value>,
}

/// A change of a customer's features, which may also add a customer.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomerPatch {
    pub id: CustomerId,
    pub set: Features,
    pub remove: Vec<String>,
}

/// Why an article cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error("there is no article {0:?} in the catalogue, and without a type it cannot be added")]
    Untyped(ArticleId),
    #[error(transparent)]
    Article(#[from] ArticleError),
}

impl ArticlePatch {
    /// The changed article; a new one if there is none yet. If the stored one has another id, the patch is of its variant.
    pub fn apply(&self, stored: Option<Article>) -> Result<Article, PatchError> {
        if let Some(article) = stored.as_ref().filter(|article| article.id != self.id) {
            return Ok(self.apply_to_variant(article)?);
        }
        let (stored_kind, mut attributes) = match stored {
            Some(article) => (Some(article.kind().to_owned()), article.kept_attributes().into_owned()),
            None => (None, Map::new()),
        };
        let kind = self.kind.clone().or(stored_kind).ok_or_else(|| PatchError::Untyped(self.id.clone()))?;
        let mut change = Cow::Borrowed(&self.attributes);
        let variants = attributes.get(VARIANTS).map(variant::parse).unwrap_or_default();
        let says_stock = variant::say_stock(&variants);
        let says_price = variants.iter().any(|variant| variant.price.is_some());
        let has_sizes = !variant::sizes(&variants).is_empty();
        let derived =
            [(STOCK, says_stock), (IN_STOCK, says_stock), (PRICE, says_price), (ALL_SIZES, has_sizes)];
        let derived = derived.into_iter().filter(|(_, is_derived)| *is_derived).map(|(name, _)| name);
        if self.attributes.contains_key(VARIANTS) {
            derived.for_each(|name| drop(attributes.remove(name)));
        } else {
            // The article and one of its variants may have one id, and what is sold is the variant.
            let own = variants.iter().any(|variant| variant.id == self.id.as_str()).then_some(&self.id);
            let is_of_all = |name: &&str| *name != STOCK && *name != ALL_SIZES;
            let theirs: Vec<&str> = if own.is_some() {
                vec![STOCK, IN_STOCK, PRICE]
            } else {
                derived.clone().filter(is_of_all).collect()
            };
            if let Some(name) =
                derived.into_iter().find(|name| change.contains_key(*name) && !theirs.contains(name))
            {
                let reason =
                    format!("the {name} of this article follows from its variants: change them by their ids");
                return Err(ArticleError::Attribute { name, reason }.into());
            }
            let of_variants =
                theirs.iter().filter_map(|name| Some(((*name).to_owned(), change.get(*name)?.clone())));
            change_variants(&mut attributes, own, &of_variants.collect())?;
            change.to_mut().retain(|name, _| name == PRICE || !theirs.contains(&name.as_str()));
        }
        merge(&mut attributes, &change);
        let mut article = Article::new(self.id.clone(), kind, attributes)?;
        article.normalise()?;
        Ok(article)
    }
}

impl ArticlePatch {
    /// The ids of the variants that the article is to have, if it says so.
    pub fn variant_ids(&self) -> Option<impl Iterator<Item = Cow<'_, str>>> {
        self.attributes.get(VARIANTS).map(variant::ids)
    }

    fn apply_to_variant(&self, article: &Article) -> Result<Article, ArticleError> {
        let refuse = |name, reason: String| Err(ArticleError::Attribute { name, reason });
        let Self { id, kind, attributes: change } = self;
        if kind.as_deref().is_some_and(|kind| kind != article.kind()) {
            let reason = format!(
                "{id:?} is a variant of article {:?}, whose type is {:?}",
                article.id,
                article.kind()
            );
            return refuse("type", reason);
        }
        if let Some(name) = [VARIANTS, ALL_SIZES].into_iter().find(|name| change.contains_key(*name)) {
            return refuse(
                name,
                format!("{id:?} is a variant of article {:?}, and has no {name}", article.id),
            );
        }
        let mut attributes = article.kept_attributes().into_owned();
        change_variants(&mut attributes, Some(id), change)?;
        let mut article = Article::new(article.id.clone(), article.kind(), attributes)?;
        article.normalise()?;
        Ok(article)
    }
}

/// Changes the variant of an article with this id, or all of them. `in_stock` is what a file of stock says.
fn change_variants(
    attributes: &mut Map<String, Value>,
    id: Option<&ArticleId>,
    change: &Map<String, Value>,
) -> Result<(), ArticleError> {
    let flag = change.get(IN_STOCK).filter(|flag| !flag.is_null());
    let in_stock = flag.map(read_stock).transpose();
    let in_stock = in_stock.map_err(|reason| ArticleError::Attribute { name: IN_STOCK, reason })?;
    let list = attributes.get_mut(VARIANTS).and_then(Value::as_array_mut).into_iter().flatten();
    for variant in list.filter(|variant| id.is_none_or(|id| variant["id"] == id.as_str())) {
        let mut change = change.clone();
        change.remove(IN_STOCK);
        let is_there = Variant::deserialize(&*variant).is_ok_and(|variant| variant.is_in_stock(None));
        match in_stock {
            Some(false) => drop(change.insert(STOCK.to_owned(), false.into())),
            Some(true) if !is_there => drop(change.entry(STOCK).or_insert(true.into())),
            _ => {}
        }
        if let Value::Object(variant) = variant {
            merge(variant, &change);
        }
    }
    Ok(())
}

impl CustomerPatch {
    /// The changed customer; a new one if there is none yet.
    pub fn apply(&self, stored: Option<Customer>) -> Customer {
        let mut features = stored.map(|customer| customer.features).unwrap_or_default();
        for name in &self.remove {
            features.remove(name);
        }
        Customer { id: self.id.clone(), features: features.overridden_by(self.set.clone()) }
    }
}

fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match value {
            Value::Null => {
                target.remove(name);
            }
            Value::Object(inner) => {
                let field = target.entry(name.as_str()).or_insert(Value::Null);
                if !field.is_object() {
                    *field = Value::Object(Map::new());
                }
                merge(field.as_object_mut().expect("it is an object by now"), inner);
            }
            value => {
                target.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The examples of RFC 7396 whose target and patch are objects.
    #[test]
    fn patches_are_merged_as_the_standard_says() {
        for (target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut merged = target.as_object().unwrap().clone();
            merge(&mut merged, patch.as_object().unwrap());
            assert_eq!(Value::Object(merged), expected, "{patch}");
        }
    }
}
