//! A release: a folder of files that are served together, and the loader that rejects inconsistent ones.
//!
//! `release.json` lists every other file with its size and SHA-256. Training writes releases and the service reads
//! them, both through this module. The engine checks the ONNX files themselves.
//!
//! Must not know sessions, the database or HTTP.

mod manifest;

use std::{
    fs::{self, Metadata},
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::SystemTime,
};

pub use manifest::{DataSource, FORMAT, FileEntry, MANIFEST, Manifest, MethodEntry};

use atelier_core::{
    domain::{Article, ArticleEncoder, EncodedArticle, OutfitSize, Schema, Vocabulary},
    util::digest,
};
use atelier_files::FileError;
use rayon::prelude::*;

use crate::{averages::Averages, packed_article::PackedArticle, tables::Composition};

/// A release whose files have all been checked against its manifest.
#[derive(Debug)]
pub struct Release {
    folder: PathBuf,
    manifest: Manifest,
    schema: Schema,
    articles: Vec<Arc<PackedArticle>>,
    vocabulary: Vocabulary,
    encoder: Option<ArticleEncoder>,
    averages: OnceLock<Averages>,
}

/// Why a folder is not a release that can be served. Each error names the file, what was found and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    #[error("{path}: {source}", path = .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{path} is missing; a release is made with `atelier-training release`", path = .path.display())]
    NoManifest { path: PathBuf },
    #[error("{path} is not a release manifest: {source}", path = .path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("{path}: {reason}", path = .path.display())]
    Invalid { path: PathBuf, reason: String },
    #[error(
        "the folder {folder} holds a release called {found:?}; a release and its folder must have the same name",
        folder = .folder.display()
    )]
    Name { folder: PathBuf, found: String },
    #[error(transparent)]
    Rows(#[from] FileError),
}

/// Articles that are read together.
const CHUNK: usize = 4096;

/// Checks a release's name, which is also its folder's name.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if (1..=128).contains(&name.len()) && !name.starts_with('.') && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(format!(
        "a release's name has 1 to 128 letters, digits, dots, hyphens or underscores, found {name:?}"
    ))
}

impl Release {
    /// Reads and checks everything except the contents of the models.
    pub fn open(folder: &Path) -> Result<Self, ReleaseError> {
        let manifest = Manifest::read(folder)?;
        manifest.files.par_iter().try_for_each(|(name, entry)| check_file(&folder.join(name), entry))?;
        let mut schema = read_schema(&folder.join(&manifest.schema))?;
        if manifest.format == 1 {
            let OutfitSize { least, most } = schema.outfit_size();
            let bound = OutfitSize::PAPER.most;
            schema = schema.with_outfit_size(OutfitSize { least: least.min(bound), most: most.min(bound) });
        }
        let (articles, vocabulary) =
            read_articles(&folder.join(&manifest.articles), &schema, manifest.known)?;
        let encoder = manifest.encoder.as_ref().map(|file| read_encoder(&folder.join(file))).transpose()?;
        Ok(Self::new(folder, manifest, schema, articles, vocabulary, encoder))
    }

    fn new(
        folder: &Path,
        manifest: Manifest,
        schema: Schema,
        articles: Vec<Arc<PackedArticle>>,
        vocabulary: Vocabulary,
        encoder: Option<ArticleEncoder>,
    ) -> Self {
        let folder = folder.to_owned();
        Self { folder, manifest, schema, articles, vocabulary, encoder, averages: OnceLock::new() }
    }

    /// A release whose files its caller has just written: the manifest is not read, and digests are not checked.
    pub fn assemble(
        folder: &Path,
        manifest: Manifest,
        schema: Schema,
        articles: &[Article],
        encoder: Option<ArticleEncoder>,
    ) -> Result<Self, ReleaseError> {
        let articles: Vec<_> = articles.iter().map(|article| Arc::new(article.into())).collect();
        let vocabulary = vocabulary(folder, &articles, manifest.known)?;
        Ok(Self::new(folder, manifest, schema, articles, vocabulary, encoder))
    }

    /// Says what an article is made of; None if no model has tables of values.
    pub fn encoder(&self) -> Option<&ArticleEncoder> {
        self.encoder.as_ref()
    }

    /// An article's parts.
    pub fn compose(&self, article: &Article) -> Composition {
        let own = self.vocabulary.index_of(article.id.as_str());
        let trained = own.and_then(|own| Some(self.encode(&self.articles[own as usize].unpack())?.values));
        self.compose_beside(article, own, trained.as_deref())
    }

    /// The same of an article of the release as it was in training.
    pub fn compose_trained(&self, index: usize) -> Composition {
        self.compose_unpacked(index, &self.articles[index].unpack())
    }

    /// The same of one that is unpacked already.
    pub(super) fn compose_unpacked(&self, index: usize, article: &Article) -> Composition {
        match u32::try_from(index).ok().filter(|_| index < self.vocabulary.len()) {
            None => self.compose(article),
            own => {
                let values = self.encode(article).map(|encoded| encoded.values.into()).unwrap_or_default();
                Composition { own, values, ..Composition::default() }
            }
        }
    }

    /// The same of an article whose values in training are known, if it has its own vectors.
    pub(super) fn compose_beside(
        &self,
        article: &Article,
        own: Option<u32>,
        trained: Option<&[u32]>,
    ) -> Composition {
        let Some(EncodedArticle { values, embedding, .. }) = self.encode(article) else {
            return Composition { own, ..Composition::default() };
        };
        let Some(trained) = trained else {
            let averages = self.averages().averages_for(&values);
            return Composition { own, values: values.into(), averages, embedding: embedding.into() };
        };
        let values = if values == trained { values } else { self.averages().with_trained(&values, trained) };
        Composition { own, values: values.into(), ..Composition::default() }
    }

    fn encode(&self, article: &Article) -> Option<EncodedArticle> {
        self.encoder.as_ref().map(|encoder| encoder.encode(article))
    }

    /// The attributes of which a new article says nothing, and most articles of its type that the models know do.
    pub fn attributes_lacking(&self, values: &[u32]) -> impl Iterator<Item = &str> {
        self.averages().attributes_lacking(values)
    }

    fn averages(&self) -> &Averages {
        self.averages.get_or_init(|| {
            let known = self.articles[..self.vocabulary.len()].par_iter();
            let values = known.filter_map(|article| Some(self.encode(&article.unpack())?.values));
            let values: Vec<Vec<u32>> = values.collect();
            self.count_averages(values.iter().map(Vec::as_slice))
        })
    }

    /// Counts the averages of articles whose values are at hand, so that they are not encoded again.
    pub(super) fn set_averages<'a>(&self, values: impl Iterator<Item = &'a [u32]>) {
        self.averages.get_or_init(|| self.count_averages(values));
    }

    fn count_averages<'a>(&self, values: impl Iterator<Item = &'a [u32]>) -> Averages {
        self.encoder.as_ref().map(|encoder| Averages::count(encoder, values)).unwrap_or_default()
    }

    /// The path of a method's tables, if it has some.
    pub fn tables_path(&self, method: &MethodEntry) -> Option<PathBuf> {
        method.tables.as_ref().map(|file| self.folder.join(file))
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// In vocabulary order; those that are new to the models come last.
    pub fn articles(&self) -> &[Arc<PackedArticle>] {
        &self.articles
    }

    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The path of a method's model.
    pub fn model_path(&self, method: &MethodEntry) -> PathBuf {
        self.folder.join(&method.file)
    }

    /// Checks a method's model against the manifest again, in case the file has changed since the release was opened.
    pub fn check_model(&self, method: &MethodEntry) -> Result<(), ReleaseError> {
        let entry = self.manifest.files.get(&method.file);
        check_file(&self.model_path(method), entry.expect("its entries were checked"))
    }

    /// The path of an optional file, if the manifest lists it. Checks the file again, because such files are read long
    /// after the release was opened.
    pub fn optional_file(&self, name: &str) -> Result<Option<PathBuf>, ReleaseError> {
        self.manifest.optional_file(&self.folder, name)
    }

    /// The path of a method's pair file, if it has one.
    pub fn pair_path(&self, method: &MethodEntry) -> Option<PathBuf> {
        method.pair.as_ref().map(|file| self.folder.join(file))
    }
}

impl Manifest {
    /// Like [`Release::optional_file`], for a folder of which nothing else is read.
    pub fn optional_file(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>, ReleaseError> {
        let Some(entry) = self.files.get(name) else { return Ok(None) };
        let path = folder.join(name);
        check_file(&path, entry)?;
        Ok(Some(path))
    }
}

fn read_encoder(path: &Path) -> Result<ArticleEncoder, ReleaseError> {
    let text = read_text(path)?;
    ArticleEncoder::parse(&text).map_err(|error| invalid(path, &error))
}

/// The articles in vocabulary order, and the vocabulary: the first `known` of them, or all.
fn read_articles(
    path: &Path,
    schema: &Schema,
    known: Option<usize>,
) -> Result<(Vec<Arc<PackedArticle>>, Vocabulary), ReleaseError> {
    let mut rows = atelier_files::read::<Article>(path, schema)?;
    let mut articles = Vec::new();
    loop {
        let chunk = rows.next_rows(CHUNK);
        if chunk.is_empty() {
            break;
        }
        let packed =
            chunk.into_par_iter().map(|row| row.map(|row| Arc::new(PackedArticle::from(&row.value))));
        let packed: Result<Vec<_>, _> = packed.collect();
        articles.extend(packed.map_err(|error| invalid(path, &error))?);
    }
    let vocabulary = vocabulary(path, &articles, known)?;
    Ok((articles, vocabulary))
}

fn vocabulary(
    path: &Path,
    articles: &[Arc<PackedArticle>],
    known: Option<usize>,
) -> Result<Vocabulary, ReleaseError> {
    let known = known.unwrap_or(articles.len());
    if known > articles.len() {
        let reason = format!("{known} articles are known, but the release has {}", articles.len());
        return Err(invalid(path, &reason));
    }
    Vocabulary::new(articles[..known].iter().map(|article| article.id.clone()).collect())
        .map_err(|error| invalid(path, &error))
}

/// The sizes and times of change of a release's files. Files that have changed since have another state.
#[derive(Debug, Clone, PartialEq)]
pub struct FolderState(Vec<(u64, SystemTime)>);

/// Reads the manifest and checks that its files are there in their sizes. Reads no other file.
pub fn glance(folder: &Path) -> Result<(Manifest, FolderState), ReleaseError> {
    let manifest = Manifest::read(folder)?;
    let state = |path: &Path| -> Result<_, ReleaseError> {
        let metadata = fs::metadata(path).map_err(file_error(path))?;
        Ok((metadata.len(), metadata.modified().map_err(file_error(path))?))
    };
    let mut states = vec![state(&folder.join(MANIFEST))?];
    for (name, entry) in &manifest.files {
        let path = folder.join(name);
        check_size(&path, entry)?;
        states.push(state(&path)?);
    }
    Ok((manifest, FolderState(states)))
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> ReleaseError {
    move |source| ReleaseError::File { path: path.to_owned(), source }
}

fn invalid(path: &Path, reason: &impl ToString) -> ReleaseError {
    ReleaseError::Invalid { path: path.to_owned(), reason: reason.to_string() }
}

/// Reading anything else, such as a pipe, could take for ever.
fn check_is_file(path: &Path) -> Result<Metadata, ReleaseError> {
    let found = fs::metadata(path).map_err(file_error(path))?;
    if found.is_file() { Ok(found) } else { Err(invalid(path, &"it is not a file with contents")) }
}

fn check_size(path: &Path, entry: &FileEntry) -> Result<(), ReleaseError> {
    let found = check_is_file(path)?.len();
    if found != entry.bytes {
        return Err(invalid(path, &format!("{found} bytes, the manifest says {}", entry.bytes)));
    }
    Ok(())
}

/// Checks the size first, to tell a truncated file from a changed one without reading it.
fn check_file(path: &Path, entry: &FileEntry) -> Result<(), ReleaseError> {
    check_size(path, entry)?;
    let found = digest::sha256_of_file(path).map_err(file_error(path))?;
    if found != entry.sha256 {
        return Err(invalid(path, &format!("SHA-256 {found}, the manifest says {}", entry.sha256)));
    }
    Ok(())
}

/// Reads a whole file, whose length is checked first: a stranger may have packed the release.
fn read_text(path: &Path) -> Result<String, ReleaseError> {
    /// Far more than a manifest, a schema or an encoder has.
    const MOST: u64 = 16 << 20;
    let found = check_is_file(path)?.len();
    if found > MOST {
        return Err(invalid(path, &format!("{found} bytes, expected at most {MOST}")));
    }
    fs::read_to_string(path).map_err(file_error(path))
}

fn read_schema(path: &Path) -> Result<Schema, ReleaseError> {
    let text = read_text(path)?;
    Schema::parse_released(&text).map_err(|error| invalid(path, &error))
}

#[cfg(test)]
mod tests;
