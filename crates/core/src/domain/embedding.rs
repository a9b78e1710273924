//! Lists of numbers that encoders of pictures or texts make of an article, and what models take of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::json_number;

/// The most numbers in all: encoders have some hundred to a few thousand.
const MOST: usize = 4096;
/// The most lists, and the longest of their names.
const LISTS: usize = 8;
const LONGEST: usize = 40;
pub(super) const EXPECTED: &str = "an embedding is a list of 1 to 4096 finite numbers, such as [0.25, -1], or up to 8 of them by name, such as \
     {\"image\": [0.25, -1], \"text\": [0.5]}";

/// Lists of numbers by the name of what they were made of, such as `image`. The name is empty if the shop gives one list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embedding(BTreeMap<String, Box<[f32]>>);

impl Embedding {
    /// Reads a list of finite numbers, which in CSV may be texts, or an object of such lists.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let lists: BTreeMap<String, Box<[f32]>> = match value {
            Value::Object(lists) => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
                let is_name = |name: &str| (1..=LONGEST).contains(&name.len()) && name.chars().all(is_plain);
                let list = |(name, list): (&String, &Value)| {
                    let list = is_name(name).then(|| read_list(list))?;
                    list.map(|list| (name.clone(), list))
                };
                lists.iter().map(list).collect::<Option<_>>()?
            }
            list => [(String::new(), read_list(list)?)].into(),
        };
        Self(lists).checked().filter(|read| !read.is_empty())
    }

    fn checked(self) -> Option<Self> {
        let numbers: usize = self.0.values().map(|list| list.len()).sum();
        (self.0.len() <= LISTS && numbers <= MOST).then_some(self)
    }

    /// As files and the database have it: each number with the fewest digits that read back as it.
    pub fn to_json(&self) -> Value {
        let number = |number: &f32| {
            let digits = number.to_string().parse().expect("a number's digits are a number");
            Value::from(json_number(digits))
        };
        let list = |list: &[f32]| list.iter().map(number).collect::<Value>();
        match self.list("") {
            Some(own) => list(own),
            None => self.lists().map(|(name, own)| (name.to_owned(), list(own))).collect(),
        }
    }

    pub fn lists(&self) -> impl Iterator<Item = (&str, &[f32])> {
        self.0.iter().map(|(name, list)| (name.as_str(), &**list))
    }

    pub fn list(&self, name: &str) -> Option<&[f32]> {
        self.0.get(name).map(|list| &**list)
    }

    /// With this list in place of the one with its name, or without one. Lists without a name stand alone. None if it would have
    /// more than 4096 numbers or 8 lists.
    pub fn with_list(mut self, name: &str, list: Option<&[f32]>) -> Option<Self> {
        self.0.remove(name);
        self.0.extend(list.map(|list| (name.to_owned(), list.into())));
        self.checked()
    }

    /// How errors name a list, after the word embedding: nothing, or ` "image"`.
    pub fn show_name(name: &str) -> String {
        if name.is_empty() { String::new() } else { format!(" {name:?}") }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn read_list(value: &Value) -> Option<Box<[f32]>> {
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

/// The greatest amount of a number that models take. Over the articles of training these have a variance of 1; those of an
/// embedding of another scale would outweigh everything else.
pub const MOST_PROJECTED: f32 = 6.0;

/// Turns a list of an embedding into a few numbers, which vary alike over the articles that a model was trained with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Projection {
    /// Of each number of the list.
    pub mean: Vec<f32>,
    /// For each number that models take, what each number of the list counts.
    pub components: Vec<Vec<f32>>,
}

impl Projection {
    pub(super) fn is_sound(&self) -> bool {
        let is_finite = |numbers: &Vec<f32>| numbers.iter().all(|number| number.is_finite());
        let fits = |component: &Vec<f32>| component.len() == self.mean.len() && is_finite(component);
        is_finite(&self.mean) && !self.components.is_empty() && self.components.iter().all(fits)
    }

    /// None if the list has another length.
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
        let read = |value: Value| Embedding::read(&value).map(|read| read.list("").unwrap().to_vec());
        assert_eq!(read(json!([0.1, -2, 3e-9])), Some(vec![0.1, -2.0, 3e-9]));
        assert_eq!(read(json!(["0.1", " -2 "])), Some(vec![0.1, -2.0]), "of a CSV file");
        for wrong in
            [json!([]), json!("0.1"), json!([0.1, null]), json!([1e60]), json!(["nan"]), json!([[1]])]
        {
            assert_eq!(read(wrong.clone()), None, "{wrong}");
        }
        assert_eq!(read(json!(vec![0.5; MOST + 1])), None);
        assert_eq!(Embedding::read(&json!([0.1, -2, 3e-9])).unwrap().to_json().to_string(), "[0.1,-2,3e-9]");
    }

    #[test]
    fn lists_stand_side_by_side_by_name() {
        let both = json!({"image": [0.5, -1], "text": [3]});
        let read = Embedding::read(&both).unwrap();
        assert_eq!(read.to_json(), both);
        assert_eq!(read.list("image"), Some(&[0.5, -1.0][..]));
        let changed = read.with_list("text", Some(&[2.0])).unwrap().with_list("image", None).unwrap();
        assert_eq!(changed.to_json(), json!({"text": [2]}));
        assert_eq!(changed.clone().with_list("a", Some(&[0.5; MOST])), None);
        let eight: Value = (0..8).map(|at| (at.to_string(), json!([1]))).collect();
        assert_eq!(Embedding::read(&eight).unwrap().with_list("a", Some(&[1.0])), None);
        assert!(changed.with_list("text", None).unwrap().is_empty());
        let nine: Value = (0..9).map(|at| (at.to_string(), json!([1]))).collect();
        for wrong in [
            json!({}),
            json!({"": [1]}),
            json!({"a b": [1]}),
            json!({"image": []}),
            json!({"image": null}),
            nine,
        ] {
            assert_eq!(Embedding::read(&wrong), None, "{wrong}");
        }
        assert_eq!(Embedding::read(&json!({"a": vec![0.5; MOST], "b": [1]})), None);
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
