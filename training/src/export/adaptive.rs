//! The universal trunk: a recurrent unit in a Loop.

use super::{
    draw::{Drawing, Drawn},
    graph::{Axis, Graph, int, size, tensor},
    proto::DataType,
};
use crate::engine::{Adaptive, Linear, Rows};

impl Drawing<'_> {
    /// A Loop: it ends as soon as every slot of every outfit has halted.
    pub(super) fn repeat(
        &mut self,
        x: usize,
        halting: &Linear,
        unit: &mut dyn FnMut(&mut Self, usize) -> usize,
    ) -> Adaptive<usize> {
        let Drawn { name: first, width, .. } = self.values[x].clone();
        let universal = &self.config().universal;
        let most_steps = self.graph.ints(&[], &[size(universal.most_steps)]);
        let last_step = self.graph.ints(&[], &[size(universal.most_steps) - 1]);
        let enough = self.graph.float(1.0 - universal.epsilon);
        let (one, nought, truth) = (self.graph.float(1.0), self.graph.float(0.0), self.graph.truth(true));
        let column = self.graph.list(&[-1, 1]);
        let padding = self.is_padding();
        let padding = self.graph.node("Reshape", &[&padding, &column], vec![]);
        let running = self.graph.node("Not", &[&padding], vec![]);
        let real = self.graph.node("Cast", &[&running], vec![int("to", DataType::Float as i64)]);
        let nothing = self.graph.node("Mul", &[&real, &nought], vec![]);
        let blank_state = self.graph.node("Mul", &[&first, &nought], vec![]);

        self.graph.open();
        let state = self.record("state_in".to_owned(), Rows::Slots, width);
        let state = unit(self, state);
        let state = self.values[state].name.clone();
        let logit = self.gemm(&state, halting);
        let graph = &mut self.graph;
        let chance = graph.node("Sigmoid", &[&logit], vec![]);
        let total = graph.node("Add", &["spent_in", &chance], vec![]);
        let spent_all = graph.node("GreaterOrEqual", &[&total, &enough], vec![]);
        let at_last = graph.node("Equal", &["step", &last_step], vec![]);
        let may_end = graph.node("Or", &[&spent_all, &at_last], vec![]);
        let goes_on = graph.node("Not", &[&may_end], vec![]);
        let goes_on = graph.node("And", &["running_in", &goes_on], vec![]);
        let rest = graph.node("Sub", &[&one, "spent_in"], vec![]);
        let share = graph.node("Where", &[&goes_on, &chance, &rest], vec![]);
        let share = graph.node("Where", &["running_in", &share, &nought], vec![]);
        let spent = graph.node("Where", &[&goes_on, &total, "spent_in"], vec![]);
        let mixed = graph.node("Mul", &[&share, &state], vec![]);
        let mixed = graph.node("Add", &["mixed_in", &mixed], vec![]);
        let counted = graph.node("Cast", &["running_in"], vec![int("to", DataType::Float as i64)]);
        let counted = graph.node("Add", &["counted_in", &counted], vec![]);
        let any = graph.node("Cast", &[&goes_on], vec![int("to", DataType::Float as i64)]);
        let any = graph.node("ReduceMax", &[&any], vec![int("keepdims", 0)]);
        let any = graph.node("Cast", &[&any], vec![int("to", DataType::Bool as i64)]);
        let rows = Axis::Named("rows");
        let (wide, narrow) = ([rows, Axis::Fixed(width)], [rows, Axis::Fixed(1)]);
        let carried = |names: [&str; 5]| {
            let [state, mixed, spent, counted, running] = names;
            let floats = [(state, &wide), (mixed, &wide), (spent, &narrow), (counted, &narrow)];
            let mut carried = floats.map(|(name, axes)| tensor(name, DataType::Float, axes)).to_vec();
            carried.push(tensor(running, DataType::Bool, &narrow));
            carried
        };
        let mut inputs = vec![tensor("step", DataType::Int64, &[]), tensor("on", DataType::Bool, &[])];
        inputs.extend(carried(["state_in", "mixed_in", "spent_in", "counted_in", "running_in"]));
        let mut outputs = vec![tensor(&any, DataType::Bool, &[])];
        outputs.extend(carried([&state, &mixed, &spent, &counted, &goes_on]));
        let body = self.graph.close(inputs, outputs);

        let ends = ["state_out", "mixed_out", "spent_out", "counted_out", "running_out"];
        let begins = [&most_steps, &truth, &first, &blank_state, &nothing, &nothing, &running];
        self.graph.named_node("Loop", &begins.map(String::as_str), &ends, vec![body]);
        let value = self.record("mixed_out".to_owned(), Rows::Slots, width);
        let steps = self.mean_over_slots("counted_out", &real);
        let steps = self.record(steps, Rows::Outfits, 1);
        Adaptive { value, steps }
    }

    /// The mean of a column over each outfit's real slots: one value an outfit.
    fn mean_over_slots(&mut self, column: &str, real: &str) -> String {
        let shape = self.shape(Rows::Slots, &[]);
        let axis = self.graph.list(&[1]);
        let sum = |graph: &mut Graph, name: &str| {
            let by_outfit = graph.node("Reshape", &[name, &shape], vec![]);
            graph.node("ReduceSum", &[&by_outfit, &axis], vec![int("keepdims", 0)])
        };
        let (sum, count) = (sum(&mut self.graph, column), sum(&mut self.graph, real));
        self.graph.node("Div", &[&sum, &count], vec![])
    }
}
