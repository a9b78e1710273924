use std::{fmt::Write, fs, path::Path};

use tempfile::TempDir;

use super::*;

const SCHEMA: &str = r#"
name = "six"
[[feature]]
name = "gender"
kind = "category"
values = ["female", "male"]
[[feature]]
name = "colours"
kind = "set"
values = ["red", "green", "blue"]
[[feature]]
name = "occasion"
kind = "category"
values = ["office", "beach"]
"#;

const ARTICLES: &str = r#"{"id":"a-1","type":"hat"}
{"id":"a-2","type":"coat"}
{"id":"a-3","type":"shoe"}
{"id":"a-4","type":"hat"}
{"id":"a-5","type":"bag","season":["spring"]}
"#;

const CUSTOMERS: &str = r#"{"id":"c-1","features":{"gender":"female","colours":["blue","red"],"occasion":"beach"}}
{"id":"c-2","features":{"occasion":"office"}}
{"id":"c-3","features":{}}
"#;

const OUTFITS: &str = r#"{"customer":"c-1","articles":["a-1","a-2","a-3","a-5"],"features":{"occasion":"office"}}
{"customer":"c-1","articles":["a-5","a-4","a-3","a-2","a-1"],"split":"train"}
{"customer":"c-2","articles":["a-1","a-2","a-3","a-4"],"split":"validation"}
{"customer":"c-3","articles":["a-1","a-2","a-3","a-5"],"split":"validation"}
{"customer":"c-2","articles":["a-1","a-2","a-3","a-5"],"features":{"occasion":"moon","colours":[]}}
"#;

fn folder(outfits: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("schema.toml", SCHEMA),
        ("articles.jsonl", ARTICLES),
        ("customers.jsonl", CUSTOMERS),
        ("outfits.jsonl", outfits),
    ];
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

#[test]
fn a_folder_becomes_indices() {
    let folder = folder(OUTFITS);
    let data = Data::load(folder.path()).unwrap();
    assert_eq!(data.name(), folder.path().file_name().unwrap().to_str().unwrap());
    assert_eq!(data.vocabulary().len(), 5);
    assert_eq!(data.types(), ["bag", "coat", "hat", "shoe"]);
    assert_eq!((0..5).map(|article| data.type_of(article)).collect::<Vec<_>>(), [2, 1, 3, 2, 0]);
    assert_eq!(data.outfits().len(), 5);
    assert_eq!(data.outfits().articles(1), [4, 3, 2, 1, 0]);
    assert_eq!(data.outfits().articles(2), [0, 1, 2, 3]);
    assert_eq!(data.outfits().customer(3), 2);

    let mut features = vec![vec![9]; 7];
    data.features_of(0, &mut features);
    assert_eq!(features, [vec![1], vec![1, 3], vec![1]], "the outfit's occasion wins over the profile's");
    data.features_of(1, &mut features);
    assert_eq!(features, [vec![1], vec![1, 3], vec![2]]);
    data.features_of(3, &mut features);
    assert_eq!(features, [vec![], vec![], vec![]] as [Vec<u32>; 3]);
    data.features_of(4, &mut features);
    assert_eq!(
        features,
        [vec![], vec![], vec![]] as [Vec<u32>; 3],
        "an unknown occasion is not the profile's"
    );
}

#[test]
fn every_outfit_is_in_one_split() {
    let folder = folder(OUTFITS);
    let data = Data::load(folder.path()).unwrap();
    assert_eq!(data.validation(), [2, 3]);
    assert_eq!(data.development().len(), 1);
    let mut learnable = [data.training(), data.development()].concat();
    learnable.sort_unstable();
    assert_eq!(learnable, [0, 1, 4]);
    assert_eq!((0..3).map(|customer| data.is_seen(customer)).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn development_is_two_percent_or_500_slots_and_always_the_same() {
    const OUTFIT: &str = "{\"customer\":\"c-1\",\"articles\":[\"a-1\",\"a-2\",\"a-3\",\"a-5\"]}\n";
    let load = |count: usize| Data::load(folder(&OUTFIT.repeat(count)).path()).unwrap();
    let kept = |count: usize| load(count).development().len();
    assert_eq!([kept(10_000), kept(300)], [200, 30], "a tenth at most");
    let data = load(2000);
    assert!((125..150).contains(&data.development().len()), "{}", data.development().len());
    assert_eq!(data.training().len() + data.development().len(), 2000);
    assert_eq!(data.development(), load(2000).development());
    let spread: Vec<u32> = data.development().iter().map(|outfit| outfit / 500).collect();
    assert!((0..4).all(|quarter| spread.contains(&quarter)), "drawn from all quarters: {spread:?}");
}

#[test]
fn an_article_that_only_development_has_is_new() {
    let outfits = "{\"customer\":\"c-1\",\"articles\":[\"a-1\",\"a-2\",\"a-3\",\"a-5\"]}\n".repeat(20);
    let plain = Data::load(folder(&outfits).path()).unwrap();
    let chosen = plain.development()[0] as usize;
    let mut lines: Vec<String> = outfits.lines().map(str::to_owned).collect();
    lines[chosen] = lines[chosen].replace("a-5", "a-4");
    let data = Data::load(folder(&lines.join("\n")).path()).unwrap();
    assert_eq!(data.development(), plain.development());
    assert_eq!((plain.count_known(), data.count_known()), (5 - 1, 4));
    assert_eq!(data.vocabulary().iter().last().unwrap().as_str(), "a-4");
    assert!(data.share_of_unseen() > 0.0, "nothing was learned of it");
}

#[test]
fn a_fingerprint_depends_on_the_content_not_the_format() {
    let print = |folder: &Path| Data::load(folder).unwrap().fingerprint().to_owned();
    let make_folder = folder;
    let folder = make_folder(OUTFITS);
    let before = print(folder.path());
    assert_eq!(before.len(), 64);
    // The same outfits as CSV.
    fs::remove_file(folder.path().join("outfits.jsonl")).unwrap();
    fs::write(
        folder.path().join("outfits.csv"),
        "customer,articles,split,occasion,colours\n\
         c-1,a-1|a-2|a-3|a-5,,office,\n\
         c-1,a-5|a-4|a-3|a-2|a-1,train,,\n\
         c-2,a-1|a-2|a-3|a-4,validation,,\n\
         c-3,a-1|a-2|a-3|a-5,validation,,\n\
         c-2,a-1|a-2|a-3|a-5,,moon,[]\n",
    )
    .unwrap();
    assert_eq!(print(folder.path()), before);
    // One article more in one outfit.
    let other = make_folder(
        &OUTFITS.replace("[\"a-1\",\"a-2\",\"a-3\",\"a-4\"]", "[\"a-1\",\"a-2\",\"a-3\",\"a-4\",\"a-5\"]"),
    );
    assert_ne!(print(other.path()), before);
}

#[test]
fn an_inconsistent_folder_is_refused() {
    let bad =
        folder(&OUTFITS.replace(
            "a-5\"],\"features\":{\"occasion\":\"office",
            "a-9\"],\"features\":{\"occasion\":\"office",
        ));
    let said = Data::load(bad.path()).unwrap_err().to_string();
    assert!(said.contains("1 rows are bad, the first is"), "{said}");
    assert!(
        said.contains("line 1: article a-9 is not in the catalogue") || said.contains("article \"a-9\""),
        "{said}"
    );
    let bare = folder(OUTFITS);
    fs::remove_file(bare.path().join("customers.jsonl")).unwrap();
    let said = Data::load(bare.path()).unwrap_err().to_string();
    assert!(
        said.contains(
            "has no customers.jsonl, customers.csv or customers.parquet; make a data folder from your own"
        ),
        "{said}"
    );
}

/// A shop whose outfits follow patterns: the customer's gender determines which of two ranges the articles
/// are from, and each article determines the one of the next type.
pub(crate) fn patterned(outfits: usize) -> TempDir {
    let mut articles = String::new();
    for kind in ["hat", "coat", "shoe", "bag"] {
        for number in 0..10 {
            writeln!(articles, "{{\"id\":\"{kind}-{number}\",\"type\":\"{kind}\"}}").unwrap();
        }
    }
    let mut lines = String::new();
    for place in 0..outfits {
        let customer = 1 + place % 2;
        let number = (place / 2) % 5 + 5 * (place % 2);
        let beside = number / 5 * 5 + (number + 1) % 5;
        let split = if place % 10 == 9 { "validation" } else { "train" };
        writeln!(
            lines,
            "{{\"customer\":\"c-{customer}\",\"articles\":[\"hat-{number}\",\"coat-{beside}\",\"shoe-{number}\",\
             \"bag-{beside}\"],\"split\":\"{split}\"}}"
        )
        .unwrap();
    }
    let customers = "{\"id\":\"c-1\",\"features\":{\"gender\":\"female\"}}\n\
                     {\"id\":\"c-2\",\"features\":{\"gender\":\"male\",\"colours\":[\"red\",\"blue\"]}}\n";
    let folder = folder(&lines);
    fs::write(folder.path().join("articles.jsonl"), articles).unwrap();
    fs::write(folder.path().join("customers.jsonl"), customers).unwrap();
    folder
}

/// Makes a model small enough for tests.
pub(crate) fn small_model(model: &mut crate::model::ModelConfig) {
    model.width = 16;
    model.heads = 2;
    model.hidden = 32;
    model.blocks = 2;
    model.feature_width = 8;
    model.personas = 3;
}

#[test]
fn articles_that_no_training_outfit_has_come_last() {
    let outfits = OUTFITS.replace(
        r#"["a-5","a-4","a-3","a-2","a-1"],"split":"train""#,
        r#"["a-5","a-3","a-2","a-1"],"split":"train""#,
    );
    let data = Data::load(folder(&outfits).path()).unwrap();
    assert_eq!(data.count_known(), 4);
    let ids: Vec<&str> = data.vocabulary().iter().map(atelier_core::domain::ArticleId::as_str).collect();
    assert_eq!(ids, ["a-1", "a-2", "a-3", "a-5", "a-4"], "a-4 is in a validation outfit only");
    assert_eq!(data.outfits().articles(0), [0, 1, 2, 3]);
    assert_eq!(data.outfits().articles(2), [0, 1, 2, 4]);
    assert_eq!(data.types()[data.type_of(4)], "hat");
    assert_eq!(data.articles_of_type(data.type_of(4)), [0, 4]);
    assert_eq!(data.attributes().count(), 0, "two hats, but only one of them is known");
    let all = Data::load(folder(OUTFITS).path()).unwrap();
    assert_eq!((all.count_known(), all.attributes().count()), (5, 1), "the hats' type");
}

#[test]
fn spellings_that_filters_take_for_one_type_are_one() {
    let home = folder(OUTFITS);
    let articles = ARTICLES.replacen("hat", "Rain Hats", 1).replacen("\"hat", "\"rain-hat", 1);
    fs::write(home.path().join("articles.jsonl"), articles).unwrap();
    let data = Data::load(home.path()).unwrap();
    assert_eq!(data.types(), ["Rain Hats", "bag", "coat", "shoe"]);
    assert_eq!(data.articles_of_type(0).len(), 2);
}

#[test]
fn a_set_names_articles_if_most_of_its_values_do() {
    let ids = ["1", "2", "3"];
    let names = |kind: &str, values: &str| {
        let text =
            format!("name = \"x\"\n[[feature]]\nname = \"f\"\nkind = \"{kind}\"\nvalues = [{values}]\n");
        names_articles(&Schema::parse(&text).unwrap().features()[0], |value| ids.contains(&value))
    };
    assert!(names("set", "\"1\", \"2\", \"gone\""));
    assert!(!names("set", "\"1\", \"red\", \"blue\""), "articles have numbers, and one is a size");
    assert!(!names("category", "\"1\", \"2\", \"3\""), "how many people there are in a household");
}
