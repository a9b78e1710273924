//! `atelier serve`: the service.

use std::{
    io::{self, IsTerminal, Write},
    net::SocketAddr,
    process::ExitCode,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
    task::JoinHandle,
};
use tracing_subscriber::EnvFilter;
use uuid::Uuid;

use super::{
    import::{End, Outcome, bring_in_if_empty},
    models,
    sign_in_link::{reachable, sign_in_link},
};
use crate::{
    config::{Config, Models, Overrides},
    files::{Files, schema_of},
    models::{engine::Engine, release::MANIFEST},
    service::{
        access::Access,
        completion::Secret,
        live_release::{ActivateError, Releases},
        profiles::Profiles,
    },
    store::Store,
    util::{clock::Clock, memory::give_back_now_and_then, telemetry::Traces},
    web::{self, AppState, Metrics, Parts, SAMPLED},
};

const DEFAULT_LOG: &str = "info,ort=warn";

#[derive(Debug, Default, Args)]
pub(super) struct Serve {
    /// Where to listen.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
    /// The folder of releases.
    #[arg(long, value_name = "DIR")]
    models: Option<String>,
    /// The release to serve, unless another was activated.
    #[arg(long, value_name = "NAME")]
    release: Option<String>,
    /// What models compute on: auto, cpu or cuda.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
}

impl Serve {
    pub(super) fn set(&self, overrides: &mut Overrides) {
        let flags = [
            ("server", "address", "--address", &self.address),
            ("models", "folder", "--models", &self.models),
            ("models", "release", "--release", &self.release),
            ("engine", "device", "--device", &self.device),
        ];
        for (section, key, flag, value) in flags {
            if let Some(value) = value {
                overrides.set(section, key, flag, value);
            }
        }
    }
}

pub(super) async fn run(config: Config) -> Result<ExitCode> {
    start_log();
    let models = models(&config, |notice| tracing::info!("{notice}"))?;
    let store = Store::open(&config.database.url).await?;
    fill_if_empty(&store, &config.models).await?;
    let tickets = ticket_secret(&store).await?;
    let engine = Engine::new(models, config.engine.settings());
    let releases = Arc::new(Releases::new(engine, store.clone(), config.models.folder.clone()));
    begin(&releases, &config.models).await?;
    let address = &config.server.address;
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}; name another address with --address"))?;
    let live = releases.current();
    tracing::info!(
        database = store.kind(),
        onnx_runtime = releases.engine().onnx_runtime(),
        release = live.as_ref().map_or("none", |live| live.name()),
        device = live.as_ref().map_or("none", |live| live.serving.device().as_str()),
        "ready"
    );
    drop(live);
    // Before the link is printed: whoever reads it may stop the service at once.
    let mut signals = Signals::listen()?;
    let access = Access::new(store.clone());
    let listening = listener.local_addr()?;
    // Whoever reaches this machine's own address is on the machine.
    let access = if config.access.require_key || !listening.ip().is_loopback() {
        tracing::info!("programs need an API key; an admin makes them at /access/keys");
        access.requiring_keys()
    } else {
        access
    };
    announce(listening, &access).await?;
    let following = tokio::spawn(follow(Arc::clone(&releases)));
    let metrics = Metrics::new(&releases);
    let profiles = Profiles::new(store.clone(), config.profiles.keep());
    let limits = config.limits;
    let sampling = tokio::spawn(sample(metrics.clone()));
    let giving_back = tokio::spawn(give_back_now_and_then());
    let traces = Traces::to(config.telemetry.collector().as_ref());
    let parts = Parts {
        store: store.clone(),
        profiles,
        releases,
        limits,
        tickets,
        metrics,
        access,
        traces: traces.clone(),
        clock: Clock::default(),
    };
    let state = AppState::new(parts);
    let (stop, stopped) = oneshot::channel();
    let mut serving = tokio::spawn(web::serve(listener, state, async {
        let _ = stopped.await;
    }));
    tokio::select! {
        ended = &mut serving => ended??,
        () = signals.next() => {
            tracing::info!("stopping: no new requests, those in progress are finished");
            let _ = stop.send(());
            drain(serving, &mut signals, config.server.drain()).await?;
        }
    }
    following.abort();
    sampling.abort();
    giving_back.abort();
    store.close().await;
    tokio::task::spawn_blocking(move || traces.finish()).await?;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// A database with nothing in it gets what lies beside the release, so that there is something to see.
/// The demo release brings a few customers and outfits; a shop's own release need not.
async fn fill_if_empty(store: &Store, models: &Models) -> Result<()> {
    let folder = models.folder.join(&models.release);
    if store.articles().count().await? + store.customers().count().await? > 0 || !folder.is_dir() {
        return Ok(());
    }
    let files = Files::in_folder(&folder)?;
    if files.is_empty() {
        return Ok(());
    }
    tracing::info!(folder = %folder.display(), "the database is empty and gets what lies beside the release");
    let tell = |line: &str| tracing::info!("{line}");
    let Some(Outcome { report, end }) = bring_in_if_empty(store, &files, &schema_of(&folder)?, tell).await?
    else {
        return Ok(());
    };
    match end {
        End::Imported(_) => Ok(()),
        End::Stopped(error) => Err(error),
        End::Refused => {
            let first = report.errors.first().expect("a refused import has a bad row; this is a bug");
            bail!("{} rows in {} are bad, the first is {first}", report.bad, folder.display())
        }
    }
}

/// What signs the ids of completions: made once for a database, so that all replicas and later starts
/// know each other's.
async fn ticket_secret(store: &Store) -> Result<Secret> {
    let drawn = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
    let kept = store.settings().get_or_set("tickets", &hex::encode(drawn), SystemTime::now().into()).await?;
    let mut bytes = [0; 32];
    hex::decode_to_slice(&kept, &mut bytes).context("the setting `tickets` of the database is damaged")?;
    Ok(Secret::new(bytes))
}

/// Serves what an admin activated last, or else what the settings name. Without the default release the service
/// still browses the catalogue; one that was named and is not there, or that does not fit, is an error.
async fn begin(releases: &Releases, models: &Models) -> Result<()> {
    if let Some(name) = releases.activated().await?.filter(|name| *name != models.release) {
        match releases.serve(&name).await {
            Ok(_) => return Ok(()),
            Err(error) => tracing::error!(
                release = name, %error,
                "it was activated and cannot be served; {} answers instead", models.release
            ),
        }
    }
    match releases.serve(&models.release).await {
        Ok(_) => Ok(()),
        Err(error @ ActivateError::NoRelease { .. }) if *models == Models::default() => {
            tracing::warn!(
                "{error}, so no outfit can be completed; make one with atelier-training, or name another with \
                 --models and --release"
            );
            Ok(())
        }
        Err(error @ ActivateError::NoRelease { .. }) => {
            bail!("{error}: it lacks {MANIFEST}. See --models and --release")
        }
        Err(error) => Err(error.into()),
    }
}

/// Takes up what other replicas changed. Owned by `run`, which ends it.
async fn follow(releases: Arc<Releases>) {
    /// Other replicas are at most so far behind.
    const PAUSE: Duration = Duration::from_secs(1);
    loop {
        tokio::time::sleep(PAUSE).await;
        if let Err(error) = releases.refresh().await {
            tracing::warn!(%error, "changes made elsewhere could not be looked for");
        }
    }
}

/// Keeps the last quarter of an hour for the page of operations. Owned by `run`, which ends it.
async fn sample(metrics: Metrics) {
    loop {
        metrics.sample(SystemTime::now().into());
        tokio::time::sleep(SAMPLED).await;
    }
}

/// Text for a person at a terminal, JSON for whatever collects logs elsewhere. `RUST_LOG` refines it.
fn start_log() {
    let asked = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let asked = if asked.is_empty() { DEFAULT_LOG } else { &asked };
    let (filter, error) = match EnvFilter::try_new(asked) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(DEFAULT_LOG), Some(error)),
    };
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    if io::stderr().is_terminal() {
        log.init();
    } else {
        log.json().flatten_event(true).with_span_list(false).init();
    }
    if let Some(error) = error {
        tracing::warn!("RUST_LOG={asked} is not understood ({error}); it is {DEFAULT_LOG} instead");
    }
}

/// The one line for a person: on standard output, apart from the log. As long as no admin has a password, the
/// link signs one in.
async fn announce(address: SocketAddr, access: &Access) -> Result<()> {
    let now = SystemTime::now().into();
    let line = match access.without_password(now).await? {
        Some(admin) => sign_in_link(&address.to_string(), &admin, access.link(admin.id, now).await?.as_str()),
        None => format!("Atelier is at http://{}/", reachable(&address.to_string()).0),
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Lets requests in progress finish, but not for ever: a caller that never sends its request's end, or a
/// second signal, ends the wait.
async fn drain(
    mut serving: JoinHandle<io::Result<()>>,
    signals: &mut Signals,
    patience: Duration,
) -> Result<()> {
    tokio::select! {
        ended = &mut serving => return Ok(ended??),
        () = tokio::time::sleep(patience) => {
            tracing::warn!("requests in progress were not done after {patience:?} and are cut");
        }
        () = signals.next() => tracing::warn!("told to stop again: requests in progress are cut"),
    }
    serving.abort();
    Ok(())
}

/// What asks the process to stop.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From now on.
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
