//! Embeddings, in every format.

use ::parquet::data_type::FloatType;
use serde_json::json;

use super::*;

#[test]
fn an_embedding_survives_every_format() {
    let folder = Folder::new();
    let seen = article("a", &json!({"embedding": [0.1, -2, 3e-9, 16_777_216], "colour": "red"}));
    let both = article("b", &json!({"embedding": {"image": [0.1, -2], "text": [3e-9]}}));
    for name in ["a.parquet", "a.csv", "a.jsonl"] {
        for rows in [vec![both.clone(), seen.clone()], vec![both.clone()], vec![seen.clone()]] {
            let path = folder.rows(name, &rows);
            assert_eq!(values::<Article>(&path), rows, "{name}");
        }
    }
    let written = fs::read_to_string(folder.path("a.jsonl")).unwrap();
    assert_eq!(
        written,
        "{\"id\":\"a\",\"type\":\"coat\",\"colour\":\"red\",\"embedding\":[0.1,-2,3e-9,16777216]}\n"
    );
}

#[test]
fn in_csv_numbers_may_be_joined() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "id,type,embedding\na,coat,0.5|-1|2e3\na,coat,\"[0.5,-1,2000]\"\n");
    let read = r#"{"id":"a","type":"coat","embedding":[0.5,-1,2000]}"#;
    assert_eq!(read_out(open::<Article>(&path)), [read, read]);
}

#[test]
fn a_bad_embedding_is_a_bad_row() {
    let folder = Folder::new();
    let path = folder.file("a.jsonl", "{\"id\":\"a\",\"type\":\"coat\",\"embedding\":[1,null]}\n");
    let mut checker = Checker::new([], []);
    assert_eq!(checker.check(open::<Article>(&path)).count(), 0);
    let error = checker.report().errors[0].to_string();
    assert!(error.ends_with("\"text\": [0.5]} (article \"a\")"), "{error}");
}

#[test]
fn in_parquet_it_may_be_a_list_of_floats() {
    let folder = Folder::new();
    let path = folder.path("a.parquet");
    let message = "message articles { required binary id (UTF8); required binary type (UTF8);
        optional group embedding (LIST) { repeated group list { optional float element; } } }";
    let levels = Some((vec![3, 3, 3, 0], vec![0, 1, 1, 0]));
    let embeddings = column::<FloatType>(vec![0.1, -2.5, 3e-9], levels);
    let columns = [texts(&["a", "b"]), texts(&["coat", "hat"]), embeddings];
    write_parquet(&path, message, WriterProperties::default(), &columns);
    let seen = r#"{"id":"a","type":"coat","embedding":[0.1,-2.5,3e-9]}"#;
    assert_eq!(read_out(open::<Article>(&path)), [seen, r#"{"id":"b","type":"hat"}"#]);
}
