//! Rows that are written and read again are the same, in every format.

use atelier_core::domain::{Customer, CustomerId, FeatureValue, Features, Outfit, Split};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value as Json, json};

use super::*;
use crate::json::make_canonical;

/// Texts that a format could misread.
const TRICKY: &str = "¦ ¦38¦-0¦1e5¦007¦true¦false¦True¦FALSE¦True|False¦null¦NaN¦a|b¦|¦\"¦\"x\"¦\"x¦[]¦[1]¦[\"a\"]¦\
                      {\"a\":1}¦{¦a,b¦line\nbreak¦\r¦ padded ¦\u{feff}¦Größe 38½";

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        select(TRICKY.split('¦').collect::<Vec<_>>()).prop_map(str::to_owned),
        any::<String>().prop_map(|t| t.replace('\0', ""))
    ]
}

fn canonical(mut value: Json) -> Json {
    make_canonical(&mut value);
    value
}

fn json_value() -> impl Strategy<Value = Json> {
    let number = prop_oneof![
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        (-1000..1000).prop_map(Json::from),
        (-1000..1000).prop_map(|n| Json::from(f64::from(n) / 8.0)),
    ];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        number,
        text().prop_map(Json::from)
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(text(), 0..4).prop_map(Json::from),
            vec(inner.clone(), 0..4).prop_map(Json::from),
            vec((text(), inner), 0..4).prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
    // Reading makes numbers canonical.
    .prop_map(canonical)
}

fn name() -> impl Strategy<Value = String> {
    const NAMES: [&str; 10] =
        ["colour", "price", "in_stock", "x.y", "features", "features.a", "a,b", "\"q\"", "Stoff", "customer"];
    prop_oneof![4 => select(&NAMES[..]).prop_map(str::to_owned), 1 => "[a-z\"|,\n]{1,3}"]
}

fn article() -> impl Strategy<Value = Article> {
    // Some columns should have narrow types.
    let narrow = prop_oneof![
        (0..9).prop_map(|n| json!({"narrow": n})),
        (0..9).prop_map(|n| json!({"narrow": f64::from(n) + 0.5})),
    ];
    (
        0..1_000_000,
        prop_oneof![Just("coat"), Just("low shoe"), Just("\"x\"")],
        vec((name(), json_value()), 0..6),
        narrow,
    )
        .prop_map(|(id, kind, attributes, narrow)| {
            let mut attributes: Map<String, Json> =
                attributes.into_iter().filter(|(name, value)| name != "id" && !value.is_null()).collect();
            attributes.extend(canonical(narrow).as_object().unwrap().clone());
            Article::new(ArticleId::new(format!("a-{id}")).unwrap(), kind, attributes).unwrap()
        })
}

fn features() -> impl Strategy<Value = Features> {
    let number = || any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(FeatureValue::Number);
    let one = || text().prop_map(FeatureValue::Text);
    let many = || vec(text(), 0..4).prop_map(FeatureValue::Many);
    let unknown = prop_oneof![number(), one(), many()];
    let feature = prop_oneof![
        (select(&["gender", "country", "shoe_size"][..]), one()),
        (select(&["preferred_colours", "nogo_types"][..]), many()),
        (select(&["age", "height"][..]), number()),
        (select(&["mood", "id", "features", "customer", "features.age", "split"][..]), unknown),
    ];
    vec(feature.prop_map(|(name, value)| (name.to_owned(), value)), 0..8)
        .prop_map(|all| all.into_iter().collect())
}

fn customer() -> impl Strategy<Value = Customer> {
    (0..1_000_000, features())
        .prop_map(|(id, features)| Customer { id: CustomerId::new(format!("c {id}")).unwrap(), features })
}

fn outfit() -> impl Strategy<Value = Outfit> {
    let split = select(&[None, Some(Split::Train), Some(Split::Validation)][..]);
    (0..1000_u32, proptest::collection::hash_set(0..100_u32, 4..=8), split, features()).prop_map(
        |(customer, articles, split, features)| {
            let articles =
                articles.into_iter().map(|id| ArticleId::new(format!("\"{id}\"")).unwrap()).collect();
            Outfit::new(CustomerId::new(customer.to_string()).unwrap(), articles, split, features).unwrap()
        },
    )
}

fn comes_back<T: Table + PartialEq + std::fmt::Debug>(rows: &[T]) -> Result<(), TestCaseError> {
    let folder = Folder::new();
    let canonical = folder.rows("rows.jsonl", rows);
    for name in ["again.jsonl", "again.csv", "again.parquet"] {
        let path = folder.rows(name, rows);
        let found: Vec<T> = values(&path);
        prop_assert_eq!(&found, rows, "{}", name);
        // It is written as the same bytes again.
        let after = folder.rows("after.jsonl", &found);
        prop_assert_eq!(fs::read(&after).unwrap(), fs::read(&canonical).unwrap(), "{}", name);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_come_back(
        articles in vec(article(), 0..6), customers in vec(customer(), 0..6), outfits in vec(outfit(), 0..6),
    ) {
        comes_back(&articles)?;
        comes_back(&customers)?;
        comes_back(&outfits)?;
    }
}

#[test]
fn many_rows_come_back() {
    let row = |n: u32| {
        let ids = (0..4).map(|k| ArticleId::new(format!("a-{}", (n + k) % 5000)).unwrap()).collect();
        let customer = CustomerId::new(format!("c-{n}")).unwrap();
        let split = n.is_multiple_of(3).then_some(Split::Train);
        Outfit::new(customer, ids, split, Features::default()).unwrap()
    };
    let rows: Vec<Outfit> = (0..100_500).map(row).collect();
    let folder = Folder::new();
    // More than a buffer of text, a batch of reading and a row group of writing.
    for (name, count, header) in [("o.jsonl", 8000, 0), ("o.csv", 8000, 1), ("o.parquet", 100_500, 0)] {
        let path = folder.rows(name, &rows[..count]);
        let mut found = open::<Outfit>(&path);
        for (row, number) in rows[..count].iter().zip(1..) {
            let read = found.next().unwrap().unwrap();
            assert_eq!((&read.value, read.line), (row, number + header), "{name}");
        }
        assert_eq!(found.next(), None, "{name}");
        let total = if name == "o.parquet" { 100_500 } else { fs::metadata(&path).unwrap().len() };
        assert_eq!(found.progress(), (total, total), "{name}");
    }
}
