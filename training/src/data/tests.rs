use tempfile::TempDir;

use super::*;
use crate::testing::{assert_has, folder};

pub(crate) const SCHEMA: &str = r#"
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

fn shop(articles: &str, outfits: &str) -> TempDir {
    let tables = [("articles.jsonl", articles), ("customers.jsonl", CUSTOMERS), ("outfits.jsonl", outfits)];
    folder(&[("schema.toml", SCHEMA), tables[0], tables[1], tables[2]])
}

fn load(outfits: &str) -> Data {
    Data::load(shop(ARTICLES, outfits).path()).unwrap()
}

#[test]
fn a_folder_becomes_indices() {
    let folder = shop(ARTICLES, OUTFITS);
    let data = Data::load(folder.path()).unwrap();
    assert_eq!(data.name(), folder.path().file_name().unwrap().to_str().unwrap());
    assert_eq!(data.vocabulary().len(), 5);
    assert_eq!(data.types(), ["bag", "coat", "hat", "shoe"]);
    assert_eq!([0, 1, 2, 3, 4].map(|article| data.type_of(article)), [2, 1, 3, 2, 0]);
    assert_eq!(data.outfits().len(), 5);
    assert_eq!(data.outfits().articles(1), [4, 3, 2, 1, 0]);
    assert_eq!(data.outfits().articles(2), [0, 1, 2, 3]);
    assert_eq!(data.outfits().customer(3), 2);

    let mut features = vec![vec![9]; 7];
    for (outfit, expected, why) in [
        (0, [vec![1], vec![1, 3], vec![1]], "the outfit's occasion wins over the profile's"),
        (1, [vec![1], vec![1, 3], vec![2]], "the profile's"),
        (3, [vec![], vec![], vec![]], "nothing is known"),
        (4, [vec![], vec![], vec![]], "an unknown occasion is not the profile's"),
    ] {
        data.features_of(outfit, &mut features);
        assert_eq!(features, expected, "{why}");
    }

    // Every outfit is in one split.
    assert_eq!(data.validation(), [2, 3]);
    assert_eq!(data.development().len(), 1);
    let mut learnable = [data.training(), data.development()].concat();
    learnable.sort_unstable();
    assert_eq!(learnable, [0, 1, 4]);
    assert_eq!([0, 1, 2].map(|customer| data.is_seen(customer)), [true, true, false]);
}

const OUTFIT: &str = "{\"customer\":\"c-1\",\"articles\":[\"a-1\",\"a-2\",\"a-3\",\"a-5\"]}\n";

#[test]
fn development_is_two_percent_or_500_slots_and_always_the_same() {
    let load = |count: usize| load(&OUTFIT.repeat(count));
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
    let plain = load(&OUTFIT.repeat(20));
    let chosen = plain.development()[0] as usize;
    let mut rows = vec![OUTFIT.to_owned(); 20];
    rows[chosen] = OUTFIT.replace("a-5", "a-4");
    let data = load(&rows.concat());
    assert_eq!(data.development(), plain.development());
    assert_eq!((plain.count_known(), data.count_known()), (4, 4));
    assert_eq!(data.vocabulary().iter().last().unwrap().as_str(), "a-4");
    assert!(data.share_of_unseen() > 0.0, "nothing was learned of it");
}

#[test]
fn an_article_more_in_one_outfit_changes_the_fingerprint() {
    let more = OUTFITS.replace("\"a-3\",\"a-4\"]", "\"a-3\",\"a-4\",\"a-5\"]");
    let [before, after] = [OUTFITS, &more].map(|outfits| load(outfits).fingerprint().to_owned());
    assert!(before.len() == 64 && before != after, "{before}");
}

#[test]
fn an_inconsistent_folder_is_refused() {
    let unknown = shop(ARTICLES, &OUTFITS.replacen("a-5", "a-9", 1));
    let refusal = Data::load(unknown.path()).unwrap_err().to_string();
    assert_has(
        &refusal,
        &["1 rows are bad, the first is", "line 1: article \"a-9\" is not in the catalogue"],
    );
}

#[test]
fn articles_that_no_training_outfit_has_come_last() {
    let data = load(&OUTFITS.replacen("\"a-5\",\"a-4\",", "\"a-5\",", 1));
    assert_eq!(data.count_known(), 4);
    let ids: Vec<&str> = data.vocabulary().iter().map(atelier_core::domain::ArticleId::as_str).collect();
    assert_eq!(ids, ["a-1", "a-2", "a-3", "a-5", "a-4"], "a-4 is in a validation outfit only");
    assert_eq!([data.outfits().articles(0), data.outfits().articles(2)], [[0, 1, 2, 3], [0, 1, 2, 4]]);
    assert_eq!(data.types()[data.type_of(4)], "hat");
    assert_eq!(data.articles_of_type(data.type_of(4)), [0, 4]);
    assert_eq!(data.attributes().count(), 0, "two hats, but only one of them is known");
    let all = load(OUTFITS);
    assert_eq!((all.count_known(), all.attributes().count()), (5, 1), "the hats' type");
}

#[test]
fn spellings_that_filters_take_for_one_type_are_one() {
    let articles = ARTICLES.replacen("hat", "Rain Hats", 1).replacen("\"hat", "\"rain-hat", 1);
    let data = Data::load(shop(&articles, OUTFITS).path()).unwrap();
    assert_eq!(data.types(), ["Rain Hats", "bag", "coat", "shoe"]);
    assert_eq!(data.articles_of_type(0).len(), 2);
}

#[test]
fn a_set_names_articles_if_most_of_its_values_do() {
    for (kind, values, expected, why) in [
        ("set", ["1", "2", "gone"], true, "most of its values"),
        ("set", ["1", "red", "blue"], false, "articles have numbers, and one is a size"),
        ("category", ["1", "2", "3"], false, "how many people there are in a household"),
    ] {
        let text =
            format!("name = \"x\"\n[[feature]]\nname = \"f\"\nkind = \"{kind}\"\nvalues = {values:?}\n");
        let schema = Schema::parse(&text).unwrap();
        let found = names_articles(&schema.features()[0], |value| ["1", "2", "3"].contains(&value));
        assert_eq!(found, expected, "{why}");
    }
}
