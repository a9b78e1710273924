//! Damaged requests to the real router, in this process: method and path, then the body.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use atelier::{
    config::{Limits, Profiles as ProfileSettings, Tickets as TicketSettings},
    domain::{Article, Customer, Timestamp},
    files::{self, Table},
    models::{
        engine::{DeviceChoice, Engine, Settings},
        onnx_runtime::OnnxRuntime,
    },
    service::{
        access::{Access, RequireKey},
        live_release::Releases,
        profiles::Profiles,
        tickets::Tickets,
    },
    store::Store,
    util::{clock::Clock, telemetry::Traces},
    web::{self, AppState, Metrics, Parts},
};
use axum::{Router, body::Body, extract::Request};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower_service::Service;

pub struct Requests {
    pub corpus: Vec<Vec<u8>>,
    router: Router,
    runtime: Runtime,
    _folder: TempDir,
}

impl Requests {
    pub fn new(demo: &Path) -> Result<Self> {
        let (runtime, folder) = (Runtime::new()?, TempDir::new()?);
        let router = runtime.block_on(router(demo, folder.path()))?;
        let corpus = [
            "POST /complete {\"customer\":\"c-1\",\"features\":{\"gender\":\"female\",\"age\":34},\"outfit\":[\"a-00134\",null],\
             \"method\":\"gsu\",\"k\":3,\"filters\":{\"types\":{\"1\":[\"coat\"]},\"exclude\":[\"a-00001\"],\
             \"price\":{\"min\":1,\"max\":300.5},\"in_stock\":true,\"no_gos\":false},\"diversity\":0.5,\"lift\":true,\
             \"explain\":true,\"sets\":2}",
            "POST /complete/batch {\"items\":[{\"outfit\":[null],\"k\":2},{\"outfit\":[\"a-00134\",null]}]}",
            "POST /compare {\"features\":{\"age\":3},\"outfit\":[\"a-00134\",null],\"methods\":[\"none\",\"gsu\"],\
             \"k\":2,\"true_article\":\"a-01243\"}",
            "POST /score {\"features\":{\"age\":3},\"outfit\":[\"a-00134\",\"a-00259\"],\"method\":\"np\"}",
            "POST /feedback {\"id\":\"e\",\"completion_id\":\"x\",\"kind\":\"shown\",\"slot\":1,\"article\":\"a\",\"rank\":2}",
            "PUT /customers/c-fuzz {\"id\":\"c-fuzz\",\"features\":{\"age\":28,\"preferred_colours\":[\"grey\",null]}}",
            "PUT /articles/a-fuzz {\"id\":\"a-fuzz\",\"type\":\"coat\",\"price\":1.5,\"in_stock\":true}",
            "PUT /routing {\"default_method\":null,\"experiment\":{\"name\":\"x\",\"arms\":[{\"method\":\"gsu\",\"share\":1},\
             {\"method\":\"none\",\"share\":2}]}}",
            "GET /customers?n=2&cursor=abc&search=%C3%A4 ",
        ];
        let corpus = corpus.map(|text| text.as_bytes().to_vec()).into();
        Ok(Self { corpus, router, runtime, _folder: folder })
    }

    /// # Panics
    /// If the answer is a 500, which is what a panic becomes.
    pub fn send(&self, bytes: &[u8]) {
        let mut parts = bytes.splitn(3, |byte| *byte == b' ');
        let mut part = || parts.next().unwrap_or_default();
        let request =
            Request::builder().method(part()).uri(part()).header("content-type", "application/json");
        // Invalid HTTP never reaches the router.
        let Ok(request) = request.body(Body::from(part().to_vec())) else { return };
        let answer = self.runtime.block_on(self.router.clone().call(request));
        let status = answer.unwrap_or_else(|never| match never {}).status();
        assert_ne!(status, 500, "{}", String::from_utf8_lossy(bytes));
    }
}

async fn router(demo: &Path, folder: &Path) -> Result<Router> {
    let store = Store::open(&format!("sqlite:{}", folder.join("a.db").display())).await?;
    let mut import = store.import(Timestamp::from_millis(1)).await?;
    import.articles(&rows::<Article>(demo)?).await?;
    import.customers(&rows::<Customer>(demo)?).await?;
    import.commit().await?;
    let cache = atelier::config::Cache::default().folder;
    let runtime = tokio::task::spawn_blocking(move || OnnxRuntime::load(&cache, |_| {})).await??;
    let settings = Settings { workers: 1, batch: 64, queue: 1024, device: DeviceChoice::Cpu };
    let engine = Engine::new(runtime, settings);
    let models = demo.parent().expect("it lies in a folder; this is a bug").to_owned();
    let offers = Arc::new(Releases::new(engine, store.clone(), models));
    offers.serve("demo").await?;
    let terms = TicketSettings::default().terms();
    Ok(web::app(AppState::new(Parts {
        profiles: Profiles::new(store.clone(), ProfileSettings::default().keep()),
        limits: Limits::default(),
        tickets: Tickets::start(&store, terms, || [7; 32], Timestamp::from_millis(1)).await?,
        metrics: Metrics::new(&offers),
        access: Access::new(store.clone()).require_key(RequireKey::Never),
        releases: offers,
        store,
        traces: Traces::default(),
        clock: Clock::default(),
    })))
}

fn rows<T: Table>(demo: &Path) -> Result<Vec<T>> {
    let schema = files::read_folder_schema(demo)?;
    let rows = files::read::<T>(&demo.join(format!("{}.jsonl", T::NAME)), &schema)?;
    rows.map(|row| Ok(row?.value)).collect()
}
