//! Another company's data, from its files to a release that opens: a schema of six features with sets, articles with
//! their own attributes, no splits. Runs the program with the real ONNX Runtime.

use std::fs;

use atelier_core::domain::{Article, Method, OutfitSize};
use atelier_engine::{
    evaluation::Stored,
    release::Release,
    tables::{Composition, Tables},
};
use atelier_training::data::Data;
use parquet::{file::reader::FileReader, file::serialized_reader::SerializedFileReader, record::RowAccessor};
use safetensors::SafeTensors;
use serde_json::{Value, json};

use super::{Home, assert_has, mean};

const SCHEMA: &str = r#"
name = "garden-6"
[[feature]]
name = "climate"
kind = "category"
values = ["dry", "mild", "wet"]
[[feature]]
name = "likes"
kind = "set"
values = ["roses", "herbs", "trees", "ponds"]
[[feature]]
name = "avoids"
kind = "set"
values = ["thorns", "pollen"]
excludes = "trait"
[[feature]]
name = "size"
kind = "number"
edges = [20, 100, 500]
unit = "m²"
[[feature]]
name = "budget"
kind = "category"
values = ["small", "large"]
[[feature]]
name = "month"
kind = "number"
edges = [3, 6, 9]
"#;

/// Narrow and quick.
const SETTINGS: &str = "[fit]\nbatch = 16\nepochs = 3\nlearning_rate = 0.01\nwarm_up = 0.5\ndrop_profile = 0.25\n\
    [model]\nwidth = 16\nheads = 2\nhidden = 32\nblocks = 2\nfeature_width = 8\npersonas = 3\n\
    [task_weights]\nshrub = 2.0\n";

const KINDS: [&str; 4] = ["shrub", "bulb", "pot", "tool"];

fn garden() -> Home {
    let home = Home::new();
    let article = |at: usize| {
        let (kind, number) = (KINDS[at / 6], at % 6);
        format!("{kind}-{number},{kind},Planta {number},{number}.5,thorns\n")
    };
    let articles: String = (0..24).map(article).collect();
    home.write("theirs/articles.csv", format!("id,type,latin,price,trait\n{articles}"));
    let customer = |number: usize| {
        let climate = ["dry", "mild", "wet"][number % 3];
        let features = json!({"climate": climate, "likes": ["roses", "ponds"], "size": number * 30});
        json!({"id": format!("g-{number}"), "features": features})
    };
    home.write_rows("theirs/customers.jsonl", (0..20).map(customer));
    let outfit = |number: usize| {
        let (a, b) = (number % 3, 3 + number % 2);
        let articles =
            [("shrub", a), ("bulb", a), ("pot", b), ("tool", b)].map(|(kind, at)| format!("{kind}-{at}"));
        let customer = format!("g-{}", number % 20);
        json!({"customer": customer, "articles": articles, "features": {"month": 1 + number % 12}})
    };
    home.write_rows("theirs/outfits.ndjson", (0..120).map(outfit));
    home.write("theirs/schema.toml", SCHEMA);
    home.write("settings.toml", SETTINGS);
    home
}

#[test]
fn from_three_files_and_a_schema_to_a_release() {
    let home = garden();
    assert_eq!(home.output_of("import theirs --out garden"), "garden: 164 rows, 0 bad rows skipped\n");
    home.output_of("import garden --out bare --no-history");
    for name in ["customers.jsonl", "outfits.jsonl", "schema.toml"] {
        assert!(!home.text(&format!("bare/{name}")).contains("\"had\""), "{name}");
    }
    let outfits = home.text("garden/outfits.jsonl");
    let count = |split: &str| outfits.matches(&format!("\"split\":\"{split}\"")).count();
    assert_eq!((count("validation"), count("train")), (6, 114));

    let fit = "--data garden --config settings.toml";
    for (method, seed) in [("none", 1), ("gsu", 1), ("gsu", 2), ("latent-universal", 1)] {
        let output = home.output_of(&format!("fit --method {method} --seed {seed} {fit}"));
        assert_eq!(output, format!("runs/garden/{method}-{seed}\n"));
    }
    home.assert_refused(&format!("fit --method none {fit}"), &["runs/garden/none-1 already holds a run"]);
    assert_eq!(home.rows("runs/garden/gsu-1/metrics.jsonl").len(), 3);

    let runs = "runs/garden/none-1 runs/garden/gsu-1 runs/garden/gsu-2 runs/garden/latent-universal-1";
    let evaluate = format!("evaluate --data garden --runs {runs} --out all.json --ranks ranks.parquet");
    assert_has(&home.output_of(&evaluate), &["6 outfits, 24 of their 24 slots"]);
    let all = home.json("all.json");
    assert_eq!(all["baselines"].as_array().unwrap().len(), 4);
    assert_eq!(all["methods"][1]["runs"], 2);
    assert!(all["methods"][1]["cross_entropy"]["standard_error"].as_f64().unwrap() > 0.0);
    assert_eq!(all["differences"].as_array().unwrap().len(), 3 * 5);
    let gsu = home.json("runs/garden/gsu-1/evaluation.json");
    let segments = gsu["segments"].as_array().unwrap();
    let slots = |by: &str| -> u64 {
        let segments = segments.iter().filter(|segment| segment["by"] == by);
        segments.map(|segment| segment["summary"]["slots"].as_u64().unwrap()).sum()
    };
    // An outfit counts for each value of a set.
    assert_eq!(["type", "customer", "climate", "month", "likes"].map(slots), [24, 24, 24, 24, 48]);
    assert!(segments.iter().any(|s| s["by"] == "size" && s["value"] == "100 to under 500 m²"));
    let bins = gsu["calibration"]["bins"].as_array().unwrap();
    assert_eq!(bins.iter().map(|bin| bin["slots"].as_u64().unwrap()).sum::<u64>(), 24);

    let table = home.output_of(&format!("table --runs {runs} --baselines all.json --json table.json"));
    let worse = "- **gsu loses to** popularity (cross-entropy";
    assert_has(&table, &["\n| gsu | 2 | ", "| *co-occurrence* |", worse]);
    assert!(!table.contains("12.21 ± 0.17"), "the paper's own figures are of another data set:\n{table}");
    assert_eq!(home.json("table.json")["methods"][0]["parameters"], all["methods"][0]["parameters"]);

    let release = format!("--data garden --runs {runs}");
    assert_refusals(&home, &release);

    let output = home.output_of("export --run runs/garden/gsu-1 --storage float16 --out half");
    assert!(
        output.starts_with("half/gsu.onnx: ") && output.ends_with("\nhalf/gsu.safetensors\n"),
        "{output}"
    );

    let made = home.output_of(&format!("release --name spring {release} --storage int8 --customers 3"));
    assert_eq!(made, "models/spring\n");
    home.assert_refused(&format!("release --name spring {release}"), &["models/spring is not empty"]);
    assert_eq!(fs::read_dir(home.at("models")).unwrap().count(), 1, "no unfinished folder is left");
    assert_eq!(home.rows("models/spring/customers.jsonl").len(), 3);
    let release = Release::open(&home.at("models/spring")).unwrap();
    assert_eq!(release.schema().features().len(), 6);
    let latin = Value::from("Planta 1");
    assert!(release.articles().iter().any(|article| article.unpack().attribute("latin") == Some(&latin)));
    let manifest = release.manifest();
    let methods: Vec<Method> = manifest.methods.iter().map(|entry| entry.method).collect();
    assert_eq!(methods, [Method::None, Method::Gsu, Method::LatentUniversal]);
    assert_eq!(manifest.methods[1].metrics["slots"], 24);
    assert!(manifest.methods[2].metrics["steps"].as_f64().unwrap() >= 1.0);
    // The service reads the figures that training wrote.
    let Stored { figures, ranks, .. } = Stored::read(&home.at("models/spring")).unwrap();
    let (figures, ranks) = (figures.unwrap(), ranks.unwrap());
    assert!(figures.methods().eq(methods.iter().copied()) && ranks.methods().eq(methods));
    assert_eq!((figures.comparison.slots, ranks.len()), (24, 24));
    let recall = figures.evaluation_of(Method::Gsu).unwrap().summary.scores.recall_at_5.mean;
    assert!((ranks.recall(Method::Gsu, 5).unwrap() - recall).abs() < 6e-5);
    // A release's commands make the same run.
    let fitted =
        manifest.commands.iter().find(|command| command.contains("fit --method gsu --seed")).unwrap();
    let (fit, run) = fitted.strip_prefix("atelier-training ").unwrap().split_once(" --run ").unwrap();
    let (run, settings) = run.split_once(' ').expect("task weights have no flag");
    assert_has(settings, &["--set task_weights.shrub=2.0", "--set fit.drop_profile=0.25"]);
    home.output_of(&format!("{fit} --run again {settings}"));
    let weights = |run: &str| fs::read(home.at(run).join("best.safetensors")).unwrap();
    assert!(weights("again") == weights(run), "not the same run: {fitted}");
    assert!(manifest.commands.last().unwrap().ends_with("--storage int8 --customers 3"));

    let output = home.output_of("evaluate --data garden --release models/spring --ranks of-release.parquet");
    assert_has(&output, &["| latent-universal | 1 | "]);
    let reader = SerializedFileReader::new(fs::File::open(home.at("of-release.parquet")).unwrap()).unwrap();
    let columns = reader.metadata().file_metadata().schema().get_fields();
    let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    assert_eq!(names[..7], ["outfit", "slot", "customer", "seen", "articles", "article", "type"]);
    assert_eq!(names[7..9], ["none.rank", "none.cross_entropy"]);
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 24);
    assert!(rows.iter().all(|row| (1.0..=24.0).contains(&row.get_float(7).unwrap())));
    let whole = rows[1].get_string(4).unwrap();
    assert_eq!(whole.split('|').nth(1), Some(rows[1].get_string(5).unwrap().as_str()));
    let losses: f64 = rows.iter().map(|row| f64::from(row.get_float(8).unwrap())).sum();
    let stated = mean(&manifest.methods[0].metrics["cross_entropy"]);
    assert!((losses / 24.0 - stated).abs() < 1e-5, "the release's figures match its files");
}

/// What `table`, `evaluate` and `release` refuse of the garden's runs.
fn assert_refusals(home: &Home, release: &str) {
    home.write(
        "other.json",
        home.text("all.json").replacen("\"fingerprint\": \"", "\"fingerprint\": \"0", 1),
    );
    let other_data = "other.json was made from data with fingerprint 0";
    for (command, reason) in [
        ("table --runs runs/garden/gsu-1 --baselines other.json", other_data),
        ("evaluate --data garden --runs runs/garden/gsu-1 --baselines other.json", other_data),
        (&format!("evaluate {release} runs/garden/none-1"), "--runs lists runs/garden/none-1 twice"),
        (&format!("release --name ../evil {release}"), "a release's name has 1 to 128"),
        (
            &format!("release --name fine --default-method c {release}"),
            "no run is of the default method c; the runs are of none, gsu, latent-universal",
        ),
    ] {
        home.assert_refused(command, &[reason]);
    }
}

#[test]
fn outfits_of_two_and_three_are_learned_and_larger_ones_sampled() {
    let home = garden();
    let outfit = |number| {
        let more = if number % 2 == 0 { "" } else { "|pot-3" };
        format!("g-{},shrub-{}|bulb-{}{more}\n", number % 20, number % 3, number % 6)
    };
    let outfits: String = (0..120).map(outfit).collect();
    let all = (0..6).map(|number| format!("shrub-{number}|bulb-{number}")).collect::<Vec<_>>().join("|");
    let outfits = format!("customer,articles\n{outfits}g-1,{all}\ng-1,{all}|pot-0\n");
    fs::remove_file(home.at("theirs/outfits.ndjson")).unwrap();
    home.write("theirs/outfits.csv", format!("{outfits}g-1,shrub-0\n"));
    let one = "line 124: an outfit has 2 to 12 articles (`outfit` in the schema), found 1\n";
    home.assert_refused("import theirs --out garden", &[one]);
    home.write("theirs/outfits.csv", &outfits);
    let (_, said) = home.outputs_of("import theirs --out garden --no-history");
    let sampled =
        "1 outfits have more than 12 articles (`outfit` in the schema), of which a sample of 12 was imported";
    assert_has(&said, &[sampled]);
    let outfits = home.rows("garden/outfits.jsonl");
    let sizes: Vec<usize> =
        outfits.iter().map(|outfit| outfit["articles"].as_array().unwrap().len()).collect();
    assert_eq!((sizes[0], sizes[1], &sizes[120..]), (2, 3, &[12, 12][..]));

    home.output_of("fit --method gsu --data garden --config settings.toml --set pair.weight=0.5");
    assert_has(&home.output_of("evaluate --data garden --runs runs/garden/gsu-1"), &["pairs of halves"]);
    home.output_of("release --name spring --data garden --runs runs/garden/gsu-1");
    let release = Release::open(&home.at("models/spring")).unwrap();
    assert_eq!(release.schema().outfit_size(), OutfitSize { least: 2, most: 12 });

    // The shop's own limits.
    home.write("theirs/schema.toml", format!("outfit = {{least = 2, most = 3}}\n{SCHEMA}"));
    let (_, said) = home.outputs_of("import theirs --out narrow --no-history");
    let sampled = "2 outfits have more than 3 articles (`outfit` in the schema), of which a sample of 3";
    assert_has(&said, &[sampled]);
}

#[test]
fn a_bad_row_stops_an_import_unless_it_may_be_skipped() {
    let home = garden();
    home.write("theirs/schema.toml", format!("outfit = {{least = 4, most = 8}}\n{SCHEMA}"));
    let text = home.text("theirs/outfits.ndjson").replacen("shrub-1", "shrub-9", 1);
    home.write("theirs/outfits.ndjson", &text);
    // Embeddings have one length.
    let articles = home.text("theirs/articles.csv");
    let embedding = |number: usize| ["embedding", "1|2", "1|2|3"][usize::from(number > 0) + number / 24];
    let embedded = |(number, line)| format!("{line},{}\n", embedding(number));
    home.write("theirs/articles.csv", articles.lines().enumerate().map(embedded).collect::<String>());
    let reasons = [
        "theirs/articles.csv, line 25: embedding has 3 numbers, and that of",
        "theirs/outfits.ndjson, line 2: article \"shrub-9\" is not in the catalogue",
        "nothing was imported. Fix the 2 bad rows, or import the other 162",
    ];
    home.assert_refused("import theirs --out garden", &reasons);
    assert!(!home.at("garden").exists());
    let skipped = home.output_of("import theirs --out garden --skip-bad");
    assert_eq!(skipped, "garden: 162 rows, 2 bad rows skipped\n");
    Data::load(&home.at("garden")).unwrap();
    home.write("theirs/articles.csv", articles);
    // As `atelier export` says of articles that left the catalogue.
    home.write("theirs/retired.txt", "shrub-9\n");
    let (told, said) = home.outputs_of("import theirs --out retired");
    assert_eq!(told, "retired: 163 rows, 0 bad rows skipped\n", "{said}");
    let left = "1 outfits have articles that left the catalogue (retired.txt)";
    assert_has(&said, &[left, "1 outfits have fewer than 4 others and were left out"]);
    // Only rows that are imported can be drawn for validation, or say what is.
    let change = |(number, line): (usize, &str)| match number {
        0 => line.replace("\"shrub-", "\"gone-").replacen('{', "{\"split\":\"validation\",", 1) + "\n",
        1..60 => line.replace("\"shrub-", "\"gone-") + "\n",
        _ => line.to_owned() + "\n",
    };
    home.write("theirs/outfits.ndjson", text.lines().enumerate().map(change).collect::<String>());
    let (_, said) = home.outputs_of("import theirs --out half --skip-bad");
    assert_has(&said, &["so 3 outfits were drawn for validation"]);
    assert_eq!(home.text("half/outfits.jsonl").matches("\"split\":\"validation\"").count(), 3);
    let missing = "there is no articles file: a data folder needs all three tables";
    home.assert_refused("import --outfits theirs/outfits.ndjson --out other", &[missing]);
}

/// The flags that the refusal of a German shop's files proposes import them.
#[test]
fn a_shops_own_files_are_imported_by_the_proposed_flags() {
    let home = Home::new();
    let german = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/german");
    let files = ["articles artikel", "customers kunden", "outfits outfits"].map(|file| {
        let (table, name) = file.split_once(' ').unwrap();
        format!("--{table} {german}/{name}.csv")
    });
    let import = format!("import {} --out shop", files.join(" "));
    let said = home.assert_refused(&import, &["articles need the columns \"id\" and \"type\""]);
    let flags = said.lines().find_map(|line| line.strip_prefix("if these columns are what they seem, add: "));
    // None of these names has a space but two, which no shell splits here.
    let flags = flags
        .unwrap()
        .replace(" --map 'articles.VK (brutto)=price'", "")
        .replace(" --map 'customers.Körpergröße (cm)=height'", "");
    assert_eq!(home.output_of(&format!("{import} {flags}")), "shop: 24 rows, 0 bad rows skipped\n");
    let customers = home.text("shop/customers.jsonl");
    assert!(
        customers.starts_with("{\"id\":\"77\",\"features\":{\"E-Mail\":\"m0@example.org\","),
        "{customers}"
    );
    assert_has(&customers, &["\"Körpergröße (cm)\":\"160,5\"", "\"age\":20.5"]);
    let articles = home.text("shop/articles.jsonl");
    assert!(articles.starts_with("{\"id\":\"001000\",\"type\":\"Hose\",\"Modell\":\"1E5\","), "{articles}");
}

/// Customers have the articles of their training outfits as a feature, and a training outfit those of the others.
#[test]
fn what_customers_had_becomes_a_feature() {
    let home = garden();
    let outfit = |customer: &str, number: usize, split: &str| {
        let articles = [format!("shrub-{}", number % 6), format!("bulb-{}", number / 6)];
        json!({"customer": customer, "split": split, "articles": [articles[0], articles[1], "pot-0", "tool-1"]})
    };
    // Only the last of the thirteen has bulb-2.
    let often = (0..13).map(|number| outfit("g-1", number, "train"));
    let rest = [
        outfit("g-2", 17, "train"),
        outfit("g-1", 29, "validation"),
        outfit("g-1", 28, "validation"),
        outfit("g-3", 20, "validation"),
    ];
    fs::remove_file(home.at("theirs/outfits.ndjson")).unwrap();
    home.write_rows("theirs/outfits.jsonl", often.chain(rest));
    let (_, said) = home.outputs_of("import theirs --out garden");
    assert_has(&said, &["the customers of validation outfits have 9 training outfits on average"]);

    let had = |row: &Value| -> Vec<String> {
        serde_json::from_value(row["features"]["had"].clone()).unwrap_or_default()
    };
    let (customers, outfits) = (home.rows("garden/customers.jsonl"), home.rows("garden/outfits.jsonl"));
    let customer = |id: &str| had(customers.iter().find(|customer| customer["id"] == id).unwrap());
    let (of_often, mut beside_last) = (customer("g-1"), had(&outfits[12]));
    assert_eq!(of_often[..3], ["pot-0", "tool-1", "bulb-1"], "the most frequent, then the latest");
    assert_eq!(of_often.len(), 11, "{of_often:?}");
    let mut others: Vec<String> = of_often.into_iter().filter(|article| article != "bulb-2").collect();
    beside_last.sort_unstable();
    others.sort_unstable();
    assert_eq!(beside_last, others);
    assert_eq!(customer("g-2").len(), 4);

    // As models read it.
    let data = Data::load(&home.at("garden")).unwrap();
    let schema = data.schema();
    assert_eq!(schema.feature("had").unwrap().values.len(), 11, "the articles of all training outfits");
    let mut features = Vec::new();
    for (outfit, expected, why) in [
        (12, 10, "bulb-2 is the outfit's own"),
        (13, 0, "one outfit has no other, and must not read its own articles"),
        (14, 11, "a validation outfit reads all training outfits, and not itself"),
        (15, 11, "a validation outfit reads all training outfits, and not itself"),
        (16, 0, "a new customer had nothing"),
    ] {
        data.features_of(outfit, &mut features);
        assert_eq!(features[schema.features().len() - 1].len(), expected, "{outfit}: {why}");
    }

    home.output_of("import theirs --out without --no-history");
    assert_eq!(Data::load(&home.at("without")).unwrap().schema().features().len(), 6);

    // Imported again, the folder is the same; without an outfit the feature is another.
    let survey = home.output_of("import garden --out again --show 40");
    assert_has(&survey, &["/bulb-1/", " and 3 more"]);
    for name in ["outfits.jsonl", "schema.toml"] {
        assert_eq!(home.text(&format!("again/{name}")), home.text(&format!("garden/{name}")));
    }
    let without_bulb = outfits.iter().filter(|outfit| outfit["articles"][1] != "bulb-2");
    home.write_rows("again/outfits.jsonl", without_bulb.cloned());
    home.output_of("import again --out fewer");
    let schema = Data::load(&home.at("fewer")).unwrap().schema().clone();
    assert_eq!(schema.feature("had").unwrap().values.len(), 10);
    assert!(!home.text("fewer/customers.jsonl").contains("bulb-2"));

    let fit = "fit --method none --config settings.toml --data";
    let (_, said) = home.outputs_of(&format!("{fit} garden"));
    assert!(!said.contains("models do not see"), "{said}");
    let (_, said) = home.outputs_of(&format!("{fit} without"));
    let why = "models do not see what customers had: on average, the customer of a validation outfit has 8.7 training \
               outfits; from 8 on, `import` adds the feature \"had\", unless --no-history";
    assert_has(&said, &[why]);
    home.output_of("evaluate --data garden --runs runs/garden/none-1");
    let evaluation = home.json("runs/garden/none-1/evaluation.json");
    let segments = evaluation["segments"].as_array().unwrap();
    assert!(segments.iter().any(|s| s["by"] == "climate") && segments.iter().all(|s| s["by"] != "had"));
}

/// docs/training.md starts with these files.
#[test]
fn the_guides_furnished_rooms_import_without_a_bad_row() {
    let home = Home::new();
    home.python("examples/rooms.py", "rooms-theirs --customers 200 --rooms 300 --validation 40");
    let imported = home.output_of("import rooms-theirs --out rooms --show 1");
    let counts = "rooms: 940 rows, 0 bad rows skipped\n\n400 articles, 200 customers, 340 outfits\n";
    assert_has(&imported, &[counts, "wood in outfits:\n"]);
    assert!(!imported.contains("brand in"), "{imported}");
    let data = Data::load(&home.at("rooms")).unwrap();
    assert_eq!(data.schema().features().len(), 6);
    assert_eq!((data.vocabulary().len(), data.types().len(), data.validation().len()), (400, 12, 40));
    assert!(data.vocabulary().index_of("möbel-0001").is_some());
    let new = data.validation().iter().filter(|&&outfit| !data.is_seen(data.outfits().customer(outfit)));
    assert!((4..25).contains(&new.count()), "some customers are new in validation");
    let mut features = Vec::new();
    let households = data.training().iter().filter(|&&outfit| {
        data.features_of(outfit, &mut features);
        !features[0].is_empty()
    });
    assert!(households.count() > 200, "whole numbers are words");
    let counted = home.output_of("evaluate --data rooms");
    assert!(!counted.contains("gender"), "the schema has none:\n{counted}");
}

/// A shop whose articles have embeddings, from its file to a release: known articles take them with their own vectors, new
/// ones by the release's encoder.
#[test]
fn articles_with_embeddings_become_a_release() {
    let home = garden();
    let plain = home.text("theirs/articles.csv");
    let seen = |(number, line): (usize, &str)| {
        let seen = (0..5).map(|at| ((number * (at + 1) * 7) % 13).to_string()).collect::<Vec<_>>().join("|");
        format!("{line},{}\n", if number == 0 { "embedding" } else { &seen })
    };
    home.write("theirs/articles.csv", plain.lines().enumerate().map(seen).collect::<String>());
    home.output_of("import theirs --out garden");
    let fit = "fit --method none --attributes --data garden --config settings.toml";
    home.output_of(fit);
    home.output_of(&format!("{fit} --prepare --run other"));
    let prepared = fs::read(home.at("other/data.safetensors")).unwrap();
    let prepared = SafeTensors::deserialize(&prepared).unwrap();
    let [embeddings, weights] = ["embeddings", "task_weights"].map(|name| prepared.tensor(name).unwrap());
    assert_eq!(embeddings.shape()[0], 5 * weights.shape()[0], "five numbers for each known article");
    let run = "runs/garden/none-attributes-1";
    home.output_of(&format!("release --name seen --data garden --runs {run}"));
    let release = Release::open(&home.at("models/seen")).unwrap();
    let encoder = release.encoder().unwrap();
    assert_eq!(encoder.components(), 5);
    let (known, new) = release.articles().split_at(release.vocabulary().len());
    assert!(known.iter().all(|article| article.unpack().embedding().is_none()), "their own vectors have it");
    let length = |article: &Article| article.embedding().and_then(|seen| seen.list("")).map(<[f32]>::len);
    assert!(!new.is_empty() && new.iter().all(|article| length(&article.unpack()) == Some(5)));
    let path = release.tables_path(&release.manifest().methods[0]).unwrap();
    let values = Some(encoder.count());
    let tables = Tables::open(&path, known.len(), values, encoder.components(), release.schema()).unwrap();
    let row = |composition: &Composition| {
        let mut row = vec![0.0; tables.widths().row()];
        tables.write_row(composition, &mut row);
        row
    };
    let composition = release.compose(&new[0].unpack());
    let without = Composition { embedding: Box::default(), ..composition.clone() };
    assert_ne!(row(&composition), row(&without), "it was learned");
    let [released, measured] = ["--release models/seen", &format!("--runs {run}")].map(|what| {
        let text = home.output_of(&format!("evaluate --data garden {what}"));
        let line = text.lines().find(|line| line.starts_with("| none")).unwrap();
        line.split('|').nth(3).unwrap().split('±').next().unwrap().trim().to_owned()
    });
    assert_eq!(released, measured, "cross-entropy");
}
