//! How often suggestions are accepted, by day, method, arm, type of article, place in the outfit or a feature of the customers.

use std::{collections::BTreeMap, fmt, ops::Sub as _, str::FromStr};

use atelier_core::{
    domain::{Feature, Schema, Timestamp},
    util::{calendar, notation::Notation},
};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::sql::acceptance::{CountedBy, CountedOnly, Outcomes, Sales, day_of};
use crate::platform::{
    db::{Store, StoreError},
    fault::{Fault, ServiceError},
};

/// Two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;

pub const USUAL_DAYS: u32 = 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    Counted(CountedBy),
    /// A feature of the customers, as their profiles have it now.
    Feature(String),
}

/// The address of a feature of the customers: `customer.age`.
const FEATURE: &str = "customer.";

impl By {
    pub const DAY: Self = Self::Counted(CountedBy::Day);

    /// The name of its values, for people.
    pub fn label(&self, schema: &Schema) -> String {
        match self {
            Self::Counted(by) => by.label().into(),
            Self::Feature(name) => {
                schema.feature(name).map_or_else(|| name.clone(), |known| known.label.clone())
            }
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counted(by) => f.write_str(by.as_str()),
            Self::Feature(name) => write!(f, "{FEATURE}{name}"),
        }
    }
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix(FEATURE) {
            return Ok(Self::Feature(name.to_owned()));
        }
        let known = CountedBy::ALL.into_iter().find(|by| by.as_str() == text);
        known.map(Self::Counted).ok_or_else(|| {
            let words = CountedBy::ALL.map(CountedBy::as_str).join(", ");
            format!("expected {words} or {FEATURE} with a feature’s name, found {text:?}")
        })
    }
}

/// Outcomes of suggestions. Repeated reports count once.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Outcomes)]
pub(crate) struct OutcomesBody {
    /// Suggestions that were shown.
    shown: u64,
    /// Without those that came back.
    accepted: u64,
    /// Suggestions that were rejected.
    rejected: u64,
    #[serde(flatten)]
    sold: Sales,
    /// Purchases of events without a ticket, of articles that the customer was shown shortly before. Not part of the others.
    in_window: Sales,
    /// The share of shown suggestions that were accepted; null if none was shown.
    acceptance: Option<Share>,
}

impl From<Outcomes> for OutcomesBody {
    fn from(Outcomes { shown, accepted, rejected, sold, in_window }: Outcomes) -> Self {
        let acceptance = share(accepted, shown);
        Self { shown, accepted, rejected, sold, in_window, acceptance }
    }
}

/// Outcomes by value, and of all suggestions together. A customer with several values of a feature counts for each.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Acceptance {
    pub rows: Vec<(String, Outcomes)>,
    pub total: Outcomes,
}

/// The outcomes of the suggestions that were shown on the last `days` days, today among them.
pub async fn acceptance(
    store: &Store,
    schema: &Schema,
    by: &By,
    only: &CountedOnly,
    days: u32,
    now: Timestamp,
) -> Result<Acceptance, ServiceError> {
    let since = day_of(now) + 1 - i64::from(days);
    let column = match by {
        By::Counted(column) => *column,
        By::Feature(name) => {
            let feature = schema.feature(name);
            let feature =
                feature.ok_or_else(|| Fault::new("by", format!("the schema has no feature {name:?}")))?;
            return Ok(by_feature(store, feature, only, since).await?);
        }
    };
    let mut rows = store.feedback().acceptance(column, since, only).await?;
    let mut total = Outcomes::default();
    for (value, outcomes) in &mut rows {
        total += *outcomes;
        *value = describe(column, std::mem::take(value));
    }
    match column {
        CountedBy::Day => rows.sort_by(|one, other| one.0.cmp(&other.0)),
        CountedBy::Slot => rows.sort_by_key(|(slot, _)| slot.parse().unwrap_or(u32::MAX)),
        _ => rows.sort_by_key(|(_, outcomes)| std::cmp::Reverse(outcomes.shown)),
    }
    Ok(Acceptance { rows, total })
}

pub(super) fn describe(by: CountedBy, value: String) -> String {
    match (by, value.as_str()) {
        (CountedBy::Day, _) => value.parse().map_or(value, calendar::date),
        (CountedBy::Arm, "") => "no experiment".into(),
        (CountedBy::ArticleType, "") => "not in the catalogue".into(),
        (CountedBy::IsNew, "0") => "known".into(),
        (CountedBy::IsNew, "1") => "new".into(),
        (CountedBy::IsNew, _) => "not recorded".into(),
        (CountedBy::Source, "pages") => "pages without a customer".into(),
        (CountedBy::Source, _) => "the shop".into(),
        _ => value,
    }
}

async fn by_feature(
    store: &Store,
    feature: &Feature,
    only: &CountedOnly,
    since: i64,
) -> Result<Acceptance, StoreError> {
    let mut values: BTreeMap<u32, Outcomes> = BTreeMap::new();
    let mut known = Outcomes::default();
    for (value, outcomes) in store.feedback().acceptance_by_feature(since, &feature.name, only).await? {
        known += outcomes;
        for row in feature.rows_of(value.as_ref()) {
            *values.entry(row).or_default() += outcomes;
        }
    }
    let mut total = Outcomes::default();
    for (_, outcomes) in store.feedback().acceptance(CountedBy::Release, since, only).await? {
        total += outcomes;
    }
    let mut rows: Vec<(String, Outcomes)> =
        values.into_iter().map(|(row, outcomes)| (feature.row_name(row), outcomes)).collect();
    let unknown = total.with(known, u64::saturating_sub, i64::sub);
    if unknown.shown > 0 {
        rows.push(("unknown customer".into(), unknown));
    }
    Ok(Acceptance { rows, total })
}

/// Thousandths of the shop's currency as people and callers see them.
pub fn money(thousandths: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "sums are far below 2^53")]
    let value = thousandths as f64;
    value / 1000.0
}

/// The same on a page. Feedback tells no prices, so pieces that were kept for nothing have no known revenue.
pub(crate) fn revenue_in_words(thousandths: i64, has_kept: bool, notation: &Notation) -> String {
    if thousandths == 0 && has_kept { "–".to_owned() } else { notation.price(money(thousandths), None) }
}

/// The same in an answer.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
pub(super) fn write_money<S: Serializer>(thousandths: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(money(*thousandths))
}

/// A share with its 95 % confidence interval (Wilson's).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Share {
    /// The share, from 0 to 1.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Share {
    /// `25.0 % (4.6 to 69.9)`
    pub(crate) fn in_words(self) -> String {
        let [value, low, high] = [self.value, self.low, self.high].map(|share| 100.0 * share);
        format!("{value:.1} % ({low:.1} to {high:.1})")
    }
}

/// Wilson's score interval: unlike the usual one it stays within 0 and 1, and says something where nothing
/// or everything was accepted.
pub fn share(hits: u64, of: u64) -> Option<Share> {
    if of == 0 || hits > of {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let (hits, of) = (hits as f64, of as f64);
    let value = hits / of;
    let spread = 1.0 + Z * Z / of;
    let centre = (value + Z * Z / (2.0 * of)) / spread;
    let half = Z / spread * (value * (1.0 - value) / of + Z * Z / (4.0 * of * of)).sqrt();
    // Rounding may step over what the formula gives exactly.
    Some(Share { value, low: (centre - half).clamp(0.0, value), high: (centre + half).clamp(value, 1.0) })
}

/// Outcomes of a release's suggestions of articles that it was trained with, and of the others; without those of which that is not
/// known.
pub(crate) async fn of_known_and_new(
    store: &Store,
    release: &str,
) -> Result<(Outcomes, Outcomes), StoreError> {
    let only = CountedOnly { release: Some(release.to_owned()), ..CountedOnly::default() };
    let counted = store.feedback().acceptance(CountedBy::IsNew, 0, &only).await?;
    let of = |is_new: &str| {
        counted.iter().find(|(value, _)| value == is_new).map_or_else(Outcomes::default, |(_, found)| *found)
    };
    Ok((of("0"), of("1")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bounds are the roots x of (p − x)² = z²·x(1 − x)/n, solved as a quadratic in forty decimal digits.
    #[test]
    fn the_interval_is_wilsons() {
        for (hits, of, low, high) in [
            (10, 100, 0.055_229_137_060_675, 0.174_365_661_504_913),
            (0, 10, 0.0, 0.277_532_799_862_889),
            (10, 10, 0.722_467_200_137_111, 1.0),
        ] {
            let share = share(hits, of).unwrap();
            assert!((share.low - low).abs() < 1e-12 && (share.high - high).abs() < 1e-12, "{share:?}");
        }
        assert_eq!((share(0, 0), share(2, 1)), (None, None));
    }
}
