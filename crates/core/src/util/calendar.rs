//! Dates and times as text (ISO 8601, RFC 3339).

use std::time::SystemTime;

/// The time in UTC, in whole seconds. Times before 1970 become 1970.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    moment(i64::try_from(since.as_secs()).unwrap_or(i64::MAX), 1, true)
}

/// The time `count` units after 1970, of which a second has `parts`.
pub fn moment(count: i64, parts: u32, utc: bool) -> String {
    let seconds = count.div_euclid(parts.into());
    let part = count.rem_euclid(parts.into());
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let digits = parts.ilog10() as usize;
    let part = if part == 0 { String::new() } else { format!(".{part:0digits$}") };
    let zone = if utc { "Z" } else { "" };
    format!("{}T{hour:02}:{minute:02}:{second:02}{}{zone}", date(day), part.trim_end_matches('0'))
}

/// The date `days` days after 1970, by Howard Hinnant's `civil_from_days`.
pub fn date(days: i64) -> String {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (0, month + 3) } else { (1, month - 9) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year_of_era + year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        for (days, written) in
            [(0, "1970-01-01"), (-1, "1969-12-31"), (11_016, "2000-02-29"), (20_778, "2026-11-21")]
        {
            assert_eq!(date(days), written);
        }
    }

    #[test]
    fn times_are_in_whole_seconds() {
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1_795_268_096_900);
        assert_eq!(rfc3339(time), "2026-11-21T13:34:56Z");
        assert_eq!(
            rfc3339(SystemTime::UNIX_EPOCH - std::time::Duration::from_secs(9)),
            "1970-01-01T00:00:00Z"
        );
    }

    #[test]
    fn fractions_of_seconds_are_written() {
        assert_eq!(moment(0, 1_000, true), "1970-01-01T00:00:00Z");
        assert_eq!(moment(-1, 1_000, false), "1969-12-31T23:59:59.999");
        assert_eq!(moment(1_795_268_096_500_000, 1_000_000, true), "2026-11-21T13:34:56.5Z");
        for parts in [1_000, 1_000_000, 1_000_000_000] {
            for count in [i64::MIN, i64::MAX] {
                assert!(moment(count, parts, true).ends_with('Z'), "the most distant times have a text");
            }
        }
    }
}
