//! Folders weigh what ARCHITECTURE.md's table says, and import upwards in it. What crates import, the compiler checks.
//! Both programs take the same features of what they share.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The rows of the table: folders of the repository, those of the service in the order in which they may import, and the most lines
/// that each has.
fn table() -> Vec<(String, usize)> {
    let text = include_str!("../ARCHITECTURE.md");
    let rows = text.lines().skip_while(|line| !line.starts_with("| folder |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let lines = cells[2].replace(',', "").parse();
        (cells[1].trim_matches('`').to_owned(), lines.expect("the second column has lines"))
    })
    .collect()
}

/// Where `crates/core` may import from, from above.
const ROOMS_OF_CORE: [&str; 3] = ["util", "domain", "drawing"];

/// Growth is an edit of the table in the same commit.
#[test]
fn each_folder_weighs_what_the_table_says() {
    let wrong: Vec<String> = table()
        .into_iter()
        .filter_map(|(folder, said)| {
            let count = |file: PathBuf| fs::read_to_string(file).unwrap().lines().count();
            let lines: usize = files(&root().join(&folder), "rs").into_iter().map(count).sum();
            let rounded = lines.next_multiple_of(100);
            (rounded != said)
                .then(|| format!("{folder} has {lines} lines: write {rounded} instead of {said}"))
        })
        .collect();
    assert!(wrong.is_empty(), "the table of ARCHITECTURE.md is not true:\n{}", wrong.join("\n"));
}

#[test]
fn each_folder_is_in_the_table() {
    let folders = fs::read_dir(root().join("src")).unwrap().map(|entry| entry.unwrap().path());
    let folders: BTreeSet<String> = folders.filter(|path| path.is_dir()).map(|path| name_of(&path)).collect();
    assert_eq!(folders, order().into_iter().collect());
}

/// The folders of the service, from the top of the table.
fn order() -> Vec<String> {
    table().iter().filter_map(|(folder, _)| folder.strip_prefix("src/").map(ToOwned::to_owned)).collect()
}

#[test]
fn imports_go_up_the_table() {
    let order = order();
    let sources = files(&root().join("src"), "rs").into_iter().map(|file| {
        let module = module_path(&root().join("src"), &file);
        (file, module)
    });
    let templates = files(&root().join("templates"), "html").into_iter().map(|file| {
        let inside = file.strip_prefix(root().join("templates")).unwrap();
        let folder = inside.iter().next().unwrap().to_string_lossy().into_owned();
        (file, vec![folder, "page".to_owned()])
    });
    let mut down = Vec::new();
    let mut found = 0;
    for (file, module) in sources.chain(templates) {
        let Some(own) = module.first().and_then(|folder| order.iter().position(|one| one == folder)) else {
            continue;
        };
        for path in imports(&fs::read_to_string(&file).unwrap(), &module) {
            let other = path.first().and_then(|folder| order.iter().position(|one| one == folder));
            found += usize::from(other.is_some_and(|other| other != own));
            if let Some(other) = other.filter(|other| *other > own) {
                let (own, other) = (&order[own], &order[other]);
                down.push(format!("{own} imports {other}: {}: {}", file.display(), path.join("::")));
            }
        }
    }
    assert!(found > 200, "imports between folders were not found: {found}");
    assert!(down.is_empty(), "imports that go down ARCHITECTURE.md's table:\n{}", down.join("\n"));
}

#[test]
fn rooms_of_core_import_upwards() {
    let sources = root().join("crates/core/src");
    let place = |path: &[String]| {
        let room = path.first()?;
        ROOMS_OF_CORE.iter().position(|one| one == room)
    };
    let mut wrong = Vec::new();
    for file in files(&sources, "rs") {
        let module = module_path(&sources, &file);
        for path in imports(&fs::read_to_string(&file).unwrap(), &module) {
            if place(&path).zip(place(&module)).is_some_and(|(other, own)| other > own) {
                wrong.push(format!("{}: {}", file.display(), path.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Only its own folder names a feature's statements.
#[test]
fn statements_are_private() {
    for folder in order() {
        let path = root().join("src").join(&folder);
        if path.join("sql.rs").exists() || path.join("sql").exists() {
            let text = fs::read_to_string(path.join("mod.rs")).unwrap();
            assert!(text.contains("\nmod sql;\n"), "{folder}");
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Else what both programs need is built for each of them.
#[test]
fn both_programs_build_their_dependencies_with_the_same_features() {
    let packages = |of: &str, edges: &str| -> BTreeSet<String> {
        let arguments = ["tree", "--offline", "--locked", "--prefix=none", "--format={p} {f}", of, edges];
        let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
    };
    for edges in ["--edges=normal,build", "--edges=normal,build,dev"] {
        let (service, all) = (packages("--package=atelier", edges), packages("--workspace", edges));
        let twice: Vec<_> = service.difference(&all).collect();
        assert!(
            twice.is_empty(),
            "{edges}: crates/core/Cargo.toml, or the service's for its tests, lacks features that the training tool wants of {twice:#?}"
        );
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let all = entries.flat_map(|path| if path.is_dir() { files(&path, ending) } else { vec![path] });
    all.filter(|path| path.extension().is_some_and(|extension| extension == ending)).collect()
}

/// `src/web/api/score.rs` is `web::api::score`; the crate's own files have an empty path.
fn module_path(folder: &Path, file: &Path) -> Vec<String> {
    let inside = file.strip_prefix(folder).unwrap();
    let parts = inside.with_extension("");
    let parts = parts.iter().map(|part| part.to_string_lossy().into_owned());
    parts.filter(|part| !["mod", "lib", "main"].contains(&part.as_str())).collect()
}

/// The paths within the crate that a file names, its unit tests aside.
fn imports(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let tokens = tokens(&code);
    let mut paths = Vec::new();
    let mut place = 0;
    while place < tokens.len() {
        let begins = ["crate", "super", "self"].contains(&tokens[place].as_str())
            && tokens.get(place + 1).is_some_and(|token| token == "::")
            && place.checked_sub(1).is_none_or(|before| tokens[before] != "::");
        if begins {
            tree(&tokens, &mut place, Vec::new(), &mut paths);
        } else {
            place += 1;
        }
    }
    paths.into_iter().filter_map(|path| absolute(&path, module)).collect()
}

/// Identifiers, `::`, and any other character by itself.
fn tokens(code: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("::") {
            2
        } else if first.is_alphanumeric() || first == '_' {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            tokens.push(rest[..length].to_owned());
        }
        rest = &rest[length..];
    }
    tokens
}

/// Reads `a::b` or `a::{b, c::d}` from `place` on.
fn tree(tokens: &[String], place: &mut usize, mut path: Vec<String>, paths: &mut Vec<Vec<String>>) {
    let token = |place: usize| tokens.get(place).map(String::as_str);
    loop {
        if token(*place) == Some("{") {
            *place += 1;
            while !matches!(token(*place), Some("}") | None) {
                tree(tokens, place, path.clone(), paths);
                if token(*place) == Some(",") {
                    *place += 1;
                }
            }
            *place += 1;
            return;
        }
        path.extend(token(*place).map(ToOwned::to_owned));
        *place += 1;
        if token(*place) != Some("::") {
            break;
        }
        *place += 1;
    }
    if token(*place) == Some("as") {
        *place += 2;
    }
    paths.push(path);
}

/// From the crate's root; `None` for a path that leaves the crate.
fn absolute(path: &[String], module: &[String]) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|step| *step == "super").count();
    let rest = path.iter().skip_while(|step| ["crate", "super", "self"].contains(&step.as_str()));
    let base = if path[0] == "crate" { &[][..] } else { module.get(..module.len().checked_sub(ups)?)? };
    Some(base.iter().chain(rest).cloned().collect())
}
