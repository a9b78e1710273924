//! Parquet files that other programs wrote (with `tests/fixtures/make_parquet.py`), and the columns of ours.

use ::parquet::{
    data_type::{DoubleType, Int64Type},
    file::{reader::FileReader, serialized_reader::SerializedFileReader},
    schema::printer::print_schema,
};
use atelier_core::domain::{Customer, CustomerId, FeatureValue, Outfit};
use serde_json::{Value as Json, json};

use super::*;

/// The rows as the canonical JSON Lines of them.
fn canonical<T: Table>(path: &Path) -> Vec<Json> {
    values::<T>(path).iter().map(|row| serde_json::from_str(&json_line(row, &SCHEMA)).unwrap()).collect()
}

#[test]
fn files_of_pyarrow_are_read() {
    assert_eq!(
        canonical::<Article>(&fixture("articles-pyarrow.parquet")),
        [
            json!({"id": "a-1", "type": "coat", "price": 79.9, "cost": 31.5, "stock": 3, "in_stock": true,
                "material": ["wool", "silk"], "sizes": [36, 38], "since": "2026-11-21", "seen": "2026-11-21T13:34:56.5",
                "dimensions": {"width": 1.5}}),
            json!({"id": "a-2", "type": "sneaker", "stock": 0, "in_stock": false, "material": []}),
            json!({"id": "a-3", "type": "coat", "price": 120, "cost": -0.05, "sizes": [], "since": "1969-12-31",
                "dimensions": {"label": "L"}}),
        ]
    );
    assert_eq!(
        canonical::<Article>(&fixture("articles-int96.parquet")),
        [json!({"id": "a", "type": "coat", "since": "2026-11-21T13:34:56Z"})]
    );
    assert_eq!(
        canonical::<Customer>(&fixture("customers-pyarrow.parquet")),
        [
            json!({"id": "c-1", "features":
                {"gender": "female", "age": 28, "preferred_colours": ["red", "blue"], "shoe_size": "38"}}),
            json!({"id": "c-2", "features": {"preferred_colours": []}}),
            json!({"id": "c-3", "features": {}}),
        ]
    );
    let outfits = fixture("outfits-required.parquet");
    assert_eq!(
        canonical::<Outfit>(&outfits),
        [
            json!({"customer": "c-1", "articles": ["a", "b", "c", "d"], "features": {"mood": 7}}),
            json!({"customer": "c-2", "articles": ["d", "c", "b", "a", "e"], "features": {"mood": 8}}),
        ]
    );
    assert_eq!(
        messages::<Outfit>(&outfits)[1],
        "2: the schema has no feature \"mood\"; models do not see it"
    );
}

#[test]
fn files_of_pandas_are_read_without_their_index() {
    let path = fixture("customers-pandas.parquet");
    assert_eq!(
        canonical::<Customer>(&path),
        [
            json!({"id": "c-1", "features": {"gender": "female", "age": 28.5, "preferred_colours": ["red"]}}),
            json!({"id": "c-2", "features": {}}),
            json!({"id": "c-3", "features": {"gender": "male", "age": 40}}),
        ]
    );
    let columns = schema_of(&path);
    assert!(columns.contains("__index_level_0__"), "it has one: {columns}");
    assert_eq!(messages::<Customer>(&path), Vec::<String>::new(), "no warning either");
}

#[test]
fn files_of_polars_are_read_and_nan_is_refused() {
    assert_eq!(
        read_out(open::<Outfit>(&fixture("outfits-polars.parquet"))),
        [
            r#"{"customer":"c-1","articles":["a","b","c","d"],"split":"train","features":{"age":28,"occasion":"wedding"}}"#,
            "row 2: column \"age\" contains NaN, which is not a finite number; write null for unknown values",
            "row 3: each of \"articles\" must be a string or a whole number, found null",
        ]
    );
}

#[test]
fn whole_numbers_are_ids_and_floats_are_not() {
    assert_eq!(
        canonical::<Outfit>(&fixture("outfits-numbers.parquet")),
        [json!({"customer": "17", "articles": ["1", "2", "3", "9007199254740993"], "split": "train"})]
    );
    assert_eq!(
        canonical::<Customer>(&fixture("customers-decimal.parquet"))[0]["id"],
        json!("9007199254740993")
    );
    assert_eq!(
        messages::<Customer>(&fixture("customers-float.parquet")),
        ["row 1: field \"id\" must be a string or a whole number, found 17.0"]
    );
}

#[test]
fn lists_of_two_levels_and_of_one_are_read() {
    for articles in [
        "required group articles (LIST) { repeated binary array (UTF8); }",
        "repeated binary articles (UTF8);",
    ] {
        let message = format!("message m {{ required binary customer (UTF8); {articles} }}");
        let folder = Folder::new();
        let path = folder.path("o.parquet");
        let levels = Some((vec![1, 1, 1, 1, 1, 0], vec![0, 1, 1, 1, 1, 0]));
        let ids = column::<ByteArrayType>(["a", "b", "c", "d", "e"].map(ByteArray::from).to_vec(), levels);
        write_parquet(&path, &message, WriterProperties::default(), &[texts(&["c-1", "c-2"]), ids]);
        let five = r#"{"customer":"c-1","articles":["a","b","c","d","e"]}"#;
        let none = "row 2: an outfit has 2 to 12 articles (`outfit` in the schema), found 0";
        assert_eq!(read_out(open::<Outfit>(&path)), [five, none], "{message}");
    }
}

#[test]
fn columns_have_names_of_their_own() {
    let folder = Folder::new();
    let path = folder.path("customers.parquet");
    let message = "message m { required binary Kundennummer (UTF8); required int64 Alter; required binary Name (UTF8); \
                   required double __index_level_0__; }";
    let columns = [
        texts(&["k"]),
        column::<Int64Type>(vec![28], None),
        texts(&["Jo"]),
        column::<DoubleType>(vec![0.0], None),
    ];
    write_parquet(&path, message, WriterProperties::new(), &columns);
    let read = |map: &[&str]| {
        let map = map.iter().map(|mapping| mapping.parse().unwrap()).collect();
        read_as::<Customer>(&path, &SCHEMA, &Dialect { map, ..Dialect::default() })
    };
    let refused = read(&["name="]).unwrap_err().to_string();
    let expected = "customers need a column \"id\", found \"Kundennummer\", \"Alter\"\nif these columns are what they seem, add: \
                    --map customers.Kundennummer=id --map customers.Alter=age";
    assert!(refused.ends_with(expected), "{refused}");
    let maps = ["kundennummer=age", "customers.Kundennummer = id", "Alter=age", "Name="];
    assert_eq!(read_out(read(&maps).unwrap()), [r#"{"id":"k","features":{"age":28}}"#]);
}

#[test]
fn unsupported_files_are_refused_when_opened() {
    assert_eq!(
        refuse::<Article>(&fixture("articles-gzip.parquet")),
        "FILE: GZIP compression is not supported; use zstd, snappy or none"
    );
    assert_eq!(
        refuse::<Article>(&fixture("customers-pyarrow.parquet")),
        "FILE: articles need a column \"type\", found \"id\", \"features\"; if one of them is the type, say so: --map articles.COLUMN=type"
    );
}

#[test]
fn columns_that_cannot_be_read_block_a_file_only_if_they_are_needed() {
    let note = "these columns are not read: \"names\" (a map), \"pairs\" (a list of lists or structs), \"grid\" (a list of \
                lists or structs), \"opens\" (times of day), \"uuid\" (UUIDs in binary), \"half\" (half floats), \
                \"inside.names\" (a map); write those that you need as text, or as JSON text";
    let articles = fixture("articles-odd.parquet");
    assert_eq!(open::<Article>(&articles).unread(), Some(note));
    assert_eq!(
        canonical::<Article>(&articles),
        [
            json!({"id": "a", "type": "coat", "before": 1, "after": "x", "inside": {"number": 7}}),
            json!({"id": "b", "type": "hat", "before": 2, "after": "y", "inside": {"number": 8}}),
        ]
    );
    let outfits = fixture("outfits-odd.parquet");
    let mut checker = Checker::new([], []);
    assert_eq!(checker.check(open::<Outfit>(&outfits)).flatten().count(), 0, "no article is known");
    let note = note.replace("\"inside.names\" (a map)", "\"inside\" (a struct)");
    assert_eq!(checker.report().notes, [format!("{}: {note}", outfits.display())]);
    let rows = canonical::<Outfit>(&outfits);
    assert_eq!(rows[0]["features"]["occasion"], "office");
    assert_eq!(rows[1]["articles"], json!(["a", "b", "c", "e"]));

    let reason = "contains a map, which cannot be read; write it as text, or as JSON text";
    for (name, refuse, column) in [
        ("articles-map.parquet", refuse::<Article> as fn(&Path) -> String, "stock"),
        ("outfits-map.parquet", refuse::<Outfit>, "occasion"),
        ("customers-map.parquet", refuse::<Customer>, "features"),
    ] {
        assert_eq!(refuse(&fixture(name)), format!("FILE: column \"{column}\" {reason}"));
    }
}

#[test]
fn written_columns_have_the_narrowest_type() {
    let articles = [
        article(
            "a-1",
            &json!({"colour": "red", "new": true, "price": 79, "stock": 3, "tags": ["x"], "mixed": 1, "big": 1,
                    "huge": 1.5, "most": u64::MAX, "numbers": [1]}),
        ),
        article(
            "a-2",
            &json!({"price": 79.9, "mixed": "one", "size": {"width": 1}, "tags": [], "big": 10_000_000_000_000_001_i64,
                    "huge": 10_000_000_000_000_001_i64}),
        ),
    ];
    let folder = Folder::new();
    assert_eq!(
        schema_of(&folder.rows("a.parquet", &articles)),
        "message articles {
  REQUIRED BYTE_ARRAY id (STRING);
  REQUIRED BYTE_ARRAY type (STRING);
  OPTIONAL INT64 big;
  OPTIONAL BYTE_ARRAY colour (STRING);
  OPTIONAL BYTE_ARRAY huge (JSON);
  OPTIONAL BYTE_ARRAY mixed (JSON);
  OPTIONAL BYTE_ARRAY most (JSON);
  OPTIONAL BOOLEAN new;
  OPTIONAL BYTE_ARRAY numbers (JSON);
  OPTIONAL DOUBLE price;
  OPTIONAL BYTE_ARRAY size (JSON);
  OPTIONAL INT64 stock;
  OPTIONAL group tags (LIST) {
    REPEATED group list {
      REQUIRED BYTE_ARRAY element (STRING);
    }
  }
}
"
    );
    // The schema's features come first.
    let features = ["zeal", "country", "gender", "customer"]
        .map(|name| (name.to_owned(), FeatureValue::Text("x".into())))
        .into_iter()
        .chain([("age".to_owned(), FeatureValue::Number(28.0))]);
    let ids = ids(["a", "b", "c", "d"]).to_vec();
    let outfit = Outfit::new(CustomerId::new("c").unwrap(), ids, None, features.collect()).unwrap();
    assert_eq!(
        schema_of(&folder.rows("o.parquet", &[outfit])),
        "message outfits {
  REQUIRED BYTE_ARRAY customer (STRING);
  REQUIRED group articles (LIST) {
    REPEATED group list {
      REQUIRED BYTE_ARRAY element (STRING);
    }
  }
  OPTIONAL BYTE_ARRAY split (STRING);
  OPTIONAL BYTE_ARRAY gender (STRING);
  OPTIONAL INT64 age;
  OPTIONAL BYTE_ARRAY country (STRING);
  OPTIONAL BYTE_ARRAY features.customer (STRING);
  OPTIONAL BYTE_ARRAY zeal (STRING);
}
"
    );
}

fn schema_of(path: &Path) -> String {
    let file = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let mut printed = Vec::new();
    print_schema(&mut printed, file.metadata().file_metadata().schema());
    String::from_utf8(printed).unwrap()
}
