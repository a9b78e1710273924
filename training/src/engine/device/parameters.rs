//! A model's weights on a device, all in one piece of memory, with gradients and moments in others of the
//! same layout: one launch clears or moves them all.

use super::Device;
use crate::engine::{AdamW, AdamWConfig, Param, Weights};

/// Numbers between the beginnings of two tensors are multiples of this, so that loads are aligned.
const ALIGNED: usize = 64;

/// Where each tensor lies: the article table first, then what decays, then what does not.
#[derive(Debug)]
pub(super) struct Layout {
    /// By parameter.
    offsets: Vec<usize>,
    /// The end of the article table.
    pub(super) dense: usize,
    /// The end of what decays.
    pub(super) decaying: usize,
    pub(super) total: usize,
}

/// Weights, and the optimiser's memory.
#[derive(Debug)]
pub(crate) struct Parameters<D: Device> {
    pub(super) layout: Layout,
    pub(super) articles: Param,
    pub(super) weights: D::Floats,
    pub(super) first: D::Floats,
    pub(super) second: D::Floats,
    pub(super) config: AdamWConfig,
    pub(super) steps: u32,
    /// The step at which each row of the article table last moved.
    pub(super) touched: Vec<u32>,
    shapes: Vec<Vec<usize>>,
}

impl<D: Device> Parameters<D> {
    pub(crate) fn new(device: &D, weights: &Weights, adamw: &AdamW, articles: Param) -> Self {
        let shapes: Vec<Vec<usize>> = weights.0.iter().map(|tensor| tensor.shape.clone()).collect();
        let layout = Layout::new(&shapes, articles);
        let packed = |tensors: &mut dyn Iterator<Item = &Vec<f32>>| {
            let mut all = vec![0.0; layout.total];
            for (&offset, tensor) in layout.offsets.iter().zip(tensors) {
                all[offset..offset + tensor.len()].copy_from_slice(tensor);
            }
            device.floats(&all)
        };
        Self {
            weights: packed(&mut weights.0.iter().map(|tensor| &tensor.data)),
            first: packed(&mut adamw.first.iter()),
            second: packed(&mut adamw.second.iter()),
            config: adamw.config,
            steps: adamw.steps,
            touched: adamw.touched.clone(),
            articles,
            layout,
            shapes,
        }
    }

    pub(super) fn at(&self, param: Param) -> usize {
        self.layout.offsets[param.0]
    }

    pub(super) fn shape(&self, param: Param) -> &[usize] {
        &self.shapes[param.0]
    }

    /// Steps made so far.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// Brings weights and moments back.
    pub(crate) fn fetch(
        &self,
        device: &D,
        weights: &mut Weights,
        adamw: &mut AdamW,
    ) -> Result<(), super::DeviceError> {
        let all = [&self.weights, &self.first, &self.second].map(|values| device.download(values));
        let [of_weights, first, second] = all;
        let tensors = weights.0.iter_mut().map(|tensor| &mut tensor.data);
        self.unpack(&of_weights?, tensors);
        self.unpack(&first?, adamw.first.iter_mut());
        self.unpack(&second?, adamw.second.iter_mut());
        adamw.steps = self.steps;
        adamw.touched.clone_from(&self.touched);
        Ok(())
    }

    /// Numbers in the parameters' layout, tensor by tensor.
    #[cfg(test)]
    pub(crate) fn by_tensor(&self, device: &D, all: &D::Floats) -> Vec<Vec<f32>> {
        let mut tensors: Vec<Vec<f32>> =
            self.shapes.iter().map(|shape| vec![0.0; shape.iter().product()]).collect();
        self.unpack(&device.download(all).unwrap(), tensors.iter_mut());
        tensors
    }

    fn unpack<'a>(&self, all: &[f32], tensors: impl Iterator<Item = &'a mut Vec<f32>>) {
        for (&offset, tensor) in self.layout.offsets.iter().zip(tensors) {
            let length = tensor.len();
            tensor.copy_from_slice(&all[offset..offset + length]);
        }
    }
}

impl Layout {
    fn new(shapes: &[Vec<usize>], articles: Param) -> Self {
        let mut layout = Self { offsets: vec![0; shapes.len()], dense: 0, decaying: 0, total: 0 };
        let place = |layout: &mut Self, wanted: &dyn Fn(usize) -> bool| {
            for (param, shape) in shapes.iter().enumerate().filter(|(param, _)| wanted(*param)) {
                layout.offsets[param] = layout.total;
                layout.total += shape.iter().product::<usize>().next_multiple_of(ALIGNED);
            }
        };
        place(&mut layout, &|param| param == articles.0);
        layout.dense = layout.total;
        place(&mut layout, &|param| param != articles.0 && shapes[param].len() > 1);
        layout.decaying = layout.total;
        place(&mut layout, &|param| param != articles.0 && shapes[param].len() == 1);
        layout
    }
}
