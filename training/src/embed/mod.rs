//! The encoders' lists from the articles' pictures and texts, for their embeddings.
//!
//! [`embed`] reads a data folder, and writes its articles again with their vectors. What an encoder made of a picture or text is
//! kept in a file of its own next to them, so a run that was killed, or one after new articles, does only what is missing. The
//! module must never know a model, a method, or a terminal.

mod encoder;
mod pictures;
#[cfg(test)]
mod tests;
mod texts;
mod vectors;

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File, TryLockError},
    path::Path,
};

use anyhow::{Context, Result, bail};
use atelier_core::domain::{Article, ArticleId};
use atelier_engine::onnx_runtime::OnnxRuntime;
use atelier_files::{Files, Format, TableColumns, Writer};
use rayon::prelude::*;

use self::{
    encoder::Encoder,
    vectors::{Key, Vectors, digest},
};
use crate::data::Folder;

/// Pictures that are fetched at the same time, and how many of them are in memory.
const FETCHERS: usize = 16;
const PREPARED: usize = 2 * FETCHERS;

/// The result for a list of the embeddings.
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
    let mut encoders = Encoder::open(encoder, runtime)?;
    // Of two that write the articles in turns, one would lose its list. Some file systems have no locks.
    let lock = File::open(data).ok();
    if let Some(Err(TryLockError::WouldBlock)) = lock.as_ref().map(File::try_lock) {
        bail!("another `embed` adds to {}; wait for it", data.display());
    }
    let mut folder = Folder::open(data)?;
    let file = Files::in_folder(data)?.articles.context("the file of articles is gone")?;
    let format = Format::from_path(&file).context(
        "vectors are written to .jsonl, .csv and .parquet files; make one with `atelier-training import`",
    )?;
    let mut articles = Vec::new();
    folder.articles(|article| {
        articles.push(article);
        Ok(())
    })?;
    if let Some(own) =
        articles.iter().find(|article| article.embedding().is_some_and(|own| own.list("").is_some()))
    {
        bail!(
            "the embedding of article {:?} is a list without a name, so it can be the only one; name it, as in {{\"own\": […]}}, \
             or remove it",
            own.id
        );
    }
    let results = encoders.iter_mut().map(|encoder| add(&mut articles, data, encoder, tell));
    let results = results.collect::<Result<Vec<_>>>()?;
    if results.iter().all(|result| result.with == 0 && result.failed.is_empty()) {
        let needs: Vec<&str> = encoders.iter().map(Encoder::needs).collect();
        bail!("{}: none of its articles has {}", data.display(), needs.join(" or "));
    }
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
    let kept = data.join(format!(".embed-{name}-{}", encoder.digest()));
    let mut vectors = Vectors::open(&kept)?;
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
        let read: Vec<_> =
            waiting.install(|| part.par_iter().map(|source| encoder.read(source, data)).collect());
        // On as many threads as there are cores: a decoded picture takes far more memory.
        let results = part.par_iter().zip(read).map(|(source, read)| encoder.prepare(source, &read?));
        let results: Vec<_> = results.collect();
        let mut fail = |source, error| drop(reasons.insert(source, format!("{error:#}")));
        let mut prepared = Vec::new();
        for (source, result) in part.iter().zip(results) {
            match result {
                Ok(input) => prepared.push((*source, input)),
                Err(error) => fail(*source, error),
            }
        }
        for batch in prepared.chunks(encoder.batch()) {
            let inputs: Vec<_> = batch.iter().map(|(_, input)| input).collect();
            for ((source, _), made) in batch.iter().zip(encoder.encode(&inputs)?) {
                match made {
                    Ok(vector) => vectors.append(source, vector)?,
                    Err(error) => fail(*source, error),
                }
            }
        }
    }
    let others = read_others(data, name, &kept)?;
    let (mut with, mut failed) = (0, Vec::new());
    for (article, source) in articles.iter_mut().zip(&sources) {
        if let Some(reason) = source.as_ref().and_then(|source| reasons.get(source)) {
            failed.push((article.id.clone(), reason.clone()));
        }
        let vector = source.as_ref().and_then(|source| vectors.get(source));
        with += usize::from(vector.is_some());
        let embedding = article.embedding().cloned().unwrap_or_default();
        let is_other = |own: &[f32]| others.contains(&digest(own));
        // Without a vector it keeps its own list, but not that of an encoder that was here before.
        if vector.is_none() && !embedding.list(name).is_some_and(is_other) {
            continue;
        }
        let embedding = embedding.with_list(name, vector).with_context(|| {
            format!(
                "the embedding of article {:?} has no room for the list {name:?} of {} numbers: expected at most 4096 numbers in 8 \
                 lists; remove some of it",
                article.id,
                vectors.length()
            )
        })?;
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

/// The digests of what other encoders have made for a list.
fn read_others(data: &Path, name: &str, kept: &Path) -> Result<HashSet<Key>> {
    let mut others = HashSet::new();
    for entry in fs::read_dir(data).with_context(|| data.display().to_string())? {
        let path = entry?.path();
        let prefix = format!(".embed-{name}-");
        let is_list = path.file_name().is_some_and(|own| own.to_string_lossy().starts_with(&prefix));
        if is_list && path != kept {
            others.extend(Vectors::open(&path)?.digests());
        }
    }
    Ok(others)
}
