//! Sizes, times and counts as people type them, after fio: bare `k/M/G/T` and `KiB/MiB/GiB/TiB` are powers of
//! two, `kB/MB/GB/TB` powers of ten; times take `ns/us/ms/s`; counts take decimal `k/M/G`.

/// Text that is not a quantity. The message says what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a {what}: expected {expected}")]
pub struct UnitError {
    /// What was typed.
    pub text: String,
    /// size, time, count, rate or percentage.
    pub what: &'static str,
    /// What would do.
    pub expected: &'static str,
}

const SIZE_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
];

/// Splits `12.5us` into number and lower-case unit.
fn split(text: &str) -> (&str, String) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    (&text[..end], text[end..].trim().to_ascii_lowercase())
}

/// Multiplies a decimal number by a unit without rounding integers. `None` if it is not a number or does not
/// fit.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let digits: String = number.chars().filter(|c| *c != '_').collect();
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || fraction.len() > 18 {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut result = whole.checked_mul(unit)?;
    if !fraction.is_empty() {
        let scale = 10u128.pow(fraction.len() as u32);
        let part: u128 = fraction.parse().ok()?;
        result = result.checked_add(u64::try_from(part * u128::from(unit) / scale).ok()?)?;
    }
    Some(result)
}

fn parse(
    text: &str,
    what: &'static str,
    expected: &'static str,
    units: &[(&str, u64)],
) -> Result<u64, UnitError> {
    let (number, unit) = split(text);
    units
        .iter()
        .find(|(name, _)| *name == unit)
        .and_then(|(_, scale)| scaled(number, *scale))
        .ok_or_else(|| UnitError { text: text.to_owned(), what, expected })
}

/// Bytes: `4k` and `4KiB` are 4096, `4kB` is 4000.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    parse(text, "size", "a number of bytes such as 4096, 4k, 16KiB, 1GiB or 800MB", SIZE_UNITS)
}

/// Nanoseconds: `50us`, `1.5ms`, `2s`; a unit is required.
pub fn parse_time_ns(text: &str) -> Result<u64, UnitError> {
    const UNITS: &[(&str, u64)] =
        &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000)];
    parse(text, "time", "a number with ns, us, ms, s or m such as 50us", UNITS)
}

/// Counts: `10M` is ten million.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    const UNITS: &[(&str, u64)] = &[("", 1), ("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000)];
    parse(text, "count", "a number such as 1000, 10k, 5M or 1G (decimal)", UNITS)
}

/// A share: `80%` or `0.8`, between 0 and 1.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    let error = || UnitError {
        text: text.to_owned(),
        what: "share",
        expected: "a percentage such as 80% or a number from 0 to 1",
    };
    let trimmed = text.trim();
    let value = match trimmed.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map_err(|_| error())? / 100.0,
        None => trimmed.parse::<f64>().map_err(|_| error())?,
    };
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(error()) }
}

/// A share where a size may stand as well: `10%`, or a number with a point and no unit such as `0.1`. `None`
/// for any other text.
pub fn share_for_size(text: &str) -> Option<Result<f64, UnitError>> {
    let text = text.trim();
    let is_share = text.ends_with('%') || text.contains('.') && text.parse::<f64>().is_ok();
    is_share.then(|| parse_share(text))
}

/// Bytes for people, with a binary unit: `1.50 GiB`. Exact multiples print without a fraction.
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.2} {}", UNITS[unit])
    }
}

/// Nanoseconds for people: `1.25 ms`.
pub fn format_ns(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.2} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", value / 1e6),
        _ => format!("{:.2} s", value / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_letters_are_binary_and_kb_is_decimal() {
        assert_eq!(parse_size("4k"), Ok(4096));
        assert_eq!(parse_size("4KiB"), Ok(4096));
        assert_eq!(parse_size("4kB"), Ok(4000));
        assert_eq!(parse_size("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_size("800 MB"), Ok(800_000_000));
        assert_eq!(parse_size("7"), Ok(7));
        assert_eq!(parse_count("10M"), Ok(10_000_000));
        assert_eq!(parse_time_ns("50us"), Ok(50_000));
        assert_eq!(parse_time_ns("0.5ms"), Ok(500_000));
        assert_eq!(parse_share("80%"), Ok(0.8));
    }

    #[test]
    fn a_share_is_no_size() {
        for (text, expected) in [("10%", Some(0.1)), (" 0.1", Some(0.1)), ("1.0", Some(1.0)), ("1.5k", None)]
        {
            assert_eq!(share_for_size(text).map(Result::unwrap), expected, "{text}");
        }
        assert_eq!(share_for_size("64MiB"), None);
        assert_eq!(share_for_size("1"), None);
        for text in ["1.5", "101%", "x%"] {
            assert!(share_for_size(text).unwrap().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_quantity_is_refused() {
        for text in ["", "k", "-1", "4q", "1..2", "99999999999999999999", "18446744073709551615k", "1e3"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert!(parse_time_ns("50").is_err());
        assert!(parse_share("120%").is_err());
        assert!(parse_share("nan").is_err());
        let message = parse_size("4q").unwrap_err().to_string();
        assert!(message.contains("'4q'") && message.contains("expected"), "{message}");
    }

    #[test]
    fn quantities_for_people() {
        assert_eq!(format_bytes(1 << 30), "1 GiB");
        assert_eq!(format_bytes(1536), "1.50 KiB");
        assert_eq!(format_ns(1_250_000), "1.25 ms");
    }
}
