//! `/evaluation/customers`: the customers for which two methods differ most.

use askama::Template;
use atelier_core::util::csv::Lines;
use atelier_engine::evaluation::{By, CustomerDifference, Lead};
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
struct CustomersPage {
    shell: Shell,
    tab: Tab,
    query: CaseQuery,
    pager: Pager,
    /// The address of the same customers as a file.
    csv: String,
    customers: Vec<Row>,
    bys: [By; 2],
    leads: [Lead; 3],
}

struct Row {
    customer: CustomerView,
    /// The beginning of their profile; empty if they are not in the database.
    who: String,
    cases: u32,
    difference: String,
    apart: String,
    /// The address of their cases.
    link: String,
}

pub(super) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    PageQuery(parameters): PageQuery<CaseParameters>,
) -> Result<Html<String>, Problem> {
    let (shell, tab) = (visitor.shell(Page::Evaluation), Tab::Customers);
    let CaseView { live, ranks, query, known } = match CaseView::read(&state, parameters).await? {
        Ok(view) => view,
        Err(lack) => return lack.page(shell, tab),
    };
    let found = ranks.customers_by_difference(query.versus, query.selection(&known));
    let pager = Pager::new(query.page(), found.len(), SIZE, false, &state.notation, |page| {
        query.link(tab.path(), page)
    });
    let on_page = pager.part_of(&found);
    let ids = on_page.iter().map(|difference| difference.customer);
    let views = CustomerViews::read(&state, ids, live.serving.release().schema()).await?;
    let row =
        |difference: &CustomerDifference<'_>| Row::new(*difference, &query, views.view(difference.customer));
    let customers = on_page.iter().map(row).collect();
    let csv = query.link("/evaluation/customers.csv", 1);
    let page = CustomersPage { shell, tab, query, pager, csv, customers, bys: By::ALL, leads: Lead::ALL };
    Ok(Html(page.render()?))
}

/// All customers of the view as a CSV file.
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

impl Row {
    fn new(difference: CustomerDifference<'_>, query: &CaseQuery, view: CustomerView) -> Self {
        let CustomerDifference { customer, cases, difference } = difference;
        Self {
            who: short_profile(&view),
            customer: view,
            cases,
            difference: format::sign(difference, &format!("{:.3}", difference.abs())),
            apart: cases::difference_in_words(query.versus, difference),
            link: query.customer_link(Tab::Cases.path(), customer),
        }
    }
}

/// The first six features of a profile, to fit one line.
fn short_profile(customer: &CustomerView) -> String {
    let words = customer.words.iter().take(6).map(|word| word.words.as_str());
    words.collect::<Vec<_>>().join(", ")
}
