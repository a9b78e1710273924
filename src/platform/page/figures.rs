//! Numbers and times in the pages' notation, and files of numbers.

use atelier_core::{
    domain::Timestamp,
    util::{calendar, notation::group_digits},
};
use axum::{
    http::header,
    response::{IntoResponse, Response},
};

pub(crate) fn csv_file(name: &str, text: String) -> Response {
    let disposition = format!("attachment; filename=\"{}\"", name.replace(['"', '\\'], "_"));
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    (headers, text).into_response()
}

/// A number in a file: up to six decimals after a point, and a fraction where pages have percent.
pub(crate) fn number(number: f64) -> String {
    let written = format!("{number:.6}");
    let short = written.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// `×1.40`. Beyond ×20 a factor only says that it is large.
pub(crate) fn times(factor: f64) -> String {
    match factor {
        large if large > 20.0 => "over ×20".into(),
        small if small < 0.05 => "under ×0.05".into(),
        large if large >= 10.0 => format!("×{large:.0}"),
        other => format!("×{other:.2}"),
    }
}

/// A factor of likelihood in words, in three bands each way.
pub(crate) fn more_likely(factor: f64) -> &'static str {
    match factor {
        much if much >= 3.0 => "much more likely",
        more if more >= 1.5 => "more likely",
        little if little >= 1.0 => "a little more likely",
        little if little > 1.0 / 1.5 => "a little less likely",
        less if less > 1.0 / 3.0 => "less likely",
        _ => "much less likely",
    }
}

/// To the minute, in UTC.
pub(crate) fn moment(at: Timestamp) -> String {
    let written = calendar::moment(at.millis().div_euclid(60_000) * 60, 1, false);
    // The seconds are zero by now.
    written.strip_suffix(":00").unwrap_or(&written).replace('T', " ")
}

/// `546,432`
pub(crate) fn count(number: u64) -> String {
    group_digits(&number.to_string(), ",")
}

/// A count that is stored as a float.
pub(crate) fn rounded(number: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts are small and not negative"
    )]
    count(number.round() as u64)
}

/// In the two largest units: `3 h 12 min`.
pub(crate) fn duration(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a service's life")]
    let seconds = seconds as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_their_significant_digits() {
        assert_eq!([12.3, 1.234, 0.5].map(times), ["×12", "×1.23", "×0.50"]);
        assert_eq!([7449.0, 0.001].map(times), ["over ×20", "under ×0.05"]);
        assert_eq!(
            [3.0, 2.9, 1.1].map(more_likely),
            ["much more likely", "more likely", "a little more likely"]
        );
        let less = ["a little less likely", "less likely", "much less likely"];
        assert_eq!([0.9, 0.5, 0.3].map(more_likely), less);
    }

    #[test]
    fn files_have_one_notation_of_numbers() {
        let numbers = [0.25, 3.0, 1.0 / 3.0, -0.000_000_1, 12_345.6, -2.5];
        assert_eq!(numbers.map(number), ["0.25", "3", "0.333333", "0", "12345.6", "-2.5"]);
    }

    #[test]
    fn moments_are_written_to_the_minute() {
        assert_eq!(moment(Timestamp::from_millis(1_795_268_096_900)), "2026-11-21 13:34");
        assert_eq!(moment(Timestamp::from_millis(0)), "1970-01-01 00:00");
    }

    #[test]
    fn durations_have_two_units_and_thousands_are_separated() {
        let durations = [7.9, 60.0, 11_520.0, 200_000.0].map(duration);
        assert_eq!(durations, ["7 s", "1 min 0 s", "3 h 12 min", "2 d 7 h"]);
        assert_eq!([0, 999, 1_500, 12_345_678].map(count), ["0", "999", "1,500", "12,345,678"]);
        assert_eq!(rounded(1_499.6), "1,500");
    }
}
