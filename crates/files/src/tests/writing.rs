//! The bytes of written files.

use atelier_core::domain::{Customer, CustomerId, FeatureValue, Features, Outfit, Split};
use serde_json::json;

use super::*;

fn customer(id: &str, features: &[(&str, FeatureValue)]) -> Customer {
    let features = features.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Customer { id: CustomerId::new(id).unwrap(), features }
}

fn written<T: Table>(name: &str, rows: &[T]) -> String {
    let folder = Folder::new();
    fs::read_to_string(folder.rows(name, rows)).unwrap()
}

#[test]
fn json_lines_are_canonical() {
    let articles = [article(
        "a-1",
        &json!({"price": 79.0, "colour": "r\"é/\n", "gone": null, "size": {"z": [1.5, null], "a": 2.0}, "b": ["x"],
                "n": [-0.0, u64::MAX, i64::MIN, 9_007_199_254_740_992.0]}),
    )];
    assert_eq!(
        written("a.jsonl", &articles),
        "{\"id\":\"a-1\",\"type\":\"coat\",\"b\":[\"x\"],\"colour\":\"r\\\"é/\\n\",\
         \"n\":[0,18446744073709551615,-9223372036854775808,9007199254740992],\"price\":79,\"size\":{\"a\":2,\"z\":[1.5,null]}}\n"
    );
    let customers = [
        customer(
            "c-1",
            &[("preferred_colours", FeatureValue::Text("red".into())), ("age", FeatureValue::Number(28.0))],
        ),
        // A number stored under a schema without the feature, and one that JSON does not have.
        customer(
            "c-2",
            &[("shoe_size", FeatureValue::Number(38.0)), ("age", FeatureValue::Number(f64::NAN))],
        ),
    ];
    assert_eq!(
        written("c.jsonl", &customers),
        "{\"id\":\"c-1\",\"features\":{\"age\":28,\"preferred_colours\":[\"red\"]}}\n{\"id\":\"c-2\",\"features\":{\"shoe_size\":\"38\"}}\n"
    );
    let ids = ids(["d", "b", "a", "c"]).to_vec();
    let outfit =
        |split, features| Outfit::new(CustomerId::new("c").unwrap(), ids.clone(), split, features).unwrap();
    let occasion = [("occasion".to_owned(), FeatureValue::Text("wedding".into()))].into_iter().collect();
    assert_eq!(
        written("o.jsonl", &[outfit(Some(Split::Train), Features::default()), outfit(None, occasion)]),
        "{\"customer\":\"c\",\"articles\":[\"d\",\"b\",\"a\",\"c\"],\"split\":\"train\"}\n\
         {\"customer\":\"c\",\"articles\":[\"d\",\"b\",\"a\",\"c\"],\"features\":{\"occasion\":\"wedding\"}}\n"
    );
}

#[test]
fn csv_is_what_a_spreadsheet_expects() {
    let articles = [
        article("a-1", &json!({"price": 79.0, "colour": "red, dark", "material": ["wool", "silk"]})),
        article("a-2", &json!({"colour": "38", "note": "say \"hi\"", "tags": ["one"]})),
    ];
    assert_eq!(
        written("a.csv", &articles),
        "id,type,colour,material,note,price,tags\n\
         a-1,coat,\"red, dark\",wool|silk,,79,\n\
         a-2,coat,\"\"\"38\"\"\",,\"say \"\"hi\"\"\",,\"[\"\"one\"\"]\"\n"
    );
    let many = |words: &[&str]| FeatureValue::Many(words.iter().map(ToString::to_string).collect());
    let customers = [
        customer(
            "c-1",
            &[("shoe_size", FeatureValue::Text("38".into())), ("nogo_types", many(&["heels", "skirt"]))],
        ),
        customer("c-2", &[("age", FeatureValue::Number(28.0)), ("nogo_types", many(&["heels"]))]),
    ];
    assert_eq!(
        written("c.csv", &customers),
        "id,age,nogo_types,shoe_size\nc-1,,heels|skirt,38\nc-2,28,heels,\n",
        "features in the schema's order, sets without JSON"
    );
}

#[test]
fn a_file_appears_when_it_is_complete() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "what was there");
    let columns = TableColumns::<Article>::new(&SCHEMA);
    let mut writer = Writer::create(&path, Format::Csv, &columns).unwrap();
    writer.write(&article("a-1", &json!({}))).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "what was there");
    drop(writer);
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 1, "an abandoned file is deleted");
    let mut writer = Writer::create(&path, Format::Csv, &columns).unwrap();
    writer.write(&article("a-1", &json!({}))).unwrap();
    writer.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "id,type\na-1,coat\n");
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 1);
    let error = Writer::create(&folder.path("no/a.csv"), Format::Csv, &columns).unwrap_err().to_string();
    assert!(error.starts_with("cannot write ") && error.contains("No such file"), "{error}");
}

#[test]
fn a_row_that_does_not_fit_the_columns_is_an_error() {
    let folder = Folder::new();
    let mut columns = TableColumns::<Article>::new(&SCHEMA);
    columns.include(&article("a-1", &json!({"price": 79})));
    for (format, attributes, column) in [
        (Format::Csv, json!({"colour": "red"}), "colour"),
        (Format::Parquet, json!({"colour": "red"}), "colour"),
        (Format::Parquet, json!({"price": "cheap"}), "price"),
    ] {
        let path = folder.path("a.out");
        let mut writer = Writer::create(&path, format, &columns).unwrap();
        let error = writer.write(&article("a-2", &attributes)).unwrap_err();
        assert!(matches!(&error, FileError::Column { column: found, .. } if found == column), "{error}");
    }
}
