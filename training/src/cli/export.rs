//! `atelier-training export`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use atelier_core::domain::ArticleEncoder;
use atelier_engine::{
    release::Release,
    tables::{Composition, Tables},
};
use clap::Args;

use crate::{
    data::Data,
    export::{Metadata, Storage, export_whole},
    fit::RunFolder,
    release::export_run,
};

#[derive(Debug, Args)]
pub(super) struct Export {
    /// A run's folder; exports the weights of its best epoch: METHOD.onnx, METHOD.safetensors with the tables and, if the
    /// run learned from pairs, METHOD.pair.onnx.
    #[arg(long, value_name = "DIR", required_unless_present = "whole")]
    run: Option<PathBuf>,
    /// A release's folder; exports METHOD.onnx of each method, self-contained: articles' numbers in, logits out.
    #[arg(long, value_name = "RELEASE", conflicts_with = "run")]
    whole: Option<PathBuf>,
    /// The folder to write to [default: the run's].
    #[arg(long, value_name = "DIR", required_unless_present = "run")]
    out: Option<PathBuf>,
    /// Precision of stored matrices; the model computes in float32 with all.
    #[arg(long, value_enum, default_value_t = Storage::Float32)]
    storage: Storage,
}

impl Export {
    pub(super) fn run(self) -> Result<()> {
        let out = self.out.as_ref().or(self.run.as_ref()).context("--out names no folder")?;
        fs::create_dir_all(out).with_context(|| out.display().to_string())?;
        let storage = self.storage;
        match (self.run.as_ref(), self.whole.as_ref()) {
            (Some(run), _) => export_from_run(&RunFolder::new(run), storage, out),
            (None, Some(release)) => export_release(release, storage, out),
            (None, None) => unreachable!("clap requires one of them"),
        }
    }
}

fn export_from_run(run: &RunFolder, storage: Storage, out: &Path) -> Result<()> {
    let config = run.config()?;
    let data = Data::load(&config.data.folder)?;
    let method = export_run(run, &config, &data, &Metadata { release: String::new(), storage }, out)?;
    println!("{}: {} parameters", out.join(&method.file).display(), method.parameters);
    for file in method.tables.iter().chain(&method.pair) {
        println!("{}", out.join(file).display());
    }
    Ok(())
}

fn export_release(folder: &Path, storage: Storage, out: &Path) -> Result<()> {
    let release = Release::open(folder)?;
    let articles: Vec<Composition> =
        (0..release.vocabulary().len()).map(|index| release.compose_trained(index)).collect();
    for method in &release.manifest().methods {
        let (trunk, path) = (release.model_path(method), out.join(format!("{}.onnx", method.method)));
        match release.tables_path(method) {
            Some(tables) => {
                let values = release.encoder().map(ArticleEncoder::count);
                let components = release.encoder().map_or(0, ArticleEncoder::components);
                let tables = Tables::open(&tables, articles.len(), values, components, release.schema())?;
                export_whole(&trunk, &tables, &articles, storage, &path)?;
            }
            // It is whole.
            None => {
                fs::copy(&trunk, &path).with_context(|| path.display().to_string())?;
            }
        }
        println!("{}", path.display());
    }
    Ok(())
}
