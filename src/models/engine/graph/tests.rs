//! Splitting the demo release's files, and files that differ slightly.

use std::{fs, path::Path};

use super::*;
use crate::domain::Method;

const ARTICLES: usize = 1500;

fn demo(method: Method) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/demo/{method}.onnx"))).unwrap()
}

fn graph(file: &[u8]) -> Graph<'_> {
    let graph = read_fields(file).unwrap().into_iter().find(|field| field.number == GRAPH).unwrap();
    Graph::read(graph.bytes().unwrap()).unwrap()
}

#[test]
fn every_method_of_the_demo_is_split() {
    for method in Method::ALL.into_iter().filter(|method| *method != Method::Match) {
        let file = demo(method);
        let Parts { trunk, head } = split(&file).unwrap();
        assert_eq!((head.bias.len(), head.vocabulary.len()), (ARTICLES, ARTICLES * 128), "{method}");
        assert!(!head.is_boosted, "{method}");
        let (full, short) = (graph(&file), graph(&trunk));
        let has_personas = full.outputs.contains(&"personas");
        assert_eq!(head.personas.map(|weights| weights.len()), has_personas.then_some(ARTICLES * 8));
        let mut expected: Vec<&str> = full.outputs.iter().copied().filter(|&name| name != "logits").collect();
        expected.push("hidden");
        assert_eq!(short.outputs, expected, "{method}");
        // Two of the layer's weights are gone. The mix of personas still needs theirs.
        let names = |graph: &Graph<'_>| graph.weights.iter().map(|tensor| tensor.name.to_owned()).collect();
        let (before, after): (Vec<String>, Vec<String>) = (names(&full), names(&short));
        let gone: Vec<&String> = before.iter().filter(|name| !after.contains(name)).collect();
        assert_eq!(gone, ["vocabulary.weight", "vocabulary.bias"], "{method}");
        // Without one or two dense layers and the casts of their half-precision weights.
        let casts = usize::from(full.producer("logits").unwrap().inputs[1] != "vocabulary.weight");
        assert!(casts == 1 && full.nodes.len() > short.nodes.len(), "{method}");
        // Everything else is kept byte for byte.
        let kept = |graph: &Graph<'_>| graph.fields.iter().map(|field| field.encoded.to_vec()).collect();
        let (before, after): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (kept(&full), kept(&short));
        let new: Vec<&Vec<u8>> = after.iter().filter(|field| !before.contains(field)).collect();
        assert_eq!(new.len(), 1, "{method}: `hidden` among the outputs");
        assert!(split(&trunk).is_none(), "a trunk has no logits");
    }
}

#[test]
fn half_precision_weights_are_read() {
    let file = demo(Method::Gsu);
    let graph = graph(&file);
    let stored = graph.weights.iter().find(|tensor| tensor.name == "vocabulary.weight").unwrap();
    assert_eq!(stored.shape, [ARTICLES, 128]);
    let numbers = stored.floats().unwrap();
    assert!(numbers.iter().all(|number| number.is_finite() && number.abs() < 10.0));
    assert!(numbers.iter().any(|number| number.abs() > 0.01));
}

#[test]
fn other_files_are_not_split() {
    let file = demo(Method::Latent);
    assert!(split(&file).is_some());
    // Replacements have the same length, so that length prefixes stay right.
    let changes: [(&[u8], &[u8]); 7] = [
        (b"hidden", b"hiddem"),
        (b"transB", b"transA"),
        (b"vocabulary.weight", b"vocabulary.height"),
        (b"personas.weight", b"personas.height"),
        (b"logits", b"digits"),
        (b"Gemm", b"Germ"),
        // 1,500 by 128 becomes 128 by 1,500.
        (b"\x08\xdc\x0b\x08\x80\x01", b"\x08\x80\x01\x08\xdc\x0b"),
    ];
    for (from, to) in changes {
        assert!(split(&replace(&file, from, to)).is_none(), "{}", String::from_utf8_lossy(to));
    }
}

fn replace(file: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut changed = file.to_vec();
    let places: Vec<usize> = file
        .windows(from.len())
        .enumerate()
        .filter(|(_, window)| *window == from)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    for place in places {
        changed[place..][..to.len()].copy_from_slice(to);
    }
    changed
}

#[test]
fn a_truncated_file_is_not_split() {
    let file = demo(Method::None);
    for end in [0, 1, 10, file.len() / 3, file.len() - 1] {
        assert!(split(&file[..end]).is_none(), "{end}");
    }
    assert!(split(b"not an ONNX file").is_none());
}
