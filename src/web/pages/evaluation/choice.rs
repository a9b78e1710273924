//! Which methods a view shows, and by which metric.

use serde::Deserialize;

use crate::{
    domain::Method,
    drawing::chart,
    service::evaluation::{Figures, Metric},
    web::http::{Finding, Problem},
};

/// The query of a view that compares methods.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChoiceQuery {
    /// The paper's five if not given.
    #[serde(default)]
    method: Vec<Method>,
    metric: Option<Metric>,
    /// The feature by which outfits are parted; only segments have it.
    pub(super) by: Option<String>,
}

/// What was chosen, and what may be.
#[derive(Debug)]
pub(super) struct Choice {
    /// In the methods' own order.
    pub(super) chosen: Vec<Method>,
    pub(super) metric: Metric,
    pub(super) methods: Vec<Offered>,
}

/// A method that may be chosen.
#[derive(Debug)]
pub(super) struct Offered {
    pub(super) method: Method,
    /// How it looks in charts.
    pub(super) mark: String,
    pub(super) chosen: bool,
}

/// What is shown where nothing is chosen: the methods of the paper's Table 1.
const USUAL: [Method; 5] = [Method::None, Method::C, Method::Np, Method::Gs, Method::Gsu];

impl Choice {
    pub(super) fn new(query: &ChoiceQuery, figures: &Figures) -> Result<Self, Problem> {
        let there: Vec<Method> = figures.methods().collect();
        if let Some(missing) = query.method.iter().find(|method| !there.contains(method)) {
            return Err(Problem::invalid(vec![not_judged("method", *missing, &there)]));
        }
        let mut chosen: Vec<Method> =
            there.iter().copied().filter(|method| query.method.contains(method)).collect();
        if chosen.is_empty() {
            chosen = there.iter().copied().filter(|method| USUAL.contains(method)).collect();
        }
        // A release of other methods than the paper's.
        if chosen.is_empty() {
            chosen.clone_from(&there);
        }
        let offered = |&method: &Method| Offered {
            method,
            mark: chart::mark(kind(method)),
            chosen: chosen.contains(&method),
        };
        let methods = there.iter().map(offered).collect();
        Ok(Self { chosen, metric: query.metric.unwrap_or(Metric::CrossEntropy), methods })
    }
}

/// The colour and mark of a method: the same in every chart and every release.
pub(super) fn kind(method: Method) -> usize {
    let place = Method::ALL.iter().position(|other| *other == method);
    place.expect("every method is among all of them; this is a bug")
}

pub(super) fn not_judged(parameter: &str, method: Method, there: &[Method]) -> Finding {
    let names: Vec<&str> = there.iter().map(|method| method.as_str()).collect();
    let detail = format!("the release's evaluation has no method {method}; it has {}", names.join(", "));
    Finding::parameter(parameter, detail)
}
