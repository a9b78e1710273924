//! `atelier complete`: outfits in files completed into files.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use atelier_core::domain::{OpenOutfit, Outfit, Schema, Slot, Slots};
use parquet::{file::reader::SerializedFileReader, record::RowAccessor};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    cli::{atelier, done, ended, file, path, refused, write_parquet},
    harness::{Demo, Html, TestDatabase, apply, contract, ids, models, on_sqlite, rows},
};

/// Folders of parts, and the program that completes them.
pub struct Parts {
    input: TempDir,
    output: TempDir,
}

/// Suggestions by row, slot and rank: customer, article, share.
pub type Suggestions = BTreeMap<(i64, i64, i64), (String, String, f64)>;

impl Parts {
    pub fn new() -> Self {
        Self { input: tempfile::tempdir().unwrap(), output: tempfile::tempdir().unwrap() }
    }

    pub fn put(&self, name: &str, rows: &[Value]) {
        let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
        fs::write(self.input.path().join(name), lines.join("\n")).unwrap();
    }

    fn command(&self, db: &TestDatabase, flags: &[&str]) -> Command {
        let mut command = atelier(db, &["complete", "--input", path(self.input.path())]);
        command.args(["--output", path(self.output.path()), "--models", path(&models()), "--device", "cpu"]);
        command.args(flags);
        command
    }

    pub async fn done(&self, db: &TestDatabase, flags: &[&str]) -> String {
        done(self.command(db, flags)).await
    }

    /// The names of the parts in the folder, in order.
    fn written(&self) -> Vec<String> {
        let names = fs::read_dir(self.output.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort_unstable();
        names
    }

    pub fn read(&self, name: &str) -> Suggestions {
        let path = self.output.path().join(name);
        if name.ends_with("jsonl") {
            let from_json = |line: &str| {
                let row: Value = serde_json::from_str(line).unwrap();
                let [number, slot, rank] = ["row", "slot", "rank"].map(|name| row[name].as_i64().unwrap());
                let [customer, article] =
                    ["customer", "article"].map(|name| row[name].as_str().unwrap().to_owned());
                ((number, slot, rank), (customer, article, row["share"].as_f64().unwrap()))
            };
            return fs::read_to_string(path).unwrap().lines().map(from_json).collect();
        }
        let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let rows = file.into_iter().map(|row| {
            let row = row.unwrap();
            let names: Vec<&str> = row.get_column_iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["row", "customer", "slot", "rank", "article", "variant", "share"]);
            let key =
                (row.get_long(0).unwrap(), row.get_int(2).unwrap().into(), row.get_int(3).unwrap().into());
            let text = |column| row.get_string(column).unwrap().clone();
            (key, (text(1), text(4), row.get_double(6).unwrap()))
        });
        rows.collect()
    }
}

/// The demo's outfits with one slot blank, in a Parquet file like `atelier export` writes.
fn write_outfits(file: &Path, outfits: &[Outfit]) {
    let open = |outfit: &Outfit| {
        let mut slots: Vec<Slot> = outfit.articles().iter().cloned().map(Slot::Article).collect();
        slots[1] = Slot::Blank;
        OpenOutfit {
            customer: Some(outfit.customer.clone()),
            slots: Slots::new(slots).unwrap(),
            features: outfit.features.clone(),
        }
    };
    write_parquet(file, &outfits.iter().map(open).collect::<Vec<OpenOutfit>>());
}

#[apply(contract)]
async fn answers_as_the_service_does(Demo(service): Demo, db: TestDatabase) {
    let parts = Parts::new();
    let outfits: Vec<Outfit> = rows::<Outfit>().into_iter().take(40).collect();
    write_outfits(&parts.input.path().join("part-00000.parquet"), &outfits);
    let two = json!({"customer": "c-014871", "articles": ["", "a-01317", null, "a-00170"], "features": {"occasion": "office"}});
    let described =
        json!({"customer": "someone", "articles": "a-00315|a-01317|a-00587", "features": {"age": 30}});
    parts.put("part-00001.jsonl", &[two, described]);
    let flags = ["--k", "4", "--method", "np", "--max-price", "200"];
    let said = parts.done(&db, &flags).await;
    said.has(["np of demo on cpu, ", "part-00000.parquet: 40 outfits, 160 suggestions, in "]);

    let ask = async |customer: Option<&str>, features: Value, outfit: Vec<Option<&str>>| {
        let asked = json!({"customer": customer, "features": features, "outfit": outfit, "method": "np", "k": 4,
                           "filters": {"price": {"max": 200}}});
        service.ask_ok("/complete", asked).await["blanks"][0]["suggestions"].take()
    };
    let first = parts.read("part-00000.parquet");
    assert_eq!(first.len(), 160);
    for (row, outfit) in (1..).zip(&outfits) {
        let line: Value =
            serde_json::from_str(&atelier_files::json_line(outfit, &Schema::default_schema())).unwrap();
        let features = if line["features"].is_object() { line["features"].clone() } else { json!({}) };
        let suggestions = ask(Some(outfit.customer.as_str()), features, with_blank(outfit)).await;
        for (rank, suggestion) in (1..).zip(suggestions.as_array().unwrap()) {
            let (customer, article, share) = &first[&(row, 1, rank)];
            let id = suggestion["article"]["id"].as_str().unwrap();
            assert_eq!((&**customer, &**article), (outfit.customer.as_str(), id), "{row}, {rank}");
            assert!((share - suggestion["share"].as_f64().unwrap()).abs() < 1e-5);
        }
    }
    let second = parts.read("part-00001.jsonl");
    assert_eq!(second.len(), 12, "four for each of two blanks, and for one article more");
    let places: Vec<_> = second.keys().map(|(row, slot, _)| (*row, *slot)).collect();
    assert_eq!(places, [[(1, 0); 4], [(1, 2); 4], [(2, 3); 4]].concat());
    let whole = ["a-00315", "a-01317", "a-00587"].map(Some).to_vec();
    let suggestions = ask(None, json!({"age": 30}), whole).await;
    assert_eq!(suggestions[0]["article"]["id"], second[&(2, 3, 1)].1);

    // Finished parts are not done again.
    let said = parts.done(&db, &flags).await;
    assert!(said.contains("part-00000.parquet: already exists") && !said.contains("np of demo"), "{said}");
}

/// The ids of its articles, with the second slot blank.
fn with_blank(outfit: &Outfit) -> Vec<Option<&str>> {
    outfit.articles().iter().enumerate().map(|(slot, id)| (slot != 1).then_some(id.as_str())).collect()
}

#[apply(on_sqlite)]
async fn flags_widen_and_narrow_what_is_suggested(Demo(service): Demo, db: TestDatabase) {
    let outfits: Vec<Outfit> = rows::<Outfit>().into_iter().take(20).collect();
    let asked = |outfit: &Outfit| json!({"customer": outfit.customer.as_str(), "outfit": with_blank(outfit), "method": "none"});
    let asked: Vec<Value> = outfits.iter().map(asked).collect();
    let first = service.ask_ok("/complete/batch", json!({"items": asked})).await;
    // What they bought is a no-go.
    let bought = outfits.iter().zip(first["items"].as_array().unwrap()).enumerate().map(|(id, (outfit, item))| {
        let article = &item["blanks"][0]["suggestions"][0]["article"]["id"];
        json!({"id": id.to_string(), "kind": "bought", "customer": outfit.customer.as_str(), "article": article})
    });
    service.ask_ok("/events", bought.collect::<Value>()).await;
    let mut answers = Vec::new();
    for (flags, filters) in [
        (&[][..], json!({})),
        (&["--allow-no-gos"], json!({"no_gos": false})),
        (&["--allow-unfit"], json!({"fit": false})),
        (&["--allow-out-of-stock"], json!({"in_stock": false})),
        (&["--store", "Bern"], json!({"store": "Bern"})),
    ] {
        let parts = Parts::new();
        write_outfits(&parts.input.path().join("part-0.parquet"), &outfits);
        let said = parts.done(&db, &[&["--k", "20", "--method", "none"], flags].concat()).await;
        let unknown = format!(
            "note: {}, row 1: no article has stock in the store \"Bern\"; check its spelling (20 answers in all)",
            parts.input.path().join("part-0.parquet").display()
        );
        assert_eq!(said.contains(&unknown), flags.contains(&"--store"), "{said}");
        let articles: Vec<String> =
            parts.read("part-0.parquet").into_values().map(|(_, article, _)| article).collect();
        let asked: Vec<Value> = outfits
            .iter()
            .map(|outfit| {
                json!({"customer": outfit.customer.as_str(), "outfit": with_blank(outfit), "method": "none", "k": 20,
                       "filters": filters})
            })
            .collect();
        let answer = service.ask_ok("/complete/batch", json!({"items": asked})).await;
        let items = answer["items"].as_array().unwrap().iter();
        let suggestions = items.flat_map(|item| ids(&item["blanks"][0]["suggestions"]));
        assert_eq!(suggestions.collect::<Vec<_>>(), articles, "{flags:?}");
        answers.push(articles);
    }
    assert!(answers[1..4].iter().all(|widened| *widened != answers[0]));
}

#[apply(on_sqlite)]
async fn bad_rows_are_reported_and_can_be_skipped(Demo(service): Demo, db: TestDatabase) {
    let parts = Parts::new();
    let good = json!({"customer": "c-014871", "articles": ["a-01317", null]});
    let rows = [
        good.clone(),
        json!({"customer": "nobody", "articles": ["a-01317", null]}),
        json!({"customer": "c-014871", "articles": ["a-1", null]}),
        json!({"customer": "c-014871", "articles": 5}),
        json!({"customer": "c-014871", "articles": ["a-00315", "a-01317", "a-00587", "a-00170", "a-00042", "a-00059", "a-01080", "a-01347"]}),
    ];
    parts.put("part-0.jsonl", &rows);
    parts.put("part-1.jsonl", &[good]);
    let said = refused(parts.command(&db, &["--k", "2"])).await;
    said.has([
        "part-0.jsonl, row 2: customer nobody is unknown, and the row has no features",
        "part-0.jsonl, row 3: slot 0: there is no article a-1",
        "part-0.jsonl, row 4: field \"articles\" must be a list of ids, found a number",
        "part-0.jsonl, row 5: outfit: an outfit has at most 8 slots; all are filled",
        "part-0.jsonl: not written. Fix the 4 bad rows, or use --skip-bad",
        "part-1.jsonl: 1 outfits, 2 suggestions, in ",
        "note: ",
    ]);
    assert_eq!(parts.written(), ["part-1.jsonl"], "the others are not held up");
    let said = parts.done(&db, &["--k", "2", "--skip-bad"]).await;
    said.has(["part-0.jsonl: 1 outfits, 2 suggestions, 4 bad rows skipped, in "]);
    assert_eq!(parts.read("part-0.jsonl").len(), 2);
    // A part that cannot be read does not hold up the others either.
    file(&parts.input, "part-2.parquet", "PAR1");
    parts.put("part-3.jsonl", &rows[..1]);
    let said = refused(parts.command(&db, &["--k", "2", "--skip-bad"])).await;
    said.has(["part-2.parquet: not written: "]);
    assert_eq!(parts.written(), ["part-0.jsonl", "part-1.jsonl", "part-3.jsonl"]);
    service.stop().await;
}

#[apply(on_sqlite)]
async fn a_killed_run_resumes(Demo(service): Demo, db: TestDatabase) {
    let (whole, killed) = (Parts::new(), Parts::new());
    let open =
        |outfit: &Outfit| json!({"customer": outfit.customer.as_str(), "articles": with_blank(outfit)});
    let outfits: Vec<Value> = rows::<Outfit>().iter().take(150).map(open).collect();
    let names: Vec<String> = (0..6).map(|number| format!("part-{number:05}.jsonl")).collect();
    for name in &names {
        whole.put(name, &outfits);
        killed.put(name, &outfits);
    }
    whole.done(&db, &["--share", "0/2"]).await;
    assert_eq!(whole.written().len(), 3);
    whole.done(&db, &["--share", "1/2"]).await;
    assert_eq!(whole.written(), names, "two processes make it all");

    let mut command = killed.command(&db, &[]);
    let before = tokio::task::spawn_blocking(move || {
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        // SIGKILL: no chance to clean up.
        while killed.written().len() < 2 {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed
    });
    let killed = before.await.unwrap();
    let there = killed.written();
    assert!((2..6).contains(&there.len()), "{there:?}");
    let stamp = |name: &String| fs::metadata(killed.output.path().join(name)).unwrap().modified().unwrap();
    let stamps: Vec<_> = there.iter().map(stamp).collect();
    killed.done(&db, &[]).await;
    assert_eq!(there.iter().map(stamp).collect::<Vec<_>>(), stamps, "what was there was not made again");
    assert_eq!(killed.written(), names);
    for name in &names {
        let (one, other) = (whole.read(name), killed.read(name));
        assert_eq!(one.len(), 10 * outfits.len());
        assert!(one.keys().eq(other.keys()));
        for ((one, _, share), (other, _, again)) in one.values().zip(other.values()) {
            assert!(one == other && (share - again).abs() < 1e-5, "{name}: {one} {other} {share} {again}");
        }
    }
    service.stop().await;
}

/// A job on a cluster needs no database.
#[apply(on_sqlite)]
async fn files_replace_the_database(db: TestDatabase) {
    let parts = Parts::new();
    let demo = models().join("demo");
    parts.put("part-0.jsonl", &[json!({"customer": "c-014871", "articles": ["a-01317", null, "a-00315"]})]);
    let nowhere = ["--database", "sqlite:/nowhere/at/all.db"];
    let customers = demo.join("customers.jsonl");
    parts.done(&db, &[&nowhere[..], &["--customers", path(&customers)]].concat()).await;
    let all = parts.read("part-0.jsonl");
    assert_eq!(all.len(), 10);

    // A catalogue of three articles: one is in the outfit, two are left.
    let few = Parts::new();
    let lines = fs::read_to_string(demo.join("articles.jsonl")).unwrap();
    let worn = lines.lines().position(|line| line.contains("\"a-00315\"")).unwrap();
    let three = lines.lines().skip(worn).take(3).map(|line| serde_json::from_str(line).unwrap());
    let three: Vec<String> = three.map(|row: Value| format!("{};{}\n", row["id"], row["type"])).collect();
    let articles = few.output.path().join(".articles.csv");
    fs::write(&articles, format!("Artikelnummer;Warengruppe\n{}", three.concat())).unwrap();
    let row = json!({"customer": "x", "articles": ["a-00315", null], "features": {"age": 40}});
    few.put("part-0.jsonl", &[row]);
    let map = ["--map", "Artikelnummer=id", "--map", "Warengruppe=type"];
    few.done(&db, &[&nowhere[..], &["--articles", path(&articles), "--allow-no-gos"], &map].concat()).await;
    assert_eq!(few.read("part-0.jsonl").len(), 2);
}

#[apply(on_sqlite)]
async fn a_release_with_little_of_the_catalogue_is_noted(db: TestDatabase) {
    let parts = Parts::new();
    let row = json!({"customer": "c", "articles": [null], "features": {"age": 30}});
    let folder = tempfile::tempdir().unwrap();
    let articles = folder.path().join("articles.jsonl");
    let note =
        "note: release demo was trained with 1 of the catalogue's 3 articles; the others are new to it";
    for (round, (unknown, noted)) in [(2, true), (1, false)].into_iter().enumerate() {
        let ids = std::iter::once("a-00134".to_owned()).chain((0..unknown).map(|n| format!("new-{n}")));
        let lines: Vec<_> = ids.map(|id| format!("{{\"id\":\"{id}\",\"type\":\"coat\"}}\n")).collect();
        fs::write(&articles, lines.concat()).unwrap();
        parts.put(&format!("part-{round}.jsonl"), std::slice::from_ref(&row));
        let said = parts.done(&db, &["--articles", path(&articles)]).await;
        assert_eq!(said.contains(note), noted, "{said}");
    }
}

#[apply(on_sqlite)]
async fn mistakes_are_reported_before_any_work(db: TestDatabase) {
    drop(db.open().await);
    let parts = Parts::new();
    let empty = "contains no parts, which are files that end in .parquet, .jsonl or .ndjson";
    refused(parts.command(&db, &[])).await.has([empty]);
    parts.put("part-0.jsonl", &[json!({"customer": "c", "articles": ["a"]})]);
    for (flags, code, said) in [
        (&["--k", "0"][..], 1, "--k must be from 1 to 250, found 0"),
        (&["--min-price", "5", "--max-price", "3", "--skip-bad"], 1, "--min-price 5 is above --max-price 3"),
        (&["--share", "2/2"], 2, "a share is INDEX/COUNT with an index from 0, as in 0/4"),
        (&["--method", "gs-u"], 1, "has no method gs-u"),
        (&["--store", "Bern", "--allow-out-of-stock"], 2, "cannot be used with"),
    ] {
        ended(parts.command(&db, flags), code).await.has([said]);
    }
    assert!(parts.written().is_empty());
}
