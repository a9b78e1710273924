//! `/evaluation`: what the pages show is what the release says, and what is computed of it is computed anew here.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    path::Path,
};

use atelier::{
    config::Limits,
    domain::{Customer, CustomerId},
    store::Role,
};
use parquet::{
    file::{reader::FileReader, serialized_reader::SerializedFileReader},
    record::RowAccessor,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::{Service, browser, header, models, rows};
use crate::harness::{TestDatabase, contracts};

contracts!(
    figures_are_the_releases_own,
    curves_and_segments_have_their_numbers,
    the_first_case_is_the_one_where_they_differ_most,
    cases_can_be_narrowed_down_and_turned_around,
    customers_are_sorted_by_the_mean_of_their_cases,
    cases_as_a_file,
    what_makes_no_sense_is_refused,
    files_that_are_missing_or_damaged_are_told_of,
    only_analysts_see_it,
);

fn evaluation() -> Value {
    serde_json::from_str(&fs::read_to_string(models().join("demo/evaluation.json")).unwrap()).unwrap()
}

/// A page's text without its tags, for reading.
fn text(html: &str) -> String {
    let parts = html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    parts.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The line of a page's first table that begins with this name.
fn line(html: &str, name: &str) -> String {
    let head = format!("{name}</th>");
    let mut lines = html.split("<tr>").filter(|line| line.contains(&head));
    lines.next().unwrap_or_else(|| panic!("no line {name}: {html}")).to_owned()
}

async fn figures_are_the_releases_own(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let analyst = service.signed_in(Role::Analyst).await;
    let html = analyst.page("/evaluation").await;
    assert!(html.len() < 60_000, "{} bytes", html.len());
    let evaluation = evaluation();
    let methods = evaluation["comparison"]["methods"].as_array().unwrap();
    assert_eq!(methods.len(), 10);
    for method in methods {
        let line = line(&html, method["method"].as_str().unwrap());
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
    // The paper's own line, and that it is the best of its columns; ours is another method.
    assert!(line(&html, "gsu").contains("best\">4.746<span"), "{}", line(&html, "gsu"));
    assert!(line(&html, "np").contains("best\">3.377<span"), "{}", line(&html, "np"));
    assert!(line(&html, "none").contains("546,432") && !line(&html, "none").contains("best"));
    let text = text(&html);
    for sentence in [
        "The lowest cross-entropy is that of np, 3.377; none, which sees no customer, has 3.757: a difference of −0.380",
        "The next, gsu, is 0.036 behind, which is more than the luck of the outfits (p = 0.002).",
        "first most often by np, in 20.97 % of the slots, least often by latent, in 16.21 %, and popularity in 1.56 %.",
        "stand here as np, gsu, gs, none, c; in the paper, on its data, as gsu, gs, np, c, none.",
        "“popularity, told the type” has 2.928, lower than any method",
    ] {
        assert!(text.contains(sentence), "{sentence}: {text}");
    }
    // Differences, from both sides, and one that is none.
    assert!(text.contains("▲ −0.344 better −0.365 to −0.323 p 0.002"), "{text}");
    assert!(text.contains("▼ +0.344 worse +0.323 to +0.365 p 0.002"), "{text}");
    assert!(text.contains("≈ +0.004 no sure difference −0.008 to +0.017 p 0.426"), "{text}");
    assert!(!html.contains("style=") && !html.contains("<style"), "the policy allows none");

    let chosen = analyst.page("/evaluation?method=gsx&method=latent&metric=recall_at_5").await;
    let text = self::text(&chosen);
    assert!(text.contains("Differences in recall@5") && text.contains("Calibration of gsx"), "{text}");
    assert!(!text.contains("Calibration of gsu"));
}

async fn curves_and_segments_have_their_numbers(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let analyst = service.signed_in(Role::Analyst).await;
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

    let page = analyst.page("/evaluation/segments?by=gender&metric=recall_at_1&method=np").await;
    let segments = of("np")["segments"].as_array().unwrap().clone();
    let female = segments.iter().find(|one| one["by"] == "gender" && one["value"] == "female").unwrap();
    let figure = &female["summary"]["recall_at_1"];
    let written = format!(
        "<td class=\"number\">{:.2} ± {:.2}</td>",
        100.0 * figure["mean"].as_f64().unwrap(),
        100.0 * figure["standard_error"].as_f64().unwrap()
    );
    assert!(line(&page, "female").contains(&written), "{written}: {}", line(&page, "female"));
    assert!(line(&page, "female").contains(">5,823<"));
    assert!(text(&page).contains("270 slots, few"), "a small group is marked");
    assert!(page.contains("<svg class=\"chart whiskers\"") && page.contains("Recall@1 by gender"));

    // The most there is to show is still a page that loads at once.
    let all: String = evaluation["comparison"]["methods"]
        .as_array()
        .unwrap()
        .iter()
        .fold(String::new(), |all, one| format!("{all}&method={}", one["method"].as_str().unwrap()));
    for path in ["/evaluation?metric=recall_at_5", "/evaluation/segments?by=preferred_brands"] {
        let size = analyst.page(&format!("{path}{all}")).await.len();
        assert!(size < 100_000, "{path}: {size} bytes");
    }
}

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

    /// How the case opens in Side by side.
    fn link(&self) -> String {
        let slots = self.articles.iter().enumerate();
        let slots =
            slots.map(|(slot, id)| if slot == self.slot { "slot=".into() } else { format!("slot={id}") });
        format!(
            "/side-by-side?customer={}&#38;{}&#38;truth={}&#38;method=none&#38;method=gsu",
            self.customer,
            slots.collect::<Vec<_>>().join("&#38;"),
            self.article
        )
    }
}

/// Read here by rows, in another way than the service reads them.
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

/// Those of customers whom the demo's database has.
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

async fn the_first_case_is_the_one_where_they_differ_most(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let analyst = service.signed_in(Role::Analyst).await;
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

    // What it links to is there, and marks the true article.
    let opened = analyst.page(&expected[0].replace("&#38;", "&")).await;
    assert!(opened.contains(&first.article), "{opened}");
    // The second page goes on where the first one ends.
    let second = links(&analyst.page("/evaluation/cases?first=gsu&second=none&page=2").await);
    assert_eq!(second[0], all[12].link());
    let past = analyst.page("/evaluation/cases?first=gsu&second=none&page=9999").await;
    assert!(past.contains("No case fits"));
}

async fn cases_can_be_narrowed_down_and_turned_around(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let analyst = service.signed_in(Role::Analyst).await;
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

    // All of the evaluation: the customers who are not here are told of, and lead nowhere.
    let html = analyst.page(&format!("{base}&known=no")).await;
    assert!(text(&html).contains("9,898 cases"));
    let strangers = html.matches("this customer is not known here").count();
    assert_eq!(strangers + links(&html).len(), 12);
    assert!(strangers > 0);
    let nobody = analyst.page(&format!("{base}&customer=c-nobody")).await;
    assert!(nobody.contains("No case fits"));
}

async fn customers_are_sorted_by_the_mean_of_their_cases(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let analyst = service.signed_in(Role::Analyst).await;
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
    assert!(first.contains(&format!("<th scope=\"row\">{customer}</th>")), "{customer}: {first}");
    let cells = first.split("<td class=\"number\">").skip(1).map(|cell| cell.split('<').next().unwrap());
    let cells: Vec<&str> = cells.collect();
    assert_eq!(cells[0], most.1.to_string());
    assert!((cells[1].parse::<f64>().unwrap() - mean(most)).abs() < 6e-4, "{first}");
    assert!(first.contains(&format!("customer={customer}&#38;known=yes")), "{first}");
    assert!(text(&html).contains(&format!("{} customers", sums.len())));
}

async fn cases_as_a_file(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let analyst = service.signed_in(Role::Analyst).await;
    let answer = analyst.get("/evaluation/cases.csv?first=gsu&second=none&type=coat&known=no").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(header(&answer, "content-type"), "text/csv; charset=utf-8");
    assert_eq!(header(&answer, "content-disposition"), "attachment; filename=\"demo-gsu-none-cases.csv\"");
    let text = answer.text().await.unwrap();
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

async fn what_makes_no_sense_is_refused(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let analyst = service.signed_in(Role::Analyst).await;
    for (path, says) in [
        ("/evaluation?method=bert", "unknown variant `bert`"),
        ("/evaluation?metric=accuracy", "unknown variant `accuracy`"),
        ("/evaluation?colour=red", "unknown field `colour`"),
        ("/evaluation/segments?by=weather", "no segments by"),
        ("/evaluation/cases?first=gsu&second=gsu", "gsu cannot be held against itself"),
        ("/evaluation/cases?type=spaceship", "no case has a missing article of type"),
        ("/evaluation/cases?page=0", "pages are counted from 1"),
        ("/evaluation/cases?page=x", "invalid digit"),
        ("/evaluation/cases?seen=maybe", "unknown variant `maybe`"),
        ("/evaluation/cases?customer=%00", "control characters"),
        ("/evaluation/cases.csv?by=length", "unknown variant `length`"),
        ("/evaluation/customers?lead=third", "unknown variant `third`"),
    ] {
        let answer = analyst.get(path).await;
        let status = answer.status();
        let html = answer.text().await.unwrap();
        assert_eq!(status, 422, "{path}: {html}");
        assert!(html.contains("<h1>") && html.contains(says), "{path}: {html}");
    }
}

/// The demo release with something changed, as a folder of releases.
pub fn demo_but(change: impl FnOnce(&Path, &mut Value)) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let demo = folder.path().join("demo");
    fs::create_dir(&demo).unwrap();
    for entry in fs::read_dir(models().join("demo")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, demo.join(path.file_name().unwrap())).unwrap();
    }
    let path = demo.join("release.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&demo, &mut manifest);
    fs::write(path, manifest.to_string()).unwrap();
    folder
}

/// A file of other content, as the manifest has it too.
fn replace(demo: &Path, manifest: &mut Value, name: &str, content: &[u8]) {
    fs::write(demo.join(name), content).unwrap();
    let digest: String =
        Sha256::digest(content).iter().fold(String::new(), |all, byte| format!("{all}{byte:02x}"));
    manifest["files"][name] = json!({"bytes": content.len(), "sha256": digest});
}

async fn files_that_are_missing_or_damaged_are_told_of(db: TestDatabase) {
    let folder = demo_but(|demo, manifest| {
        // Fewer models load faster.
        manifest["methods"]
            .as_array_mut()
            .unwrap()
            .retain(|one| one["method"] == "none" || one["method"] == "gsu");
        manifest["files"].as_object_mut().unwrap().remove("evaluation.json");
        replace(demo, manifest, "ranks.parquet", b"PAR1 and nothing else PAR1");
    });
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    let analyst = service.signed_in(Role::Analyst).await;
    let none = analyst.page("/evaluation/cases").await;
    assert!(none.contains("No release is served"), "{none}");

    service.offers.serve("demo").await.unwrap();
    for path in ["/evaluation", "/evaluation/segments"] {
        let html = analyst.page(path).await;
        assert!(html.contains("This release brings no evaluation"), "{html}");
        assert!(html.contains("the release demo has no file evaluation.json"), "{html}");
        assert!(html.contains("atelier-training release"), "{html}");
    }
    for path in ["/evaluation/cases", "/evaluation/customers"] {
        let html = analyst.page(path).await;
        assert!(html.contains("ranks.parquet of the release demo cannot be read: "), "{html}");
    }
    assert_eq!(analyst.get("/evaluation/cases.csv").await.status(), 404);

    // Figures that make no sense, and single answers that were changed while they were served.
    let demo = folder.path().join("demo");
    let path = demo.join("release.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    replace(&demo, &mut manifest, "evaluation.json", b"{\"comparison\": 7}");
    replace(&demo, &mut manifest, "ranks.parquet", &fs::read(models().join("demo/ranks.parquet")).unwrap());
    fs::write(&path, manifest.to_string()).unwrap();
    service.offers.serve("demo").await.unwrap();
    let html = analyst.page("/evaluation").await;
    assert!(html.contains("evaluation.json of the release demo cannot be read: invalid type"), "{html}");
    fs::write(demo.join("ranks.parquet"), "short").unwrap();
    let html = analyst.page("/evaluation/cases").await;
    assert!(html.contains("5 bytes, the manifest says 692548"), "{html}");
    // It is tried again, and then kept: nobody reads the file for every page.
    fs::copy(models().join("demo/ranks.parquet"), demo.join("ranks.parquet")).unwrap();
    let whole = analyst.page("/evaluation/cases?known=no").await;
    assert!(text(&whole).contains("9,898 cases"), "{whole}");
    fs::remove_file(demo.join("ranks.parquet")).unwrap();
    assert_eq!(analyst.page("/evaluation/cases?known=no").await, whole);

    // Figures without single answers: everything but the curves.
    replace(
        &demo,
        &mut manifest,
        "evaluation.json",
        &fs::read(models().join("demo/evaluation.json")).unwrap(),
    );
    manifest["files"].as_object_mut().unwrap().remove("ranks.parquet");
    fs::write(&path, manifest.to_string()).unwrap();
    service.offers.serve("demo").await.unwrap();
    let html = analyst.page("/evaluation").await;
    assert!(html.contains("the release demo has no file ranks.parquet") && html.contains("3.377"), "{html}");
}

async fn only_analysts_see_it(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let stylist = service.signed_in(Role::Stylist).await;
    for path in ["", "/segments", "/cases", "/cases.csv", "/customers"] {
        let path = format!("/evaluation{path}");
        let answer = stylist.get(&path).await;
        assert_eq!(answer.status(), 403, "{path}");
        assert!(answer.text().await.unwrap().contains("takes the role analyst"));
        let outside = browser().get(format!("{}{path}", service.url)).send().await.unwrap();
        assert_eq!(outside.status(), 303, "{path}");
        assert!(header(&outside, "location").starts_with("/sign-in?next=%2Fevaluation"), "{path}");
    }
    let known = service.store.customers().known(&[]).await.unwrap();
    assert!(known.is_empty());
    let ids = ["c-000010", "c-nobody"].map(|id| CustomerId::new(id).unwrap());
    let known = service.store.customers().known(&ids).await.unwrap();
    assert!(known.len() == 1 && known.contains(&ids[0]));
}
