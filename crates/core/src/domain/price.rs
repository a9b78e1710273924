//! Prices as shops write them.

use serde_json::Value;

/// The least number with more than twelve digits: sums of smaller prices are exact to the cent.
const TOO_MUCH: f64 = 1e12;
const EXPECTED: &str = "a price is a number of 0 or more with at most 12 digits before the decimals, or a text such as 64.55, 64,55 or 1.299,00 without a sign or a \
     currency";

/// Reads a price from JSON: a number, or a text that [`parse_price`] reads.
pub fn read_price(value: &Value) -> Result<f64, String> {
    let price = match value {
        Value::Number(number) => number.as_f64().filter(|price| (0.0..TOO_MUCH).contains(price)),
        Value::String(text) => return parse_price(text),
        _ => None,
    };
    price.ok_or_else(|| format!("{EXPECTED}; found {value}"))
}

/// Reads a price from a text: digits, with `.` or `,` before the decimals, and a dot, comma, space or apostrophe
/// between groups of three digits. A single `.` or `,` that may be either is refused: `1.299` and `1,299`.
pub fn parse_price(text: &str) -> Result<f64, String> {
    if is_ambiguous_price(text) {
        let (text, digits) = (text.trim(), text.trim().replace(['.', ','], ""));
        return Err(format!("the price {text:?} can mean {digits} or {text}0: write one of these"));
    }
    digits(text.trim())
        .and_then(|digits| digits.parse().ok())
        .filter(|price: &f64| *price < TOO_MUCH)
        .ok_or_else(|| format!("{EXPECTED}; found {text:?}"))
}

/// Reads a number that is written as [`parse_price`] reads prices, and may be negative. `None` if it is something else.
pub fn parse_decimal(text: &str) -> Option<f64> {
    match text.strip_prefix('-') {
        Some(positive) => parse_decimal(positive).map(|number| -number),
        None => digits(text)?.parse().ok(),
    }
}

/// Whether the text is one to three digits, a dot or comma, and three digits: a thousand in one country, decimals in
/// another.
pub fn is_ambiguous_price(text: &str) -> bool {
    let Some((whole, rest)) = text.trim().split_once(['.', ',']) else { return false };
    (1..=3).contains(&whole.len())
        && !whole.starts_with('0')
        && rest.len() == 3
        && [whole, rest].into_iter().all(is_digits)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The price with a decimal point and without groups.
fn digits(text: &str) -> Option<String> {
    // A sign that appears twice separates groups.
    let decimal = text.rfind(['.', ',']).filter(|at| text.find(&text[*at..=*at]) == Some(*at));
    let (whole, decimals) = match decimal {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, "0"),
    };
    let group = whole.chars().find(|c| !c.is_ascii_digit());
    let whole = match group {
        None => whole.to_owned(),
        // Also the narrow spaces that programs write.
        Some(group) if matches!(group, '.' | ',' | '\'' | '’') || group.is_whitespace() => {
            let (first, rest) = whole.split_once(group)?;
            let grouped = (1..=3).contains(&first.len()) && rest.split(group).all(|digits| digits.len() == 3);
            grouped.then(|| whole.replace(group, ""))?
        }
        Some(_) => return None,
    };
    (is_digits(&whole) && is_digits(decimals)).then(|| format!("{whole}.{decimals}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_price_is_read_by_one_rule() {
        for (price, value) in [
            (json!(0), 0.0),
            (json!(64.55), 64.55),
            (json!("64,55"), 64.55),
            (json!(" 64.5 "), 64.5),
            (json!("1299"), 1299.0),
            (json!("1.299,00"), 1299.0),
            (json!("1,299.00"), 1299.0),
            (json!("1 299,00"), 1299.0),
            (json!("1\u{202f}299"), 1299.0),
            (json!("1'299.50"), 1299.5),
            (json!("12.345.678,9"), 12_345_678.9),
            (json!("1,299,000"), 1_299_000.0),
            (json!("1.2990"), 1.299),
            (json!("0,299"), 0.299),
            (json!("1299,000"), 1299.0),
            (json!(999_999_999_999.99), 999_999_999_999.99),
        ] {
            assert_eq!(read_price(&price), Ok(value), "{price}");
        }
        let texts = "; ;€12;12 EUR;NaN;inf;-5;+5;1e3;.5;5,;12.34.56;1,29,900;1 299.000.5;1.2,3.4;1 29;1000000000000;1٣";
        let other = [json!(-5), json!(true), json!([1]), json!("9".repeat(400)), json!(1e12), json!(1.7e308)];
        for wrong in texts.split(';').map(Value::from).chain(other) {
            let reason = read_price(&wrong).unwrap_err();
            assert!(reason.contains("a price is a number of 0 or more"), "{wrong}: {reason}");
        }
        for ambiguous in ["1.299", "1,299", "129,900"] {
            assert!(parse_price(ambiguous).unwrap_err().contains("write one of these"), "{ambiguous}");
        }
        assert_eq!(
            parse_price("1,299").unwrap_err(),
            "the price \"1,299\" can mean 1299 or 1,2990: write one of these"
        );
    }
}
