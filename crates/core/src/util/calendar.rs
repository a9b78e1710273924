//! Dates and times as text (ISO 8601, RFC 3339).

use std::time::SystemTime;

use chrono::{DateTime, NaiveDate, Utc};

/// The time in UTC, in whole seconds. Times before 1970 become 1970.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    moment(i64::try_from(since.as_secs()).unwrap_or(i64::MAX), 1, true)
}

/// The time `count` units after 1970, of which a second has `parts`. One beyond chrono's years, about 262,000 before and
/// after, is the nearest that it has.
pub fn moment(count: i64, parts: u32, utc: bool) -> String {
    let part = u32::try_from(count.rem_euclid(parts.into())).expect("it is below the parts");
    let time = DateTime::from_timestamp(count.div_euclid(parts.into()), part * (1_000_000_000 / parts));
    let nearest = if count < 0 { DateTime::<Utc>::MIN_UTC } else { DateTime::<Utc>::MAX_UTC };
    // A format of its own would be read for each line of the log.
    let text = format!("{:?}", time.unwrap_or(nearest).naive_utc());
    let text = if text.contains('.') { text.trim_end_matches('0') } else { &text };
    format!("{text}{}", if utc { "Z" } else { "" })
}

/// The date `days` days after 1970, or the nearest as in [`moment`].
pub fn date(days: i64) -> String {
    let nearest = if days < 0 { NaiveDate::MIN } else { NaiveDate::MAX };
    i32::try_from(days).ok().and_then(NaiveDate::from_epoch_days).unwrap_or(nearest).to_string()
}

/// Milliseconds after 1970 of a time in RFC 3339, such as `2026-11-21T14:34:00+01:00`.
pub fn parse_moment(text: &str) -> Option<i64> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_seconds_are_written() {
        assert_eq!(moment(0, 1_000, true), "1970-01-01T00:00:00Z");
        assert_eq!(moment(50, 1, false), "1970-01-01T00:00:50");
        assert_eq!(moment(-1, 1_000, false), "1969-12-31T23:59:59.999");
        assert_eq!(moment(1_795_268_096_500_000, 1_000_000, true), "2026-11-21T13:34:56.5Z");
        for parts in [1_000, 1_000_000, 1_000_000_000] {
            for count in [i64::MIN, i64::MAX] {
                assert!(moment(count, parts, true).ends_with('Z'), "the most distant times have a text");
            }
        }
    }
}
