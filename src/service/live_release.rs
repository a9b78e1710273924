//! The live release: the release being served, its catalogue and its routing. The three change together; a request
//! takes one [`LiveRelease`] and keeps it to its end.
//!
//! Knows the engine and the store; must not know HTTP.

mod catalogue;

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    ops::Deref,
    path::PathBuf,
    sync::{Arc, LazyLock, PoisonError, RwLock},
    time::{Duration, Instant},
};

use atelier_core::domain::{ArticleId, ArticlePatch, CustomerId, Method, Schema, Timestamp, list_methods};
use atelier_engine::{
    catalogue::{Catalogue, Coverage},
    evaluation::Evaluation,
    inference::{Articles, Engine, LoadError, Serving},
};
use serde_json::json;
use tokio::{sync::Mutex, task};

use crate::{
    service::{
        completion::Served,
        documents::read_all,
        experiments::{Chosen, Running},
        exposure::Exposure,
        fault::{Fault, Field},
        guard::Guard,
        holdout::Holdout,
        looks::Looks,
        personas::Personas,
        release_folder::{AddError, Listed, Packed, ReleaseFolder},
        routing::{Choice, Routing},
        rules::Rules,
        sample::Sample,
    },
    store::{Author, Entry, Revisions, Store, StoreError},
};

/// A snapshot of everything that answers a request.
#[derive(Debug, Clone)]
pub struct LiveRelease {
    pub serving: Arc<Serving>,
    pub catalogue: Arc<Catalogue>,
    /// The catalogue as the models take it.
    pub rows: Arc<Articles>,
    pub routing: Routing,
    /// The experiments that run.
    pub experiments: Arc<Running>,
    /// The shop's active rules, compiled for the catalogue.
    pub rules: Arc<Rules>,
    /// The customers who are answered without rules.
    pub holdout: Holdout,
    /// The shop's published looks.
    pub looks: Arc<Looks>,
    pub evaluation: Arc<Evaluation>,
    pub personas: Arc<Personas>,
    pub exposure: Exposure,
    pub guard: Guard,
    pub sample: Arc<Sample>,
    /// The revisions of the tables behind the catalogue, behind the routing and the rules, and behind the looks.
    articles: i64,
    settings: i64,
    looks_revision: i64,
}

impl LiveRelease {
    pub fn name(&self) -> &str {
        &self.serving.release().manifest().name
    }

    /// The named method, or the one that the routing chooses.
    pub fn choose_unless(&self, named: Option<Method>, customer: Option<&CustomerId>) -> Choice {
        named.map_or_else(|| self.choose(customer), Choice::from)
    }

    /// The method that answers without an experiment.
    pub fn default_method(&self) -> Method {
        let default = self.serving.release().manifest().default_method;
        self.routing.default_method(default, |method| self.serving.has(method))
    }

    /// Chooses the method for a request that names none.
    pub fn choose(&self, customer: Option<&CustomerId>) -> Choice {
        let has = |method| self.serving.has(method);
        let chosen = customer
            .and_then(|customer| self.experiments.choose(customer, has, || self.holdout.has(customer)));
        let Some(Chosen { label, method, without_rules }) = chosen.cloned() else {
            return self.default_method().into();
        };
        let method = method.unwrap_or_else(|| self.default_method());
        Choice { method, arm: Some(label), without_rules }
    }

    /// The methods that can suggest articles that they were not trained with.
    pub fn open_methods(&self) -> impl Iterator<Item = Method> {
        self.serving.methods().filter(|method| self.serving.is_open(*method))
    }

    /// What follows for articles that the release was not trained with.
    pub fn lack_of_articles(&self) -> String {
        match &*list_methods(self.open_methods()) {
            "" => "nothing can be suggested".into(),
            open => format!("only {open} can suggest them, by their attributes alone"),
        }
    }

    /// The article that an id names, its own or a variant's; the same id if there is none.
    pub fn article_id(&self, id: &ArticleId) -> ArticleId {
        self.known_article_id(id).unwrap_or_else(|| id.clone())
    }

    /// The same; None if there is none.
    pub fn known_article_id(&self, id: &ArticleId) -> Option<ArticleId> {
        let position = self.catalogue.position_of(id.as_str())?;
        Some(self.catalogue.any_article(position).map_or(id, |article| &article.id).clone())
    }

    /// How many of the catalogue's articles the release has, and what follows; None if that is this share of them at least.
    fn shortfall(&self, least: f64) -> Option<String> {
        let Coverage { both, only_catalogue, .. } = self.catalogue.coverage();
        let (all, effect) = (both + only_catalogue, self.lack_of_articles());
        if both == 0 {
            return (all > 0).then(|| format!("none of the catalogue's articles ({all}), so {effect}"));
        }
        let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let share = count(both) / count(all);
        (share < least).then(|| {
            let [found, least] = [share, least].map(|share| format!("{:.1} %", share * 100.0));
            format!(
                "{both} of the catalogue's {all} articles ({found}, at least {least} by models.least_known), and as for the others \
                 {effect}"
            )
        })
    }

    /// The same with these changes of articles that the shop has, for one answer: it is as if they were stored, but models see
    /// the stored ones.
    ///
    /// # Errors
    /// What an article cannot be, by the id in the change.
    pub fn with_changes(&self, changes: &[ArticlePatch]) -> Result<Self, Vec<Fault>> {
        let (mut articles, mut faults) = (BTreeMap::new(), Vec::new());
        for change in changes {
            let Some(position) = self.catalogue.position_of(change.id.as_str()) else { continue };
            let Some(stored) = self.catalogue.article(position) else { continue };
            let before = articles.remove(&position).unwrap_or_else(|| stored.unpack());
            match change.apply(Some(before)) {
                Ok(article) => drop(articles.insert(position, article)),
                Err(error) => {
                    faults.push(Fault::new(Field::from("live").item(change.id.as_str()), error.to_string()));
                }
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let positions: Vec<u32> = articles.keys().copied().collect();
        let articles = articles.into_values().map(|article| (article.id.clone(), Some(article)));
        let next = self.catalogue.with_changes(articles, self.serving.release());
        let (catalogue, _) = next.expect("an article of the same type keeps its position; this is a bug");
        let rules = self.rules.with_catalogue(&self.catalogue, &catalogue, Some(&positions));
        Ok(Self { catalogue: Arc::new(catalogue), rules, ..self.clone() })
    }

    pub fn served(&self) -> Served<'_> {
        Served {
            serving: &self.serving,
            catalogue: &self.catalogue,
            articles: &self.rows,
            rules: &self.rules,
        }
    }
}

/// Why a release could not be activated. The live release stays.
#[derive(Debug, thiserror::Error)]
pub enum ActivateError {
    #[error("there is no release {name:?} in {folder}", folder = .folder.display())]
    NoRelease { name: String, folder: PathBuf },
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(
        "release {name} has {figures}; import the articles that it was trained with, activate a release for this catalogue, \
         or force it"
    )]
    CoversLittle { name: String, figures: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The name of the last activated release, on any replica.
pub async fn activated(store: &Store) -> Result<Option<String>, StoreError> {
    store.settings().get(RELEASE).await
}

/// The live release, and changes to it.
#[derive(Debug)]
pub struct Releases {
    engine: Engine,
    store: Store,
    /// The shop's, of limits of prices.
    currency: Arc<str>,
    folder: Arc<ReleaseFolder>,
    exposure: Exposure,
    guard: Guard,
    sample: Arc<Sample>,
    /// The least share of the catalogue's articles that a release has, unless it is forced.
    least_known: f64,
    /// Locked only to clone or replace the pointer.
    current: RwLock<Option<Arc<LiveRelease>>>,
    /// Allows one change at a time, as each starts from the result of the one before. Holds a release that was activated
    /// on another replica and failed to load here, with the time of the next attempt.
    changing: Mutex<Option<(String, Instant)>>,
}

/// The wait before loading a failed release again: its folder may still be copying.
const RETRY: Duration = Duration::from_secs(30);

/// The names of the settings that hold the routing and the release's name.
pub(super) const ROUTING: &str = "routing";
const RELEASE: &str = "release";

impl Releases {
    /// `models` is the folder of releases, and `currency` the shop's.
    pub fn new(engine: Engine, store: Store, models: PathBuf, currency: &str) -> Self {
        Self {
            engine,
            store,
            currency: currency.into(),
            folder: Arc::new(ReleaseFolder::new(models)),
            exposure: Exposure::default(),
            guard: Guard::default(),
            sample: Arc::default(),
            least_known: 0.5,
            current: RwLock::new(None),
            changing: Mutex::new(None),
        }
    }

    /// Refuses releases that have a smaller share of the catalogue's articles than this.
    pub fn require_known(self, least_known: f64) -> Self {
        Self { least_known, ..self }
    }

    pub fn current(&self) -> Option<Arc<LiveRelease>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The live release's schema, or the default one without a live release.
    pub fn schema(&self) -> ServedSchema {
        ServedSchema(self.current())
    }

    /// The folder of a release, live or not.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        self.folder.find(name)
    }

    /// See [`Store::is_gone`].
    pub fn is_database_gone(&self) -> bool {
        self.store.is_gone()
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What all of its releases count.
    pub fn exposure(&self) -> &Exposure {
        &self.exposure
    }

    /// How the arms of experiments answer, of all of its releases.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// What was asked lately, of all of its releases.
    pub fn sample(&self) -> &Sample {
        &self.sample
    }

    /// The releases in the folder, by name. Reads their manifests, so it blocks.
    pub fn list(&self) -> io::Result<Vec<Listed>> {
        self.folder.list()
    }

    /// A file for a packed release. Blocks.
    pub fn make_file(&self) -> io::Result<File> {
        self.folder.make_file()
    }

    /// Adds a packed release to the folder if it can be loaded. Serves nothing else than before.
    pub async fn add(&self, packed: Packed, author: Author, now: Timestamp) -> Result<Listed, AddError> {
        let folder = Arc::clone(&self.folder);
        let (unpacked, sha256) = blocking(move || Ok((folder.unpack(&packed)?, packed.sha256))).await?;
        // One release is loaded at a time, so that there is memory for it.
        let _changing = self.changing.lock().await;
        let (folder, engine) = (Arc::clone(&self.folder), self.engine.clone());
        let unpacked = blocking(move || folder.try_out(&engine, &unpacked).map(|()| unpacked)).await?;
        // First, so that no release is there without its entry.
        let entry = Entry::new("release.add", &unpacked.name, json!({"sha256": sha256}));
        self.store.by(author).audit().append(&entry, now).await?;
        let folder = Arc::clone(&self.folder);
        blocking(move || folder.take(&unpacked)).await
    }

    /// Loads a release beside the live one, then replaces it. All replicas follow. A release of too few articles of the
    /// catalogue must be forced.
    pub async fn activate(
        &self,
        name: &str,
        force: bool,
        author: Author,
        now: Timestamp,
    ) -> Result<Arc<LiveRelease>, ActivateError> {
        let _changing = self.changing.lock().await;
        let before = self.current().map(|live| live.name().to_owned());
        let next = self.prepare(self.load(name).await?).await?;
        if let (Some(figures), false) = (next.shortfall(self.least_known), force) {
            return Err(ActivateError::CoversLittle { name: name.to_owned(), figures });
        }
        let entry = Entry::new("release.activate", name, json!({"before": before, "after": name}));
        self.store.by(author).settings().set(RELEASE, name, &entry, now).await?;
        Ok(self.set_current(next))
    }

    /// Like [`Releases::activate`], for this process only.
    pub async fn serve(&self, name: &str) -> Result<Arc<LiveRelease>, ActivateError> {
        let _changing = self.changing.lock().await;
        let serving = self.load(name).await?;
        Ok(self.replace(serving).await?)
    }

    /// Serves a loaded release.
    pub async fn serve_loaded(&self, serving: Arc<Serving>) -> Result<Arc<LiveRelease>, StoreError> {
        let _changing = self.changing.lock().await;
        self.replace(serving).await
    }

    /// Sets the routing. All replicas follow.
    pub async fn route(&self, routing: Routing, author: Author, now: Timestamp) -> Result<(), StoreError> {
        let text = serde_json::to_string(&routing).expect("a routing is plain JSON; this is a bug");
        let before = self.current().map(|live| live.routing.to_string());
        let entry =
            Entry::new("routing.set", ROUTING, json!({"before": before, "after": routing.to_string()}));
        self.store.by(author).settings().set(ROUTING, &text, &entry, now).await?;
        self.refresh().await
    }

    /// Sets which customers are answered without rules. All replicas follow.
    pub async fn hold_out(&self, holdout: Holdout, author: Author, now: Timestamp) -> Result<(), StoreError> {
        holdout.set(&self.store, author, now).await?;
        self.refresh().await
    }

    /// Rereads what changed in the database since the live release was built. Called after each change in this process,
    /// and periodically for changes by other replicas.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let mut failed = self.changing.lock().await;
        let Revisions { articles, settings, looks, setting: activated } =
            self.store.revisions(RELEASE).await?;
        let current = self.current();
        let is_current = |name: &String| current.as_ref().is_some_and(|live| live.name() == name);
        if let Some(name) = activated.filter(|name| !is_current(name))
            && failed.as_ref().is_none_or(|(other, retry)| *other != name || Instant::now() >= *retry)
            && !self.refuses(&name).await
        {
            match self.load(&name).await {
                Ok(serving) => {
                    *failed = None;
                    return self.replace(serving).await.map(drop);
                }
                Err(error) => {
                    tracing::error!(release = name, %error, "cannot serve a release that another replica activated");
                    *failed = Some((name, Instant::now() + RETRY));
                }
            }
        }
        let Some(live) = current else { return Ok(()) };
        if (articles, settings, looks) == (live.articles, live.settings, live.looks_revision) {
            return Ok(());
        }
        let mut next = LiveRelease { articles, settings, looks_revision: looks, ..LiveRelease::clone(&live) };
        if articles != live.articles {
            let before = (Arc::clone(&live.catalogue), Arc::clone(&live.rows));
            let changed =
                catalogue::read_changes(&self.store, &live.serving, before, live.articles, articles).await?;
            (next.catalogue, next.rows) = match changed {
                Some(changed) => changed,
                None => self.read_catalogue(&live.serving).await?,
            };
        }
        let catalogue = Arc::clone(&next.catalogue);
        if looks != live.looks_revision {
            next.looks = Arc::new(Looks::compile(read_all(&self.store).await?, &catalogue));
        } else if !live.looks.is_empty() && articles != live.articles {
            next.looks = Arc::new(live.looks.with_catalogue(&catalogue));
        }
        if settings != live.settings {
            next.routing = self.routing().await?;
            next.experiments = Arc::new(Running::new(read_all(&self.store).await?));
            next.holdout = Holdout::read(&self.store).await?;
            let stored = read_all(&self.store).await?;
            next.rules = compile(move || {
                Arc::new(Rules::compile(stored, &catalogue, Some((&live.rules, &live.catalogue))))
            })
            .await;
        } else if !live.rules.is_empty() {
            next.rules = compile(move || live.rules.with_catalogue(&live.catalogue, &catalogue, None)).await;
        }
        self.set_current(next);
        Ok(())
    }

    /// Whether loading the release would fail as it did before.
    async fn refuses(&self, name: &str) -> bool {
        let (folder, name) = (Arc::clone(&self.folder), name.to_owned());
        let refuses = task::spawn_blocking(move || folder.refuses(&name));
        refuses.await.expect("reading a manifest does not panic; this is a bug")
    }

    async fn load(&self, name: &str) -> Result<Arc<Serving>, ActivateError> {
        let folder = self.folder.path().to_owned();
        let Some(release) = self.folder.find(name) else {
            return Err(ActivateError::NoRelease { name: name.to_owned(), folder });
        };
        let (folder, engine, name) = (Arc::clone(&self.folder), self.engine.clone(), name.to_owned());
        // Reading and trying the models takes seconds of a core.
        let load = task::spawn_blocking(move || folder.load(&engine, &name, &release));
        Ok(Arc::new(load.await.expect("loading does not panic; this is a bug")?))
    }

    async fn replace(&self, serving: Arc<Serving>) -> Result<Arc<LiveRelease>, StoreError> {
        Ok(self.set_current(self.prepare(serving).await?))
    }

    async fn prepare(&self, serving: Arc<Serving>) -> Result<LiveRelease, StoreError> {
        // Read before the tables, so that the next refresh rereads what changes meanwhile.
        let articles = self.store.articles().revision().await?;
        let settings = self.store.settings().revision().await?;
        let looks_revision = self.store.looks().revision().await?;
        let (catalogue, rows) = self.read_catalogue(&serving).await?;
        let (routing, holdout) = (self.routing().await?, Holdout::read(&self.store).await?);
        let experiments = Arc::new(Running::new(read_all(&self.store).await?));
        let (stored, compiled_for) = (read_all(&self.store).await?, Arc::clone(&catalogue));
        let rules = compile(move || Arc::new(Rules::compile(stored, &compiled_for, None))).await;
        let looks = Arc::new(Looks::compile(read_all(&self.store).await?, &catalogue));
        let evaluation = Arc::new(Evaluation::new(Arc::clone(serving.release())));
        let personas = Arc::new(Personas::new(Arc::clone(&serving)));
        let (exposure, guard, sample) = (self.exposure.clone(), self.guard.clone(), Arc::clone(&self.sample));
        Ok(LiveRelease {
            serving,
            catalogue,
            rows,
            routing,
            experiments,
            rules,
            holdout,
            looks,
            evaluation,
            personas,
            exposure,
            guard,
            sample,
            articles,
            settings,
            looks_revision,
        })
    }

    async fn read_catalogue(&self, serving: &Arc<Serving>) -> Result<catalogue::Both, StoreError> {
        catalogue::read(&self.store, Arc::clone(&self.currency), serving).await
    }

    async fn routing(&self) -> Result<Routing, StoreError> {
        let Some(text) = self.store.settings().get(ROUTING).await? else { return Ok(Routing::default()) };
        Ok(serde_json::from_str(&text).unwrap_or_else(|error| {
            // Another version may have written it; the default is better than no answers.
            tracing::error!(%error, "cannot read the stored routing; using the release's default method");
            Routing::default()
        }))
    }

    fn set_current(&self, live: LiveRelease) -> Arc<LiveRelease> {
        let live = Arc::new(live);
        warn(self.current().as_deref(), &live);
        let old = self.current.write().unwrap_or_else(PoisonError::into_inner).replace(Arc::clone(&live));
        // Dropped outside the lock: this may free the old models.
        drop(old);
        live
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AddError> + Send + 'static,
) -> Result<T, AddError> {
    task::spawn_blocking(work).await.expect("adding a release does not panic; this is a bug")
}

/// Compiling many rules for a large catalogue takes all cores for some time.
async fn compile(compile: impl FnOnce() -> Arc<Rules> + Send + 'static) -> Arc<Rules> {
    let compiled = task::spawn_blocking(compile).await;
    compiled.expect("compiling rules does not panic; this is a bug")
}

/// Warns of what is wrong with the catalogue since the live release before. A start, another replica or an import may leave the
/// live release without any article of it.
fn warn(before: Option<&LiveRelease>, next: &LiveRelease) {
    let unreadable = |live: &LiveRelease| live.catalogue.sets().unreadable().count();
    let articles = unreadable(next);
    let first = next.catalogue.sets().unreadable().iter().next();
    if let Some(first) = first.and_then(|position| next.catalogue.article(position))
        && before.is_none_or(|before| unreadable(before) != articles)
    {
        tracing::warn!(
            articles,
            first = %first.id,
            "articles are stored with a price or stock that an import would refuse: such a price counts as none, such stock \
             as not in stock unless it is a number above 0; store these articles again"
        );
    }
    let was_said = |before: &LiveRelease| before.name() == next.name() && before.catalogue.is_all_new();
    if next.catalogue.is_all_new() && !before.is_some_and(was_said) {
        let coverage = next.catalogue.coverage();
        tracing::error!(
            release = next.name(),
            only_in_catalogue = coverage.only_catalogue,
            only_in_release = coverage.only_release,
            "the live release has none of the catalogue's articles, so {}; import the articles that it was trained with, or \
             activate a release for this catalogue",
            next.lack_of_articles()
        );
    }
}

/// A schema that outlives the activation of another release.
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
