//! What is on offer: the release that answers, the catalogue as it sees it, and which method answers where
//! none is named. The three change together, at once; a request takes one [`LiveRelease`] and keeps it.
//!
//! Knows the engine and the store; must not know HTTP.

use std::{
    io,
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, PoisonError, RwLock},
    time::{Duration, Instant},
};

use futures_util::TryStreamExt;
use tokio::{sync::Mutex, task};

use crate::{
    domain::{CustomerId, Schema, Timestamp},
    models::{
        catalogue::Catalogue,
        engine::{Engine, LoadError, Serving},
        release::MANIFEST,
    },
    service::{
        completion::{Served, Ticket},
        evaluation::Evaluation,
        personas::Personas,
        routing::{Choice, Routing},
    },
    store::{Store, StoreError},
};

/// What a request is answered from.
#[derive(Debug, Clone)]
pub struct LiveRelease {
    pub serving: Arc<Serving>,
    pub catalogue: Arc<Catalogue>,
    pub routing: Arc<Routing>,
    /// What the release says of its own methods.
    pub evaluation: Arc<Evaluation>,
    /// What its methods say of their personas.
    pub personas: Arc<Personas>,
    /// The state of the tables that catalogue and routing were read at.
    articles: i64,
    settings: i64,
}

impl LiveRelease {
    /// The release's name.
    pub fn name(&self) -> &str {
        &self.serving.release().manifest().name
    }

    /// The method that answers where none is named.
    pub fn choose(&self, customer: Option<&CustomerId>) -> Choice {
        let default = self.serving.release().manifest().default_method;
        self.routing.choose(default, |method| self.serving.has(method), customer)
    }

    pub fn served(&self) -> Served<'_> {
        Served { serving: &self.serving, catalogue: &self.catalogue }
    }
}

/// Why another release is not on offer now. What was goes on being.
#[derive(Debug, thiserror::Error)]
pub enum ActivateError {
    #[error("there is no release {name:?} in {folder}", folder = .folder.display())]
    NoRelease { name: String, folder: PathBuf },
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The present offer and its changes.
#[derive(Debug)]
pub struct Releases {
    engine: Engine,
    store: Store,
    models: PathBuf,
    /// Held for as long as it takes to clone or replace the pointer.
    current: RwLock<Option<Arc<LiveRelease>>>,
    /// One change at a time: each begins from what the one before it left. Inside, a release that was activated
    /// elsewhere and could not be served here, and when it is worth another try.
    changing: Mutex<Option<(String, Instant)>>,
}

/// A release that could not be served is tried again after so long: its folder may be on its way.
const RETRY: Duration = Duration::from_secs(30);

/// The setting under which the routing is kept, and that of the release.
const ROUTING: &str = "routing";
const RELEASE: &str = "release";

impl Releases {
    /// `models` is the folder of releases.
    pub fn new(engine: Engine, store: Store, models: PathBuf) -> Self {
        Self { engine, store, models, current: RwLock::new(None), changing: Mutex::new(None) }
    }

    pub fn current(&self) -> Option<Arc<LiveRelease>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The schema that features are read by: the served release's, or the default one without a release.
    pub fn schema(&self) -> ServedSchema {
        ServedSchema(self.current())
    }

    /// The live release, if it is the one that gave the ticket's numbers their meaning.
    pub fn matching(&self, ticket: &Ticket) -> Option<Arc<LiveRelease>> {
        let same = |live: &Arc<LiveRelease>| {
            let mark = live.serving.release().vocabulary_mark();
            live.name() == ticket.release && ticket.vocabulary.is_none_or(|vocabulary| vocabulary == mark)
        };
        self.current().filter(same)
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The names of the releases in the folder, sorted.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let entries = match self.models.read_dir() {
            // A service may begin without any.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(names),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            if path.join(MANIFEST).is_file()
                && let Some(name) = path.file_name().and_then(|name| name.to_str())
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    pub fn folder_of(&self, name: &str) -> PathBuf {
        self.models.join(name)
    }

    /// Loads a release beside the one that answers and puts it in its place; every replica follows.
    pub async fn activate(&self, name: &str, now: Timestamp) -> Result<Arc<LiveRelease>, ActivateError> {
        let _changing = self.changing.lock().await;
        let serving = self.load(name).await?;
        self.store.settings().set(RELEASE, name, now).await?;
        Ok(self.take_up(serving).await?)
    }

    /// The same for this process alone.
    pub async fn serve(&self, name: &str) -> Result<Arc<LiveRelease>, ActivateError> {
        let _changing = self.changing.lock().await;
        let serving = self.load(name).await?;
        Ok(self.take_up(serving).await?)
    }

    /// Serves a release that is loaded already.
    pub async fn serve_loaded(&self, serving: Arc<Serving>) -> Result<Arc<LiveRelease>, StoreError> {
        let _changing = self.changing.lock().await;
        self.take_up(serving).await
    }

    /// The release that an admin activated last, on any replica.
    pub async fn activated(&self) -> Result<Option<String>, StoreError> {
        self.store.settings().get(RELEASE).await
    }

    /// Sets what answers where no method is named; every replica follows.
    pub async fn route(&self, routing: &Routing, now: Timestamp) -> Result<(), StoreError> {
        let text = serde_json::to_string(routing).expect("a routing is plain JSON; this is a bug");
        self.store.settings().set(ROUTING, &text, now).await?;
        self.refresh().await
    }

    /// Reads anew what has changed in the database since the present offer was made: called after a
    /// change made here, and now and then for those made elsewhere.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let mut failed = self.changing.lock().await;
        if let Some(name) = self.activated_elsewhere().await?
            && failed.as_ref().is_none_or(|(other, retry)| *other != name || Instant::now() >= *retry)
        {
            match self.load(&name).await {
                Ok(serving) => {
                    *failed = None;
                    return self.take_up(serving).await.map(drop);
                }
                Err(error) => {
                    tracing::error!(release = name, %error, "it was activated elsewhere and cannot be served here");
                    *failed = Some((name, Instant::now() + RETRY));
                }
            }
        }
        let Some(live) = self.current() else { return Ok(()) };
        let articles = self.store.articles().revision().await?;
        let settings = self.store.settings().revision().await?;
        if (articles, settings) == (live.articles, live.settings) {
            return Ok(());
        }
        let mut next = LiveRelease { articles, settings, ..LiveRelease::clone(&live) };
        if settings != live.settings {
            next.routing = self.routing().await?;
        }
        if articles != live.articles {
            next.catalogue = self.catalogue(&live.serving).await?;
        }
        self.put(next);
        Ok(())
    }

    /// The release that another replica's admin activated, where it is not the one that answers here.
    async fn activated_elsewhere(&self) -> Result<Option<String>, StoreError> {
        let activated = self.activated().await?;
        Ok(activated.filter(|name| self.current().is_none_or(|live| live.name() != name)))
    }

    async fn load(&self, name: &str) -> Result<Arc<Serving>, ActivateError> {
        let folder = self.folder(name)?;
        let engine = self.engine.clone();
        // Reading and warming up takes seconds of a core: not on a thread that answers requests.
        let load = task::spawn_blocking(move || engine.load(&folder));
        Ok(Arc::new(load.await.expect("loading does not panic; this is a bug")?))
    }

    async fn take_up(&self, serving: Arc<Serving>) -> Result<Arc<LiveRelease>, StoreError> {
        // Before the tables are read: what changes meanwhile is read again by the next refresh.
        let articles = self.store.articles().revision().await?;
        let settings = self.store.settings().revision().await?;
        let catalogue = self.catalogue(&serving).await?;
        let routing = self.routing().await?;
        let evaluation = Arc::new(Evaluation::new(Arc::clone(serving.release())));
        let personas = Arc::new(Personas::new(Arc::clone(&serving)));
        Ok(self.put(LiveRelease { serving, catalogue, routing, evaluation, personas, articles, settings }))
    }

    /// A plain name of a folder that holds a release.
    fn folder(&self, name: &str) -> Result<PathBuf, ActivateError> {
        let folder = self.models.join(name);
        let plain = Path::new(name).file_name().is_some_and(|only| only == name);
        if plain && folder.join(MANIFEST).is_file() {
            return Ok(folder);
        }
        Err(ActivateError::NoRelease { name: name.to_owned(), folder: self.models.clone() })
    }

    async fn catalogue(&self, serving: &Serving) -> Result<Arc<Catalogue>, StoreError> {
        let articles: Vec<_> = self.store.articles().all().try_collect().await?;
        let release = serving.release();
        Ok(Arc::new(Catalogue::new(articles.into_iter(), release.vocabulary(), release.schema())))
    }

    async fn routing(&self) -> Result<Arc<Routing>, StoreError> {
        let Some(text) = self.store.settings().get(ROUTING).await? else { return Ok(Arc::default()) };
        let routing = serde_json::from_str(&text).unwrap_or_else(|error| {
            // Written by another version, perhaps: the default is better than no answers.
            tracing::error!(%error, "the stored routing is not understood; the release's default answers");
            Routing::default()
        });
        Ok(Arc::new(routing))
    }

    fn put(&self, live: LiveRelease) -> Arc<LiveRelease> {
        let live = Arc::new(live);
        let old = self.current.write().unwrap_or_else(PoisonError::into_inner).replace(Arc::clone(&live));
        // Outside the lock: the last holder of a release frees its models.
        drop(old);
        live
    }
}

/// A schema that stays valid while another release is activated.
#[derive(Debug, Clone)]
pub struct ServedSchema(Option<Arc<LiveRelease>>);

impl Deref for ServedSchema {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        static DEFAULT: LazyLock<Schema> = LazyLock::new(Schema::default_schema);
        match &self.0 {
            Some(live) => live.serving.release().schema(),
            None => &DEFAULT,
        }
    }
}
