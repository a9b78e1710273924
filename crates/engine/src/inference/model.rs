//! One model, checked against its release: an ONNX file open in a session, or the same model on a server.
//!
//! Of a trunk, a [`head`] computes the last layer and chooses the best articles; of a whole model they are
//! chosen from all logits.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use atelier_core::domain::{ArticleEncoder, Method};

use super::{
    Answer, Articles, BLANK, Device, Models, PADDING, Question,
    cores::{Cores, RunCores},
    head::{self, Boosts, Read},
    inputs::Inputs,
    local::Local,
    remote::{self, Remote},
    scorer::Scores,
    signature::Signature,
    trial::{Run, Trial},
};
use crate::{
    catalogue::ArticleIndex,
    release::{MethodEntry, Release},
    tables::{Composition, Tables, TablesError},
};

/// The number of articles that a trunk is tried with: its tables' numbers are checked when they are read.
const TRIED: usize = 256;
/// How long a model may take to answer the trial questions; a server may have to load it.
const TRIAL: Duration = Duration::from_secs(30);

/// Where a model runs.
#[derive(Debug, Clone)]
pub(super) struct Location {
    pub(super) models: Models,
    pub(super) device: Device,
    /// The cores that choose articles.
    pub(super) cores: Cores,
}

/// Why a model cannot be served, or could not answer. `path` is its file, or its address on a server.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("{path}: ONNX Runtime rejects it on {device}: {reason}", path = .path.display())]
    Runtime { path: PathBuf, device: Device, reason: String },
    #[error("{path}: {what} is {found}, expected {expected}", path = .path.display())]
    Contract { path: PathBuf, what: String, found: String, expected: String },
    #[error("{path}: {reason}", path = .path.display())]
    Remote { path: PathBuf, reason: String },
    #[error("{path}: no answer before the deadline", path = .path.display())]
    Timeout { path: PathBuf },
    #[error("{path}: the model returned {found}, expected finite numbers, one logit per article", path = .path.display())]
    Output { path: PathBuf, found: String },
    #[error(
        "{path}: the weight `{weight}` holds {found}, expected numbers below 1e18; export the model again from a \
         training run that did not diverge",
        path = .path.display()
    )]
    Weights { path: PathBuf, weight: String, found: String },
    #[error("{path}: {source}", path = .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Tables(#[from] TablesError),
}

/// A method's model must match the release and the method's entry in its manifest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contract<'a> {
    pub(super) release: &'a Release,
    pub(super) entry: &'a MethodEntry,
}

impl Contract<'_> {
    /// Reads the method's tables, if the release has them next to the model.
    pub(super) fn open_tables(self) -> Result<Option<Arc<Tables>>, ModelError> {
        let Some(path) = self.release.tables_path(self.entry) else { return Ok(None) };
        let values = self.release.encoder().map(ArticleEncoder::count);
        let components = self.release.encoder().map_or(0, ArticleEncoder::components);
        let (articles, schema) = (self.release.vocabulary().len(), self.release.schema());
        Ok(Some(Arc::new(Tables::open(&path, articles, values, components, schema)?)))
    }

    /// Articles to try a model with: of a whole model all of the vocabulary, else some.
    fn trial_articles(self, form: &Form) -> Arc<Articles> {
        let own = |index| Composition { own: u32::try_from(index).ok(), ..Composition::default() };
        let all = 0..self.release.vocabulary().len();
        let (index, tables) = match form {
            Form::Whole { .. } => (ArticleIndex::of_vocabulary(self.release, all, own), None),
            Form::Trunk(tables) => {
                let step = all.len().div_ceil(TRIED).max(1);
                let compose = |index| self.release.compose_trained(index);
                let some = all.step_by(step);
                (ArticleIndex::of_vocabulary(self.release, some, compose), Some(&**tables))
            }
        };
        Arc::new(Articles::new(index, [(self.entry.method, tables)].into_iter()))
    }
}

/// A model that is ready to answer.
#[derive(Debug)]
pub(super) struct Model {
    method: Method,
    /// Its file, or its address on a server.
    path: PathBuf,
    backend: Backend,
    form: Form,
    /// The number of features, if it takes features.
    features: Option<usize>,
    optional: OptionalOutputs,
    cores: Cores,
}

/// A model's inputs and outputs.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// Numbers of the vocabulary's articles, and their logits.
    Whole { articles: usize },
    /// Articles' rows, and the vector that the last layer reads. The tables have the rest.
    Trunk(Arc<Tables>),
}

impl Form {
    /// The name and length of the output that answers are made from.
    pub(super) fn last(&self) -> (&'static str, usize) {
        match self {
            Self::Whole { articles } => ("logits", *articles),
            Self::Trunk(tables) => ("hidden", tables.widths().hidden()),
        }
    }
}

#[derive(Debug)]
enum Backend {
    Local(Box<Local>),
    Remote(Box<Remote>),
}

/// Which of the optional outputs a model has.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionalOutputs {
    pub(super) personas: bool,
    pub(super) steps: bool,
}

/// The outputs of one run.
#[derive(Debug)]
pub(super) struct Outputs<'a> {
    /// The output that answers are made from: [`Form::last`].
    pub(super) last: &'a [f32],
    /// The number of personas, and the mixes of all rows.
    pub(super) personas: Option<(usize, &'a [f32])>,
    pub(super) steps: Option<&'a [f32]>,
}

/// An output's shape and numbers, or what is wrong with it.
pub(super) type Found<'a> = Result<(&'a [i64], &'a [f32]), String>;

impl<'a> Outputs<'a> {
    /// Finds the outputs of a batch, and checks their shapes. `last` is the name and length of the one that answers are made
    /// from.
    pub(super) fn find(
        path: &Path,
        batch: usize,
        (last, width): (&'static str, usize),
        optional: OptionalOutputs,
        find: impl Fn(&'static str) -> Found<'a>,
    ) -> Result<Self, ModelError> {
        let checked = |name: &'static str, axes: &[Option<usize>]| {
            let wrong = |found: String| ModelError::Output { path: path.to_owned(), found };
            let (shape, numbers) = find(name).map_err(|reason| wrong(format!("{name} {reason}")))?;
            let mut lengths = shape.iter().zip(axes).map(|(&found, axis)| (usize::try_from(found), axis));
            let fits =
                lengths.all(|(found, axis)| found.is_ok_and(|found| axis.is_none_or(|axis| axis == found)));
            let columns = numbers.len().checked_div(batch).unwrap_or(0);
            let is_whole = shape.iter().product::<i64>() == i64::try_from(numbers.len()).unwrap_or(i64::MAX);
            if shape.len() == axes.len() && fits && is_whole {
                return Ok((columns, numbers));
            }
            Err(wrong(format!("{name} of shape {shape:?} with {} numbers", numbers.len())))
        };
        let personas = optional.personas.then(|| checked("personas", &[Some(batch), None]));
        let steps = optional.steps.then(|| checked("steps", &[Some(batch)]));
        Ok(Self {
            last: checked(last, &[Some(batch), Some(width)])?.1,
            personas: personas.transpose()?,
            steps: steps.transpose()?.map(|(_, steps)| steps),
        })
    }

    /// Adds the optional outputs to the answers. An answer is None if its logits are not finite; the optional outputs
    /// must be finite, too.
    pub(super) fn complete(
        &self,
        path: &Path,
        answers: Vec<Option<Answer>>,
    ) -> Vec<Result<Answer, ModelError>> {
        let complete = |(row, answer): (usize, Option<Answer>)| {
            let infinite = |name: &str| ModelError::Output {
                path: path.to_owned(),
                found: format!("{name} that are not finite"),
            };
            let mut answer = answer.ok_or_else(|| infinite("logits"))?;
            answer.personas = self.personas.map(|(count, all)| all[row * count..][..count].to_vec());
            answer.steps = self.steps.map(|steps| steps[row]);
            if !answer.personas.iter().flatten().all(|part| part.is_finite()) {
                return Err(infinite("personas"));
            }
            if answer.steps.is_some_and(|steps| !steps.is_finite()) {
                return Err(infinite("steps"));
            }
            Ok(answer)
        };
        answers.into_iter().enumerate().map(complete).collect()
    }
}

impl Model {
    /// Opens the file, or finds the model on its server, checks its inputs and outputs, and asks it trial questions.
    /// Further copies of a model share its tables, and are not tried as thoroughly.
    ///
    /// A server may have the trunk, or the whole model in one file: its outputs tell. The tables are not used then.
    pub(super) fn open(
        location: &Location,
        contract: Contract<'_>,
        tables: Option<Arc<Tables>>,
        first: bool,
    ) -> Result<Self, ModelError> {
        let (release, method) = (contract.release, contract.entry.method);
        let mut weights_searched = false;
        let (path, backend, (inputs, outputs)) = match &location.models {
            Models::Local(runtime) => {
                let path = release.model_path(contract.entry);
                let local = Local::open(runtime, location.device, contract, path.clone())?;
                weights_searched = local.weights_searched;
                let ports = local.ports();
                (path, Backend::Local(Box::new(local)), ports)
            }
            Models::Remote(origin) => {
                let name = format!("{}-{method}", release.manifest().name);
                let mut remote = Remote::new(origin.clone(), &name);
                let ports = remote.fetch_ports(Instant::now() + TRIAL)?;
                (remote.path.clone(), Backend::Remote(Box::new(remote)), ports)
            }
        };
        let signature = Signature { path: &path, inputs, outputs };
        let is_whole = matches!(backend, Backend::Remote(_)) && signature.has_output("logits");
        let form = match tables {
            Some(tables) if !is_whole => Form::Trunk(tables),
            unused => {
                if first && unused.is_some_and(|tables| tables.is_open()) {
                    tracing::warn!(
                        model = %path.display(),
                        "the server has the whole model in one file, so it suggests only articles that it was trained \
                         with; give the server the release's own file for new articles"
                    );
                }
                Form::Whole { articles: release.vocabulary().len() }
            }
        };
        signature.check(contract, &form)?;
        let features = signature.has_input("features").then_some(release.schema().features().len());
        let optional = OptionalOutputs {
            personas: signature.has_output("personas"),
            steps: signature.has_output("steps"),
        };
        let cores = location.cores.clone();
        let mut model = Self { method, path, backend, form, features, optional, cores };
        model.run_trial(contract, first, weights_searched)?;
        Ok(model)
    }

    /// The tables that it needs; None if it is whole.
    pub(super) fn tables(&self) -> Option<Arc<Tables>> {
        match &self.form {
            Form::Whole { .. } => None,
            Form::Trunk(tables) => Some(Arc::clone(tables)),
        }
    }

    pub(super) fn takes_features(&self) -> bool {
        let has_context = matches!(&self.form, Form::Trunk(tables) if tables.context().is_some());
        has_context || self.features.is_some()
    }

    pub(super) fn gives_personas(&self) -> bool {
        self.optional.personas
    }

    /// Answers all questions in one run, with all idle cores if its thread `had_pause`. If one row is not finite, only its
    /// question fails.
    pub(super) fn answer(
        &mut self,
        questions: &[Question],
        deadline: Instant,
        had_pause: bool,
    ) -> Result<Vec<Result<Answer, ModelError>>, ModelError> {
        let mut answers = Vec::with_capacity(questions.len());
        // While the catalogue changes, questions of a batch may be about different states of it.
        let same = |one: &Question, next: &Question| Arc::ptr_eq(&one.articles, &next.articles);
        for questions in questions.chunk_by(same) {
            answers.extend(self.run(questions, deadline, had_pause)?);
        }
        Ok(answers)
    }

    /// Answers questions about one state of the catalogue.
    fn run(
        &mut self,
        questions: &[Question],
        deadline: Instant,
        had_pause: bool,
    ) -> Result<Vec<Result<Answer, ModelError>>, ModelError> {
        let (method, form, path) = (self.method, self.form.clone(), self.path.clone());
        self.infer(questions, deadline, had_pause, |outputs, cores| {
            outputs.complete(&path, choose(method, &form, &outputs, questions, cores))
        })
    }

    /// All logits, by position, of questions about one state of the catalogue.
    pub(super) fn scores(&mut self, questions: &[Question]) -> Result<Vec<Scores>, ModelError> {
        let (method, form) = (self.method, self.form.clone());
        let deadline = Instant::now() + TRIAL;
        self.infer(questions, deadline, false, |outputs, _| {
            let Some(Question { articles, .. }) = questions.first() else { return Vec::new() };
            let logits: Vec<Vec<f32>> = match &form {
                Form::Whole { articles: count } => {
                    outputs.last.chunks_exact(*count).map(|logits| articles.by_position(logits)).collect()
                }
                Form::Trunk(tables) => {
                    let table = articles.table(method).expect("a trunk has a table");
                    let boosts = all_boosts(tables, questions);
                    let personas = outputs.personas.map(|(_, mixes)| mixes);
                    head::logits(table, Read { hidden: outputs.last, personas, boosts: &boosts })
                }
            };
            let steps = |row: usize| outputs.steps.map(|steps| steps[row]);
            logits.into_iter().enumerate().map(|(row, logits)| Scores { logits, steps: steps(row) }).collect()
        })
    }

    /// Runs the model, and reads its outputs.
    fn infer<T>(
        &mut self,
        questions: &[Question],
        deadline: Instant,
        had_pause: bool,
        read: impl FnOnce(Outputs<'_>, &RunCores<'_>) -> T,
    ) -> Result<T, ModelError> {
        let Self { backend, form, features, optional, cores, .. } = self;
        let inputs = Inputs::new(questions, form, *features);
        let (batch, last) = (questions.len(), form.last());
        match backend {
            Backend::Local(local) => {
                let cores = cores.start_run(had_pause);
                local.infer(inputs, deadline, last, *optional, |outputs| read(outputs, &cores))
            }
            Backend::Remote(remote) => {
                let inferred = remote.infer(&inputs, last, *optional, deadline)?;
                let outputs = Outputs::find(&remote.path, batch, last, *optional, |name| {
                    remote::find(&inferred, name)
                })?;
                Ok(read(outputs, &cores.start_run(had_pause)))
            }
        }
    }

    pub(super) fn answer_batch(&mut self, contract: Contract<'_>, batch: usize) -> Result<(), ModelError> {
        let articles = contract.trial_articles(&self.form);
        let trial = Trial {
            articles: &articles,
            schema: contract.release.schema(),
            deadline: Instant::now() + TRIAL,
        };
        let longest = trial.questions().pop().expect("outfits have slots");
        self.answer(&vec![longest; batch], trial.deadline, true)?
            .into_iter()
            .try_for_each(|answer| answer.map(drop))
    }

    /// A file that fails on a trial question would fail on a customer. `first` is false for further copies of a model
    /// that has passed.
    fn run_trial(
        &mut self,
        contract: Contract<'_>,
        first: bool,
        weights_searched: bool,
    ) -> Result<(), ModelError> {
        // The numbers of tables were checked when they were read.
        let searched = weights_searched || matches!(self.form, Form::Trunk(_));
        let articles = contract.trial_articles(&self.form);
        let (schema, deadline) = (contract.release.schema(), Instant::now() + TRIAL);
        let trial = Trial { articles: &articles, schema, deadline };
        let path = self.path.clone();
        let run: &mut Run<'_> =
            &mut |questions: &[Question], deadline| self.answer(questions, deadline, true);
        if !first {
            return trial.answers(run);
        }
        trial.same_answers(run, |found, expected| {
            let what = "its answer to the same question".to_owned();
            ModelError::Contract { path: path.clone(), what, found, expected }
        })?;
        if searched { Ok(()) } else { trial.every_article(run) }
    }
}

/// Chooses the best articles for each question. None if a logit is not finite.
fn choose(
    method: Method,
    form: &Form,
    outputs: &Outputs<'_>,
    questions: &[Question],
    cores: &RunCores<'_>,
) -> Vec<Option<Answer>> {
    let Some(first) = questions.first() else { return Vec::new() };
    let articles = &first.articles;
    let known = articles.known(method).expect("the articles are of the model's release");
    match form {
        Form::Whole { articles: count } => {
            let rows = outputs.last.chunks_exact(*count).zip(questions);
            rows.map(|(logits, question)| head::choose(articles.by_position(logits), known, question))
                .collect()
        }
        Form::Trunk(tables) => {
            let table = articles.table(method).expect("a trunk has a table");
            let boosts = all_boosts(tables, questions);
            let personas = outputs.personas.map(|(_, mixes)| mixes);
            let read = Read { hidden: outputs.last, personas, boosts: &boosts };
            head::answer(table, known, read, questions, cores)
        }
    }
}

/// The memory's boosts of each question's logits; empty without a memory.
fn all_boosts(tables: &Tables, questions: &[Question]) -> Vec<Boosts> {
    let asked = if tables.has_memory() { questions } else { &[] };
    asked.iter().map(|question| boosts(tables, question)).collect()
}

/// The memory's boosts for articles that the question looks at, by position.
fn boosts(tables: &Tables, question: &Question) -> Boosts {
    let admissible = question.admissible.as_deref().filter(|_| question.only_admissible);
    let find = |index: u32| {
        let position = question.articles.position_in_vocabulary(index)?;
        let is_wanted = admissible.is_none_or(|admissible| admissible.contains(position));
        (is_wanted || question.placements_of.contains(&position)).then_some(position)
    };
    let visible = visible(&question.articles, &question.slots);
    let asked = if question.without_outfits { &[] } else { &visible[..] };
    let boosts = visible.iter().flat_map(|own| tables.boosts_of_article(*own));
    let boosts = boosts.chain(tables.boosts_of_outfits(asked, |index| find(index).is_some()));
    let boosts = boosts.chain(tables.boosts_of_context(&question.context));
    Boosts::new(boosts.filter_map(|(index, by)| Some((find(index)?, by))))
}

/// The articles of the vocabulary that an outfit has, by number.
pub(super) fn visible(articles: &Articles, slots: &[u32]) -> Vec<u32> {
    let visible = slots.iter().filter(|slot| ![BLANK, PADDING].contains(slot));
    visible.filter_map(|&slot| articles.index.composition(slot)?.own).collect()
}
