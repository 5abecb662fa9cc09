//! Numbers out of bytes: no allocation, no locale, no float rounding where the format gives decimals.

use crate::error::shown;
use nandscape_core::TraceOp;

/// A whole number, with a message naming the field on failure.
#[inline]
pub(crate) fn whole(bytes: &[u8], field: &str) -> Result<u64, String> {
    let mut value = 0u64;
    if bytes.is_empty() || bytes.len() > 20 {
        return Err(not_whole(bytes, field));
    }
    if bytes.len() <= 18 {
        for &byte in bytes {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return Err(not_whole(bytes, field));
            }
            value = value * 10 + u64::from(digit);
        }
        return Ok(value);
    }
    for &byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        value = match (digit <= 9, value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit)))) {
            (true, Some(value)) => value,
            _ => return Err(not_whole(bytes, field)),
        };
    }
    Ok(value)
}

#[cold]
fn not_whole(bytes: &[u8], field: &str) -> String {
    format!("{field} is {}: expected a whole number below 2^64", shown(bytes))
}

/// A decimal number times `unit` (a power of ten), such as seconds into nanoseconds. Digits beyond the unit
/// are dropped.
#[inline]
pub(crate) fn decimal(bytes: &[u8], unit: u64, field: &str) -> Result<u64, String> {
    let error = || format!("{field} is {}: expected a number such as 12 or 12.5", shown(bytes));
    let point = bytes.iter().position(|&b| b == b'.');
    let (integer, fraction) = match point {
        None => (bytes, &bytes[..0]),
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
    };
    if integer.is_empty() && fraction.is_empty() || fraction.len() > 18 {
        return Err(error());
    }
    let mut value = if integer.is_empty() { 0 } else { whole(integer, field).map_err(|_| error())? };
    value = value.checked_mul(unit).ok_or_else(|| format!("{field} is {}: too large", shown(bytes)))?;
    let mut scale = unit;
    let mut part = 0u64;
    for &byte in fraction {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(error());
        }
        scale /= 10;
        part += u64::from(digit) * scale;
    }
    value.checked_add(part).ok_or_else(error)
}

pub(crate) fn whole32(bytes: &[u8], field: &str) -> Result<u32, String> {
    u32::try_from(whole(bytes, field)?)
        .map_err(|_| format!("{field} is {}: expected a number below 2^32", shown(bytes)))
}

#[inline]
pub(crate) fn letter(bytes: &[u8], field: &str) -> Result<TraceOp, String> {
    match bytes {
        b"R" => Ok(TraceOp::Read),
        b"W" => Ok(TraceOp::Write),
        _ => Err(format!("{field} is {}: expected R or W", shown(bytes))),
    }
}

#[inline]
pub(crate) fn digit(bytes: &[u8], field: &str) -> Result<TraceOp, String> {
    match bytes {
        b"0" => Ok(TraceOp::Read),
        b"1" => Ok(TraceOp::Write),
        _ => Err(format!("{field} is {}: expected 0 (read) or 1 (write)", shown(bytes))),
    }
}

#[inline]
pub(crate) fn sectors(bytes: &[u8], field: &str) -> Result<u64, String> {
    scaled(whole(bytes, field)?, 512, field)
}

/// Bytes from a number of units, refusing what does not fit.
#[inline]
pub(crate) fn scaled(count: u64, unit: u64, field: &str) -> Result<u64, String> {
    count.checked_mul(unit).ok_or_else(|| format!("{field} {count} x {unit} B does not fit 64 bits"))
}

/// Splits at one separator; `N` fields are expected and further ones are kept in the last one's place unread.
#[inline]
pub(crate) fn split<const N: usize>(line: &[u8], separator: u8) -> Option<[&[u8]; N]> {
    let mut out = [&line[..0]; N];
    let mut rest = line;
    for (index, slot) in out.iter_mut().enumerate() {
        match rest.iter().position(|&b| b == separator) {
            Some(at) => {
                *slot = &rest[..at];
                rest = &rest[at + 1..];
            }
            None if index + 1 == N => *slot = rest,
            None => return None,
        }
    }
    Some(out)
}

/// The columns of a line, as [`split`] gives them; `names` are theirs, for the error.
#[inline]
pub(crate) fn columns<'a, const N: usize>(line: &'a [u8], names: &str) -> Result<[&'a [u8]; N], String> {
    split(line, b',').ok_or_else(|| format!("{}: expected {N} columns, {names}", shown(line)))
}

pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}

/// Fields between runs of blanks, at most `N`; returns how many there were (counting those beyond `N`).
#[inline]
pub(crate) fn words<'a, const N: usize>(line: &'a [u8]) -> ([&'a [u8]; N], usize) {
    let mut out: [&'a [u8]; N] = [&line[..0]; N];
    let mut count = 0;
    let mut at = 0;
    while at < line.len() {
        if matches!(line[at], b' ' | b'\t') {
            at += 1;
            continue;
        }
        let start = at;
        while at < line.len() && !matches!(line[at], b' ' | b'\t') {
            at += 1;
        }
        if count < N {
            out[count] = &line[start..at];
        }
        count += 1;
    }
    (out, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_up_to_the_last() {
        assert_eq!(whole(b"18446744073709551615", "x"), Ok(u64::MAX));
        assert_eq!(whole(b"0", "x"), Ok(0));
        for bad in [&b""[..], b"18446744073709551616", b"-1", b"1e3", b" 1", b"99999999999999999999", b"1\0"]
        {
            let message = whole(bad, "offset").unwrap_err();
            assert!(message.starts_with("offset is '"), "{message}");
        }
    }

    #[test]
    fn decimals_keep_every_digit_of_the_unit() {
        assert_eq!(decimal(b"1456095145.133076000", 1_000_000_000, "t"), Ok(1_456_095_145_133_076_000));
        assert_eq!(decimal(b"5265.313", 1_000_000, "t"), Ok(5_265_313_000));
        assert_eq!(decimal(b".5", 10, "t"), Ok(5));
        assert_eq!(decimal(b"7", 1000, "t"), Ok(7000));
        assert_eq!(decimal(b"0.0009", 1000, "t"), Ok(0));
        for bad in [&b""[..], b".", b"1.2.3", b"1,5", b"nan", b"18446744073709551615.0"] {
            assert!(decimal(bad, 1000, "t").is_err(), "{bad:?}");
        }
    }

    #[test]
    fn splitting() {
        assert_eq!(split::<2>(b"a,b,c", b','), Some([&b"a"[..], b"b"]));
        assert_eq!(split::<3>(b"a,b", b','), None);
        let (fields, count) = words::<2>(b"  1 \t 2 3");
        assert_eq!((fields, count), ([&b"1"[..], b"2"], 3));
    }
}
