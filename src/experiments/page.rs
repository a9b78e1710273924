//! `/operations/experiments`: experiments, what each shows, and starting, ramping, stopping and shipping one.

use std::collections::BTreeMap;

use askama::Template;
use atelier_core::{
    domain::{ExperimentName, Method},
    util::notation::Notation,
};
use axum::{
    extract::State as Shared,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use super::{
    Arm, Decision, Difference, Experiment, Figures, Limits, Metric, SecondRelease, State, sql::ArmSums,
};
use crate::{
    outcomes::{
        ArmCounts,
        acceptance::{Share, money},
    },
    people::page::visitor::{Admin, Analyst, Visitor},
    platform::{
        http::{AppState, Kind, Problem, extract::Path},
        page::{
            fault::words,
            figures,
            form::{Form, expected},
            operations::Tab,
            shell::{Page, Shell},
        },
    },
    steering::{
        documents::{of_stored, read_all},
        page::documents,
    },
};

const LIST: &str = "/operations/experiments";

#[derive(Template)]
#[template(path = "experiments/experiments.html")]
struct ListPage {
    shell: Shell,
    tab: Tab,
    /// Each with its address and name.
    experiments: Vec<(String, String, Experiment)>,
    methods: Vec<Method>,
    /// Besides the live one, without those that cannot be served.
    releases: Vec<String>,
    typed: Draft,
    wrong: Option<String>,
}

#[derive(Template)]
#[template(path = "experiments/experiment.html")]
struct OnePage {
    shell: Shell,
    tab: Tab,
    name: String,
    version: String,
    experiment: Experiment,
    days: String,
    /// Empty for none.
    limits: String,
    /// Empty if it needs no release besides the live one.
    second: String,
    decision: String,
    arms: Vec<ArmRow>,
    differences: Vec<DifferenceRow>,
    wrong: Option<String>,
}

/// An arm and its counts.
struct ArmRow {
    name: String,
    about: String,
    share: u32,
    counts: [String; 7],
    revenue: String,
}

impl ArmRow {
    fn new(arm: &Arm, sums: &ArmSums, notation: &Notation) -> Self {
        let ArmCounts { completions, shown, accepted, bought, returned, kept, revenue } = sums.counts;
        let numbers = [sums.customers, completions, shown, accepted, bought, returned, kept];
        let method = arm.method.map_or_else(|| "the default method".to_owned(), |method| method.to_string());
        let mut about = match &arm.release {
            Some(release) => format!("{method} of {release}"),
            None => method,
        };
        if !arm.without_rules.is_empty() {
            about = format!("{about} without {}", arm.without_rules.join(", "));
        }
        Self {
            name: arm.name.clone(),
            about,
            share: arm.share,
            counts: numbers.map(|number| notation.count(number.unsigned_abs())),
            revenue: notation.price(money(revenue), None),
        }
    }
}

struct DifferenceRow {
    arm: String,
    metric: &'static str,
    decides: bool,
    control: String,
    value: String,
    found: String,
    days: String,
}

impl DifferenceRow {
    fn new(one: &Difference, experiment: &Experiment, notation: &Notation) -> Self {
        let figure = |value: f64| match one.metric {
            Metric::Revenue => notation.price(value, None),
            _ => format!("{value:.3}"),
        };
        let signed = |value: f64| format!("{}{}", if value < 0.0 { "−" } else { "+" }, figure(value.abs()));
        let maybe = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure);
        let interval = |Share { value, low, high }: Share| {
            format!("{} ({} to {})", signed(value), signed(low), signed(high))
        };
        Self {
            arm: one.arm.clone(),
            metric: one.metric.as_str(),
            decides: one.metric == experiment.metric,
            control: maybe(one.control),
            value: maybe(one.value),
            found: one.difference.map_or_else(|| "too few customers yet".to_owned(), interval),
            days: one.days_needed.filter(|_| experiment.state == State::Running).map_or_else(
                || "–".to_owned(),
                |days| if days > 9999.0 { "over 9999".to_owned() } else { format!("{days:.0}") },
            ),
        }
    }
}

/// What a person should know of a release before and while it is loaded.
fn second_in_words(second: Option<SecondRelease>) -> String {
    let Some(SecondRelease { release, is_loaded, memory_bytes, reason }) = second else {
        return String::new();
    };
    if let Some(reason) = reason {
        return format!("{release} cannot be loaded on this replica: {reason}.");
    }
    #[expect(clippy::cast_precision_loss, reason = "megabytes")]
    let size = figures::rounded(memory_bytes.unwrap_or_default() as f64 / 1e6);
    let when = if is_loaded { "and takes" } else { "when it starts, and takes" };
    format!("{release} is loaded beside the live release {when} about {size} MB of memory on each replica.")
}

fn limits_in_words(limits: &Limits) -> String {
    let share =
        |share: Option<f64>, what: &str| share.map(|share| format!("over {} % {what}", share * 100.0));
    let words = [
        limits.latency_ms.map(|millis| format!("over 5 % of answers slower than {millis} ms")),
        share(limits.errors, "of answers failed"),
        share(limits.empty, "of blanks empty"),
        share(limits.returned, "of purchases returned"),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What the page says first.
fn conclude(decision: Decision, experiment: &Experiment) -> String {
    let metric = experiment.metric;
    match decision {
        Decision::Collecting => format!("No decision yet: judged by {metric}, no arm is clearly better."),
        Decision::Winner(0) => {
            format!("{} wins: judged by {metric}, every other arm is worse.", experiment.arms[0].name)
        }
        Decision::Winner(arm) => {
            format!("{} wins: judged by {metric}, it is better than {}.", experiment.arms[arm].name, experiment.arms[0].name)
        }
        Decision::NoDifference => {
            format!("No difference that matters: judged by {metric}, it is smaller than {} %.", experiment.effect * 100.0)
        }
        Decision::BrokenSplit => {
            "The split is broken: the arms' numbers of customers do not match their shares. Do not trust the figures; check whether one arm's \
             feedback gets lost."
                .to_owned()
        }
    }
}

pub(crate) async fn list(
    Analyst(visitor): Analyst,
    Shared(state): Shared<AppState>,
) -> Result<Html<String>, Problem> {
    list_page(&state, &visitor, Draft::default(), None).await
}

async fn list_page(
    state: &AppState,
    visitor: &Visitor,
    typed: Draft,
    wrong: Option<String>,
) -> Result<Html<String>, Problem> {
    let all = read_all::<Experiment>(&state.store).await?;
    let live = state.releases().current();
    let methods = live.as_ref().map(|live| live.serving.methods().collect());
    let listed = state.releases().list().await.map_err(|error| Problem::inside(Kind::Internal, error))?;
    let is_live = |name: &str| live.as_ref().is_some_and(|live| live.name() == name);
    let others = listed.into_iter().filter(|listed| listed.refused().is_none() && !is_live(&listed.name));
    let page = ListPage {
        shell: visitor.shell(Page::Operations),
        tab: Tab::Experiments,
        experiments: all
            .into_iter()
            .map(|(name, experiment)| (address(&name), name.to_string(), experiment))
            .collect(),
        methods: methods.unwrap_or_default(),
        releases: others.map(|listed| listed.name).collect(),
        typed,
        wrong,
    };
    Ok(Html(page.render()?))
}

/// A new experiment as the form has it: beside these, the arms, as in `arm-0`, `release-0`, `method-0`, `rules-0` and `share-0`, and the limits.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Draft {
    #[serde(default)]
    name: String,
    #[serde(default)]
    metric: Metric,
    /// In percent.
    #[serde(default)]
    effect: String,
    #[serde(default)]
    note: String,
    #[serde(flatten)]
    others: BTreeMap<String, String>,
}

impl Draft {
    /// The rows of arms.
    const ROWS: [&str; 4] = ["0", "1", "2", "3"];

    fn cell(&self, column: &str, row: &str) -> &str {
        self.others.get(&format!("{column}-{row}")).map_or("", |text| text.trim())
    }

    fn limit(&self, name: &str) -> &str {
        self.others.get(name).map_or("", |text| text.trim())
    }

    /// Of the fields `latency` in milliseconds, and `errors`, `empty` and `returned` in percent.
    fn limits(&self) -> Result<Limits, String> {
        let number = |name: &str| {
            let text = self.limit(name);
            let number = (!text.is_empty()).then(|| text.parse::<u32>()).transpose();
            number.map_err(|_| format!("a limit is a whole number, found {text:?}"))
        };
        let share = |name| number(name).map(|percent| percent.map(|percent| f64::from(percent) / 100.0));
        Ok(Limits {
            latency_ms: number("latency")?,
            errors: share("errors")?,
            empty: share("empty")?,
            returned: share("returned")?,
        })
    }

    fn read(&self) -> Result<(ExperimentName, Experiment), String> {
        let name = ExperimentName::new(self.name.trim()).map_err(|error| error.to_string())?;
        let effect = if self.effect.trim().is_empty() { "10" } else { self.effect.trim() };
        let effect: f64 =
            effect.parse().map_err(|_| format!("the change is a number of percent, found {effect:?}"))?;
        let mut arms = Vec::new();
        for row in Self::ROWS.into_iter().filter(|row| !self.cell("arm", row).is_empty()) {
            let method = Some(self.cell("method", row)).filter(|method| !method.is_empty());
            let share = self.cell("share", row);
            arms.push(Arm {
                name: self.cell("arm", row).to_owned(),
                release: Some(self.cell("release", row).to_owned()).filter(|release| !release.is_empty()),
                method: method.map(str::parse::<Method>).transpose().map_err(|error| error.to_string())?,
                without_rules: self
                    .cell("rules", row)
                    .split(',')
                    .map(|rule| rule.trim().to_owned())
                    .filter(|rule| !rule.is_empty())
                    .collect(),
                share: if share.is_empty() {
                    1
                } else {
                    share.parse().map_err(|_| format!("a share is a whole number, found {share:?}"))?
                },
            });
        }
        let experiment = Experiment {
            arms,
            metric: self.metric,
            effect: effect / 100.0,
            note: Some(self.note.clone()),
            share: 100,
            stop_if: self.limits()?,
            ..Experiment::default()
        };
        Ok((name, experiment))
    }
}

/// Adds a draft.
pub(crate) async fn store(
    Admin(visitor): Admin,
    Shared(state): Shared<AppState>,
    Form(draft): Form<Draft>,
) -> Result<Response, Problem> {
    let stored = match draft.read() {
        Err(wrong) => Err(wrong),
        Ok((name, experiment)) => {
            let make = move |_| Ok(experiment.clone());
            let saved = documents::save((&state, &visitor), &name, &expected(""), false, make).await?;
            saved.map(|_| address(&name)).map_err(|faults| words(&faults))
        }
    };
    match stored {
        Ok(address) => Ok(Redirect::to(&address).into_response()),
        Err(wrong) => {
            let page = list_page(&state, &visitor, draft, Some(wrong)).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
    }
}

fn address(name: &ExperimentName) -> String {
    let name: String = form_urlencoded::byte_serialize(name.as_str().as_bytes()).collect();
    format!("{LIST}/{}", name.replace('+', "%20"))
}

pub(crate) async fn one(
    Analyst(visitor): Analyst,
    Shared(state): Shared<AppState>,
    Path(name): Path<ExperimentName>,
) -> Result<Html<String>, Problem> {
    one_page(&state, &visitor, &name, None).await
}

async fn one_page(
    state: &AppState,
    visitor: &Visitor,
    name: &ExperimentName,
    wrong: Option<String>,
) -> Result<Html<String>, Problem> {
    let (experiment, version) = documents::find::<Experiment>(state, name).await?;
    let found = Figures::read(&state.store, name, &experiment, state.now()).await?;
    let notation = &state.notation;
    let arms = experiment.arms.iter().zip(&found.arms);
    let page = OnePage {
        shell: visitor.shell(Page::Operations),
        tab: Tab::Experiments,
        name: name.to_string(),
        version: version.to_string(),
        days: format!("{:.1}", found.days),
        limits: limits_in_words(&experiment.stop_if),
        second: second_in_words(SecondRelease::find(state.releases(), &experiment).await),
        decision: conclude(found.decision, &experiment),
        arms: arms.map(|(arm, sums)| ArmRow::new(arm, sums, notation)).collect(),
        differences: found
            .differences
            .iter()
            .map(|one| DifferenceRow::new(one, &experiment, notation))
            .collect(),
        experiment,
        wrong,
    };
    Ok(Html(page.render()?))
}

#[derive(Debug, Deserialize)]
pub(crate) struct ChangeForm {
    version: String,
    /// `delete`, or the state that is wanted.
    to: String,
    #[serde(default)]
    share: Option<u8>,
    #[serde(default)]
    winner: Option<String>,
}

/// Starts, ramps, stops, ships or deletes.
pub(crate) async fn change(
    Admin(visitor): Admin,
    Shared(state): Shared<AppState>,
    Path(name): Path<ExperimentName>,
    Form(form): Form<ChangeForm>,
) -> Result<Response, Problem> {
    let scene = (&state, &visitor);
    if form.to == "delete" {
        documents::delete::<Experiment>(scene, &name, &form.version).await?;
        return Ok(Redirect::to(LIST).into_response());
    }
    let next: State = form.to.parse().map_err(|error: String| Problem::new(Kind::Malformed, error))?;
    let (share, winner) = (form.share, form.winner);
    let make = of_stored(move |stored: Experiment| Experiment {
        state: next,
        share: share.unwrap_or(stored.share),
        winner: winner.clone(),
        ..stored
    });
    match documents::save(scene, &name, &expected(&form.version), false, make).await? {
        Ok(_) => Ok(Redirect::to(&address(&name)).into_response()),
        Err(faults) => {
            let page = one_page(&state, &visitor, &name, Some(words(&faults))).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
    }
}
