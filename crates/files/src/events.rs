//! Events as a table: what customers and visitors did in the shop. Other columns are ignored.

use atelier_core::domain::{ArticleId, CustomerId, FeatureWarning, Schema, Timestamp, parse_price};
use serde_json::Value;

use super::{
    Table,
    json::{Fields, describe_type},
    orders::{is_date, read_flag, read_time},
    table::{Field, collect_fields, field, id_text, in_field, parse_id, refuse_nul, take},
};

/// An event. What its kind and ticket mean only the service knows.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    pub id: String,
    pub kind: String,
    pub customer: Option<CustomerId>,
    pub visitor: Option<String>,
    pub consent: bool,
    /// Or a variant of one.
    pub article: ArticleId,
    pub order: Option<String>,
    pub value: Option<f64>,
    pub time: Option<Timestamp>,
    /// Whether it is the beginning of a day that is named without a time of day.
    pub is_date: bool,
    pub ticket: Option<String>,
}

impl Table for EventRow {
    const NAME: &'static str = "events";
    const FIELDS: &'static [Field] = &[
        field("id", true),
        field("kind", true),
        field("customer", false),
        field("visitor", false),
        field("consent", false),
        field("article", false),
        field("variant", false),
        field("order", false),
        field("value", false),
        field("time", false),
        field("ticket", false),
    ];
    const FEATURES: bool = false;

    fn from_fields(mut fields: Fields, _: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        refuse_nul(&fields)?;
        let id = parse_id("id", take(&mut fields, "id"), Ok)?;
        let kind = parse_id("kind", take(&mut fields, "kind"), Ok)?;
        let mut given = |name: &str| take(&mut fields, name).filter(|value| value != "");
        let (article, variant) = (given("article"), given("variant"));
        let customer =
            given("customer").map(|id| parse_id("customer", Some(id), CustomerId::new)).transpose()?;
        let consent = given("consent").map_or(Ok(false), |value| {
            read_flag(&value)
                .map_err(|text| format!("field \"consent\" must be true or false, found {text:?}"))
        })?;
        let value = given("value").map(|value| read_value(&value)).transpose()?;
        let time = given("time");
        let is_date = time.as_ref().is_some_and(is_date);
        let time = time.map(read_time).transpose()?;
        let mut text =
            |name: &str| given(name).map(|value| id_text(format_args!("field {name:?}"), value)).transpose();
        let (visitor, order, ticket) = (text("visitor")?, text("order")?, text("ticket")?);
        // A basket's name for it says more.
        let article = match (variant, article) {
            (None, None) => return Err("the row names neither an \"article\" nor a \"variant\"".to_owned()),
            (Some(id), _) => parse_id("variant", Some(id), ArticleId::new)?,
            (None, id) => parse_id("article", id, ArticleId::new)?,
        };
        let row = Self { id, kind, customer, visitor, consent, article, order, value, time, is_date, ticket };
        Ok((row, Vec::new()))
    }

    fn to_fields(&self, _: &Schema) -> Fields {
        let text = |text: &Option<String>| text.as_deref().map(Value::from);
        collect_fields([
            ("id", Some(self.id.as_str().into())),
            ("kind", Some(self.kind.as_str().into())),
            ("customer", self.customer.as_ref().map(|id| id.as_str().into())),
            ("visitor", text(&self.visitor)),
            ("consent", self.consent.then_some(Value::Bool(true))),
            ("article", Some(self.article.as_str().into())),
            ("order", text(&self.order)),
            ("value", self.value.map(Value::from)),
            (
                "time",
                self.time.map(|time| {
                    let mut time = time.to_string();
                    time.truncate(if self.is_date { "2026-11-21".len() } else { time.len() });
                    time.into()
                }),
            ),
            ("ticket", text(&self.ticket)),
        ])
    }
}

fn read_value(value: &Value) -> Result<f64, String> {
    match value {
        Value::Number(number) => {
            number.as_f64().ok_or_else(|| format!("field \"value\" is out of range: {number}"))
        }
        Value::String(text) => parse_price(text).map_err(|error| in_field("value", error)),
        other => Err(format!("field \"value\" must be a number, found {}", describe_type(other))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(row: Value) -> Result<EventRow, String> {
        let Value::Object(fields) = row else { panic!("an object") };
        EventRow::from_fields(fields, &Schema::default_schema()).map(|(row, _)| row)
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let row = json!({"id": "7/1", "kind": "bought", "customer": "c", "article": "a", "order": "7", "value": 64.5,
                         "time": "2026-11-21T13:34:56Z", "ticket": "t"});
        let read_row = read(row.clone()).unwrap();
        assert_eq!(Value::from(read_row.to_fields(&Schema::default_schema())), row);
        for (time, is_date) in
            [("21.11.2026", true), ("2026-11-21", true), ("2026-11-21 00:00", false), ("1795219200", false)]
        {
            let mut dated = row.clone();
            dated["time"] = time.into();
            let dated = read(dated).unwrap();
            assert_eq!((dated.time.unwrap().millis(), dated.is_date), (1_795_219_200_000, is_date), "{time}");
            let written = dated.to_fields(&Schema::default_schema());
            assert_eq!(read(written.into()).unwrap(), dated);
        }
        let cells = json!({"id": 7, "kind": "bought", "customer": "", "article": "a", "variant": "a-M", "value": "64,50",
                           "consent": "ja", "visitor": "v", "time": "", "seen": 3});
        let cells = read(cells).unwrap();
        assert_eq!((cells.id.as_str(), cells.article.as_str(), cells.value), ("7", "a-M", Some(64.5)));
        assert!(cells.consent && cells.customer.is_none() && cells.time.is_none());
    }

    #[test]
    fn bad_cells_are_named() {
        for (name, value, said) in [
            ("article", Value::Null, "neither an \"article\""),
            ("id", Value::Null, "\"id\" is missing"),
            ("value", json!("much"), "field \"value\": a price is"),
            ("value", json!([1]), "must be a number"),
            ("consent", json!("maybe"), "must be true or false"),
            ("time", json!("yesterday"), "field \"time\" must be"),
        ] {
            let mut row = json!({"id": "1", "kind": "viewed", "article": "a"});
            row[name] = value;
            let error = read(row).unwrap_err();
            assert!(error.contains(said), "{name}: {error}");
        }
    }
}
