//! A customer's features as models and filters take them. A profile keeps its last reading for the next request that
//! gives the same features of its own.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use atelier_core::domain::{ArticleId, Feature, FeatureValue, Features, HAD, Kind, Mask, Schema};
use atelier_engine::{
    catalogue::{Catalogue, Needs, NoGos},
    inference::Context,
};

use super::{
    Served,
    prepare::{Draft, MOST_WARNINGS, Warning},
};
use crate::platform::fault::Field;

/// The most bytes of features of which a profile keeps what was made: what is kept is a few times as large.
const MOST_KEPT: usize = 4096;
/// As many articles as training gives a model of a customer.
const MOST_HAD: usize = 500;

/// A customer's stored features and purchases, and what was last made of them: it is dropped with them, so a limit on profiles
/// holds for both.
#[derive(Debug, Default)]
pub struct Stored {
    pub features: Features,
    /// The ids of the articles that they bought and did not send back, the latest first.
    pub bought: Vec<String>,
    last: Mutex<Option<Arc<Reading>>>,
}

impl Stored {
    pub fn new(features: Features, bought: Vec<String>) -> Self {
        Self { features, bought, last: Mutex::default() }
    }

    /// The positions of the articles that they own, without those of types that people buy again.
    pub fn owned(&self, served: Served<'_>) -> Vec<u32> {
        let of_type = |kind: &String| served.catalogue.sets().of_named_type(kind);
        let again: Vec<Mask> = served.bought_again.iter().filter_map(of_type).collect();
        let owned = self.bought.iter().filter_map(|id| served.catalogue.position_of(id));
        owned.filter(|position| !again.iter().any(|of_type| of_type.contains(*position))).collect()
    }

    /// The last reading, if it is of the same features and catalogue, which is of one release.
    fn last(&self, served: Served<'_>, given: Option<&Features>) -> Option<Arc<Reading>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        // The weak pointer keeps the address from another catalogue.
        let is_same =
            last.catalogue.as_ptr() == Arc::as_ptr(served.catalogue) && last.given.as_ref() == given;
        is_same.then_some(last)
    }

    fn keep(&self, reading: &Arc<Reading>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(reading));
    }
}

/// A request's features as a release and a catalogue read them.
#[derive(Debug)]
pub(super) struct Reading {
    catalogue: Weak<Catalogue>,
    given: Option<Features>,
    pub(super) context: Context,
    /// The features behind the context, by name.
    pub(super) features: Features,
    pub(super) no_gos: NoGos,
    pub(super) needs: Needs,
    /// See [`Stored::owned`].
    pub(super) owned: Vec<u32>,
    warnings: Vec<Warning>,
    /// How many more warnings there are.
    pub(super) left_out: usize,
}

impl Reading {
    /// Of the profile and the request's features. Comes before all other warnings.
    pub(super) fn of(draft: &mut Draft<'_>) -> Arc<Self> {
        let (served, request) = (draft.served, draft.request);
        let last = request.stored.as_ref().and_then(|stored| stored.last(served, request.given.as_ref()));
        if let Some(last) = last {
            draft.warnings.extend_from_slice(&last.warnings);
            return last;
        }
        let faults = draft.faults.len();
        let reading = Arc::new(Self::new(draft));
        if let Some(stored) = &request.stored
            && draft.faults.len() == faults
            && size(&reading.features) <= MOST_KEPT
        {
            stored.keep(&reading);
        }
        reading
    }

    fn new(draft: &mut Draft<'_>) -> Self {
        let (served, request) = (draft.served, draft.request);
        let schema = served.serving.release().schema();
        let given = request.given.clone().unwrap_or_default();
        let mut stored = request.stored.as_ref().map(|stored| stored.features.clone()).unwrap_or_default();
        let bought = request.stored.as_ref().map(|stored| &stored.bought[..]).unwrap_or_default();
        add_purchases(schema, &mut stored, bought);
        let mut features = stored.overridden_by(given.clone());
        name_articles(schema, &mut features, |id| {
            let article = served.catalogue.any_article(served.catalogue.position_of(id)?)?;
            Some(article.id.clone())
        });
        let encoding = match schema.encode(&features) {
            Ok(encoding) => encoding,
            Err(found) => {
                for error in found {
                    if given.get(&error.name).is_some() {
                        let field = Field::from("features").item(&error.name);
                        draft.refuse(field, error.to_string());
                    } else {
                        // A profile may be older than the schema, so this is not the caller's mistake.
                        let detail = format!("in the stored profile, {error}; models do not see it");
                        draft.warn("profile-not-understood", detail, [error.name.as_str()]);
                    }
                    features.remove(&error.name);
                }
                schema.encode(&features).expect("invalid features were removed")
            }
        };
        for warning in encoding.warnings.iter().take(MOST_WARNINGS) {
            draft.warn(warning.code(), warning.to_string(), [warning.feature()]);
        }
        Self {
            catalogue: Arc::downgrade(served.catalogue),
            given: request.given.clone(),
            context: encoding.indices.into(),
            no_gos: NoGos::new(schema, &features, served.catalogue.sets()),
            owned: request.stored.as_ref().map(|stored| stored.owned(served)).unwrap_or_default(),
            needs: served.catalogue.sets().supply().needs(&features),
            features,
            warnings: draft.warnings.clone(),
            left_out: encoding.warnings.len().saturating_sub(MOST_WARNINGS),
        }
    }
}

/// Adds what the customer bought to what they had. Models see the articles that the schema lists.
fn add_purchases(schema: &Schema, features: &mut Features, bought: &[String]) {
    let Some(had) = schema.feature(HAD).filter(|had| had.kind == Kind::Set) else { return };
    let before = features.get(HAD).map(FeatureValue::words).unwrap_or_default();
    let more = bought.iter().filter(|id| had.has_value(id) && !before.contains(id)).take(MOST_HAD);
    let all: Vec<String> = before.iter().chain(more).cloned().collect();
    if all.len() > before.len() {
        features.insert(HAD.to_owned(), FeatureValue::Many(all));
    }
}

/// About how many bytes features take.
fn size(features: &Features) -> usize {
    let word = |word: &String| size_of::<String>() + word.len();
    let feature = |(name, value): (&str, &FeatureValue)| {
        size_of::<(String, FeatureValue)>() + name.len() + value.words().iter().map(word).sum::<usize>()
    };
    features.iter().map(feature).sum()
}

/// Names the articles of the variants in features whose values are articles, such as what a customer had.
fn name_articles(schema: &Schema, features: &mut Features, article_of: impl Fn(&str) -> Option<ArticleId>) {
    let of_articles = |feature: &&Feature| {
        let first = feature.values.first();
        first.is_some_and(|value| article_of(value).is_some_and(|article| article.as_str() == value))
    };
    for feature in schema.features().iter().filter(of_articles) {
        let Some(FeatureValue::Many(words)) = features.get(&feature.name) else { continue };
        let article = |word: &String| if feature.has_value(word) { None } else { article_of(word) };
        let named: Vec<Option<ArticleId>> = words.iter().map(article).collect();
        if named.iter().any(Option::is_some) {
            let named = words.iter().zip(named).map(|(word, article)| match article {
                Some(article) => article.to_string(),
                None => word.clone(),
            });
            let named = FeatureValue::Many(named.collect());
            features.insert(feature.name.clone(), named);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_customer_had_may_be_variants() {
        let feature = |name: &str, values: &str| {
            format!("[[feature]]\nname = \"{name}\"\nkind = \"set\"\nvalues = [{values}]\n")
        };
        let schema =
            format!("name = \"s\"\n{}{}", feature("had", "\"a\", \"b\""), feature("avoids", "\"wool\""));
        let schema = Schema::parse(&schema).unwrap();
        let many = |words: [&str; 3]| FeatureValue::Many(words.map(str::to_owned).to_vec());
        let given = many(["b", "a-M", "gone"]);
        let given = [("had".to_owned(), given.clone()), ("avoids".to_owned(), given)];
        let mut features: Features = given.into_iter().collect();
        let article_of = |id: &str| {
            ArticleId::new(id.split('-').next()?).ok().filter(|id| ["a", "b"].contains(&id.as_str()))
        };
        name_articles(&schema, &mut features, article_of);
        assert_eq!(features.get("had"), Some(&many(["b", "a", "gone"])));
        assert_eq!(features.get("avoids"), Some(&many(["b", "a-M", "gone"])), "its values are no articles");
    }
}
