//! The live release: the release being served, its catalogue and its routing. The three change together; a request
//! takes one [`LiveRelease`] and keeps it to its end. An experiment may need a second one: it is loaded beside the live one, follows
//! the same changes, and answers the customers of its arms.
//!
//! Only `api` and `page` know HTTP.

pub mod administration;
pub(crate) mod api;
mod catalogue;
pub mod coverage;
mod metrics;
pub mod packed_release;
pub(crate) mod page;
pub mod release_folder;
pub mod routing;

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io,
    ops::Deref,
    path::PathBuf,
    sync::{Arc, LazyLock, PoisonError, RwLock, Weak},
    time::{Duration, Instant},
};

use atelier_core::domain::{
    ArticleId, ArticlePatch, CustomerId, ExperimentName, Method, Schema, Timestamp, list_methods,
};
use atelier_engine::{
    catalogue::{Catalogue, Coverage},
    evaluation::Evaluation,
    inference::{Articles, Engine, LoadError, Serving},
    release::ReleaseError,
};
use serde_json::json;
use tokio::{sync::Mutex, task};

use self::{
    release_folder::{AddError, Listed, Packed, ReleaseFolder},
    routing::{Choice, Routing},
};
use crate::{
    analysis::personas::Personas,
    completion::{Served, sample::Sample},
    experiments::{Chosen, Running, compares_releases, guard::Guard},
    outcomes::exposure::Exposure,
    platform::{
        db::{Author, Entry, Revisions, Store, StoreError},
        fault::{Fault, Field},
        http::{AppState, Kind, Problem},
    },
    steering::{documents::read_all, holdout::Holdout, looks::Looks, rules::Rules},
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
    /// The release that one of them needs besides this one.
    pub beside: Option<Beside>,
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

/// The release that an experiment needs besides the live one.
#[derive(Debug, Clone)]
pub struct Beside {
    pub release: String,
    pub experiment: ExperimentName,
    /// An error says why it is not loaded.
    pub loaded: Result<Arc<LiveRelease>, String>,
}

impl LiveRelease {
    pub fn name(&self) -> &str {
        &self.serving.release().manifest().name
    }

    /// The one beside it, if it is loaded.
    pub fn second(&self) -> Option<&Arc<Self>> {
        self.beside.as_ref()?.loaded.as_ref().ok()
    }

    /// This one or the one beside it, by name.
    pub fn find(&self, name: &str) -> Option<&Self> {
        if self.name() == name {
            Some(self)
        } else {
            self.second().map(Arc::as_ref).filter(|one| one.name() == name)
        }
    }

    /// The release that answers: the one beside it if the customer is in an arm that has it, and the request names no method.
    pub fn answering(self: Arc<Self>, named: Option<Method>, customer: Option<&CustomerId>) -> Arc<Self> {
        let (Some(second), None, Some(customer)) = (self.second(), named, customer) else { return self };
        let arm = self.experiments.choose(customer, || self.holdout.has(customer));
        match arm.and_then(|arm| arm.release.as_deref()) {
            Some(release) if release == second.name() => Arc::clone(second),
            _ => self,
        }
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
        let chosen =
            customer.and_then(|customer| self.experiments.choose(customer, || self.holdout.has(customer)));
        // What only the live release answers is in no arm that has another one.
        let has = |arm: &&Chosen| arm.release.as_deref().is_none_or(|release| release == self.name());
        let Some(Chosen { label, method, without_rules, .. }) = chosen.filter(has).cloned() else {
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

    /// Whether it has the changes up to these revisions of articles, settings and looks.
    fn is_up_to_date(&self, revisions: (i64, i64, i64)) -> bool {
        revisions == (self.articles, self.settings, self.looks_revision)
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
    #[error(
        "the experiment {experiment} compares releases; stop it, or ship one of its arms, to have another live release"
    )]
    Compared { experiment: ExperimentName },
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
    /// Allows one change at a time, as each starts from the result of the one before.
    changing: Mutex<Failed>,
    /// The release that was loaded last for an experiment that starts or is shipped. Who changes the experiment holds it.
    waiting: RwLock<Weak<LiveRelease>>,
}

/// The releases that failed to load here although another replica may serve them: why, and the time of the next attempt.
type Failed = HashMap<String, (String, Instant)>;

/// The wait before loading a failed release again: its folder may still be copying.
const RETRY: Duration = Duration::from_secs(30);

/// The names of the settings that hold the routing and the release's name.
pub(super) const ROUTING: &str = "routing";
pub(super) const RELEASE: &str = "release";

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
            changing: Mutex::default(),
            waiting: RwLock::default(),
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
        self.current().into()
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

    /// About how many bytes of memory it takes to load a release beside the live one.
    pub async fn estimate_memory(&self, name: &str) -> Result<u64, ReleaseError> {
        let articles = self.current().map_or(0, |live| live.catalogue.index().len());
        let (folder, name) = (Arc::clone(&self.folder), name.to_owned());
        let estimate = task::spawn_blocking(move || folder.estimate_memory(&name, articles));
        estimate.await.expect("reading a manifest does not panic; this is a bug")
    }

    /// A file for a packed release. Blocks.
    pub fn make_file(&self) -> io::Result<File> {
        self.folder.make_file()
    }

    /// Removes what killed processes left of packed releases. Blocks.
    pub fn remove_left_over(&self) {
        if let Err(error) = self.folder.remove_left_over()
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "cannot remove what is left of packed releases");
        }
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
        // Before it is loaded, so that there are never three.
        let experiments = self.store.experiments().list().await?.into_iter().map(|stored| stored.value);
        if let Some(experiment) = compares_releases(experiments.collect()) {
            return Err(ActivateError::Compared { experiment });
        }
        let next = self.prepare(self.load(name).await?).await?;
        if let (Some(figures), false) = (next.shortfall(self.least_known), force) {
            return Err(ActivateError::CoversLittle { name: name.to_owned(), figures });
        }
        let entry = Entry::new("release.activate", name, json!({"before": before, "after": name}));
        let settings = self.store.by(author);
        let set = settings.settings().set_unless(RELEASE, name, &entry, now, compares_releases).await?;
        set.map_err(|experiment| ActivateError::Compared { experiment })?;
        Ok(self.serve_both(next))
    }

    /// Loads a release for an experiment that starts or is shipped, by the checks of an activation. It is served once the experiment
    /// is stored, unless it is dropped before. One that is shipped may cover less of the catalogue by now: it answers already.
    pub async fn load_beside(&self, name: &str, is_shipped: bool) -> Result<Arc<LiveRelease>, ActivateError> {
        let _changing = self.changing.lock().await;
        let loaded = match self.find_loaded(name) {
            Some(loaded) => loaded,
            None => Arc::new(self.prepare(self.load(name).await?).await?),
        };
        if let (Some(figures), false) = (loaded.shortfall(self.least_known), is_shipped) {
            return Err(ActivateError::CoversLittle { name: name.to_owned(), figures });
        }
        *self.waiting.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&loaded);
        Ok(loaded)
    }

    /// A release that is loaded: live, beside the live one, or waiting for its experiment.
    fn find_loaded(&self, name: &str) -> Option<Arc<LiveRelease>> {
        let current = self.current();
        let second = current.as_ref().and_then(|live| live.second().cloned());
        let waiting = self.waiting.read().unwrap_or_else(PoisonError::into_inner).upgrade();
        [current, second, waiting].into_iter().flatten().find(|loaded| loaded.name() == name)
    }

    /// Whether another replica activated a release that this one does not serve.
    pub async fn is_behind(&self) -> Result<bool, StoreError> {
        let activated = self.store.revisions(RELEASE).await?.setting;
        Ok(activated.is_some_and(|name| self.current().is_none_or(|live| live.name() != name)))
    }

    /// Serves a release in this process only, and none beside it, for programs that ask without a customer.
    pub async fn serve_alone(&self, name: &str) -> Result<Arc<LiveRelease>, ActivateError> {
        let _changing = self.changing.lock().await;
        Ok(self.set_current(self.prepare(self.load(name).await?).await?))
    }

    /// Like [`Releases::activate`], for this process only.
    pub async fn serve(&self, name: &str) -> Result<Arc<LiveRelease>, ActivateError> {
        let mut failed = self.changing.lock().await;
        let next = self.prepare(self.load(name).await?).await?;
        Ok(self.finish(next, &mut failed).await?)
    }

    /// Serves a loaded release.
    pub async fn serve_loaded(&self, serving: Arc<Serving>) -> Result<Arc<LiveRelease>, StoreError> {
        let mut failed = self.changing.lock().await;
        let next = self.prepare(serving).await?;
        self.finish(next, &mut failed).await
    }

    /// Sets the routing. All replicas follow.
    pub async fn route(&self, routing: Routing, author: Author, now: Timestamp) -> Result<(), StoreError> {
        let text = serde_json::to_string(&routing).expect("a routing is plain JSON; this is a bug");
        let before = self.current().map(|live| live.routing.to_string());
        let entry =
            Entry::new("routing.set", ROUTING, json!({"before": before, "after": routing.to_string()}));
        self.store.by(author).settings().set(ROUTING, &text, &entry, now).await?;
        self.apply_change().await;
        Ok(())
    }

    /// Sets which customers are answered without rules. All replicas follow.
    pub async fn hold_out(&self, holdout: Holdout, author: Author, now: Timestamp) -> Result<(), StoreError> {
        holdout.set(&self.store, author, now).await?;
        self.apply_change().await;
        Ok(())
    }

    /// Applies a change that is stored already, so its caller hears of success even if it cannot be applied here yet.
    pub async fn apply_change(&self) {
        if let Err(error) = self.refresh().await {
            tracing::error!(
                %error,
                "a change is stored, but this replica cannot read it; it applies once the database can be read again"
            );
        }
    }

    /// Rereads what changed in the database since the live release was built. Called periodically, for changes by other
    /// replicas and for those that could not be read before.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let mut failed = self.changing.lock().await;
        let Revisions { articles, settings, looks, setting: activated } =
            self.store.revisions(RELEASE).await?;
        let (now, current) = (Instant::now(), self.current());
        let is_due = |failed: &Failed, name: &str| failed.get(name).is_none_or(|(_, retry)| now >= *retry);
        let is_current = |name: &String| current.as_ref().is_some_and(|live| live.name() == name);
        if let Some(name) = activated.filter(|name| !is_current(name)) {
            // It was beside the live one if an experiment was shipped.
            let loaded = self
                .find_loaded(&name)
                .map(|loaded| LiveRelease { beside: None, ..LiveRelease::clone(&loaded) });
            let next = match loaded {
                Some(loaded) => Some(self.update(&loaded, (articles, settings, looks)).await?),
                None if is_due(&failed, &name) && !self.refuses(&name).await => {
                    match self.load(&name).await {
                        Ok(serving) => Some(self.prepare(serving).await?),
                        Err(error) => {
                            tracing::error!(release = name, %error, "cannot serve a release that another replica activated");
                            failed.insert(name, (error.to_string(), Instant::now() + RETRY));
                            None
                        }
                    }
                }
                None => None,
            };
            if let Some(next) = next {
                return self.finish(next, &mut failed).await.map(drop);
            }
        }
        let Some(live) = current else { return Ok(()) };
        let is_missed = live
            .beside
            .as_ref()
            .is_some_and(|beside| beside.loaded.is_err() && is_due(&failed, &beside.release));
        if live.is_up_to_date((articles, settings, looks)) && !is_missed {
            return Ok(());
        }
        let next = self.update(&live, (articles, settings, looks)).await?;
        self.finish(next, &mut failed).await.map(drop)
    }

    /// The release with what has changed in the database since, up to these revisions of articles, settings and looks.
    async fn update(
        &self,
        live: &LiveRelease,
        (articles, settings, looks): (i64, i64, i64),
    ) -> Result<LiveRelease, StoreError> {
        let mut next = LiveRelease { articles, settings, looks_revision: looks, ..live.clone() };
        if live.is_up_to_date((articles, settings, looks)) {
            return Ok(next);
        }
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
        let before = (Arc::clone(&live.rules), Arc::clone(&live.catalogue));
        if settings != live.settings {
            next.routing = self.routing().await?;
            next.experiments = Arc::new(Running::new(read_all(&self.store).await?));
            next.holdout = Holdout::read(&self.store).await?;
            let stored = read_all(&self.store).await?;
            next.rules = compile(move || {
                let (rules, before) = before;
                Arc::new(Rules::compile(stored, &catalogue, Some((&rules, &before))))
            })
            .await;
        } else if !live.rules.is_empty() {
            next.rules = compile(move || before.0.with_catalogue(&before.1, &catalogue, None)).await;
        }
        Ok(next)
    }

    /// Serves the release, with the one beside it that an experiment needs.
    async fn finish(
        &self,
        mut next: LiveRelease,
        failed: &mut Failed,
    ) -> Result<Arc<LiveRelease>, StoreError> {
        let needed = next.experiments.second_release(next.name());
        next.beside = match needed.map(|(release, experiment)| (release.to_owned(), experiment.clone())) {
            None => None,
            Some((release, experiment)) => {
                let loaded = self.follow_beside(&release, &experiment, &next, failed).await?;
                Some(Beside { release, experiment, loaded })
            }
        };
        Ok(self.serve_both(next))
    }

    /// Serves the release, and the one beside it if there is one.
    fn serve_both(&self, mut next: LiveRelease) -> Arc<LiveRelease> {
        let has = |release: Option<&str>, method: Option<Method>| {
            let release = release.map_or(Some(&next), |release| next.find(release));
            release.is_some_and(|release| method.is_none_or(|method| release.serving.has(method)))
        };
        next.experiments = Arc::new(next.experiments.with_releases(has));
        if let Some(Beside { loaded: Ok(second), .. }) = &mut next.beside {
            // The settings that these are from: the second may have read later ones.
            *second = Arc::new(LiveRelease {
                experiments: Arc::clone(&next.experiments),
                routing: next.routing,
                holdout: next.holdout,
                settings: next.settings,
                beside: None,
                ..LiveRelease::clone(second)
            });
        }
        self.set_current(next)
    }

    /// The release that an experiment needs besides the next live one, with what has changed since; or why it is not loaded.
    async fn follow_beside(
        &self,
        name: &str,
        experiment: &ExperimentName,
        next: &LiveRelease,
        failed: &mut Failed,
    ) -> Result<Result<Arc<LiveRelease>, String>, StoreError> {
        if let Some(loaded) = self.find_loaded(name) {
            let revisions = (next.articles, next.settings, next.looks_revision);
            return Ok(Ok(Arc::new(self.update(&loaded, revisions).await?)));
        }
        let before = failed.get(name).cloned();
        if let Some((reason, retry)) = before {
            if Instant::now() < retry {
                return Ok(Err(reason));
            }
            if self.refuses(name).await {
                failed.insert(name.to_owned(), (reason.clone(), Instant::now() + RETRY));
                return Ok(Err(reason));
            }
        }
        match self.load(name).await {
            Ok(serving) => {
                failed.remove(name);
                tracing::info!(release = name, %experiment, "loaded beside the live release");
                Ok(Ok(Arc::new(self.prepare(serving).await?)))
            }
            Err(ActivateError::Store(error)) => Err(error),
            Err(error) => {
                tracing::error!(
                    release = name, %experiment, %error,
                    "cannot load a release beside the live one; the experiment has no customers here, and the live release answers them"
                );
                let reason = error.to_string();
                failed.insert(name.to_owned(), (reason.clone(), Instant::now() + RETRY));
                Ok(Err(reason))
            }
        }
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
            beside: None,
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

/// A start, another replica or an import may leave the live release without any article of the catalogue.
fn warn(before: Option<&LiveRelease>, next: &LiveRelease) {
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

impl From<Option<Arc<LiveRelease>>> for ServedSchema {
    fn from(live: Option<Arc<LiveRelease>>) -> Self {
        Self(live)
    }
}

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

impl AppState {
    pub fn releases(&self) -> &Arc<Releases> {
        self.part()
    }

    /// The live release, for one request to keep while it runs.
    pub(crate) fn live_release(&self) -> Result<Arc<LiveRelease>, Problem> {
        self.releases().current().ok_or_else(|| {
            let detail = "no release is live; make one with atelier-training, put it into the models folder and \
                          activate it";
            Problem::new(Kind::NoRelease, detail)
        })
    }

    pub(crate) fn schema(&self) -> ServedSchema {
        self.releases().schema()
    }
}
