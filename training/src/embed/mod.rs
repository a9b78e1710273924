//! What encoders make of the articles' pictures and texts, as lists of their embeddings.
//!
//! [`embed`] reads a data folder, and writes its articles again with their vectors. What an encoder made of a picture or text is
//! kept in a file of its own beside them, so a run that was killed, or one after new articles, does only what is missing. The
//! module must never know a model, a method, or a terminal.

mod encoder;
mod pictures;
#[cfg(test)]
mod tests;
mod texts;
mod vectors;

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, bail};
use atelier_core::domain::{Article, ArticleId};
use atelier_engine::onnx_runtime::OnnxRuntime;
use atelier_files::{Files, Format, TableColumns, Writer};
use rayon::prelude::*;

use self::{encoder::Encoder, vectors::Vectors};
use crate::data::Folder;

/// Pictures that are fetched at the same time, and how many are decoded in memory.
const FETCHERS: usize = 16;
const PREPARED: usize = 64;

/// What became of a list of the embeddings.
#[derive(Debug)]
pub struct Embedded {
    /// `image` or `text`.
    pub name: &'static str,
    pub articles: usize,
    /// How many numbers a vector has; 0 if there is none.
    pub length: usize,
    /// How many pictures or texts were encoded, and how many articles have a vector.
    pub encoded: usize,
    pub with: usize,
    /// Articles that have no picture or text.
    pub without: usize,
    /// Those whose picture or text could not be read, and why.
    pub failed: Vec<(ArticleId, String)>,
}

/// Adds what the encoders of a folder make of the articles to a data folder. Calls `tell` with the list's name, how many are done,
/// and how many there are.
pub fn embed(
    data: &Path,
    encoder: &Path,
    runtime: &OnnxRuntime,
    tell: &mut dyn FnMut(&'static str, usize, usize),
) -> Result<Vec<Embedded>> {
    let encoders = Encoder::open(encoder, runtime)?;
    let mut folder = Folder::open(data)?;
    let mut articles = Vec::new();
    folder.articles(|article| {
        articles.push(article);
        Ok(())
    })?;
    if let Some(own) =
        articles.iter().find(|article| article.embedding().is_some_and(|own| own.list("").is_some()))
    {
        bail!(
            "the embedding of article {:?} is a list without a name, beside which no other can stand; name it, as in {{\"own\": […]}}, \
             or remove it",
            own.id
        );
    }
    let mut results = Vec::new();
    for mut encoder in encoders {
        let result = add(&mut articles, data, &mut encoder, tell)?;
        if result.with == 0 && result.failed.is_empty() {
            bail!("{}: none of its articles has {}", data.display(), encoder.needs());
        }
        results.push(result);
    }
    let file = Files::in_folder(data)?.articles.context("the file of articles is gone")?;
    let format = Format::from_path(&file).context(
        "vectors are written to .jsonl, .csv and .parquet files; make one with `atelier-training import`",
    )?;
    let mut columns = TableColumns::new(folder.schema());
    for article in &articles {
        columns.include(article);
    }
    let mut writer = Writer::create(&file, format, &columns)?;
    articles.iter().try_for_each(|article| writer.write(article))?;
    writer.finish()?;
    Ok(results)
}

fn add(
    articles: &mut [Article],
    data: &Path,
    encoder: &mut Encoder,
    tell: &mut dyn FnMut(&'static str, usize, usize),
) -> Result<Embedded> {
    let name = encoder.name();
    let mut vectors = Vectors::open(&data.join(format!(".embed-{name}-{}", encoder.digest())))?;
    let sources: Vec<Option<String>> = articles.iter().map(|article| encoder.source(article)).collect();
    let mut pending: Vec<&String> =
        sources.iter().flatten().filter(|source| vectors.get(source).is_none()).collect();
    // Those of about one length are encoded together, so that little is padded.
    pending.sort_unstable_by_key(|source| (source.len(), *source));
    pending.dedup();
    let total = pending.len();
    // Most of them wait for servers.
    let waiting = rayon::ThreadPoolBuilder::new().num_threads(FETCHERS).build()?;
    let mut reasons = BTreeMap::new();
    for (number, part) in pending.chunks(PREPARED).enumerate() {
        tell(name, number * PREPARED, total);
        let results: Vec<_> =
            waiting.install(|| part.par_iter().map(|source| encoder.prepare(source, data)).collect());
        let mut prepared = Vec::new();
        for (source, result) in part.iter().zip(results) {
            match result {
                Ok(input) => prepared.push((*source, input)),
                Err(error) => drop(reasons.insert(*source, format!("{error:#}"))),
            }
        }
        for batch in prepared.chunks(encoder.batch()) {
            let inputs: Vec<_> = batch.iter().map(|(_, input)| input).collect();
            let made = encoder.encode(&inputs)?;
            vectors.append(batch.iter().map(|(source, _)| source.as_str()).zip(made))?;
        }
    }
    let (mut with, mut failed) = (0, Vec::new());
    for (article, source) in articles.iter_mut().zip(&sources) {
        let vector = source.as_ref().and_then(|source| vectors.get(source));
        with += usize::from(vector.is_some());
        if let Some(reason) = source.as_ref().and_then(|source| reasons.get(source)) {
            failed.push((article.id.clone(), reason.clone()));
        }
        let embedding = article.embedding().cloned().unwrap_or_default().with_list(name, vector);
        *article = article.clone().with_embedding(Some(embedding).filter(|embedding| !embedding.is_empty()));
    }
    Ok(Embedded {
        name,
        articles: articles.len(),
        length: vectors.length(),
        encoded: total - reasons.len(),
        with,
        without: sources.iter().filter(|source| source.is_none()).count(),
        failed,
    })
}
