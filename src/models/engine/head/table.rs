//! The last layer's weights in the order in which they are multiplied.

use std::sync::Arc;

use memmap2::MmapMut;
use rayon::prelude::*;

use crate::models::{engine::articles::Places, tables::Tables};

/// The number of articles whose logits are computed together: half a word of a [`Mask`](crate::domain::Mask).
pub(super) const PANEL: usize = 32;
/// The number of panels in a part. Sums start at zero for each part, so that an answer has the same bits on one core
/// and on many; and a change copies a part.
const PART: usize = 64;
/// The bias of places without an article: far below all logits, but finite.
pub(in crate::models::engine) const NO_ARTICLE: f32 = -1e30;

/// A sequence of panels. A panel is rows of [`PANEL`] numbers: the articles' biases, then their weights for the first
/// input, for the second, and so on.
#[derive(Debug, Clone)]
pub(in crate::models::engine) struct Table {
    places: usize,
    hidden: usize,
    personas: usize,
    parts: Vec<Arc<Part>>,
}

/// Floats in an anonymous mapping, which starts at a page boundary and may use huge pages. A pass reads all of it, and in
/// pages of 4 KiB it has more pages than the processor's TLB has entries.
#[derive(Debug)]
struct Part(MmapMut);

impl Part {
    fn new(panels: usize, inputs: usize) -> Self {
        Self::of_length(panels * (1 + inputs) * PANEL)
    }

    fn of_length(length: usize) -> Self {
        let memory =
            MmapMut::map_anon(length * size_of::<f32>()).expect("no memory for a model's last layer");
        // Without huge pages it is slower.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        Self(memory)
    }

    fn copy(&self) -> Self {
        let mut copy = Self::of_length(self.numbers().len());
        copy.numbers_mut().copy_from_slice(self.numbers());
        copy
    }

    fn numbers(&self) -> &[f32] {
        bytemuck::cast_slice(&self.0)
    }

    fn numbers_mut(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

impl Table {
    /// The rows of a catalogue's articles.
    pub(in crate::models::engine) fn compose(tables: &Tables, articles: &Places) -> Self {
        let widths = tables.widths();
        Self::new(articles.compositions.len(), widths.hidden(), widths.personas, |place, weights| {
            let article = articles.compositions.get(place)?.as_ref()?;
            tables.knows(article).then(|| tables.write_weights(article, weights))
        })
    }

    /// The table after the articles at some places have changed. Copies only their parts.
    pub(in crate::models::engine) fn with_changes(
        &self,
        tables: &Tables,
        articles: &Places,
        changed: &[u32],
    ) -> Self {
        let mut next = self.clone();
        let mut weights = vec![0.0; self.inputs()];
        let mut places: Vec<usize> = changed.iter().map(|place| *place as usize).collect();
        places.sort_unstable();
        for places in places.chunk_by(|a, b| a / (PART * PANEL) == b / (PART * PANEL)) {
            let part = &mut next.parts[places[0] / (PART * PANEL)];
            let mut copy = part.copy();
            for &place in places {
                let lane = place % PANEL;
                let panel = &mut copy.numbers_mut()[place / PANEL % PART * self.panel_length()..];
                let article = u32::try_from(place).ok().and_then(|place| articles.get(place));
                let article = article.filter(|article| tables.knows(article));
                let bias = article.map(|article| tables.write_weights(article, &mut weights));
                put(&mut panel[..self.panel_length()], lane, bias, &weights);
            }
            *part = Arc::new(copy);
        }
        next
    }

    /// `write` writes the weights of the article at a place, and returns its bias; None if there is no article.
    pub(super) fn new(
        places: usize,
        hidden: usize,
        personas: usize,
        write: impl Fn(usize, &mut [f32]) -> Option<f32> + Sync,
    ) -> Self {
        let inputs = hidden + personas;
        let make = |first: usize| {
            let panels = PART.min((places - first).div_ceil(PANEL));
            let mut part = Part::new(panels, inputs);
            let mut weights = vec![0.0; inputs];
            let panels = part.numbers_mut().chunks_exact_mut((1 + inputs) * PANEL);
            for (panel, first) in panels.zip((first..).step_by(PANEL)) {
                for lane in 0..PANEL {
                    let bias = if first + lane < places { write(first + lane, &mut weights) } else { None };
                    put(panel, lane, bias, &weights);
                }
            }
            Arc::new(part)
        };
        let firsts: Vec<usize> = (0..places).step_by(PART * PANEL).collect();
        Self { places, hidden, personas, parts: firsts.into_par_iter().map(make).collect() }
    }

    pub(super) fn places(&self) -> usize {
        self.places
    }

    /// The length of a hidden vector.
    pub(in crate::models::engine) fn hidden(&self) -> usize {
        self.hidden
    }

    pub(in crate::models::engine) fn personas(&self) -> usize {
        self.personas
    }

    pub(super) fn inputs(&self) -> usize {
        self.hidden + self.personas
    }

    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The number of a part's first place.
    pub(super) fn first_place(part: usize) -> usize {
        part * PART * PANEL
    }

    /// The panels of a part, with their places in the table.
    pub(super) fn panels(&self, part: usize) -> impl Iterator<Item = (usize, &[f32])> {
        (part * PART..).zip(self.parts[part].numbers().chunks_exact(self.panel_length()))
    }

    pub(super) fn panel(&self, place: usize) -> &[f32] {
        let part = self.parts[place / PART].numbers();
        &part[place % PART * self.panel_length()..][..self.panel_length()]
    }

    fn panel_length(&self) -> usize {
        (1 + self.inputs()) * PANEL
    }
}

/// Puts an article into its lane of a panel.
fn put(panel: &mut [f32], lane: usize, bias: Option<f32>, weights: &[f32]) {
    let column = panel.iter_mut().skip(lane).step_by(PANEL);
    let (bias, factor) = bias.map_or((NO_ARTICLE, 0.0), |bias| (bias, 1.0));
    let numbers = std::iter::once(bias).chain(weights.iter().map(|weight| factor * weight));
    column.zip(numbers).for_each(|(to, from)| *to = from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_each_panel_once() {
        for (places, expected) in [(1, vec![1]), (2048, vec![64]), (2049, vec![64, 1])] {
            let table = Table::new(places, 0, 0, |_, _| Some(0.0));
            let parts = (0..table.parts()).map(|part| table.panels(part));
            assert_eq!(parts.clone().map(Iterator::count).collect::<Vec<_>>(), expected);
            assert!(parts.flatten().map(|(place, _)| place).eq(0..places.div_ceil(PANEL)));
        }
    }

    #[test]
    fn each_weight_has_its_place() {
        let number = |place: usize, input: usize| f32::from(u16::try_from(place * 10 + input).unwrap());
        for places in [1, 31, 32, 33, 70, 2100] {
            let table = Table::new(places, 3, 2, |place, weights| {
                (0..).zip(&mut *weights).for_each(|(input, weight)| *weight = number(place, input));
                (place % 7 != 5).then(|| number(place, 9))
            });
            assert_eq!((table.places(), table.hidden(), table.personas()), (places, 3, 2));
            for (place, panel) in (0..table.parts()).flat_map(|part| table.panels(part)) {
                assert_eq!(panel, table.panel(place));
                for lane in 0..PANEL {
                    let article = place * PANEL + lane;
                    let column: Vec<f32> = panel.iter().skip(lane).step_by(PANEL).copied().collect();
                    let expected: Vec<f32> = if article < places && article % 7 != 5 {
                        [9, 0, 1, 2, 3, 4].map(|input| number(article, input)).to_vec()
                    } else {
                        vec![NO_ARTICLE, 0.0, 0.0, 0.0, 0.0, 0.0]
                    };
                    assert_eq!(column, expected, "{places} places, {article}");
                }
            }
        }
    }
}
