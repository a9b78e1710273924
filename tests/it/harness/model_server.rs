//! A small model server that speaks the Open Inference Protocol v2: the demo release's files in ONNX Runtime, as in
//! Triton or `KServe`, with and without the binary extension. It fails in the way that a test chooses.

use std::{
    collections::HashMap,
    convert::Infallible,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use atelier_core::util::http_client::Origin;
use atelier_engine::onnx_runtime::OnnxRuntime;
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Path, State},
    http::{HeaderMap, HeaderName, StatusCode, header::AUTHORIZATION},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::stream;
use ort::{
    session::Session,
    value::{Tensor, TensorElementType},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Outputs as bytes where the request wants them.
    Bytes,
    /// Lists of numbers, as a server without the extension.
    Numbers,
    /// 500 to every request.
    Failing,
    /// A 200 with numbers that never end.
    Endless,
    /// No answer for a minute.
    Silent,
}

pub struct ModelServer {
    pub origin: Origin,
    models: Arc<Models>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

struct Models {
    folder: PathBuf,
    runtime: OnnxRuntime,
    manner: Mutex<Manner>,
    /// The credentials of the last caller.
    authorization: Mutex<Option<String>>,
    sessions: Mutex<HashMap<String, Session>>,
}

impl ModelServer {
    /// Serves `<folder>/<release>/<method>.onnx` as the model `<release>-<method>`.
    pub async fn start(runtime: &OnnxRuntime, folder: PathBuf, address: &str) -> Self {
        let models = Arc::new(Models {
            folder,
            runtime: runtime.clone(),
            manner: Mutex::new(Manner::Bytes),
            authorization: Mutex::default(),
            sessions: Mutex::default(),
        });
        let router = Router::new()
            .route("/v2/models/{model}", get(metadata))
            .route("/v2/models/{model}/infer", post(infer))
            .with_state(Arc::clone(&models));
        let listener = TcpListener::bind(address).await.unwrap();
        let origin = Origin::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(
            axum::serve(listener, router)
                .with_graceful_shutdown(async {
                    let _ = stopped.await;
                })
                .into_future(),
        );
        Self { origin, models, stop, served }
    }

    pub fn answer(&self, manner: Manner) {
        *self.models.manner.lock().unwrap() = manner;
    }

    /// The `Authorization` header of the last request for a model's metadata.
    pub fn authorization(&self) -> Option<String> {
        self.models.authorization.lock().unwrap().clone()
    }

    /// Closes the port, too.
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap().unwrap();
    }
}

impl Models {
    /// Opens the model's session on its first use.
    fn with<V>(&self, model: &str, work: impl FnOnce(&mut Session) -> V) -> Option<V> {
        let (release, method) = model.split_once('-')?;
        let path = self.folder.join(release).join(format!("{method}.onnx"));
        let mut sessions = self.sessions.lock().unwrap();
        if !sessions.contains_key(model) {
            // More threads would spin while they wait for each other, and starve on a busy machine.
            let builder = Session::builder(self.runtime.environment()).ok()?.with_intra_threads(1);
            let session = builder.ok()?.commit_from_file(path).ok()?;
            sessions.insert(model.to_owned(), session);
        }
        sessions.get_mut(model).map(work)
    }
}

async fn metadata(
    State(models): State<Arc<Models>>,
    Path(model): Path<String>,
    headers: HeaderMap,
) -> Response {
    *models.authorization.lock().unwrap() =
        headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
    let described = models.with(&model, |session| {
        let ports = |outlets: &[ort::value::Outlet]| -> Vec<Value> {
            let port = |outlet: &ort::value::Outlet| {
                let shape = outlet.dtype().tensor_shape().unwrap().to_vec();
                let whole = outlet.dtype().tensor_type() == Some(TensorElementType::Int64);
                json!({"name": outlet.name(), "datatype": if whole { "INT64" } else { "FP32" }, "shape": shape})
            };
            outlets.iter().map(port).collect()
        };
        json!({"name": model, "platform": "onnxruntime_onnx", "inputs": ports(session.inputs()),
            "outputs": ports(session.outputs())})
    });
    match described {
        Some(described) => Json(described).into_response(),
        None => {
            (StatusCode::NOT_FOUND, Json(json!({"error": format!("unknown model {model}")}))).into_response()
        }
    }
}

async fn infer(State(models): State<Arc<Models>>, Path(model): Path<String>, body: Bytes) -> Response {
    let manner = *models.manner.lock().unwrap();
    match manner {
        Manner::Failing => {
            let error = Json(json!({"error": "out of memory"}));
            return (StatusCode::INTERNAL_SERVER_ERROR, error).into_response();
        }
        Manner::Endless => {
            let numbers = stream::repeat(Ok::<_, Infallible>(Bytes::from_static(&[b'0'; 1 << 12])));
            return Body::from_stream(numbers).into_response();
        }
        Manner::Silent => tokio::time::sleep(Duration::from_mins(1)).await,
        Manner::Bytes | Manner::Numbers => {}
    }
    let body: Value = serde_json::from_slice(&body).unwrap();
    let outputs = tokio::task::spawn_blocking(move || models.with(&model, |session| run(session, &body)));
    let Some(outputs) = outputs.await.unwrap() else { return StatusCode::NOT_FOUND.into_response() };
    let mut bytes = Vec::new();
    let mut described = Vec::new();
    for (name, shape, values) in outputs {
        let mut output = json!({"name": name, "datatype": "FP32", "shape": shape});
        if manner == Manner::Numbers {
            // Nested lists for two axes.
            let row = shape.get(1).map_or(values.len(), |&length| usize::try_from(length).unwrap());
            let rows: Vec<&[f32]> = values.chunks(row).collect();
            output["data"] = if shape.len() == 2 { json!(rows) } else { json!(values) };
        } else {
            output["parameters"] = json!({"binary_data_size": 4 * values.len()});
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        described.push(output);
    }
    let json = serde_json::to_vec(&json!({"outputs": described})).unwrap();
    if manner == Manner::Numbers {
        return json.into_response();
    }
    let length = [(HeaderName::from_static("inference-header-content-length"), json.len().to_string())];
    (length, [json, bytes].concat()).into_response()
}

fn numbers<T: DeserializeOwned>(list: &Value) -> Vec<T> {
    serde_json::from_value(list.clone()).unwrap()
}

type Output = (String, Vec<i64>, Vec<f32>);

fn run(session: &mut Session, body: &Value) -> Vec<Output> {
    let mut inputs = Vec::new();
    for input in body["inputs"].as_array().unwrap() {
        let shape: Vec<i64> = numbers(&input["shape"]);
        let tensor = match input["datatype"].as_str().unwrap() {
            "INT64" => Tensor::from_array((shape, numbers::<i64>(&input["data"]))).unwrap().into_dyn(),
            "FP32" => Tensor::from_array((shape, numbers::<f32>(&input["data"]))).unwrap().into_dyn(),
            other => panic!("no model has an input of {other}"),
        };
        inputs.push((input["name"].as_str().unwrap().to_owned(), tensor));
    }
    let outputs = session.run(inputs).unwrap();
    let wanted = body["outputs"].as_array().unwrap().iter();
    wanted
        .map(|wanted| {
            assert_eq!(wanted["parameters"]["binary_data"], true);
            let name = wanted["name"].as_str().unwrap();
            let (shape, values) = outputs[name].try_extract_tensor::<f32>().unwrap();
            (name.to_owned(), shape.to_vec(), values.to_vec())
        })
        .collect()
}
