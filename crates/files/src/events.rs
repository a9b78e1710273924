//! Events as a table: what customers and visitors did in the shop. Other columns are ignored.

use atelier_core::domain::{ArticleId, CustomerId, FeatureWarning, Schema, Timestamp, read_price};
use serde_json::Value;

use super::{
    Table,
    json::Fields,
    orders::{OrderLine, is_date, read_flag, read_time},
    table::{Field, collect_fields, field, id_text, in_field, parse_id, take},
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
        let read = Self::read(&mut fields);
        read.map(|row| (row, Vec::new())).map_err(|mut faults| faults.swap_remove(0).1)
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

impl EventRow {
    /// The purchase that a line of an order is, and its return.
    pub fn from_order(line: OrderLine) -> Result<Vec<Self>, String> {
        let OrderLine { order, customer, article, variant, time, returned } = line;
        let article = ArticleId::new(article.or(variant).unwrap_or_default());
        let article = article.map_err(|error| in_field("article", error))?;
        let event = |kind: &str| Self {
            // Not an id that the shop gives to another event.
            id: format!("orders/{order}/{article}/{kind}"),
            kind: kind.to_owned(),
            customer: customer.clone(),
            visitor: None,
            consent: false,
            article: article.clone(),
            order: Some(order.clone()),
            value: None,
            time: Some(time),
            is_date: false,
            ticket: None,
        };
        let kinds: &[&str] = if returned { &["bought", "returned"] } else { &["bought"] };
        Ok(kinds.iter().map(|kind| event(kind)).collect())
    }

    /// Takes an event out of these fields, or finds each field that is wrong, and why.
    pub fn read(fields: &mut Fields) -> Result<Self, Vec<(&'static str, String)>> {
        let mut fields = Reader { fields, faults: Vec::new() };
        let id = fields.text("id");
        let kind = fields.text("kind");
        let customer = fields.read("customer", |id| parse_id("customer", Some(id), CustomerId::new));
        let visitor = fields.text("visitor");
        let consent = fields.read("consent", |value| {
            read_flag(&value)
                .map_err(|text| format!("field \"consent\" must be true or false, found {text:?}"))
        });
        let article = fields.read("article", |id| parse_id("article", Some(id), ArticleId::new));
        let variant = fields.read("variant", |id| parse_id("variant", Some(id), ArticleId::new));
        let order = fields.text("order");
        let value =
            fields.read("value", |value| read_price(&value).map_err(|error| in_field("value", error)));
        let time = fields.read("time", |time| Ok((is_date(&time), read_time(time)?)));
        let ticket = fields.text("ticket");
        // A basket's name for it says more.
        let article = variant.or(article);
        for (name, is_there) in
            [("id", id.is_some()), ("kind", kind.is_some()), ("article", article.is_some())]
        {
            if !is_there && fields.faults.iter().all(|(wrong, _)| *wrong != name) {
                fields.faults.push((name, format!("field {name:?} is missing")));
            }
        }
        let faults = fields.faults;
        let (Some(id), Some(kind), Some(article), true) = (id, kind, article, faults.is_empty()) else {
            return Err(faults);
        };
        let (is_date, time) = time.map_or((false, None), |(is_date, time)| (is_date, Some(time)));
        let consent = consent.unwrap_or(false);
        Ok(Self { id, kind, customer, visitor, consent, article, order, value, time, is_date, ticket })
    }
}

/// Reads fields one by one, and collects what is wrong with them.
struct Reader<'f> {
    fields: &'f mut Fields,
    faults: Vec<(&'static str, String)>,
}

impl Reader<'_> {
    /// None if the field is absent, empty or wrong.
    fn read<V>(&mut self, name: &'static str, read: impl FnOnce(Value) -> Result<V, String>) -> Option<V> {
        let value = take(self.fields, name).filter(|value| value != "")?;
        read(value).map_err(|reason| self.faults.push((name, reason))).ok()
    }

    fn text(&mut self, name: &'static str) -> Option<String> {
        self.read(name, |value| id_text(format_args!("field {name:?}"), value))
    }
}
