//! What models compute on.

use std::{fmt, str::FromStr};

use ort::{ep, session::builder::SessionBuilder};
use serde::{Deserialize, Serialize};

/// What was found to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    Cpu,
    Cuda,
    /// Whatever a server of models computes on.
    Remote,
}

/// What was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// CUDA where the provider loads and a model really runs on it, else the CPU.
    #[default]
    Auto,
    Cpu,
    /// CUDA or nothing.
    Cuda,
}

impl DeviceChoice {
    /// In the order in which they are tried.
    pub(super) fn candidates(self) -> &'static [Device] {
        match self {
            Self::Auto => &[Device::Cuda, Device::Cpu],
            Self::Cpu => &[Device::Cpu],
            Self::Cuda => &[Device::Cuda],
        }
    }
}

impl Device {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Remote => "remote",
        }
    }

    /// ONNX Runtime falls back to the CPU without a word unless it is told that this is an error.
    pub(super) fn prepare(self, builder: SessionBuilder) -> Result<SessionBuilder, ort::Error> {
        match self {
            Self::Cpu | Self::Remote => Ok(builder),
            Self::Cuda => {
                Ok(builder.with_execution_providers([ep::CUDA::default().build().error_on_failure()])?)
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda),
            other => Err(format!("a device is auto, cpu or cuda, not {other:?}")),
        }
    }
}
