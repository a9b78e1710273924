//! Imports between the rooms of a crate follow the table in ARCHITECTURE.md. What crates import, the compiler checks.
//! Both programs take the same features of what they share.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The rooms in the table's order, each with the rooms that it may import.
fn table() -> Vec<(String, BTreeSet<String>)> {
    let text = include_str!("../ARCHITECTURE.md");
    let rows = text.lines().skip_while(|line| !line.starts_with("| room |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let names = |cell: &str| -> BTreeSet<String> {
        cell.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect()
    };
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (names(cells[1]).pop_first().expect("a room has a name"), names(cells[3]))
    })
    .collect()
}

#[test]
fn the_table_has_no_circle() {
    let table = table();
    assert!(table.len() > 10, "the table was not found: {table:?}");
    for (place, (room, imports)) in table.iter().enumerate() {
        for import in imports {
            let above = table[..place].iter().any(|(other, _)| other == import);
            assert!(above, "{room} may import {import}, which is not above it in the table");
        }
    }
}

#[test]
fn each_room_imports_only_what_the_table_allows() {
    let rooms: BTreeMap<String, BTreeSet<String>> = table().into_iter().collect();
    let (mut wrong, mut found) = (Vec::new(), 0);
    let sources = ["src", "crates/core/src"].map(|folder| root().join(folder));
    for (folder, file) in
        sources.iter().flat_map(|folder| files(folder, "rs").into_iter().map(move |file| (folder, file)))
    {
        let module = module_path(folder, &file);
        if module.is_empty() || module.iter().any(|part| part == "tests") {
            continue;
        }
        let room = room_of(&module);
        let allowed = rooms.get(&room).unwrap_or_else(|| panic!("{room} is not in the table"));
        for path in imports(&fs::read_to_string(&file).unwrap(), &module) {
            let other = room_of(&path);
            found += usize::from(other != room);
            if other != room && rooms.contains_key(&other) && !allowed.contains(&other) {
                wrong.push(format!("{}: {} is in {other}", file.display(), path.join("::")));
            }
        }
    }
    for file in files(&root().join("templates"), "html") {
        let module = ["web", "pages", "template"].map(ToOwned::to_owned);
        for path in imports(&fs::read_to_string(&file).unwrap(), &module) {
            let other = room_of(&path);
            if other != "web/pages" && !rooms["web/pages"].contains(&other) {
                wrong.push(format!("{}: {} is in {other}", file.display(), path.join("::")));
            }
        }
    }
    assert!(found > 200, "imports between rooms were not found: {found}");
    assert!(wrong.is_empty(), "imports that ARCHITECTURE.md's table does not allow:\n{}", wrong.join("\n"));
}

/// Else what both programs need is built for each of them.
#[test]
fn both_programs_build_their_dependencies_with_the_same_features() {
    let packages = |of: &str| -> BTreeSet<String> {
        let arguments = ["tree", "--offline", "--locked", "--edges=normal,build", "--prefix=none"];
        let mut cargo = Command::new(env!("CARGO"));
        let output =
            cargo.args(arguments).args(["--format={p} {f}", of]).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
    };
    let (service, all) = (packages("--package=atelier"), packages("--workspace"));
    let twice: Vec<_> = service.difference(&all).collect();
    assert!(
        twice.is_empty(),
        "crates/core/Cargo.toml lacks features that the training tool wants of {twice:#?}"
    );
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

/// A room is a folder of a crate; `web` has three of its own, and is one itself.
fn room_of(path: &[String]) -> String {
    match path {
        [web, part, ..] if web == "web" && ["http", "api", "pages"].contains(&part.as_str()) => {
            format!("web/{part}")
        }
        [room, ..] => room.clone(),
        [] => String::new(),
    }
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
