//! `/experiments`: customers who are split between methods, sets of rules or releases, and what that shows.

use atelier_core::domain::ExperimentName;
use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::TryStreamExt;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::{Experiment, Figures};
use crate::{
    experiments,
    people::Scope,
    platform::http::{
        AppState, Problem,
        extract::{Json, Path, Query},
        routes::Routes,
        schema::BytesSchema,
    },
    steering::{
        api::documents::{self, About, ApiDocument, NoQuery, read, unknown},
        documents::Changed,
    },
};

pub(crate) fn router() -> Routes {
    documents::router::<Experiment>()
        .scoped(Scope::Feedback, routes!(figures))
        .streaming(Scope::Feedback, routes!(customers))
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only the description of the path")]
struct ExperimentPath {
    /// The experiment's name
    #[param(example = "autumn", min_length = 1, max_length = 128)]
    name: String,
}

impl ApiDocument for Experiment {
    const ABOUT: About = About {
        plural: "experiments",
        one: "an experiment",
        example: "autumn",
        scope: Scope::Admin,
        is_long: true,
        put: "Adds it, or replaces a draft. Once it runs, its arms, its metric and its effect cannot change.",
        patch: (
            "Start, ramp, stop or ship an experiment",
            "A JSON Merge Patch (RFC 7396). `{\"state\": \"running\", \"share\": 20}` starts it with a fifth of the known customers, \
             `{\"share\": 100}` takes all of them, `{\"state\": \"stopped\"}` ends it. `{\"state\": \"shipped\", \"winner\": \"new\"}` makes \
             the method of the arm `new` the default one, activates its release, and turns off the rules that did not apply in it.\n\n\
             An arm's release is loaded next to the live one when the experiment starts, by the checks of an activation, which takes \
             seconds. Its `figures` say how much memory that needs. No other release can be activated while the experiment runs.",
        ),
        patch_example: r#"{"state": "running", "share": 20}"#,
        delete: ("Delete a draft", "An experiment that ran keeps its name and its figures."),
    };
    type Query = NoQuery;
    type Answer = Self;

    async fn answer(state: &AppState, changed: Changed<Self>, _query: NoQuery) -> Result<Self, Problem> {
        changed.document.shown(state).await
    }

    async fn shown(self, _state: &AppState) -> Result<Self, Problem> {
        Ok(Self { parts: Vec::new(), ..self })
    }
}

/// An experiment's figures
///
/// The figures of each arm, how the others differ from the first, and what may be concluded. Intervals are by customer.
#[utoipa::path(get, path = "/experiments/{name}/figures", operation_id = "getExperimentFigures", tag = "experiments",
    params(ExperimentPath),
    responses(
        (status = 200, description = "The figures", body = Figures),
    ),
)]
async fn figures(
    State(state): State<AppState>,
    Path(name): Path<ExperimentName>,
) -> Result<Json<Figures>, Problem> {
    let experiment = find(&state, &name).await?;
    Ok(Json(Figures::read(&state.store, state.releases(), &name, &experiment, state.now()).await?))
}

async fn find(state: &AppState, name: &ExperimentName) -> Result<Experiment, Problem> {
    read(state.store.experiments().get(name).await?.ok_or_else(|| unknown(name))?.value)
}

#[derive(Debug, Default, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum FileFormat {
    #[default]
    Csv,
    Parquet,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct FormatQuery {
    /// `csv` or `parquet`; CSV if it is not given.
    #[serde(default)]
    #[param(inline)]
    format: FileFormat,
}

/// An experiment's customers
///
/// A file with one row for each customer and arm: a number instead of the customer's id, the arm, and the counts.
#[utoipa::path(get, path = "/experiments/{name}/customers", operation_id = "getExperimentCustomers", tag = "experiments",
    params(ExperimentPath, FormatQuery),
    responses(
        (status = 200, description = "The rows", content(
            (String = "text/csv", example = "customer,arm,completions,shown,accepted,bought,returned,kept,revenue\n17,new,2,8,1,1,0,0,129.9\n"),
            (BytesSchema = "application/vnd.apache.parquet"),
        )),
    ),
)]
async fn customers(
    State(state): State<AppState>,
    Path(name): Path<ExperimentName>,
    Query(query): Query<FormatQuery>,
) -> Result<Response, Problem> {
    let experiment = find(&state, &name).await?;
    let rows = experiments::customers(&state.store, &name, &experiment);
    let rows: Vec<_> = rows.try_collect().await?;
    Ok(match query.format {
        FileFormat::Csv => {
            ([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], experiments::to_csv(&rows)).into_response()
        }
        FileFormat::Parquet => {
            let bytes = tokio::task::spawn_blocking(move || experiments::to_parquet(&rows)).await;
            let bytes = bytes.expect("writing columns does not panic");
            ([(header::CONTENT_TYPE, "application/vnd.apache.parquet")], bytes).into_response()
        }
    })
}
