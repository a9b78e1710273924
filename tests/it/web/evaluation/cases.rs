//! The case explorer, compared with the single answers, which this test reads by rows, unlike the service.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
};

use atelier_core::domain::Customer;
use parquet::{
    file::{reader::FileReader, serialized_reader::SerializedFileReader},
    record::RowAccessor,
};
use serde_json::json;

use super::text;
use crate::{
    harness::{apply, on_sqlite},
    web::{Analyst, models, rows},
};

/// A row of `ranks.parquet`.
struct Answered {
    customer: String,
    seen: bool,
    articles: Vec<String>,
    slot: usize,
    article: String,
    kind: String,
    /// Rank and cross-entropy, by method.
    gsu: (f32, f32),
    none: (f32, f32),
}

impl Answered {
    fn difference(&self) -> f32 {
        self.none.1 - self.gsu.1
    }

    /// The link that opens the case in Side by side.
    fn link(&self) -> String {
        let slots = self.articles.iter().enumerate();
        let slots =
            slots.map(|(slot, id)| if slot == self.slot { "slot=".into() } else { format!("slot={id}") });
        format!(
            "/side-by-side?customer={}&#38;{}&#38;truth={}&#38;method=none&#38;method=gsu&#38;unfit=on&#38;sold_out=on&#38;any=on",
            self.customer,
            slots.collect::<Vec<_>>().join("&#38;"),
            self.article
        )
    }
}

fn answers() -> Vec<Answered> {
    let file = SerializedFileReader::new(File::open(models().join("demo/ranks.parquet")).unwrap()).unwrap();
    let names: Vec<String> = file
        .metadata()
        .file_metadata()
        .schema()
        .get_fields()
        .iter()
        .map(|field| field.name().to_owned())
        .collect();
    let place = |name: &str| names.iter().position(|other| other == name).unwrap();
    let answered = |row: parquet::record::Row| {
        let text = |name: &str| row.get_string(place(name)).unwrap().clone();
        let both = |method: &str| {
            let of = |what: &str| row.get_float(place(&format!("{method}.{what}"))).unwrap();
            (of("rank"), of("cross_entropy"))
        };
        Answered {
            customer: text("customer"),
            seen: row.get_bool(place("seen")).unwrap(),
            articles: text("articles").split('|').map(str::to_owned).collect(),
            slot: usize::try_from(row.get_int(place("slot")).unwrap()).unwrap(),
            article: text("article"),
            kind: text("type"),
            gsu: both("gsu"),
            none: both("none"),
        }
    };
    file.get_row_iter(None).unwrap().map(|row| answered(row.unwrap())).collect()
}

/// Answers for customers in the demo's database.
fn known_answers() -> Vec<Answered> {
    let known: HashSet<String> =
        rows::<Customer>().into_iter().map(|customer| customer.id.to_string()).collect();
    answers().into_iter().filter(|answered| known.contains(&answered.customer)).collect()
}

/// The links to Side by side, in their order.
fn links(html: &str) -> Vec<String> {
    let links = html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    links.filter(|link| link.starts_with("/side-by-side?")).map(str::to_owned).collect()
}

#[apply(on_sqlite)]
async fn cases_start_with_the_largest_difference(Analyst(_service, analyst): Analyst) {
    let html = analyst.page("/evaluation/cases?first=gsu&second=none").await;
    assert!(html.len() < 60_000, "{} bytes", html.len());
    let mut all = known_answers();
    assert!(text(&html).contains(&format!("{},{:03} cases", all.len() / 1000, all.len() % 1000)));
    all.sort_by(|one, other| other.difference().total_cmp(&one.difference()));
    let expected: Vec<String> = all.iter().take(12).map(Answered::link).collect();
    assert_eq!(links(&html), expected);
    let first = &all[0];
    assert!(text(&html).contains(&format!("gsu rank {}", first.gsu.0)), "{}", text(&html));
    assert!(text(&html).contains(&format!("none rank {}", first.none.0)));

    // The link works, and the page marks the true article.
    let opened = analyst.page(&expected[0].replace("&#38;", "&")).await;
    assert!(opened.contains(&first.article), "{opened}");
    // The second page continues after the first.
    let second = links(&analyst.page("/evaluation/cases?first=gsu&second=none&page=2").await);
    assert_eq!(second[0], all[12].link());
    let past = analyst.page("/evaluation/cases?first=gsu&second=none&page=9999").await;
    assert_eq!(links(&past).last(), all.last().map(Answered::link).as_ref(), "it is the last page");
    let customers = analyst.page("/evaluation/customers?first=gsu&second=none&page=9999").await;
    assert!(customers.contains("rel=\"prev\"") && !customers.contains("No customers match"), "{customers}");
}

#[apply(on_sqlite)]
async fn cases_can_be_filtered_and_reversed(Analyst(_service, analyst): Analyst) {
    let base = "/evaluation/cases?first=gsu&second=none";
    let shown = async |query: &str| links(&analyst.page(&format!("{base}&{query}")).await);
    let best = |all: &[Answered], key: &dyn Fn(&Answered) -> f32| {
        all.iter().min_by(|one, other| key(one).total_cmp(&key(other))).unwrap().link()
    };
    let mut all = known_answers();
    assert_eq!(shown("lead=second").await[0], best(&all, &Answered::difference));
    assert_eq!(shown("by=rank").await[0], best(&all, &|one| one.gsu.0 - one.none.0));
    all.retain(|one| one.kind == "coat" && !one.seen);
    assert_eq!(shown("type=coat&seen=no").await[0], best(&all, &|one| -one.difference()));
    let customer = all[0].customer.clone();
    let own: Vec<Answered> = known_answers().into_iter().filter(|one| one.customer == customer).collect();
    assert_eq!(shown(&format!("customer={customer}")).await.len(), own.len().min(12));

    // The whole evaluation: customers who are not in the database are listed without a link.
    let html = analyst.page(&format!("{base}&known=no")).await;
    assert!(text(&html).contains("9,579 cases"));
    let strangers = html.matches("this customer is not in this database").count();
    assert_eq!(strangers + links(&html).len(), 12);
    assert!(strangers > 0);
    // A form as browsers send it, with its empty fields.
    let open = "by=log_probability&lead=first&type=&seen=&known=yes&customer=&page=";
    assert_eq!(shown(open).await, shown("").await);
    let unknown = analyst.page(&format!("{base}&customer=c-nobody")).await;
    assert!(unknown.contains("No cases match"));
}

#[apply(on_sqlite)]
async fn customers_are_sorted_by_the_mean_of_their_cases(Analyst(_service, analyst): Analyst) {
    let html = analyst.page("/evaluation/customers?first=gsu&second=none").await;
    let mut sums: HashMap<String, (f64, f64)> = HashMap::new();
    for answered in known_answers() {
        let (sum, count) = sums.entry(answered.customer.clone()).or_default();
        *sum += f64::from(answered.difference());
        *count += 1.0;
    }
    let mean = |(sum, count): &(f64, f64)| sum / count;
    let (customer, most) = sums.iter().max_by(|one, other| mean(one.1).total_cmp(&mean(other.1))).unwrap();
    let first = html.split("<tbody>").nth(1).unwrap().split("</tr>").next().unwrap();
    assert!(
        first.contains(&format!("<th scope=\"row\"><strong>{customer}</strong></th>")),
        "{customer}: {first}"
    );
    let cells = first.split("<td class=\"number\">").skip(1).map(|cell| cell.split('<').next().unwrap());
    let cells: Vec<&str> = cells.collect();
    assert_eq!(cells[0], most.1.to_string());
    assert!((cells[1].parse::<f64>().unwrap() - mean(most)).abs() < 6e-4, "{first}");
    assert!(first.contains(&format!("customer={customer}&#38;known=yes")), "{first}");
    assert!(text(&html).contains(&format!("{} customers", sums.len())));
}

#[apply(on_sqlite)]
async fn the_name_of_a_customer_leads(Analyst(service, analyst): Analyst) {
    let html = analyst.page("/evaluation/customers?first=gsu&second=none").await;
    let (_, id) = html.split_once("<th scope=\"row\"><strong>").unwrap();
    let id = id.split('<').next().unwrap();
    let mut profile = service.json(&format!("/customers/{id}")).await["features"].clone();
    profile["name"] = "Jana Müller".into();
    service.put(&format!("/customers/{id}"), &json!({"features": profile})).await;
    let named = format!("<strong>Jana Müller</strong> <span class=\"quiet small\">{id}</span>");
    let outfit = "slot=a-00134&slot=&method=gsu";
    for page in [
        "/evaluation/customers?first=gsu&second=none".to_owned(),
        format!("/evaluation/cases?first=gsu&second=none&customer={id}"),
        format!("/side-by-side?customers={id},c-014871&{outfit}"),
        format!("/side-by-side?customer={id}&{outfit}"),
    ] {
        let html = analyst.page(&page).await;
        assert!(html.contains(&named), "{page}: {html}");
    }
    let html = analyst.page(&format!("/side-by-side?customers={id},c-014871&{outfit}&method=none")).await;
    assert!(html.contains(&format!("Outfits of Jana Müller · {id}</h2>")), "{html}");
    assert!(html.contains(&format!("<th scope=\"row\">Jana Müller · {id}</th>")), "{html}");
    // Files have the id only.
    let csv = analyst.page(&format!("/side-by-side/similarity.csv?customers={id},c-014871&{outfit}")).await;
    assert!(csv.contains(&format!("{id},c-014871,")), "{csv}");
    let html = analyst.page(&format!("/studio/customers/{id}")).await;
    assert!(html.contains("<h1>Profile of Jana Müller</h1>"), "{html}");
}

#[apply(on_sqlite)]
async fn cases_can_be_downloaded(Analyst(_service, analyst): Analyst) {
    let answer = analyst.get("/evaluation/cases.csv?first=gsu&second=none&type=coat&known=no").is(200).await;
    assert_eq!(answer.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"demo-gsu-none-cases.csv\"");
    let text = answer.text();
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(
        lines[0],
        "outfit,slot,customer,seen,type,article,articles,gsu.rank,none.rank,gsu.log_probability,none.log_probability,\
         difference"
    );
    let mut coats: Vec<Answered> = answers().into_iter().filter(|one| one.kind == "coat").collect();
    coats.sort_by(|one, other| other.difference().total_cmp(&one.difference()));
    assert_eq!(lines.len(), coats.len() + 1);
    for (line, coat) in lines[1..].iter().zip(&coats) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(
            cells[2..7],
            [&*coat.customer, &coat.seen.to_string(), "coat", &coat.article, &coat.articles.join("|")]
        );
        assert_eq!((cells[7], cells[8]), (&*coat.gsu.0.to_string(), &*coat.none.0.to_string()));
        assert!((cells[11].parse::<f32>().unwrap() - coat.difference()).abs() < 1e-5, "{line}");
    }
}

#[apply(on_sqlite)]
async fn cases_show_more_than_two_methods(Analyst(_service, analyst): Analyst) {
    let query = "first=gsu&second=none&also=np&also=match&lead=apart&known=no";
    let html = analyst.page(&format!("/evaluation/cases?{query}")).await;
    let (_, case) = html.split_once("<ol class=\"cases\">").unwrap();
    let (case, _) = case.split_once("</li>").unwrap();
    for method in ["gsu", "none", "np", "match"] {
        assert!(case.contains(&format!("<th scope=\"row\">{method}</th>")), "{method}: {case}");
    }
    assert_eq!(case.matches("<tr class=\"best\">").count(), 1, "{case}");
    assert!(
        html.contains("also=np&amp;also=match") || html.contains("also=np&#38;also=match"),
        "the next page has them: {html}"
    );

    let csv = analyst.get(&format!("/evaluation/cases.csv?{query}")).await.text();
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(head[7..11], ["gsu.rank", "none.rank", "np.rank", "match.rank"]);
    // The distance between the best and the worst of the four, computed again.
    let distances: Vec<(f32, f32)> = lines
        .map(|line| {
            let cells: Vec<&str> = line.rsplit(',').take(5).collect();
            let numbers: Vec<f32> = cells.iter().map(|cell| cell.parse().unwrap()).collect();
            let (low, high) = numbers[1..]
                .iter()
                .fold((f32::MAX, f32::MIN), |(low, high), one| (low.min(*one), high.max(*one)));
            (numbers[0], high - low)
        })
        .collect();
    assert_eq!(distances.len(), 9579);
    assert!(distances.iter().all(|(said, found)| (said - found).abs() < 1e-4));
    assert!(distances.is_sorted_by(|one, next| one.0 >= next.0));
}
