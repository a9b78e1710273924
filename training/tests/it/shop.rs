//! Another company's data, from its files to a release that opens: a schema of six features with sets, articles with
//! their own attributes, no splits. Runs the program with the real ONNX Runtime.

use std::{fmt::Write, fs, path::Path, process::Command};

use atelier_core::domain::{Method, OutfitSize};
use atelier_engine::{
    evaluation::{Figures, Ranks},
    release::Release,
    tables::{Composition, Tables},
};
use atelier_training::data::Data;
use parquet::{file::reader::FileReader, file::serialized_reader::SerializedFileReader, record::RowAccessor};
use safetensors::SafeTensors;
use serde_json::Value;

use super::Home;

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

fn garden() -> Home {
    let home = Home::new();
    let mut articles = "id,type,latin,price,trait\n".to_owned();
    for kind in ["shrub", "bulb", "pot", "tool"] {
        for number in 0..6 {
            writeln!(articles, "{kind}-{number},{kind},Planta {number},{number}.5,thorns").unwrap();
        }
    }
    let mut customers = String::new();
    for number in 0..20 {
        writeln!(
                customers,
                "{{\"id\":\"g-{number}\",\"features\":{{\"climate\":\"{}\",\"likes\":[\"roses\",\"ponds\"],\"size\":{}}}}}",
                ["dry", "mild", "wet"][number % 3],
                number * 30
            )
            .unwrap();
    }
    let mut outfits = String::new();
    for number in 0..120 {
        let (a, b) = (number % 3, 3 + number % 2);
        writeln!(
            outfits,
            "{{\"customer\":\"g-{}\",\"articles\":[\"shrub-{a}\",\"bulb-{a}\",\"pot-{b}\",\"tool-{b}\"],\
                 \"features\":{{\"month\":{}}}}}",
            number % 20,
            1 + number % 12
        )
        .unwrap();
    }
    for (name, text) in [
        ("theirs/articles.csv", articles.as_str()),
        ("theirs/customers.jsonl", &customers),
        ("theirs/outfits.ndjson", &outfits),
        ("theirs/schema.toml", SCHEMA),
        ("settings.toml", SETTINGS),
    ] {
        home.write(name, text);
    }
    home
}

#[test]
fn from_three_files_and_a_schema_to_a_release() {
    let home = garden();
    let output = home.output_of("import theirs --out garden");
    assert_eq!(output, "garden: 164 rows, 0 bad rows skipped\n");
    home.output_of("import garden --out bare --no-history");
    for name in ["customers.jsonl", "outfits.jsonl", "schema.toml"] {
        assert!(!fs::read_to_string(home.at("bare").join(name)).unwrap().contains("\"had\""), "{name}");
    }
    let outfits = fs::read_to_string(home.at("garden/outfits.jsonl")).unwrap();
    assert_eq!(outfits.matches("\"split\":\"validation\"").count(), 6);
    assert_eq!(outfits.matches("\"split\":\"train\"").count(), 114);

    for (method, seed) in [("none", 1), ("gsu", 1), ("gsu", 2), ("latent-universal", 1)] {
        let output = home
            .output_of(&format!("fit --method {method} --seed {seed} --data garden --config settings.toml"));
        assert_eq!(output, format!("runs/garden/{method}-{seed}\n"));
    }
    let again = home.error_of("fit --method none --data garden --config settings.toml");
    assert!(again.contains("runs/garden/none-1 already holds a run"), "{again}");
    let lines = fs::read_to_string(home.at("runs/garden/gsu-1/metrics.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 3);

    let runs = "runs/garden/none-1 runs/garden/gsu-1 runs/garden/gsu-2 runs/garden/latent-universal-1";
    let output =
        home.output_of(&format!("evaluate --data garden --runs {runs} --out all.json --ranks ranks.parquet"));
    assert!(output.contains("6 outfits, 24 of their 24 slots"), "{output}");
    let all = home.json("all.json");
    assert_eq!(all["baselines"].as_array().unwrap().len(), 4);
    assert_eq!(all["methods"][1]["runs"], 2);
    assert!(all["methods"][1]["cross_entropy"]["standard_error"].as_f64().unwrap() > 0.0);
    assert_eq!(all["differences"].as_array().unwrap().len(), 3 * 5);
    let gsu = home.json("runs/garden/gsu-1/evaluation.json");
    let segments = gsu["segments"].as_array().unwrap();
    let slots = |by: &str| -> u64 {
        segments.iter().filter(|s| s["by"] == by).map(|s| s["summary"]["slots"].as_u64().unwrap()).sum()
    };
    assert_eq!((slots("type"), slots("customer"), slots("climate"), slots("month")), (24, 24, 24, 24));
    assert_eq!(slots("likes"), 48, "an outfit counts for each value of a set");
    assert!(segments.iter().any(|s| s["by"] == "size" && s["value"] == "100 to under 500 m²"));
    let bins = gsu["calibration"]["bins"].as_array().unwrap();
    assert_eq!(bins.iter().map(|bin| bin["slots"].as_u64().unwrap()).sum::<u64>(), 24);

    let table = home.output_of(&format!("table --runs {runs} --baselines all.json --json table.json"));
    assert!(table.contains("\n| gsu | 2 | ") && table.contains("| *co-occurrence* |"), "{table}");
    assert!(table.contains("- **gsu loses to** popularity (cross-entropy"), "{table}");
    assert!(!table.contains("12.21 ± 0.17"), "the paper's own figures are of another data set:\n{table}");
    assert_eq!(home.json("table.json")["methods"][0]["parameters"], all["methods"][0]["parameters"]);

    refusals(&home, runs);

    let output = home.output_of("export --run runs/garden/gsu-1 --storage float16 --out half");
    assert!(
        output.starts_with("half/gsu.onnx: ") && output.ends_with("\nhalf/gsu.safetensors\n"),
        "{output}"
    );

    let made = home.output_of(&format!(
        "release --name spring --data garden --runs {runs} --storage int8 --customers 3"
    ));
    assert_eq!(made, "models/spring\n");
    let release = Release::open(&home.at("models/spring")).unwrap();
    assert_eq!(release.schema().context_width(), 6 * 32);
    let latin = Value::from("Planta 1");
    assert!(release.articles().iter().any(|article| article.unpack().attribute("latin") == Some(&latin)));
    let methods: Vec<Method> = release.manifest().methods.iter().map(|entry| entry.method).collect();
    assert_eq!(methods, [Method::None, Method::Gsu, Method::LatentUniversal]);
    assert_eq!(release.manifest().methods[1].metrics["slots"], 24);
    assert!(release.manifest().methods[2].metrics["steps"].as_f64().unwrap() >= 1.0);
    // The service reads the figures that training wrote.
    let (figures, ranks) = (Figures::from_release(&release).unwrap(), Ranks::from_release(&release).unwrap());
    assert!(figures.methods().eq(methods.iter().copied()) && ranks.methods().eq(methods));
    assert_eq!((figures.comparison.slots, ranks.len()), (24, 24));
    let recall = figures.evaluation_of(Method::Gsu).unwrap().summary.scores.recall_at_5.mean;
    assert!((ranks.recall(Method::Gsu, 5).unwrap() - recall).abs() < 6e-5);
    let mut commands = release.manifest().commands.iter();
    let fitted = commands.find(|command| command.contains("fit --method gsu --seed")).unwrap();
    let (fit, run) = fitted.strip_prefix("atelier-training ").unwrap().split_once(" --run ").unwrap();
    let (run, settings) = run.split_once(' ').expect("task weights have no flag");
    for setting in ["task_weights.shrub=2.0", "fit.drop_profile=0.25"] {
        assert!(settings.contains(&format!("--set {setting}")), "{fitted}");
    }
    home.output_of(&format!("{fit} --run again {settings}"));
    let weights = |run: &str| fs::read(home.at(run).join("best.safetensors")).unwrap();
    assert!(weights("again") == weights(run), "not the same run: {fitted}");
    assert!(release.manifest().commands.last().unwrap().ends_with("--storage int8 --customers 3"));
    let customers = fs::read_to_string(home.at("models/spring/customers.jsonl")).unwrap();
    assert_eq!(customers.lines().count(), 3);
    let hidden: Vec<_> = fs::read_dir(home.at("models")).unwrap().collect();
    assert_eq!(hidden.len(), 1, "no unfinished folder is left");
    let taken = home.error_of(&format!("release --name spring --data garden --runs {runs}"));
    assert!(taken.contains("models/spring is not empty"), "{taken}");

    let output = home.output_of("evaluate --data garden --release models/spring --ranks of-release.parquet");
    assert!(output.contains("| latent-universal | 1 | "), "{output}");
    let reader = SerializedFileReader::new(fs::File::open(home.at("of-release.parquet")).unwrap()).unwrap();
    let names: Vec<String> =
        reader.metadata().file_metadata().schema().get_fields().iter().map(|f| f.name().to_owned()).collect();
    assert_eq!(names[..7], ["outfit", "slot", "customer", "seen", "articles", "article", "type"]);
    assert_eq!(names[7..9], ["none.rank", "none.cross_entropy"]);
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 24);
    assert!(rows.iter().all(|row| (1.0..=24.0).contains(&row.get_float(7).unwrap())));
    let whole = rows[1].get_string(4).unwrap();
    assert_eq!(whole.split('|').nth(1), Some(rows[1].get_string(5).unwrap().as_str()));
    let losses: f64 = rows.iter().map(|row| f64::from(row.get_float(8).unwrap())).sum();
    let stated = release.manifest().methods[0].metrics["cross_entropy"]["mean"].as_f64().unwrap();
    assert!((losses / 24.0 - stated).abs() < 1e-5, "the release's figures match its files");
}

/// What `evaluate`, `table` and `release` refuse of the garden's runs.
fn refusals(home: &Home, runs: &str) {
    let other = fs::read_to_string(home.at("all.json")).unwrap().replacen(
        "\"fingerprint\": \"",
        "\"fingerprint\": \"0",
        1,
    );
    home.write("other.json", &other);
    for command in ["table --runs runs/garden/gsu-1", "evaluate --data garden --runs runs/garden/gsu-1"] {
        let error = home.error_of(&format!("{command} --baselines other.json"));
        assert!(error.contains("other.json was made from data with fingerprint 0"), "{error}");
    }
    let error = home
        .error_of("evaluate --data garden --runs runs/garden/none-1 runs/garden/gsu-1 runs/garden/none-1");
    assert!(error.contains("--runs lists runs/garden/none-1 twice"), "{error}");
    let error = home.error_of(&format!("release --name ../evil --data garden --runs {runs}"));
    assert!(error.contains("a release's name has 1 to 128"), "{error}");
    let error = home.error_of(&format!("release --name fine --default-method c --data garden --runs {runs}"));
    assert!(
        error.contains("no run is of the default method c; the runs are of none, gsu, latent-universal"),
        "{error}"
    );
}

#[test]
fn outfits_of_two_and_three_are_learned_and_larger_ones_sampled() {
    let home = garden();
    let mut outfits = "customer,articles\n".to_owned();
    for number in 0..120 {
        let more = if number % 2 == 0 { "" } else { "|pot-3" };
        writeln!(outfits, "g-{},shrub-{}|bulb-{}{more}", number % 20, number % 3, number % 6).unwrap();
    }
    let all: Vec<String> = (0..6).flat_map(|n| [format!("shrub-{n}"), format!("bulb-{n}")]).collect();
    writeln!(outfits, "g-1,{}\ng-1,{}|pot-0", all.join("|"), all.join("|")).unwrap();
    fs::remove_file(home.at("theirs/outfits.ndjson")).unwrap();
    home.write("theirs/outfits.csv", &format!("{outfits}g-1,shrub-0\n"));
    let error = home.error_of("import theirs --out garden");
    assert!(
        error.contains("line 124: an outfit has 2 to 12 articles (`outfit` in the schema), found 1\n"),
        "{error}"
    );
    home.write("theirs/outfits.csv", &outfits);
    let output = home.run("import theirs --out garden --no-history");
    let said = String::from_utf8(output.stderr).unwrap();
    let sampled =
        "1 outfits have more than 12 articles (`outfit` in the schema), of which a sample of 12 was imported";
    assert!(output.status.success() && said.contains(sampled), "{said}");
    let read = fs::read_to_string(home.at("garden/outfits.jsonl")).unwrap();
    let sizes: Vec<usize> = read
        .lines()
        .map(|line| {
            line.matches("shrub-").count() + line.matches("bulb-").count() + line.matches("pot-").count()
        })
        .collect();
    assert_eq!((sizes[0], sizes[1], &sizes[120..]), (2, 3, &[12, 12][..]));

    home.output_of("fit --method gsu --data garden --config settings.toml --set pair.weight=0.5");
    let output = home.output_of("evaluate --data garden --runs runs/garden/gsu-1");
    assert!(output.contains("pairs of halves"), "{output}");
    home.output_of("release --name spring --data garden --runs runs/garden/gsu-1");
    let release = Release::open(&home.at("models/spring")).unwrap();
    assert_eq!(release.schema().outfit_size(), OutfitSize { least: 2, most: 12 });

    // The shop's own limits.
    home.write("theirs/schema.toml", &format!("outfit = {{least = 2, most = 3}}\n{SCHEMA}"));
    let output = home.run("import theirs --out narrow --no-history");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("2 outfits have more than 3 articles (`outfit` in the schema), of which a sample of 3"),
        "{said}"
    );
}

#[test]
fn a_bad_row_stops_an_import_unless_it_may_be_skipped() {
    let home = garden();
    home.write("theirs/schema.toml", &format!("outfit = {{least = 4, most = 8}}\n{SCHEMA}"));
    let path = home.at("theirs/outfits.ndjson");
    let text = fs::read_to_string(&path).unwrap().replacen("shrub-1", "shrub-9", 1);
    fs::write(&path, text).unwrap();
    let error = home.error_of("import theirs --out garden");
    assert!(
        error.contains("theirs/outfits.ndjson, line 2: article \"shrub-9\" is not in the catalogue"),
        "{error}"
    );
    assert!(error.contains("nothing was imported. Fix the 1 bad rows, or import the other 163"), "{error}");
    assert!(!home.at("garden").exists());
    assert_eq!(
        home.output_of("import theirs --out garden --skip-bad"),
        "garden: 163 rows, 1 bad rows skipped\n"
    );
    // As `atelier export` says of articles that left the catalogue.
    home.write("theirs/retired.txt", "shrub-9\n");
    let output = home.run("import theirs --out retired");
    let (told, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(told, "retired: 163 rows, 0 bad rows skipped\n", "{said}");
    assert!(said.contains("1 outfits have articles that left the catalogue (retired.txt)"), "{said}");
    assert!(said.contains("1 outfits have fewer than 4 others and were left out"), "{said}");
    // Only rows that are imported can be drawn for validation, or say what is.
    let text = fs::read_to_string(&path).unwrap();
    let bad =
        text.lines().take(60).map(|line| line.replace("\"shrub-", "\"gone-") + "\n").collect::<String>();
    let bad = bad.replacen('{', "{\"split\":\"validation\",", 1);
    let good: String = text.lines().skip(60).flat_map(|line| [line, "\n"]).collect();
    fs::write(&path, bad + &good).unwrap();
    let said = String::from_utf8(home.run("import theirs --out half --skip-bad").stderr).unwrap();
    assert!(said.contains("so 3 outfits were drawn for validation"), "{said}");
    let outfits = fs::read_to_string(home.at("half/outfits.jsonl")).unwrap();
    assert_eq!(outfits.matches("\"split\":\"validation\"").count(), 3);
    let error = home.error_of("import --outfits theirs/outfits.ndjson --out other");
    assert!(error.contains("there is no articles file: a data folder needs all three tables"), "{error}");
}

/// The flags that the refusal of a German shop's files proposes import them.
#[test]
fn a_shops_own_files_are_imported_by_the_proposed_flags() {
    let home = Home::new();
    let german = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/german");
    let files = format!(
        "--articles {german}/artikel.csv --customers {german}/kunden.csv --outfits {german}/outfits.csv"
    );
    let error = home.error_of(&format!("import {files} --out shop"));
    assert!(error.contains("articles need the columns \"id\" and \"type\""), "{error}");
    assert!(error.contains("outfits need the columns \"customer\" and \"articles\""), "{error}");
    let flags =
        error.lines().find_map(|line| line.strip_prefix("if these columns are what they seem, add: "));
    // None of these names has a space but one, which no shell splits here.
    let flags = flags
        .unwrap()
        .replace(" --map 'articles.VK (brutto)=price'", "")
        .replace(" --map 'customers.Körpergröße (cm)=height'", "");
    assert!(!flags.contains('\''), "{flags}");
    let output = home.output_of(&format!("import {files} --out shop {flags}"));
    assert_eq!(output, "shop: 64 rows, 0 bad rows skipped\n");
    let customers = fs::read_to_string(home.at("shop/customers.jsonl")).unwrap();
    assert!(
        customers.starts_with("{\"id\":\"77\",\"features\":{\"E-Mail\":\"m0@example.org\","),
        "{customers}"
    );
    assert!(
        customers.contains("\"Körpergröße (cm)\":\"160,5\"") && customers.contains("\"age\":20.5"),
        "{customers}"
    );
    let articles = fs::read_to_string(home.at("shop/articles.jsonl")).unwrap();
    assert!(articles.starts_with("{\"id\":\"001000\",\"type\":\"Hose\",\"Modell\":\"1E5\","), "{articles}");
}

#[test]
fn embeddings_have_one_length() {
    let home = garden();
    fs::remove_file(home.at("theirs/articles.csv")).unwrap();
    let mut articles = String::new();
    for number in 0..24 {
        let kind = ["shrub", "bulb", "pot", "tool"][number / 6];
        let numbers = if number == 23 { "1" } else { "1,2" };
        let id = format!("{kind}-{}", number % 6);
        writeln!(articles, "{{\"id\":\"{id}\",\"type\":\"{kind}\",\"embedding\":[{numbers}]}}").unwrap();
    }
    home.write("theirs/articles.jsonl", &articles);
    let error = home.error_of("import theirs --out garden");
    assert!(
        error.contains("theirs/articles.jsonl, line 24: embedding has 1 numbers, and that of"),
        "{error}"
    );
    assert_eq!(
        home.output_of("import theirs --out garden --skip-bad"),
        "garden: 163 rows, 1 bad rows skipped\n"
    );
    Data::load(&home.at("garden")).unwrap();
}

/// Customers have the articles of their training outfits as a feature, and a training outfit those of the others.
#[test]
fn what_customers_had_becomes_a_feature() {
    let home = garden();
    let outfit = |customer: &str, number: usize, split: &str| {
        let (shrub, bulb) = (number % 6, number / 6);
        format!(
            "{{\"customer\":\"{customer}\",\"split\":\"{split}\",\
             \"articles\":[\"shrub-{shrub}\",\"bulb-{bulb}\",\"pot-0\",\"tool-1\"]}}\n"
        )
    };
    // Only the last of the thirteen has bulb-2.
    let often: String = (0..13).map(|number| outfit("g-1", number, "train")).collect();
    let rest: String = [
        ("g-2", 17, "train"),
        ("g-1", 29, "validation"),
        ("g-1", 28, "validation"),
        ("g-3", 20, "validation"),
    ]
    .map(|(customer, number, split)| outfit(customer, number, split))
    .concat();
    fs::remove_file(home.at("theirs/outfits.ndjson")).unwrap();
    home.write("theirs/outfits.jsonl", &(often + &rest));
    let said = String::from_utf8(home.run("import theirs --out garden").stderr).unwrap();
    assert!(
        said.contains("the customers of validation outfits have 9 training outfits on average"),
        "{said}"
    );

    let rows = |name: &str| -> Vec<Value> {
        let text = fs::read_to_string(home.at(&format!("garden/{name}.jsonl"))).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let had = |row: &Value| -> Vec<String> {
        serde_json::from_value(row["features"]["had"].clone()).unwrap_or_default()
    };
    let (customers, outfits) = (rows("customers"), rows("outfits"));
    let customer = |id: &str| had(customers.iter().find(|customer| customer["id"] == id).unwrap());
    let [of_often, beside_last] = [customer("g-1"), had(&outfits[12])];
    assert_eq!(of_often[..3], ["pot-0", "tool-1", "bulb-1"], "the most frequent, then the latest");
    assert_eq!(of_often.len(), 11, "{of_often:?}");
    let others: Vec<String> = of_often.into_iter().filter(|article| article != "bulb-2").collect();
    assert_eq!(beside_last.len(), others.len());
    assert!(others.iter().all(|article| beside_last.contains(article)), "{beside_last:?}");
    assert_eq!(customer("g-2").len(), 4);

    // As models read it.
    let data = Data::load(&home.at("garden")).unwrap();
    let schema = data.schema();
    assert_eq!(schema.feature("had").unwrap().values.len(), 11, "the articles of all training outfits");
    let read = |outfit: u32| -> usize {
        let mut features = Vec::new();
        data.features_of(outfit, &mut features);
        features[schema.features().len() - 1].len()
    };
    assert_eq!(read(12), 10, "bulb-2 is the outfit's own");
    assert_eq!(read(13), 0, "one outfit has no other, and must not read its own articles");
    assert_eq!(
        [read(14), read(15)],
        [11, 11],
        "a validation outfit reads all training outfits, and not itself"
    );
    assert_eq!(read(16), 0, "a new customer had nothing");

    home.output_of("import theirs --out without --no-history");
    assert_eq!(Data::load(&home.at("without")).unwrap().schema().features().len(), 6);
    let words = home.output_of("survey --data garden --outfits 40");
    assert!(words.contains("/bulb-1/") && words.contains(" and 3 more"), "{words}");

    // Imported again, the folder is the same; without an outfit the feature is another.
    home.output_of("import garden --out again");
    for name in ["outfits.jsonl", "schema.toml"] {
        assert_eq!(
            fs::read(home.at("again").join(name)).unwrap(),
            fs::read(home.at("garden").join(name)).unwrap()
        );
    }
    let outfits = fs::read_to_string(home.at("garden/outfits.jsonl")).unwrap();
    let without_bulb: String =
        outfits.lines().filter(|line| !line.contains("\"bulb-2\",\"pot-0\"")).collect::<Vec<_>>().join("\n");
    home.write("again/outfits.jsonl", &without_bulb);
    home.output_of("import again --out fewer");
    let schema = Data::load(&home.at("fewer")).unwrap().schema().clone();
    assert_eq!(schema.feature("had").unwrap().values.len(), 10);
    assert!(!fs::read_to_string(home.at("fewer/customers.jsonl")).unwrap().contains("bulb-2"));

    home.output_of("fit --method none --data garden --config settings.toml");
    home.output_of("evaluate --data garden --runs runs/garden/none-1");
    let evaluation = home.json("runs/garden/none-1/evaluation.json");
    let segments = evaluation["segments"].as_array().unwrap();
    assert!(segments.iter().any(|s| s["by"] == "climate") && segments.iter().all(|s| s["by"] != "had"));
}

/// docs/training.md starts with these files.
#[test]
fn the_guides_furnished_rooms_import_without_a_bad_row() {
    let home = garden();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/rooms.py");
    let made = Command::new("python3")
        .arg(script)
        .args("rooms-theirs --customers 200 --rooms 300 --validation 40".split(' '))
        .current_dir(home.0.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(
        home.output_of("import rooms-theirs --out rooms"),
        "rooms: 940 rows, 0 bad rows skipped\n",
        "400 articles, 200 customers, 340 outfits"
    );
    let data = Data::load(&home.at("rooms")).unwrap();
    assert_eq!(data.schema().context_width(), 6 * 32);
    assert_eq!((data.vocabulary().len(), data.types().len(), data.validation().len()), (400, 12, 40));
    assert!(data.vocabulary().index_of("möbel-0001").is_some());
    let new = data.validation().iter().filter(|&&outfit| !data.is_seen(data.outfits().customer(outfit)));
    assert!((4..25).contains(&new.count()), "some customers are new in validation");
    let households: Vec<Vec<u32>> = data
        .training()
        .iter()
        .map(|&outfit| {
            let mut features = Vec::new();
            data.features_of(outfit, &mut features);
            features.swap_remove(0)
        })
        .collect();
    assert!(households.iter().filter(|values| !values.is_empty()).count() > 200, "whole numbers are words");
    let counted = home.output_of("baselines --data rooms");
    assert!(!counted.contains("gender"), "the schema has none:\n{counted}");
    let survey = home.output_of("survey --data rooms --outfits 1");
    assert!(survey.contains("wood in outfits:\n") && !survey.contains("brand in"), "{survey}");
}

/// A shop whose articles have embeddings, from its file to a release: known articles take them with their own vectors, new
/// ones by the release's encoder.
#[test]
fn articles_with_embeddings_become_a_release() {
    let home = garden();
    let plain = fs::read_to_string(home.at("theirs/articles.csv")).unwrap();
    let mut articles = String::new();
    for (number, line) in plain.lines().enumerate() {
        let seen = (0..5).map(|at| ((number * (at + 1) * 7) % 13).to_string()).collect::<Vec<_>>().join("|");
        writeln!(articles, "{line},{}", if number == 0 { "embedding" } else { &seen }).unwrap();
    }
    home.write("theirs/articles.csv", &articles);
    home.output_of("import theirs --out garden");
    home.output_of("fit --method none --attributes --data garden --config settings.toml");
    let run = "runs/garden/none-attributes-1";
    home.output_of(
        "fit --method none --attributes --data garden --config settings.toml --prepare --run other",
    );
    let prepared = fs::read(home.at("other/data.safetensors")).unwrap();
    let prepared = SafeTensors::deserialize(&prepared).unwrap();
    let [embeddings, weights] = ["embeddings", "task_weights"].map(|name| prepared.tensor(name).unwrap());
    assert_eq!(embeddings.shape()[0], 5 * weights.shape()[0], "five numbers for each known article");
    home.output_of(&format!("release --name seen --data garden --runs {run}"));
    let release = Release::open(&home.at("models/seen")).unwrap();
    let encoder = release.encoder().unwrap();
    assert_eq!(encoder.components(), 5);
    let (known, new) = release.articles().split_at(release.vocabulary().len());
    assert!(known.iter().all(|article| article.unpack().embedding().is_none()), "their own vectors have it");
    assert!(
        !new.is_empty()
            && new.iter().all(|article| article
                .unpack()
                .embedding()
                .is_some_and(|seen| seen.list("").is_some_and(|list| list.len() == 5)))
    );
    let method = &release.manifest().methods[0];
    let tables = Tables::open(
        &release.tables_path(method).unwrap(),
        known.len(),
        Some(encoder.count()),
        encoder.components(),
        release.schema(),
    )
    .unwrap();
    let row = |composition: &Composition| {
        let mut row = vec![0.0; tables.widths().row()];
        tables.write_row(composition, &mut row);
        row
    };
    let composition = release.compose(&new[0].unpack());
    let without = Composition { embedding: Box::default(), ..composition.clone() };
    assert_ne!(row(&composition), row(&without), "it was learned");
    let again = home.output_of("evaluate --data garden --release models/seen");
    let measured = home.output_of(&format!("evaluate --data garden --runs {run}"));
    let figure =
        |text: &str| text.lines().find(|line| line.starts_with("| none")).map(str::to_owned).unwrap();
    let entropy = |line: String| line.split('|').nth(3).unwrap().split('±').next().unwrap().trim().to_owned();
    assert_eq!(entropy(figure(&again)), entropy(figure(&measured)), "{again}\n{measured}");
}
