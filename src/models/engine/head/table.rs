//! The last layer's weights in the order in which they are multiplied.

use memmap2::MmapMut;

/// The number of articles whose logits are computed together: half a word of a [`Mask`](crate::domain::Mask).
pub(super) const PANEL: usize = 32;
/// The number of panels in a part. Sums start at zero for each part, so that an answer has the same bits on one core
/// and on many.
const PART: usize = 256;
/// The bias of places in the last panel that have no article: far below all logits, but finite.
const NO_ARTICLE: f32 = -1e30;

/// A sequence of panels. A panel is rows of [`PANEL`] numbers: the articles' biases, then their weights for the first
/// input, for the second, and so on.
#[derive(Debug)]
pub(super) struct Table {
    articles: usize,
    inputs: usize,
    /// Floats in an anonymous mapping, which starts at a page boundary and may use huge pages. A pass reads all of it,
    /// and in pages of 4 KiB it has more pages than the processor's TLB has entries.
    memory: MmapMut,
}

/// A matrix of the layer: one row per article, one column per input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) weights: &'a [f32],
    pub(super) columns: usize,
}

impl Table {
    /// Puts the matrices side by side.
    pub(super) fn new(bias: &[f32], matrices: &[Matrix<'_>]) -> Self {
        let (articles, inputs) = (bias.len(), matrices.iter().map(|matrix| matrix.columns).sum::<usize>());
        let length = articles.div_ceil(PANEL) * (1 + inputs) * PANEL;
        let mut memory =
            MmapMut::map_anon(length * size_of::<f32>()).expect("no memory for a model's last layer");
        // Without huge pages it is slower.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        let panels = bytemuck::cast_slice_mut(&mut memory).chunks_exact_mut((1 + inputs) * PANEL);
        for (panel, first) in panels.zip((0..articles).step_by(PANEL)) {
            let (biases, weights) = panel.split_at_mut(PANEL);
            let here = PANEL.min(articles - first);
            biases.fill(NO_ARTICLE);
            biases[..here].copy_from_slice(&bias[first..][..here]);
            let mut rows = weights;
            for matrix in matrices {
                let (own, others) = rows.split_at_mut(matrix.columns * PANEL);
                for place in 0..here {
                    let article = &matrix.weights[(first + place) * matrix.columns..][..matrix.columns];
                    for (row, &weight) in own.chunks_exact_mut(PANEL).zip(article) {
                        row[place] = weight;
                    }
                }
                rows = others;
            }
        }
        Self { articles, inputs, memory }
    }

    pub(super) fn articles(&self) -> usize {
        self.articles
    }

    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(super) fn parts(&self) -> usize {
        self.articles.div_ceil(PART * PANEL)
    }

    /// The number of a part's first article.
    pub(super) fn first_article(part: usize) -> usize {
        part * PART * PANEL
    }

    /// The panels of a part, with their places in the table.
    pub(super) fn panels(&self, part: usize) -> impl Iterator<Item = (usize, &[f32])> {
        self.numbers().chunks_exact(self.panel_length()).enumerate().skip(part * PART).take(PART)
    }

    pub(super) fn panel(&self, place: usize) -> &[f32] {
        &self.numbers()[place * self.panel_length()..][..self.panel_length()]
    }

    fn numbers(&self) -> &[f32] {
        bytemuck::cast_slice(&self.memory)
    }

    fn panel_length(&self) -> usize {
        (1 + self.inputs) * PANEL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_each_panel_once() {
        for (articles, expected) in [(1, vec![1]), (8192, vec![256]), (8193, vec![256, 1])] {
            let table = Table::new(&vec![0.0; articles], &[]);
            let parts = (0..table.parts()).map(|part| table.panels(part));
            assert_eq!(parts.clone().map(Iterator::count).collect::<Vec<_>>(), expected);
            assert!(parts.flatten().map(|(place, _)| place).eq(0..articles.div_ceil(PANEL)));
        }
    }

    #[test]
    fn each_weight_has_its_place() {
        let number = |article: usize, input: usize| f32::from(u16::try_from(article * 10 + input).unwrap());
        for articles in [1, 31, 32, 33, 70] {
            let matrix = |from: usize, to: usize| -> Vec<f32> {
                (0..articles)
                    .flat_map(|article| (from..to).map(move |input| number(article, input)))
                    .collect()
            };
            let bias: Vec<f32> = (0..articles).map(|article| number(article, 9)).collect();
            let (wide, narrow) = (matrix(0, 3), matrix(3, 5));
            let matrices = [Matrix { weights: &wide, columns: 3 }, Matrix { weights: &narrow, columns: 2 }];
            let table = Table::new(&bias, &matrices);
            assert_eq!((table.articles(), table.inputs()), (articles, 5));
            assert_eq!((table.parts(), table.panels(0).count()), (1, articles.div_ceil(PANEL)));
            for (place, panel) in table.panels(0) {
                assert_eq!(panel, table.panel(place));
                for lane in 0..PANEL {
                    let article = place * PANEL + lane;
                    let column: Vec<f32> = panel.iter().skip(lane).step_by(PANEL).copied().collect();
                    let expected: Vec<f32> = if article < articles {
                        [9, 0, 1, 2, 3, 4].map(|input| number(article, input)).to_vec()
                    } else {
                        vec![NO_ARTICLE, 0.0, 0.0, 0.0, 0.0, 0.0]
                    };
                    assert_eq!(column, expected, "{articles} articles, {article}");
                }
            }
        }
    }
}
