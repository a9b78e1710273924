//! The links of the documents name files that are there, their promises tests that are there, and install steps what they
//! install exactly. No text has a word that reads as translated.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use atelier::completion::rules::EFFECTS;

#[test]
fn every_link_and_picture_of_a_document_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"]
            .map(|name| root.join(name))
            .into();
    for folder in ["docs", "clients/python", "clients/typescript", "training"] {
        find_files(&root.join(folder), "md", &mut documents);
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

/// A promise of security.md is an item of a list above "Not covered"; those of reliability.md begin with an experiment.
#[test]
fn every_promise_names_a_test_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut sources, mut tests) = (Vec::new(), HashSet::new());
    for folder in ["tests", "src", "crates"] {
        find_files(&root.join(folder), "rs", &mut sources);
    }
    for source in sources {
        let text = fs::read_to_string(source).unwrap();
        let names = text.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
        tests.extend(names.map(ToOwned::to_owned));
    }
    let experiments = include_str!("reliability/main.rs").split("Experiment::new(\"").skip(1);
    tests.extend(experiments.filter_map(|rest| rest.split('"').next()).map(ToOwned::to_owned));
    let security = include_str!("../docs/security.md").split("\n## Not covered").next().unwrap();
    let reliability = include_str!("../docs/reliability.md").split("\n## Limits").next().unwrap();
    let promises: Vec<&str> = [security, reliability]
        .iter()
        .flat_map(|text| text.split("\n- ").skip(1))
        .filter_map(|item| item.split("\n\n").next())
        .collect();
    assert!(promises.len() > 40, "{promises:#?}");
    let quoted = |text: &'static str| text.split('`').skip(1).step_by(2);
    let empty: Vec<&&str> =
        promises.iter().filter(|promise| !quoted(promise).any(|name| tests.contains(name))).collect();
    assert!(empty.is_empty(), "no test holds these promises:\n{empty:#?}");
    // A test's name has three words at least; settings and paths have other characters or fewer words.
    let is_name = |text: &&str| {
        text.matches('_').count() >= 3 && text.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
    };
    let gone: Vec<&str> = [security, reliability]
        .into_iter()
        .flat_map(quoted)
        .filter(is_name)
        .filter(|name| !tests.contains(*name))
        .collect();
    assert!(gone.is_empty(), "these tests are not there: {gone:?}");
}

/// The table of docs/steering.md has a row for each effect of rules, with the field that it needs.
#[test]
fn every_effect_of_rules_is_documented() {
    let text = include_str!("../docs/steering.md");
    let rows = text.lines().skip_while(|line| !line.starts_with("| `effect`")).skip(2);
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 3, "{rows:?}");
    for about in EFFECTS {
        let row = rows.iter().find(|row| row.contains(&format!("`{}`", about.effect)));
        let row = row.unwrap_or_else(|| panic!("docs/steering.md has no row for {}", about.effect));
        let needs = row.split('|').nth(2).unwrap_or_default();
        assert!(about.takes.is_empty() || needs.contains(&format!("`{}`", about.takes)), "{row}");
    }
}

fn find_files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "node_modules") {
            find_files(&path, ending, found);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
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

#[test]
fn no_text_has_a_refused_word() {
    const READ: &str =
        "README ARCHITECTURE CONTRIBUTING CHANGELOG docs/ templates/ static/ src/ crates/ training/src/";
    const REFUSED: [&str; 7] =
        ["// What ", "//! What ", "; this is a bug\"", "meanwhile", "Meanwhile", "likelier", "Likelier"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut texts, mut found) = (Vec::new(), Vec::new());
    find_texts(root, &mut texts);
    assert!(texts.len() > 500, "{} texts", texts.len());
    for (path, text) in &texts {
        let name = path.strip_prefix(root).unwrap().to_string_lossy();
        let is_in = |list: &str| list.split(' ').any(|start| name.starts_with(start));
        if !is_in(READ) {
            continue;
        }
        for (line, number) in text.lines().zip(1..) {
            let words = REFUSED.iter().filter(|word| line.contains(**word));
            found.extend(words.map(|word| format!("{name}:{number}: {word}")));
        }
    }
    assert!(found.is_empty(), "write these in plain English:\n{}", found.join("\n"));
}

#[test]
fn clients_and_images_have_the_programs_version() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let version = env!("CARGO_PKG_VERSION");
    for (file, text, times) in [
        ("clients/python/pyproject.toml", "\nversion = \"VERSION\"\n", 1),
        ("clients/typescript/package.json", "\n  \"version\": \"VERSION\",\n", 1),
        ("clients/typescript/README.md", "atelier-client-VERSION.tgz", 1),
        ("docs/operations.md", "atelier_VERSION-1_amd64.deb", 1),
        ("docs/operations.md", "8080:8080 atelier:VERSION", 2),
        ("docs/operations.md", "atelier-VERSION-image.tar.gz", 1),
        ("Dockerfile", " atelier:VERSION", 3),
        ("docker-compose.yml", ":VERSION\n", 3),
        ("deploy/kubernetes/service.yaml", "image: atelier:VERSION\n", 1),
        ("deploy/kubernetes/complete-job.yaml", "image: atelier:VERSION\n", 1),
        ("deploy/kubernetes/refresh-job.yaml", "atelier-refresh:VERSION", 2),
    ] {
        let found = fs::read_to_string(root.join(file)).unwrap();
        assert_eq!(found.matches(&text.replace("VERSION", version)).count(), times, "{file}: {text}");
    }
}

/// The same version on every machine and every day. Debian's packages are signed, and belong to one release of it.
#[test]
fn install_steps_run_only_pinned_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut files, mut unpinned, mut found) = (Vec::new(), Vec::new(), 0);
    find_texts(root, &mut files);
    for (path, text) in &files {
        let name = path.strip_prefix(root).unwrap().display();
        let is_list = name.to_string().contains("requirements");
        for (line, number) in text.lines().zip(1..) {
            for (command, rest) in
                INSTALLS.iter().filter_map(|command| Some((command, line.split_once(command)?.1)))
            {
                found += 1;
                let words = rest.split(['`', '#', '\\', '(']).next().unwrap_or_default();
                if !are_pinned(words) {
                    unpinned.push(format!("{name}:{number}: {command}{words}"));
                }
            }
            if is_list && !line.starts_with('#') && !line.trim().is_empty() && !line.contains("==") {
                unpinned.push(format!("{name}:{number}: {line}"));
            }
        }
    }
    assert!(found > 15, "install steps were not found: {found}");
    assert!(unpinned.is_empty(), "these name no version:\n{}", unpinned.join("\n"));
}

const INSTALLS: [&str; 4] = ["pip install ", "npm install ", "npx ", "cargo install "];

/// Whether each word is a flag, a list or a folder of ours, or says its version.
fn are_pinned(words: &str) -> bool {
    let mut words = words.split_whitespace().map(|word| word.trim_matches(['"', '\'', '.', ',']));
    while let Some(word) = words.next() {
        let has_version = word.contains("==")
            || word
                .split_once('@')
                .is_some_and(|(_, version)| version.starts_with(|c: char| c.is_ascii_digit()));
        match word {
            // Its program comes last.
            "--package" => return words.next().is_some_and(|package| package.contains('@')),
            "-r" | "--requirement" | "--prefix" | "--target" => {
                words.next();
            }
            "&&" | "||" | ";" => return true,
            _ if word.starts_with('-') || word.starts_with('/') || word.starts_with('$') || has_version => {}
            _ => return false,
        }
    }
    true
}

/// Files of the repository, as far as they are text.
fn find_texts(folder: &Path, files: &mut Vec<(PathBuf, String)>) {
    const NOT_OURS: [&str; 5] = [".git", "target", "node_modules", "shared", "data"];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !NOT_OURS.contains(&name) {
            find_texts(&path, files);
        } else if path.is_file() && !path.ends_with("tests/documents.rs") {
            files.extend(fs::read_to_string(&path).ok().map(|text| (path, text)));
        }
    }
}
