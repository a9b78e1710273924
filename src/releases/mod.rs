//! The live release: the release being served, its catalogue and its routing. The three change together; a request
//! takes one [`LiveRelease`] and keeps it to its end. An experiment may need a second one: it is loaded next to the live one, follows
//! the same changes, and answers the customers of its arms. What features compile for it follows it: see [`followers`].
//!
//! Only `api` and `page` know HTTP.

pub(crate) mod api;
pub mod arms;
mod catalogue;
pub mod coverage;
pub mod followers;
mod metrics;
pub mod packed_release;
pub(crate) mod page;
pub mod release_folder;
pub mod routing;
mod sql;
pub mod trial;

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
    ArticleId, ArticlePatch, CustomerId, ExperimentName, Method, Schema, Synonyms, Timestamp, list_methods,
};
use atelier_engine::{
    catalogue::{Catalogue, Coverage},
    evaluation::{Evaluation, Stored},
    inference::{Articles, Engine, LoadError, Serving},
    release::ReleaseError,
};
use serde_json::json;
use tokio::{sync::Mutex, task};

use self::{
    arms::{Arms, Chosen},
    followers::{Change, Follower, Following},
    release_folder::{AddError, Listed, Packed, ReleaseFolder},
    routing::{Holdout, Route, Routing},
    trial::Trial,
};
use crate::platform::{
    db::{Author, CatalogueMemory, Copies, Entry, Named, Revisions, Store, StoreError},
    fault::{Fault, Field},
    http::{AppState, Kind, Problem},
};

/// A snapshot of everything that answers a request.
#[derive(Debug, Clone)]
pub struct LiveRelease {
    pub serving: Arc<Serving>,
    pub catalogue: Arc<Catalogue>,
    /// The catalogue as the models take it.
    pub rows: Arc<Articles>,
    pub routing: Routing,
    /// Those of the experiments that run.
    pub arms: Arc<Arms>,
    /// The release that one of them needs besides this one.
    pub beside: Option<Beside>,
    /// The customers who are answered without rules.
    pub holdout: Holdout,
    pub bought_again: Arc<[String]>,
    pub evaluation: Arc<Evaluation>,
    followers: Arc<[Arc<dyn Follower>]>,
    /// The revisions of the tables behind the catalogue, behind the routing and the rules, and behind the looks.
    articles: i64,
    settings: i64,
    looks: i64,
    /// The catalogue's memory in this release and the one next to it.
    pub memory: CatalogueMemory,
    /// The revision of articles that needs too much memory in these releases: the catalogue stays as it was before.
    too_large: Option<(i64, Copies)>,
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

    /// The one next to it, if it is loaded.
    pub fn second(&self) -> Option<&Arc<Self>> {
        self.beside.as_ref()?.loaded.as_ref().ok()
    }

    /// This one or the one next to it, by name.
    pub fn find(&self, name: &str) -> Option<&Self> {
        if self.name() == name {
            Some(self)
        } else {
            self.second().map(Arc::as_ref).filter(|one| one.name() == name)
        }
    }

    /// The method that answers without an experiment.
    pub fn default_method(&self) -> Method {
        let default = self.serving.release().manifest().default_method;
        self.routing.default_method(default, |method| self.serving.has(method))
    }

    /// A request's route: the method that it names, or the release and the method of the customer's arm. Chooses the arm, so it is
    /// called once for a request.
    pub fn route(self: Arc<Self>, named: Option<Method>, customer: Option<CustomerId>) -> Route {
        let customer_of_arm = customer.as_ref().filter(|_| named.is_none());
        let chosen = customer_of_arm
            .and_then(|customer| self.arms.choose(customer, || self.holdout.has(customer)))
            // An arm with another release has no request that only the live one answers.
            .filter(|arm| arm.release.as_deref().is_none_or(|release| self.find(release).is_some()));
        let Some(Chosen { label, release, method, without_rules }) = chosen.cloned() else {
            let method = named.unwrap_or_else(|| self.default_method());
            return Route { live: self, customer, named, method, arm: None, without_rules: Arc::default() };
        };
        let second = self.second().filter(|second| release.as_deref() == Some(second.name())).cloned();
        let live = second.unwrap_or(self);
        let method = method.unwrap_or_else(|| live.default_method());
        Route { live, customer, named, method, arm: Some(label), without_rules }
    }

    /// The methods that can suggest articles that they were not trained with.
    pub fn open_methods(&self) -> impl Iterator<Item = Method> {
        self.serving.methods().filter(|method| self.serving.is_open(*method))
    }

    /// Consequence for articles that the release was not trained with.
    pub fn lack_of_articles(&self) -> String {
        match &*list_methods(self.open_methods()) {
            "" => "nothing can be suggested".into(),
            open => format!("only {open} can suggest them, by their attributes alone"),
        }
    }

    /// The article of the shop or of the release that an id names, its own or a variant's.
    pub fn find_article_id(&self, id: &ArticleId) -> Option<ArticleId> {
        let position = self.catalogue.position_of(id.as_str())?;
        self.catalogue.any_article(position).map(|article| article.id.clone())
    }

    /// Whether there is no more to follow up to these revisions of articles, settings and looks.
    fn is_up_to_date(&self, revisions: (i64, i64, i64)) -> bool {
        let tried = self.too_large.filter(|(_, copies)| *copies == self.copies());
        revisions == (tried.map_or(self.articles, |(revision, _)| revision), self.settings, self.looks)
    }

    /// False if there was too little memory for the latest changes of articles.
    pub fn has_all_articles(&self) -> bool {
        self.too_large.is_none()
    }

    /// Its memory per article, and of the one next to it.
    fn copies(&self) -> Copies {
        let own = copies(&self.serving);
        self.second().map_or(own, |second| own + copies(&second.serving))
    }

    /// Refuses a release that has a smaller share of the catalogue's articles than this.
    fn check_share(&self, least: f64) -> Result<(), ActivateError> {
        let Coverage { both, only_catalogue, only_release } = self.catalogue.coverage();
        let (all, effect) = (both + only_catalogue, self.lack_of_articles());
        let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let share = |both: usize, all: usize| count(both) / count(all);
        if all == 0 || both > 0 && share(both, all) >= least {
            return Ok(());
        }
        let figures = if both == 0 {
            format!("none of the catalogue's articles ({all}), so {effect}")
        } else {
            let [found, least] = [share(both, all), least].map(|share| format!("{:.1} %", share * 100.0));
            format!(
                "{both} of the catalogue's {all} articles ({found}, at least {least} by models.least_known), and as for the others \
                 {effect}"
            )
        };
        let advice = if only_release > 0 && share(both + only_release, all + only_release) >= least {
            format!("import the {only_release} articles that it was trained with and the catalogue lacks")
        } else {
            "train it with more outfits of these articles, such as those of earlier orders (atelier import --orders)".to_owned()
        };
        Err(ActivateError::CoversLittle { name: self.name().to_owned(), figures, advice })
    }

    /// The same with these changes of articles that the shop has, for one answer: it is as if they were stored, but models see
    /// the stored ones.
    ///
    /// # Errors
    /// The faults of the changed articles, by their ids.
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
        let (catalogue, _) = next.expect("an article of the same type keeps its position");
        let follow = |one: &Arc<dyn Follower>| {
            let followed = Arc::clone(one).with_articles(&self.catalogue, &catalogue, &positions);
            followed.unwrap_or_else(|| Arc::clone(one))
        };
        let followers = self.followers.iter().map(follow).collect();
        Ok(Self { catalogue: Arc::new(catalogue), followers, ..self.clone() })
    }

    /// A feature's value next to it.
    pub fn follower<T: Follower>(&self) -> &T {
        followers::find(&self.followers)
    }

    /// When a follower begins or ends to say something next, in milliseconds.
    pub(crate) fn next_change(&self, now: Timestamp) -> Option<i64> {
        self.followers.iter().filter_map(|one| one.next_change(now)).min()
    }
}

/// Why a release could not be activated. The live release stays.
#[derive(Debug, thiserror::Error)]
pub enum ActivateError {
    #[error("there is no release {name:?} in {folder}", folder = .folder.display())]
    NoRelease { name: String, folder: PathBuf },
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("release {name} has {figures}; {advice}, activate a release for this catalogue, or force it")]
    CoversLittle { name: String, figures: String, advice: String },
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
    synonyms: Arc<Synonyms>,
    bought_again: Arc<[String]>,
    folder: Arc<ReleaseFolder>,
    following: Following,
    /// The least share of the catalogue's articles that a release has, unless it is forced.
    least_known: f64,
    /// Locked only to clone or replace the pointer.
    current: RwLock<Option<Arc<LiveRelease>>>,
    /// Allows one change at a time, as each starts from the result of the one before.
    changing: Mutex<Known>,
}

/// The releases that were loaded here, or should have been, by name.
#[derive(Debug, Default)]
struct Known(HashMap<String, State>);

#[derive(Debug)]
enum State {
    /// For as long as something holds it: requests as the live one or the one next to it, or the change of an experiment that needs it.
    Loaded(Weak<LiveRelease>),
    /// It failed to load although another replica may serve it.
    Failed { reason: String, retry: Instant },
}

impl Known {
    fn find(&self, name: &str) -> Option<Arc<LiveRelease>> {
        match self.0.get(name)? {
            State::Loaded(loaded) => loaded.upgrade(),
            State::Failed { .. } => None,
        }
    }

    fn add(&mut self, loaded: &Arc<LiveRelease>) {
        self.0.insert(loaded.name().to_owned(), State::Loaded(Arc::downgrade(loaded)));
    }

    fn postpone(&mut self, name: &str, reason: String) {
        self.0.insert(name.to_owned(), State::Failed { reason, retry: Instant::now() + RETRY });
    }

    /// Why it failed to load, if it is too early to try again.
    fn failed(&self, name: &str) -> Option<&String> {
        match self.0.get(name)? {
            State::Failed { reason, retry } => (Instant::now() < *retry).then_some(reason),
            State::Loaded(_) => None,
        }
    }
}

/// The wait before loading a failed release again: its folder may still be copying.
const RETRY: Duration = Duration::from_secs(30);

/// The names of the settings that hold the routing and the release's name.
pub(super) const ROUTING: &str = "routing";
pub(super) const RELEASE: &str = "release";
const HOLDOUT: &str = "holdout";
/// Actions in the audit log.
pub(crate) const ACTIVATE: &str = "release.activate";
pub(crate) const SET_ROUTING: &str = "routing.set";

impl Releases {
    /// `models` is the folder of releases, and `currency` the shop's.
    pub fn new(engine: Engine, store: Store, models: PathBuf, currency: &str, following: Following) -> Self {
        Self {
            engine,
            store,
            currency: currency.into(),
            synonyms: Arc::default(),
            bought_again: Arc::default(),
            folder: Arc::new(ReleaseFolder::new(models, None)),
            following,
            least_known: 0.5,
            current: RwLock::new(None),
            changing: Mutex::default(),
        }
    }

    /// Refuses releases that have a smaller share of the catalogue's articles than this.
    pub fn require_known(self, least_known: f64) -> Self {
        Self { least_known, ..self }
    }

    /// Tries releases in a process of their own before this one loads them.
    pub fn try_in(self, trial: Trial) -> Self {
        let models = self.folder.path().to_owned();
        Self { folder: Arc::new(ReleaseFolder::new(models, Some(trial))), ..self }
    }

    /// Takes these words of the shop as the same.
    pub fn with_synonyms(self, synonyms: Synonyms) -> Self {
        Self { synonyms: synonyms.into(), ..self }
    }

    /// Suggests articles of these types to customers who own them.
    pub fn with_bought_again(self, types: Vec<String>) -> Self {
        Self { bought_again: types.into(), ..self }
    }

    pub fn synonyms(&self) -> &Synonyms {
        &self.synonyms
    }

    pub fn current(&self) -> Option<Arc<LiveRelease>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The live release's schema, or the default one without a live release.
    pub fn schema(&self) -> ServedSchema {
        self.current().into()
    }

    /// See [`Store::is_gone`].
    pub fn is_database_gone(&self) -> bool {
        self.store.is_gone()
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// A feature's value for all releases.
    pub fn follower<T: Follower>(&self) -> &T {
        followers::find(&self.following.shared)
    }

    /// The releases in the folder, by name.
    pub async fn list(&self) -> io::Result<Vec<Listed>> {
        self.in_folder(ReleaseFolder::list).await
    }

    /// The evaluation of a release in the folder, as it was measured before it was brought here. None if there is no such release.
    pub async fn read_evaluation(&self, name: &str) -> Option<Result<Stored, ReleaseError>> {
        let release = self.folder.find(name)?;
        Some(self.in_folder(move |_| Stored::read(&release)).await)
    }

    /// About how many bytes of memory it takes to load a release next to the live one.
    pub async fn estimate_memory(&self, name: &str) -> Result<u64, ReleaseError> {
        let articles = self.current().map_or(0, |live| live.catalogue.index().len());
        let name = name.to_owned();
        self.in_folder(move |folder| folder.estimate_memory(&name, articles)).await
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

    /// Adds a packed release to the folder if it can be loaded. Serves nothing else than before. One that cannot be served has an entry
    /// in the audit log.
    pub async fn add(&self, packed: Packed, author: Author, now: Timestamp) -> Result<Listed, AddError> {
        let added = self.try_to_add(packed, author, now).await;
        if let Err(AddError::Refused { name, reason }) = &added {
            self.log_refusal(name, reason, author, now).await?;
        }
        added
    }

    async fn log_refusal(
        &self,
        name: &str,
        reason: &str,
        author: Author,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let entry = Entry::new("release.refused", name, json!({"reason": reason}));
        self.store.by(author).audit().append(&entry, now).await
    }

    async fn try_to_add(&self, packed: Packed, author: Author, now: Timestamp) -> Result<Listed, AddError> {
        let unpack =
            move |folder: &ReleaseFolder| Ok::<_, AddError>((folder.unpack(&packed)?, packed.sha256));
        let (unpacked, sha256) = self.in_folder(unpack).await?;
        // One release is loaded at a time, so that there is memory for it.
        let _changing = self.changing.lock().await;
        let engine = self.engine.clone();
        let try_out =
            move |folder: &ReleaseFolder| folder.try_out(&engine, &unpacked).map(|bytes| (unpacked, bytes));
        let (unpacked, bytes) = self.in_folder(try_out).await?;
        // First, so that no release is there without its entry.
        let mut details = json!({"sha256": sha256});
        if let Some(bytes) = bytes {
            details["memory_bytes"] = bytes.into();
        }
        let entry = Entry::new("release.add", &unpacked.name, details);
        self.store.by(author).audit().append(&entry, now).await?;
        self.in_folder(move |folder| folder.take(&unpacked)).await
    }

    /// Loads a release next to the live one, then replaces it. All replicas follow. A release of too few articles of the
    /// catalogue must be forced. One that cannot be served has an entry in the audit log too.
    pub async fn activate(
        &self,
        name: &str,
        force: bool,
        author: Author,
        now: Timestamp,
    ) -> Result<Arc<LiveRelease>, ActivateError> {
        let activated = self.try_to_activate(name, force, author, now).await;
        match &activated {
            // Without the database there is no entry either.
            Ok(_) | Err(ActivateError::Store(_)) => {}
            Err(refused) => self.log_refusal(name, &refused.to_string(), author, now).await?,
        }
        activated
    }

    async fn try_to_activate(
        &self,
        name: &str,
        force: bool,
        author: Author,
        now: Timestamp,
    ) -> Result<Arc<LiveRelease>, ActivateError> {
        let mut known = self.changing.lock().await;
        let before = self.current().map(|live| live.name().to_owned());
        // Before it is loaded, so that there are never three.
        let compares_releases = self.following.compares_releases;
        if let Some(experiment) = compares_releases(&self.experiments().await?) {
            return Err(ActivateError::Compared { experiment });
        }
        let next = self.load(name, Copies::default()).await?;
        if !force {
            next.check_share(self.least_known)?;
        }
        let entry = Entry::new(ACTIVATE, name, json!({"before": before, "after": name}));
        let settings = self.store.by(author);
        let set = settings.settings().set_unless(RELEASE, name, &entry, now, compares_releases).await?;
        set.map_err(|experiment| ActivateError::Compared { experiment })?;
        self.limit_by(next.copies()).await;
        Ok(self.serve_both(next, &mut known))
    }

    /// Loads a release for an experiment that starts or is shipped, by the checks of an activation. It is served once the experiment
    /// is stored, unless it is dropped before. One that is shipped may cover less of the catalogue by now: it answers already.
    pub async fn load_beside(&self, name: &str, is_shipped: bool) -> Result<Arc<LiveRelease>, ActivateError> {
        let mut known = self.changing.lock().await;
        let beside =
            self.current().filter(|_| !is_shipped).map_or_else(Copies::default, |live| copies(&live.serving));
        let loaded = match known.find(name) {
            Some(loaded) => loaded,
            None => Arc::new(self.load(name, beside).await?),
        };
        if !is_shipped {
            loaded.check_share(self.least_known)?;
        }
        known.add(&loaded);
        Ok(loaded)
    }

    /// Whether another replica activated a release that this one does not serve.
    pub async fn is_behind(&self) -> Result<bool, StoreError> {
        let activated = self.store.revisions(RELEASE).await?.setting;
        Ok(activated.is_some_and(|name| self.current().is_none_or(|live| live.name() != name)))
    }

    /// Serves a release in this process only, and none next to it, for programs that ask without a customer.
    pub async fn serve_alone(&self, name: &str) -> Result<Arc<LiveRelease>, ActivateError> {
        let mut known = self.changing.lock().await;
        Ok(self.set_current(self.load(name, Copies::default()).await?, &mut known))
    }

    /// Like [`Releases::activate`], for this process only.
    pub async fn serve(&self, name: &str) -> Result<Arc<LiveRelease>, ActivateError> {
        let mut known = self.changing.lock().await;
        let next = self.load(name, Copies::default()).await?;
        Ok(self.finish(next, &mut known).await?)
    }

    /// Serves a loaded release.
    pub async fn serve_loaded(&self, serving: Arc<Serving>) -> Result<Arc<LiveRelease>, StoreError> {
        let mut known = self.changing.lock().await;
        let next = self.prepare(serving, Copies::default()).await?;
        self.finish(next, &mut known).await
    }

    /// Sets the routing. All replicas follow.
    pub async fn route(&self, routing: Routing, author: Author, now: Timestamp) -> Result<(), StoreError> {
        let text = serde_json::to_string(&routing).expect("a routing is plain JSON");
        let before = self.current().map(|live| live.routing.to_string());
        let entry = Entry::new(SET_ROUTING, ROUTING, json!({"before": before, "after": routing.to_string()}));
        self.store.by(author).settings().set(ROUTING, &text, &entry, now).await?;
        self.apply_change().await;
        Ok(())
    }

    /// Sets which customers are answered without rules. All replicas follow.
    pub async fn hold_out(&self, holdout: Holdout, author: Author, now: Timestamp) -> Result<(), StoreError> {
        let before = Holdout::read(&self.store).await?.share();
        let entry = Entry::new("holdout.set", HOLDOUT, json!({"before": before, "after": holdout.share()}));
        self.store.by(author).settings().set(HOLDOUT, &holdout.share().to_string(), &entry, now).await?;
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
        let mut known = self.changing.lock().await;
        let Revisions { articles, settings, looks, setting: activated } =
            self.store.revisions(RELEASE).await?;
        let (revisions, current) = ((articles, settings, looks), self.current());
        let is_current = |name: &String| current.as_ref().is_some_and(|live| live.name() == name);
        if let Some(name) = activated.filter(|name| !is_current(name))
            // It was next to the live one if an experiment was shipped.
            && let Ok(next) = self.obtain(&name, "another replica activated it", revisions, Copies::default(), &mut known).await?
        {
            return self.finish(next, &mut known).await.map(drop);
        }
        let Some(live) = current else { return Ok(()) };
        let is_missed = live
            .beside
            .as_ref()
            .is_some_and(|beside| beside.loaded.is_err() && known.failed(&beside.release).is_none());
        if live.is_up_to_date(revisions) && !is_missed {
            return Ok(());
        }
        let next = self.update(&live, revisions, live.copies()).await?;
        self.finish(next, &mut known).await.map(drop)
    }

    /// A release that is loaded, with what has changed in the database since up to these revisions, or that is loaded now, `beside`
    /// another one. The inner error says why it cannot be loaded; `why` is what needs it, for the log.
    async fn obtain(
        &self,
        name: &str,
        why: &str,
        revisions: (i64, i64, i64),
        beside: Copies,
        known: &mut Known,
    ) -> Result<Result<LiveRelease, String>, StoreError> {
        if let Some(loaded) = known.find(name) {
            return Ok(Ok(self.update(&loaded, revisions, copies(&loaded.serving) + beside).await?));
        }
        if let Some(reason) = known.failed(name) {
            return Ok(Err(reason.clone()));
        }
        let its_name = name.to_owned();
        // Its files say so, and are asked again each time: they may be repaired.
        if let Some(reason) = self.in_folder(move |folder| folder.find_refusal(&its_name)).await {
            return Ok(Err(reason));
        }
        match self.load(name, beside).await {
            Ok(next) => {
                tracing::info!(release = name, why, "loaded a release");
                Ok(Ok(next))
            }
            Err(ActivateError::Store(error)) if !error.is_too_large() => Err(error),
            Err(error) => {
                tracing::error!(
                    release = name, why, %error,
                    "cannot load a release; the live one answers here, and an experiment that needs the other has no customers"
                );
                known.postpone(name, error.to_string());
                Ok(Err(error.to_string()))
            }
        }
    }

    /// The release with what has changed in the database since, up to these revisions of articles, settings and looks. `copies` are
    /// held together.
    async fn update(
        &self,
        live: &LiveRelease,
        (articles, settings, looks): (i64, i64, i64),
        copies: Copies,
    ) -> Result<LiveRelease, StoreError> {
        let mut next = LiveRelease { settings, looks, ..live.clone() };
        if live.is_up_to_date((articles, settings, looks)) {
            return Ok(next);
        }
        if articles != live.articles {
            match self.store.check_memory(copies, live.memory.with(copies).bytes()).await {
                Err(error) if error.is_too_large() => {
                    if live.has_all_articles() {
                        tracing::error!(%error, "the catalogue stays as it was; all else is followed");
                    }
                    next.too_large = Some((articles, copies));
                }
                memory => {
                    (next.memory, next.articles, next.too_large) = (memory?, articles, None);
                    let before = (Arc::clone(&live.catalogue), Arc::clone(&live.rows));
                    let (serving, revision) = (&live.serving, live.articles);
                    let changed = catalogue::read_changes(&self.store, serving, before, revision, articles);
                    (next.catalogue, next.rows) = match changed.await? {
                        Some(changed) => changed,
                        None => self.read_catalogue(serving).await?,
                    };
                }
            }
        }
        let experiments =
            if settings == live.settings { None } else { Some(self.read_settings(&mut next).await?) };
        self.follow(Some(live), &mut next, experiments.as_deref()).await?;
        Ok(next)
    }

    /// Serves the release, with the one next to it that an experiment needs.
    async fn finish(&self, mut next: LiveRelease, known: &mut Known) -> Result<Arc<LiveRelease>, StoreError> {
        next.beside = None;
        let arms = Arc::clone(&next.arms);
        if let Some((release, experiment)) = arms.second_release(next.name()) {
            let why = format!("the experiment {experiment} needs it next to the live release");
            let revisions = (next.articles, next.settings, next.looks);
            let loaded =
                self.obtain(release, &why, revisions, copies(&next.serving), known).await?.map(Arc::new);
            if let Err(reason) = &loaded
                && known.failed(release).is_none()
            {
                known.postpone(release, reason.clone());
            }
            next.beside =
                Some(Beside { release: release.to_owned(), experiment: experiment.clone(), loaded });
        }
        let copies = next.copies();
        let is_complete = next.beside.as_ref().is_none_or(|beside| beside.loaded.is_ok());
        if is_complete && self.current().is_none_or(|live| live.copies() != copies) {
            self.limit_by(copies).await;
        }
        next.memory = next.memory.with(copies);
        Ok(self.serve_both(next, known))
    }

    /// Limits changes of the catalogue on all replicas. What is stored already stays, whatever comes of this.
    async fn limit_by(&self, copies: Copies) {
        if let Err(error) = self.store.set_copies(copies).await {
            tracing::warn!(%error, "the catalogue's memory is limited as with the releases before");
        }
    }

    /// Serves the release, and the one next to it if there is one.
    fn serve_both(&self, mut next: LiveRelease, known: &mut Known) -> Arc<LiveRelease> {
        let has = |release: Option<&str>, method: Option<Method>| {
            let release = release.map_or(Some(&next), |release| next.find(release));
            release.is_some_and(|release| method.is_none_or(|method| release.serving.has(method)))
        };
        next.arms = Arc::new(next.arms.with_releases(has));
        if let Some(Beside { loaded: Ok(second), .. }) = &mut next.beside {
            // The settings that these are from: the second may have read later ones.
            *second = Arc::new(LiveRelease {
                arms: Arc::clone(&next.arms),
                routing: next.routing,
                holdout: next.holdout,
                settings: next.settings,
                beside: None,
                ..LiveRelease::clone(second)
            });
            known.add(second);
        }
        self.set_current(next, known)
    }

    /// Reads or writes files, or loads them, which blocks.
    async fn in_folder<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ReleaseFolder) -> T + Send + 'static,
    ) -> T {
        let folder = Arc::clone(&self.folder);
        let work = task::spawn_blocking(move || work(&folder));
        work.await.expect("work in the folder of releases does not panic")
    }

    async fn load(&self, name: &str, beside: Copies) -> Result<LiveRelease, ActivateError> {
        let folder = self.folder.path().to_owned();
        let Some(release) = self.folder.find(name) else {
            return Err(ActivateError::NoRelease { name: name.to_owned(), folder });
        };
        let (engine, name) = (self.engine.clone(), name.to_owned());
        // The first release is tried as it is loaded: there is nothing to protect yet.
        let is_first = self.current().is_none();
        // Reading and trying the models takes seconds of a core.
        let serving = self.in_folder(move |folder| folder.load(&engine, &name, &release, is_first)).await?;
        Ok(self.prepare(Arc::new(serving), beside).await?)
    }

    async fn prepare(&self, serving: Arc<Serving>, beside: Copies) -> Result<LiveRelease, StoreError> {
        // Read before the tables, so that the next refresh rereads what changes by then.
        let articles = self.store.articles().revision().await?;
        let settings = self.store.settings().revision().await?;
        let looks = self.store.looks().revision().await?;
        let memory = self.store.check_memory(copies(&serving) + beside, 0).await?;
        let (catalogue, rows) = self.read_catalogue(&serving).await?;
        let evaluation = Arc::new(Evaluation::new(Arc::clone(serving.release())));
        let Following { shared, compiled, .. } = &self.following;
        let mut next = LiveRelease {
            serving,
            catalogue,
            rows,
            routing: Routing::default(),
            arms: Arc::default(),
            beside: None,
            holdout: Holdout::default(),
            bought_again: Arc::clone(&self.bought_again),
            evaluation,
            followers: shared.iter().chain(compiled).cloned().collect(),
            articles,
            settings,
            looks,
            memory,
            too_large: None,
        };
        let experiments = self.read_settings(&mut next).await?;
        self.follow(None, &mut next, Some(&experiments)).await?;
        Ok(next)
    }

    /// Reads what routes requests, and gives the stored experiments.
    async fn read_settings(&self, next: &mut LiveRelease) -> Result<Vec<Named<ExperimentName>>, StoreError> {
        let experiments = self.experiments().await?;
        next.routing = self.routing().await?;
        next.arms = Arc::new((self.following.arms)(&experiments));
        next.holdout = Holdout::read(&self.store).await?;
        Ok(experiments)
    }

    async fn experiments(&self) -> Result<Vec<Named<ExperimentName>>, StoreError> {
        Ok(self.store.experiments().list().await?.into_iter().map(|stored| stored.value).collect())
    }

    /// Lets the followers follow.
    async fn follow(
        &self,
        before: Option<&LiveRelease>,
        next: &mut LiveRelease,
        experiments: Option<&[Named<ExperimentName>]>,
    ) -> Result<(), StoreError> {
        let change = Change { store: &self.store, before, next, experiments };
        let mut followers = Vec::with_capacity(next.followers.len());
        for one in &*next.followers {
            let followed = Arc::clone(one).follow(change).await?;
            followers.push(followed.unwrap_or_else(|| Arc::clone(one)));
        }
        next.followers = followers.into();
        Ok(())
    }

    async fn read_catalogue(&self, serving: &Arc<Serving>) -> Result<catalogue::Both, StoreError> {
        let of_shop = (Arc::clone(&self.currency), Arc::clone(&self.synonyms));
        catalogue::read(&self.store, of_shop, serving).await
    }

    async fn routing(&self) -> Result<Routing, StoreError> {
        let Some(text) = self.store.settings().get(ROUTING).await? else { return Ok(Routing::default()) };
        Ok(serde_json::from_str(&text).unwrap_or_else(|error| {
            // Another version may have written it; the default is better than no answers.
            tracing::error!(%error, "cannot read the stored routing; using the release's default method");
            Routing::default()
        }))
    }

    fn set_current(&self, live: LiveRelease, known: &mut Known) -> Arc<LiveRelease> {
        let live = Arc::new(live);
        known.add(&live);
        warn(self.current().as_deref(), &live);
        let old = self.current.write().unwrap_or_else(PoisonError::into_inner).replace(Arc::clone(&live));
        // Dropped outside the lock: this may free the old models.
        drop(old);
        live
    }
}

/// One release's memory per article.
fn copies(serving: &Serving) -> Copies {
    let row_bytes = i64::try_from(serving.row_bytes()).expect("a row has few numbers");
    Copies { catalogues: 1, row_bytes }
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
