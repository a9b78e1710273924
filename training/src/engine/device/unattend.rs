//! Backwards through the operations that look at whole outfits: attention, halting, personas.

use super::{Argument, Device, DeviceTape, LANES, backward::Pass, tape::Op};
use crate::engine::{ops::Rows, personas::EVIDENCE, tape::Node};

impl<D: Device> DeviceTape<'_, D> {
    pub(super) fn unattend(
        &self,
        (queries, keys_values): (Node, Node),
        gradient: &D::Floats,
        weights: &D::Floats,
        pass: &mut Pass<'_, D>,
    ) {
        let (asking, asked) = (&self.nodes[queries.0], &self.nodes[keys_values.0]);
        let (width, heads) = (asking.width, self.tables.heads);
        let (of_queries, of_keys) = (self.packed.of(asking.rows), self.packed.of(asked.rows));
        let most = of_keys.longest;
        let mut scores = self.device.room(of_queries.rows * heads * most);
        let mut query_gradient = self.device.room(of_queries.rows * width);
        self.device.launch(
            "unattend_queries",
            of_queries.rows * heads,
            &mut [
                Argument::write(&mut query_gradient),
                Argument::write(&mut scores),
                Argument::read(gradient),
                Argument::read(&asked.value),
                Argument::read(weights),
                self.indices(of_queries.outfits),
                self.indices(of_keys.starts),
                Argument::size(of_queries.rows),
                Argument::size(width),
                Argument::size(heads),
                Argument::size(most),
            ],
        );
        let mut key_value_gradient = self.device.room(of_keys.rows * 2 * width);
        self.device.launch(
            "unattend_keys",
            of_keys.rows * heads,
            &mut [
                Argument::write(&mut key_value_gradient),
                Argument::read(&scores),
                Argument::read(weights),
                Argument::read(gradient),
                Argument::read(&asking.value),
                self.indices(of_keys.outfits),
                self.indices(of_keys.starts),
                self.indices(of_queries.starts),
                Argument::size(of_keys.rows),
                Argument::size(width),
                Argument::size(heads),
                Argument::size(most),
            ],
        );
        self.give(queries, query_gradient, pass);
        self.give(keys_values, key_value_gradient, pass);
    }

    /// Through the mixture of states and, on the host, through the chances that mix them.
    pub(super) fn unadapt(&self, op: &Op<D>, gradient: &D::Floats, width: usize, pass: &mut Pass<'_, D>) {
        let Op::Adaptive { states, logits, course } = op else {
            unreachable!("only adaptive computation halts; this is a bug")
        };
        let slots = self.packed.rows(Rows::Slots);
        let by_state = states.iter().map(|state| {
            let mut shares = self.device.room(slots);
            let arguments = &mut [
                Argument::write(&mut shares),
                Argument::read(gradient),
                Argument::read(self.value(*state)),
                Argument::size(slots),
                Argument::size(width),
            ];
            self.device.launch("unmix", slots * LANES, arguments);
            // After a failure any number does: the device tells of it when the losses are fetched.
            self.device.download(&shares).unwrap_or_else(|_| vec![0.0; slots])
        });
        let by_state: Vec<Vec<f32>> = by_state.collect();
        let by_logit = course.backward(&by_state, &self.ponder_by_slot(pass.ponder));
        for ((state, logit), (shares, by_logit)) in
            states.iter().zip(logits).zip(course.shares.iter().zip(by_logit))
        {
            let shares = self.device.floats(shares);
            self.mix(self.zeroed(*state, pass), gradient, &shares, width);
            self.give(*logit, self.device.floats(&by_logit), pass);
        }
    }

    pub(super) fn unpersonas(
        &self,
        value: &D::Floats,
        gradient: &D::Floats,
        width: usize,
        pass: &mut Pass<'_, D>,
    ) {
        let outfits = self.packed.rows(Rows::Outfits);
        let mut moves = self.device.room(outfits * width);
        let arguments = &mut [
            Argument::write(&mut moves),
            Argument::read(gradient),
            Argument::read(value),
            Argument::size(outfits),
            Argument::size(width),
            Argument::Real(EVIDENCE),
        ];
        self.device.launch("unpersonas", outfits, arguments);
        let sums = pass.learning.personas.expect("personas have a table; this is a bug");
        pass.learning.add(self.device, sums, &moves, &mut pass.gradients);
    }
}
