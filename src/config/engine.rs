//! How much models take on, and where they run.

use std::fmt;

use serde::Deserialize;

use crate::{
    models::engine::{self, DeviceChoice},
    util::http_client::Origin,
};

/// The settings of the section.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Engine {
    pub device: DeviceChoice,
    /// Most threads a method; 0 is as many as there are cores, up to four.
    pub workers: usize,
    /// Most outfits that a model is given at once.
    pub batch: usize,
    /// Most outfits that wait for one method.
    pub queue: usize,
    /// `http://host:port` or `https://user:password@host:port` of a model server, which answers instead of sessions
    /// of the service's own.
    pub remote: Option<String>,
}

impl Default for Engine {
    fn default() -> Self {
        Self { device: DeviceChoice::Auto, workers: 0, batch: 64, queue: 1024, remote: None }
    }
}

/// Not derived: a password in the URL must reach no log.
impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("device", &self.device)
            .field("workers", &self.workers)
            .field("batch", &self.batch)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// In the engine's own terms.
    pub fn settings(&self) -> engine::Settings {
        /// Beyond that, copies of the models cost more memory than most machines want to give.
        const MOST_BY_DEFAULT: usize = 4;
        let cores = engine::cores_here();
        let workers = if self.workers == 0 { cores.min(MOST_BY_DEFAULT) } else { self.workers };
        engine::Settings { workers, batch: self.batch, queue: self.queue, device: self.device }
    }

    /// The server that is asked, if one is.
    pub fn remote(&self) -> Option<Origin> {
        self.remote
            .as_ref()
            .map(|url| Origin::parse(url).expect("it was checked when it was read; this is a bug"))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(url) = &self.remote {
            Origin::parse(url).map_err(|error| format!("engine.remote: {error}"))?;
            if self.device != DeviceChoice::Auto {
                return Err(
                    "engine.device is about sessions of the service's own, and engine.remote asks a server \
                            instead: leave one of them out"
                        .into(),
                );
            }
        }
        if self.batch == 0 || self.queue < self.batch {
            return Err(format!(
                "engine.batch ({}) must be at least 1, and engine.queue ({}) not below it",
                self.batch, self.queue
            ));
        }
        if self.workers > 256 {
            return Err(format!("engine.workers is at most 256, found {}", self.workers));
        }
        Ok(())
    }
}
