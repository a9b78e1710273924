//! Writes a world as a data folder: the three tables, the schema, and `world.json`, from which the oracle
//! makes the same world again.
//!
//! The folder is written under a temporary name and then renamed, so that it is never seen incomplete.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use atelier_core::{
    domain::{Article, Customer, Outfit, Schema},
    util::digest,
};
use atelier_files::{Format, SCHEMA, Table, TableColumns, Writer};
use serde::{Deserialize, Serialize};

use crate::world::{Plan, VERSION, World};

/// The content of `world.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldFile {
    /// The generator's version.
    pub version: String,
    pub plan: Plan,
    /// The schema's name.
    pub schema: String,
    /// The command that makes the same folder again.
    pub command: String,
    /// The SHA-256 of every other file.
    pub files: BTreeMap<String, String>,
}

const WORLD_FILE: &str = "world.json";

/// Whether a data folder is a world that this program made.
pub fn is_world(folder: &Path) -> bool {
    folder.join(WORLD_FILE).is_file()
}
/// Outfits made at once: enough for all threads, few enough to fit in memory.
const SLICE: usize = 16_384;

/// Receives progress: the table, the number of rows done, and their total.
pub type Tell<'a> = &'a mut dyn FnMut(&'static str, usize, usize);

/// Makes a world and writes it to a folder. With `force` it replaces a world that is there.
pub fn synthesise(plan: Plan, format: Format, out: &Path, force: bool, tell: Tell<'_>) -> Result<WorldFile> {
    refuse_to_replace(out, force)?;
    let world = World::new(plan)?;
    let schema = Schema::default_schema();
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let name = out.file_name().with_context(|| format!("{} is not the name of a folder", out.display()))?;
    let prefix = format!(".{}.", name.to_string_lossy());
    let partial = tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(".partial")
        .tempdir_in(parent)
        .with_context(|| format!("cannot write to {}", parent.display()))?;
    let folder = partial.path();

    write(folder, format, &schema, plan.articles, || world.articles(), tell)?;
    write(folder, format, &schema, plan.customers, || world.customers(), tell)?;
    let slices = || (0..world.outfit_count()).step_by(SLICE);
    let outfits =
        || slices().flat_map(|start| world.outfits(start..(start + SLICE).min(world.outfit_count())));
    write(folder, format, &schema, world.outfit_count(), outfits, tell)?;
    fs::write(folder.join(SCHEMA), schema.source()).context("cannot write the schema")?;

    let file = WorldFile {
        version: VERSION.to_owned(),
        plan,
        schema: schema.name().to_owned(),
        command: command_line(plan, format),
        files: digests(folder)?,
    };
    let text = serde_json::to_string_pretty(&file).context("world.json")? + "\n";
    fs::write(folder.join(WORLD_FILE), text).context("cannot write world.json")?;
    move_into_place(partial, out)?;
    Ok(file)
}

/// Makes a folder's world again, after checking that its files are unchanged.
pub fn rebuild(folder: &Path) -> Result<World> {
    let path = folder.join(WORLD_FILE);
    let text = fs::read_to_string(&path).with_context(|| {
        format!("cannot read {}: the oracle needs a folder made by `synthesise`", path.display())
    })?;
    let file: WorldFile = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    if file.version != VERSION {
        bail!(
            "{} is of world version {}, but this program makes version {VERSION}; make the folder again, or use \
             the program that made it",
            path.display(),
            file.version
        );
    }
    for (name, expected) in &file.files {
        let found = digest::sha256_of_file(&folder.join(name))
            .with_context(|| format!("cannot read {}", folder.join(name).display()))?;
        if found != *expected {
            bail!(
                "{} has SHA-256 {found}, but world.json has {expected}: the file has changed; make the world \
                 again with `{} --out DIR`",
                folder.join(name).display(),
                file.command
            );
        }
    }
    Ok(World::new(file.plan)?)
}

/// Writes one table. Calls `rows` twice if the format needs all columns up front.
fn write<T: Table, I: Iterator<Item = T>>(
    folder: &Path,
    format: Format,
    schema: &Schema,
    count: usize,
    rows: impl Fn() -> I,
    tell: Tell<'_>,
) -> Result<()> {
    let mut columns = TableColumns::<T>::new(schema);
    if format != Format::JsonLines {
        rows().for_each(|row| columns.include(&row));
    }
    let path = folder.join(format!("{}.{format}", T::NAME));
    let mut writer = Writer::create(&path, format, &columns)?;
    for (done, row) in rows().enumerate() {
        writer.write(&row)?;
        if done % 1024 == 0 {
            tell(T::NAME, done, count);
        }
    }
    writer.finish()?;
    tell(T::NAME, count, count);
    Ok(())
}

fn command_line(plan: Plan, format: Format) -> String {
    let Plan { seed, articles, customers, outfits, validation, new } = plan;
    let new = if new > 0 { format!(" --new {new}") } else { String::new() };
    format!(
        "atelier-training synthesise --seed {seed} --articles {articles} --customers {customers} --outfits \
         {outfits} --validation {validation}{new} --format {format}"
    )
}

fn file_names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| folder.display().to_string())?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

fn digests(folder: &Path) -> Result<BTreeMap<String, String>> {
    file_names(folder)?
        .into_iter()
        .map(|name| {
            let digest = digest::sha256_of_file(&folder.join(&name)).with_context(|| name.clone())?;
            Ok((name, digest))
        })
        .collect()
}

/// Fails unless `out` is missing or empty, or `force` is given and it holds a world and nothing else.
fn refuse_to_replace(out: &Path, force: bool) -> Result<()> {
    if !out.exists() {
        return Ok(());
    }
    let names = file_names(out)?;
    if names.is_empty() {
        return Ok(());
    }
    if !force {
        bail!("{} is not empty; choose another --out, or replace it with --force", out.display());
    }
    let is_ours = |name: &str| {
        let table = [Article::NAME, Customer::NAME, Outfit::NAME].iter().any(|table| {
            Path::new(name).file_stem().is_some_and(|stem| stem == *table)
                && Format::from_path(Path::new(name)).is_ok()
        });
        table || name == WORLD_FILE || name == SCHEMA
    };
    match names.iter().find(|name| !is_ours(name)) {
        Some(other) => bail!(
            "{} holds {other}, which is not part of a world; --force only replaces a world, choose another --out",
            out.display()
        ),
        None => Ok(()),
    }
}

fn move_into_place(partial: tempfile::TempDir, out: &Path) -> Result<()> {
    let move_folder = || -> std::io::Result<()> {
        let made: PathBuf = partial.keep();
        #[cfg(unix)]
        fs::set_permissions(&made, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        if out.exists() {
            fs::remove_dir_all(out)?;
        }
        fs::rename(made, out)
    };
    move_folder().with_context(|| format!("cannot move the world to {}", out.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::Data, survey::Rows};

    const PLAN: Plan = Plan { seed: 4, articles: 120, customers: 60, outfits: 150, validation: 20, new: 0 };

    fn make(out: &Path, plan: Plan, format: Format, force: bool) -> Result<WorldFile> {
        synthesise(plan, format, out, force, &mut |_, _, _| {})
    }

    #[test]
    fn a_seed_makes_the_same_folder_on_any_number_of_threads() {
        let home = tempfile::tempdir().unwrap();
        let on = |threads: usize, name: &str| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| make(&home.path().join(name), PLAN, Format::JsonLines, false).unwrap())
        };
        let (one, four) = (on(1, "one"), on(4, "four"));
        assert_eq!(one, four);
        assert_eq!(one.files.len(), 4);
        let other = Plan { seed: 5, ..PLAN };
        let other = make(&home.path().join("other"), other, Format::JsonLines, false).unwrap();
        for table in ["articles.jsonl", "customers.jsonl", "outfits.jsonl"] {
            assert_ne!(one.files[table], other.files[table], "{table}");
        }
    }

    #[test]
    fn every_format_reads_back_as_the_same_data() {
        let home = tempfile::tempdir().unwrap();
        let read = |format: Format| {
            let out = home.path().join(format.extension());
            make(&out, PLAN, format, false).unwrap();
            (Rows::read(&out).unwrap(), Data::load(&out).unwrap())
        };
        let (rows, data) = read(Format::JsonLines);
        assert_eq!((rows.articles.len(), data.validation().len()), (120, 20));
        for format in [Format::Csv, Format::Parquet] {
            let (other, others) = read(format);
            assert_eq!(rows.articles, other.articles);
            assert_eq!(rows.customers, other.customers);
            assert_eq!(rows.outfits, other.outfits);
            assert_eq!(data.fingerprint(), others.fingerprint());
        }
    }

    #[test]
    fn only_force_replaces_a_folder_and_only_if_it_holds_a_world() {
        let home = tempfile::tempdir().unwrap();
        let out = home.path().join("world");
        make(&out, PLAN, Format::JsonLines, false).unwrap();
        let refused = make(&out, PLAN, Format::JsonLines, false).unwrap_err().to_string();
        assert!(refused.ends_with("is not empty; choose another --out, or replace it with --force"));
        make(&out, PLAN, Format::Csv, true).unwrap();
        assert_eq!(
            file_names(&out).unwrap(),
            ["articles.csv", "customers.csv", "outfits.csv", "schema.toml", "world.json"]
        );
        fs::write(out.join("thesis.txt"), "years of work").unwrap();
        let refused = make(&out, PLAN, Format::JsonLines, true).unwrap_err().to_string();
        assert!(refused.contains("holds thesis.txt, which is not part of a world"), "{refused}");
        assert_eq!(fs::read_to_string(out.join("thesis.txt")).unwrap(), "years of work");
        let left: Vec<String> = file_names(home.path()).unwrap();
        assert_eq!(left, ["world"], "no partial folder is left");
    }

    #[test]
    fn rebuild_makes_the_same_world_or_fails() {
        let home = tempfile::tempdir().unwrap();
        let out = home.path().join("world");
        make(&out, PLAN, Format::JsonLines, false).unwrap();
        assert_eq!(rebuild(&out).unwrap().plan(), PLAN);
        let outfits = out.join("outfits.jsonl");
        let text = fs::read_to_string(&outfits).unwrap();
        fs::write(&outfits, text.replace("train", "validation")).unwrap();
        let refused = rebuild(&out).unwrap_err().to_string();
        assert!(refused.contains("the file has changed"), "{refused}");
    }
}
