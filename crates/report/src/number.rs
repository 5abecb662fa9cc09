//! Numbers as people read them. Whatever is printed carries its unit, in the cell or in the head of its
//! column.

/// What a figure measures, which decides its unit and its digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A quotient, printed with three decimals.
    Ratio,
    /// A number of things, printed in full, in groups of three digits.
    Count,
    /// Bytes; the column's unit is binary.
    Bytes,
    /// Nanoseconds; the column's unit fits its values.
    Nanos,
    /// Bytes per second, printed in MB/s of 1e6 bytes.
    Rate,
    /// A statistic of counts, printed with two decimals.
    Real,
}

/// The unit of a column and how its values are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Name, empty where the kind says enough.
    pub name: &'static str,
    /// Value of 1 unit.
    pub scale: f64,
    /// Digits after the point, the same in the whole column.
    pub decimals: usize,
    /// Whole numbers in groups of three digits.
    pub is_count: bool,
}

const BYTES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];
const NANOS: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

impl Unit {
    /// The value in this unit, without the unit's name.
    pub fn show(self, value: f64) -> String {
        if self.is_count {
            return grouped(value.round() as u64);
        }
        format!("{:.*}", self.decimals, value / self.scale)
    }
}

impl Kind {
    /// The unit for a column with these values: the largest in which the smallest value that is not 0 is at
    /// least 1, unless that makes the largest value longer than six digits. The smallest value keeps
    /// three digits.
    pub fn unit(self, values: impl Iterator<Item = f64>) -> Unit {
        let values: Vec<f64> = values.filter(|v| *v > 0.0).collect();
        let of = |name, scale, decimals| Unit { name, scale, decimals, is_count: self == Self::Count };
        let choices = match self {
            Self::Ratio => return of("", 1.0, 3),
            Self::Real => return of("", 1.0, 2),
            Self::Count => return of("", 1.0, 0),
            Self::Rate => return of("MB/s", 1e6, 1),
            Self::Bytes => BYTES,
            Self::Nanos => NANOS,
        };
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(0.0, f64::max);
        let smallest_fit = choices.iter().rposition(|unit| min >= unit.1).unwrap_or(0);
        let (name, scale) = if values.is_empty() {
            // KiB and us are as good as others.
            choices[1]
        } else {
            let rest = &choices[smallest_fit..];
            rest.iter().find(|unit| max < 1e6 * unit.1).copied().unwrap_or(choices[choices.len() - 1])
        };
        let is_whole = values.iter().all(|v| (v / scale).fract() == 0.0);
        let decimals = match min / scale {
            _ if is_whole => 0,
            v if v < 10.0 => 2,
            v if v < 100.0 => 1,
            _ => 0,
        };
        of(name, scale, decimals)
    }

    /// The value with its own best unit.
    pub fn show_alone(self, value: f64) -> String {
        let unit = self.unit(std::iter::once(value));
        let text = unit.show(value);
        if unit.name.is_empty() { text } else { format!("{text} {}", unit.name) }
    }
}

/// A number with as many decimals as leave about four digits: `4.625`, `128`, `43.21`.
pub fn four_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A value as `show` writes it, `-` where there is none.
pub fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// A quotient with three decimals.
pub fn ratio(value: Option<f64>) -> String {
    or_dash(value, |value| format!("{value:.3}"))
}

/// A count in groups of three, separated by `,`: `1,234,567`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Text from outside, made safe for a terminal and for one line: control characters (colour codes, line ends,
/// bidirectional overrides) are written as `\u{..}`.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_takes_the_largest_unit_in_which_every_value_shows() {
        let unit = Kind::Bytes.unit([131_072.0, 4736.0].into_iter());
        assert_eq!((unit.name, unit.decimals), ("KiB", 2));
        assert_eq!(unit.show(4736.0), "4.62");
        assert_eq!(Kind::Nanos.unit([116_000.0, 3_712_000.0].into_iter()).name, "us");
        assert_eq!(Kind::Nanos.unit([50.0, 9e9].into_iter()).name, "ms");
        assert_eq!(Kind::Bytes.unit([0.0].into_iter()).name, "KiB");
        assert_eq!(Kind::Bytes.unit([4096.0, 131_072.0].into_iter()).decimals, 0);
        assert_eq!(Kind::Nanos.show_alone(1_250_000.0), "1.25 ms");
        assert_eq!(Kind::Count.show_alone(1_234_567.0), "1,234,567");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\nc\u{202e}"), "a\\u{1b}[31mb\\u{a}c\\u{202e}");
        assert_eq!(printable("größe 4 KiB"), "größe 4 KiB");
    }
}
