//! `/evaluation/customers`: the customers for whom two methods differ most.

use askama::Template;
use axum::{extract::State, response::Html};

use super::{
    Tab, cases, lack,
    versus::{Asked, Pager, VersusQuery, known, page_of},
    written,
};
use crate::{
    domain::{Customer, Schema},
    service::evaluation::{By, CustomerApart, Lead},
    web::{
        http::{AppState, Problem},
        pages::{
            form::PageQuery,
            profile,
            shell::{Page, Shell},
            visitor::Analyst,
        },
    },
};

/// Customers of a page.
const SIZE: usize = 30;

#[derive(Template)]
#[template(path = "evaluation/customers.html")]
struct CustomersPage {
    shell: Shell,
    tab: Tab,
    asked: Asked,
    pager: Pager,
    customers: Vec<CustomerView>,
    bys: [By; 2],
    leads: [Lead; 2],
}

struct CustomerView {
    customer: String,
    /// Who they are, in a few words; empty if they are not known here.
    who: String,
    cases: u32,
    difference: String,
    apart: String,
    /// Their cases.
    link: String,
}

pub(super) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    PageQuery(query): PageQuery<VersusQuery>,
) -> Result<Html<String>, Problem> {
    let (shell, tab) = (visitor.shell(Page::Evaluation), Tab::Customers);
    let Some(live) = state.releases.current() else { return lack::no_release(shell, tab) };
    let ranks = match live.evaluation.ranks().await {
        Ok(ranks) => ranks,
        Err(found) => return lack::page(shell, tab, &found),
    };
    let asked = Asked::new(query, &ranks, live.serving.release().manifest().default_method)?;
    let known = known(&state.store, &ranks).await?;
    let found = ranks.customers_apart(asked.versus, asked.selection(&known));
    let mut customers = Vec::with_capacity(SIZE);
    for apart in page_of(&found, asked.page, SIZE) {
        let who = state.store.customers().get(apart.customer).await?;
        let who = who.map(|customer| who_they_are(&customer, live.serving.release().schema()));
        customers.push(CustomerView::new(*apart, &asked, who.unwrap_or_default()));
    }
    let page = CustomersPage {
        tab,
        pager: Pager::new(&asked, tab.path(), found.len(), SIZE),
        customers,
        asked,
        bys: By::ALL,
        leads: Lead::ALL,
        shell,
    };
    Ok(Html(page.render()?))
}

impl CustomerView {
    fn new(apart: CustomerApart<'_>, asked: &Asked, who: String) -> Self {
        let CustomerApart { customer, cases, difference } = apart;
        Self {
            customer: customer.to_string(),
            who,
            cases,
            difference: written::sign(difference, &format!("{:.3}", difference.abs())),
            apart: cases::words(asked.versus, difference),
            link: asked.of_customer(Tab::Cases.path(), customer),
        }
    }
}

/// The beginning of their profile: all of it would not fit a line.
fn who_they_are(customer: &Customer, schema: &Schema) -> String {
    let words = profile::profile(&customer.features, schema).into_iter().take(6).map(|word| word.words);
    words.collect::<Vec<_>>().join(", ")
}
