//! Makes a release with random weights and the paper's sizes, for measurements of speed.
//!
//! ```sh
//! cargo run --release -p atelier-training --example random_release -- --out data/speed/random
//! ```
//!
//! The tables are those of a small synthetic world. `encoded.jsonl` next to the folder has its customers with encoded
//! features, for servers without an encoder (`benches/peers`). The same arguments write the same bytes.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use atelier_core::{
    domain::{Method, Schema},
    util::digest,
};
use atelier_engine::release::{DataSource, FORMAT, FileEntry, MANIFEST, Manifest, MethodEntry, Release};
use atelier_files::{Format, SCHEMA};
use atelier_training::{
    export::{Metadata, Storage, export},
    model::{Model, ModelConfig},
    synthesise::synthesise,
    world::{Plan, World},
};
use clap::Parser;
use serde_json::json;

#[derive(Debug, Parser)]
struct Arguments {
    /// The folder; its name becomes the release's name.
    #[arg(long)]
    out: PathBuf,
    #[arg(long, default_value_t = 30_000)]
    articles: usize,
    #[arg(long, default_value_t = 2_000)]
    customers: usize,
    #[arg(long, default_value_t = 4_000)]
    outfits: usize,
    #[arg(long, num_args = 1.., default_values = ["gsu"])]
    methods: Vec<Method>,
    #[arg(long, value_enum, default_value_t = Storage::Float32)]
    storage: Storage,
}

const SEED: u64 = 1;
/// Scale of the last layer's weights. It spreads the logits like a trained model's; with the initial scale of training
/// all articles would be about equally likely.
const SPREAD: f32 = 0.3;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let out = &arguments.out;
    let name = out.file_name().and_then(|name| name.to_str()).context("--out must name a folder")?;
    let plan = Plan {
        seed: SEED,
        articles: arguments.articles,
        customers: arguments.customers,
        outfits: arguments.outfits,
        validation: 0,
        new: 0,
    };
    synthesise(plan, Format::JsonLines, out, &mut |_, _, _| {})?;
    let schema = Schema::default_schema();
    write_encoded(&World::new(plan)?, &schema, &out.with_file_name("encoded.jsonl"))?;
    let mut methods = Vec::new();
    for &method in &arguments.methods {
        let mut config = ModelConfig::new(method, arguments.articles, &schema);
        config.initial.vocabulary = SPREAD;
        let file = format!("{method}.onnx");
        let metadata = Metadata { release: name.to_owned(), storage: arguments.storage };
        let parameters = export(&Model::new(&config, SEED), &metadata, &out.join(&file))?;
        let tables = Some(format!("{method}.safetensors"));
        methods.push(MethodEntry {
            method,
            file,
            tables,
            pair: None,
            parameters,
            metrics: serde_json::Map::new(),
        });
    }
    let manifest = Manifest {
        format: FORMAT,
        name: name.to_owned(),
        created: "2026-11-21T00:00:00Z".to_owned(),
        commands: vec![command(&arguments, name)],
        data: DataSource { name: "random weights".to_owned(), fingerprint: "none".to_owned() },
        schema: SCHEMA.to_owned(),
        articles: "articles.jsonl".to_owned(),
        known: None,
        encoder: None,
        default_method: *arguments.methods.first().context("--methods must name a method")?,
        methods,
        files: entries(out)?,
    };
    fs::write(out.join(MANIFEST), serde_json::to_string_pretty(&manifest)?)?;
    let release = Release::open(out)?;
    ensure!(release.vocabulary().len() == arguments.articles, "the release has the wrong number of articles");
    println!("{}", out.display());
    Ok(())
}

/// The command that makes the same release.
fn command(Arguments { articles, customers, outfits, methods, .. }: &Arguments, name: &str) -> String {
    let methods: Vec<&str> = methods.iter().map(Method::as_str).collect();
    format!(
        "random_release --out {name} --articles {articles} --customers {customers} --outfits {outfits} --methods {}",
        methods.join(" ")
    )
}

/// Writes each customer's features as the schema's indices.
fn write_encoded(world: &World, schema: &Schema, path: &Path) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for customer in world.customers() {
        let encoding = schema.encode(&customer.features);
        let encoding = encoding.map_err(|errors| anyhow::anyhow!("{}: {errors:?}", customer.id))?;
        writeln!(file, "{}", json!({ "id": customer.id.as_str(), "features": encoding.indices }))?;
    }
    Ok(file.flush()?)
}

fn entries(folder: &Path) -> Result<BTreeMap<String, FileEntry>> {
    let mut entries = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().context("a file has a name")?.to_string_lossy().into_owned();
        let about = FileEntry { bytes: fs::metadata(&path)?.len(), sha256: digest::sha256_of_file(&path)? };
        entries.insert(name, about);
    }
    Ok(entries)
}
