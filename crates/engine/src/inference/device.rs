//! The devices that models run on.

use std::{fmt, str::FromStr};

use ort::{ep, session::builder::SessionBuilder};
use serde::{Deserialize, Serialize};

/// The device that a release runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    Cpu,
    Cuda,
    /// A model server, on whatever device it has.
    Remote,
}

/// The device that the settings ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// CUDA if its provider loads and the models run on it, otherwise the CPU.
    #[default]
    Auto,
    Cpu,
    /// CUDA, or an error.
    Cuda,
}

impl DeviceChoice {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }

    /// The devices to try, in this order.
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

    /// Adds the device's execution provider. A failure must be an error, because ONNX Runtime would fall back to the
    /// CPU silently. Without TF32, which would round what it multiplies to ten bits, answers are those of the CPU.
    pub fn configure(self, builder: SessionBuilder) -> Result<SessionBuilder, ort::Error> {
        match self {
            Self::Cpu | Self::Remote => Ok(builder),
            Self::Cuda => Ok(builder.with_execution_providers([ep::CUDA::default()
                .with_tf32(false)
                .build()
                .error_on_failure()])?),
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
            other => Err(format!("unknown device {other:?}; expected auto, cpu or cuda")),
        }
    }
}
