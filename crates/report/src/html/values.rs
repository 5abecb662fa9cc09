//! Numbers of the charts.

use serde_json::{Value, json};

/// Four significant digits; null for what is not a number.
pub(super) fn number(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    let short: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    if short.fract() == 0.0 && short.abs() < 9e15 { json!(short as i64) } else { json!(short) }
}

pub(super) fn optional(value: Option<f64>) -> Value {
    value.map_or(Value::Null, number)
}

pub(super) fn ratio(numerator: f64, denominator: f64) -> Value {
    if denominator > 0.0 { number(numerator / denominator) } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits_and_no_useless_fraction() {
        assert_eq!(number(123_456.0).to_string(), "123500");
        assert_eq!(number(1.000_04).to_string(), "1");
        assert_eq!(number(0.123_456).to_string(), "0.1235");
        assert_eq!(number(f64::INFINITY), Value::Null);
        assert_eq!(number(f64::NAN), Value::Null);
    }
}
