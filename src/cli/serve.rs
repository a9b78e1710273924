//! `atelier serve`: the service.

use std::{
    fs,
    io::{self, IsTerminal, Write},
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, Result, bail};
use clap::Args;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tracing_subscriber::EnvFilter;

use super::import::bring_in;
use crate::{
    config::{Config, Models, Overrides},
    exchange::{Files, schema_of},
    onnx_runtime::OnnxRuntime,
    release::{MANIFEST, Release},
    store::Store,
    web::{self, AppState},
};

#[derive(Debug, Default, Args)]
pub(super) struct Serve {
    /// Where to listen.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<SocketAddr>,
    /// The folder of releases.
    #[arg(long, value_name = "DIR")]
    models: Option<PathBuf>,
    /// The release to serve.
    #[arg(long, value_name = "NAME")]
    release: Option<String>,
}

impl Serve {
    pub(super) fn set(&self, overrides: &mut Overrides) {
        if let Some(address) = self.address {
            overrides.set("server", "address", "--address", address.to_string().into());
        }
        if let Some(models) = &self.models {
            overrides.set("models", "folder", "--models", models.display().to_string().into());
        }
        if let Some(release) = &self.release {
            overrides.set("models", "release", "--release", release.clone().into());
        }
    }
}

pub(super) async fn run(config: Config) -> Result<ExitCode> {
    start_log();
    // The port first: a second service on it should hear so before it waits for anything.
    let address = config.server.address;
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}; is another service there? See --address"))?;
    let onnx_runtime = OnnxRuntime::load(&config.cache.folder, |notice| tracing::info!("{notice}"))?;
    let store = Store::open(&config.database.url).await?;
    let release = open_release(&config.models)?.map(Arc::new);
    fill_if_empty(&store, &config.models).await?;
    tracing::info!(
        database = store.kind(),
        onnx_runtime = onnx_runtime.build_info(),
        release = release.as_ref().map_or("none", |release| release.manifest().name.as_str()),
        "ready"
    );
    // Before the link is printed: whoever reads it may stop the service at once.
    let shutdown = shutdown()?;
    announce(listener.local_addr()?)?;
    web::serve(listener, AppState { store: store.clone(), onnx_runtime, release }, shutdown).await?;
    store.close().await;
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
    let report = bring_in(store, &files, &schema_of(&folder)?, false).await?;
    if let Some(bad) = report.errors.first() {
        bail!("{} rows in {} are bad, the first is {bad}", report.bad, folder.display());
    }
    Ok(())
}

/// A release that is not there leaves a service that browses the catalogue; one that is there and does
/// not fit is an error.
fn open_release(models: &Models) -> Result<Option<Release>> {
    let folder = models.folder.join(&models.release);
    let manifest = folder.join(MANIFEST);
    if !fs::exists(&manifest).with_context(|| manifest.display().to_string())? {
        tracing::warn!(
            folder = %folder.display(),
            "there is no release, so no outfit can be completed; make one with atelier-training, or name \
             another with --models and --release"
        );
        return Ok(None);
    }
    Ok(Some(Release::open(&folder)?))
}

/// Text for a person at a terminal, JSON for whatever collects logs elsewhere. `RUST_LOG` refines it.
fn start_log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,ort=warn"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    if io::stderr().is_terminal() {
        log.init();
    } else {
        log.json().flatten_event(true).init();
    }
}

/// The one line for a person: on standard output, apart from the log.
fn announce(address: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "Atelier is at http://{address}/")?;
    out.flush()
}

/// Listens for signals from now on, and is done when somebody asks the process to stop.
fn shutdown() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping: no new requests, those in progress are finished");
    })
}
