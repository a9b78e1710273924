//! Variants of an article, of which a basket holds one: a size, and whatever else a customer chooses.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    ArticleId, fold, fold_size, json_number,
    price::read_price,
    stock::{Counted, SIZES, read_count, read_stock, short},
    words::fold_value,
};

/// The article's own attribute that lists them.
pub(super) const VARIANTS: &str = "variants";
/// The most values that a size or an option lists, as S/M does.
const MOST_WORDS: usize = 8;
/// The most options of a variant.
const MOST_OPTIONS: usize = 16;
/// More is not counted exactly in JSON.
const MOST_STOCK: i64 = 1 << 50;
const EXPECTED: &str =
    "variants are a list of objects as in [{\"id\": \"TSH-1-M\", \"size\": \"M\", \"stock\": 3}]";

/// A variant in its stored form. Whatever else the shop says of it is kept besides these fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Variant {
    /// The shop's own key, its SKU. No other variant or article has it.
    pub id: String,
    pub size: Option<String>,
    /// The customer's choices, by the shop's names.
    #[serde(default)]
    options: BTreeMap<String, String>,
    pub(super) price: Option<f64>,
    stock: Option<Stock>,
}

/// Gives the variants that say no price this one.
pub(super) fn set_prices(attributes: &mut Map<String, Value>, price: &Value) {
    let list = attributes.get_mut(VARIANTS).and_then(Value::as_array_mut).into_iter().flatten();
    for variant in list.filter_map(Value::as_object_mut) {
        variant.entry("price").or_insert_with(|| price.clone());
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Stock {
    /// How many there are is not known.
    Is(bool),
    Count(i64),
    ByStore(BTreeMap<String, i64>),
}

impl Variant {
    pub fn says_stock(&self) -> bool {
        self.stock.is_some()
    }

    /// The words of its size, as of an option called `sizes`, and of its options by their folded names, of which a customer
    /// needs one each; no words if it is a size for everyone.
    pub fn words(&self) -> Vec<(String, Vec<String>)> {
        let size =
            self.size.as_deref().map(|size| (SIZES[0].to_owned(), fold_size(size).unwrap_or_default()));
        let options = self.options.iter().map(|(name, value)| (fold(name), fold_value(value)));
        size.into_iter().chain(options).collect()
    }

    /// Whether there is any, in this store if one is named. What does not say so is.
    pub fn is_in_stock(&self, store: Option<&str>) -> bool {
        let wanted = store.map(fold);
        let counts = |of: Option<&str>| of.is_none() || wanted.is_none() || of.map(fold) == wanted;
        self.by_store().into_iter().any(|(of, count)| count > 0 && counts(of))
    }

    /// How many there are in each store, or in no store in particular; 1 if it does not count.
    fn by_store(&self) -> Vec<(Option<&str>, i64)> {
        match &self.stock {
            Some(Stock::ByStore(counts)) => {
                counts.iter().map(|(store, count)| (Some(store.as_str()), *count)).collect()
            }
            Some(Stock::Count(count)) => vec![(None, *count)],
            Some(Stock::Is(is_any)) => vec![(None, (*is_any).into())],
            None => vec![(None, 1)],
        }
    }

    pub(super) fn counted(&self) -> impl Iterator<Item = Counted> {
        let words: Vec<_> = self.words().into_iter().filter(|(_, words)| !words.is_empty()).collect();
        let by_store = self.by_store().into_iter();
        by_store.map(move |(store, count)| Counted {
            words: words.clone(),
            store: store.map(fold),
            is_any: count > 0,
        })
    }
}

/// The variants in their stored form.
pub(super) fn parse(value: &Value) -> Vec<Variant> {
    Vec::deserialize(value).unwrap_or_default()
}

/// The ids of what may be variants, also where they are not yet checked.
pub(super) fn ids(value: &Value) -> impl Iterator<Item = Cow<'_, str>> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(|variant| match variant.get("id")? {
        Value::String(id) => Some(id.as_str().into()),
        Value::Number(id) => Some(id.to_string().into()),
        _ => None,
    })
}

/// Each variant's value of an option, or of its size.
pub(super) fn said<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    let is_size = SIZES.contains(&name);
    let name = fold(name);
    let list = value.as_array().into_iter().flatten();
    list.filter_map(move |variant| {
        if is_size {
            return variant.get("size");
        }
        let options = variant.get("options")?.as_object()?;
        options.iter().find(|(other, _)| fold(other) == name).map(|(_, value)| value)
    })
}

/// Whether one of them says whether it is in stock.
pub(super) fn say_stock(variants: &[Variant]) -> bool {
    variants.iter().any(Variant::says_stock)
}

/// Turns variants into their stored form: ids and other words are texts, prices and counts numbers.
pub(super) fn normalise(value: &Value) -> Result<Value, String> {
    let list = match value {
        Value::String(text) => serde_json::from_str(text).ok(),
        other => Some(other.clone()),
    };
    let Some(Value::Array(list)) = list else { return Err(format!("{EXPECTED}; found {}", short(value))) };
    let mut ids = HashSet::new();
    let variants = (1..).zip(list).map(|(number, variant)| {
        let (id, variant) = normalise_one(variant).map_err(|reason| format!("variant {number}: {reason}"))?;
        let is_new = ids.insert(id.clone());
        is_new.then_some(variant).ok_or_else(|| format!("variant {number}: its id {id:?} is another's, too"))
    });
    variants.collect()
}

fn normalise_one(variant: Value) -> Result<(ArticleId, Value), String> {
    let Value::Object(mut fields) = variant else {
        return Err(format!("{EXPECTED}; found {}", short(&variant)));
    };
    fields.retain(|_, value| !value.is_null());
    let id = fields.get("id").ok_or("it has no id")?;
    let id = ArticleId::new(word("id", id)?).map_err(|error| error.to_string())?;
    if let Some(flag) = fields.remove("in_stock") {
        let in_stock = read_stock(&flag)?;
        if !in_stock || !fields.contains_key("stock") {
            fields.insert("stock".to_owned(), in_stock.into());
        }
    }
    for (name, value) in &mut fields {
        *value = match name.as_str() {
            "id" => id.as_str().into(),
            "gtin" | "link" | "image" => word(name, value)?.into(),
            "size" => few_word(name, value)?,
            "options" => options(value)?,
            "price" => Value::from(json_number(read_price(value)?)),
            "stock" => stock(value)?,
            _ => continue,
        };
    }
    fields
        .retain(|name, value| name != "size" || value.as_str().is_some_and(|size| fold_size(size).is_some()));
    Ok((id, fields.into()))
}

/// A text, or a number that means its digits.
fn word(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(word) => Ok(word.trim().to_owned()),
        Value::Number(number) if !number.is_f64() => Ok(number.to_string()),
        Value::Number(number) if name != "id" && name != "gtin" => Ok(number.to_string()),
        other => Err(format!("its {name} is a text, found {}", short(other))),
    }
}

/// A catalogue has a set for each combination of what the options list.
pub(super) fn few_words(name: &str, text: &str) -> Result<(), String> {
    let found = fold_value(text).len();
    if found <= MOST_WORDS {
        Ok(())
    } else {
        Err(format!("its {name} lists {found} values, at most {MOST_WORDS} are allowed"))
    }
}

fn few_word(name: &str, value: &Value) -> Result<Value, String> {
    let text = word(name, value)?;
    few_words(name, &text)?;
    Ok(text.into())
}

fn options(value: &Value) -> Result<Value, String> {
    let Value::Object(given) = value else {
        let example = "{\"Länge\": \"L32\"}";
        return Err(format!("its options are texts by name, as in {example}, found {}", short(value)));
    };
    if given.len() > MOST_OPTIONS {
        return Err(format!("it has {} options, at most {MOST_OPTIONS} are one variant's", given.len()));
    }
    let given = given.iter().filter(|(_, value)| !value.is_null());
    let read = |(name, value): (&String, &Value)| {
        Ok::<_, String>((name.clone(), few_word(&format!("option {name:?}"), value)?))
    };
    Ok(Value::Object(given.map(read).collect::<Result<Map<_, _>, _>>()?))
}

fn stock(value: &Value) -> Result<Value, String> {
    let count = |count: &Value, what: &str| read_count(count, what).map(Value::from);
    match value {
        Value::Bool(is_any) => Ok((*is_any).into()),
        Value::Object(stores) => {
            let read = |(store, number): (&String, &Value)| {
                Ok::<_, String>((store.clone(), count(number, &format!("its stock in {store:?}"))?))
            };
            Ok(Value::Object(stores.iter().map(read).collect::<Result<Map<_, _>, _>>()?))
        }
        number @ Value::Number(_) => count(number, "its stock"),
        other => Err(format!(
            "its stock is a count, true or false, or counts by store as in {{\"zurich\": 3}}, found {}",
            short(other)
        )),
    }
}

/// The sizes of the variants, each once.
pub(super) fn sizes(variants: &[Variant]) -> Vec<&str> {
    let mut before = HashSet::new();
    let sizes = variants.iter().filter_map(|variant| variant.size.as_deref());
    sizes.filter(|size| before.insert(fold_size(size))).collect()
}

/// The article's stock, in the form in which an article without variants says it: a count, counts by size, or a list by
/// size and store. `None` if no variant says how many there are, and none is sold out.
pub(super) fn total(variants: &[Variant]) -> Option<Value> {
    if variants.iter().all(|variant| matches!(variant.stock, None | Some(Stock::Is(true)))) {
        return None;
    }
    let (mut places, mut entries) = (HashMap::new(), Vec::new());
    for variant in variants {
        let size = variant.size.as_deref();
        for (store, count) in variant.by_store() {
            let place = *places.entry((size.map(fold_size), store)).or_insert_with(|| {
                entries.push((size, store, 0_i64));
                entries.len() - 1
            });
            entries[place].2 = (entries[place].2 + count.clamp(0, MOST_STOCK)).min(MOST_STOCK);
        }
    }
    Some(match &entries[..] {
        [(None, None, count)] => (*count).into(),
        all if all.iter().all(|(size, store, _)| size.is_some() && store.is_none()) => {
            let by_size =
                all.iter().filter_map(|(size, _, count)| Some(((*size)?.to_owned(), (*count).into())));
            Value::Object(by_size.collect())
        }
        all => {
            let entry = |(size, store, count): &(Option<&str>, Option<&str>, i64)| {
                let named = [("size", *size), ("store", *store)];
                let named =
                    named.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into())));
                Value::Object(named.chain([("count".to_owned(), (*count).into())]).collect())
            };
            all.iter().map(entry).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_variant_has_one_form() {
        let given = json!([
            {"id": 4711, "size": 38, "options": {"Länge": 32, "Farbe": null}, "price": "64,55", "gtin": 4_006_381_333_931_u64,
             "stock": 3.0, "mpn": "X", "image": null},
            {"id": "b", "size": " ", "stock": {"Zürich": 1, "basel": 0}},
            {"id": "c", "stock": 5, "in_stock": "nein"},
            {"id": "d", "stock": 5, "in_stock": true},
            {"id": "e", "in_stock": 0},
        ]);
        let expected = json!([
            {"id": "4711", "size": "38", "options": {"Länge": "32"}, "price": 64.55, "gtin": "4006381333931", "stock": 3,
             "mpn": "X"},
            {"id": "b", "stock": {"Zürich": 1, "basel": 0}},
            {"id": "c", "stock": false},
            {"id": "d", "stock": 5},
            {"id": "e", "stock": false},
        ]);
        assert_eq!(normalise(&given), Ok(expected.clone()));
        assert_eq!(normalise(&given.to_string().into()), Ok(expected.clone()), "a cell of a table");
        assert_eq!(normalise(&expected), Ok(expected));
        let many: Map<String, Value> = (0..17).map(|n| (n.to_string(), "x".into())).collect();
        for (wrong, said) in [
            (json!("M"), "variants are a list of objects"),
            (json!({"id": "a"}), "variants are a list of objects"),
            (json!(["a"]), "variant 1: variants are a list of objects"),
            (json!([{"id": "a"}, {"size": "M"}]), "variant 2: it has no id"),
            (json!([{"id": "a"}, {"id": "a"}]), "variant 2: its id \"a\" is another's, too"),
            (json!([{"id": "a|b"}]), "variant 1: an id cannot contain"),
            (json!([{"id": 1e22}]), "its id is a text, found 1e+22"),
            (json!([{"id": "a", "in_stock": "perhaps"}]), "in_stock is true or false"),
            (json!([{"id": "a", "size": "1/2/3/4/5/6/7/8"}]), "its size lists 9 values, at most 8"),
            (json!([{"id": "a", "options": many}]), "variant 1: it has 17 options, at most 16"),
            (json!([{"id": "a", "size": ["M"]}]), "its size is a text, found [\"M\"]"),
            (json!([{"id": "a", "options": ["M"]}]), "its options are texts by name"),
            (json!([{"id": "a", "options": {"M": true}}]), "its option \"M\" is a text, found true"),
            (json!([{"id": "a", "price": "cheap"}]), "a price is a number"),
            (json!([{"id": "a", "stock": "3"}]), "its stock is a count, true or false"),
            (json!([{"id": "a", "stock": {"z": 0.5}}]), "its stock in \"z\" is a whole number; found 0.5"),
        ] {
            let reason = normalise(&wrong).unwrap_err();
            assert!(reason.contains(said), "{wrong}: {reason}");
        }
    }

    #[test]
    fn the_articles_stock_is_the_sum_of_its_variants() {
        let total = |variants: Value| total(&parse(&variants));
        for (variants, expected) in [
            (json!([{"id": "a", "stock": 2}, {"id": "b", "stock": 3}]), json!(5)),
            (
                json!([{"id": "a", "size": "M", "stock": 2}, {"id": "b", "size": "L"}]),
                json!({"M": 2, "L": 1}),
            ),
            (
                json!([{"id": "a", "size": "M", "stock": false}, {"id": "b", "size": "m", "stock": 2}]),
                json!({"M": 2}),
            ),
            (json!([{"id": "a", "stock": -2}]), json!(0)),
            (
                json!([{"id": "a", "size": "M", "stock": {"z": 1}}, {"id": "b", "stock": 2}]),
                json!([{"size": "M", "store": "z", "count": 1}, {"count": 2}]),
            ),
        ] {
            assert_eq!(total(variants.clone()), Some(expected), "{variants}");
        }
        for variants in [json!([]), json!([{"id": "a"}]), json!([{"id": "a", "stock": true}, {"id": "b"}])] {
            assert_eq!(total(variants.clone()), None, "{variants}");
        }
    }
}
