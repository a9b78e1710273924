//! `atelier serve`: the service.

use std::{
    env, fs,
    io::{self, Write},
    net::SocketAddr,
    process::ExitCode,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, anyhow, bail};
use atelier_core::{
    domain::Synonyms,
    util::{clock::Clock, memory::return_memory},
};
use atelier_engine::{
    inference::{Engine, end_runs},
    release::MANIFEST,
};
use clap::Args;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
    task::{self, JoinHandle, JoinSet},
    time::{MissedTickBehavior, interval, sleep, timeout},
};
use uuid::Uuid;

use super::{
    ModelFlags, SHOP, Settings, Verb,
    demo::{fill_and_issue_key, fill_if_empty},
    name_setting,
    open_files::fit_open_files,
    sign_in_link::{ADDRESS, reachable, sign_in_link},
    tls::{read_tls, reload_on_hangup, warn_without_tls},
};
use crate::{
    app::{self, Parts},
    completion::{profiles::Profiles, tickets::Tickets},
    config::{self, Config, Models, Origins, Overrides},
    experiments::guard,
    people::{Access, Key, RequireKey},
    platform::{
        db::{Store, StoreError},
        http::{AppState, CrossOrigins, SAMPLED, serve::Listener},
    },
    releases::{self as live_release, ActivateError, Releases, trial::Trial},
    telemetry::{Traces, log},
};

/// How long to wait at the end for what is stored in the background.
const FLUSH: Duration = Duration::from_secs(2);

#[derive(Debug, Default, Args)]
pub(super) struct Serve {
    /// Address to listen on.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
    #[command(flatten)]
    pub(super) models: ModelFlags,
}

impl Serve {
    pub(super) fn set(&self, overrides: &mut Overrides) {
        if let Some(address) = &self.address {
            overrides.set("server", "address", "--address", address);
        }
        self.models.set(overrides);
    }

    /// Why these flags do not go with another verb, which would ignore them.
    pub(super) fn ignored_by(&self, verb: &Verb) -> Option<String> {
        let serves = matches!(verb, Verb::Serve(_) | Verb::Demo(_));
        let reads_address = serves || matches!(verb, Verb::CheckHealth | Verb::SignInLink(_));
        if self.address.is_some() && !reads_address {
            return Some("only `serve`, `demo`, `check-health` and `sign-in-link` read --address".to_owned());
        }
        let (_, _, flag, _) = self.models.given().next().filter(|_| verb.models().is_none())?;
        Some(format!("only `serve`, `complete`, `looks` and `demo` read {flag}"))
    }
}

/// The content of a database that is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    OfDatabase,
    /// The demo world, if the database is empty.
    DemoWorld,
}

/// Whatever can be wrong with the settings is found before an empty database is filled with the demo world.
pub(super) async fn run(settings: Settings, content: Content) -> Result<ExitCode> {
    let _log = log::start();
    let is_demo = settings.config.database.url.is_none();
    if is_demo {
        tracing::warn!("Demo: nothing here is private. Start a shop with `{SHOP}`");
    }
    let tls = read_tls(&settings.config.server)?;
    let synonyms = read_synonyms(&settings)?;
    let listener = listen(&settings).await?;
    check_models_folder(&settings)?;
    let models = settings.load_models(|notice| tracing::info!("{notice}"))?;
    let store = settings.open(&settings.config.database.url_or_demo()).await?;
    store.clean_up_imports(SystemTime::now().into()).await?;
    let Settings { config, origins } = settings;
    let engine = Engine::new(models, config.engine.settings());
    let releases = Releases::new(
        engine,
        store.clone(),
        config.models.folder.clone(),
        &config.shop.currency,
        app::following(),
    );
    let releases = releases.require_known(config.models.least_known).with_synonyms(synonyms);
    let releases = releases.with_bought_again(config.shop.bought_again.clone());
    let releases =
        Arc::new(if config.engine.remote.is_none() { releases.try_in(trial(&config)) } else { releases });
    releases.remove_left_over();
    if let Err(error) = serve_first_release(&store, &releases, &config, &origins).await {
        return Err(advise(error, &store, &origins).await);
    }
    let key = fill(&store, &config, content).await?;
    // The release was loaded without the articles that the database has since.
    releases.refresh().await?;
    let tickets = Tickets::start(&store, config.tickets.terms(), draw_key, SystemTime::now().into()).await?;
    log_ready(&store, &releases);
    // Before the link is printed: its reader may stop the service at once.
    let mut signals = Signals::listen()?;
    // Until the service stops.
    let mut background = JoinSet::new();
    background.spawn(reload_on_hangup(tls.clone(), is_demo)?);
    let listening = listener.local_addr()?;
    let access = guard(&store, &config.access, is_demo);
    warn_without_tls(tls.as_deref(), listening);
    match remember_address(&store, config.server.scheme(), listening).await {
        Err(error @ StoreError::Full) => {
            tracing::warn!(%error, "cannot store this address; `atelier sign-in-link` may print another one");
        }
        stored => stored?,
    }
    announce(config.server.scheme(), listening, &access, key).await?;
    background.spawn(follow_replicas(Arc::clone(&releases)));
    let profiles = Profiles::new(store.clone(), config.profiles.keep());
    let limits = fit_open_files(config.limits);
    let traces = Traces::new(config.telemetry.collector.as_ref());
    let parts = Parts {
        store: store.clone(),
        profiles,
        releases,
        limits,
        tickets,
        events: config.events.terms(),
        access,
        cross_origins: CrossOrigins::new(config.access.cross_origins()),
        trusted_proxies: config.server.trusted_proxies(),
        traces: traces.clone(),
        clock: Clock::default(),
        notation: config.shop.notation(),
        zone: config.shop.zone(),
        not_worn: config.shop.not_worn(),
        public_attributes: config.shop.public_attributes.into(),
        feeds: config.feeds,
        process: Uuid::new_v4().to_string(),
    };
    let access = parts.access.clone();
    let state = AppState::new(parts);
    start_background(&mut background, &state, config.events.terms().kept);
    background.spawn(state.jobs().clone().watch());
    background.spawn(state.feeds().clone().follow());
    let jobs = state.jobs().clone();
    let (stop, stopped) = oneshot::channel();
    let mut serving = tokio::spawn(app::serve(Listener { tcp: listener, tls }, state.clone(), async {
        let _ = stopped.await;
    }));
    tokio::select! {
        ended = &mut serving => ended??,
        () = wait_for_stop(&state, &mut signals, config.server.unready()) => {
            tracing::info!("stopping: running requests finish, new ones are refused");
            let _ = stop.send(());
            drain(serving, &mut signals, config.server.drain()).await?;
        }
    }
    background.abort_all();
    jobs.stop().await;
    // A release that is being tried would delay the end.
    end_runs();
    if timeout(FLUSH, access.flush(SystemTime::now().into())).await.is_err() {
        tracing::warn!("the last failed sign-ins and uses of keys and sessions could not be stored in time");
    }
    store.close().await;
    tokio::task::spawn_blocking(move || traces.finish()).await?;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Fills a database with the demo world if it is for that, and gives the API key that was made for it.
async fn fill(store: &Store, config: &Config, content: Content) -> Result<Option<Key>> {
    let (world, tell) =
        (config.models.folder.join(&config.models.release), |line: &str| tracing::info!("{line}"));
    if config.database.url.is_none() {
        fill_if_empty(store, &world, tell).await?;
        store.limit_growth().await?;
    } else if content == Content::DemoWorld {
        return fill_and_issue_key(store, &world, tell).await;
    } else if store.articles().count().await? == 0 {
        tracing::info!(
            "the catalogue is empty: fill it with `atelier import`, or show the demo world by `atelier demo`"
        );
    }
    Ok(None)
}

/// Requests that come before the service is ready wait. The demo, which is open to every program, is for this machine only.
async fn listen(settings: &Settings) -> Result<TcpListener> {
    let (address, name) = (&settings.config.server.address, settings.origins.name("server.address"));
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("{name}: cannot listen on {address}; choose another address with --address")
    })?;
    if settings.config.database.url.is_none() && !listener.local_addr()?.ip().is_loopback() {
        bail!(
            "{name}: the demo listens on loopback addresses only, not on {address}; serve other machines from a database \
             of your own: `{SHOP} --address {address}`"
        );
    }
    Ok(listener)
}

/// This program again, with the settings that a trial depends on.
fn trial(config: &Config) -> Trial {
    let engine = &config.engine;
    let settings = [
        format!("cache.folder={}", config.cache.folder.display()),
        format!("engine.device={}", engine.device.as_str()),
        format!("engine.workers={}", engine.workers),
        format!("engine.batch={}", engine.batch),
        format!("engine.queue={}", engine.queue),
    ];
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    let arguments = ["--config", "/dev/null"].into_iter().chain(settings).chain(["try-release"]);
    // The same file even if another version has taken its place.
    let program =
        if cfg!(target_os = "linux") { Some("/proc/self/exe".into()) } else { env::current_exe().ok() };
    Trial {
        program: program.unwrap_or_else(|| "atelier".into()),
        arguments: arguments.map(str::to_owned).collect(),
    }
}

fn log_ready(store: &Store, releases: &Releases) {
    let live = releases.current();
    tracing::info!(
        database = store.kind(),
        onnx_runtime = releases.engine().onnx_runtime(),
        release = live.as_ref().map_or("none", |live| live.name()),
        device = live.as_ref().map_or("none", |live| live.serving.device().as_str()),
        "ready"
    );
    let Some(live) = live else { return };
    let is_unknown = |kind: &&String| live.catalogue.sets().of_named_type(kind).is_none();
    for kind in live.bought_again.iter().filter(is_unknown) {
        tracing::warn!(
            "shop.bought_again has {kind:?}, and no article has this type yet; check its spelling"
        );
    }
}

pub(super) fn read_synonyms(settings: &Settings) -> Result<Synonyms> {
    let is_demo = settings.config.database.url.is_none();
    let Some(path) = &settings.config.shop.synonyms else {
        let text = if is_demo { include_str!("../../docs/synonyms.txt") } else { "" };
        return Ok(Synonyms::parse(text).expect("the list is tested"));
    };
    let name = settings.origins.name("shop.synonyms");
    let text = fs::read_to_string(path)
        .with_context(|| format!("{name}: cannot read the file of synonyms, {}", path.display()))?;
    let refuse = |reason| anyhow!("{name}: {}, {reason}", path.display());
    Synonyms::parse(&text).map_err(refuse)
}

/// Without any settings the folder may be missing: the service can still show the catalogue.
fn check_models_folder(settings: &Settings) -> Result<()> {
    let Models { folder, .. } = &settings.config.models;
    match folder.read_dir() {
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && settings.config.models == Models::default() =>
        {
            Ok(())
        }
        read => read.map(drop).with_context(|| {
            let name = settings.origins.name("models.folder");
            format!("{name}: cannot read the folder of releases, {}", folder.display())
        }),
    }
}

/// Stores where the service listens, for `atelier sign-in-link`.
async fn remember_address(
    store: &Store,
    scheme: &str,
    listening: SocketAddr,
) -> std::result::Result<(), StoreError> {
    let address = format!("{scheme}://{listening}");
    let known = store.settings().get_or_set(ADDRESS, &address).await?;
    // Also if it is the same: a database that cannot be written is found now, not at the first request that writes.
    store.settings().replace(ADDRESS, &known, &address).await?;
    Ok(())
}

/// Decides whether programs need an API key, and says so in the log.
fn guard(store: &Store, settings: &config::Access, is_demo: bool) -> Access {
    let rule = match settings.require_key {
        _ if is_demo => RequireKey::Demo,
        true => RequireKey::Always,
        false => RequireKey::Never,
    };
    match rule {
        RequireKey::Never => tracing::warn!(
            "access.require_key is false: every program that reaches this service, and every person behind a proxy, can \
             read and change everything"
        ),
        RequireKey::Always => {
            tracing::info!(
                "programs need an API key: create one with `atelier key create` or at /access/keys"
            );
        }
        RequireKey::Demo => {}
    }
    Access::new(store.clone()).with_lifetimes(settings.lifetimes()).require_key(rule)
}

/// 244 random bits for a key that signs tickets.
pub(super) fn draw_key() -> [u8; 32] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(Uuid::new_v4().as_bytes());
    key[16..].copy_from_slice(Uuid::new_v4().as_bytes());
    key
}

/// Says how to go on if a replica has too little memory for what is stored.
async fn advise(error: anyhow::Error, store: &Store, origins: &Origins) -> anyhow::Error {
    let is_too_large = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref::<StoreError>(), Some(StoreError::TooLarge { .. }))
            || matches!(cause.downcast_ref(), Some(ActivateError::Store(StoreError::TooLarge { .. })))
    };
    if !error.chain().any(is_too_large) {
        return error;
    }
    let largest = store.largest_articles().await.unwrap_or_default().join(", ");
    anyhow!(
        "{}: {error:#}. `atelier import --delete --articles FILE` deletes the articles whose ids a file has, without loading the \
         catalogue; the largest are {largest}",
        origins.name("limits.catalogue_bytes")
    )
}

/// Serves the release that an admin activated last, or else the one in the settings. Without the default release the
/// service can still show the catalogue; any other missing or invalid release is an error.
async fn serve_first_release(
    store: &Store,
    releases: &Releases,
    config: &Config,
    origins: &Origins,
) -> Result<()> {
    let models = &config.models;
    if let Some(name) = live_release::activated(store).await?.filter(|name| *name != models.release) {
        match releases.serve(&name).await {
            Ok(_) => return Ok(()),
            Err(error) => tracing::error!(
                release = name, %error,
                "cannot serve the activated release; serving {} instead", models.release
            ),
        }
    }
    match releases.serve(&models.release).await {
        Ok(_) => Ok(()),
        Err(error @ ActivateError::NoRelease { .. }) if *models == Models::default() => {
            tracing::warn!(
                "{error}, so no outfit can be completed; make a release with atelier-training, or name another with \
                 --models and --release"
            );
            Ok(())
        }
        Err(error @ ActivateError::NoRelease { .. }) => {
            bail!(
                "{}: {error}: {MANIFEST} is missing. See --models and --release",
                origins.name("models.release")
            )
        }
        Err(ActivateError::Load(error)) => Err(name_setting(error, config.engine.remote.is_some(), origins)),
        Err(error) => Err(error.into()),
    }
}

async fn follow_replicas(releases: Arc<Releases>) {
    /// With the time that it takes to read what changed, a change is here within a second.
    const PERIOD: Duration = Duration::from_millis(300);
    let mut times = interval(PERIOD);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failed = false;
    loop {
        times.tick().await;
        let refreshed = releases.refresh().await;
        if let (Err(error), false) = (&refreshed, failed) {
            tracing::warn!(%error, "cannot check for changes by other replicas");
        }
        failed = refreshed.is_err();
    }
}

fn start_background(background: &mut JoinSet<()>, state: &AppState, events_kept: Duration) {
    background.spawn(watch_experiments(state.store.clone(), Arc::clone(state.releases())));
    background.spawn(renew_ticket_keys(state.tickets().clone()));
    background.spawn(sample_metrics(state.clone()));
    background.spawn(return_memory_periodically());
    background.spawn(state.store.clone().complete_erasures());
    background.spawn(remove_what_is_old(state.store.clone(), events_kept));
}

async fn watch_experiments(store: Store, releases: Arc<Releases>) {
    const PAUSE: Duration = Duration::from_secs(15);
    loop {
        tokio::time::sleep(PAUSE).await;
        if let Err(error) = guard::stop_beyond_limits(&store, &releases, SystemTime::now().into()).await {
            tracing::warn!(%error, "cannot check the limits of experiments");
        }
    }
}

/// Replaces the key that signs tickets when it is old, and follows the other replicas.
async fn renew_ticket_keys(tickets: Tickets) {
    const PAUSE: Duration = Duration::from_mins(1);
    loop {
        tokio::time::sleep(PAUSE).await;
        if let Err(error) = tickets.refresh(SystemTime::now().into()).await {
            tracing::warn!(%error, "cannot check the keys that sign completion ids");
        }
    }
}

/// Removes for good outfits that can no longer be brought back, and events that are kept no longer.
async fn remove_what_is_old(store: Store, events_kept: Duration) {
    const PAUSE: Duration = Duration::from_hours(1);
    loop {
        if let Err(error) = store.saved_outfits().remove_deleted(SystemTime::now().into()).await {
            tracing::warn!(%error, "cannot remove deleted outfits; trying again in an hour");
        }
        let before = (SystemTime::now() - events_kept).into();
        if let Err(error) = store.events().remove_before(before).await {
            tracing::warn!(%error, "cannot remove old events; trying again in an hour");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Records the last quarter of an hour for the operations page.
async fn sample_metrics(state: AppState) {
    loop {
        state.metrics.sample(SystemTime::now().into(), state.releases().waiting());
        tokio::time::sleep(SAMPLED).await;
    }
}

/// Prints the address on standard output, apart from the log. While no admin has a password, the line is a link that signs
/// one in. A new API key follows.
async fn announce(scheme: &str, address: SocketAddr, access: &Access, key: Option<Key>) -> Result<()> {
    let now = SystemTime::now().into();
    let address = address.to_string();
    let linked = match access.without_password(now).await? {
        Some(admin) => access.link(admin.id, now).await.map(|token| Some((admin, token))),
        None => Ok(None),
    };
    if let Err(error @ StoreError::Full) = &linked {
        tracing::warn!(%error, "cannot make a sign-in link; make one with `atelier sign-in-link`");
    }
    let mut lines = match linked {
        Ok(Some((admin, token))) => sign_in_link(scheme, &address, &admin, token.as_str()),
        Ok(None) | Err(StoreError::Full) => format!("Atelier is at {scheme}://{}/", reachable(&address).0),
        Err(error) => return Err(error.into()),
    };
    lines += "\n";
    if access.rule() == RequireKey::Demo {
        lines.extend(["A product page of a shop: ", scheme, "://", &reachable(&address).0, "/demo/shop\n"]);
    }
    if let Some(key) = key {
        lines.extend(["API key for programs, shown only now: ", key.as_str(), "\n"]);
    }
    // At once: a reader may close its end after the first line.
    let mut out = io::stdout().lock();
    out.write_all(lines.as_bytes())?;
    Ok(out.flush()?)
}

/// Waits for a signal, and then until load balancers have seen that the service is not ready any more. A second signal ends
/// the wait.
async fn wait_for_stop(state: &AppState, signals: &mut Signals, unready: Duration) {
    signals.next().await;
    state.stop();
    if !unready.is_zero() {
        tracing::info!("told to stop: not ready any more, and stopping in {unready:?}");
        tokio::select! {
            () = tokio::time::sleep(unready) => {}
            () = signals.next() => {}
        }
    }
}

/// Waits for running requests. A timeout bounds the wait, because a client may never finish its request; a second signal
/// ends it.
async fn drain(
    mut serving: JoinHandle<io::Result<()>>,
    signals: &mut Signals,
    patience: Duration,
) -> Result<()> {
    tokio::select! {
        ended = &mut serving => return Ok(ended??),
        () = tokio::time::sleep(patience) => {
            tracing::warn!("cancelling requests that are still running after {patience:?}");
        }
        () = signals.next() => tracing::warn!("stopped again: cancelling running requests"),
    }
    serving.abort();
    Ok(())
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Returns freed memory to the operating system every few minutes.
async fn return_memory_periodically() {
    const EVERY: Duration = Duration::from_mins(5);
    loop {
        // After a panic, the next round returns the memory.
        let _ = task::spawn_blocking(return_memory).await;
        sleep(EVERY).await;
    }
}
