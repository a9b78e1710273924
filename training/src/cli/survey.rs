//! `atelier-training survey`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::survey::{self, Rows};

#[derive(Debug, Args)]
pub(super) struct Survey {
    /// A data folder: a synthetic world or your own tables.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Number of outfits to print in words.
    #[arg(long, default_value_t = 50)]
    outfits: usize,
    /// Random seed of the choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Survey {
    pub(super) fn run(self) -> Result<()> {
        let data = Rows::read(&self.data)?;
        print!("{}", survey::marginals(&data));
        for outfit in survey::sample(&data, self.outfits, self.seed) {
            println!("{}", survey::in_words(&data, outfit));
        }
        Ok(())
    }
}
