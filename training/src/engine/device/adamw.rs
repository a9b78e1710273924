//! AdamW on a device: one launch for all dense weights, one for the rows of the article table that the step
//! touched.

use super::{Argument, Device, Learning, Parameters, count};
use crate::engine::adamw::{Step, numbers};

impl<D: Device> Parameters<D> {
    pub(crate) fn step(&mut self, device: &D, learning: &Learning<D>, gradients: &D::Floats, rate: f32) {
        self.steps += 1;
        let step = numbers(self.config, self.steps, rate, true);
        let dense = self.layout.dense;
        let length = self.layout.total - dense;
        let [beta1, beta2, rate, epsilon, kept, correction] = reals(step);
        let mut arguments = [
            Argument::Out(&mut self.weights, dense),
            Argument::In(gradients, dense),
            Argument::Out(&mut self.first, dense),
            Argument::Out(&mut self.second, dense),
            Argument::size(length),
            Argument::size(self.layout.decaying - dense),
            beta1,
            beta2,
            rate,
            epsilon,
            kept,
            correction,
        ];
        device.launch("adamw", length, &mut arguments);

        let rows = &learning.touched_rows;
        for &row in rows {
            self.touched[row as usize] = self.steps;
        }
        let width = self.shape(self.articles)[1];
        let [beta1, beta2, rate, epsilon, kept, correction] = reals(step);
        let table = self.at(self.articles);
        let mut arguments = [
            Argument::Out(&mut self.weights, table),
            Argument::In(gradients, table),
            Argument::Out(&mut self.first, table),
            Argument::Out(&mut self.second, table),
            Argument::Indices(&learning.indices, learning.touched),
            Argument::Indices(&learning.indices, learning.missed),
            Argument::Count(count(rows.len())),
            Argument::size(width),
            beta1,
            beta2,
            rate,
            epsilon,
            kept,
            correction,
        ];
        device.launch("adamw_rows", rows.len() * width, &mut arguments);
    }
}

fn reals<'a, D: Device>(step: Step) -> [Argument<'a, D>; 6] {
    let Step { beta1, beta2, rate, epsilon, kept, second_correction } = step;
    [beta1, beta2, rate, epsilon, kept, second_correction].map(Argument::Real)
}
