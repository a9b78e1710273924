//! Where models run, and their batches and queues.

use atelier_core::util::http_client::Origin;
use atelier_engine::inference::{self, DeviceChoice};
use serde::Deserialize;

settings! {
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct Engine {
        device: DeviceChoice = DeviceChoice::Auto,
        workers: usize = 0,
        batch: usize = 64,
        queue: usize = 1024,
        remote: Option<Origin> = None,
    }
}

impl Engine {
    pub fn settings(&self) -> inference::Settings {
        /// Every thread has a copy of the models, so more threads need more memory than most machines have.
        const DEFAULT_MAX: usize = 4;
        let cores = inference::available_cores();
        let workers = if self.workers == 0 { cores.min(DEFAULT_MAX) } else { self.workers };
        inference::Settings { workers, batch: self.batch, queue: self.queue, device: self.device }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.remote.is_some() && self.device != DeviceChoice::Auto {
            return Err("engine.device sets the device of local models, and engine.remote uses a model server instead: \
                        remove one of them"
                .into());
        }
        if self.batch == 0 || self.queue < self.batch {
            return Err(format!(
                "engine.batch ({}) must be at least 1, and engine.queue ({}) at least engine.batch",
                self.batch, self.queue
            ));
        }
        if self.workers > 256 {
            return Err(format!("engine.workers must be at most 256, found {}", self.workers));
        }
        Ok(())
    }
}
