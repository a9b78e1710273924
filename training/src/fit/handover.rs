//! A run's encoded outfits as one file, for trainers in other languages: `training/pytorch` reads it.
//!
//! It has the training and the development split as flat arrays, with the place where each outfit begins: the articles,
//! and the encoded values by feature. If articles share values, it also has each article's, and its embedding if there
//! is one. Articles without training outfits are left out. The validation split is not in it.

use std::path::Path;

use anyhow::{Context, Result};
use safetensors::{Dtype, serialize_to_file, tensor::TensorView};

use super::RunConfig;
use crate::data::Data;

pub(super) fn write(data: &Data, config: &RunConfig, path: &Path) -> Result<()> {
    let weights = config.weights(data);
    let by_article = (0..).take(data.count_known()).map(|article| weights[data.type_of(article)]);
    let by_article: Vec<u8> = by_article.flat_map(f32::to_le_bytes).collect();
    let mut arrays = vec![("task_weights".to_owned(), Dtype::F32, by_article)];
    if config.fit.attributes {
        let mut values = Ragged::default();
        (0..data.count_known()).for_each(|article| values.push(data.attributes().for_article(article)));
        arrays.push(("values".to_owned(), Dtype::U32, values.values));
        arrays.push(("value_starts".to_owned(), Dtype::U32, values.starts));
        let factors = data.attributes().factors().into_iter().flat_map(f32::to_le_bytes).collect();
        arrays.push(("value_factors".to_owned(), Dtype::F32, factors));
        if config.model.embedding > 0 {
            let embeddings = data.attributes().embeddings(0..data.count_known());
            let embeddings = embeddings.iter().flat_map(|number| number.to_le_bytes()).collect();
            arrays.push(("embeddings".to_owned(), Dtype::F32, embeddings));
        }
    }
    for (name, outfits) in [("training", data.training()), ("development", data.development())] {
        let (mut articles, mut features) = (Ragged::default(), Ragged::default());
        let mut values = Vec::new();
        for &outfit in outfits {
            let known =
                data.outfits().articles(outfit).iter().copied().filter(|&article| data.is_known(article));
            articles.push(&known.collect::<Vec<_>>());
            data.features_of(outfit, &mut values);
            for values in &values {
                features.push(values);
            }
        }
        for (part, bytes) in [
            ("articles", articles.values),
            ("starts", articles.starts),
            ("features", features.values),
            ("feature_starts", features.starts),
        ] {
            arrays.push((format!("{name}.{part}"), Dtype::U32, bytes));
        }
    }
    let views = arrays
        .iter()
        .map(|(name, kind, bytes)| Ok((name, TensorView::new(*kind, vec![bytes.len() / 4], bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>();
    let written = views.and_then(|views| serialize_to_file(views, None, path));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Lists one after the other, and where each begins, as bytes.
struct Ragged {
    count: u32,
    values: Vec<u8>,
    starts: Vec<u8>,
}

impl Default for Ragged {
    fn default() -> Self {
        Self { count: 0, values: Vec::new(), starts: 0_u32.to_le_bytes().into() }
    }
}

impl Ragged {
    fn push(&mut self, values: &[u32]) {
        for value in values {
            self.values.extend_from_slice(&value.to_le_bytes());
            self.count += 1;
        }
        self.starts.extend_from_slice(&self.count.to_le_bytes());
    }
}
