//! An entry of a Google Merchant feed, with the attributes of Google's product data specification.

use std::borrow::Cow;

use atelier_core::{
    domain::{Timestamp, is_ambiguous_price, json_number, parse_price},
    util::notation::decimals,
};
use chrono::{DateTime, NaiveDateTime};
use serde_json::{Map, Value};

use super::{
    Bad,
    categories::category_name,
    list_begin,
    variants::{Variant, colour_id, last_of_path, read_gender},
};
use crate::Warning;

/// Attributes that all variants of an article share: Google's name and ours.
const SHARED: [(&str, &str); 14] = [
    ("item_group_id", "item_group_id"),
    ("brand", "brand"),
    ("age_group", "age_group"),
    ("color", "colour"),
    ("material", "material"),
    ("pattern", "pattern"),
    ("size_system", "size_system"),
    ("size_type", "size_type"),
    ("product_type", "product_type"),
    ("google_product_category", "google_product_category"),
    ("condition", "condition"),
    ("custom_label_0", "custom_label_0"),
    ("custom_label_1", "custom_label_1"),
    ("custom_label_2", "custom_label_2"),
];
/// Attributes that each variant has its own of. The article's are the first one's.
const OWN: [(&str, &str); 3] = [("title", "name"), ("link", "url"), ("image_link", "image")];
/// The fields kept of each variant, by its names.
const OF_VARIANT: [(&str, &str); 5] =
    [("size", "size"), ("gtin", "gtin"), ("mpn", "mpn"), ("link", "link"), ("image_link", "image")];
/// Attributes that may have several values. Google joins them with this sign.
const LISTS: [&str; 4] = ["size", "color", "material", "pattern"];
const BETWEEN: &str = "/";

/// The columns of a tab-separated feed.
pub(super) struct MerchantColumns(Vec<String>);

impl MerchantColumns {
    pub(super) fn new(header: &[String]) -> Result<Self, String> {
        let name = |cell: &String| {
            let name = cell.trim().to_lowercase().replace(' ', "_");
            name.strip_prefix("g:").map(str::to_owned).unwrap_or(name)
        };
        let names: Vec<String> = header.iter().map(name).collect();
        if !names.iter().any(|name| name == "id") {
            return Err(format!("a Merchant feed needs a column \"id\", found {}", list_begin(header)));
        }
        Ok(Self(names))
    }

    /// Reads a row. Programs leave out the empty cells at its end.
    pub(super) fn read(&self, cells: &[&str], now: Timestamp) -> Result<Variant, Bad> {
        let (found, expected) = (cells.len(), self.0.len());
        if found > expected {
            let reason = format!("the header has {expected} cells, but this row has {found}");
            // Before the first cell none is too many.
            let id = cells.iter().take(1).filter(|_| self.0[0] == "id").map(|id| id.trim().to_owned());
            return Err(Bad { reason, ids: id.collect() });
        }
        read(self.0.iter().map(String::as_str).zip(cells.iter().copied()), None, now)
    }
}

/// Reads an entry from its attributes. Of an attribute that is given more than once the first counts, unless it may have several
/// values. `wrong` says why they are not all there.
pub(super) fn read<'f>(
    given: impl Iterator<Item = (&'f str, &'f str)>,
    wrong: Option<String>,
    now: Timestamp,
) -> Result<Variant, Bad> {
    let mut fields: Vec<(&str, Cow<'_, str>)> = Vec::new();
    for (name, value) in
        given.map(|(name, value)| (name, value.trim())).filter(|(_, value)| !value.is_empty())
    {
        match fields.iter_mut().find(|(other, _)| *other == name && LISTS.contains(&name)) {
            Some((_, list)) if list.split(BETWEEN).any(|other| other == value) => {}
            Some((_, list)) => list.to_mut().extend([BETWEEN, value]),
            None => fields.push((name, value.into())),
        }
    }
    let find = |name: &str| fields.iter().find(|(other, _)| *other == name).map(|(_, value)| &**value);
    let Some(id) = find("id").or_else(|| find("feed id")) else {
        return Err(wrong.unwrap_or_else(|| "the attribute \"id\" is missing".to_owned()).into());
    };
    let group = find("item_group_id");
    let article = group.map_or_else(|| id.to_owned(), |group| colour_id(group, find("color")));
    let ids = vec![article.clone(), id.to_owned()];
    let read = wrong.map_or(Ok(()), Err).and_then(|()| variant(id, group, article, find, now));
    read.map_err(|reason| Bad { reason, ids })
}

fn variant<'f>(
    id: &str,
    group: Option<&str>,
    article: String,
    find: impl Fn(&str) -> Option<&'f str>,
    now: Timestamp,
) -> Result<Variant, String> {
    let (kind, warning) = read_type(find("product_type"), find("google_product_category"))?;

    let mut shared: Vec<(&'static str, Value)> =
        SHARED.iter().filter_map(|(theirs, ours)| Some((*ours, find(theirs)?.into()))).collect();
    if let Some(gender) = find("gender") {
        shared.push(("gender", read_gender(gender, find("age_group")).into()));
    }
    let mut variant: Map<String, Value> = [("id".to_owned(), id.into())].into_iter().collect();
    let named = |theirs: &str| find(theirs).or_else(|| find(&format!("feed {theirs}")));
    variant.extend(
        OF_VARIANT.iter().filter_map(|(theirs, ours)| Some(((*ours).to_owned(), named(theirs)?.into()))),
    );
    let mut own: Vec<(&'static str, Value)> =
        OWN.iter().filter_map(|(theirs, ours)| Some((*ours, named(theirs)?.into()))).collect();
    let in_stock = find("availability").map(read_availability).transpose()?;
    if let Some(price) = find("price") {
        let (regular, currency) = read_price("price", price)?;
        let sale = find("sale_price").map(|price| read_price("sale_price", price)).transpose()?;
        if let (Some(currency), Some((_, Some(other)))) = (&currency, &sale)
            && currency != other
        {
            return Err(format!("sale_price is in {other}, and price in {currency}; expected one currency"));
        }
        let sale = sale.map(|(price, _)| price).filter(|price| *price > 0.0 && *price < regular);
        let sale = match find("sale_price_effective_date") {
            Some(dates) if sale.is_some() && !is_within(dates, now)? => None,
            _ => sale,
        };
        let number = |price: f64| json_number(price).map(Value::Number);
        let mut prices: Vec<_> =
            number(sale.unwrap_or(regular)).map(|price| ("price", price)).into_iter().collect();
        if sale.is_some() {
            prices.extend(number(regular).map(|price| ("regular_price", price)));
        }
        variant.extend(prices.iter().map(|(name, price)| ((*name).to_owned(), price.clone())));
        own.extend(prices);
        shared.extend(currency.map(|currency| ("currency", currency.into())));
    }
    if let Some((now, later)) = in_stock {
        variant.insert("stock".to_owned(), now.into());
        variant.extend(later.map(|word| ("availability".to_owned(), word.into())));
    }
    let is_plain = find("size").is_none() && find("color").is_none() && group.is_none_or(|group| group == id);
    Ok(Variant {
        fields: variant,
        article,
        kind,
        group: group.map(str::to_owned),
        parent: is_plain.then(|| id.to_owned()),
        completes_others: false,
        in_stock: in_stock.map(|(now, _)| now),
        later: in_stock.and_then(|(_, later)| later),
        shared,
        own,
        warning,
    })
}

/// The last part of the shop's own path of types, or else of Google's, which may be a number.
fn read_type(
    product_type: Option<&str>,
    category: Option<&str>,
) -> Result<(String, Option<Warning>), String> {
    if let Some(last) = product_type.and_then(last_of_path) {
        return Ok((last.to_owned(), None));
    }
    let category = category.and_then(last_of_path).ok_or(
        "an article needs a type: neither \"product_type\" nor \"google_product_category\" is given",
    )?;
    Ok(match category.parse() {
        Err(_) => (category.to_owned(), None),
        Ok(number) => category_name(number).map_or_else(
            || (format!("category {number}"), Some(Warning::Category(number))),
            |name| (name.to_owned(), None),
        ),
    })
}

/// Whether an article can be bought now, and the feed's word if it can only be ordered.
fn read_availability(text: &str) -> Result<(bool, Option<&'static str>), String> {
    let word = text.to_lowercase().replace([' ', '-', '_'], "");
    // Some programs write the words of schema.org, with its address.
    match word.rsplit('/').next().unwrap_or_default() {
        "instock" | "available" | "limitedavailability" => Ok((true, None)),
        "outofstock" | "soldout" | "unavailable" | "discontinued" => Ok((false, None)),
        "preorder" | "presale" => Ok((false, Some("preorder"))),
        "backorder" | "availablefororder" => Ok((false, Some("backorder"))),
        _ => Err(format!("availability is in_stock, out_of_stock, preorder or backorder, found {text:?}")),
    }
}

/// Reads a price with a currency, such as `15.00 USD`. The currency may be missing or come first.
fn read_price(name: &str, text: &str) -> Result<(f64, Option<String>), String> {
    let letters = |c: char| c.is_ascii_alphabetic();
    let number = text.trim_matches(letters).trim();
    let currency: String = text.chars().filter(|c| letters(*c)).collect();
    let currency = (!currency.is_empty()).then(|| currency.to_uppercase());
    // Google's separator of decimals is the point. Where prices have three, it is not one of thousands.
    let has_three_decimals = currency.as_deref().is_some_and(|code| decimals(code) == 3)
        && is_ambiguous_price(number)
        && number.contains('.');
    let price = if has_three_decimals { parse_price(&format!("{number}0")) } else { parse_price(number) };
    let price =
        price.map_err(|_| format!("{name} is a number and a currency, as in 15.00 USD, found {text:?}"))?;
    match &currency {
        Some(code) if code.len() != 3 => {
            Err(format!("{name} has a currency of three letters, as in 15.00 USD, found {text:?}"))
        }
        _ => Ok((price, currency)),
    }
}

/// Whether a time is within an interval such as `2026-11-01T00:00-0800/2026-12-01T00:00-0800`. Days are in UTC, and the last
/// one counts.
fn is_within(interval: &str, now: Timestamp) -> Result<bool, String> {
    let day = |text: &str, time: &str| {
        read_moment(text).or_else(|| read_moment(&format!("{}T{time}", text.trim())))
    };
    let ends =
        interval.split_once('/').and_then(|(from, to)| Some((day(from, "00:00:00")?, day(to, "23:59:59")?)));
    let (from, to) = ends.ok_or_else(|| {
        format!(
            "sale_price_effective_date is two times, as in 2026-11-01T00:00-0800/2026-12-01T00:00-0800, \
             found {interval:?}"
        )
    })?;
    Ok((from..=to).contains(&now.millis()))
}

/// The milliseconds from 1970 to an ISO 8601 time, without fractions of a second. A time without a zone is in UTC.
pub(crate) fn read_moment(text: &str) -> Option<i64> {
    const TIMES: [&str; 2] = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
    const DAY: i64 = 86_400;
    let text = text.trim().replacen(' ', "T", 1);
    // ISO 8601's end of a day.
    let (text, later) = match text.split_once("T24:00") {
        Some((date, rest)) => (format!("{date}T00:00{rest}"), DAY),
        None => (text, 0),
    };
    let with_zone = |time: &&str| DateTime::parse_from_str(&text, &format!("{time}%#z")).ok();
    let without = |time: &&str| NaiveDateTime::parse_from_str(&text, time).ok();
    let seconds = TIMES.iter().find_map(with_zone).map(|time| time.timestamp());
    let seconds = seconds.or_else(|| Some(TIMES.iter().find_map(without)?.and_utc().timestamp()))?;
    (later == 0 || seconds % 60 == 0).then_some((seconds + later) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_a_currency() {
        for (text, price, currency) in [
            ("15.00 USD", 15.0, Some("USD")),
            ("EUR 1299.5", 1299.5, Some("EUR")),
            ("15,00 eur", 15.0, Some("EUR")),
            ("15.00USD", 15.0, Some("USD")),
            ("15", 15.0, None),
            ("12.500 KWD", 12.5, Some("KWD")),
            ("TND 1.250", 1.25, Some("TND")),
            ("1,250.500 OMR", 1250.5, Some("OMR")),
        ] {
            assert_eq!(read_price("price", text), Ok((price, currency.map(str::to_owned))), "{text}");
        }
        for wrong in ["", "USD", "-1 USD", "15.00 dollars", "$15.00", "1.299 EUR", "12,500 KWD"] {
            assert!(read_price("price", wrong).unwrap_err().contains("as in 15.00 USD"), "{wrong}");
        }
    }

    #[test]
    fn a_time_may_have_a_zone() {
        for (text, seconds) in [
            ("1970-01-01T00:00Z", 0),
            ("1970-01-01T00:00+0000", 0),
            ("1970-01-02T00:00+01:00", 82_800),
            ("2026-11-23T11:15:15-0800", 1_795_461_315),
            ("2026-11-23T11:15:15-08", 1_795_461_315),
            ("2024-02-29T12:00", 1_709_208_000),
            ("2024-02-29 12:00:00.5Z", 1_709_208_000),
            ("2024-02-28T24:00Z", 1_709_164_800),
            ("2024-02-28T24:00:00+0100", 1_709_161_200),
        ] {
            assert_eq!(read_moment(text), Some(seconds * 1000), "{text}");
        }
        let wrong = " 2026-11-23 2026-13-01T00:00 2026-02-30T00:00 2026-11-23T0:0-8 2026-11-23T24:00:30Z 2026-11-23T24:30Z \
                     x-1-1T00:00 2026-11-23T:";
        for wrong in wrong.split(' ') {
            assert_eq!(read_moment(wrong), None, "{wrong}");
        }
        let november = "2026-11-01T00:00-0800/2026-12-01T00:00-0800";
        let at = |text| Timestamp::from_millis(read_moment(text).unwrap());
        assert_eq!(is_within(november, at("2026-11-01T07:59Z")), Ok(false));
        assert_eq!(is_within(november, at("2026-11-01T08:00Z")), Ok(true));
        assert!(is_within("2026-11-01", at("2026-11-01T08:00Z")).unwrap_err().contains("two times"));
        let days = "2026-11-01/2026-11-03";
        for (time, expected) in [
            ("2026-10-31T23:59:59Z", false),
            ("2026-11-01T00:00Z", true),
            ("2026-11-03T23:59Z", true),
            ("2026-11-04T00:00Z", false),
        ] {
            assert_eq!(is_within(days, at(time)), Ok(expected), "{time}");
        }
    }

    #[test]
    fn availability_has_several_spellings() {
        for (text, now, later) in [
            ("in_stock", true, None),
            ("In Stock", true, None),
            ("https://schema.org/InStock", true, None),
            ("http://schema.org/LimitedAvailability", true, None),
            ("out-of-stock", false, None),
            ("SoldOut", false, None),
            ("pre-order", false, Some("preorder")),
            ("available for order", false, Some("backorder")),
        ] {
            assert_eq!(read_availability(text), Ok((now, later)), "{text}");
        }
        for wrong in ["", "maybe", "https://schema.org/"] {
            assert!(read_availability(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_type_is_the_last_part_of_a_path() {
        for (product_type, category, kind) in [
            (Some("Women > Coats > Parkas"), Some("5598"), "Parkas"),
            (None, Some("Apparel & Accessories > Clothing > Dresses"), "Dresses"),
            (Some(" > "), Some("Shoes"), "Shoes"),
            (None, Some("5598"), "Coats & Jackets"),
            (None, Some("187"), "Shoes"),
        ] {
            assert_eq!(read_type(product_type, category), Ok((kind.to_owned(), None)));
        }
        let unnamed = ("category 99".to_owned(), Some(Warning::Category(99)));
        assert_eq!(read_type(None, Some("99")), Ok(unnamed));
        for category in [None, Some(" > ")] {
            assert!(read_type(None, category).unwrap_err().contains("neither"));
        }
    }
}
