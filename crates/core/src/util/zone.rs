//! The time that the shop's clocks show.

use chrono::{DateTime, Duration, LocalResult, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;

/// A time zone of the IANA database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone(Tz);

impl Zone {
    pub fn new(name: &str) -> Result<Self, String> {
        let zone = name.parse().map(Self);
        zone.map_err(|_| format!("expected a time zone such as Europe/Zurich or UTC, found {name:?}"))
    }

    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// A clock's text for milliseconds since 1970: `2026-11-27T09:00`, with seconds unless they are zero.
    pub fn show(self, millis: i64) -> String {
        let time = DateTime::<Utc>::from_timestamp_millis(millis).unwrap_or_default().with_timezone(&self.0);
        let text = time.format("%Y-%m-%dT%H:%M:%S%.f").to_string();
        text.strip_suffix(":00").map_or_else(|| text.clone(), str::to_owned)
    }

    /// When a clock shows this, as [`Zone::show`] writes it: the first time, if it does twice; if it never does because clocks are
    /// put forward, as if they had not been yet.
    pub fn read(self, text: &str) -> Option<i64> {
        let formats = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f"];
        let shown = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())?;
        let time = match self.0.from_local_datetime(&shown) {
            LocalResult::Single(time) | LocalResult::Ambiguous(time, _) => time,
            LocalResult::None => {
                let hour = Duration::hours(1);
                self.0.from_local_datetime(&shown.checked_sub_signed(hour)?).earliest()? + hour
            }
        };
        Some(time.timestamp_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_show_what_they_are_read_from() {
        let zurich = Zone::new("Europe/Zurich").unwrap();
        for (utc, shown) in [
            ("2026-11-27T08:00:00Z", "2026-11-27T09:00"),
            ("2026-07-01T21:59:59Z", "2026-07-01T23:59:59"),
            // Clocks go back from 3:00 to 2:00, so this is the first 2:30.
            ("2026-10-25T00:30:00Z", "2026-10-25T02:30"),
        ] {
            let millis = crate::util::calendar::parse_moment(utc).unwrap();
            assert_eq!(zurich.show(millis), shown);
            assert_eq!(zurich.read(shown), Some(millis), "{shown}");
        }
        // Clocks go forward from 2:00 to 3:00.
        let skipped = zurich.read("2026-03-29T02:30").unwrap();
        assert_eq!(zurich.show(skipped), "2026-03-29T03:30");
        assert_eq!(zurich.read("tomorrow"), None);
        assert_eq!(Zone::new("UTC").unwrap().show(0), "1970-01-01T00:00");
        assert!(Zone::new("Europe/Nowhere").unwrap_err().contains("Europe/Nowhere"));
    }
}
