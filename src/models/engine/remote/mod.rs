//! A model at a server that speaks the Open Inference Protocol v2 over HTTP (Triton, `KServe` and others).
//!
//! Inputs go as JSON: they are small. Outputs are asked for as bytes (the protocol's binary extension), because a
//! batch's logits as text would be ten times their size and slow to read; a server without the extension answers with
//! JSON, and that is understood too.

mod numbers;

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use serde::{Deserialize, Serialize};
use ureq::http::{
    HeaderMap,
    header::{CONTENT_TYPE, HeaderValue},
};

use self::numbers::Numbers;
use super::{
    inputs::{FeatureCells, Inputs},
    model::{Gives, ModelError, Outputs},
    surface::{Element, Port},
};
use crate::util::http_client::{Client, HttpError, Origin, Response};

/// Where an answer's JSON ends and its bytes begin.
const JSON_LENGTH: &str = "inference-header-content-length";

/// A connection to one model.
#[derive(Debug)]
pub(super) struct Remote {
    client: Client,
    model: String,
    /// The model's address, in the place of a file's path.
    path: PathBuf,
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
    inputs: Vec<InputBody<'a>>,
    outputs: Vec<WantedBody>,
}

#[derive(Serialize)]
struct InputBody<'a> {
    name: &'static str,
    datatype: &'static str,
    shape: Vec<usize>,
    data: &'a [i64],
}

#[derive(Serialize)]
struct WantedBody {
    name: &'static str,
    parameters: AsBytes,
}

#[derive(Serialize)]
struct AsBytes {
    binary_data: bool,
}

#[derive(Deserialize)]
struct InferAnswer {
    outputs: Vec<OutputBody>,
}

#[derive(Deserialize)]
struct OutputBody {
    name: String,
    datatype: String,
    shape: Vec<usize>,
    data: Option<Numbers>,
    #[serde(default)]
    parameters: OutputParameters,
}

#[derive(Default, Deserialize)]
struct OutputParameters {
    binary_data_size: Option<usize>,
}

/// What a server gave, by name.
#[derive(Debug)]
pub(super) struct Inferred(Vec<Output>);

#[derive(Debug)]
struct Output {
    name: String,
    shape: Vec<usize>,
    values: Vec<f32>,
}

impl Remote {
    pub(super) fn new(origin: Origin, model: &str) -> Self {
        let model = format!("/v2/models/{model}");
        let path = format!("{origin}{model}").into();
        Self { client: Client::new(origin), model, path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the server says that the model takes and gives.
    pub(super) fn surface(&mut self, deadline: Instant) -> Result<(Vec<Port>, Vec<Port>), ModelError> {
        let answer = self.client.get(&self.model, deadline);
        let answer = self.sound(answer)?;
        let Metadata { inputs, outputs } =
            serde_json::from_slice(answer.body()).map_err(|error| self.refuse(&error.to_string()))?;
        let ports = |described: Vec<Described>| described.into_iter().map(Port::from).collect();
        Ok((ports(inputs), ports(outputs)))
    }

    pub(super) fn infer(
        &mut self,
        inputs: &Inputs,
        gives: Gives,
        deadline: Instant,
    ) -> Result<Inferred, ModelError> {
        let body = serde_json::to_vec(&body(inputs, gives)).expect("numbers are JSON; this is a bug");
        let path = format!("{}/infer", self.model);
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let answer = self.client.post(&path, headers, &body, deadline);
        let answer = self.sound(answer)?;
        read(&answer).map_err(|reason| self.refuse(&reason))
    }

    fn sound(&self, answer: Result<Response, HttpError>) -> Result<Response, ModelError> {
        match answer {
            Ok(answer) if answer.status() == 200 => Ok(answer),
            Ok(answer) => {
                let body: String = String::from_utf8_lossy(answer.body()).chars().take(200).collect();
                Err(self.refuse(&format!("it answers {} {body:?}, expected 200", answer.status().as_u16())))
            }
            Err(HttpError::Late { .. }) => Err(ModelError::Late { path: self.path.clone() }),
            Err(error) => Err(self.refuse(&error.to_string())),
        }
    }

    fn refuse(&self, reason: &str) -> ModelError {
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
        let shown = format!("{datatype} {shape:?}");
        Self { name, element, axes: shape, shown }
    }
}

fn body(inputs: &Inputs, gives: Gives) -> InferBody<'_> {
    let input = |name, shape, data| InputBody { name, datatype: "INT64", shape, data };
    let mut tensors = vec![
        input("articles", vec![inputs.batch, inputs.slots], &inputs.articles),
        input("blank", vec![inputs.batch], &inputs.blanks),
    ];
    if let Some(FeatureCells { features, values, cells }) = &inputs.features {
        tensors.push(input("features", vec![inputs.batch, *features, *values], cells));
    }
    let wanted = [("logits", true), ("personas", gives.personas), ("steps", gives.steps)];
    let wanted = wanted.into_iter().filter(|(_, gives)| *gives);
    let outputs = wanted.map(|(name, _)| WantedBody { name, parameters: AsBytes { binary_data: true } });
    InferBody { inputs: tensors, outputs: outputs.collect() }
}

fn read(answer: &Response) -> Result<Inferred, String> {
    let body = answer.body();
    let length = match answer.headers().get(JSON_LENGTH) {
        Some(length) => {
            let number = length.to_str().ok().and_then(|length| length.parse().ok());
            number.ok_or_else(|| format!("{JSON_LENGTH} is {length:?}"))?
        }
        None => body.len(),
    };
    let (json, mut bytes) = body.split_at_checked(length).ok_or("its JSON is longer than its answer")?;
    let told: InferAnswer = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let mut outputs = Vec::new();
    for OutputBody { name, datatype, shape, data, parameters } in told.outputs {
        if datatype != "FP32" {
            return Err(format!("its output {name} is {datatype}, expected FP32"));
        }
        let values = match (data, parameters.binary_data_size) {
            (Some(Numbers(values)), None) => values,
            (None, Some(size)) => {
                let (own, rest) = bytes
                    .split_at_checked(size)
                    .ok_or_else(|| format!("the bytes of its output {name} are cut"))?;
                bytes = rest;
                own.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
            }
            _ => return Err(format!("its output {name} has neither numbers nor bytes, or both")),
        };
        outputs.push(Output { name, shape, values });
    }
    Ok(Inferred(outputs))
}

impl Inferred {
    /// Held against what was asked for.
    pub(super) fn outputs(
        &self,
        batch: usize,
        articles: usize,
        gives: Gives,
        path: &Path,
    ) -> Result<Outputs<'_>, ModelError> {
        let find = |name: &str, shape: &[Option<usize>]| {
            let wrong = |found: String| ModelError::Answers { path: path.to_owned(), found };
            let output = self.0.iter().find(|output| output.name == name);
            let output = output.ok_or_else(|| wrong(format!("no {name}")))?;
            let fits = output.shape.len() == shape.len()
                && output.shape.iter().zip(shape).all(|(found, axis)| axis.is_none_or(|axis| axis == *found))
                && output.shape.iter().product::<usize>() == output.values.len();
            if fits {
                Ok((output.shape.last().copied().unwrap_or(0), output.values.as_slice()))
            } else {
                Err(wrong(format!(
                    "{name} of the shape {:?} in {} numbers",
                    output.shape,
                    output.values.len()
                )))
            }
        };
        Ok(Outputs {
            last: find("logits", &[Some(batch), Some(articles)])?.1,
            personas: gives.personas.then(|| find("personas", &[Some(batch), None])).transpose()?,
            steps: gives.steps.then(|| find("steps", &[Some(batch)]).map(|(_, steps)| steps)).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_body(body: &[u8], length: Option<usize>) -> Result<Vec<(String, Vec<f32>)>, String> {
        let mut answer = Response::new(body.to_vec());
        if let Some(length) = length {
            answer.headers_mut().insert(JSON_LENGTH, length.into());
        }
        Ok(read(&answer)?.0.into_iter().map(|output| (output.name, output.values)).collect())
    }

    #[test]
    fn numbers_come_as_text_or_as_bytes() {
        let nested = br#"{"model_name":"m","outputs":[{"name":"logits","datatype":"FP32","shape":[2,2],"data":[[1,2.5],[-3e1,0]]}]}"#;
        let expected = vec![("logits".to_owned(), vec![1.0, 2.5, -30.0, 0.0])];
        assert_eq!(read_body(nested, None).unwrap(), expected);

        let json = br#"{"outputs":[{"name":"logits","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}},{"name":"steps","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}}]}"#;
        let bytes: Vec<u8> = [1.5_f32, -2.0, 4.0].iter().flat_map(|number| number.to_le_bytes()).collect();
        let whole = [&json[..], &bytes].concat();
        let expected = vec![("logits".to_owned(), vec![1.5, -2.0]), ("steps".to_owned(), vec![4.0])];
        assert_eq!(read_body(&whole, Some(json.len())).unwrap(), expected);

        let cut = read_body(&whole[..whole.len() - 1], Some(json.len())).unwrap_err();
        assert_eq!(cut, "the bytes of its output steps are cut");
        assert_eq!(read_body(b"{}", Some(9)).unwrap_err(), "its JSON is longer than its answer");
        let other =
            read_body(br#"{"outputs":[{"name":"logits","datatype":"FP16","shape":[1],"data":[1]}]}"#, None);
        assert_eq!(other.unwrap_err(), "its output logits is FP16, expected FP32");
        assert!(
            read_body(br#"{"outputs":[{"name":"a","datatype":"FP32","shape":[1],"data":["x"]}]}"#, None)
                .is_err()
        );
    }
}
