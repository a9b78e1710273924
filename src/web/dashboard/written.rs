//! Numbers and moments as pages write them.

use crate::{calendar, store::Timestamp};

/// To the minute, in UTC, which the page says once.
pub(super) fn moment(at: Timestamp) -> String {
    let written = calendar::moment(at.millis().div_euclid(60_000) * 60, 1, false);
    // Seconds are nought by then.
    written.strip_suffix(":00").unwrap_or(&written).replace('T', " ")
}

/// With a space between thousands, as in `1 500`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut written = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            written.push('\u{202f}');
        }
        written.push(digit);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_to_the_minute() {
        assert_eq!(moment(Timestamp::from_millis(1_795_268_096_900)), "2026-11-21 13:34");
        assert_eq!(moment(Timestamp::from_millis(0)), "1970-01-01 00:00");
    }

    #[test]
    fn thousands_stand_apart() {
        for (number, written) in
            [(0, "0"), (999, "999"), (1_500, "1\u{202f}500"), (12_345_678, "12\u{202f}345\u{202f}678")]
        {
            assert_eq!(count(number), written);
        }
    }
}
