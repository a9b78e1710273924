//! Between a run and whoever watches it: what is told, what is asked, and how it ended.

use std::{fmt, sync::atomic::AtomicBool};

use super::EpochRecord;

/// What happens, as it happens.
#[derive(Debug)]
pub enum Event<'a> {
    Began { epochs: u32, steps_an_epoch: u32, resumed_at: u32 },
    Step { epoch: u32, step: u32, cross_entropy: f64, outfits: usize },
    Asking { epoch: u32 },
    Epoch(&'a EpochRecord),
}

/// What a run gets from whoever watches it.
pub struct Watch<'a> {
    /// Seconds since some moment.
    pub clock: &'a dyn Fn() -> f64,
    /// Set to end the run after the step under way, with a checkpoint.
    pub stop: &'a AtomicBool,
    pub hear: &'a mut dyn FnMut(Event<'_>),
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("stop", &self.stop).finish_non_exhaustive()
    }
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All epochs are done.
    Finished,
    /// The development split saw nothing better for as long as the patience lasted.
    Settled,
    /// Somebody asked it to; it can go on.
    Stopped,
}
