//! Moves articles in the order of an answer. Probabilities stay the model's own.

use std::{fmt, sync::Arc};

use atelier_core::domain::Mask;

use super::head::PANEL;

/// How a question's articles are ordered, and which more of them are wanted.
#[derive(Debug, Clone)]
pub struct Steering {
    pub offsets: Arc<Offsets>,
    /// Sets of articles, each with how many of its best admissible ones are wanted besides the `k` best of all.
    pub wanted: Vec<(Arc<Mask>, usize)>,
    /// Whose own ranks are counted; None for no article's.
    pub shown: Option<Arc<dyn Shown>>,
}

/// Says which articles an answer shows at other places than their own. Counting a rank looks at all articles.
pub trait Shown: fmt::Debug + Send + Sync {
    /// Of the `k` best and the best of each wanted set.
    fn choose(&self, top: &[u32], wanted: &[Vec<u32>]) -> Vec<u32>;
}

/// Added to the articles' logits for their order alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offsets {
    panels: Vec<[f32; PANEL]>,
    highest: f32,
}

impl Offsets {
    /// Each set's articles get its offset; those of several sets get their sum. `positions` is the catalogue's length.
    pub fn new<'a>(positions: usize, sets: impl IntoIterator<Item = (&'a Mask, f32)>) -> Self {
        let mut panels = Vec::new();
        for (set, offset) in sets {
            panels.resize(positions.div_ceil(PANEL), [0.0; PANEL]);
            for article in set.iter() {
                panels[article as usize / PANEL][article as usize % PANEL] += offset;
            }
        }
        let highest = panels.as_flattened().iter().copied().fold(0.0, f32::max);
        Self { panels, highest }
    }

    /// At least 0.
    pub(super) fn highest(&self) -> f32 {
        self.highest
    }

    /// Whether no article has one.
    pub fn is_empty(&self) -> bool {
        self.panels.is_empty()
    }

    /// The offset of the article at a position.
    pub fn of(&self, article: u32) -> f32 {
        self.panel(article as usize / PANEL)[article as usize % PANEL]
    }

    pub(super) fn panel(&self, panel: usize) -> &[f32; PANEL] {
        self.panels.get(panel).unwrap_or(&[0.0; PANEL])
    }
}
