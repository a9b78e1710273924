//! The links of the documents name files that are there.

use std::{
    fs,
    path::{Path, PathBuf},
};

#[test]
fn every_link_and_picture_of_a_document_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"]
            .map(|name| root.join(name))
            .into();
    for folder in ["docs", "clients/python", "clients/typescript", "training"] {
        find_documents(&root.join(folder), &mut documents);
    }
    let (mut missing, mut found) = (Vec::new(), 0);
    for document in &documents {
        let text = fs::read_to_string(document).unwrap();
        for link in links(&text) {
            found += 1;
            if !document.with_file_name(link).exists() {
                missing.push(format!("{}: {link}", document.strip_prefix(root).unwrap().display()));
            }
        }
    }
    assert!(found > 100, "{found} links in {documents:?}");
    assert!(missing.is_empty(), "these links name nothing:\n{}", missing.join("\n"));
}

fn find_documents(folder: &Path, documents: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "node_modules") {
            find_documents(&path, documents);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            documents.push(path);
        }
    }
}

/// The paths of a document's relative links, outside of code.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2).flat_map(|prose| prose.split('`').step_by(2));
    let targets = prose.flat_map(|prose| prose.split("](").skip(1));
    targets.filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?;
        let path = target.split('#').next()?;
        let relative = !path.is_empty() && !path.contains(':') && !path.starts_with('/');
        relative.then_some(path)
    })
}
