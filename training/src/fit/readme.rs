//! What a run's folder says of itself to whoever finds it.

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
        format!(
            "| `{method}.pair.onnx` | says of two halves if they were one outfit; made with the former |\n"
        )
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
         | `config.toml` | every setting of the run; with the same data it makes the same numbers again |\n\
         | `metrics.jsonl` | one line an epoch: loss, figures on the development split, speed |\n\
         | `curves.svg` | the same as curves; a browser opens it |\n\
         | `best.safetensors` | the weights of the epoch with the lowest cross-entropy on the development split |\n\
         | `checkpoint-….safetensors`, `state.json` | the last weights, what the optimiser remembers, and how far the run has come |\n\
         | `{method}.onnx` | the exported model, once `export` or `evaluate` has run |\n\
         {pair}\
         | `evaluation.json` | what the exported model does on the validation split, once `evaluate` has run |\n\
         \n\
         Go on, if it was stopped (with the same numbers as if it had not been):\n\
         \n    atelier-training fit --method {method} --seed {seed} --data {data} --run {run} --config {run}/config.toml --resume\n\
         \n\
         Measure and export:\n\
         \n    atelier-training evaluate --data {data} --runs {run}\n    atelier-training export --run {run}\n\
         \n\
         Once the run has ended, `checkpoint-….safetensors` and `state.json` may be deleted; nothing else needs\n\
         them.\n"
    )
}
