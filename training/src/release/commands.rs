//! The commands that made what is in a release, for its manifest.

use std::{fs, path::Path};

use anyhow::Result;
use serde_json::Value;

use crate::{
    data::Data,
    fit::{FitConfig, Overrides, RunConfig},
};

/// How the data was made, if the world made it.
pub(super) fn world_command(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join("world.json")).ok()?;
    let world: Value = serde_json::from_str(&text).ok()?;
    Some(format!("{} --out {}", world["command"].as_str()?, folder.display()))
}

/// The command that makes a run.
pub(super) fn fit_command(config: &RunConfig, run: &Path, of: &Data) -> Result<String> {
    let RunConfig { data, fit, model, .. } = config;
    let by_flags = |settings: &mut FitConfig| {
        *settings = FitConfig { second_blank: settings.second_blank, ..fit.clone() };
    };
    let plain = RunConfig::new(model.method, of, &data.folder, Overrides::default(), by_flags)?;
    let settings = config.differences(&plain).into_iter().filter_map(|difference| {
        let value = difference.ours?;
        Some(format!(" --set {}", quoted(&format!("{}={value}", difference.key))))
    });
    Ok(format!(
        "atelier-training fit --method {} --seed {} --data {} --epochs {} --batch {} --learning-rate {} \
         --warm-up {} --patience {}{} --run {}{}",
        model.method,
        fit.seed,
        data.folder.display(),
        fit.epochs,
        fit.batch,
        fit.learning_rate,
        fit.warm_up,
        fit.patience,
        if fit.attributes { " --attributes" } else { "" },
        run.display(),
        settings.collect::<String>(),
    ))
}

/// For a shell.
fn quoted(text: &str) -> String {
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "._=-".contains(c)) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
