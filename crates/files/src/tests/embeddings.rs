//! Embeddings, in every format.

use ::parquet::data_type::FloatType;
use serde_json::json;

use super::*;

fn list(article: &Article) -> Option<&[f32]> {
    article.embedding()?.list("")
}

#[test]
fn an_embedding_survives_every_format() {
    let folder = Folder::new();
    let seen = article("a", &json!({"embedding": [0.1, -2, 3e-9, 16_777_216], "colour": "red"}));
    assert_eq!(list(&seen).unwrap().len(), 4);
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
    let path = folder.file("a.csv", "id,type,embedding\na,coat,0.5|-1|2e3\nb,coat,\"[0.5,-1]\"\n");
    let read: Vec<Option<Vec<f32>>> =
        values::<Article>(&path).iter().map(|article| list(article).map(<[f32]>::to_vec)).collect();
    assert_eq!(read, [Some(vec![0.5, -1.0, 2000.0]), Some(vec![0.5, -1.0])]);
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
    let read = values::<Article>(&path);
    assert_eq!(list(&read[0]), Some(&[0.1, -2.5, 3e-9][..]));
    assert_eq!(read[1].embedding(), None);
}
