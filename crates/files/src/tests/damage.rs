//! Reading any file ends, and never panics.

use std::sync::LazyLock;

use atelier_core::domain::{Customer, Outfit};
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::*;

const NAMES: [&str; 3] = ["x.jsonl", "x.csv", "x.parquet"];

/// Reads a file as all three tables, to the end.
fn survive(name: &str, bytes: &[u8]) {
    fn survive_as<T: Table>(path: &Path) {
        let Ok(mut rows) = read::<T>(path, &SCHEMA) else { return };
        for error in rows.by_ref().filter_map(Result::err) {
            assert!(!error.reason.is_empty());
        }
        assert!(rows.next().is_none(), "nothing follows the end");
    }
    let folder = Folder::new();
    let path = folder.file(name, bytes);
    survive_as::<Article>(&path);
    survive_as::<Customer>(&path);
    survive_as::<Outfit>(&path);
}

/// A healthy file of each table, in each format.
static HEALTHY: LazyLock<Vec<(&str, Vec<u8>)>> =
    LazyLock::new(|| NAMES.into_iter().flat_map(|name| healthy(name).map(|bytes| (name, bytes))).collect());

fn healthy(name: &str) -> [Vec<u8>; 3] {
    let folder = Folder::new();
    let lines = |line: &dyn Fn(usize) -> String| (0..40).map(line).collect::<Vec<_>>().join("\n");
    let features = r#""features":{"age":28,"nogo_types":["coat"]}"#;
    let articles = lines(&|n| {
        format!(r#"{{"id":"a-{n}","type":"coat","colour":"red","price":{n}.5,"new":true,"tags":["a","b"]}}"#)
    });
    let customers = lines(&|n| format!(r#"{{"id":"c-{n}",{features}}}"#));
    let outfits = lines(&|n| {
        let articles = json!([0, 1, 2, 3, 4].map(|step| format!("a-{}", n % 30 + step)));
        format!(r#"{{"customer":"c-{n}","articles":{articles},"split":"train",{features}}}"#)
    });
    [
        folder.rows(name, &values::<Article>(&folder.file("a.jsonl", articles))),
        folder.rows(&format!("2{name}"), &values::<Customer>(&folder.file("c.jsonl", customers))),
        folder.rows(&format!("3{name}"), &values::<Outfit>(&folder.file("o.jsonl", outfits))),
    ]
    .map(|path| fs::read(path).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

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

#[test]
fn a_file_cut_short_never_panics() {
    for (name, whole) in &*HEALTHY {
        for length in (0..whole.len()).step_by(13) {
            survive(name, &whole[..length]);
        }
    }
}
