//! The commands that made what is in a release, for its manifest.

use std::{fs, path::Path};

use anyhow::Result;
use serde_json::Value;

use crate::{
    data::Data,
    fit::{FitConfig, RunConfig},
};

/// How the data was made, if the world made it.
pub(super) fn world_command(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join("world.json")).ok()?;
    let world: Value = serde_json::from_str(&text).ok()?;
    Some(format!("{} --out {}", world["command"].as_str()?, folder.display()))
}

/// The command that makes a run. Its flags say it all, unless a file of settings was given; then the run's own
/// has them.
pub(super) fn fit_command(config: &RunConfig, run: &Path, of: &Data) -> Result<String> {
    let RunConfig { data, fit, model, .. } = config;
    let by_flags = |settings: &mut FitConfig| {
        *settings = FitConfig { second_blank: settings.second_blank, ..fit.clone() };
    };
    let plain = RunConfig::new(model.method, of, &data.folder, None, by_flags)?;
    let same = RunConfig { data: data.clone(), ..plain } == *config;
    let run = run.display();
    let settings = if same { String::new() } else { format!(" --config {run}/config.toml") };
    Ok(format!(
        "atelier-training fit --method {} --seed {} --data {} --epochs {} --batch {} --learning-rate {} \
         --warm-up {} --patience {}{} --run {run}{settings}",
        model.method,
        fit.seed,
        data.folder.display(),
        fit.epochs,
        fit.batch,
        fit.learning_rate,
        fit.warm_up,
        fit.patience,
        if fit.attributes { " --attributes" } else { "" },
    ))
}
