//! The context that a trunk reads: rows of the features' values through dense layers. The same features have the same
//! context, so it is remembered.

use std::{
    collections::HashMap,
    mem,
    sync::{Mutex, PoisonError},
};

use atelier_core::domain::Schema;

use super::{File, Matrix, TablesError};

/// The fewest contexts that are remembered, of about a kilobyte each. There are twice as many at most.
const REMEMBERED: usize = 2_048;

/// By feature of the schema its name and the rows of its values, all of one width.
pub type Rows = Vec<(String, Matrix)>;

#[derive(Debug)]
pub struct ContextEncoder {
    /// The means of the features' rows, side by side, go through the layers.
    pub features: Rows,
    /// With `ReLU` between them.
    pub layers: Vec<Layer>,
    /// The sum of these rows, each over the root of the number of its feature's values, is at the context's end.
    pub matched: Rows,
    /// By features: those of now, and those before them.
    known: Mutex<[Contexts; 2]>,
}

type Contexts = HashMap<Box<[u32]>, Box<[f32]>>;

/// x W + b
#[derive(Debug)]
pub struct Layer {
    pub weight: Matrix,
    pub bias: Vec<f32>,
}

impl ContextEncoder {
    /// None if the trunk reads features as they are.
    pub(super) fn read(file: &File<'_>, schema: &Schema) -> Result<Option<Self>, TablesError> {
        let rows = |kind: &str| -> Result<Rows, TablesError> {
            let name = |feature: &str| format!("{kind}.{feature}");
            let mut found = Rows::new();
            if !schema.features().iter().any(|feature| file.has(&name(&feature.name))) {
                return Ok(found);
            }
            for feature in schema.features() {
                let columns = found.first().map(|(_, first)| first.columns);
                let rows = file.matrix(&name(&feature.name), feature.rows(), columns)?;
                found.push((feature.name.clone(), rows));
            }
            Ok(found)
        };
        let (features, matched) = (rows("features")?, rows("match")?);
        let mut width = features.iter().map(|(_, rows)| rows.columns).sum();
        let mut layers = Vec::new();
        while file.has(&format!("context.{}.weight", layers.len())) {
            let name = |part: &str| format!("context.{}.{part}", layers.len());
            let weight = file.matrix(&name("weight"), width, None)?.into_singles();
            let bias = file.matrix(&name("bias"), weight.columns, Some(1))?.to_singles();
            width = weight.columns;
            layers.push(Layer { weight, bias });
        }
        let is_read = |name: &str| match name.strip_suffix(".scale").unwrap_or(name).split_once('.') {
            Some(("features", feature)) => features.iter().any(|(name, _)| name == feature),
            Some(("match", feature)) => matched.iter().any(|(name, _)| name == feature),
            Some(("context", part)) => part
                .split_once('.')
                .and_then(|(place, part)| Some((place.parse::<usize>().ok()?, part)))
                .is_some_and(|(place, part)| place < layers.len() && ["weight", "bias"].contains(&part)),
            _ => true,
        };
        if let Some(name) = file.tensors.names().into_iter().find(|name| !is_read(name)) {
            let expected = "features of the schema, and layers from 0 on with a weight and a bias";
            return Err(file.wrong(name, "of no feature or layer", expected));
        }
        if features.is_empty() && matched.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { features, layers, matched, known: Mutex::default() }))
    }

    /// The length of a context.
    pub fn width(&self) -> usize {
        let features = self.features.iter().map(|(_, rows)| rows.columns).sum();
        let encoded = self.layers.last().map_or(features, |layer| layer.bias.len());
        encoded + self.matched.first().map_or(0, |(_, rows)| rows.columns)
    }

    /// Appends the context of some features, each with its values.
    pub fn write(&self, features: &[Vec<u32>], to: &mut Vec<f32>) {
        let end_of_feature = u32::MAX;
        let key: Box<[u32]> =
            features.iter().flat_map(|values| values.iter().copied().chain([end_of_feature])).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let [now, before] = &mut *known;
        if let Some(context) = now.get(&key) {
            to.extend_from_slice(context);
            return;
        }
        let context = before.remove(&key).unwrap_or_else(|| self.encode(features));
        to.extend_from_slice(&context);
        if now.len() == REMEMBERED {
            *before = mem::take(now);
        }
        now.insert(key, context);
    }

    fn encode(&self, features: &[Vec<u32>]) -> Box<[f32]> {
        let mut numbers = Vec::new();
        for (values, (_, rows)) in features.iter().zip(&self.features) {
            let begin = numbers.len();
            numbers.resize(begin + rows.columns, 0.0);
            add_values(rows, values, |count| count, &mut numbers[begin..]);
        }
        for (place, layer) in self.layers.iter().enumerate() {
            let mut sums = layer.bias.clone();
            for (row, number) in numbers.iter().enumerate() {
                let number = if place > 0 { number.max(0.0) } else { *number };
                layer.weight.add_scaled(row, number, &mut sums);
            }
            numbers = sums;
        }
        let begin = numbers.len();
        numbers.resize(self.width(), 0.0);
        for (values, (_, rows)) in features.iter().zip(&self.matched) {
            add_values(rows, values, f32::sqrt, &mut numbers[begin..]);
        }
        numbers.into()
    }
}

/// Adds the rows of a feature's values, over what `among` makes of their number; row 0 if it is not given.
fn add_values(rows: &Matrix, values: &[u32], among: fn(f32) -> f32, to: &mut [f32]) {
    let values = if values.is_empty() { &[0][..] } else { values };
    #[expect(clippy::cast_precision_loss, reason = "a feature has few values")]
    let share = among(values.len() as f32).recip();
    for &value in values {
        rows.add_scaled(value as usize, share, to);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use safetensors::{Dtype, SafeTensors, tensor::TensorView};

    use super::*;
    use crate::tables::Numbers;

    #[test]
    fn what_cannot_be_read_whole_is_refused() {
        let schema = "name = \"s\"\n[[feature]]\nname = \"a\"\nkind = \"category\"\nvalues = [\"x\"]\n";
        let schema = Schema::parse(schema).unwrap();
        let rows = schema.features()[0].rows();
        let read = |changed: &[(&str, [usize; 2], f32)]| {
            let mut all = vec![("features.a", [rows, 2], 0.5), ("context.0.weight", [2, 2], 0.5)];
            all.push(("context.0.bias", [2, 1], 0.5));
            all.retain(|(name, ..)| changed.iter().all(|(other, ..)| other != name));
            all.extend(changed.iter().filter(|(.., number)| *number != 0.0));
            let bytes =
                |[rows, columns]: [usize; 2], number: f32| number.to_le_bytes().repeat(rows * columns);
            let all = all.into_iter().map(|(name, shape, number)| (name, shape, bytes(shape, number)));
            let all: Vec<_> = all.collect();
            let views = all.iter().map(|(name, shape, bytes)| {
                (*name, TensorView::new(Dtype::F32, shape.to_vec(), bytes).unwrap())
            });
            let file = safetensors::serialize(views, None).unwrap();
            let file = File { path: Path::new("t"), tensors: SafeTensors::deserialize(&file).unwrap() };
            ContextEncoder::read(&file, &schema)
                .map(|found| found.is_some())
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(&[]), Ok(true));
        assert_eq!(read(&[("features.a", [rows, 2], 1e18)]), Ok(true));
        // 0 removes a tensor.
        for (changed, named) in [
            (vec![("features.a", [rows, 2], 1e19)], "features.a is not finite or too large"),
            (vec![("context.0.weight", [2, 2], f32::NAN)], "context.0.weight is not finite or too large"),
            (vec![("context.0.weight", [2, 2], 0.0)], "context.0.bias is of no feature or layer"),
            (vec![("context.2.bias", [2, 1], 0.5)], "context.2.bias is of no feature or layer"),
            (vec![("features.b", [rows, 2], 0.5)], "features.b is of no feature or layer"),
            (vec![("match.b", [rows, 2], 0.5)], "match.b is of no feature or layer"),
        ] {
            let refused = read(&changed).unwrap_err();
            assert!(refused.contains(named) && refused.ends_with("export the model again"), "{refused}");
        }
    }

    #[test]
    fn a_remembered_context_is_that_of_its_features() {
        let matrix =
            |columns: usize, numbers: Vec<f32>| Matrix { columns, numbers: Numbers::Single(numbers) };
        let rows = |columns: usize| -> Rows {
            let numbers =
                (0..3_000 * columns).map(|at| (f32::from(u16::try_from(at).unwrap())).sin()).collect();
            vec![
                ("a".to_owned(), matrix(columns, numbers)),
                ("b".to_owned(), matrix(columns, vec![0.5; columns])),
            ]
        };
        let layer = |bias: f32| Layer { weight: matrix(2, vec![0.5, -1.5, 2.0, 1.0]), bias: vec![bias; 2] };
        let layers = vec![layer(0.1), layer(-0.2)];
        let encoder = ContextEncoder { features: rows(1), layers, matched: rows(2), known: Mutex::default() };
        assert_eq!(encoder.width(), 4);
        // More than are remembered, and each some time later again.
        for value in (1..2_999).chain([1, 2_998, 1_500]).flat_map(|value: u32| [value, value / 2, value]) {
            for features in [[vec![value], vec![]], [vec![value, value + 1], vec![]], [vec![], vec![0]]] {
                let mut found = Vec::new();
                encoder.write(&features, &mut found);
                assert_eq!(found, *encoder.encode(&features), "{features:?}");
            }
        }
        assert!(encoder.known.lock().unwrap().iter().all(|known| known.len() <= REMEMBERED));
    }
}
