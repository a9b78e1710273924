//! `/evaluation`: the pages show the release's figures; computed ones are computed here again.

pub mod cases;
pub mod lack;
pub mod new_articles;

use std::{fs, path::Path};

use atelier_core::domain::{Method, Role};
use atelier_engine::{
    evaluation::{Figures, Published},
    release::Release,
};
use serde_json::{Value, json};

use super::{Analyst, Demo, models};
use crate::harness::{apply, on_sqlite};

fn evaluation() -> Value {
    serde_json::from_str(&fs::read_to_string(models().join("demo/evaluation.json")).unwrap()).unwrap()
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
    assert!(rest.contains("id=\"recall\""));
    assert!(rest.contains("gsu</dt><dd>As gs, and the state changes from block to block.</dd>"), "{rest}");
    let words = text(known);
    for said in [
        "match is the default method. It puts the missing article first in 51.58 % of the slots, and among the first five in 88.28 %.",
        "No other method or baseline comes close.",
        "When the type is not known, no other method beats it",
    ] {
        assert!(words.contains(said), "{said}: {words}");
    }
    assert!(!words.contains("Not clearly apart") && !words.contains("independent"), "{words}");
    let rows: Vec<&str> = known.split("<tr>").filter(|row| row.contains("<th scope=\"row\">")).collect();
    let default = "match <span class=\"chip\" aria-current=\"true\">default</span></th>";
    assert!(rows[0].contains(default), "the best comes first: {}", rows[0]);
    assert!(rows[0].contains(">51.58 <small>± 0.5"), "{}", rows[0]);
    assert!(line(known, "co-occurrence").contains(">34.88 "), "{}", line(known, "co-occurrence"));

    service.put("/routing", &json!({"default_method": "none"})).await;
    let html = analyst.page("/evaluation").await;
    let words = text(&html);
    assert!(words.contains("none is the default method."), "{words}");
    assert!(words.contains("Beaten by: match, gsu, np, gs, c, logit."), "{words}");
    assert!(
        words.contains(
            "Not clearly apart: universal, latent, latent-universal, co-occurrence. By recall@1, as if"
        ),
        "{words}"
    );
    assert!(
        words.contains("When the type is not known, these methods beat it (recall@1): c, np, gs, gsu,"),
        "{words}"
    );

    // What the curves say when they are pointed at.
    let tips: Vec<&str> = html.split("class=\"tip\"").skip(1).collect();
    assert!(tips.iter().any(|tip| tip.contains(">gsu at 1: +3.94 (+3.")), "{tips:?}");
    assert!(tips.iter().any(|tip| tip.contains(">gsu: 19.3 % at 1</text>")), "{tips:?}");
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
        let answer = analyst.get(&format!("/evaluation/table.csv?{query}")).await;
        assert_eq!(answer.header("content-type"), "text/csv; charset=utf-8", "{query}");
        let csv = answer.text();
        let mut lines = csv.lines().skip(1);
        assert!(lines.next().is_some_and(|line| line.starts_with(first)), "{query}: {csv}");
        assert!(lines.count() + 1 >= rows, "{query}: {csv}");
    }
    // A column of errors is there only if something has one.
    let tables = ["table.csv?of=methods", "table.csv?of=known-type", "table.csv?of=segments&by=gender"];
    let worlds = Published::all().iter().map(|world| format!("results.csv?data={}", world.data));
    for address in tables.into_iter().map(str::to_owned).chain(worlds) {
        let csv = analyst.get(&format!("/evaluation/{address}")).await.text();
        let rows: Vec<Vec<String>> = csv.lines().map(cells).collect();
        for (column, head) in rows[0].iter().enumerate() {
            assert!(rows[1..].iter().any(|row| !row[column].is_empty()), "{address}: {head} in {csv}");
        }
        assert!(
            !address.starts_with("table") || rows[0].iter().any(|head| head.ends_with(".standard_error"))
        );
    }
    let customers = analyst.get("/evaluation/customers.csv?first=gsu&second=none&known=no").await;
    let customers = customers.text();
    assert_eq!(customers.lines().count(), 1 + 1813);
}

#[apply(on_sqlite)]
async fn figures_come_from_the_release(Analyst(_service, analyst): Analyst) {
    let html = analyst.page("/evaluation").await;
    assert!(html.len() < 100_000, "{} bytes", html.len());
    let (_, html) = html.split_once("id=\"table-1\"").unwrap();
    let evaluation = evaluation();
    let methods = evaluation["comparison"]["methods"].as_array().unwrap();
    assert_eq!(methods.len(), 9);
    for method in methods {
        let line = line(html, method["method"].as_str().unwrap());
        let mean = |figure: &str| method[figure]["mean"].as_f64().unwrap();
        let entropy = format!("{:.3}", mean("cross_entropy"));
        let percents =
            ["recall_at_1", "recall_at_5", "recall_at_250"].map(|name| format!("{:.2}", 100.0 * mean(name)));
        let all = percents.into_iter().chain([entropy, format!("{:.3}", mean("mrr"))]);
        for figure in all {
            assert!(line.contains(&format!(">{figure}")), "{figure} in {line}");
        }
        let own = evaluation["evaluations"].as_array().unwrap();
        let own = own.iter().find(|own| own["about"]["method"] == method["method"]).unwrap();
        let error = own["summary"]["cross_entropy"]["standard_error"].as_f64().unwrap();
        assert!(line.contains(&format!("± {error:.3}")), "{line}");
    }
    for baseline in ["popularity", "popularity, told the type", "co-occurrence"] {
        assert!(html.contains(&format!("<th scope=\"row\">{baseline}</th>")), "{baseline}");
    }
    // The paper's row is the best of its columns; ours is another method.
    assert!(line(html, "gsu").contains("best\">4.746<span"), "{}", line(html, "gsu"));
    assert!(line(html, "match").contains("best\">3.040<span"), "{}", line(html, "match"));
    assert!(line(html, "none").contains("546,432") && !line(html, "none").contains("best"));
    let text = text(html);
    for sentence in [
        "match has the lowest cross-entropy, 3.040; none, which ignores the customer, has 4.123: a difference of −1.083",
        "The next, gsu, is 0.768 behind, a significant difference (p &#60; 0.001).",
        "first most often with match, in 24.41 % of the slots, and least often with none, in 15.35 %; popularity reaches 1.61 %.",
        "rank as gsu, np, gs, c, none here; as gsu, gs, np, c, none in the paper, on its data.",
        "“popularity, told the type” has 2.893, lower than any method",
    ] {
        assert!(text.contains(sentence), "{sentence}: {text}");
    }
    // Differences in both directions, and one that is zero.
    assert!(text.contains("▲ −0.225 better −0.248 to −0.203 p &#60; 0.001"), "{text}");
    assert!(text.contains("▼ +0.225 worse +0.203 to +0.248 p &#60; 0.001"), "{text}");
    assert!(text.contains("≈ −0.005 no significant difference −0.020 to +0.010 p = 0.511"), "{text}");
    assert!(!html.contains("style=") && !html.contains("<style"), "the policy allows none");

    let chosen = analyst.page("/evaluation?method=np&method=latent&metric=recall_at_5").await;
    let text = self::text(&chosen);
    assert!(text.contains("Differences in recall@5") && chosen.contains("Calibration of np"), "{text}");
    assert!(!chosen.contains("Calibration of gsu"));
}

#[apply(on_sqlite)]
async fn curves_and_segments_have_their_numbers(Analyst(_service, analyst): Analyst) {
    let evaluation = evaluation();
    let of = |name: &str| {
        let all = evaluation["evaluations"].as_array().unwrap();
        all.iter().find(|own| own["about"]["method"] == name).unwrap().clone()
    };
    let html = analyst.page("/evaluation?method=gsu").await;
    let recall = |k: &str| 100.0 * of("gsu")["summary"][k]["mean"].as_f64().unwrap();
    let table = html.split("<caption class=\"visually-hidden\">Recall at k").nth(1).unwrap();
    for figure in ["recall_at_1", "recall_at_5", "recall_at_250"] {
        let written = format!("<td class=\"number\">{:.2}</td>", recall(figure));
        assert!(line(table, "gsu").contains(&written), "{written}: {}", line(table, "gsu"));
    }
    let bin = &of("gsu")["calibration"]["bins"][9];
    let percent = |name: &str| 100.0 * bin[name].as_f64().unwrap();
    let last = format!("{:.1} → {:.1}", percent("confidence"), percent("accuracy"));
    assert!(html.contains(&last), "{last}");

    assert!(analyst.page("/evaluation/segments?by=&metric=").await.contains("customer seen in training"));
    let page = analyst.page("/evaluation/segments?by=gender&metric=recall_at_1&method=np").await;
    let figures = Figures::from_release(&Release::open(&models().join("demo")).unwrap()).unwrap();
    let segments = &figures.evaluation_of(Method::Np).unwrap().segments;
    let female = segments.iter().find(|one| one.by == "gender" && one.value == "female").unwrap();
    let figure = female.summary.scores.recall_at_1;
    let written = format!(
        "<td class=\"number\">{:.2} ± {:.2}</td>",
        100.0 * figure.mean,
        100.0 * figure.standard_error.unwrap()
    );
    assert!(line(&page, "female").contains(&written), "{written}: {}", line(&page, "female"));
    assert!(line(&page, "female").contains(">5,628<"));
    assert!(text(&page).contains("261 slots, few"), "a small group is marked");
    assert!(page.contains("<svg class=\"chart whiskers\"") && page.contains("Recall@1 by gender"));

    // Even the largest page loads at once.
    let all: String = evaluation["comparison"]["methods"]
        .as_array()
        .unwrap()
        .iter()
        .fold(String::new(), |all, one| format!("{all}&method={}", one["method"].as_str().unwrap()));
    for path in ["/evaluation?metric=recall_at_5", "/evaluation/segments?by=preferred_brands"] {
        let size = analyst.page(&format!("{path}{all}")).await.len();
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
        ("/evaluation/cases?page=x", "cannot read &#34;x&#34; as its page"),
        ("/evaluation/cases?seen=maybe", "cannot read &#34;maybe&#34; as its "),
        ("/evaluation/cases?customer=%00", "control characters"),
        ("/evaluation/cases.csv?by=length", "cannot read &#34;length&#34; as its "),
        ("/evaluation/customers?lead=third", "cannot read &#34;third&#34; as its "),
        ("/evaluation/cases?also=bert", "has no method bert"),
        ("/evaluation/table.csv?of=nothing", "cannot read &#34;nothing&#34; as its "),
        ("/evaluation/table.csv?of=segments&by=weather", "no segments by"),
        ("/evaluation/results.csv?data=mars", "there is no world"),
    ] {
        let answer = analyst.get(path).await;
        let status = answer.status();
        let html = answer.text();
        assert_eq!(status, 422, "{path}: {html}");
        assert!(html.contains("<h1>") && html.contains(says), "{path}: {html}");
    }
    // Mails and advertisements add parameters to links.
    for path in ["/evaluation", "/evaluation/cases", "/evaluation/segments", "/evaluation/customers"] {
        let marked = format!("{path}?yclid=1&_hsenc=2&mkt_tok=3&twclid=4&colour=red");
        assert_eq!(analyst.get(&marked).await.status(), 200, "{marked}");
    }
}

#[apply(on_sqlite)]
async fn only_analysts_see_it(Demo(service): Demo) {
    let stylist = service.signed_in(Role::Stylist).await;
    for path in [
        "",
        "/segments",
        "/cases",
        "/cases.csv",
        "/customers",
        "/customers.csv",
        "/results",
        "/results.csv?data=demo",
        "/table.csv?of=methods",
    ] {
        let path = format!("/evaluation{path}");
        let answer = stylist.get(&path).await;
        assert_eq!(answer.status(), 403, "{path}");
        assert!(answer.text().contains("requires the role analyst"));
        let outside = service.get(&path).await;
        assert_eq!(outside.status(), 303, "{path}");
        assert!(outside.header("location").starts_with("/sign-in?next=%2Fevaluation"), "{path}");
    }
}

#[apply(on_sqlite)]
async fn published_results_are_shown(Demo(service): Demo) {
    let html = service.signed_in(Role::Analyst).await.page("/evaluation/results").await;
    for name in ["paper", "fifth", "demo"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/results/{name}.json"));
        let text = fs::read_to_string(file).unwrap();
        let table: Value = serde_json::from_str(&text).unwrap();
        let section = html.split("<section>").find(|part| part.contains(&format!("World “{name}”"))).unwrap();
        // Another data set may have the same name.
        let own = &evaluation()["comparison"];
        let is_other =
            own["data"] == name && (&own["outfits"], &own["slots"]) != (&table["outfits"], &table["slots"]);
        assert_eq!(section.contains("another data set, which is also called"), is_other, "{section}");
        for method in table["methods"].as_array().unwrap() {
            let name = method["method"].as_str().unwrap();
            // A match always has attributes.
            let with = if method["attributes"] == true && name != "match" { " + attributes" } else { "" };
            let line = line(section, &format!("{name}{with}"));
            let recall = 100.0 * method["recall_at_1"]["mean"].as_f64().unwrap();
            assert!(line.contains(&format!(">{recall:.2}")), "{recall} in {line}");
            if let Some(error) = method["cross_entropy"]["standard_error"].as_f64() {
                assert!(line.contains(&format!("± {error:.3}")), "{line}");
            }
        }
        let known = table["bounds"]["known"]["cross_entropy"]["mean"].as_f64().unwrap();
        assert!(line(section, "oracle, customer known").contains(&format!(">{known:.3}")), "{section}");
    }
}
