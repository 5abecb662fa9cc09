//! fio's value syntax: units, percentages, ranges, lists per direction, small sums in parentheses.

/// How unit letters are read (fio's `kb_base`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KbBase {
    /// fio's default, kept for old scripts: `k` and `kB` are 1024, `KiB` is 1000.
    Binary,
    /// `k` and `kB` are 1000, `KiB` is 1024.
    Decimal,
}

/// Text that is not such a value; says what was expected.
pub type Expected = String;

const INTEGER: &str = "a number such as 4096, 4k, 16m, 1g or 0x1000";

/// An integer with fio's unit letters, or a sum in parentheses such as `(4*1k)`.
pub fn integer(text: &str, base: KbBase) -> Result<u64, Expected> {
    let text = text.trim();
    if text.starts_with('(') {
        return Sum { text, at: 0, base }.whole();
    }
    plain(text, base).ok_or_else(|| INTEGER.to_owned())
}

/// The same, also negative.
pub fn signed(text: &str, base: KbBase) -> Result<i64, Expected> {
    let text = text.trim();
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = integer(rest, base)?;
    i64::try_from(value).map(|v| sign * v).map_err(|_| INTEGER.to_owned())
}

fn plain(text: &str, base: KbBase) -> Option<u64> {
    let (number, unit) = if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        (u64::from_str_radix(&hex[..end], 16).ok()?, &hex[end..])
    } else {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        if let Some((whole, fraction)) = text[..end].split_once('.') {
            let (scale, unit) = (unit_scale(&text[end..], base)?, &text[end..]);
            if unit.is_empty() || fraction.is_empty() || fraction.contains('.') || fraction.len() > 12 {
                return None;
            }
            let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
            let part: u128 = fraction.parse().ok()?;
            let part = part * u128::from(scale) / 10u128.pow(fraction.len() as u32);
            return whole.checked_mul(scale)?.checked_add(u64::try_from(part).ok()?);
        }
        (text[..end].parse().ok()?, &text[end..])
    };
    number.checked_mul(unit_scale(unit, base)?)
}

fn unit_scale(unit: &str, base: KbBase) -> Option<u64> {
    let unit = unit.trim().to_ascii_lowercase();
    let mut chars = unit.chars();
    let power = match chars.next() {
        None => return Some(1),
        Some('b') if unit.len() == 1 => return Some(1),
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some('p') => 5,
        Some(_) => return None,
    };
    let has_i = match chars.as_str() {
        "" | "b" => false,
        "i" | "ib" => true,
        _ => return None,
    };
    let is_binary = (base == KbBase::Binary) != has_i;
    Some(if is_binary { 1024u64.pow(power) } else { 1000u64.pow(power) })
}

/// A time in nanoseconds. Without a unit the number counts `default_unit_ns`.
pub fn time_ns(text: &str, default_unit_ns: u64) -> Result<u64, Expected> {
    let expected = || "a time such as 10, 500us, 100ms, 30s, 5m, 1h or 1d".to_owned();
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" => default_unit_ns,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return Err(expected()),
    };
    let (whole, fraction) = text[..end].split_once('.').unwrap_or((&text[..end], ""));
    if whole.is_empty() || fraction.contains('.') || fraction.len() > 9 {
        return Err(expected());
    }
    let scaled = || {
        let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
        if fraction.is_empty() {
            return Some(whole);
        }
        let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit);
        whole.checked_add((part / 10u128.pow(fraction.len() as u32)) as u64)
    };
    // A century is more than any run; sums of such times stay far from the end of 64 bits.
    scaled().filter(|ns| *ns <= 3_155_760_000_000_000_000).ok_or_else(expected)
}

/// A boolean: nothing, `1` or `0`, as fio takes them.
pub fn flag(text: Option<&str>) -> Result<bool, Expected> {
    match text.map(str::trim) {
        None | Some("" | "1" | "true") => Ok(true),
        Some("0" | "false") => Ok(false),
        Some(_) => Err("1 or 0, or nothing, which is 1".to_owned()),
    }
}

/// A floating-point number that is finite.
pub fn real(text: &str) -> Result<f64, Expected> {
    text.trim()
        .parse::<f64>()
        .ok()
        .filter(|value| value.is_finite())
        .ok_or_else(|| "a number such as 1.2".to_owned())
}

/// `read,write,trim` as fio reads such lists: one value is for all, two give reads and the rest, an empty
/// place keeps what it was.
pub fn per_direction<T: Clone>(
    text: &str,
    into: &mut [T; 3],
    mut one: impl FnMut(&str) -> Result<T, Expected>,
) -> Result<(), Expected> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err("at most three values, for reads, writes and trims".to_owned());
    }
    for (i, part) in parts.iter().enumerate() {
        if part.is_empty() {
            continue;
        }
        let value = one(part)?;
        into[i] = value.clone();
        if i + 1 == parts.len() {
            for slot in &mut into[i + 1..] {
                *slot = value.clone();
            }
        }
    }
    Ok(())
}

/// Sums in parentheses: `+ - * / %` on integers with unit letters.
struct Sum<'a> {
    text: &'a str,
    at: usize,
    base: KbBase,
}

impl Sum<'_> {
    fn whole(mut self) -> Result<u64, Expected> {
        let value = self.atom(0)?;
        self.skip();
        if self.at == self.text.len() { Ok(value) } else { Err(Self::expected()) }
    }

    fn expected() -> Expected {
        format!("{INTEGER}, or a sum of such numbers in parentheses")
    }

    fn skip(&mut self) {
        self.at += self.text[self.at..].len() - self.text[self.at..].trim_start().len();
    }

    fn peek(&mut self) -> Option<char> {
        self.skip();
        self.text[self.at..].chars().next()
    }

    fn sum(&mut self, depth: u32) -> Result<u64, Expected> {
        let mut value = self.product(depth)?;
        while let Some(op @ ('+' | '-')) = self.peek() {
            self.at += 1;
            let right = self.product(depth)?;
            let result = if op == '+' { value.checked_add(right) } else { value.checked_sub(right) };
            value = result.ok_or_else(Self::expected)?;
        }
        Ok(value)
    }

    fn product(&mut self, depth: u32) -> Result<u64, Expected> {
        let mut value = self.atom(depth)?;
        while let Some(op @ ('*' | '/' | '%')) = self.peek() {
            self.at += 1;
            let right = self.atom(depth)?;
            let result = match op {
                '*' => value.checked_mul(right),
                '/' => value.checked_div(right),
                _ => value.checked_rem(right),
            };
            value = result.ok_or_else(Self::expected)?;
        }
        Ok(value)
    }

    fn atom(&mut self, depth: u32) -> Result<u64, Expected> {
        if self.peek() == Some('(') {
            // Nesting is bounded, since the text comes from outside.
            if depth > 32 {
                return Err(Self::expected());
            }
            self.at += 1;
            let value = self.sum(depth + 1)?;
            if self.peek() != Some(')') {
                return Err(Self::expected());
            }
            self.at += 1;
            return Ok(value);
        }
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
        let value = plain(&rest[..end], self.base).ok_or_else(Self::expected)?;
        self.at += end;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_binary_and_ib_decimal_unless_kb_base_is_1000() {
        for (text, binary, decimal) in [
            ("4k", 4096, 4000),
            ("4kB", 4096, 4000),
            ("4KiB", 4000, 4096),
            ("1G", 1 << 30, 1_000_000_000),
            ("2ti", 2_000_000_000_000, 2 << 40),
            ("512", 512, 512),
            ("512b", 512, 512),
            ("0x10", 16, 16),
            ("1.5m", 3 << 19, 1_500_000),
            ("(4*1k + 512)", 4608, 4512),
            ("((1k+1k)*2/4-24)", 1000, 976),
        ] {
            assert_eq!(integer(text, KbBase::Binary), Ok(binary), "{text}");
            assert_eq!(integer(text, KbBase::Decimal), Ok(decimal), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        for text in [
            "",
            "k",
            "4q",
            "-1",
            "1.5",
            "4kk",
            "(1",
            "(1/0)",
            "(1-2)",
            "(1)2",
            "99999999999999999999",
            "16384p",
        ] {
            assert!(integer(text, KbBase::Binary).is_err(), "{text}");
        }
        assert!(integer(&"(".repeat(10_000), KbBase::Binary).is_err());
    }

    #[test]
    fn times_have_the_unit_of_their_option() {
        assert_eq!(time_ns("10", 1_000_000_000), Ok(10_000_000_000));
        assert_eq!(time_ns("10", 1_000), Ok(10_000));
        assert_eq!(time_ns("2m", 1_000), Ok(120_000_000_000));
        assert_eq!(time_ns("1.5ms", 1), Ok(1_500_000));
        assert!(time_ns("10x", 1).is_err());
        assert!(time_ns("300000d", 1).is_err());
    }

    #[test]
    fn a_list_per_direction_fills_what_follows() {
        let read = |text: &str| {
            let mut into = [4096; 3];
            per_direction(text, &mut into, |t| integer(t, KbBase::Binary)).map(|()| into)
        };
        assert_eq!(read("8k"), Ok([8192; 3]));
        assert_eq!(read("4k,8k"), Ok([4096, 8192, 8192]));
        assert_eq!(read(",8k"), Ok([4096, 8192, 8192]));
        assert_eq!(read("8k,"), Ok([8192, 4096, 4096]));
        assert_eq!(read("1k,2k,3k"), Ok([1024, 2048, 3072]));
        assert!(read("1,2,3,4").is_err());
    }
}
