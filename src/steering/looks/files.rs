//! Looks from files and into files. A look is a row with its `articles`, or a row for each of its articles with their positions.

use std::{collections::BTreeMap, path::Path};

use atelier_core::domain::{LookName, Schema, Timestamp};
use atelier_files::{Dialect, FileError, FileRow, LookRow};
use serde_json::{Map, Value, json};

use super::Look;
use crate::{
    platform::{
        db::{Counts, Named, Store, StoreError, Stored},
        fault::Fault,
    },
    steering::documents::Document,
};

/// The looks of a file, and what is wrong with its rows, each with its line.
#[derive(Debug, Default)]
pub struct Read {
    pub looks: Vec<(LookName, Look)>,
    pub errors: Vec<(u64, String)>,
}

/// Fields that are lists; a cell with one entry is a text.
const LISTS: [&str; 3] = ["articles", "pictures", "tags"];

/// A look whose rows are being read.
#[derive(Default)]
struct Draft {
    line: u64,
    /// A row of it is wrong, so it is not whole.
    is_bad: bool,
    fields: Map<String, Value>,
    /// By position and line, of rows with one article each.
    articles: Vec<(u64, u64, Value)>,
}

pub fn read(path: &Path, schema: &Schema, dialect: &Dialect) -> Result<Read, FileError> {
    let mut drafts: BTreeMap<LookName, Draft> = BTreeMap::new();
    let mut read = Read::default();
    for row in atelier_files::read_as::<LookRow>(path, schema, dialect)? {
        match row {
            Ok(FileRow { line, value: LookRow { look, fields }, .. }) => {
                let draft = drafts.entry(look).or_insert_with(|| Draft { line, ..Draft::default() });
                if let Err(reason) = draft.add(line, fields) {
                    draft.is_bad = true;
                    read.errors.push((line, reason));
                }
            }
            Err(error) if error.is_fatal() => {
                return Err(FileError::Interrupted { path: path.to_owned(), error });
            }
            Err(error) => read.errors.push((error.line, error.reason)),
        }
    }
    for (name, draft) in drafts.into_iter().filter(|(_, draft)| !draft.is_bad) {
        let line = draft.line;
        match draft.finish() {
            Ok(look) => read.looks.push((name, look)),
            Err(reason) => read.errors.push((line, format!("look {name:?}: {reason}"))),
        }
    }
    read.errors.sort_unstable();
    Ok(read)
}

impl Draft {
    fn add(&mut self, line: u64, mut fields: Map<String, Value>) -> Result<(), String> {
        let [article, variant, position] = ["article", "variant", "position"].map(|name| fields.remove(name));
        // A basket's name for it says more.
        if let Some(id) = variant.or(article) {
            let position = match &position {
                None => line,
                Some(position) => as_position(position)
                    .ok_or_else(|| format!("field \"position\" must be a whole number, found {position}"))?,
            };
            self.articles.push((position, line, as_text(id)));
        }
        for name in LISTS {
            if let Some(Value::String(text)) = fields.get(name) {
                let parts: Vec<&str> = text.split('|').map(str::trim).collect();
                fields.insert(name.to_owned(), json!(parts));
            }
        }
        // Cells are texts.
        if let Some(Value::String(text)) = fields.get("when") {
            let when = serde_json::from_str(text)
                .map_err(|_| "field \"when\" must be a JSON object as in the API".to_owned())?;
            fields.insert("when".to_owned(), when);
        }
        if let Some(order) = fields.get("order").and_then(as_position) {
            fields.insert("order".to_owned(), order.into());
        }
        for (name, value) in fields {
            if let Some(other) = self.fields.insert(name.clone(), value.clone())
                && other != value
            {
                return Err(format!("field {name:?} is {value}, but {other} in an earlier row of this look"));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Look, String> {
        if !self.articles.is_empty() {
            if self.fields.contains_key("articles") {
                return Err("it has both \"articles\" and rows with one article each".to_owned());
            }
            self.articles.sort_by_key(|(position, line, _)| (*position, *line));
            let articles = self.articles.into_iter().map(|(.., id)| id).collect();
            self.fields.insert("articles".to_owned(), articles);
        }
        if let Some(Value::Array(articles)) = self.fields.get_mut("articles") {
            for id in articles {
                *id = as_text(id.take());
            }
        }
        let look: Look = serde_json::from_value(self.fields.into()).map_err(|error| error.to_string())?;
        let words = |faults: Vec<Fault>| {
            let each = faults.iter().map(|fault| format!("{}: {}", fault.field, fault.detail));
            each.collect::<Vec<String>>().join("; ")
        };
        look.checked().map_err(words)
    }
}

/// Databases and data frames turn ids into numbers.
fn as_text(value: Value) -> Value {
    if value.is_number() { value.to_string().into() } else { value }
}

/// Data frames turn counts into floats.
fn as_position(value: &Value) -> Option<u64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number, and small enough"
    )]
    (number >= 0.0 && number.fract() == 0.0 && number < 1e9).then_some(number as u64)
}

/// Stores looks, all or none, or only checks whether they could be stored. `file` is where they come from.
pub async fn store_all(
    store: &Store,
    looks: &[(LookName, Look)],
    file: &str,
    is_trial: bool,
    now: Timestamp,
) -> Result<Counts, StoreError> {
    let body = |(name, look): &(LookName, Look)| {
        (name.clone(), serde_json::to_value(look).expect("a look is plain JSON"))
    };
    let looks: Vec<(LookName, Value)> = looks.iter().map(body).collect();
    store.looks().import(&looks, file, is_trial, now).await
}

pub async fn look_rows(store: &Store) -> Result<Vec<LookRow>, StoreError> {
    let row = |stored: Stored<Named<LookName>>| {
        let Named { name, body, .. } = stored.value;
        let Value::Object(mut fields) = body else { return LookRow { look: name, fields: Map::new() } };
        // Columns hold texts and lists of texts.
        fields.retain(|_, value| value.as_object().is_none_or(|object| !object.is_empty()));
        LookRow { look: name, fields }
    };
    Ok(store.looks().list().await?.into_iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read_text(name: &str, text: &str) -> Read {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        read(&path, &Schema::default_schema(), &Dialect::default()).unwrap()
    }

    #[test]
    fn a_look_has_a_row_or_a_row_for_each_article() {
        let rows = "look,article,variant,position,title,tags,state,order\n\
                    b,a-3,,2,Two,x|y,published,1.0\nb,a-1,v-1,1,,,,\na,7,,,,,,\na,8,,,One,,,\n";
        let lines = "{\"look\": \"a\", \"articles\": [\"7\", \"8\"], \"title\": \"One\"}\n\
                     {\"look\": \"b\", \"articles\": [\"v-1\", \"a-3\"], \"title\": \"Two\", \"tags\": [\"x\", \"y\"], \
                      \"state\": \"published\", \"order\": 1}\n";
        let (csv, jsonl) = (read_text("looks.csv", rows), read_text("looks.jsonl", lines));
        assert_eq!((csv.errors, jsonl.errors), (vec![], vec![]));
        assert_eq!(csv.looks, jsonl.looks);
        let found: Vec<_> = csv.looks.iter().map(|(name, look)| (name.as_str(), &look.articles[0])).collect();
        assert_eq!(found, [("a", &"7".to_owned()), ("b", &"v-1".to_owned())]);
    }

    #[test]
    fn wrong_rows_are_named_with_their_lines() {
        let rows = "look,article,position,title\na,1,first,\nb,1,1,One\nb,2,2,Other\nc,1,1,\n";
        let Read { looks, errors } = read_text("looks.csv", rows);
        for (line, reason) in
            [(2, "\"position\" must be a whole number"), (4, "earlier row"), (5, "2 to 12 articles")]
        {
            assert!(errors.iter().any(|error| error.0 == line && error.1.contains(reason)), "{errors:?}");
        }
        assert_eq!((errors[0].0, looks), (2, vec![]), "none is whole");
    }
}
