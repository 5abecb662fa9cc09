//! Numbers as people read them. Whatever is printed carries its unit, in the cell or in the head of its column.

/// What a figure measures, which decides its unit and its digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A quotient, printed with three decimals.
    Ratio,
    /// A number of things, printed in full.
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

/// The unit of a column: its name, and the value of 1 unit.
pub type Unit = (&'static str, f64);

const BYTES: &[Unit] =
    &[("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0), ("TiB", 1_099_511_627_776.0)];
const NANOS: &[Unit] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

impl Kind {
    /// The unit for a column whose values reach from `min` to `max`: the largest in which the smallest value that is not 0 is
    /// at least 1, unless that makes the largest value longer than six digits.
    pub fn unit(self, values: impl Iterator<Item = f64>) -> Unit {
        let (mut min, mut max) = (f64::INFINITY, 0.0f64);
        for value in values.filter(|v| *v > 0.0) {
            min = min.min(value);
            max = max.max(value);
        }
        let choices = match self {
            Self::Ratio | Self::Real | Self::Count => return ("", 1.0),
            Self::Rate => return ("MB/s", 1e6),
            Self::Bytes => BYTES,
            Self::Nanos => NANOS,
        };
        // Without any value the second unit (KiB, us) is as good as another.
        if max <= 0.0 {
            return choices[1];
        }
        let fits = |unit: &&Unit| min >= unit.1 || max >= 1e6 * unit.1;
        choices.iter().rev().find(fits).copied().unwrap_or(choices[0])
    }

    /// The value in that unit, without the unit's name.
    pub fn show(self, value: f64, unit: Unit) -> String {
        match self {
            Self::Ratio => format!("{value:.3}"),
            Self::Count => format!("{value:.0}"),
            Self::Real => format!("{value:.2}"),
            Self::Rate => format!("{:.1}", value / unit.1),
            Self::Bytes | Self::Nanos => four_digits(value / unit.1),
        }
    }

    /// The value with its own best unit.
    pub fn show_alone(self, value: f64) -> String {
        let unit = self.unit(std::iter::once(value));
        let text = match self {
            Self::Count => grouped(value as u64),
            _ => self.show(value, unit),
        };
        if unit.0.is_empty() { text } else { format!("{text} {}", unit.0) }
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

/// Text from outside, made safe for a terminal and for one line: control characters (colour codes, line ends, bidirectional
/// overrides) are written as `\u{..}`.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
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
        assert_eq!(Kind::Bytes.unit([131_072.0, 4736.0].into_iter()).0, "KiB");
        assert_eq!(Kind::Nanos.unit([116_000.0, 3_712_000.0].into_iter()).0, "us");
        assert_eq!(Kind::Nanos.unit([50.0, 9e9].into_iter()).0, "ms");
        assert_eq!(Kind::Bytes.unit([0.0].into_iter()).0, "KiB");
        assert_eq!(Kind::Bytes.show(4736.0, ("KiB", 1024.0)), "4.625");
        assert_eq!(Kind::Nanos.show_alone(1_250_000.0), "1.25 ms");
        assert_eq!(Kind::Count.show_alone(1_234_567.0), "1,234,567");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\nc\u{202e}"), "a\\u{1b}[31mb\\u{a}c\\u{202e}");
        assert_eq!(printable("größe 4 KiB"), "größe 4 KiB");
    }
}
