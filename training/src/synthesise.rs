//! Writes a world as a data folder: the three tables, the schema, and `world.json`, from which the oracle
//! makes the same world again.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, bail};
use atelier_core::{domain::Schema, util::digest};
use atelier_files::{Format, SCHEMA, Table, TableColumns, Writer};
use serde::{Deserialize, Serialize};

use crate::{
    files::NewFolder,
    world::{Plan, VERSION, World},
};

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

/// Makes a world and writes it to a new folder.
pub fn synthesise(plan: Plan, format: Format, out: &Path, tell: Tell<'_>) -> Result<WorldFile> {
    let made = NewFolder::new(out)?;
    let world = World::new(plan)?;
    let schema = Schema::paper_schema();
    let folder = made.path();

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
    made.finish()?;
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

fn digests(folder: &Path) -> Result<BTreeMap<String, String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let digest = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name().to_string_lossy().into_owned(), digest::sha256_of_file(&entry.path())?))
    };
    let digests: std::io::Result<_> = entries.map(digest).collect();
    digests.with_context(|| folder.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::Data, survey::Rows, testing::on_threads};

    const PLAN: Plan = Plan { seed: 4, articles: 120, customers: 60, outfits: 150, validation: 20, new: 0 };

    fn make(out: &Path, plan: Plan, format: Format) -> Result<WorldFile> {
        synthesise(plan, format, out, &mut |_, _, _| {})
    }

    /// A changed byte is a new `VERSION`, and needs new runs.
    #[test]
    fn a_seed_makes_the_same_folder_everywhere_on_any_number_of_threads() {
        let home = tempfile::tempdir().unwrap();
        let plan = Plan { articles: 400, customers: 300, outfits: 2000, ..PLAN };
        let made = |name: &str, plan: Plan| make(&home.path().join(name), plan, Format::JsonLines).unwrap();
        let one = on_threads(1, || made("one", plan));
        assert_eq!(one, on_threads(4, || made("four", plan)));
        let other = made("other", Plan { seed: 5, ..plan });
        for (table, digest) in [
            ("articles.jsonl", "e8397304c2b70ef16d73d1cc8afadfd9"),
            ("customers.jsonl", "0414a5118ecd7b1b0217b6b59d25b8ad"),
            ("outfits.jsonl", "73af0a09a36c186d87d1ffedf22109bd"),
        ] {
            assert!(one.files[table].starts_with(digest), "{table} of world version {VERSION}: {one:?}");
            assert_ne!(one.files[table], other.files[table], "{table}");
        }
    }

    #[test]
    fn every_format_reads_back_as_the_same_data() {
        let home = tempfile::tempdir().unwrap();
        let read = |format: Format| {
            let out = home.path().join(format.as_str());
            make(&out, PLAN, format).unwrap();
            let Rows { articles, customers, outfits, .. } = Rows::read(&out).unwrap();
            (articles, customers, outfits, Data::load(&out).unwrap().fingerprint().to_owned())
        };
        let rows = read(Format::JsonLines);
        assert_eq!(rows.0.len(), 120);
        assert!(rows == read(Format::Csv) && rows == read(Format::Parquet));
    }

    #[test]
    fn rebuild_makes_the_same_world_or_fails() {
        let home = tempfile::tempdir().unwrap();
        let out = home.path().join("world");
        make(&out, PLAN, Format::JsonLines).unwrap();
        assert_eq!(rebuild(&out).unwrap().plan(), PLAN);
        let outfits = out.join("outfits.jsonl");
        let text = fs::read_to_string(&outfits).unwrap();
        fs::write(&outfits, text.replace("train", "validation")).unwrap();
        let refused = rebuild(&out).unwrap_err().to_string();
        assert!(refused.contains("the file has changed"), "{refused}");
    }
}
