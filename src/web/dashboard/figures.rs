//! Numbers as pages write them.

/// `0.4 %`: small ones with as many digits as say something.
pub(super) fn percent(share: f64) -> String {
    let hundredths = 100.0 * share;
    if hundredths > 0.0 && hundredths < 0.001 {
        return "<0.001 %".into();
    }
    let digits = match hundredths {
        large if large >= 10.0 => 0,
        small if small >= 1.0 => 1,
        smaller if smaller >= 0.1 => 2,
        _ => 3,
    };
    format!("{hundredths:.digits$} %")
}

pub(super) fn times(factor: f64) -> String {
    if factor >= 10.0 { format!("×{factor:.0}") } else { format!("×{factor:.2}") }
}

/// `546,432`
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut written = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_that_say_something() {
        assert_eq!([0.43, 0.043, 0.0043, 0.00043].map(percent), ["43 %", "4.3 %", "0.43 %", "0.043 %"]);
        assert_eq!([4e-6, 0.0].map(percent), ["<0.001 %", "0.000 %"]);
        assert_eq!([546_432, 12, 1_000].map(thousands), ["546,432", "12", "1,000"]);
        assert_eq!([12.3, 1.234, 0.5].map(times), ["×12", "×1.23", "×0.50"]);
    }
}
