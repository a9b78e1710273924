//! `atelier-training export`.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::{
    export::{Metadata, Storage, export, export_pair},
    fit::RunFolder,
};

#[derive(Debug, Args)]
pub(super) struct Export {
    /// A run's folder; exports the weights of its best epoch.
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    /// The file to write [default: METHOD.onnx in the run's folder]. If the run learned from pairs, a file ending in
    /// .pair.onnx is written next to it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Precision of stored matrices; the model computes in float32 with both.
    #[arg(long, value_enum, default_value_t = Floats::Float32)]
    storage: Floats,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Floats {
    Float32,
    Float16,
}

impl From<Floats> for Storage {
    fn from(floats: Floats) -> Self {
        match floats {
            Floats::Float32 => Storage::Float32,
            Floats::Float16 => Storage::Float16,
        }
    }
}

impl Export {
    pub(super) fn run(self) -> Result<()> {
        let run = RunFolder::new(self.run);
        let config = run.config()?;
        let path = self.out.unwrap_or_else(|| run.onnx(&config));
        let metadata = Metadata { release: String::new(), storage: self.storage.into() };
        let model = run.best()?;
        let parameters = export(&model, &metadata, &path)?;
        println!("{}: {parameters} parameters", path.display());
        let pair = path.with_extension("pair.onnx");
        if let Some(parameters) = export_pair(&model, &metadata, &pair)? {
            println!("{}: {parameters} parameters", pair.display());
        }
        Ok(())
    }
}
