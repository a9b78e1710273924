//! `/evaluation/customers`: the customers for which two methods differ most.

use askama::Template;
use atelier_core::util::csv::Lines;
use atelier_engine::evaluation::CustomerDifference;
use axum::{
    extract::State,
    response::{Html, Response},
};

use super::{
    Tab,
    case_query::{CaseParameters, CaseQuery, CaseView},
    cases,
};
use crate::{
    customers::page::{CustomerView, CustomerViews},
    people::page::visitor::Analyst,
    platform::{
        http::{AppState, Problem},
        page::{
            Page, PageQuery, Pager, Shell,
            figures::{csv_file, number},
            format,
        },
    },
};

/// Customers per page.
const SIZE: usize = 30;

#[derive(Template)]
#[template(path = "analysis/evaluation/customers.html")]
struct CustomersPage<'a> {
    shell: Shell,
    query: CaseQuery,
    pager: Pager,
    /// The address of the same customers as a file.
    csv: String,
    customers: Vec<(CustomerView, CustomerDifference<'a>)>,
}

pub(super) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    PageQuery(parameters): PageQuery<CaseParameters>,
) -> Result<Html<String>, Problem> {
    let shell = visitor.shell(Page::Evaluation);
    let CaseView { live, ranks, query, known } = match CaseView::read(&state, parameters).await? {
        Ok(view) => view,
        Err(lack) => return lack.page(shell, Tab::Customers),
    };
    let found = ranks.customers_by_difference(query.versus, query.selection(&known));
    let pager = Pager::new(query.page(), found.len(), SIZE, false, &state.notation, |page| {
        query.link(Tab::Customers.path(), page)
    });
    let on_page = pager.part_of(&found);
    let ids = on_page.iter().map(|difference| difference.customer);
    let views = CustomerViews::read(&state, ids, live.serving.release().schema()).await?;
    let customers = on_page.iter().map(|found| (views.view(found.customer), *found)).collect();
    let csv = query.link("/evaluation/customers.csv", 1);
    let page = CustomersPage { shell, query, pager, csv, customers };
    Ok(Html(page.render()?))
}

pub(super) async fn download(
    Analyst(_): Analyst,
    State(state): State<AppState>,
    PageQuery(parameters): PageQuery<CaseParameters>,
) -> Result<Response, Problem> {
    let CaseView { live, ranks, query, known } = CaseView::for_file(&state, parameters).await?;
    let mut lines = Lines::new(&["customer", "cases", query.versus.by.unit()]);
    for found in ranks.customers_by_difference(query.versus, query.selection(&known)) {
        let difference = number(found.difference);
        lines.push(&[found.customer.as_str(), &found.cases.to_string(), &difference]);
    }
    let name = format!("{}-{}-{}-customers.csv", live.name(), query.versus.first, query.versus.second);
    Ok(csv_file(&name, lines.into_text()))
}

fn signed(difference: f64) -> String {
    format::sign(difference, &format!("{:.3}", difference.abs()))
}

/// The first six features of a profile, to fit one line; none of a customer who is not in the database.
fn short_profile(customer: &CustomerView) -> String {
    let words = customer.words.iter().take(6).map(|word| word.words.as_str());
    words.collect::<Vec<_>>().join(", ")
}
