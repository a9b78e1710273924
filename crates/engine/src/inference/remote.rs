//! A model on a server that speaks the Open Inference Protocol v2 over HTTP (Triton, `KServe` and others).
//!
//! Inputs are sent as JSON. Outputs are requested as bytes (the protocol's binary extension): a
//! batch's logits as text would be ten times as large and slow to read. Servers without the extension answer in JSON,
//! which is read too.

use std::{path::PathBuf, time::Instant};

use atelier_core::util::http_client::{Client, HttpError, Origin, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use ureq::http::{
    HeaderMap,
    header::{CONTENT_TYPE, HeaderValue},
};

use super::{
    inputs::{Input, Inputs},
    model::{Found, ModelError, OptionalOutputs},
    signature::{Element, Port},
};

/// The header with the length of an answer's JSON, after which its bytes begin.
const JSON_LENGTH: &str = "inference-header-content-length";

/// The most bytes of a description, and of an answer without its numbers.
const MOST_TEXT: u64 = 1 << 20;
/// The most bytes of a number as text, with its comma.
const MOST_NUMBER: u64 = 32;
/// The most numbers of an outfit besides its logits: personas and steps.
const MOST_OTHERS: usize = 16;

/// A connection to one model.
#[derive(Debug)]
pub(super) struct Remote {
    client: Client,
    model: String,
    /// The model's address, in place of a file's path.
    pub(super) path: PathBuf,
}

#[derive(Deserialize)]
struct Metadata {
    inputs: Vec<Described>,
    outputs: Vec<Described>,
}

#[derive(Deserialize)]
struct Described {
    name: String,
    datatype: String,
    shape: Vec<i64>,
}

#[derive(Serialize)]
struct InferBody<'a> {
    inputs: &'a [Input],
    outputs: Vec<Value>,
}

#[derive(Deserialize)]
struct InferAnswer<'a> {
    #[serde(borrow)]
    outputs: Vec<OutputBody<'a>>,
}

#[derive(Deserialize)]
struct OutputBody<'a> {
    name: String,
    datatype: String,
    shape: Vec<i64>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(default)]
    parameters: OutputParameters,
}

#[derive(Default, Deserialize)]
struct OutputParameters {
    binary_data_size: Option<usize>,
}

/// An output of a run.
pub(super) struct Output {
    name: String,
    shape: Vec<i64>,
    values: Vec<f32>,
}

impl Remote {
    pub(super) fn new(origin: Origin, model: &str) -> Self {
        let model = format!("/v2/models/{model}");
        let path = format!("{origin}{model}").into();
        Self { client: Client::new(origin), model, path }
    }

    /// The inputs and outputs that the server describes.
    pub(super) fn fetch_ports(&mut self, deadline: Instant) -> Result<(Vec<Port>, Vec<Port>), ModelError> {
        let answer = self.client.get(&self.model, MOST_TEXT, deadline);
        let answer = self.check(answer)?;
        let Metadata { inputs, outputs } =
            serde_json::from_slice(answer.body()).map_err(|error| self.error(&error.to_string()))?;
        let ports = |described: Vec<Described>| described.into_iter().map(Port::from).collect();
        Ok((ports(inputs), ports(outputs)))
    }

    /// `last` is the output that answers are made from; its length bounds the answer.
    pub(super) fn infer(
        &mut self,
        inputs: &Inputs,
        last: (&'static str, usize),
        optional: OptionalOutputs,
        deadline: Instant,
    ) -> Result<Vec<Output>, ModelError> {
        let wanted = [(last.0, true), ("personas", optional.personas), ("steps", optional.steps)];
        let wanted = wanted.into_iter().filter(|(_, wanted)| *wanted);
        let outputs = wanted.map(|(name, _)| json!({"name": name, "parameters": {"binary_data": true}}));
        let body = InferBody { inputs: &inputs.tensors, outputs: outputs.collect() };
        let body = serde_json::to_vec(&body).expect("numbers are JSON");
        let path = format!("{}/infer", self.model);
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let answer = self.client.post(&path, headers, &body, longest_answer(inputs.batch, last.1), deadline);
        let answer = self.check(answer)?;
        read(&answer).map_err(|reason| self.error(&reason))
    }

    fn check(&self, answer: Result<Response, HttpError>) -> Result<Response, ModelError> {
        match answer {
            Ok(answer) if answer.status() == 200 => Ok(answer),
            Ok(answer) => {
                let body: String = String::from_utf8_lossy(answer.body()).chars().take(200).collect();
                let status = answer.status().as_u16();
                Err(self.error(&format!("the server answered {status} {body:?}, expected 200")))
            }
            Err(HttpError::Late { .. }) => Err(ModelError::Timeout { path: self.path.clone() }),
            Err(error) => Err(self.error(&error.to_string())),
        }
    }

    fn error(&self, reason: &str) -> ModelError {
        ModelError::Remote { path: self.path.clone(), reason: reason.to_owned() }
    }
}

impl From<Described> for Port {
    fn from(Described { name, datatype, shape }: Described) -> Self {
        let element = match datatype.as_str() {
            "INT64" => Element::Int64,
            "FP32" => Element::Float32,
            _ => Element::Other,
        };
        let description = format!("{datatype} {shape:?}");
        Self { name, element, axes: shape, description }
    }
}

fn longest_answer(batch: usize, last: usize) -> u64 {
    MOST_TEXT + (batch * (last + MOST_OTHERS)) as u64 * MOST_NUMBER
}

fn read(answer: &Response) -> Result<Vec<Output>, String> {
    let body = answer.body();
    let length = match answer.headers().get(JSON_LENGTH) {
        Some(length) => {
            let number = length.to_str().ok().and_then(|length| length.parse().ok());
            number.ok_or_else(|| format!("{JSON_LENGTH} is {length:?}"))?
        }
        None => body.len(),
    };
    let (json, mut bytes) = body.split_at_checked(length).ok_or("the JSON is longer than the answer")?;
    let described: InferAnswer<'_> = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let mut outputs = Vec::new();
    for OutputBody { name, datatype, shape, data, parameters } in described.outputs {
        if datatype != "FP32" {
            return Err(format!("the output {name} is {datatype}, expected FP32"));
        }
        let values = match (data, parameters.binary_data_size) {
            (Some(list), None) => {
                numbers(list).map_err(|error| format!("the numbers of the output {name}: {error}"))?
            }
            (None, Some(size)) => {
                let (own, rest) = bytes
                    .split_at_checked(size)
                    .ok_or_else(|| format!("the answer ends within the bytes of the output {name}"))?;
                bytes = rest;
                own.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
            }
            _ => return Err(format!("the output {name} must have either numbers or bytes")),
        };
        outputs.push(Output { name, shape, values });
    }
    Ok(outputs)
}

/// Reads a flat list or nested ones, row-major.
fn numbers(list: &RawValue) -> Result<Vec<f32>, serde_json::Error> {
    let flat: String = list.get().chars().filter(|c| !matches!(c, '[' | ']')).collect();
    serde_json::from_str(&format!("[{flat}]"))
}

pub(super) fn find<'a>(outputs: &'a [Output], name: &str) -> Found<'a> {
    let found = outputs.iter().find(|output| output.name == name);
    found.map(|output| (&*output.shape, &*output.values)).ok_or_else(|| "that are missing".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole answers are asked of a model server.
    #[test]
    fn an_answer_that_is_cut_or_of_another_type_is_refused() {
        let whole = r#"{"outputs":[{"name":"steps","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}}]}..."#;
        let half = r#"{"outputs":[{"name":"logits","datatype":"FP16","shape":[1],"data":[1]}]}"#;
        let words = r#"{"outputs":[{"name":"a","datatype":"FP32","shape":[1],"data":["x"]}]}"#;
        for (body, length, reason) in [
            (whole, Some(whole.len() - 3), "the answer ends within the bytes of the output steps"),
            ("{}", Some(9), "the JSON is longer than the answer"),
            (half, None, "the output logits is FP16, expected FP32"),
            (words, None, ""),
        ] {
            let mut answer = Response::new(body.as_bytes().to_vec());
            if let Some(length) = length {
                answer.headers_mut().insert(JSON_LENGTH, length.into());
            }
            let refused = read(&answer).map(drop).unwrap_err();
            assert!(refused.contains(reason), "{body}: {refused}");
        }
    }
}
