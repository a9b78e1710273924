//! The commands that made what is in a release, for its manifest.

use std::{fs, path::Path};

use serde_json::Value;

use crate::fit::RunConfig;

/// How the data was made, if the world made it.
pub(super) fn world_command(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join("world.json")).ok()?;
    let world: Value = serde_json::from_str(&text).ok()?;
    Some(format!("{} --out {}", world["command"].as_str()?, folder.display()))
}

/// The command that makes a run.
pub(super) fn fit_command(config: &RunConfig, run: &Path) -> String {
    let RunConfig { data, fit, model, pair, .. } = config;
    let run = run.display();
    // What no flag says is in the run's own configuration.
    let config = if pair.weight > 0.0 { format!(" --config {run}/config.toml") } else { String::new() };
    format!(
        "atelier-training fit --method {} --seed {} --data {} --epochs {} --batch {} --learning-rate {} \
         --warm-up {} --patience {} --run {run}{config}",
        model.method,
        fit.seed,
        data.folder.display(),
        fit.epochs,
        fit.batch,
        fit.learning_rate,
        fit.warm_up,
        fit.patience,
    )
}
