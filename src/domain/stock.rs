//! Whether an article is in stock, as shops write it.

use serde_json::Value;

const IN_STOCK: [&str; 5] = ["true", "yes", "ja", "oui", "1"];
const OUT_OF_STOCK: [&str; 5] = ["false", "no", "nein", "non", "0"];

/// Reads a boolean, 0 or 1, or a word of the two lists in any case.
///
/// # Errors
/// What was found and what was expected.
pub(super) fn read_stock(value: &Value) -> Result<bool, String> {
    let word = match value {
        Value::Bool(in_stock) => return Ok(*in_stock),
        Value::Number(number) if number.as_f64() == Some(1.0) => return Ok(true),
        Value::Number(number) if number.as_f64() == Some(0.0) => return Ok(false),
        Value::String(word) => word.trim().to_lowercase(),
        _ => String::new(),
    };
    match word.as_str() {
        word if IN_STOCK.contains(&word) => Ok(true),
        word if OUT_OF_STOCK.contains(&word) => Ok(false),
        _ => Err(format!(
            "stock is true or false, 0 or 1, or one of {} and {}; found {value}",
            IN_STOCK[..4].join(", "),
            OUT_OF_STOCK[..4].join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn stock_is_true_or_false_or_a_word_for_it() {
        for yes in [json!(true), json!(1), json!(1.0), json!("true"), json!(" JA "), json!("1")] {
            assert_eq!(read_stock(&yes), Ok(true), "{yes}");
        }
        for no in [json!(false), json!(0), json!(-0.0), json!("False"), json!("nein"), json!("0")] {
            assert_eq!(read_stock(&no), Ok(false), "{no}");
        }
        for wrong in [json!(3), json!(-1), json!(""), json!("vielleicht"), json!([true]), json!({})] {
            assert!(read_stock(&wrong).unwrap_err().contains("stock is true or false"), "{wrong}");
        }
    }
}
