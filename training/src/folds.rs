//! Cross-validation: runs of the same settings on four fifths of all outfits each, asked about the other fifth.
//!
//! Where the validation split has few slots, this judges every outfit once. It fits as `fit` does and asks as `evaluate` does, so it
//! knows both.

use std::{fs, path::Path};

use anyhow::Result;
use atelier_engine::onnx_runtime::OnnxRuntime;

use crate::{
    baselines::{Asked, beside_methods},
    data::{Data, FOLDS},
    evaluate::{Cases, Rival, Runs, Subject, ask, table_of_answers},
    export::{Metadata, Storage},
    fit::{Outcome, Overrides, RunConfig, RunFolder, Watch, fit},
    judge::Verdict,
    release::{assemble, export_run},
};

/// All outfits, judged by models that have not seen them.
#[derive(Debug, Default)]
pub struct Folds {
    cases: Cases,
    /// Slot by slot, of each run.
    runs: Vec<(String, Vec<Verdict>)>,
    baselines: Vec<Asked>,
}

impl Folds {
    /// Fits each run again on each part of its data, in folders within the run's, where finished ones are kept. `None` if the watch stopped it.
    ///
    /// # Errors
    /// As `fit`, `export_run` and `ask`.
    pub fn make(
        runtime: &OnnxRuntime,
        folder: &Path,
        runs: &[(String, RunFolder)],
        watch: &mut Watch<'_>,
        tell: &dyn Fn(usize, &str),
    ) -> Result<Option<Self>> {
        let mut all = Self::default();
        for fold in 0..FOLDS {
            let data = Data::load_fold(folder, fold)?;
            let cases = Cases::of_validation(&data);
            if cases.is_empty() || data.training().is_empty() {
                continue;
            }
            for (place, (name, run)) in runs.iter().enumerate() {
                tell(fold + 1, name);
                let part = RunFolder::new(run.path().join("folds").join((fold + 1).to_string()));
                let settings = run.path().join("config.toml");
                let overrides = Overrides { file: Some(&settings), set: &[] };
                let config = RunConfig::new(run.config()?.model.method, &data, folder, overrides, |_| {})?;
                if part.has_run() && part.config()? != config {
                    fs::remove_dir_all(part.path())?;
                }
                if fit(&data, &config, &part, true, watch)? == Outcome::Interrupted {
                    return Ok(None);
                }
                let metadata = Metadata { release: String::new(), storage: Storage::Float32 };
                let entry = export_run(&part, &config, &data, &metadata, part.path())?;
                let release = assemble(part.path(), "", &data, entry.clone())?;
                let answers = ask(runtime, &Subject::new(&data, &release, &entry), &data, &cases, &|_| {})?;
                match all.runs.get_mut(place) {
                    Some((_, verdicts)) => verdicts.extend(answers.verdicts),
                    None => all.runs.push((name.clone(), answers.verdicts)),
                }
            }
            let asked = beside_methods(&data, data.validation());
            if all.baselines.is_empty() {
                all.baselines = asked;
            } else {
                for (all, asked) in all.baselines.iter_mut().zip(asked) {
                    all.verdicts.extend(asked.verdicts);
                }
            }
            all.cases.append(cases);
        }
        Ok(Some(all))
    }

    /// The figures of all outfits, and which baselines are better.
    pub fn describe(&self) -> (String, Vec<Rival>) {
        let named =
            self.baselines.iter().map(|asked| (format!("*{}*", asked.baseline.name), &asked.verdicts[..]));
        let answers = self.runs.iter().map(|(name, verdicts)| (name.clone(), &verdicts[..]));
        let answers: Vec<(String, &[Verdict])> = answers.chain(named).collect();
        let outfits = self.cases.by_outfit().count();
        let runs: Vec<Runs<'_>> =
            self.runs.iter().map(|(name, verdicts)| (name.clone(), vec![verdicts.as_slice()])).collect();
        let text = format!(
            "Cross-validation in five folds: all {outfits} outfits, each asked of a run that was trained without it, {} slots.\n\n{}",
            self.cases.as_slice().len(),
            table_of_answers(&self.cases, &answers)
        );
        (text, Rival::find(&self.cases, &runs, &self.baselines))
    }
}
