//! All logits of a method, for evaluation, computed as in serving.

use std::sync::Arc;

use super::{
    Articles, Cores, Device, ModelError, Question,
    model::{Contract, Location, Model},
};
use crate::{
    catalogue::ArticleIndex,
    onnx_runtime::OnnxRuntime,
    release::{MethodEntry, Release},
    tables::Tables,
};

/// A method of a release on one thread.
#[derive(Debug)]
pub struct Scorer {
    model: Model,
    tables: Option<Arc<Tables>>,
    articles: Arc<Articles>,
}

/// A method's scores for one question.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// By position; only those of articles that the method knows mean something.
    pub logits: Vec<f32>,
    /// The mean number of steps, if the method has a universal trunk.
    pub steps: Option<f32>,
}

impl Scorer {
    /// Opens a method on the CPU, for a catalogue's articles.
    pub fn open(
        runtime: &OnnxRuntime,
        release: &Release,
        method: &MethodEntry,
        index: ArticleIndex,
    ) -> Result<Self, ModelError> {
        let contract = Contract { release, entry: method };
        let tables = contract.open_tables()?;
        let model = Model::open(&location(runtime), contract, tables.clone(), true)?;
        let articles = Arc::new(Articles::new(index, [(method.method, tables.as_deref())].into_iter()));
        Ok(Self { model, tables, articles })
    }

    /// The same method for another thread.
    pub fn another(
        &self,
        runtime: &OnnxRuntime,
        release: &Release,
        method: &MethodEntry,
    ) -> Result<Self, ModelError> {
        let contract = Contract { release, entry: method };
        let model = Model::open(&location(runtime), contract, self.tables.clone(), false)?;
        Ok(Self { model, tables: self.tables.clone(), articles: Arc::clone(&self.articles) })
    }

    /// Whether the method knows articles that it was not trained with.
    pub fn is_open(&self) -> bool {
        self.tables.as_ref().is_some_and(|tables| tables.is_open())
    }

    /// The articles that questions are about.
    pub fn articles(&self) -> &Arc<Articles> {
        &self.articles
    }

    /// Asks questions of one length, whose articles are [`Scorer::articles`].
    pub fn scores(&mut self, questions: &[Question]) -> Result<Vec<Scores>, ModelError> {
        self.model.scores(questions)
    }
}

fn location(runtime: &OnnxRuntime) -> Location {
    Location { models: runtime.clone().into(), device: Device::Cpu, cores: Cores::new(1) }
}
