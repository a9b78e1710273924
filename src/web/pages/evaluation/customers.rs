//! `/evaluation/customers`: the customers for which two methods differ most.

use askama::Template;
use atelier_core::{
    domain::{Customer, Schema},
    util::csv::Lines,
};
use atelier_engine::evaluation::{By, CustomerDifference, Lead};
use axum::{
    extract::State,
    response::{Html, Response},
};

use super::{
    Tab,
    case_query::{CaseParameters, CaseQuery, CaseView},
    cases, format,
};
use crate::{
    service::wording,
    web::{
        http::{AppState, Problem},
        pages::{
            figures::csv_file,
            form::PageQuery,
            pager::Pager,
            shell::{Page, Shell},
            visitor::Analyst,
        },
    },
};

/// Customers per page.
const SIZE: usize = 30;

#[derive(Template)]
#[template(path = "evaluation/customers.html")]
struct CustomersPage {
    shell: Shell,
    tab: Tab,
    query: CaseQuery,
    pager: Pager,
    /// The address of the same customers as a file.
    csv: String,
    customers: Vec<CustomerView>,
    bys: [By; 2],
    leads: [Lead; 3],
}

struct CustomerView {
    customer: String,
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
    let mut customers = Vec::with_capacity(SIZE);
    for difference in pager.part_of(&found) {
        let customer = state.store.customers().get(difference.customer).await?;
        let who = customer.map(|customer| short_profile(&customer, live.serving.release().schema()));
        customers.push(CustomerView::new(*difference, &query, who.unwrap_or_default()));
    }
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
        let difference = format!("{:.6}", found.difference);
        lines.push(&[found.customer.as_str(), &found.cases.to_string(), &difference]);
    }
    let name = format!("{}-{}-{}-customers.csv", live.name(), query.versus.first, query.versus.second);
    Ok(csv_file(&name, lines.into_text()))
}

impl CustomerView {
    fn new(difference: CustomerDifference<'_>, query: &CaseQuery, who: String) -> Self {
        let CustomerDifference { customer, cases, difference } = difference;
        Self {
            customer: customer.to_string(),
            who,
            cases,
            difference: format::sign(difference, &format!("{:.3}", difference.abs())),
            apart: cases::difference_in_words(query.versus, difference),
            link: query.customer_link(Tab::Cases.path(), customer),
        }
    }
}

/// The first six features of a profile, to fit one line.
fn short_profile(customer: &Customer, schema: &Schema) -> String {
    let words = wording::describe(&customer.features, schema).into_iter().take(6).map(|word| word.words);
    words.collect::<Vec<_>>().join(", ")
}
