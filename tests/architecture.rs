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
        for name in imports(&fs::read_to_string(&file).unwrap(), &module) {
            let other = order.iter().position(|one| *one == name);
            found += usize::from(other.is_some_and(|other| other != own));
            if let Some(other) = other.filter(|other| *other > own) {
                down.push(format!("{} imports {}: {}", order[own], order[other], file.display()));
            }
        }
    }
    assert!(found > 200, "imports between folders were not found: {found}");
    assert!(down.is_empty(), "imports that go down ARCHITECTURE.md's table:\n{}", down.join("\n"));
}

#[test]
fn rooms_of_core_import_upwards() {
    let sources = root().join("crates/core/src");
    let place = |name: &String| ROOMS_OF_CORE.iter().position(|room| room == name);
    let mut wrong = Vec::new();
    for file in files(&sources, "rs") {
        let module = module_path(&sources, &file);
        let own = module.first().and_then(place);
        for name in imports(&fs::read_to_string(&file).unwrap(), &module) {
            if place(&name).zip(own).is_some_and(|(other, own)| other > own) {
                wrong.push(format!("{}: {name}", file.display()));
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

/// The first names of the paths from the crate's root that a file has, its unit tests aside.
fn imports(text: &str, module: &[String]) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let from_root = code.match_indices("crate::").map(|(place, root)| (place, place + root.len()));
    let relative = code.match_indices("super::").filter_map(|(place, step)| {
        let rest = &code[place..];
        let end = rest.len() - rest.trim_start_matches(step).len();
        (end / step.len() == module.len()).then_some((place, place + end))
    });
    from_root
        .chain(relative)
        .filter(|(start, _)| !code[..*start].ends_with(is_word))
        .flat_map(|(_, end)| first_names(&code[end..]))
        .collect()
}

/// Those of `a::b` or of `{a::b, c::{d, e}}`.
fn first_names(paths: &str) -> Vec<String> {
    let name = |path: &str| {
        path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    };
    let Some(inside) = paths.strip_prefix('{') else { return vec![name(paths)] };
    let (mut depth, mut names) = (1, vec![name(inside)]);
    for (place, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => break,
            '}' => depth -= 1,
            ',' if depth == 1 => names.push(name(&inside[place + 1..])),
            _ => {}
        }
    }
    names
}
