//! Reading any file ends, and never panics.

use std::sync::LazyLock;

use atelier_core::domain::{Customer, CustomerId, FeatureValue, Features, Outfit, Split};
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::*;

const NAMES: [&str; 3] = ["x.jsonl", "x.csv", "x.parquet"];

/// Reads a file as all three tables, to the end.
fn survive(name: &str, bytes: &[u8]) {
    let folder = Folder::new();
    let path = folder.file(name, bytes);
    survive_as::<Article>(&path);
    survive_as::<Customer>(&path);
    survive_as::<Outfit>(&path);
}

fn survive_as<T: Table>(path: &Path) {
    let Ok(mut rows) = read::<T>(path, &SCHEMA) else { return };
    for row in rows.by_ref() {
        if let Err(error) = row {
            assert!(!error.reason.is_empty());
        }
    }
    assert!(rows.next().is_none(), "nothing follows the end");
}

/// A healthy file of each table, in each format.
static HEALTHY: LazyLock<Vec<(&str, Vec<u8>)>> =
    LazyLock::new(|| NAMES.into_iter().flat_map(|name| healthy(name).map(|bytes| (name, bytes))).collect());

fn healthy(name: &str) -> [Vec<u8>; 3] {
    let folder = Folder::new();
    let articles: Vec<Article> = (0..40)
        .map(|n| {
            let price = 0.5 + f64::from(n);
            let attributes = json!({"colour": "red", "price": price, "new": true, "tags": ["a", "b"]});
            article(&format!("a-{n}"), &attributes)
        })
        .collect();
    let features: Features = [
        ("age".to_owned(), FeatureValue::Number(28.0)),
        ("nogo_types".to_owned(), FeatureValue::Many(vec!["coat".into()])),
    ]
    .into_iter()
    .collect();
    let customer = |n| CustomerId::new(format!("c-{n}")).unwrap();
    let customers: Vec<Customer> =
        (0..40).map(|n| Customer { id: customer(n), features: features.clone() }).collect();
    let outfits: Vec<Outfit> = (0..40)
        .map(|n| {
            let ids = articles[n % 30..].iter().take(5).map(|article| article.id.clone()).collect();
            Outfit::new(customer(n), ids, Some(Split::Train), features.clone()).unwrap()
        })
        .collect();
    [
        folder.rows(name, &articles),
        folder.rows(&format!("2{name}"), &customers),
        folder.rows(&format!("3{name}"), &outfits),
    ]
    .map(|path| fs::read(path).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..300), head in 0..4usize) {
        let head = [&b""[..], b"id,type,customer,articles\n", b"{\"id\":", b"PAR1"][head];
        for name in NAMES {
            let tail: &[u8] = if name == "x.parquet" { b"\x20\0\0\0PAR1" } else { b"" };
            survive(name, &[head, &bytes, tail].concat());
        }
    }

    #[test]
    fn random_text_never_panics(text in "[\\[\\]{}\":,|\\\\\n\r a0.e-]{0,200}") {
        survive("x.jsonl", text.as_bytes());
        survive("x.csv", &[b"id,type,customer,articles\n", text.as_bytes()].concat());
    }
}

#[test]
fn a_file_cut_short_never_panics() {
    for (name, whole) in &*HEALTHY {
        for length in (0..whole.len()).step_by(13) {
            survive(name, &whole[..length]);
        }
    }
    // The directory of a Parquet file is at its end, so a part of a file cannot be read.
    let [articles, ..] = healthy("x.parquet");
    let folder = Folder::new();
    let path = folder.file("x.parquet", &articles[..articles.len() - 1]);
    assert!(read::<Article>(&path, &SCHEMA).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn changed_bytes_never_panic(changes in vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4)) {
        for (name, bytes) in &*HEALTHY {
            let mut bytes = bytes.clone();
            for (index, byte) in &changes {
                let index = index.index(bytes.len());
                bytes[index] = *byte;
            }
            survive(name, &bytes);
        }
    }
}
