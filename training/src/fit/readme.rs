//! The README of a run's folder, for people who find it.

use std::path::Path;

use super::RunConfig;

/// The folder's `README.md`.
pub(super) fn text(config: &RunConfig, folder: &Path) -> String {
    let method = config.model.method;
    let seed = config.fit.seed;
    let attributes = if config.fit.attributes { " + attributes" } else { "" };
    let (data, fingerprint) = (config.data.folder.display(), &config.data.fingerprint);
    let run = folder.display();
    let pair = if config.model.pair {
        format!("| `{method}.pair.onnx` | judges if two halves were one outfit; written with the former |\n")
    } else {
        String::new()
    };
    format!(
        "# Method {method}{attributes}, seed {seed}\n\
         \n\
         One training run of Atelier, made by `atelier-training fit` on the data `{data}` (fingerprint\n\
         `{fingerprint}`).\n\
         \n\
         | file | what it is |\n\
         |---|---|\n\
         | `config.toml` | every setting of the run; with the same data it gives the same numbers |\n\
         | `metrics.jsonl` | one line per epoch: loss, figures on the development split, speed |\n\
         | `curves.svg` | the same as curves; open it in a browser |\n\
         | `best.safetensors` | the weights of the epoch with the lowest cross-entropy on the development split |\n\
         | `checkpoint-….safetensors`, `state.json` | the last weights with the optimiser's state, and how far the run is |\n\
         | `{method}.onnx` | the exported model, once `export` or `evaluate` has run |\n\
         {pair}\
         | `evaluation.json` | the exported model's figures on the validation split, once `evaluate` has run |\n\
         \n\
         To resume a stopped run, with the same numbers as without the stop:\n\
         \n    atelier-training fit --method {method} --seed {seed} --data {data} --run {run} --config {run}/config.toml --resume\n\
         \n\
         To evaluate and export:\n\
         \n    atelier-training evaluate --data {data} --runs {run}\n    atelier-training export --run {run}\n\
         \n\
         Once the run has ended, `checkpoint-….safetensors` and `state.json` may be deleted; nothing else needs\n\
         them.\n"
    )
}
