//! `/evaluation`: how good the release's methods are, where they differ, and how sure that is.
//!
//! The figures are those that the release carries, and under Results those that the project published; nothing is
//! measured here. Each view is a file with its template;
//! what is written of a figure is in `written`, what is said of all of them in `words`.

mod cases;
mod choice;
mod csv;
mod customers;
mod lack;
mod numbers;
mod overview;
mod results;
mod segments;
mod significance;
mod table_one;
mod versus;
mod words;
mod written;

use axum::{Router, routing::get};

use crate::web::http::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/evaluation", get(overview::page))
        .route("/evaluation/segments", get(segments::page))
        .route("/evaluation/cases", get(cases::page))
        .route("/evaluation/cases.csv", get(csv::download))
        .route("/evaluation/customers", get(customers::page))
        .route("/evaluation/results", get(results::page))
}

/// The views, as the tabs above each of them.
#[derive(Debug, Clone, Copy)]
enum Tab {
    Overview,
    Segments,
    Cases,
    Customers,
    Results,
}

impl Tab {
    const ALL: [Tab; 5] = [Tab::Overview, Tab::Segments, Tab::Cases, Tab::Customers, Tab::Results];

    fn path(self) -> &'static str {
        match self {
            Self::Overview => "/evaluation",
            Self::Segments => "/evaluation/segments",
            Self::Cases => "/evaluation/cases",
            Self::Customers => "/evaluation/customers",
            Self::Results => "/evaluation/results",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Overview => "Methods",
            Self::Segments => "Segments",
            Self::Cases => "Cases",
            Self::Customers => "Customers",
            Self::Results => "Results",
        }
    }
}
