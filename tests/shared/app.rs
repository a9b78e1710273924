//! What a service is made of, for tests in the same process.

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use anyhow::{Error, Result};
use atelier::{
    app::Parts,
    catalogue::search::Synonyms,
    completion::{profiles::Profiles, tickets::Tickets},
    config,
    people::{Access, RequireKey},
    platform::{db::Store, http::CrossOrigins},
    releases::Releases,
    telemetry::Traces,
};
use atelier_core::{
    domain::{Article, Customer, Outfit, Timestamp},
    util::clock::Clock,
};
use atelier_engine::{
    inference::{DeviceChoice, Engine, Settings},
    onnx_runtime::OnnxRuntime,
};
use atelier_files::NotWorn;

use crate::demo::{models, rows};

/// With the default settings. Programs need no key.
pub async fn parts(
    store: &Store,
    engine: Engine,
    models: PathBuf,
    draw_key: fn() -> [u8; 32],
) -> Result<Parts> {
    let releases = Releases::new(engine, store.clone(), models, "EUR", atelier::app::following());
    let synonyms = Synonyms::parse(include_str!("../../docs/synonyms.txt")).map_err(Error::msg)?;
    let (shop, tickets) = (config::Shop::default(), config::Tickets::default().terms());
    Ok(Parts {
        store: store.clone(),
        profiles: Profiles::new(store.clone(), config::Profiles::default().keep()),
        releases: Arc::new(releases.with_synonyms(synonyms)),
        limits: config::Limits::default(),
        tickets: Tickets::start(store, tickets, draw_key, SystemTime::now().into()).await?,
        events: config::Events::default().terms(),
        access: Access::new(store.clone()).require_key(RequireKey::Never),
        cross_origins: CrossOrigins::default(),
        trusted_proxies: config::Networks::default(),
        notation: shop.notation(),
        zone: shop.zone(),
        public_attributes: shop.public_attributes.into(),
        traces: Traces::default(),
        clock: Clock::default(),
        not_worn: NotWorn::default(),
        feeds: config::Feeds { private_addresses: true, ..config::Feeds::default() },
        process: String::new(),
    })
}

/// The same with the demo release, its catalogue, customers and outfits, and `SQLite` at this URL.
pub async fn demo(database: &str) -> Result<Parts> {
    let store = Store::open(database).await?;
    bring_in_demo(&store).await?;
    let cache = config::Cache::default().folder;
    let runtime = tokio::task::spawn_blocking(move || OnnxRuntime::load(&cache, |_| {})).await??;
    let settings = Settings { workers: 2, batch: 64, queue: 1024, device: DeviceChoice::Cpu };
    let parts = parts(&store, Engine::new(runtime, settings), models(), || [7; 32]).await?;
    parts.releases.serve("demo").await?;
    Ok(Parts { feeds: config::Feeds::default(), ..parts })
}

/// Imports the catalogue, customers and outfits of the demo release.
pub async fn bring_in_demo(store: &Store) -> Result<()> {
    let demo = models().join("demo");
    let mut import = store.import(Timestamp::from_millis(1)).await?;
    import.put(&rows::<Article>(&demo)?).await?;
    import.put(&rows::<Customer>(&demo)?).await?;
    import.outfits(&rows::<Outfit>(&demo)?).await?;
    Ok(import.commit().await?)
}
