//! A row of Shopify's export of products. The rows of a product are next to each other: the first row has what all
//! variants share; the others have one variant or one more picture each.

use std::collections::HashSet;

use atelier_core::domain::{fold, json_number, parse_price};
use serde_json::{Map, Value};

use super::{
    Bad, Entry, list_begin,
    variants::{Variant, colour_id, last_of_path, read_gender},
};
use crate::{NotWorn, Warning};

/// The columns that are read, by their names in lower case: in the exports, and in Shopify's newer template. The first is the one
/// by which they are known here.
const COLUMNS: [&[&str]; 27] = [
    &["handle", "url handle"],
    &["title"],
    &["vendor"],
    &["product category"],
    &["type"],
    &["tags"],
    &["published", "published on online store"],
    &["status"],
    &["option1 name"],
    &["option2 name"],
    &["option3 name"],
    &["option1 value"],
    &["option2 value"],
    &["option3 value"],
    &["variant inventory tracker", "inventory tracker"],
    &["variant inventory qty", "inventory quantity"],
    &["variant inventory policy", "continue selling when out of stock"],
    &["variant price", "price"],
    &["variant compare at price", "compare-at price"],
    &["image src", "product image url"],
    &["variant sku", "sku"],
    &["variant barcode", "barcode"],
    &["variant image", "variant image url"],
    &["gift card"],
    &["google shopping / gender", "target gender (product.metafields.shopify.target-gender)"],
    &["google shopping / age group", "age group (product.metafields.shopify.age-group)"],
    &["fabric (product.metafields.shopify.fabric)"],
];
const OPTION_NAMES: [&str; 3] = ["option1 name", "option2 name", "option3 name"];
const OPTION_VALUES: [&str; 3] = ["option1 value", "option2 value", "option3 value"];
const GENDER: &str = "google shopping / gender";
const AGE_GROUP: &str = "google shopping / age group";

/// Shops' names for the options of products, by language, folded.
const SIZE: [&str; 23] = [
    "size",
    "sizes",
    "shoe size",
    "clothing size",
    "grösse",
    "groesse",
    "schuhgrösse",
    "kleidergrösse",
    "konfektionsgrösse",
    "eu size",
    "eu grösse",
    "waist",
    "mass",
    "weite",
    "bundweite",
    "taille",
    "pointure",
    "talla",
    "taglia",
    "tamanho",
    "maat",
    "størrelse",
    "storlek",
];
const COLOUR: [&str; 6] = ["color", "colour", "farbe", "couleur", "kleur", "colore"];

/// Which column a cell belongs to.
pub(super) struct ProductColumns(Vec<Option<&'static str>>);

/// The first row's values for all of a product.
#[derive(Default)]
pub(super) struct Product {
    handle: String,
    kind: Option<String>,
    /// The names of its options, and what they are.
    options: [Option<(String, Option<OptionKind>)>; 3],
    shared: Vec<(&'static str, Value)>,
    own: Vec<(&'static str, Value)>,
    is_offered: bool,
    /// The picture that is shown first.
    image: Option<String>,
    /// Those of its articles that have a variant: later ones need not repeat what all share, which may be long.
    begun: HashSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionKind {
    Size,
    Colour,
}

impl ProductColumns {
    pub(super) fn new(header: &[String]) -> Result<Self, String> {
        let find = |cell: &String| {
            let name = cell.trim().to_lowercase();
            COLUMNS.iter().find(|names| names.contains(&name.as_str())).map(|names| names[0])
        };
        let columns: Vec<Option<&str>> = header.iter().map(find).collect();
        for (column, name) in [("handle", "Handle"), ("variant price", "Variant Price")] {
            if !columns.contains(&Some(column)) {
                return Err(format!(
                    "Shopify's products need a column {name:?}, found {}",
                    list_begin(header)
                ));
            }
        }
        Ok(Self(columns))
    }

    pub(super) fn read(
        &self,
        cells: &[&str],
        product: &mut Product,
        not_worn: &NotWorn,
    ) -> Result<Entry, Bad> {
        if cells.len() != self.0.len() {
            let (found, expected) = (cells.len(), self.0.len());
            return Err(format!("the header has {expected} cells, but this row has {found}").into());
        }
        let find = |column: &str| {
            let mut cells = self.0.iter().zip(cells).filter(|(other, _)| **other == Some(column));
            cells.find_map(|(_, cell)| Some(cell.trim()).filter(|cell| !cell.is_empty()))
        };
        let handle = find("handle").ok_or("the column \"Handle\" is empty")?;
        let is_new = handle != product.handle;
        if is_new {
            *product = Product::new(handle, not_worn, find);
        }
        if !product.is_offered {
            return Ok(if is_new { Entry::LeftOut } else { Entry::Nothing });
        }
        if find("variant price").is_none() && find(OPTION_VALUES[0]).is_none() {
            return Ok(Entry::Nothing);
        }
        let variant = product.variant(is_new, find).map(Box::new).map(Entry::Variant);
        variant.map_err(|reason| {
            let sku = find("variant sku").map(|sku| unquoted(sku).to_owned());
            let article = colour_id(&product.handle, product.option(OptionKind::Colour, find));
            Bad { reason, ids: [article].into_iter().chain(sku).collect() }
        })
    }
}

impl Product {
    fn new<'c>(handle: &str, not_worn: &NotWorn, find: impl Fn(&str) -> Option<&'c str>) -> Self {
        let kind = find("type").or_else(|| find("product category").and_then(last_of_path));
        let kind = kind.map(str::to_owned);
        let options = [0, 1, 2].map(|number| {
            let name = find(OPTION_NAMES[number])?;
            // Shopify's own, of a product without options.
            let is_named = name != "Title" || find(OPTION_VALUES[number]) != Some("Default Title");
            let folded = fold(name);
            let is_in = |names: &[&str], kind| names.contains(&folded.as_str()).then_some(kind);
            let kind = is_in(&SIZE, OptionKind::Size).or_else(|| is_in(&COLOUR, OptionKind::Colour));
            is_named.then(|| (name.to_owned(), kind))
        });
        let named = [
            ("brand", "vendor"),
            ("product_type", "product category"),
            ("age_group", AGE_GROUP),
            ("material", "fabric (product.metafields.shopify.fabric)"),
        ];
        let mut shared: Vec<(&'static str, Value)> =
            named.into_iter().filter_map(|(name, column)| Some((name, find(column)?.into()))).collect();
        shared.push(("item_group_id", handle.into()));
        if let Some(gender) = find(GENDER) {
            shared.push(("gender", read_gender(gender, find(AGE_GROUP)).into()));
        }
        if let Some(tags) = find("tags") {
            let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
            shared.push(("tags", tags));
        }
        let own = find("title").map(|title| ("name", title.into()));
        let is_worn = !find("gift card").is_some_and(|text| says(&YES, text))
            && !["type", "product category"].into_iter().filter_map(&find).any(|path| not_worn.has(path));
        let is_offered = is_worn
            && !find("published").is_some_and(|text| says(&NO, text))
            && find("status").is_none_or(|status| status.eq_ignore_ascii_case("active"));
        let (handle, own, begun) = (handle.to_owned(), own.into_iter().collect(), HashSet::new());
        let image = find("image src").map(str::to_owned);
        Self { handle, kind, options, shared, own, is_offered, image, begun }
    }

    /// The value of the first option of a kind.
    fn option<'c>(&self, wanted: OptionKind, find: impl Fn(&str) -> Option<&'c str>) -> Option<&'c str> {
        let is_wanted = |option: &Option<(_, Option<OptionKind>)>| matches!(option, Some((_, Some(kind))) if *kind == wanted);
        find(OPTION_VALUES[self.options.iter().position(is_wanted)?])
    }

    fn variant<'c>(
        &mut self,
        completes_others: bool,
        find: impl Fn(&str) -> Option<&'c str>,
    ) -> Result<Variant, String> {
        let (colour, size) = (self.option(OptionKind::Colour, &find), self.option(OptionKind::Size, &find));
        let article = colour_id(&self.handle, colour);
        let is_first = !self.begun.contains(&article);
        let (mut shared, mut own) =
            if is_first { (self.shared.clone(), self.own.clone()) } else { Default::default() };
        shared.extend(colour.map(|colour| ("colour", colour.into())));
        if is_first {
            let image = find("image src").or(self.image.as_deref());
            shared.extend(image.map(|image| ("image", image.into())));
        }
        let picture = find("variant image");
        own.extend(picture.map(|image| ("image", image.into())));

        let named = self.options.iter().zip(0..).filter_map(|(option, number)| {
            let (name, kind) = option.as_ref()?;
            Some((name, *kind, find(OPTION_VALUES[number])?))
        });
        let others =
            named.clone().filter(|(_, kind, _)| *kind != Some(OptionKind::Colour)).map(|(.., value)| value);
        let id =
            find("variant sku").map_or_else(|| variant_id(&article, others), |sku| unquoted(sku).to_owned());
        let options: Map<String, Value> =
            named.map(|(name, _, value)| (name.clone(), value.into())).collect();
        let texts = [("size", size), ("gtin", find("variant barcode").map(unquoted)), ("image", picture)];
        let mut fields: Map<String, Value> = [("id".to_owned(), id.into())].into_iter().collect();
        fields.extend(texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into()))));
        if !options.is_empty() {
            fields.insert("options".to_owned(), options.into());
        }
        let price = |column, name: &str| {
            let read = |text: &str| parse_price(text).map_err(|error| format!("column {name:?}: {error}"));
            find(column).map(read).transpose()
        };
        let number = |price: f64| json_number(price).map(Value::Number);
        let (now, before) = (
            price("variant price", "Variant Price")?,
            price("variant compare at price", "Variant Compare At Price")?,
        );
        let before = before.filter(|before| now.is_some_and(|now| *before > now));
        for (name, price) in [("price", now), ("regular_price", before)] {
            if let Some(price) = price.and_then(number) {
                fields.insert(name.to_owned(), price.clone());
                own.push((name, price));
            }
        }

        let kind = self
            .kind
            .clone()
            .ok_or("an article needs a type: the product has neither a Type nor a Product Category")?;
        let Stock { is_any, count, warning } = read_stock(&find)?;
        fields.insert("stock".to_owned(), count.map_or_else(|| is_any.into(), Value::from));
        if is_first {
            self.begun.insert(article.clone());
        }
        Ok(Variant {
            fields,
            article,
            kind,
            group: Some(self.handle.clone()),
            parent: None,
            completes_others,
            in_stock: Some(is_any),
            later: None,
            shared,
            own,
            warning,
        })
    }
}

/// The id of a variant without a SKU. Signs are kept, because sizes may differ in them, as `C` and `C+`.
fn variant_id<'c>(article: &str, options: impl Iterator<Item = &'c str>) -> String {
    let mut id = article.to_owned();
    for option in options {
        id.push('-');
        let words = option.split_whitespace().collect::<Vec<_>>().join("-").to_lowercase();
        // No id has these.
        id.extend(words.chars().filter(|c| !c.is_control() && *c != '|'));
    }
    id
}

/// In English, and as Excel writes them in German and French.
const YES: [&str; 5] = ["true", "yes", "1", "wahr", "vrai"];
const NO: [&str; 5] = ["false", "no", "0", "falsch", "faux"];

fn says(words: &[&str], text: &str) -> bool {
    words.contains(&text.to_lowercase().as_str())
}

/// Without the apostrophe that keeps programs for tables from reading digits as a number.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('\'').unwrap_or(text)
}

/// Whether a variant can be bought, and how many there are.
struct Stock {
    is_any: bool,
    count: Option<u64>,
    warning: Option<Warning>,
}

/// A variant whose inventory is not tracked can be bought, and so can one that is sold on when there is none.
fn read_stock<'c>(find: &impl Fn(&str) -> Option<&'c str>) -> Result<Stock, String> {
    let goes_on = |text: &str| says(&["continue"], text) || says(&YES, text);
    let goes_on = find("variant inventory policy").is_some_and(goes_on);
    let is_tracked = find("variant inventory tracker").is_some();
    let Some(count) = find("variant inventory qty").filter(|_| is_tracked) else {
        let warning = (is_tracked && !goes_on).then_some(Warning::NotCounted);
        return Ok(Stock { is_any: true, count: None, warning });
    };
    let count: i64 = count
        .parse()
        .map_err(|_| format!("column \"Variant Inventory Qty\": expected a whole number, found {count:?}"))?;
    let count = u64::try_from(count).unwrap_or_default();
    let count = if goes_on { count.max(1) } else { count };
    Ok(Stock { is_any: count > 0, count: Some(count), warning: None })
}
