//! The case explorer, compared with the single answers of the release; how these are sorted and filtered is asked in
//! `atelier_engine::evaluation`.

use std::collections::HashSet;

use atelier_core::domain::{ArticleId, Customer, CustomerId, Method};
use atelier_engine::evaluation::{By, Lead, Ranks, Selection, Stored, Versus};
use serde_json::json;

use crate::{
    analysis::evaluation::text,
    harness::{Analyst, Html, apply, contract, models, on_sqlite, rows},
};

const CASES: &str = "/evaluation/cases?first=gsu&second=none";
const CUSTOMERS: &str = "/evaluation/customers?first=gsu&second=none";
const VERSUS: Versus =
    Versus { first: Method::Gsu, second: Method::None, by: By::LogProbability, lead: Lead::First };

/// The demo's single answers, and for each of its customers whether the database has them.
fn ranks() -> (Ranks, Vec<bool>) {
    let ranks = Stored::read(&models().join("demo")).unwrap().ranks.unwrap();
    let known: HashSet<CustomerId> = rows::<Customer>().into_iter().map(|customer| customer.id).collect();
    let among = ranks.customers().iter().map(|customer| known.contains(customer)).collect();
    (ranks, among)
}

/// The links that open the cases in Side by side.
fn expected_links(ranks: &Ranks, versus: Versus, selection: Selection<'_>) -> Vec<String> {
    let cases = ranks.cases_by_difference(versus, selection).into_iter().map(|difference| {
        let case = ranks.case(difference.row);
        let mut slots: Vec<&str> = case.articles().map(ArticleId::as_str).collect();
        slots[case.slot] = "";
        let (customer, slots, truth) = (case.customer, slots.join("&slot="), case.truth());
        let shown = "method=none&method=gsu&unfit=on&sold_out=on&any=on";
        format!("/side-by-side?customer={customer}&slot={slots}&truth={truth}&{shown}")
    });
    cases.collect()
}

/// The links to Side by side, in their order.
fn links(html: &str) -> Vec<String> {
    html.all_between("href=\"", "\"").into_iter().filter(|link| link.starts_with("/side-by-side?")).collect()
}

#[apply(on_sqlite)]
async fn cases_start_with_the_largest_difference(Analyst(_service, analyst): Analyst) {
    let (ranks, known) = ranks();
    let known = Selection { among: Some(&known), ..Selection::default() };
    let all = expected_links(&ranks, VERSUS, known);
    let html = analyst.page(CASES).await;
    assert!(html.len() < 60_000, "{} bytes", html.len());
    assert_eq!(links(&html), all[..12]);
    let count = format!("{},{:03} cases", all.len() / 1000, all.len() % 1000);
    let first = ranks.cases_by_difference(VERSUS, known)[0].row;
    let rank = |method: Method| format!("{method} rank {}", ranks.answer(method, first).unwrap().0);
    text(&html).has([&count, &rank(Method::Gsu), &rank(Method::None)]);

    // The link works, and the page marks the true article.
    analyst.page(&all[0]).await.has([ranks.case(first).truth().as_str()]);
    // The second page continues after the first, and past the last one is the last one.
    assert_eq!(links(&analyst.page(format!("{CASES}&page=2")).await), all[12..24]);
    let past = links(&analyst.page(format!("{CASES}&page=9999")).await);
    assert!(!past.is_empty() && all.ends_with(&past), "{past:?}");
    let customers = analyst.page(format!("{CUSTOMERS}&page=9999")).await;
    customers.has(["rel=\"prev\""]);
    customers.lacks(["No customers match"]);
}

#[apply(on_sqlite)]
async fn cases_can_be_filtered_and_reversed(Analyst(_service, analyst): Analyst) {
    let shown = async |query: &str| links(&analyst.page(format!("{CASES}&{query}")).await);
    let (ranks, known) = ranks();
    let known = Selection { among: Some(&known), ..Selection::default() };
    let unseen_coats = Selection { kind: Some("coat"), seen: Some(false), ..known };
    let customer = ranks.case(ranks.cases_by_difference(VERSUS, unseen_coats)[0].row).customer;
    for (query, versus, selection) in [
        ("lead=second", Versus { lead: Lead::Second, ..VERSUS }, known),
        ("by=rank", Versus { by: By::Rank, ..VERSUS }, known),
        ("type=coat&seen=no", VERSUS, unseen_coats),
        (&format!("customer={customer}"), VERSUS, Selection { customer: Some(customer), ..known }),
        // A form as browsers send it, with its empty fields.
        ("by=log_probability&lead=first&type=&seen=&known=yes&customer=&page=", VERSUS, known),
    ] {
        let mut expected = expected_links(&ranks, versus, selection);
        expected.truncate(12);
        assert_eq!(shown(query).await, expected, "{query}");
    }
    // The whole evaluation: customers who are not in the database are listed without a link.
    let html = analyst.page(format!("{CASES}&known=no")).await;
    text(&html).has(["9,579 cases"]);
    let strangers = html.matches("this customer is not in this database").count();
    assert!(strangers > 0 && strangers + links(&html).len() == 12, "{html}");
    analyst.page(format!("{CASES}&customer=c-nobody")).await.has(["No cases match"]);
}

/// More customers than fit into one statement.
#[apply(contract)]
async fn customers_are_listed_with_the_mean_of_their_cases(Analyst(_service, analyst): Analyst) {
    let (ranks, known) = ranks();
    let all =
        ranks.customers_by_difference(VERSUS, Selection { among: Some(&known), ..Selection::default() });
    let html = analyst.page(CUSTOMERS).await;
    text(&html).has([&format!("{} customers", all.len())]);
    let row = html.after("<tbody>").split("</tr>").next().unwrap();
    let (first, customer) = (all[0], all[0].customer);
    let cells = [
        format!(" <span class=\"quiet small\">{customer}</span></th>"),
        format!("<td class=\"number\">{}<", first.cases),
        format!("{:.3}</td>", first.difference),
        format!("customer={customer}&#38;known=yes"),
    ];
    row.has(cells);
}

#[apply(on_sqlite)]
async fn the_name_of_a_customer_leads(Analyst(service, analyst): Analyst) {
    let list = analyst.page(CUSTOMERS).await;
    let id = list.after("<th scope=\"row\"><strong>").between("<span class=\"quiet small\">", "<");
    service.patch(format!("/customers/{id}"), json!({"features": {"name": "Jana Müller"}})).is(200).await;
    let outfit = "slot=a-00134&slot=&method=gsu";
    let both = format!("/side-by-side?customers={id},c-014871&{outfit}");
    let named = [&*format!("<strong>Jana Müller</strong> <span class=\"quiet small\">{id}</span>")];
    let headings = [
        &*format!("Outfits of Jana Müller · {id}</h2>"),
        &*format!("<th scope=\"row\">Jana Müller · {id}</th>"),
    ];
    for (page, texts) in [
        (CUSTOMERS, &named[..]),
        (&format!("{CASES}&customer={id}"), &named),
        (&both, &named),
        (&format!("/side-by-side?customer={id}&{outfit}"), &named),
        (&format!("{both}&method=none"), &headings),
        // Files have the id only.
        (
            &format!("/side-by-side/similarity.csv?customers={id},c-014871&{outfit}"),
            &[&*format!("{id},c-014871,")],
        ),
        (&format!("/studio/customers/{id}"), &["<h1>Profile of Jana Müller</h1>"]),
    ] {
        analyst.page(page).await.has(texts);
    }
}

#[apply(on_sqlite)]
async fn cases_can_be_downloaded(Analyst(_service, analyst): Analyst) {
    let answer = analyst.get("/evaluation/cases.csv?first=gsu&second=none&type=coat&known=no").is(200).await;
    assert_eq!(answer.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"demo-gsu-none-cases.csv\"");
    let text = answer.text();
    let mut lines = text.split_terminator("\r\n");
    assert_eq!(
        lines.next().unwrap(),
        "outfit,slot,customer,seen,type,article,articles,gsu.rank,none.rank,gsu.log_probability,none.log_probability,\
         difference"
    );
    let (ranks, _) = ranks();
    let coats = ranks.cases_by_difference(VERSUS, Selection { kind: Some("coat"), ..Selection::default() });
    assert_eq!(lines.clone().count(), coats.len());
    for (line, coat) in lines.zip(coats) {
        let (case, rank) = (ranks.case(coat.row), |method| ranks.answer(method, coat.row).unwrap().0);
        let articles: Vec<&str> = case.articles().map(ArticleId::as_str).collect();
        let start = format!(
            "{},{},coat,{},{},{},{},",
            case.customer,
            case.seen,
            case.truth(),
            articles.join("|"),
            rank(Method::Gsu),
            rank(Method::None)
        );
        let cells: Vec<&str> = line.split(',').collect();
        assert!(cells[2..].join(",").starts_with(&start), "{start} in {line}");
        assert!((cells[11].parse::<f32>().unwrap() - coat.difference).abs() < 1e-5, "{line}");
    }
}

#[apply(on_sqlite)]
async fn cases_show_more_than_two_methods(Analyst(_service, analyst): Analyst) {
    let query = "first=gsu&second=none&also=np&also=match&lead=apart&known=no";
    let html = analyst.page(format!("/evaluation/cases?{query}")).await;
    let case = html.between("<ol class=\"cases\">", "</li>");
    let rows = ["gsu", "none", "np", "match"].map(|method| format!("<th scope=\"row\">{method}</th>"));
    case.has(rows);
    assert_eq!(case.matches("<tr class=\"best\">").count(), 1, "{case}");
    // The next page has them.
    html.replace("&amp;", "&#38;").has(["also=np&#38;also=match"]);

    let csv = analyst.get(format!("/evaluation/cases.csv?{query}")).await.text();
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(head[7..11], ["gsu.rank", "none.rank", "np.rank", "match.rank"]);
    // The distance between the best and the worst of the four, computed again.
    let distances = lines.map(|line| {
        let cells: Vec<f32> = line.rsplit(',').take(5).map(|cell| cell.parse().unwrap()).collect();
        let high = cells[1..].iter().copied().fold(f32::MIN, f32::max);
        let low = cells[1..].iter().copied().fold(f32::MAX, f32::min);
        assert!((cells[0] - (high - low)).abs() < 1e-4, "{line}");
        cells[0]
    });
    let distances: Vec<f32> = distances.collect();
    assert_eq!(distances.len(), 9579);
    assert!(distances.is_sorted_by(|one, next| one >= next));
}
