//! Conditions on results, for scripts: `waf_bytes > 2`, `latency_ns.write.p99 >= 5ms`, `trust > 0`.

use crate::Run;
use crate::number::printable;
use nandscape_core::units::{parse_share, parse_size, parse_time_ns};
use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;

type Holds = fn(Ordering) -> bool;

/// How two numbers are compared. Longer signs come first, since shorter ones begin like them.
const SIGNS: [(&str, Holds); 6] = [
    (">=", Ordering::is_ge),
    ("<=", Ordering::is_le),
    ("==", Ordering::is_eq),
    ("!=", Ordering::is_ne),
    (">", Ordering::is_gt),
    ("<", Ordering::is_lt),
];

/// A key of the result document, a sign and a number.
#[derive(Clone, Debug)]
pub struct Condition {
    text: String,
    path: Vec<String>,
    holds: Holds,
    bound: f64,
}

/// The number at a dotted key of a document; `None` where there is none, or null.
pub fn number_at(document: &Value, key: &str) -> Option<f64> {
    value_at(document, key.split('.'))?.as_f64()
}

fn value_at<'a>(document: &'a Value, mut path: impl Iterator<Item = &'a str>) -> Option<&'a Value> {
    path.try_fold(document, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    })
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.text))
    }
}

impl Condition {
    /// `KEY SIGN NUMBER`: a dotted key of the result document (a list counts its entries), one of
    /// `> >= < <= == !=`, and a number, which may have a unit (`5ms`, `2GiB`) or be a share (`10%`).
    ///
    /// # Errors
    ///
    /// Says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!(
                "--fail-if '{}': expected {what}, as in 'waf_bytes > 2' or 'latency_ns.write.p99 > 5ms'",
                printable(text)
            )
        };
        let find = |(sign, holds)| text.find(sign).map(|at| (at, sign, holds));
        let (at, sign, holds) =
            SIGNS.into_iter().find_map(find).ok_or_else(|| wrong("one of > >= < <= == !="))?;
        let (key, value) = (text[..at].trim(), text[at + sign.len()..].trim());
        let is_key = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        };
        if !key.split('.').all(is_key) {
            return Err(wrong("a key of the result document before the sign"));
        }
        let number = value.parse().ok().filter(|number: &f64| number.is_finite());
        let number = number.or_else(|| parse_share(value).ok().filter(|_| value.ends_with('%')));
        let number = number.or_else(|| Some(parse_time_ns(value).ok()? as f64));
        let bound = number
            .or_else(|| Some(parse_size(value).ok()? as f64))
            .ok_or_else(|| wrong("a number behind the sign, if wanted with a unit"))?;
        let path = key.split('.').map(str::to_owned).collect();
        Ok(Self { text: text.trim().to_owned(), path, holds, bound })
    }

    /// Whether it holds for a run, and the value that decided it.
    ///
    /// # Errors
    ///
    /// The run has no such number: the key is unknown or null.
    pub fn holds(&self, run: &Run) -> Result<Option<f64>, String> {
        let document = serde_json::to_value(&run.result).expect("names and numbers are valid JSON");
        // A run in which no check found anything has no list of them.
        let empty = Value::Array(Vec::new());
        let found = value_at(&document, self.path.iter().map(String::as_str));
        let value = found.or_else(|| (self.path == ["trust"]).then_some(&empty));
        let number = match value {
            Some(Value::Array(items)) => Some(items.len() as f64),
            Some(Value::Bool(is)) => Some(f64::from(u8::from(*is))),
            Some(value) => value.as_f64(),
            None => None,
        };
        match number {
            Some(number) => Ok(number.partial_cmp(&self.bound).is_some_and(self.holds).then_some(number)),
            None => Err(format!(
                "--fail-if '{self}': {} has no number '{}'{}; --json shows what there is",
                printable(&run.label),
                self.path.join("."),
                if value.is_some_and(Value::is_null) { " (it is null)" } else { "" }
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::RunResult;

    fn run() -> Run {
        let mut result = RunResult::default();
        result.waf.bytes = Some(2.5);
        result.latency_ns.write.p99 = 5_000_000;
        result.cost.op_ratio = 0.28;
        Run { label: "page-map".to_owned(), result, series: None, jobs: None }
    }

    #[test]
    fn numbers_of_the_document_are_compared_in_their_units() {
        for (text, expected) in [
            ("waf_bytes > 2", Some(2.5)),
            ("waf_bytes>2.5", None),
            ("waf_bytes >= 2.5", Some(2.5)),
            ("waf_bytes<3", Some(2.5)),
            ("waf_bytes != 2.5", None),
            ("latency_ns.write.p99 > 4ms", Some(5e6)),
            ("latency_ns.write.p99 <= 5000us", Some(5e6)),
            ("cost.op_ratio > 7%", Some(0.28)),
            ("cost.usable_bytes < 1GiB", Some(0.0)),
            ("trust > 0", None),
            ("notes == 0", Some(0.0)),
            ("partial == 1", None),
        ] {
            assert_eq!(Condition::parse(text).unwrap().holds(&run()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_or_has_no_value_is_an_error() {
        for text in [
            "",
            "waf_bytes",
            "> 2",
            "waf_bytes > ",
            "waf_bytes > big",
            "waf bytes > 2",
            "a..b > 1",
            "waf > nan",
        ] {
            let error = Condition::parse(text).unwrap_err();
            assert!(error.contains("expected") && error.contains("--fail-if"), "{text}: {error}");
        }
        for (text, expected) in [("wafbytes > 2", "no number 'wafbytes'"), ("waf > 2", "it is null")] {
            let error = Condition::parse(text).unwrap().holds(&run()).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
