//! `/operations/experiments`: experiments, what each shows, and starting, ramping, stopping and shipping one.

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
    Arm, ArmFigures, Conclusion, Decision, Difference, Experiment, Figures, Limits, Metric, SecondRelease,
    State,
};
use crate::{
    outcomes::{
        ArmCounts,
        acceptance::{Share, revenue_in_words},
    },
    people::page::visitor::{Admin, Analyst, Visitor},
    platform::{
        http::{AppState, Kind, Problem, extract::Path},
        page::{
            fault::words,
            figures,
            form::{Form, PageQuery, expected},
            operations::Tab,
            shell::{Page, Shell},
        },
    },
    steering::{
        documents::{of_stored, read_all},
        page::{
            documents::{self, Edit, by_name},
            fields::Fields,
        },
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
    edit: Edit,
}

#[derive(Template)]
#[template(path = "experiments/experiment.html")]
struct OnePage {
    shell: Shell,
    tab: Tab,
    name: String,
    version: String,
    /// An arm that is about to be shipped.
    shipping: Option<Shipping>,
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

/// The consequences of shipping an arm, before it is done.
struct Shipping {
    arm: String,
    /// For all customers.
    changes: Vec<String>,
    /// Why it may be a mistake.
    against: Option<String>,
    figures: Vec<String>,
}

impl Shipping {
    fn new(arm: &Arm, found: &Figures, experiment: &Experiment, differences: &[DifferenceRow]) -> Self {
        let mut changes: Vec<String> = Vec::new();
        changes.extend(arm.release.as_ref().map(|release| format!("The release {release} becomes live.")));
        changes.extend(arm.method.map(|method| format!("{method} becomes the default method.")));
        if !arm.without_rules.is_empty() {
            changes.push(format!("These rules are turned off: {}.", arm.without_rules.join(", ")));
        }
        if changes.is_empty() {
            changes.push("Nothing changes for customers: the arm is what others get.".to_owned());
        }
        let is_winner = found.decision.winner.as_ref() == Some(&arm.name);
        let of_arm = differences.iter().filter(|one| one.arm == arm.name);
        Self {
            arm: arm.name.clone(),
            changes,
            against: (!is_winner).then(|| conclude(&found.decision, experiment)),
            figures: of_arm
                .map(|one| {
                    format!("{}: {} instead of {}, {}.", one.metric, one.value, one.control, one.found)
                })
                .collect(),
        }
    }
}

struct ArmRow {
    name: String,
    about: String,
    share: u32,
    counts: [String; 7],
    revenue: String,
}

impl ArmRow {
    fn new(arm: &Arm, sums: &ArmFigures, notation: &Notation) -> Self {
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
            revenue: revenue_in_words(revenue, kept > 0, notation),
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
                |days| match days {
                    ..0.5 => "less than a day".to_owned(),
                    0.5..=9999.0 => format!("{days:.0}"),
                    _ => "over 9999".to_owned(),
                },
            ),
        }
    }
}

/// Notes on a release before and while it is loaded.
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

/// The page's first words.
fn conclude(Decision { state, winner }: &Decision, experiment: &Experiment) -> String {
    let (metric, control) = (experiment.metric, &experiment.arms[0].name);
    match (state, winner) {
        (Conclusion::Winner, Some(winner)) if winner == control => {
            format!("{control} wins: judged by {metric}, every other arm is worse.")
        }
        (Conclusion::Winner, Some(winner)) => {
            format!("{winner} wins: judged by {metric}, it is better than {control}.")
        }
        (Conclusion::NoDifference, _) => {
            format!("No difference that matters: judged by {metric}, it is smaller than {} %.", experiment.effect * 100.0)
        }
        (Conclusion::BrokenSplit, _) => {
            "The split is broken: the arms' numbers of customers do not match their shares. Do not trust the figures; check whether one arm's \
             feedback gets lost."
                .to_owned()
        }
        _ => format!("No decision yet: judged by {metric}, no arm is clearly better."),
    }
}

pub(crate) async fn list(
    Analyst(visitor): Analyst,
    Shared(state): Shared<AppState>,
) -> Result<Html<String>, Problem> {
    list_page(&state, &visitor, Edit::default()).await
}

async fn list_page(state: &AppState, visitor: &Visitor, edit: Edit) -> Result<Html<String>, Problem> {
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
            .map(|(name, experiment)| (address(name.as_str()), name.to_string(), experiment))
            .collect(),
        methods: methods.unwrap_or_default(),
        releases: others.map(|listed| listed.name).collect(),
        edit,
    };
    Ok(Html(page.render()?))
}

/// The rows of arms in the form, as in `arm-0`, `release-0`, `method-0`, `rules-0` and `share-0`.
const ROWS: [&str; 4] = ["0", "1", "2", "3"];

fn cell<'f>(form: &'f Fields, column: &str, row: &str) -> &'f str {
    form.get(&format!("{column}-{row}"))
}

/// Of the fields `latency` in milliseconds, and `errors`, `empty` and `returned` in percent.
fn limits(form: &Fields) -> Result<Limits, String> {
    let number = |name: &str| {
        let text = form.get(name);
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

fn read(form: &Fields) -> Result<Experiment, String> {
    let filled = |text: &str, usual: &str| if text.is_empty() { usual.to_owned() } else { text.to_owned() };
    let effect = filled(form.get("effect"), "10");
    let effect: f64 =
        effect.parse().map_err(|_| format!("the change is a number of percent, found {effect:?}"))?;
    let mut arms = Vec::new();
    for row in ROWS {
        let [name, release, method, rules, share] =
            ["arm", "release", "method", "rules", "share"].map(|column| cell(form, column, row));
        if name.is_empty() {
            continue;
        }
        let method = Some(method).filter(|method| !method.is_empty()).map(str::parse::<Method>);
        let rules = rules.split(',').map(str::trim).filter(|rule| !rule.is_empty());
        arms.push(Arm {
            name: name.to_owned(),
            release: Some(release.to_owned()).filter(|release| !release.is_empty()),
            method: method.transpose().map_err(|error| error.to_string())?,
            without_rules: rules.map(str::to_owned).collect(),
            share: filled(share, "1")
                .parse()
                .map_err(|_| format!("a share is a whole number, found {share:?}"))?,
        });
    }
    Ok(Experiment {
        arms,
        metric: filled(form.get("metric"), Metric::default().as_str()).parse()?,
        effect: effect / 100.0,
        note: Some(form.get("note").to_owned()),
        share: 100,
        stop_if: limits(form)?,
        ..Experiment::default()
    })
}

pub(crate) async fn store(
    Admin(visitor): Admin,
    Shared(state): Shared<AppState>,
    Form(form): Form<Fields>,
) -> Result<Response, Problem> {
    let mut edit = Edit::sent(form);
    let read = read(&edit.form).map_err(|reason| vec![(String::new(), reason)]);
    if edit.store((&state, &visitor), read, by_name).await?.is_some() {
        return Ok(Redirect::to(&address(&edit.name)).into_response());
    }
    let page = list_page(&state, &visitor, edit).await?;
    Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
}

fn address(name: &str) -> String {
    let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
    format!("{LIST}/{}", name.replace('+', "%20"))
}

pub(crate) async fn one(
    Analyst(visitor): Analyst,
    Shared(state): Shared<AppState>,
    Path(name): Path<ExperimentName>,
    PageQuery(asked): PageQuery<AskedToShip>,
) -> Result<Html<String>, Problem> {
    one_page(&state, &visitor, &name, asked.ship.as_deref(), None).await
}

/// The arm whose shipping is to be thought over.
#[derive(Deserialize)]
pub(crate) struct AskedToShip {
    ship: Option<String>,
}

async fn one_page(
    state: &AppState,
    visitor: &Visitor,
    name: &ExperimentName,
    ship: Option<&str>,
    wrong: Option<String>,
) -> Result<Html<String>, Problem> {
    let (experiment, version) = documents::find::<Experiment>(state, name).await?;
    let found = Figures::read(&state.store, state.releases(), name, &experiment, state.now()).await?;
    let notation = &state.notation;
    let arms = experiment.arms.iter().zip(&found.arms);
    let differences: Vec<DifferenceRow> =
        found.differences.iter().map(|one| DifferenceRow::new(one, &experiment, notation)).collect();
    let ship = ship.filter(|_| experiment.state != State::Draft);
    let shipped = experiment.arms.iter().find(|arm| ship == Some(&*arm.name));
    let page = OnePage {
        shipping: shipped.map(|arm| Shipping::new(arm, &found, &experiment, &differences)),
        shell: visitor.shell(Page::Operations),
        tab: Tab::Experiments,
        name: name.to_string(),
        version: version.to_string(),
        days: if found.days < 1.0 { "less than a day".to_owned() } else { format!("{:.1} days", found.days) },
        limits: limits_in_words(&experiment.stop_if),
        second: second_in_words(found.second_release),
        decision: conclude(&found.decision, &experiment),
        arms: arms.map(|(arm, sums)| ArmRow::new(arm, sums, notation)).collect(),
        differences,
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
        Ok(_) => Ok(Redirect::to(&address(name.as_str())).into_response()),
        Err(faults) => {
            let page = one_page(&state, &visitor, &name, None, Some(words(&faults))).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
    }
}
