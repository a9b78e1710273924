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
    /// A run's folder; the weights of its best epoch are exported.
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    /// The file; METHOD.onnx in the run's folder if not given. Where the run learned from pairs, a file that
    /// ends in .pair.onnx goes beside it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// How matrices are stored; computing is float32 either way.
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
