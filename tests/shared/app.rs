//! The service's state with the demo release, its catalogue and customers, for tests in the same process.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use atelier::{
    app::Parts,
    catalogue::search::Synonyms,
    completion::{profiles::Profiles, tickets::Tickets},
    config,
    people::{Access, RequireKey},
    platform::{
        db::Store,
        http::{AppState, CrossOrigins},
    },
    releases::Releases,
    telemetry::Traces,
};
use atelier_core::{
    domain::{Article, Customer, Timestamp},
    util::{clock::Clock, fetch::Reach},
};
use atelier_engine::{
    inference::{DeviceChoice, Engine, Settings},
    onnx_runtime::OnnxRuntime,
};
use atelier_files::{NotWorn, Table};

/// With a new database in the folder. Programs need no key.
pub async fn demo(folder: &Path) -> Result<(Store, AppState)> {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let store = Store::open(&format!("sqlite:{}", folder.join("a.db").display())).await?;
    let mut import = store.import(Timestamp::from_millis(1)).await?;
    import.put(&rows::<Article>(&models.join("demo"))?).await?;
    import.put(&rows::<Customer>(&models.join("demo"))?).await?;
    import.commit().await?;
    let cache = config::Cache::default().folder;
    let runtime = tokio::task::spawn_blocking(move || OnnxRuntime::load(&cache, |_| {})).await??;
    let settings = Settings { workers: 2, batch: 64, queue: 1024, device: DeviceChoice::Cpu };
    let engine = Engine::new(runtime, settings);
    let releases = Arc::new(Releases::new(engine, store.clone(), models, "EUR", atelier::app::following()));
    releases.serve("demo").await?;
    let (shop, tickets) = (config::Shop::default(), config::Tickets::default().terms());
    let state = AppState::new(Parts {
        profiles: Profiles::new(store.clone(), config::Profiles::default().keep()),
        releases,
        limits: config::Limits::default(),
        tickets: Tickets::start(&store, tickets, || [7; 32], Timestamp::from_millis(1)).await?,
        events: config::Events::default().terms(),
        access: Access::new(store.clone()).require_key(RequireKey::Never),
        cross_origins: CrossOrigins::default(),
        trusted_proxies: config::Networks::default(),
        notation: shop.notation(),
        zone: shop.zone(),
        public_attributes: shop.public_attributes.into(),
        traces: Traces::default(),
        clock: Clock::default(),
        synonyms: Synonyms::default(),
        not_worn: NotWorn::default(),
        feed_reach: Reach::Public,
        process: String::new(),
        store: store.clone(),
    });
    Ok((store, state))
}

fn rows<T: Table>(demo: &Path) -> Result<Vec<T>> {
    let schema = atelier_files::read_folder_schema(demo)?;
    let rows = atelier_files::read::<T>(&demo.join(format!("{}.jsonl", T::NAME)), &schema)?;
    rows.map(|row| Ok(row?.value)).collect()
}
