//! A model that begins at the weights of a release.
//!
//! Rows of articles, values and features are found again by their names: the catalogue and the schema may have changed. What the
//! release does not know keeps what the new model has, or nothing where it would be added to what was learned.

use std::collections::HashMap;

use anyhow::Result;
use atelier_core::domain::ArticleEncoder;
use atelier_engine::release::{MethodEntry, Release};
use serde_json::Value;

use crate::{
    data::Data,
    engine::Tensor,
    export::read_weights,
    model::{Model, Needs},
};

/// For each new row the old one.
type Rows = Vec<Option<usize>>;

/// Sets a model's weights to those of a release's method, wherever it has them.
///
/// # Errors
/// If the release's files cannot be read.
pub(super) fn begin_at(model: &mut Model, live: &Release, method: &MethodEntry, data: &Data) -> Result<()> {
    let stored = read_weights(&live.model_path(method), live.tables_path(method).as_deref())?;
    let known = &data.articles()[..model.config().articles];
    let articles: Rows = known
        .iter()
        .map(|article| live.vocabulary().index_of(article.id.as_str()).map(|index| index as usize))
        .collect();
    let values = match_names(&words(live.encoder()), &words(Some(data.attributes().encoder())));
    let factors = data.attributes().factors();
    let own_width = model.config().width;
    for (to, from, rows) in [
        ("articles.own", "articles.own", &articles),
        ("vocabulary.own", "vocabulary.own", &articles),
        ("vocabulary.own_bias", "bias.own", &articles),
        ("personas.own", "personas.own", &articles),
        ("vocabulary.value_biases", "bias.values", &values),
        ("personas.values", "personas.values", &values),
    ] {
        copy_rows(model, to, stored.get(from), rows, true);
    }
    for name in ["articles.values", "vocabulary.values"] {
        if copy_rows(model, name, stored.get(name), &values, true)
            && let Some(table) = model.named_mut(name)
        {
            // A release has the columns of the match times their factors.
            let columns = table.shape[1];
            for (row, factor) in table.data.chunks_exact_mut(columns).zip(&factors) {
                row[own_width..].iter_mut().for_each(|number| *number /= factor);
            }
        }
    }
    if model.config().values == 0 {
        for (to, from) in [
            ("articles.weight", "articles.own"),
            ("vocabulary.weight", "vocabulary.own"),
            ("vocabulary.bias", "bias.own"),
            ("personas.weight", "personas.own"),
        ] {
            copy_rows(model, to, stored.get(from), &articles, false);
        }
    }
    copy_blank(model, &stored);
    for feature in data.schema().features() {
        let names = |feature: &atelier_core::domain::Feature| -> Vec<String> {
            (0..).take(feature.rows()).map(|row| feature.row_name(row)).collect()
        };
        let Some(old) = live.schema().feature(&feature.name) else { continue };
        let rows = match_names(&names(old), &names(feature));
        for (kind, only_learned) in [("features", false), ("match", true)] {
            let from = stored.get(&format!("{kind}.{}", feature.name));
            copy_rows(model, &format!("{kind}.{}.weight", feature.name), from, &rows, only_learned);
        }
    }
    let context: Vec<(String, String)> = (0..)
        .zip(model.structure().context_layers())
        .flat_map(|(place, layer): (usize, _)| {
            [("weight", Some(layer.weight)), ("bias", layer.bias)].map(|(part, param)| (place, part, param))
        })
        .filter_map(|(place, part, param)| {
            Some((model.weights().tensor(param?).name.clone(), format!("context.{place}.{part}")))
        })
        .chain([("memory.outfits".to_owned(), "memory.outfits.weights".to_owned())])
        .collect();
    for (to, from) in &context {
        copy_whole(model, to, stored.get(from));
    }
    // The trunk's weights have their own names.
    for (name, tensor) in &stored {
        let is_table = ["articles.", "vocabulary.", "personas.", "features.", "match.", "memory.", "bias."];
        if !is_table.iter().any(|table| name.starts_with(table)) {
            copy_whole(model, name, Some(tensor));
        }
    }
    model.compose(Needs::default());
    Ok(())
}

/// Copies rows of a table. Rows that the old one does not have become 0 if the table has only what was learned. False if the
/// tables have other columns.
fn copy_rows(
    model: &mut Model,
    to: &str,
    from: Option<&Tensor>,
    rows: &[Option<usize>],
    only_learned: bool,
) -> bool {
    let (Some(to), Some(from)) = (model.named_mut(to), from) else { return false };
    let columns = |tensor: &Tensor| tensor.shape.get(1).copied().unwrap_or(1);
    let width = columns(to);
    if width != columns(from) {
        return false;
    }
    for (row, old) in to.data.chunks_exact_mut(width).zip(rows) {
        match old.and_then(|old| from.data.get(old * width..(old + 1) * width)) {
            Some(old) => row.copy_from_slice(old),
            None if only_learned => row.fill(0.0),
            None => {}
        }
    }
    true
}

fn copy_whole(model: &mut Model, to: &str, from: Option<&Tensor>) {
    if let (Some(to), Some(from)) = (model.named_mut(to), from)
        && to.shape == from.shape
    {
        to.data.copy_from_slice(&from.data);
    }
}

/// The vector of a blank is in the trunk.
fn copy_blank(model: &mut Model, stored: &HashMap<String, Tensor>) {
    let name = if model.config().values == 0 { "articles.weight" } else { "articles.own" };
    let blank = model.config().blank() as usize;
    let (Some(to), Some(from)) = (model.named_mut(name), stored.get("articles.blank")) else { return };
    let width = to.shape[1];
    if from.data.len() == width {
        to.data[blank * width..][..width].copy_from_slice(&from.data);
    }
}

/// For each new name its place among the old ones.
fn match_names<T: Eq + std::hash::Hash>(old: &[T], new: &[T]) -> Rows {
    let places: HashMap<&T, usize> = old.iter().zip(0..).collect();
    new.iter().map(|name| places.get(name).copied()).collect()
}

/// The values of articles in their order: attribute and word.
fn words(encoder: Option<&ArticleEncoder>) -> Vec<(String, String)> {
    let Some(encoder) = encoder else { return Vec::new() };
    let file: Value = serde_json::from_str(&encoder.to_json()).expect("an encoder's file is JSON");
    let mut found = Vec::with_capacity(encoder.count());
    for (name, words) in file["values"].as_object().into_iter().flatten() {
        let words = words.as_array().into_iter().flatten().filter_map(Value::as_str);
        found.extend(words.map(|word| (name.clone(), word.to_owned())));
    }
    found
}

#[cfg(test)]
mod tests;
