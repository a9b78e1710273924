//! `/evaluation`: the pages show the release's figures; computed ones are computed here again.

pub mod cases;
pub mod lack;
pub mod new_articles;

use std::{fs, path::Path};

use atelier_core::domain::{Method, Role};
use atelier_engine::evaluation::{Published, Stored};
use serde_json::{Value, json};

use crate::harness::{Analyst, Demo, Html, apply, models, on_sqlite};

fn evaluation() -> Value {
    serde_json::from_slice(&fs::read(models().join("demo/evaluation.json")).unwrap()).unwrap()
}

/// The evaluation of one method.
fn evaluation_of(method: &str) -> Value {
    let evaluation = evaluation();
    let mut all = evaluation["evaluations"].as_array().unwrap().iter();
    all.find(|own| own["about"]["method"] == method).unwrap().clone()
}

/// A page's text without its tags.
pub fn text(html: &str) -> String {
    let parts = html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    parts.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The row of a page's first table that starts with this name.
fn line(html: &str, name: &str) -> String {
    let head = format!("{name}</th>");
    let mut lines = html.split("<tr>").filter(|line| line.contains(&head));
    lines.next().unwrap_or_else(|| panic!("no line {name}: {html}")).to_owned()
}

/// What Studio asks: which article of a known type.
#[apply(on_sqlite)]
async fn the_question_with_a_known_type_comes_first(Analyst(service, analyst): Analyst) {
    let html = analyst.page("/evaluation").await;
    let (known, rest) = html.split_once("id=\"table-1\"").expect("Table 1 follows");
    let gsu = "gsu</dt><dd>As gs, and the state changes from block to block.</dd>";
    rest.has(["id=\"recall\"", gsu]);
    let said = [
        "match is the default method. It puts the missing article first in 51.58 % of the slots, and among the first five in 88.28 %.",
        "No other method or baseline comes close.",
        "When the type is not known, no other method beats it",
    ];
    text(known).has(said);
    text(known).lacks(["Not clearly apart", "independent"]);
    let best = known.split("<tr>").find(|row| row.contains("<th scope=\"row\">")).unwrap();
    let default = "match <span class=\"chip\" aria-current=\"true\">default</span></th>";
    best.has([default, ">51.58 <small>± 0.5"]);
    line(known, "co-occurrence").has([">34.88 "]);

    service.put("/routing", json!({"default_method": "none"})).is(200).await;
    let html = analyst.page("/evaluation").await;
    let said = [
        "none is the default method.",
        "Beaten by: match, gsu, np, gs, c, logit.",
        "Not clearly apart: universal, latent, latent-universal, co-occurrence. By recall@1, as if",
        "When the type is not known, these methods beat it (recall@1): c, np, gs, gsu,",
    ];
    text(&html).has(said);
    // What the curves say when they are pointed at.
    let tips: Vec<&str> = html.split("class=\"tip\"").skip(1).collect();
    tips.concat().has([">gsu at 1: +3.94 (+3.", ">gsu: 19.3 % at 1</text>"]);
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let mut is_quoted = false;
    let ends = |letter: char| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    };
    line.split(ends).map(str::to_owned).collect()
}

#[apply(on_sqlite)]
async fn tables_can_be_downloaded(Analyst(_service, analyst): Analyst) {
    for (query, first, rows) in [
        ("of=known-type", "match,true,0.5158,", 12),
        ("of=methods", "none,546432,4.123,", 12),
        ("of=new-articles", "match,0.08464,", 3),
        ("of=recall&method=gsu", "gsu,1,0.192", 27),
        ("of=calibration&method=none", "none,1,958,0.05896,0.05428", 10),
        ("of=differences&method=none&method=c", "cross_entropy,none,c,0.2252,0.2029,0.248,0.0002", 5),
        ("of=segments&by=gender&metric=recall_at_1&method=np", "female,5628,np,", 2),
    ] {
        let answer = analyst.get(format!("/evaluation/table.csv?{query}")).await;
        assert_eq!(answer.header("content-type"), "text/csv; charset=utf-8", "{query}");
        let csv = answer.text();
        assert!(csv.lines().nth(1).is_some_and(|line| line.starts_with(first)), "{query}: {csv}");
        assert!(csv.lines().count() > rows, "{query}: {csv}");
    }
    // A column of errors is there only if something has one.
    let tables = ["table.csv?of=methods", "table.csv?of=known-type", "table.csv?of=segments&by=gender"];
    let worlds = Published::all().iter().map(|world| format!("results.csv?data={}", world.data));
    for address in tables.into_iter().map(str::to_owned).chain(worlds) {
        let csv = analyst.get(format!("/evaluation/{address}")).await.text();
        let rows: Vec<Vec<String>> = csv.lines().map(cells).collect();
        for (column, head) in rows[0].iter().enumerate() {
            assert!(rows[1..].iter().any(|row| !row[column].is_empty()), "{address}: {head} in {csv}");
        }
        let has_errors = rows[0].iter().any(|head| head.ends_with(".standard_error"));
        assert!(has_errors || !address.starts_with("table"), "{address}: {csv}");
    }
    let customers = analyst.get("/evaluation/customers.csv?first=gsu&second=none&known=no").await;
    assert_eq!(customers.text().lines().count(), 1 + 1813);
}

#[apply(on_sqlite)]
async fn figures_come_from_the_release(Analyst(_service, analyst): Analyst) {
    let html = analyst.page("/evaluation").await;
    assert!(html.len() < 100_000, "{} bytes", html.len());
    html.lacks(["style=", "<style"]);
    let (_, html) = html.split_once("id=\"table-1\"").unwrap();
    let evaluation = evaluation();
    let methods = evaluation["comparison"]["methods"].as_array().unwrap();
    assert_eq!(methods.len(), 9);
    for method in methods {
        let name = method["method"].as_str().unwrap();
        let mean = |figure: &str| method[figure]["mean"].as_f64().unwrap();
        let error = &evaluation_of(name)["summary"]["cross_entropy"]["standard_error"];
        let expected = [
            format!(">{:.2}", 100.0 * mean("recall_at_1")),
            format!(">{:.2}", 100.0 * mean("recall_at_5")),
            format!(">{:.2}", 100.0 * mean("recall_at_250")),
            format!(">{:.3}", mean("cross_entropy")),
            format!(">{:.3}", mean("mrr")),
            format!("± {:.3}", error.as_f64().unwrap()),
        ];
        line(html, name).has(expected);
    }
    for baseline in ["popularity", "popularity, told the type", "co-occurrence"] {
        html.has([&format!("<th scope=\"row\">{baseline}</th>")]);
    }
    // The paper's row is the best of its columns; ours is another method.
    line(html, "gsu").has(["best\">4.746<span"]);
    line(html, "match").has(["best\">3.040<span"]);
    line(html, "none").has(["546,432"]);
    line(html, "none").lacks(["best"]);
    // Differences in both directions, and one that is zero.
    let said = [
        "match has the lowest cross-entropy, 3.040; none, which ignores the customer, has 4.123: a difference of −1.083",
        "The next, gsu, is 0.768 behind, a significant difference (p &#60; 0.001).",
        "first most often with match, in 24.41 % of the slots, and least often with none, in 15.35 %; popularity reaches 1.61 %.",
        "rank as gsu, np, gs, c, none here; as gsu, gs, np, c, none in the paper, on its data.",
        "“popularity, told the type” has 2.893, lower than any method",
        "▲ −0.225 better −0.248 to −0.203 p &#60; 0.001",
        "▼ +0.225 worse +0.203 to +0.248 p &#60; 0.001",
        "≈ −0.005 no significant difference −0.020 to +0.010 p = 0.511",
    ];
    text(html).has(said);

    let chosen = analyst.page("/evaluation?method=np&method=latent&metric=recall_at_5").await;
    text(&chosen).has(["Differences in recall@5"]);
    chosen.has(["Calibration of np"]);
    chosen.lacks(["Calibration of gsu"]);
}

#[apply(on_sqlite)]
async fn curves_and_segments_have_their_numbers(Analyst(_service, analyst): Analyst) {
    let gsu = evaluation_of("gsu");
    let html = analyst.page("/evaluation?method=gsu").await;
    let table = html.split("<caption class=\"visually-hidden\">Recall at k").nth(1).unwrap();
    for figure in ["recall_at_1", "recall_at_5", "recall_at_250"] {
        let recall = 100.0 * gsu["summary"][figure]["mean"].as_f64().unwrap();
        line(table, "gsu").has([&format!("<td class=\"number\">{recall:.2}</td>")]);
    }
    let percent = |name: &str| 100.0 * gsu["calibration"]["bins"][9][name].as_f64().unwrap();
    html.has([&format!("{:.1} → {:.1}", percent("confidence"), percent("accuracy"))]);

    analyst.page("/evaluation/segments?by=&metric=").await.has(["customer seen in training"]);
    let page = analyst.page("/evaluation/segments?by=gender&metric=recall_at_1&method=np").await;
    let figures = Stored::read(&models().join("demo")).unwrap().figures.unwrap();
    let segments = &figures.evaluation_of(Method::Np).unwrap().segments;
    let female = segments.iter().find(|one| one.by == "gender" && one.value == "female").unwrap();
    let figure = female.summary.scores.recall_at_1;
    let (mean, error) = (100.0 * figure.mean, 100.0 * figure.standard_error.unwrap());
    let written = format!("<td class=\"number\">{mean:.2} ± {error:.2}</td>");
    line(&page, "female").has([&written, ">5,628<"]);
    // A small group is marked.
    text(&page).has(["261 slots, few"]);
    page.has(["<svg class=\"chart whiskers\"", "Recall@1 by gender"]);

    // Even the largest page loads at once.
    let all: Vec<String> = Method::ALL.iter().map(|method| format!("&method={method}")).collect();
    for path in ["/evaluation?metric=recall_at_5", "/evaluation/segments?by=preferred_brands"] {
        let size = analyst.page(format!("{path}{}", all.concat())).await.len();
        assert!(size < 150_000, "{path}: {size} bytes");
    }
}

#[apply(on_sqlite)]
async fn invalid_queries_are_refused(Analyst(_service, analyst): Analyst) {
    for (path, says) in [
        ("/evaluation?method=bert", "has no method bert"),
        ("/evaluation?metric=accuracy", "cannot read &#34;accuracy&#34; as its "),
        ("/evaluation/segments?by=weather", "no segments by"),
        ("/evaluation/cases?first=gsu&second=gsu", "gsu cannot be compared with itself"),
        ("/evaluation/cases?type=spaceship", "no case has a missing article of type"),
        ("/evaluation/cases?page=0", "page numbers start at 1"),
        ("/evaluation/cases?customer=%00", "control characters"),
        ("/evaluation/customers?lead=third", "cannot read &#34;third&#34; as its "),
        ("/evaluation/cases?also=bert", "has no method bert"),
        ("/evaluation/table.csv?of=nothing", "cannot read &#34;nothing&#34; as its "),
        ("/evaluation/table.csv?of=segments&by=weather", "no segments by"),
        ("/evaluation/results.csv?data=mars", "there is no world"),
    ] {
        analyst.get(path).is(422).await.text().has(["<h1>", says]);
    }
    // Mails and advertisements add parameters to links.
    for path in ["/evaluation", "/evaluation/cases", "/evaluation/segments", "/evaluation/customers"] {
        analyst.get(format!("{path}?yclid=1&_hsenc=2&mkt_tok=3&twclid=4&colour=red")).is(200).await;
    }
}

#[apply(on_sqlite)]
async fn published_results_are_shown(Demo(service): Demo) {
    let html = service.signed_in(Role::Analyst).await.page("/evaluation/results").await;
    let own = &evaluation()["comparison"];
    for name in ["paper", "fifth", "demo"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/results/{name}.json"));
        let table: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let section = html.split("<section>").find(|part| part.contains(&format!("World “{name}”"))).unwrap();
        // Another data set may have the same name.
        let is_other =
            own["data"] == name && (&own["outfits"], &own["slots"]) != (&table["outfits"], &table["slots"]);
        assert_eq!(section.contains("another data set, which is also called"), is_other, "{section}");
        for method in table["methods"].as_array().unwrap() {
            let name = method["method"].as_str().unwrap();
            // A match always has attributes.
            let with = if method["attributes"] == true && name != "match" { " + attributes" } else { "" };
            let line = line(section, &format!("{name}{with}"));
            let recall = 100.0 * method["recall_at_1"]["mean"].as_f64().unwrap();
            line.has([&format!(">{recall:.2}")]);
            if let Some(error) = method["cross_entropy"]["standard_error"].as_f64() {
                line.has([&format!("± {error:.3}")]);
            }
        }
        let known = table["bounds"]["known"]["cross_entropy"]["mean"].as_f64().unwrap();
        line(section, "oracle, customer known").has([&format!(">{known:.3}")]);
    }
}
