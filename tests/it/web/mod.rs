//! The service over HTTP, on a port and a database of its own.

pub mod articles;
pub mod customers;
pub mod feedback;
pub mod health;
pub mod home;
pub mod outfits;
pub mod problems;
pub mod routes;

use std::{env, path::PathBuf, sync::LazyLock};

use atelier::{
    completion::Secret,
    config::Limits,
    onnx_runtime::OnnxRuntime,
    store::Store,
    web::{self, AppState},
};
use reqwest::{Body, Client, Response};
use serde_json::Value;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::harness::TestDatabase;

/// It can be loaded once a process, and is fetched where it is not in the cache.
static ONNX_RUNTIME: LazyLock<OnnxRuntime> = LazyLock::new(|| {
    let home = env::var_os("XDG_CACHE_HOME")
        .or_else(|| env::home_dir().map(|home| home.join(".cache").into_os_string()))
        .expect("a test run has a home");
    OnnxRuntime::load(&PathBuf::from(home).join("atelier"), |notice| println!("{notice}"))
        .expect("ONNX Runtime loads")
});

/// What the services of tests sign the ids of completions with.
pub const SECRET: [u8; 32] = [7; 32];

/// A running service. It stops when it is dropped or told to.
pub struct Service {
    pub state: AppState,
    pub store: Store,
    pub url: String,
    pub http: Client,
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Service {
    pub async fn start(db: &TestDatabase) -> Self {
        Self::start_with(db, Limits::default()).await
    }

    pub async fn start_with(db: &TestDatabase, limits: Limits) -> Self {
        let store = db.open().await;
        let onnx_runtime = tokio::task::spawn_blocking(|| ONNX_RUNTIME.clone()).await.unwrap();
        let state = AppState {
            store: store.clone(),
            onnx_runtime,
            release: None,
            limits,
            tickets: Secret::new(SECRET),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(web::serve(listener, state.clone(), async {
            let _ = stopped.await;
        }));
        Self { state, store, url, http: Client::new(), stop, served }
    }

    pub async fn get(&self, path: &str) -> Response {
        self.http.get(format!("{}{path}", self.url)).send().await.unwrap()
    }

    pub async fn page(&self, path: &str) -> Response {
        let request = self.http.get(format!("{}{path}", self.url));
        request.header("accept", "text/html,application/xhtml+xml;q=0.9").send().await.unwrap()
    }

    /// What is there, as JSON.
    pub async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    pub async fn put(&self, path: &str, body: &Value) -> Response {
        self.http.put(format!("{}{path}", self.url)).json(body).send().await.unwrap()
    }

    pub async fn delete(&self, path: &str) -> Response {
        self.http.delete(format!("{}{path}", self.url)).send().await.unwrap()
    }

    pub async fn post(&self, path: &str, content_type: &str, body: impl Into<Body>) -> Response {
        let request = self.http.post(format!("{}{path}", self.url)).header("content-type", content_type);
        request.body(body).send().await.unwrap()
    }

    /// Stops it as SIGTERM does, and waits until it is done.
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap().unwrap();
    }
}

pub fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}
