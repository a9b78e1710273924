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
    ModelFlags,
    import::{End, Outcome, load_files_if_empty},
    load_models,
    open_files::fit_open_files,
    sign_in_link::{reachable, sign_in_link},
    tls::{read_tls, reload_on_hangup, warn_without_tls},
};
use crate::{
    config::{Config, Models, Overrides},
    files::{Files, read_folder_schema},
    models::{engine::Engine, release::MANIFEST},
    service::{
        access::Access,
        live_release::{ActivateError, Releases},
        profiles::Profiles,
        tickets::Tickets,
    },
    store::Store,
    util::{clock::Clock, memory::return_memory_periodically, telemetry::Traces},
    web::{self, AppState, Listener, Metrics, Parts, SAMPLED},
};

const DEFAULT_LOG: &str = "info,ort=warn";

#[derive(Debug, Default, Args)]
pub(super) struct Serve {
    /// Address to listen on.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
    #[command(flatten)]
    models: ModelFlags,
}

impl Serve {
    pub(super) fn set(&self, overrides: &mut Overrides) {
        if let Some(address) = &self.address {
            overrides.set("server", "address", "--address", address);
        }
        self.models.set(overrides);
    }
}

pub(super) async fn run(config: Config) -> Result<ExitCode> {
    start_log();
    let tls = read_tls(&config.server)?;
    let models = load_models(&config, |notice| tracing::info!("{notice}"))?;
    let store = Store::open(&config.database.url).await?;
    fill_if_empty(&store, &config.models).await?;
    let tickets = Tickets::start(&store, config.tickets.terms(), draw_key, SystemTime::now().into()).await?;
    let engine = Engine::new(models, config.engine.settings());
    let releases = Arc::new(Releases::new(engine, store.clone(), config.models.folder.clone()));
    serve_first_release(&releases, &config.models).await?;
    let address = &config.server.address;
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}; choose another address with --address"))?;
    let live = releases.current();
    tracing::info!(
        database = store.kind(),
        onnx_runtime = releases.engine().onnx_runtime(),
        release = live.as_ref().map_or("none", |live| live.name()),
        device = live.as_ref().map_or("none", |live| live.serving.device().as_str()),
        "ready"
    );
    drop(live);
    // Before the link is printed: its reader may stop the service at once.
    let mut signals = Signals::listen()?;
    let reloading = reload_on_hangup(tls.clone())?;
    let access = Access::new(store.clone()).with_lifetimes(config.access.lifetimes());
    let listening = listener.local_addr()?;
    // Only programs on this machine can reach a loopback address.
    let access = if config.access.require_key || !listening.ip().is_loopback() {
        tracing::info!("programs need an API key, which an admin creates at /access/keys");
        access.requiring_keys()
    } else {
        access
    };
    warn_without_tls(tls.as_deref(), listening);
    announce(config.server.scheme(), listening, &access).await?;
    let following = tokio::spawn(follow_replicas(Arc::clone(&releases)));
    let metrics = Metrics::new(&releases);
    let profiles = Profiles::new(store.clone(), config.profiles.keep());
    let limits = fit_open_files(config.limits);
    let renewing_keys = tokio::spawn(renew_ticket_keys(tickets.clone()));
    let sampling = tokio::spawn(sample_metrics(metrics.clone()));
    let returning_memory = tokio::spawn(return_memory_periodically());
    let removing_remains = tokio::spawn(store.clone().remove_remains());
    let traces = Traces::new(config.telemetry.collector().as_ref());
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
    let mut serving = tokio::spawn(web::serve(Listener { tcp: listener, tls }, state, async {
        let _ = stopped.await;
    }));
    tokio::select! {
        ended = &mut serving => ended??,
        () = signals.next() => {
            tracing::info!("stopping: running requests finish, new ones are refused");
            let _ = stop.send(());
            drain(serving, &mut signals, config.server.drain()).await?;
        }
    }
    following.abort();
    renewing_keys.abort();
    reloading.abort();
    sampling.abort();
    returning_memory.abort();
    removing_remains.abort();
    store.close().await;
    tokio::task::spawn_blocking(move || traces.finish()).await?;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Fills an empty database with the data files of the release, so that there is something to see. The demo release has some
/// customers and outfits; a shop's release need not have any.
async fn fill_if_empty(store: &Store, models: &Models) -> Result<()> {
    let folder = models.folder.join(&models.release);
    if store.articles().count().await? + store.customers().count().await? > 0 || !folder.is_dir() {
        return Ok(());
    }
    let files = Files::in_folder(&folder)?;
    if files.is_empty() {
        return Ok(());
    }
    tracing::info!(folder = %folder.display(), "importing the data of the release into the empty database");
    let tell = |line: &str| tracing::info!("{line}");
    let Some(Outcome { report, end }) =
        load_files_if_empty(store, &files, &read_folder_schema(&folder)?, tell).await?
    else {
        return Ok(());
    };
    match end {
        End::Imported(_) => Ok(()),
        End::Stopped(error) => Err(error),
        End::Refused => {
            let first = report.errors.first().expect("a refused import has a bad row; this is a bug");
            bail!("{} rows in {} are bad; the first is {first}", report.bad, folder.display())
        }
    }
}

/// 244 random bits for a key that signs tickets.
fn draw_key() -> [u8; 32] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(Uuid::new_v4().as_bytes());
    key[16..].copy_from_slice(Uuid::new_v4().as_bytes());
    key
}

/// Serves the release that an admin activated last, or else the one in the settings. Without the default release the
/// service can still show the catalogue; any other missing or invalid release is an error.
async fn serve_first_release(releases: &Releases, models: &Models) -> Result<()> {
    if let Some(name) = releases.activated().await?.filter(|name| *name != models.release) {
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
            bail!("{error}: {MANIFEST} is missing. See --models and --release")
        }
        Err(error) => Err(error.into()),
    }
}

/// Applies the changes of other replicas until `run` aborts it.
async fn follow_replicas(releases: Arc<Releases>) {
    /// The longest delay of a change.
    const PAUSE: Duration = Duration::from_secs(1);
    loop {
        tokio::time::sleep(PAUSE).await;
        if let Err(error) = releases.refresh().await {
            tracing::warn!(%error, "cannot check for changes by other replicas");
        }
    }
}

/// Replaces the key that signs tickets when it is old, and follows the other replicas, until `run` aborts it.
async fn renew_ticket_keys(tickets: Tickets) {
    const PAUSE: Duration = Duration::from_mins(1);
    loop {
        tokio::time::sleep(PAUSE).await;
        if let Err(error) = tickets.refresh(SystemTime::now().into()).await {
            tracing::warn!(%error, "cannot check the keys that sign completion ids");
        }
    }
}

/// Records the last quarter of an hour for the operations page until `run` aborts it.
async fn sample_metrics(metrics: Metrics) {
    loop {
        metrics.sample(SystemTime::now().into());
        tokio::time::sleep(SAMPLED).await;
    }
}

/// Logs text to a terminal, and JSON elsewhere. `RUST_LOG` selects the events.
fn start_log() {
    let filter = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = if filter.is_empty() { DEFAULT_LOG } else { &filter };
    let (events, error) = match EnvFilter::try_new(filter) {
        Ok(events) => (events, None),
        Err(error) => (EnvFilter::new(DEFAULT_LOG), Some(error)),
    };
    let log = tracing_subscriber::fmt().with_env_filter(events).with_writer(io::stderr);
    if io::stderr().is_terminal() {
        log.init();
    } else {
        log.json().flatten_event(true).with_span_list(false).init();
    }
    if let Some(error) = error {
        tracing::warn!("RUST_LOG={filter} is invalid ({error}); using {DEFAULT_LOG}");
    }
}

/// Prints the address on standard output, apart from the log. While no admin has a password, the line is a link that signs
/// one in.
async fn announce(scheme: &str, address: SocketAddr, access: &Access) -> Result<()> {
    let now = SystemTime::now().into();
    let line = match access.without_password(now).await? {
        Some(admin) => {
            sign_in_link(scheme, &address.to_string(), &admin, access.link(admin.id, now).await?.as_str())
        }
        None => format!("Atelier is at {scheme}://{}/", reachable(&address.to_string()).0),
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
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

/// The signals that stop the process.
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
