//! Draws a model's operations as ONNX nodes.
//!
//! Values are two-dimensional, with one row per slot or outfit, so every linear layer is one Gemm, which ONNX Runtime
//! packs in advance and fuses with the next operation. Only attention and broadcasts of an outfit's row use the slots
//! as an axis.

use super::{
    graph::{Axis, Graph, float, int, ints, size, tensor},
    proto::{DataType, GraphProto, ValueInfoProto},
};
use crate::{
    engine::{
        Activation, Adaptive, EVIDENCE, Linear, MATCH_GAIN, Norm, Ops, Param, Residue, Rows, Tensor, number,
    },
    model::{Model, ModelConfig, Output},
};

/// Draws one model.
#[derive(Debug)]
pub(super) struct Drawing<'a> {
    pub(super) model: &'a Model,
    half: bool,
    pub(super) graph: Graph,
    /// The name of the features: the input, or in a pair file the features of all readings.
    pub(super) features: &'static str,
    /// The names of the encoded context and of what the features say in the match, if both are inputs.
    context: Option<[&'static str; 2]>,
    pub(super) values: Vec<Drawn>,
}

#[derive(Debug, Clone)]
pub(super) struct Drawn {
    pub(super) name: String,
    pub(super) rows: Rows,
    pub(super) width: usize,
}

const EPSILON: f32 = 1e-5;
/// Added to attention scores of padding.
const MASKED: f32 = -1e9;
/// A slot's kind, in the input `kinds`.
const ARTICLE: i64 = 0;
const BLANK: i64 = 1;
const PADDING: i64 = 2;

impl<'a> Drawing<'a> {
    pub(super) fn new(model: &'a Model, half: bool) -> Self {
        Self { model, half, graph: Graph::new(), features: "features", context: None, values: Vec::new() }
    }

    /// Reads what is made of the features from the input `context`, and returns its width.
    pub(super) fn read_context(&mut self) -> usize {
        let (tables, config) = (&self.model.structure().tables, self.model.config());
        let encoded = if tables.features.is_empty() { 0 } else { config.width };
        let matched = if tables.matched.is_empty() { 0 } else { config.matching };
        self.context = Some(["context"; 2]);
        if encoded > 0 && matched > 0 {
            let names = ["context_encoded", "context_matched"];
            let widths = self.graph.list(&[size(encoded), size(matched)]);
            self.graph.named_node("Split", &["context", &widths], &names, vec![int("axis", 1)]);
            self.context = Some(names);
        }
        encoded + matched
    }

    pub(super) fn config(&self) -> &'a ModelConfig {
        self.model.config()
    }

    pub(super) fn record(&mut self, name: String, rows: Rows, width: usize) -> usize {
        self.values.push(Drawn { name, rows, width });
        self.values.len() - 1
    }

    /// A weight's float32 value. Vectors are small and always stored in float32.
    pub(super) fn weight(&mut self, param: Param) -> String {
        let tensor = self.model.weights().tensor(param);
        self.graph.weight(tensor, self.half && tensor.shape.len() > 1)
    }

    pub(super) fn gemm(&mut self, x: &str, layer: &Linear) -> String {
        let weight = self.weight(layer.weight);
        match layer.bias {
            Some(bias) => {
                let bias = self.weight(bias);
                self.graph.node("Gemm", &[x, &weight, &bias], vec![])
            }
            None => self.graph.node("Gemm", &[x, &weight], vec![]),
        }
    }

    fn output_width(&self, layer: &Linear) -> usize {
        self.model.weights().tensor(layer.weight).shape[1]
    }

    /// Draws the outputs.
    pub(super) fn outputs(&mut self, output: Output<usize>) {
        let outputs =
            [("hidden", Some(output.hidden)), ("personas", output.personas), ("steps", output.steps)];
        for (name, value) in outputs {
            let Some(value) = value else { continue };
            let value = self.values[value].name.clone();
            self.graph.named_node("Identity", &[&value], &[name], vec![]);
        }
    }

    /// The number of personas; 0 if the method has none.
    pub(super) fn personas_count(&self) -> usize {
        self.model.structure().head.personas.map_or(0, |table| self.model.weights().tensor(table).shape[1])
    }

    /// Which slots hold articles: [batch, 1, slots], 1 or 0.
    fn visible(&mut self) -> String {
        let (article, axis) = (self.graph.ints(&[], &[ARTICLE]), self.graph.list(&[1]));
        self.graph.shared("visible", |graph| {
            let visible = graph.node("Equal", &["kinds", &article], vec![]);
            let visible = graph.node("Cast", &[&visible], vec![int("to", DataType::Float as i64)]);
            graph.node("Unsqueeze", &[&visible, &axis], vec![])
        })
    }

    /// The sum of a part of the rows over each outfit's articles.
    fn sum_over_visible(&mut self, part: &str) -> String {
        let (visible, axis) = (self.visible(), self.graph.list(&[1]));
        let sums = self.graph.node("MatMul", &[&visible, part], vec![]);
        self.graph.node("Squeeze", &[&sums, &axis], vec![])
    }

    pub(super) fn finish(
        self,
        name: &str,
        inputs: Vec<ValueInfoProto>,
        outputs: Vec<ValueInfoProto>,
    ) -> GraphProto {
        self.graph.finish(name, inputs, outputs)
    }
}

impl Ops for Drawing<'_> {
    type Value = usize;

    fn articles(&mut self) -> usize {
        let (width, matching, personas) =
            (self.config().width, self.config().matching, self.personas_count());
        let parts = [("read", width), ("matched", matching), ("votes", personas)];
        let parts: Vec<(&str, usize)> = parts.into_iter().filter(|(_, width)| *width > 0).collect();
        let mut read = "rows";
        if parts.len() > 1 {
            let (names, widths): (Vec<&str>, Vec<i64>) =
                parts.into_iter().map(|(name, width)| (name, size(width))).unzip();
            let widths = self.graph.list(&widths);
            self.graph.named_node("Split", &["rows", &widths], &names, vec![int("axis", 2)]);
            read = "read";
        }
        let read = self.flat(read, width);
        let table = self.model.weights().tensor(self.model.structure().tables.articles);
        let row = self.config().blank() as usize * table.shape[1];
        let blank = table.data[row..row + width].to_vec();
        let blank = Tensor { name: "articles.blank".to_owned(), shape: vec![1, width], data: blank };
        let blank = self.graph.weight(&blank, self.half);
        let (kind, column) = (self.graph.ints(&[], &[BLANK]), self.graph.list(&[-1, 1]));
        let is_blank = self.graph.node("Equal", &["kinds", &kind], vec![]);
        let is_blank = self.graph.node("Reshape", &[&is_blank, &column], vec![]);
        let name = self.graph.node("Where", &[&is_blank, &blank, &read], vec![]);
        self.record(name, Rows::Slots, width)
    }

    fn matched(&mut self) -> usize {
        let matching = self.config().matching;
        let mut sum = self.sum_over_visible("matched");
        if !self.model.structure().tables.matched.is_empty() {
            let features = if let Some([_, matched]) = self.context {
                matched.to_owned()
            } else {
                let tables = self.feature_tables(&self.model.structure().tables.matched);
                sum_features(&mut self.graph, self.features, &tables, matching)
            };
            sum = self.graph.node("Add", &[&sum, &features], vec![]);
        }
        let gain = self.graph.float(MATCH_GAIN);
        sum = self.graph.node("Mul", &[&sum, &gain], vec![]);
        self.record(sum, Rows::Outfits, matching)
    }

    fn beside(&mut self, x: usize, y: usize) -> usize {
        let (left, right) = (self.values[x].clone(), self.values[y].clone());
        let name = concat(&mut self.graph, &[left.name, right.name], 1);
        self.record(name, left.rows, left.width + right.width)
    }

    fn context(&mut self) -> usize {
        self.features()
    }

    fn encoded(&mut self) -> Option<usize> {
        let [encoded, _] = self.context?;
        Some(self.record(encoded.to_owned(), Rows::Outfits, self.config().width))
    }

    fn linear(&mut self, x: usize, layer: &Linear, activation: Activation) -> usize {
        let Drawn { name, rows, .. } = self.values[x].clone();
        let mut name = self.gemm(&name, layer);
        match activation {
            Activation::Identity => {}
            Activation::Relu => name = self.graph.node("Relu", &[&name], vec![]),
            Activation::Gelu => {
                let graph = &mut self.graph;
                let (root, one, half) =
                    (graph.float(std::f32::consts::SQRT_2), graph.float(1.0), graph.float(0.5));
                let scaled = graph.node("Div", &[&name, &root], vec![]);
                let error = graph.node("Erf", &[&scaled], vec![]);
                let error = graph.node("Add", &[&error, &one], vec![]);
                let twice = graph.node("Mul", &[&name, &error], vec![]);
                name = graph.node("Mul", &[&twice, &half], vec![]);
            }
        }
        self.record(name, rows, self.output_width(layer))
    }

    fn add_relu(&mut self, x: usize, y: usize) -> usize {
        let (to, from) = (self.values[x].clone(), self.values[y].clone());
        let (x, y) = (self.by_outfit(&to), self.by_outfit(&from));
        let sum = self.graph.node("Add", &[&x, &y], vec![]);
        let sum = self.graph.node("Relu", &[&sum], vec![]);
        let name = self.flat(&sum, to.width);
        self.record(name, to.rows, to.width)
    }

    fn add_norm(&mut self, x: usize, y: usize, norm: Option<&Norm>, _: Residue) -> usize {
        let (to, from) = (self.values[x].clone(), self.values[y].clone());
        let width = to.width;
        let (scale, shift) = match norm {
            Some(norm) => (self.weight(norm.scale), Some(self.weight(norm.shift))),
            None => (self.graph.floats(&[size(width)], &vec![1.0; width]), None),
        };
        let sum = if to.rows == from.rows {
            self.graph.node("Add", &[&to.name, &from.name], vec![])
        } else {
            let (x, y) = (self.by_outfit(&to), self.by_outfit(&from));
            self.graph.node("Add", &[&x, &y], vec![])
        };
        let mut inputs = vec![sum.as_str(), scale.as_str()];
        inputs.extend(shift.as_deref());
        let attributes = vec![int("axis", -1), float("epsilon", EPSILON)];
        let mut name = self.graph.node("LayerNormalization", &inputs, attributes);
        if to.rows != from.rows {
            name = self.flat(&name, width);
        }
        self.record(name, to.rows, width)
    }

    fn attention(&mut self, x: usize, source: usize, query: &Linear, key_value: &Linear) -> usize {
        let (x, source) = (self.values[x].clone(), self.values[source].clone());
        let width = self.config().width;
        let queries = self.gemm(&x.name, query);
        let keys_values = self.gemm(&source.name, key_value);
        let halves = self.graph.list(&[size(width), size(width)]);
        let keys = format!("{keys_values}_keys");
        let values = format!("{keys_values}_values");
        self.graph.named_node("Split", &[&keys_values, &halves], &[&keys, &values], vec![int("axis", 1)]);
        let queries = self.heads(&queries, x.rows, false);
        let keys = self.heads(&keys, source.rows, true);
        let values = self.heads(&values, source.rows, false);
        let scale = self.graph.float(1.0 / number(width / self.config().heads).sqrt());
        let queries = self.graph.node("Mul", &[&queries, &scale], vec![]);
        let scores = self.graph.node("MatMul", &[&queries, &keys], vec![]);
        let bias = self.attention_bias(source.rows);
        let scores = self.graph.node("Add", &[&scores, &bias], vec![]);
        let weights = self.graph.node("Softmax", &[&scores], vec![int("axis", -1)]);
        let mixed = self.graph.node("MatMul", &[&weights, &values], vec![]);
        let mixed = self.graph.node("Transpose", &[&mixed], vec![ints("perm", &[0, 2, 1, 3])]);
        let name = self.flat(&mixed, width);
        self.record(name, x.rows, width)
    }

    fn with_position(&mut self, slots: usize, position: usize) -> usize {
        let (slots, position) = (self.values[slots].clone(), self.values[position].clone());
        let parts = [self.by_outfit(&position), self.by_outfit(&slots)];
        let both = concat(&mut self.graph, &parts, 1);
        let name = self.flat(&both, slots.width);
        self.record(name, Rows::Positions, slots.width)
    }

    fn at_blank(&mut self, x: usize) -> usize {
        let value = self.values[x].clone();
        let by_outfit = self.by_outfit(&value);
        let axis = self.graph.list(&[1]);
        let blank = self.graph.shared("blank", |graph| graph.node("Unsqueeze", &["blank", &axis], vec![]));
        let blank = if value.rows == Rows::Positions {
            let one = self.graph.ints(&[], &[1]);
            self.graph.shared("blank position", |graph| graph.node("Add", &[&blank, &one], vec![]))
        } else {
            blank
        };
        let name = self.graph.node("GatherND", &[&by_outfit, &blank], vec![int("batch_dims", 1)]);
        self.record(name, Rows::Outfits, value.width)
    }

    fn adaptive(
        &mut self,
        x: usize,
        halting: &Linear,
        unit: &mut dyn FnMut(&mut Self, usize) -> usize,
    ) -> Adaptive<usize> {
        self.repeat(x, halting, unit)
    }

    fn personas(&mut self, _: Param) -> usize {
        self.mixture()
    }
}

/// The divisor of the sum of a feature's values.
#[derive(Clone, Copy, PartialEq)]
enum Among {
    /// Their number.
    Mean,
    /// Its root.
    Root,
}

/// Embeddings and personas.
impl Drawing<'_> {
    /// The context of each outfit.
    fn features(&mut self) -> usize {
        let tables = &self.model.structure().tables;
        let width = tables.features.len() * tables.feature_width;
        let rows = self.feature_tables(&tables.features);
        let name = mean_features(&mut self.graph, self.features, &rows, width);
        self.record(name, Rows::Outfits, width)
    }

    /// The names and lengths of features' tables.
    fn feature_tables(&mut self, tables: &[Param]) -> Vec<(String, usize)> {
        let model = self.model;
        let table = |&param: &Param| (self.weight(param), model.weights().tensor(param).shape[0]);
        tables.iter().map(table).collect()
    }

    /// The mixture of personas that the visible articles suggest.
    fn mixture(&mut self) -> usize {
        let count = self.personas_count();
        let sums = self.sum_over_visible("votes");
        let graph = &mut self.graph;
        let softmax = graph.node("Softmax", &[&sums], vec![int("axis", -1)]);
        let (evidence, even) = (graph.float(EVIDENCE), graph.float((1.0 - EVIDENCE) / number(count)));
        let shares = graph.node("Mul", &[&softmax, &evidence], vec![]);
        let name = graph.node("Add", &[&shares, &even], vec![]);
        self.record(name, Rows::Outfits, count)
    }
}

/// The universal trunk.
impl Drawing<'_> {
    /// A Loop that ends as soon as every slot of every outfit has halted.
    fn repeat(
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
        let (one, zero, truth) = (self.graph.float(1.0), self.graph.float(0.0), self.graph.bool(true));
        let column = self.graph.list(&[-1, 1]);
        let padding = self.is_padding();
        let padding = self.graph.node("Reshape", &[&padding, &column], vec![]);
        let running = self.graph.node("Not", &[&padding], vec![]);
        let real = self.graph.node("Cast", &[&running], vec![int("to", DataType::Float as i64)]);
        let nothing = self.graph.node("Mul", &[&real, &zero], vec![]);
        let blank_state = self.graph.node("Mul", &[&first, &zero], vec![]);

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
        let share = graph.node("Where", &["running_in", &share, &zero], vec![]);
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

    /// The mean of a column over each outfit's slots: one value per outfit.
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

/// Between rows of slots and slots as an axis: shapes, masks, heads.
impl Drawing<'_> {
    /// [batch × slots, width] as [batch, slots, width].
    fn by_outfit(&mut self, value: &Drawn) -> String {
        let width = size(value.width);
        let shape = match value.rows {
            Rows::Outfits => self.graph.list(&[-1, 1, width]),
            Rows::Slots | Rows::Positions => self.shape(value.rows, &[width]),
        };
        self.graph.node("Reshape", &[&value.name, &shape], vec![])
    }

    /// [batch, …, width] as [rows, width].
    fn flat(&mut self, name: &str, width: usize) -> String {
        let shape = self.graph.list(&[-1, size(width)]);
        self.graph.node("Reshape", &[name, &shape], vec![])
    }

    /// The shape [batch, rows of an outfit, rest…].
    fn shape(&mut self, rows: Rows, rest: &[i64]) -> String {
        let rest_list = self.graph.list(rest);
        let batch = self.graph.list(&[-1]);
        if rows == Rows::Outfits {
            let one = self.graph.list(&[1]);
            let key = format!("shape outfits {rest:?}");
            let parts = [batch, one, rest_list];
            return self.graph.shared(&key, |graph| concat(graph, &parts, 0));
        }
        let slots = self
            .graph
            .shared("slots", |graph| graph.node("Shape", &["kinds"], vec![int("start", 1), int("end", 2)]));
        let count = if rows == Rows::Positions {
            let one = self.graph.list(&[1]);
            self.graph.shared("positions", |graph| graph.node("Add", &[&slots, &one], vec![]))
        } else {
            slots
        };
        let key = format!("shape {rows:?} {rest:?}");
        self.graph.shared(&key, |graph| concat(graph, &[batch, count, rest_list], 0))
    }

    /// Which slots are padding: [batch, slots].
    fn is_padding(&mut self) -> String {
        let padding = self.graph.ints(&[], &[PADDING]);
        self.graph.shared("is padding", |graph| graph.node("Equal", &["kinds", &padding], vec![]))
    }

    /// Added to attention scores to mask padding: [batch, 1, 1, rows of an outfit].
    fn attention_bias(&mut self, rows: Rows) -> String {
        let padding = self.is_padding();
        let (never, zero) = (self.graph.float(MASKED), self.graph.float(0.0));
        let axes = self.graph.list(&[1, 2]);
        let bias = self.graph.shared("attention bias of slots", |graph| {
            let bias = graph.node("Where", &[&padding, &never, &zero], vec![]);
            graph.node("Unsqueeze", &[&bias, &axes], vec![])
        });
        if rows == Rows::Slots {
            return bias;
        }
        let before = self.graph.ints(&[8], &[0, 0, 0, 1, 0, 0, 0, 0]);
        self.graph.shared("attention bias of positions", |graph| graph.node("Pad", &[&bias, &before], vec![]))
    }

    /// Rows split into heads: [batch, heads, rows, width of a head], or with the last two axes swapped.
    fn heads(&mut self, name: &str, rows: Rows, transposed: bool) -> String {
        let heads = self.config().heads;
        let shape = self.shape(rows, &[size(heads), size(self.config().width / heads)]);
        let split = self.graph.node("Reshape", &[name, &shape], vec![]);
        let order: &[i64] = if transposed { &[0, 2, 3, 1] } else { &[0, 2, 1, 3] };
        self.graph.node("Transpose", &[&split], vec![ints("perm", order)])
    }
}

/// The mean of each feature's rows, side by side: [batch, `width`]. `tables` are the names and lengths of their tables.
pub(super) fn mean_features(
    graph: &mut Graph,
    features: &str,
    tables: &[(String, usize)],
    width: usize,
) -> String {
    let mean = feature_sums(graph, features, tables, Among::Mean);
    let shape = graph.list(&[-1, size(width)]);
    graph.node("Reshape", &[&mean, &shape], vec![])
}

/// The sum of all features' rows, each over the root of the number of its feature's values: [batch, `width`].
pub(super) fn sum_features(
    graph: &mut Graph,
    features: &str,
    tables: &[(String, usize)],
    width: usize,
) -> String {
    let sums = feature_sums(graph, features, tables, Among::Root);
    let (axis, shape) = (graph.list(&[1]), graph.list(&[-1, size(tables.len()), size(width)]));
    let sums = graph.node("Reshape", &[&sums, &shape], vec![]);
    graph.node("ReduceSum", &[&sums, &axis], vec![int("keepdims", 0)])
}

/// The sum over each feature's values, over their number or its root: [batch, features, 1, width of the tables].
fn feature_sums(graph: &mut Graph, features: &str, tables: &[(String, usize)], among: Among) -> String {
    // One lookup for all features: the tables one below the other, and where each begins.
    let weights: Vec<String> = tables.iter().map(|(name, _)| name.clone()).collect();
    let all = concat(graph, &weights, 0);
    let begins = tables.iter().scan(0, |next, (_, rows)| {
        let begin = *next;
        *next += size(*rows);
        Some(begin)
    });
    let begins: Vec<i64> = begins.collect();
    let count = size(begins.len());
    let begins = graph.ints(&[1, count, 1], &begins);
    let rows = graph.node("Add", &[features, &begins], vec![]);
    let rows = graph.node("Gather", &[&all, &rows], vec![]);
    // A 0 is skipped, unless all values of the feature are 0: then it is the row for "not given".
    let zero = graph.ints(&[], &[0]);
    let given = graph.node("Greater", &[features, &zero], vec![]);
    let given = graph.node("Cast", &[&given], vec![int("to", DataType::Float as i64)]);
    let any = graph.node("ReduceMax", &[&given], vec![ints("axes", &[2]), int("keepdims", 1)]);
    let one = graph.float(1.0);
    let none = graph.node("Sub", &[&one, &any], vec![]);
    let taken = graph.node("Add", &[&given, &none], vec![]);
    let axis = graph.list(&[2]);
    let mut total = graph.node("ReduceSum", &[&taken, &axis], vec![int("keepdims", 1)]);
    if among == Among::Root {
        // The row for "not given" was taken once for each value that is missing, so it is divided by their number.
        let half = graph.float(0.5);
        let half = graph.node("Mul", &[&any, &half], vec![]);
        let power = graph.node("Sub", &[&one, &half], vec![]);
        total = graph.node("Pow", &[&total, &power], vec![]);
    }
    let shares = graph.node("Div", &[&taken, &total], vec![]);
    let shares = graph.node("Unsqueeze", &[&shares, &axis], vec![]);
    graph.node("MatMul", &[&shares, &rows], vec![])
}

pub(super) fn concat(graph: &mut Graph, parts: &[String], axis: i64) -> String {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    graph.node("Concat", &parts, vec![int("axis", axis)])
}
