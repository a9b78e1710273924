//! What the demo release has.

use std::{fs, path::Path};

use atelier::domain::Method;
use serde_json::Value;

/// The methods of the demo release, in its order.
pub(crate) fn methods() -> Vec<Method> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo/release.json");
    let manifest: Value = serde_json::from_slice(&fs::read(path).expect("the demo has a manifest"))
        .expect("the demo's manifest is JSON");
    let methods = manifest["methods"].as_array().expect("the manifest lists methods");
    let name = |method: &Value| method["method"].as_str().expect("a method has a name").parse();
    methods.iter().map(|method| name(method).expect("the name is known")).collect()
}
