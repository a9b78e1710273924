//! The request body of `/complete`, and the parts that `/compare` and `/score` share with it.

use std::{collections::BTreeMap, sync::Arc};

use atelier_core::{
    domain::{ArticleId, ArticlePatch, CustomerId, Features, MAX_SLOTS, Method, Timestamp},
    util::{
        json_fields::{read_integer, read_object, read_optional_integer, read_present},
        json_pointer::step,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    completion::{Filters, MAX_K, MAX_SETS, Request, Sets},
    customers::features,
    people::{
        gate::Reader,
        visitors::{drop_unknown, read_customer},
    },
    platform::{
        fault::ServiceError,
        http::{
            AppState, Finding, Problem, fault,
            problem::value_or_finding,
            schema::{
                ArticleIdSchema, CustomerIdSchema, FeaturesSchema, InStockSchema, MethodNameSchema,
                PriceSchema, StockSchema, field_names, slots, types_by_slot,
            },
        },
    },
    releases::{LiveRelease, routing::Route},
};

pub(crate) const DEFAULT_K: usize = 5;
/// The most suggestions of an answer to a page.
const MOST_OF_A_PAGE: usize = 8;

/// An outfit to complete.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the contract")]
#[schema(as = Complete, example = json!({
    "features": {"gender": "female", "age": 34}, "outfit": ["a-00134", null, "a-00568", "a-00259"], "k": 3,
    "filters": {"types": {"1": ["coat", "blazer"]}, "price": {"max": 300}},
}))]
pub(crate) struct CompleteBody {
    /// The customer's id. Their profile must be stored, unless there are `features`, even `{}`.
    #[schema(value_type = Option<CustomerIdSchema>)]
    pub(crate) customer: Option<String>,
    /// Features of the customer or the occasion, by name. They override the profile.
    #[serde(default, deserialize_with = "read_present")]
    #[schema(value_type = FeaturesSchema)]
    pub(crate) features: Option<Map<String, Value>>,
    #[schema(schema_with = slots)]
    pub(crate) outfit: Vec<Option<String>>,
    /// The method that answers; by default, the service's default method or an experiment's arm.
    #[schema(value_type = Option<MethodNameSchema>)]
    pub(crate) method: Option<String>,
    /// Number of suggestions for each blank; 5 by default.
    #[schema(minimum = 1, maximum = 250)]
    #[serde(default, deserialize_with = "read_optional_integer")]
    pub(crate) k: Option<usize>,
    #[serde(default, deserialize_with = "read_object")]
    pub(crate) filters: FiltersBody,
    /// From 0, the most probable articles, to 1, articles as different from each other as possible.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub(crate) diversity: f64,
    /// Return each suggestion's probability over all articles that the method knows. It takes a pass over all of them, where
    /// a filter leaves few.
    #[serde(default)]
    pub(crate) probability: bool,
    /// Return each suggestion's share over what it is for an unknown customer, for the same outfit and occasion.
    #[serde(default)]
    pub(crate) lift: bool,
    /// Return the features and articles that changed each suggestion's share most.
    #[serde(default)]
    pub(crate) explain: bool,
    /// Number of outfits to return with all blanks filled together, the most probable first; 0 by default.
    #[serde(default, deserialize_with = "read_integer")]
    #[schema(minimum = 0, maximum = 16)]
    pub(crate) sets: usize,
    /// Return only sets that differ from every better one in at least half of the articles for their blanks. There may be
    /// fewer than `sets`.
    #[serde(default)]
    pub(crate) distinct_sets: bool,
    /// Suggest at most one article of each type, for a blank and in a set, and none of a type that the outfit has: for a basket. A
    /// set may then have fewer articles than there are blanks.
    #[serde(default)]
    pub(crate) one_per_type: bool,
    /// Leave out articles of the outfit that do not exist, with the warning `unknown-article`. They are errors otherwise.
    #[serde(default)]
    pub(crate) skip_unknown: bool,
    /// Price and stock of up to 50 articles or variants, by id, for this answer only: as a PATCH of each would store them. An
    /// article's `in_stock` follows from its `stock` here. Ids that do not exist get the warning `unknown-article`.
    #[serde(default, deserialize_with = "read_object")]
    #[schema(value_type = BTreeMap<String, Offer>)]
    pub(crate) live: LiveBody,
    /// Whether the shop's rules apply. A key needs the scope `rules` to go without.
    #[serde(default = "applies")]
    pub(crate) rules: bool,
    #[serde(default, deserialize_with = "read_present")]
    #[schema(schema_with = field_names)]
    pub(crate) fields: Option<Vec<String>>,
}

pub(crate) fn applies() -> bool {
    true
}

pub(crate) type LiveBody = BTreeMap<String, Offer>;

/// An article's current offer.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Offer {
    #[schema(value_type = Option<PriceSchema>)]
    price: Option<Value>,
    #[schema(value_type = Option<StockSchema>)]
    stock: Option<Value>,
    #[schema(value_type = Option<InStockSchema>)]
    in_stock: Option<Value>,
}

/// The most entries of `live`, each of which changes sets of articles.
const MOST_LIVE: usize = 50;

/// The release with the caller's prices and stock, and the articles that these are of.
pub(crate) fn read_live(
    offers: LiveBody,
    live: Arc<LiveRelease>,
) -> Result<(Arc<LiveRelease>, Vec<ArticleId>), Problem> {
    if offers.is_empty() {
        return Ok((live, Vec::new()));
    }
    if offers.len() > MOST_LIVE {
        let detail = format!("at most {MOST_LIVE} articles can be live, found {}", offers.len());
        return Err(Problem::invalid(vec![Finding::at("/live", detail)]));
    }
    let mut findings = Vec::new();
    let changes: Vec<ArticlePatch> = offers
        .into_iter()
        .filter_map(|(id, offer)| {
            let pointer = || format!("/live{}", step(&id));
            let id = value_or_finding(ArticleId::new(&id), pointer, &mut findings)?;
            let follows = offer.stock.is_some() && offer.in_stock.is_none();
            let in_stock = offer.in_stock.or(follows.then_some(Value::Null));
            let said = [("price", offer.price), ("stock", offer.stock), ("in_stock", in_stock)];
            let attributes = said.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Some(ArticlePatch { id, kind: None, attributes: attributes.collect() })
        })
        .collect();
    if !findings.is_empty() {
        return Err(Problem::invalid(findings));
    }
    let at_the_moment =
        live.with_changes(&changes).map_err(|faults| fault::problem(ServiceError::Faults(faults)))?;
    Ok((Arc::new(at_the_moment), changes.into_iter().map(|change| change.id).collect()))
}

/// Which articles may be suggested. Filters apply before the choice, so there are k suggestions if k articles pass.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = Filters)]
pub(crate) struct FiltersBody {
    #[schema(schema_with = types_by_slot)]
    types: BTreeMap<String, Vec<String>>,
    /// Article ids that are never suggested.
    #[schema(value_type = Vec<ArticleIdSchema>, max_items = 1000)]
    exclude: Vec<String>,
    #[serde(deserialize_with = "read_object")]
    price: PriceBody,
    /// Only articles that fit the customer: those with a size of theirs, for example, as far as the release's schema says
    /// what its features require. What neither the customer nor the article says excludes nothing. True by default.
    fit: bool,
    /// Only articles in stock, by their attributes `in_stock` and `stock`; with `fit`, in a size that fits the customer. An
    /// article without either counts as in stock. True by default.
    in_stock: bool,
    /// Only articles in stock in this store. Stock without a store counts in each.
    store: Option<String>,
    /// Never suggest articles that the customer's no-gos exclude, or that they bought and did not return. True by default.
    no_gos: bool,
}

/// Price limits. If one is set, articles without a price are excluded.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = Price)]
struct PriceBody {
    /// The lowest price.
    #[schema(minimum = 0)]
    min: Option<f64>,
    /// The highest price.
    #[schema(minimum = 0)]
    max: Option<f64>,
    /// The most that the whole outfit costs: what is in it, and what is suggested for all of its blanks together.
    #[schema(minimum = 0)]
    total: Option<f64>,
}

impl Default for FiltersBody {
    fn default() -> Self {
        let (types, exclude, price) = (BTreeMap::new(), Vec::new(), PriceBody::default());
        Self { types, exclude, price, fit: true, in_stock: true, store: None, no_gos: true }
    }
}

impl CompleteBody {
    /// Whether to compute the answer takes milliseconds, besides what models compute.
    pub(super) fn is_large(&self) -> bool {
        /// A few times what a page shows.
        const MOST_SUGGESTIONS: usize = 100;
        let is_plain = !self.lift && !self.explain && self.sets == 0 && self.diversity == 0.0;
        !is_plain || self.count_suggestions() > MOST_SUGGESTIONS
    }

    /// How many suggestions the request asks for, over all blanks and sets. One that asks for more than it may gets none.
    pub(super) fn count_suggestions(&self) -> usize {
        let k = self.k.unwrap_or(DEFAULT_K);
        if self.outfit.len() > MAX_SLOTS || k > MAX_K || self.sets > MAX_SETS {
            return 0;
        }
        let blanks = self.outfit.iter().filter(|slot| slot.is_none()).count().max(1);
        blanks * (k + self.sets)
    }

    /// The request's route, chosen once. Faults of the customer and the method are found with the rest.
    pub(crate) fn route(self, live: Arc<LiveRelease>) -> Routed {
        let mut findings = Vec::new();
        let customer = self.customer.as_deref().map(CustomerId::new).transpose();
        let customer = value_or_finding(customer, || "/customer".into(), &mut findings).flatten();
        let method = self.method.as_deref().map(str::parse::<Method>).transpose();
        let method = value_or_finding(method, || "/method".into(), &mut findings).flatten();
        Routed { route: live.route(method, customer), body: self, findings }
    }
}

pub(crate) struct Routed {
    pub(super) body: CompleteBody,
    pub(super) route: Route,
    findings: Vec<Finding>,
}

impl Routed {
    /// About how many questions the method is asked. None if the request is bad.
    pub(super) fn estimate(&self) -> Option<usize> {
        let body = &self.body;
        let blanks = body.outfit.iter().filter(|slot| slot.is_none()).count().clamp(1, MAX_SLOTS);
        let again =
            usize::from(body.lift) + if body.explain { 1 + body.outfit.len().min(MAX_SLOTS) } else { 0 };
        self.findings.is_empty().then(|| blanks * (1 + again + body.sets.min(MAX_SETS)))
    }

    /// The question, and the route to ask it on. `now` is when it is asked.
    pub(crate) fn read(self, now: Timestamp) -> Result<(Route, Request), Problem> {
        let Self { body, mut route, mut findings } = self;
        let said;
        (route.live, said) = read_live(body.live, route.live)?;
        let live = &*route.live;
        let outfit = read_outfit(&body.outfit, &mut findings);
        let filters = body.filters.read(&mut findings);
        if body.sets > MAX_SETS {
            findings.push(Finding::at("/sets", format!("sets are 0 to {MAX_SETS}, found {}", body.sets)));
        }
        let given = read_features(body.features, live, &mut findings);
        if !findings.is_empty() {
            return Err(Problem::invalid(findings));
        }
        let request = Request {
            given,
            k: body.k.unwrap_or(DEFAULT_K),
            filters,
            diversity: body.diversity,
            probability: body.probability,
            lift: body.lift,
            explain: body.explain,
            sets: Sets { most: body.sets, distinct: body.distinct_sets },
            one_per_type: body.one_per_type,
            skip_unknown: body.skip_unknown,
            live: said,
            rules: body.rules.then_some(now),
            ..Request::routed(outfit, &route)
        };
        Ok((route, request))
    }
}

/// The part of a [`CompleteBody`] that a page may send.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageBody {
    customer: Option<String>,
    outfit: Vec<Option<String>>,
    #[serde(default, deserialize_with = "read_optional_integer")]
    k: Option<usize>,
    #[serde(default, deserialize_with = "read_integer")]
    sets: usize,
    /// Always so.
    #[serde(default, rename = "one_per_type")]
    _one_per_type: bool,
    #[serde(default)]
    skip_unknown: bool,
    #[serde(default)]
    filters: PageFilters,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PageFilters {
    store: Option<String>,
}

impl PageBody {
    pub(super) async fn read(self, state: &AppState, reader: &Reader) -> Result<CompleteBody, Problem> {
        let Self { mut outfit, k, sets, skip_unknown, filters: PageFilters { store }, .. } = self;
        for (name, found, most) in [("k", k.unwrap_or(1), MOST_OF_A_PAGE), ("sets", sets, 1)] {
            if found > most {
                let detail = format!("with a publishable key {name} is at most {most}, found {found}");
                return Err(Problem::invalid(vec![Finding::at(format!("/{name}"), detail)]));
            }
        }
        let customer = match read_customer(reader, self.customer.as_deref(), state.now()) {
            Ok(customer) => drop_unknown(state, reader, customer).await?,
            Err(reason) => return Err(Problem::invalid(vec![Finding::at("/customer", reason)])),
        };
        let most = state.live_release()?.serving.release().schema().outfit_size().most;
        if outfit.len() + usize::from(outfit.iter().all(Option::is_some)) > most {
            outfit.retain(Option::is_some);
            outfit.truncate(most - 1);
            outfit.resize(most, None);
        }
        Ok(CompleteBody {
            customer: customer.map(|id| id.to_string()),
            outfit,
            k,
            sets,
            one_per_type: true,
            skip_unknown,
            filters: FiltersBody { store, ..FiltersBody::default() },
            rules: applies(),
            ..CompleteBody::default()
        })
    }
}

impl FiltersBody {
    pub(crate) fn read(self, findings: &mut Vec<Finding>) -> Filters {
        let exclude = self.exclude.iter().enumerate().filter_map(|(index, id)| {
            value_or_finding(ArticleId::new(id), || format!("/filters/exclude/{index}"), findings)
        });
        let exclude = exclude.collect();
        let types = self.types.into_iter().filter_map(|(key, types)| match key.parse::<usize>() {
            Ok(slot) if slot.to_string() == key => Some((slot, types)),
            _ => {
                let detail = format!("a key is a slot's number from 0, found {key:?}");
                findings.push(Finding::at(format!("/filters/types{}", step(&key)), detail));
                None
            }
        });
        Filters {
            exclude,
            types: types.collect(),
            least_price: self.price.min,
            most_price: self.price.max,
            most_total: self.price.total,
            store: self.store,
            unfit: !self.fit,
            sold_out: !self.in_stock,
            no_gos: !self.no_gos,
            ..Filters::default()
        }
    }
}

/// Only checks the ids; the completion checks the size, and that the articles exist.
pub(crate) fn read_outfit(slots: &[Option<String>], findings: &mut Vec<Finding>) -> Vec<Option<ArticleId>> {
    let slot = |(index, id): (usize, &Option<String>)| {
        let id = id.as_deref().map(ArticleId::new).transpose();
        value_or_finding(id, || format!("/outfit/{index}"), findings).flatten()
    };
    slots.iter().enumerate().map(slot).collect()
}

/// Keeps unknown features: the completion warns about them.
pub(crate) fn read_features(
    features: Option<Map<String, Value>>,
    live: &LiveRelease,
    findings: &mut Vec<Finding>,
) -> Option<Features> {
    match features::read(features?, live.serving.release().schema(), "/features") {
        Ok(read) => Some(read.features),
        Err(errors) => {
            findings.extend(errors);
            None
        }
    }
}
