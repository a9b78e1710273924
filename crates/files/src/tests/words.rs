//! Numbers where the schema expects words, which shops write without quotes.

use ::parquet::data_type::Int64Type;
use atelier_core::domain::{Customer, CustomerId, FeatureValue, Features};
use serde_json::json;

use super::{foreign::canonical, *};

#[test]
fn a_shoe_size_is_the_same_with_quotes_and_without_in_every_format() {
    let folder = Folder::new();
    let expected = [json!({"id": "c-1", "features": {"nogo_colours": ["38", "39"], "shoe_size": "38"}})];
    for (name, content) in [
        ("quoted.jsonl", r#"{"id":"c-1","features":{"shoe_size":"38","nogo_colours":["38","39"]}}"#),
        ("whole.jsonl", r#"{"id":"c-1","features":{"shoe_size":38,"nogo_colours":[38,39.0]}}"#),
        ("float.jsonl", r#"{"id":"c-1","features":{"shoe_size":38.0,"nogo_colours":[38,"39"]}}"#),
        ("plain.csv", "id,shoe_size,nogo_colours\nc-1,38,38|39\n"),
        ("json.csv", "id,shoe_size,nogo_colours\nc-1,38,\"[38, 39]\"\n"),
    ] {
        assert_eq!(canonical::<Customer>(&folder.file(name, content)), expected, "{name}");
    }
    assert_eq!(canonical::<Customer>(&whole_numbers_in_parquet(&folder)), expected);
    let messages_of = |features: &str| {
        messages::<Customer>(&folder.file("c.jsonl", format!("{{\"id\":\"c\",\"features\":{{{features}}}}}")))
    };
    assert_eq!(
        messages_of("\"shoe_size\":38.5"),
        ["line 1: feature \"shoe_size\" takes a string or a whole number, found the number 38.5"]
    );
    assert_eq!(
        messages_of("\"gender\":9007199254740993"),
        ["1: feature \"gender\" has no value \"9007199254740993\"; models do not see it"]
    );
    // A number stored under a schema without the feature.
    let features: Features = [("shoe_size".to_owned(), FeatureValue::Number(38.0))].into_iter().collect();
    let written = folder.rows("kept.jsonl", &[Customer { id: CustomerId::new("c").unwrap(), features }]);
    assert_eq!(fs::read_to_string(written).unwrap(), "{\"id\":\"c\",\"features\":{\"shoe_size\":\"38\"}}\n");
}

fn whole_numbers_in_parquet(folder: &Folder) -> PathBuf {
    let path = folder.path("whole.parquet");
    let message = "message m { required binary id (UTF8); required int64 shoe_size; \
                   required group nogo_colours (LIST) { repeated group list { required int64 element; } } }";
    let sizes = column::<Int64Type>(vec![38], None);
    let colours = column::<Int64Type>(vec![38, 39], Some((vec![1, 1], vec![0, 1])));
    write_parquet(&path, message, WriterProperties::default(), &[texts(&["c-1"]), sizes, colours]);
    path
}
