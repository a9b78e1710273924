//! Releases and what runs them: the folder and its loader, the catalogue, and the engine over
//! ONNX Runtime or a model server. Must not know customers, HTTP or the database.

pub mod averages;
pub mod catalogue;
pub mod evaluation;
pub mod inference;
pub mod onnx_runtime;
pub mod outfit_memory;
pub mod packed_article;
mod pairs;
pub mod release;
pub mod tables;
