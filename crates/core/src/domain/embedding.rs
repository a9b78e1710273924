//! A list of numbers that a shop's own encoder of pictures or texts makes of an article, and what models take of it.

use serde_json::{Number, Value};

use super::json_number;

/// The most numbers: encoders have some hundred to a few thousand.
const MOST: usize = 4096;

/// Reads a list of finite numbers, which in CSV may be texts.
pub(super) fn read_embedding(value: &Value) -> Option<Box<[f32]>> {
    let numbers = value.as_array().filter(|numbers| (1..=MOST).contains(&numbers.len()))?;
    let number = |value: &Value| -> Option<f32> {
        let number = match value {
            Value::String(text) => text.trim().parse().ok()?,
            value => value.as_f64()?,
        };
        #[expect(clippy::cast_possible_truncation, reason = "encoders compute in single precision")]
        let single = number as f32;
        single.is_finite().then_some(single)
    };
    numbers.iter().map(number).collect()
}

/// As files and the database have it: each number with the fewest digits that read back as it.
pub fn write_embedding(embedding: &[f32]) -> impl Iterator<Item = Number> {
    embedding.iter().map(|number| {
        let digits: f64 = number.to_string().parse().expect("a number's digits are a number; this is a bug");
        json_number(digits).expect("an embedding is finite; this is a bug")
    })
}

/// The greatest amount of a number that models take. Over the articles of training these have a variance of 1; those of an
/// embedding of another scale would outweigh everything else.
pub const MOST_PROJECTED: f32 = 6.0;

/// Turns an embedding into a few numbers, which vary alike over the articles that a model was trained with.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// Of each number of an embedding.
    pub mean: Vec<f32>,
    /// For each number that models take, what each number of an embedding counts.
    pub components: Vec<Vec<f32>>,
}

impl Projection {
    /// None if the embedding has another length.
    pub fn project(&self, embedding: &[f32]) -> Option<Vec<f32>> {
        if embedding.len() != self.mean.len() {
            return None;
        }
        let component = |weights: &Vec<f32>| {
            let terms = embedding.iter().zip(&self.mean).zip(weights);
            let sum: f64 =
                terms.map(|((x, mean), by)| (f64::from(*x) - f64::from(*mean)) * f64::from(*by)).sum();
            #[expect(clippy::cast_possible_truncation, reason = "models compute in single precision")]
            let single = sum as f32;
            single.clamp(-MOST_PROJECTED, MOST_PROJECTED)
        };
        Some(self.components.iter().map(component).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_embedding_is_a_list_of_finite_numbers() {
        let read = |value: Value| read_embedding(&value).map(|numbers| numbers.to_vec());
        assert_eq!(read(json!([0.1, -2, 3e-9])), Some(vec![0.1, -2.0, 3e-9]));
        assert_eq!(read(json!(["0.1", " -2 "])), Some(vec![0.1, -2.0]), "of a CSV file");
        for wrong in
            [json!([]), json!("0.1"), json!([0.1, null]), json!([1e60]), json!(["nan"]), json!([[1]])]
        {
            assert_eq!(read(wrong.clone()), None, "{wrong}");
        }
        assert_eq!(read(json!(vec![0.5; MOST + 1])), None);
        let written: Vec<Number> = write_embedding(&[0.1, -2.0, 3e-9]).collect();
        assert_eq!(serde_json::to_string(&written).unwrap(), "[0.1,-2,3e-9]");
    }

    #[test]
    fn a_projection_centres_and_weighs() {
        let projection = Projection {
            mean: vec![1.0, 2.0, 3.0],
            components: vec![vec![1.0, 0.0, 2.0], vec![0.5, 0.5, 0.0]],
        };
        assert_eq!(projection.project(&[2.0, 4.0, 2.0]), Some(vec![-1.0, 1.5]));
        assert_eq!(projection.project(&[2.0, 4.0]), None);
        assert_eq!(projection.project(&[1e38, 4.0, -1e38]), Some(vec![-6.0, 6.0]));
    }
}
