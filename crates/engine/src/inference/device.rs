//! The devices that models run on.

use atelier_core::named;
use ort::{ep, session::builder::SessionBuilder};
use serde::{Deserialize, Serialize};

named! {
    "a device is cpu, cuda or remote"
    /// The device that a release runs on.
    #[derive(Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Device {
        Cpu = "cpu",
        Cuda = "cuda",
        /// A model server, on whatever device it has.
        Remote = "remote",
    }
}

named! {
    "a device is auto, cpu or cuda"
    /// The device that the settings ask for.
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum DeviceChoice {
        /// CUDA if its provider loads and the models run on it, otherwise the CPU.
        #[default]
        Auto = "auto",
        Cpu = "cpu",
        /// CUDA, or an error.
        Cuda = "cuda",
    }
}

impl DeviceChoice {
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
