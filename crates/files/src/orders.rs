//! Orders as a table of lines: each is an article, or a variant of one, that a customer bought. Other columns are ignored.

use atelier_core::domain::{CustomerId, FeatureWarning, Schema, Timestamp};
use chrono::NaiveDate;
use serde_json::Value;

use super::{
    Table,
    feed::read_moment,
    json::Fields,
    table::{Field, collect_fields, field, id_text, parse_id, take},
};

/// A line of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderLine {
    pub order: String,
    /// A guest's order has none.
    pub customer: Option<CustomerId>,
    pub article: Option<String>,
    pub variant: Option<String>,
    pub time: Timestamp,
    pub returned: bool,
}

impl Table for OrderLine {
    const NAME: &'static str = "orders";
    const FIELDS: &'static [Field] = &[
        field("order", true),
        field("customer", true),
        field("article", false),
        field("variant", false),
        field("time", true),
        field("returned", false),
    ];
    const FEATURES: bool = false;

    fn from_fields(mut fields: Fields, _: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        let mut text = |name: &str| {
            let value = take(&mut fields, name).filter(|value| value != "");
            value.map(|value| id_text(format_args!("field {name:?}"), value)).transpose()
        };
        let (article, variant) = (text("article")?, text("variant")?);
        if article.is_none() && variant.is_none() {
            return Err("the line names neither an \"article\" nor a \"variant\"".to_owned());
        }
        let customer = text("customer")?.map(|id| parse_id("customer", Some(id.into()), CustomerId::new));
        let customer = customer.transpose()?;
        let time = read_time(take(&mut fields, "time").unwrap_or_default())?;
        let returned = take(&mut fields, "returned").map_or(Ok(false), |value| read_returned(&value))?;
        let order = parse_id("order", take(&mut fields, "order"), Ok)?;
        Ok((Self { order, customer, article, variant, time, returned }, Vec::new()))
    }

    fn to_fields(&self, _: &Schema) -> Fields {
        let text = |text: &Option<String>| text.as_deref().map(Value::from);
        collect_fields([
            ("order", Some(self.order.as_str().into())),
            ("customer", self.customer.as_ref().map(|id| id.as_str().into())),
            ("article", text(&self.article)),
            ("variant", text(&self.variant)),
            ("time", Some(self.time.to_string().into())),
            ("returned", self.returned.then_some(Value::Bool(true))),
        ])
    }
}

/// ISO 8601, a German date with or without a time of day, or seconds since 1970. Without a zone it is in UTC.
pub(super) fn read_time(value: Value) -> Result<Timestamp, String> {
    let text = match value {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        other => other.to_string(),
    };
    let text = text.trim();
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let date =
        NaiveDate::parse_from_str(date, "%d.%m.%Y").map_or_else(|_| date.to_owned(), |date| date.to_string());
    let clock = clock.trim_end_matches(" UTC").replace(' ', "");
    let seconds =
        || text.parse::<u32>().ok().filter(|_| text.len() >= 9).map(|seconds| i64::from(seconds) * 1000);
    read_moment(&format!("{date}T{clock}")).or_else(seconds).map(Timestamp::from_millis).ok_or_else(|| {
        format!("field \"time\" must be a time such as 2026-11-21T13:34:56Z, 2026-11-21 or 21.11.2026, found {text:?}")
    })
}

/// Whether a time has no time of day.
pub(super) fn is_date(value: &Value) -> bool {
    let is_day = |text: &str| text.contains(['-', '.']) && !text.contains(['T', ' ']);
    value.as_str().is_some_and(|text| is_day(text.trim()))
}

/// A flag, or when it was returned.
fn read_returned(value: &Value) -> Result<bool, String> {
    read_flag(value).or_else(|text| match read_time(value.clone()) {
        Ok(_) => Ok(true),
        Err(_) => {
            Err(format!("field \"returned\" must be true, false or the time of the return, found {text:?}"))
        }
    })
}

/// # Errors
/// The text that is no flag.
pub(super) fn read_flag(value: &Value) -> Result<bool, String> {
    let text = match value {
        Value::Bool(flag) => return Ok(*flag),
        Value::String(text) => text.trim().to_lowercase(),
        other => other.to_string(),
    };
    match text.as_str() {
        "" | "0" | "false" | "no" | "n" | "nein" => Ok(false),
        "1" | "true" | "yes" | "y" | "ja" | "j" | "x" => Ok(true),
        _ => Err(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_shops_write_them() {
        let read = |text: &str| read_time(text.into()).map(|time| time.to_string());
        for text in [
            "2026-11-21T13:34:56Z",
            "2026-11-21 14:34:56 +0100",
            "21.11.2026 13:34:56",
            "1795268096",
            "2026-11-21 13:34:56 UTC",
        ] {
            assert_eq!(read(text).unwrap(), "2026-11-21T13:34:56Z", "{text}");
        }
        for text in ["2026-11-21", "21.11.2026", "2026-11-21T00:00"] {
            assert_eq!(read(text).unwrap(), "2026-11-21T00:00:00Z", "{text}");
        }
        for text in ["11/21/2026", "yesterday", "", "31.02.2026", "7"] {
            assert!(read(text).unwrap_err().contains(&format!("or 21.11.2026, found {text:?}")), "{text}");
        }
    }

    #[test]
    fn a_return_is_a_flag_or_a_time() {
        for (value, returned) in [
            (Value::Bool(true), true),
            ("Ja".into(), true),
            (1.into(), true),
            ("2026-11-30".into(), true),
            ("nein".into(), false),
            (0.into(), false),
            (" ".into(), false),
        ] {
            assert_eq!(read_returned(&value), Ok(returned), "{value}");
        }
        assert!(read_returned(&"maybe".into()).unwrap_err().ends_with("found \"maybe\""));
    }
}
