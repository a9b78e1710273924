//! Releases and what runs them: the folder and its loader, the catalogue as a release sees it, and the engine over
//! ONNX Runtime or a model server. Knows nothing of customers, HTTP or the database.

pub mod catalogue;
pub mod engine;
pub mod onnx_runtime;
pub mod release;
