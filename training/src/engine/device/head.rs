//! The last dense layer on a device, with its loss, and the way back from it through the whole tape.
//!
//! As on the CPU the gradient of the softmax overwrites the logits.

use super::{Argument, Device, DeviceError, DeviceTape, LANES, Learning, Product, backward::Pass, tape::Op};
use crate::engine::{Head, number, ops::Rows, tape::Node, weights::Param};

/// Parts of a row of logits that are summed up side by side.
const PIECES: usize = 16;

/// What a model says of each outfit, as the head takes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hidden {
    pub(crate) hidden: Node,
    pub(crate) personas: Option<Node>,
}

/// What a batch taught. Losses and gradients are still on the device.
#[derive(Debug)]
pub(crate) struct Learned<D: Device> {
    pub(crate) losses: D::Floats,
    pub(crate) gradients: D::Floats,
    /// Sums over the outfits, of a universal trunk.
    pub(crate) ponder: f64,
    pub(crate) steps: f64,
}

impl<D: Device> DeviceTape<'_, D> {
    /// One logit an article, outfit by outfit.
    pub(crate) fn logits(&self, head: &Head, output: Hidden) -> Result<Vec<f32>, DeviceError> {
        let mut logits = self.without_bias(head, output);
        let (outfits, articles) = self.sizes(head);
        let (rows, width) = (Argument::size(outfits), Argument::size(articles));
        let mut arguments = [Argument::write(&mut logits), self.weights(head.bias), rows, width];
        self.device.launch("add_bias", outfits * articles, &mut arguments);
        self.device.download(&logits)
    }

    /// Each outfit's loss, and what the weighted losses mean for every weight; `ponder` is what one unit of
    /// an outfit's mean pondering adds to the loss.
    pub(crate) fn learn(
        self,
        head: &Head,
        output: Hidden,
        learning: &Learning<D>,
        ponder: f32,
    ) -> Learned<D> {
        let mut logits = self.without_bias(head, output);
        let losses = self.loss(head, &mut logits, learning);
        let mut pass = Pass {
            of: self.nodes.iter().map(|_| None).collect(),
            learning,
            ponder,
            gradients: self.device.zeros(self.parameters.layout.total),
        };
        self.add_columns(head.bias, &logits, None, self.sizes(head), &mut pass);
        self.back_through(head.weight, output.hidden, &logits, &mut pass);
        if let (Some(table), Some(shares)) = (head.personas, output.personas) {
            self.back_through(table, shares, &logits, &mut pass);
        }
        drop(logits);
        self.run_back(&mut pass);
        let (ponder, steps) = self.pondered();
        Learned { losses, gradients: pass.gradients, ponder, steps }
    }

    fn sizes(&self, head: &Head) -> (usize, usize) {
        (self.packed.rows(Rows::Outfits), self.parameters.shape(head.bias)[0])
    }

    fn without_bias(&self, head: &Head, output: Hidden) -> D::Floats {
        let (outfits, articles) = self.sizes(head);
        let mut logits = self.device.room(outfits * articles);
        let pairs = [Some((head.weight, output.hidden)), head.personas.zip(output.personas)];
        for (place, (table, node)) in pairs.into_iter().flatten().enumerate() {
            let product = Product {
                rows: outfits,
                columns: articles,
                inner: self.nodes[node.0].width,
                a_transposed: false,
                b_transposed: true,
                adds: place > 0,
            };
            let table = (&self.parameters.weights, self.parameters.at(table));
            self.device.multiply(product, (self.value(node), 0), table, (&mut logits, 0));
        }
        logits
    }

    /// The cross-entropies, and in place of the logits their gradient.
    fn loss(&self, head: &Head, logits: &mut D::Floats, learning: &Learning<D>) -> D::Floats {
        let (outfits, articles) = self.sizes(head);
        let size = Argument::size;
        let targets = || Argument::Indices(&learning.indices, learning.targets);
        let mut parts = self.device.room(outfits * PIECES * 2);
        let mut arguments = [
            Argument::write(&mut parts),
            Argument::read(logits),
            self.weights(head.bias),
            size(outfits),
            size(articles),
            size(PIECES),
        ];
        self.device.launch("softmax_parts", outfits * PIECES * LANES, &mut arguments);
        let (mut losses, mut totals) = (self.device.room(outfits), self.device.room(outfits * 2));
        let mut arguments = [
            Argument::write(&mut losses),
            Argument::write(&mut totals),
            Argument::read(&parts),
            Argument::read(logits),
            self.weights(head.bias),
            targets(),
            size(outfits),
            size(articles),
            size(PIECES),
        ];
        self.device.launch("softmax_total", outfits, &mut arguments);
        let mut arguments = [
            Argument::write(logits),
            self.weights(head.bias),
            Argument::read(&totals),
            targets(),
            Argument::read(&learning.weights),
            size(outfits),
            size(articles),
        ];
        self.device.launch("softmax_gradient", outfits * articles, &mut arguments);
        losses
    }

    /// From the logits' gradient to those of a table of the head and of what it was multiplied with.
    fn back_through(&self, table: Param, node: Node, logits: &D::Floats, pass: &mut Pass<'_, D>) {
        let (outfits, width) = (self.packed.rows(Rows::Outfits), self.nodes[node.0].width);
        let (articles, at) = (self.parameters.shape(table)[0], self.parameters.at(table));
        let of_table = Product {
            rows: articles,
            columns: width,
            inner: outfits,
            a_transposed: true,
            b_transposed: false,
            adds: true,
        };
        let into = (&mut pass.gradients, at);
        self.device.multiply(of_table, (logits, 0), (self.value(node), 0), into);
        let mut to = self.device.room(outfits * width);
        let of_node = Product {
            rows: outfits,
            columns: width,
            inner: articles,
            a_transposed: false,
            b_transposed: false,
            adds: false,
        };
        self.device.multiply(of_node, (logits, 0), (&self.parameters.weights, at), (&mut to, 0));
        self.give(node, to, pass);
    }

    /// Sums over the outfits: each one's mean of steps and remainder over its slots, and of steps alone.
    fn pondered(&self) -> (f64, f64) {
        let courses = self.nodes.iter().filter_map(|node| match &node.op {
            Op::Adaptive { course, .. } => Some(course),
            _ => None,
        });
        let (mut ponder, mut steps) = (0.0, 0.0);
        for course in courses {
            let of_slots: Vec<f32> = course.ponder().collect();
            let mut first = 0;
            for &slots in &self.packed.lengths {
                let here = first..first + slots;
                ponder += f64::from(of_slots[here.clone()].iter().sum::<f32>() / number(slots));
                steps += f64::from(number(course.halted[here].iter().sum()) / number(slots));
                first += slots;
            }
        }
        (ponder, steps)
    }
}
