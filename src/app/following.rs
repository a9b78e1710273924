//! The features' followers of each live release.

use std::sync::Arc;

use crate::{
    analysis::personas::NoPersonas,
    completion::{asking::Observers, rules::Rules, sample::Sample},
    experiments::{
        self,
        guard::{Guard, Watched},
    },
    outcomes::exposure::Exposure,
    releases::followers::Following,
    steering::looks::Looks,
};

/// For one process: its releases count and watch together.
pub fn following() -> Following {
    let (exposure, guard) = (Arc::new(Exposure::default()), Arc::new(Guard::default()));
    let observers = Observers(vec![Arc::clone(&exposure) as _, Arc::clone(&guard) as _]);
    Following {
        shared: vec![Arc::new(Sample::default()), Arc::new(observers), exposure, guard],
        compiled: vec![
            Arc::new(Arc::new(Rules::default())),
            Arc::new(Looks::default()),
            Arc::new(Watched::default()),
            Arc::new(NoPersonas),
        ],
        arms: experiments::arms,
        compares_releases: experiments::compares_releases,
    }
}
