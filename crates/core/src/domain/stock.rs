//! Whether an article is in stock, and how many there are by size and store, as shops write it.

use std::{borrow::Cow, collections::HashSet};

use serde_json::{Map, Value};

use super::{
    fold, json_number,
    variant::few_words,
    words::{fold_value, is_one_size},
};

/// The attributes that name an article's sizes. Counts are by the same words.
pub(super) const SIZES: [&str; 2] = ["sizes", "size"];
const IN_STOCK: [&str; 5] = ["true", "yes", "ja", "oui", "1"];
const OUT_OF_STOCK: [&str; 5] = ["false", "no", "nein", "non", "0"];

/// Reads a boolean, 0 or 1, or a word of the two lists in any case.
pub(super) fn read_stock(value: &Value) -> Result<bool, String> {
    let word = match value {
        Value::Bool(in_stock) => return Ok(*in_stock),
        Value::Number(number) if number.as_f64() == Some(1.0) => return Ok(true),
        Value::Number(number) if number.as_f64() == Some(0.0) => return Ok(false),
        Value::String(word) => fold(word),
        _ => String::new(),
    };
    match word.as_str() {
        word if IN_STOCK.contains(&word) => Ok(true),
        word if OUT_OF_STOCK.contains(&word) => Ok(false),
        _ => Err(format!(
            "in_stock is true or false, 0 or 1, or one of {} and {}; found {value}",
            IN_STOCK[..4].join(", "),
            OUT_OF_STOCK[..4].join(", ")
        )),
    }
}

/// A count of an article's stock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The folded words for its size, as of an option called `sizes`, and for each option of a variant, by the folded
    /// name. An option is missing if it is of all, or of one size for everyone.
    pub words: Vec<(String, Vec<String>)>,
    /// Folded; None if it is of all stores.
    pub store: Option<String>,
    /// Whether there is any.
    pub is_any: bool,
}

impl Counted {
    fn new(sizes: Vec<String>, store: Option<String>, count: i64) -> Self {
        let words = if sizes.is_empty() { Vec::new() } else { vec![(SIZES[0].to_owned(), sizes)] };
        Self { words, store, is_any: count > 0 }
    }
}

/// Reads the attribute `stock`: a count, counts by size, or a list of counts by size and store.
pub(super) fn read_counts(value: &Value) -> Result<Vec<Counted>, String> {
    match &*in_json(value)? {
        count @ Value::Number(_) => Ok(vec![Counted::new(Vec::new(), None, read_count(count, "the stock")?)]),
        Value::Object(sizes) => {
            let counts = sizes.iter().map(|(size, count)| read_size(size, count));
            let counts = counts.collect::<Result<Vec<Counted>, String>>()?;
            let mut before = HashSet::new();
            let again = counts
                .iter()
                .zip(sizes.keys())
                .find(|(count, _)| !count.words.is_empty() && !before.insert(count.words.as_slice()));
            match again {
                None => Ok(counts),
                Some((_, size)) => {
                    Err(format!("stock by size has the size {size:?} twice, in other spellings"))
                }
            }
        }
        Value::Array(list) => (1..).zip(list).map(|(number, entry)| read_entry(number, entry)).collect(),
        _ => Err(refuse(value)),
    }
}

/// A text holds the same as JSON: columns of Parquet files have texts.
pub(super) fn in_json(value: &Value) -> Result<Cow<'_, Value>, String> {
    match value {
        Value::String(text) => serde_json::from_str(text).map(Cow::Owned).map_err(|_| refuse(value)),
        value => Ok(Cow::Borrowed(value)),
    }
}

fn refuse(found: &Value) -> String {
    format!(
        "stock is a count, counts by size as in {{\"M\": 3, \"L\": 0}}, or a list as in \
         [{{\"size\": \"M\", \"store\": \"zurich\", \"count\": 3}}]; found {}",
        short(found)
    )
}

/// The beginning of what was found, for messages.
pub(super) fn short(found: &Value) -> String {
    let mut found = found.to_string();
    if let Some((end, _)) = found.char_indices().nth(60) {
        found.truncate(end);
        found.push('…');
    }
    found
}

fn read_size(size: &str, count: &Value) -> Result<Counted, String> {
    few_words("stock's size", size)?;
    let sizes = fold_size(size)
        .ok_or_else(|| format!("stock by size has no size {size:?}; for all sizes, write a count alone"))?;
    Ok(Counted::new(sizes, None, read_count(count, &format!("the stock of size {size:?}"))?))
}

/// The words of a size, of which one fits; no words if it is everyone's. `None` if the text is blank. Other spellings of a
/// size, as `40,5` and `40.5` are, have the same words.
pub fn fold_size(size: &str) -> Option<Vec<String>> {
    let words = fold_value(size);
    let is_everyones = words.iter().any(|word| is_one_size(word));
    (!words.is_empty()).then(|| if is_everyones { Vec::new() } else { words })
}

fn read_entry(number: usize, entry: &Value) -> Result<Counted, String> {
    let Value::Object(fields) = entry else { return Err(refuse(entry)) };
    if let Some(other) = fields.keys().find(|name| !["size", "store", "count"].contains(&name.as_str())) {
        return Err(format!("stock has size, store and count; entry {number} has {other:?}"));
    }
    let size = read_word(fields, "size", number)?;
    if let Some(size) = &size {
        few_words(&format!("stock's size in entry {number}"), size)?;
    }
    let sizes = size.and_then(|size| fold_size(&size)).unwrap_or_default();
    let store = read_word(fields, "store", number)?.map(|store| fold(&store));
    let count = fields.get("count").ok_or_else(|| format!("entry {number} of stock has no count"))?;
    Ok(Counted::new(sizes, store, read_count(count, &format!("the count of entry {number} of stock"))?))
}

/// A missing or null field says nothing.
fn read_word(fields: &Map<String, Value>, name: &str, number: usize) -> Result<Option<String>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(word)) if !fold(word).is_empty() => Ok(Some(word.clone())),
        Some(Value::Number(word)) => Ok(Some(word.to_string())),
        Some(other) => {
            Err(format!("the {name} of entry {number} of stock is a text that is not empty; found {other}"))
        }
    }
}

/// Some feeds count what was sold and is not there as less than 0.
pub(super) fn read_count(count: &Value, what: &str) -> Result<i64, String> {
    let whole = count.as_f64().and_then(json_number).and_then(|number| number.as_i64());
    whole.ok_or_else(|| format!("{what} is a whole number; found {count}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn stock_is_true_or_false_or_a_word_for_it() {
        for yes in [json!(true), json!(1), json!(1.0), json!("true"), json!(" JA "), json!("1")] {
            assert_eq!(read_stock(&yes), Ok(true), "{yes}");
        }
        for no in [json!(false), json!(0), json!(-0.0), json!("False"), json!("nein"), json!("0")] {
            assert_eq!(read_stock(&no), Ok(false), "{no}");
        }
        for wrong in [json!(3), json!(-1), json!(""), json!("vielleicht"), json!([true]), json!({})] {
            assert!(read_stock(&wrong).unwrap_err().contains("in_stock is true or false"), "{wrong}");
        }
    }

    #[test]
    fn counts_are_of_sizes_and_stores() {
        let read = |value: Value| read_counts(&value).unwrap();
        let counted = |sizes: &[&str], store: Option<&str>, is_any: bool| {
            let sizes = sizes.iter().map(ToString::to_string).collect();
            Counted::new(sizes, store.map(str::to_owned), is_any.into())
        };
        assert_eq!(read(json!(3)), [counted(&[], None, true)]);
        assert_eq!(read(json!("0")), [counted(&[], None, false)]);
        for sizes in [json!({"L": -1, "M": 3.0}), json!("{\"L\": -1, \"M\": 3}")] {
            assert_eq!(read(sizes), [counted(&["l"], None, false), counted(&["m"], None, true)]);
        }
        assert_eq!(read(json!({"S/M": 1})), [counted(&["s", "m", "s/m"], None, true)]);
        assert_eq!(read(json!({"40,5": 1})), [counted(&["40.5", "40.5"], None, true)]);
        for one in [json!({"One Size": 1}), json!([{"size": "O/S", "count": 1}])] {
            assert_eq!(read(one), [counted(&[], None, true)]);
        }
        let list = json!([{"size": 38, "store": "Zürich", "count": 2}, {"store": "Zürich", "count": 0}, {"count": 1}]);
        let zurich = Some("zürich");
        assert_eq!(
            read(list),
            [counted(&["38"], zurich, true), counted(&[], zurich, false), counted(&[], None, true)]
        );
        assert_eq!((read(json!({})), read(json!([]))), (Vec::new(), Vec::new()), "sold out");
    }

    #[test]
    fn what_is_no_stock_says_why() {
        for (wrong, said) in [
            (json!("plenty"), "stock is a count, counts by size as in {\"M\": 3, \"L\": 0}, or a list"),
            (json!(true), "found true"),
            (json!([3]), "found 3"),
            (json!({"M": "3"}), "the stock of size \"M\" is a whole number; found \"3\""),
            (json!({"M": null}), "found null"),
            (json!(2.5), "the stock is a whole number; found 2.5"),
            (json!({" ": 1}), "no size \" \""),
            (json!({"a/b/c/d/e/f/g/h/i": 1}), "its stock's size lists 10 values, at most 8"),
            (json!({"L": 3, "l": 0}), "stock by size has the size \"l\" twice, in other spellings"),
            (json!([{"count": 1}, {"size": "M"}]), "entry 2 of stock has no count"),
            (json!([{"size": "M", "shop": "z", "count": 1}]), "entry 1 has \"shop\""),
            (json!([{"size": "", "count": 1}]), "the size of entry 1 of stock is a text that is not empty"),
        ] {
            let reason = read_counts(&wrong).unwrap_err();
            assert!(reason.contains(said), "{wrong}: {reason}");
        }
    }
}
