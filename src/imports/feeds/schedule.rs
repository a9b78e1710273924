//! When a feed is fetched.

use std::time::Duration;

use atelier_core::domain::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::platform::fault::Fault;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;
/// The most times of a day.
const MOST: usize = 24;

/// When a feed is fetched: `every` so often, or `at` times of the day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object such as {\"every\": \"6h\"}")]
#[schema(as = FeedSchedule)]
pub struct Schedule {
    /// An interval of minutes, hours or days from `5m` to `30d`, first after the feed was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "6h", pattern = "^[1-9][0-9]{0,4}[mhd]$")]
    pub every: Option<String>,
    /// Times of day in UTC.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!(["04:30", "16:30"]), max_items = 24)]
    pub at: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Times {
    Every(Duration),
    /// Milliseconds of the day.
    At(Vec<i64>),
}

impl Schedule {
    pub fn read(&self) -> Result<Times, Fault> {
        match (&self.every, &self.at[..]) {
            (Some(every), []) => interval(every).map(Times::Every).ok_or_else(|| {
                let detail =
                    format!("expected an interval from 5m to 30d, such as 30m, 6h or 1d, found {every:?}");
                Fault::new("schedule.every", detail)
            }),
            (None, [_, ..]) if self.at.len() <= MOST => {
                let times = self.at.iter().enumerate().map(|(index, text)| {
                    time_of_day(text).ok_or_else(|| {
                        let detail = format!("expected a time of day in UTC, such as 04:30, found {text:?}");
                        Fault {
                            field: crate::platform::fault::Field::from("schedule.at").item(&index),
                            detail,
                        }
                    })
                });
                times.collect::<Result<_, _>>().map(Times::At)
            }
            (None, [_, ..]) => Err(Fault::new("schedule.at", format!("expected at most {MOST} times"))),
            _ => Err(Fault::new("schedule", "expected either `every` or `at`; for no schedule leave it out")),
        }
    }
}

impl Times {
    /// The first time after this moment. Times that were missed are not made up for one by one.
    pub fn next(&self, now: Timestamp) -> Timestamp {
        match self {
            Self::Every(interval) => now + *interval,
            Self::At(times) => {
                let midnight = now.millis() - now.millis().rem_euclid(DAY);
                let days = [midnight, midnight + DAY];
                let moments = days.into_iter().flat_map(|day| times.iter().map(move |time| day + time));
                let next = moments.filter(|moment| *moment > now.millis()).min();
                Timestamp::from_millis(next.expect("tomorrow has the times, too"))
            }
        }
    }
}

fn interval(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    let seconds = digits(number, 5)? * unit;
    (5 * 60..=30 * 86_400).contains(&seconds).then(|| Duration::from_secs(seconds))
}

fn time_of_day(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':').filter(|_| text.len() == "04:30".len())?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours < 24 && minutes < 60).then(|| (hours * 60 + minutes).cast_signed() * MINUTE)
}

fn digits(text: &str, most: usize) -> Option<u64> {
    let fits = text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read() {
        let every = |text: &str| Schedule { every: Some(text.to_owned()), at: vec![] }.read().ok();
        for (text, minutes) in [("5m", 5), ("90m", 90), ("6h", 360), ("1d", 1440), ("30d", 43_200)] {
            assert_eq!(every(text), Some(Times::Every(Duration::from_mins(minutes))), "{text}");
        }
        for wrong in
            ["", "m", "4m", "31d", "721h", "1", "1w", "-5m", "+5m", "5 m", "99999999999999999999m", "5ä"]
        {
            assert_eq!(every(wrong), None, "{wrong}");
        }
        let at =
            |texts: &[&str]| Schedule { every: None, at: texts.iter().map(ToString::to_string).collect() };
        assert_eq!(at(&["04:30", "00:00"]).read(), Ok(Times::At(vec![270 * MINUTE, 0])));
        for wrong in ["24:00", "04:60", "4:30", "004:3", "04:5", "4", "04:30:00", "", "-1:00", "4:30am"] {
            let fault = at(&["04:30", wrong]).read().unwrap_err();
            assert_eq!(fault.field.to_string(), "schedule.at.1", "{wrong}");
        }
        let both = Schedule { every: Some("1d".to_owned()), ..at(&["04:30"]) };
        assert!(
            both.read().is_err() && Schedule::default().read().is_err() && at(&["1:00"; 25]).read().is_err()
        );
    }

    #[test]
    fn the_next_time_is_after_now_and_missed_ones_count_once() {
        // 2026-11-26T00:00:00Z
        let midnight = 20_783 * DAY;
        let at = |minutes: i64| Timestamp::from_millis(midnight + minutes * MINUTE);
        let times = Times::At(vec![990 * MINUTE, 270 * MINUTE]);
        for (now, next) in [(0, 270), (269, 270), (270, 990), (990, 1440 + 270), (1439, 1440 + 270)] {
            assert_eq!(times.next(at(now)), at(next), "{now}");
        }
        assert_eq!(Times::Every(Duration::from_mins(30)).next(at(7)), at(37));
    }
}
