//! One ONNX file, checked against the contract of a release and open in a session.
//!
//! On a CPU a file that our exporter wrote is served in two parts: ONNX Runtime computes its trunk, the
//! [`head`](super::head) what comes behind. On other devices, and where a file came from elsewhere, ONNX Runtime
//! computes all logits, and they are chosen from.

mod surface;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use ort::{
    session::{Session, SessionInputs, SessionOutputs},
    value::Tensor,
};

use self::surface::{check_metadata, check_surface, named};
use super::{Answer, Context, Device, Question, choose::choose, graph, head::Head};
use crate::{
    domain::{MAX_SLOTS, Schema},
    onnx_runtime::OnnxRuntime,
    release::{Manifest, MethodEntry, Release},
};

/// Why a file is no model of its release. Each says what was found and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("{path}: ONNX Runtime refuses it on {device}: {reason}", path = .path.display())]
    Runtime { path: PathBuf, device: Device, reason: String },
    #[error("{path}: {what} is {found}, expected {expected}", path = .path.display())]
    Contract { path: PathBuf, what: String, found: String, expected: String },
    #[error("{path}: it answers a trial outfit with {found}, expected one finite logit an article", path = .path.display())]
    Answers { path: PathBuf, found: String },
}

/// What a file must fit to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    release: &'a Release,
    entry: &'a MethodEntry,
}

impl<'a> Expected<'a> {
    pub(super) fn new(release: &'a Release, entry: &'a MethodEntry) -> Self {
        Self { release, entry }
    }

    fn manifest(self) -> &'a Manifest {
        self.release.manifest()
    }

    fn schema(self) -> &'a Schema {
        self.release.schema()
    }
}

/// A session and what it was found to take and give.
#[derive(Debug)]
pub(super) struct Model {
    path: PathBuf,
    session: Session,
    /// What comes behind the session, where that is not the session's own.
    head: Option<Arc<Head>>,
    device: Device,
    articles: usize,
    features: usize,
    takes_features: bool,
    gives_personas: bool,
    gives_steps: bool,
}

impl Model {
    /// Opens the file, checks its surface, and asks it about trial outfits. A further copy takes the head of the
    /// first.
    pub(super) fn open(
        runtime: &OnnxRuntime,
        expected: Expected<'_>,
        device: Device,
        head: Option<Arc<Head>>,
    ) -> Result<Self, ModelError> {
        let path = expected.release.model(expected.entry);
        let (session, head) =
            open(runtime, &path, expected, device, head).map_err(|error| refused(&path, device, &error))?;
        check_metadata(&session, &path, expected)?;
        check_surface(&session, &path, expected, head.as_deref())?;
        let mut model = Self {
            takes_features: named(session.inputs(), "features").is_some(),
            gives_personas: named(session.outputs(), "personas").is_some(),
            gives_steps: named(session.outputs(), "steps").is_some(),
            articles: expected.release.vocabulary().len(),
            features: expected.schema().features().len(),
            path,
            session,
            head,
            device,
        };
        model.try_out(expected)?;
        Ok(model)
    }

    /// What further copies share.
    pub(super) fn head(&self) -> Option<Arc<Head>> {
        self.head.clone()
    }

    pub(super) fn takes_features(&self) -> bool {
        self.takes_features
    }

    pub(super) fn gives_personas(&self) -> bool {
        self.gives_personas
    }

    /// Answers them all in one run. A row that is no answer is the matter of its own question; the others have theirs.
    pub(super) fn answer(
        &mut self,
        questions: &[Question],
    ) -> Result<Vec<Result<Answer, ModelError>>, ModelError> {
        let inputs = self.inputs(questions).map_err(|error| refused(&self.path, self.device, &error))?;
        let outputs = self
            .session
            .run(SessionInputs::from(inputs))
            .map_err(|error| refused(&self.path, self.device, &error))?;
        let personas = if self.gives_personas {
            Some(rows(&self.path, &outputs, "personas", questions.len())?)
        } else {
            None
        };
        let steps = if self.gives_steps {
            Some(floats(&self.path, &outputs, "steps", &[questions.len()])?)
        } else {
            None
        };
        let chosen: Vec<Option<Answer>> = if let Some(head) = &self.head {
            let hidden = floats(&self.path, &outputs, "hidden", &[questions.len(), head.hidden()])?;
            head.answer(hidden, personas.map(|(_, mixes)| mixes), questions)
        } else {
            let logits = floats(&self.path, &outputs, "logits", &[questions.len(), self.articles])?;
            let rows = logits.chunks_exact(self.articles).zip(questions);
            rows.map(|(logits, question)| choose(logits, question)).collect()
        };
        let answer = |(row, chosen): (usize, Option<Answer>)| {
            let mut answer = chosen.ok_or_else(|| ModelError::Answers {
                path: self.path.clone(),
                found: "logits that are not finite".into(),
            })?;
            answer.personas = personas.map(|(count, mixes)| mixes[row * count..][..count].to_vec());
            answer.steps = steps.map(|steps| steps[row]);
            Ok(answer)
        };
        Ok(chosen.into_iter().enumerate().map(answer).collect())
    }

    fn inputs(&self, questions: &[Question]) -> ort::Result<Vec<(&'static str, Tensor<i64>)>> {
        let batch = questions.len();
        let slots = questions.iter().map(|question| question.slots.len()).max().unwrap_or(0);
        let padding = i64::try_from(self.articles + 1).expect("vocabularies are smaller; this is a bug");
        let mut articles = vec![padding; batch * slots];
        for (row, question) in articles.chunks_exact_mut(slots.max(1)).zip(questions) {
            for (cell, &slot) in row.iter_mut().zip(&question.slots) {
                *cell = slot.into();
            }
        }
        let place = |question: &Question| i64::try_from(question.blank).expect("a slot; this is a bug");
        let blanks: Vec<i64> = questions.iter().map(place).collect();
        let mut inputs = vec![
            ("articles", Tensor::from_array(([batch, slots], articles))?),
            ("blank", Tensor::from_array(([batch], blanks))?),
        ];
        if self.takes_features {
            let contexts = questions.iter().map(|question| &question.context);
            let (values, cells) = features(contexts, self.features);
            inputs.push(("features", Tensor::from_array(([batch, self.features, values], cells))?));
        }
        Ok(inputs)
    }

    /// Outfits of every length, with and without a context: a file that fails on one of them would fail on a
    /// customer.
    fn try_out(&mut self, expected: Expected<'_>) -> Result<(), ModelError> {
        let blank = expected.release.vocabulary().blank();
        let rows = expected.schema().features().iter();
        // The last row of each table: a table that is too short shows here.
        let last = |feature: &crate::domain::Feature| {
            vec![u32::try_from(feature.rows() - 1).expect("tables are small; this is a bug")]
        };
        let full: Context = rows.map(last).collect();
        let empty: Context = vec![Vec::new(); full.len()].into();
        let questions: Vec<Question> = (1..=MAX_SLOTS)
            .map(|length| Question {
                slots: std::iter::once(blank)
                    .chain((0..).take(length - 1).map(|place| place % blank))
                    .collect(),
                blank: 0,
                context: if length % 2 == 0 { full.clone() } else { empty.clone() },
                admissible: None,
                k: 1,
                of: vec![blank - 1],
                ranks: false,
            })
            .collect();
        for answer in self.answer(&questions)? {
            answer?;
        }
        self.answer(&questions[..1])?.remove(0).map(drop)
    }
}

/// The input `features`: each feature's values, and noughts up to the most that one of them has.
fn features<'a>(contexts: impl Iterator<Item = &'a Context> + Clone, features: usize) -> (usize, Vec<i64>) {
    let values = contexts.clone().flat_map(|context| context.iter()).map(Vec::len).max().unwrap_or(0).max(1);
    let mut cells = Vec::new();
    for context in contexts {
        assert_eq!(context.len(), features, "a context of the release's schema; this is a bug");
        for given in context.iter() {
            cells.extend(given.iter().copied().map(i64::from));
            cells.extend(std::iter::repeat_n(0, values - given.len()));
        }
    }
    (values, cells)
}

/// The file in a session, or its trunk with its head where that is faster.
fn open(
    runtime: &OnnxRuntime,
    path: &Path,
    expected: Expected<'_>,
    device: Device,
    shared: Option<Arc<Head>>,
) -> Result<(Session, Option<Arc<Head>>), ort::Error> {
    let builder = Session::builder(runtime.environment())?.with_intra_threads(1)?;
    let mut builder = device.prepare(builder)?;
    // A file that cannot be read or cut is ONNX Runtime's to judge.
    let parts = match device {
        Device::Cpu => fs::read(path).ok().and_then(|file| graph::cut(&file)),
        Device::Cuda => None,
    };
    match parts {
        Some(parts) if parts.head.bias.len() == expected.release.vocabulary().len() => {
            let session = builder.commit_from_memory(&parts.trunk)?;
            Ok((session, Some(shared.unwrap_or_else(|| Arc::new(Head::new(&parts.head))))))
        }
        _ => Ok((builder.commit_from_file(path)?, None)),
    }
}

fn refused(path: &Path, device: Device, error: &ort::Error) -> ModelError {
    ModelError::Runtime { path: path.to_owned(), device, reason: error.to_string() }
}

fn floats<'a>(
    path: &Path,
    outputs: &'a SessionOutputs<'_>,
    name: &'static str,
    shape: &[usize],
) -> Result<&'a [f32], ModelError> {
    let found = outputs[name].try_extract_tensor::<f32>();
    match found {
        Ok((found, values))
            if found.iter().map(|&d| usize::try_from(d).ok()).eq(shape.iter().map(|&d| Some(d))) =>
        {
            Ok(values)
        }
        Ok((found, _)) => Err(ModelError::Answers {
            path: path.to_owned(),
            found: format!("{name} of the shape {found:?}"),
        }),
        Err(error) => {
            Err(ModelError::Answers { path: path.to_owned(), found: format!("{name} that {error}") })
        }
    }
}

/// As many columns as there are.
fn rows<'a>(
    path: &Path,
    outputs: &'a SessionOutputs<'_>,
    name: &'static str,
    batch: usize,
) -> Result<(usize, &'a [f32]), ModelError> {
    let columns = match outputs[name].try_extract_tensor::<f32>() {
        Ok((shape, _)) => shape.get(1).and_then(|&columns| usize::try_from(columns).ok()).unwrap_or(0),
        Err(_) => 0,
    };
    floats(path, outputs, name, &[batch, columns]).map(|values| (columns, values))
}
