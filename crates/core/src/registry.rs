//! Registries: what a variant is called, what it takes, and how typed parameters are checked.
//!
//! A registry is a plain list of entries; CLI help, `list`, documentation tables and conformance tests read
//! it. The build function lives beside the [`Info`] in each registry's own entry type, since what is built
//! differs.

use crate::units;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What a registry says about one variant.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Info {
    /// The name that is typed.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Paper and section, or row id.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
}

/// One parameter of a variant.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Param {
    /// Key, without the table's prefix.
    pub name: &'static str,
    /// One line, with the unit.
    pub summary: &'static str,
    /// Type and range.
    pub kind: ParamKind,
    /// Default as it would be typed; empty if there is none and the parameter may be absent.
    pub default: &'static str,
}

/// Parameters by type; [`Param::means`] adds their line.
impl Param {
    const fn of(name: &'static str, kind: ParamKind, default: &'static str) -> Self {
        Self { name, summary: "", kind, default }
    }

    /// A whole number.
    pub const fn int(name: &'static str, min: u64, max: u64, default: &'static str) -> Self {
        Self::of(name, ParamKind::Int { min, max }, default)
    }

    /// A number.
    pub const fn float(name: &'static str, min: f64, max: f64, default: &'static str) -> Self {
        Self::of(name, ParamKind::Float { min, max }, default)
    }

    /// A share.
    pub const fn share(name: &'static str, default: &'static str) -> Self {
        Self::of(name, ParamKind::Share, default)
    }

    /// `true` or `false`.
    pub const fn flag(name: &'static str, default: &'static str) -> Self {
        Self::of(name, ParamKind::Bool, default)
    }

    /// A size from `min` to `max` bytes.
    pub const fn size(name: &'static str, min: u64, max: u64, default: &'static str) -> Self {
        Self::of(name, ParamKind::Size { min, max }, default)
    }

    /// A count.
    pub const fn count(name: &'static str, default: &'static str) -> Self {
        Self::of(name, ParamKind::Count, default)
    }

    /// A time.
    pub const fn time(name: &'static str, default: &'static str) -> Self {
        Self::of(name, ParamKind::Time, default)
    }

    /// One of these words.
    pub const fn choice(name: &'static str, of: &'static [&'static str], default: &'static str) -> Self {
        Self::of(name, ParamKind::Choice { of }, default)
    }

    /// Text that its reader checks.
    pub const fn text(name: &'static str, default: &'static str) -> Self {
        Self::of(name, ParamKind::Text, default)
    }

    /// The same with its line, which has the unit.
    #[must_use]
    pub const fn means(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }
}

/// Type and range of a parameter.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ParamKind {
    /// A whole number.
    Int {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A number.
    Float {
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
    },
    /// `80%` or a number from 0 to 1.
    Share,
    /// `true` or `false`.
    Bool,
    /// A size as in [`units::parse_size`].
    Size {
        /// Smallest, in bytes.
        min: u64,
        /// Largest, in bytes.
        max: u64,
    },
    /// A count as in [`units::parse_count`].
    Count,
    /// A time as in [`units::parse_time_ns`].
    Time,
    /// One of a list.
    Choice {
        /// The list.
        of: &'static [&'static str],
    },
    /// Anything; checked by the one who reads it.
    Text,
}

impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::Float { min, max } => write!(f, "a number from {min} to {max}"),
            Self::Share => f.write_str("a percentage or a number from 0 to 1"),
            Self::Bool => f.write_str("true or false"),
            Self::Size { min, max } => {
                write!(f, "a size from {} to {}", units::format_bytes(*min), units::format_bytes(*max))
            }
            Self::Count => f.write_str("a count such as 1000 or 10M"),
            Self::Time => f.write_str("a time such as 50us"),
            Self::Choice { of } => write!(f, "one of {}", of.join(", ")),
            Self::Text => f.write_str("text"),
        }
    }
}

/// A parameter that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// No such key.
    #[error("unknown key '{key}' for {owner}; known keys: {known}{}", suggestion(key.rsplit('.').next().unwrap_or(key), known))]
    UnknownKey {
        /// What was typed.
        key: String,
        /// Whose parameters.
        owner: String,
        /// The names there are.
        known: String,
    },
    /// Not such a value.
    #[error("{key} = '{value}': expected {expected}")]
    BadValue {
        /// The key, with its table's prefix.
        key: String,
        /// What was typed.
        value: String,
        /// What would do.
        expected: String,
    },
    /// No such variant.
    #[error("unknown {what} '{name}'; known: {known}{}", suggestion(name, known))]
    UnknownName {
        /// Which registry.
        what: &'static str,
        /// What was typed.
        name: String,
        /// The names there are.
        known: String,
    },
}

/// `; did you mean 'x'?`, where one of the names (separated by commas) is near to what was typed.
pub fn suggestion(typed: &str, known: &str) -> String {
    let near = nearest(typed, known.split(", ")).map(|name| format!("; did you mean '{name}'?"));
    near.unwrap_or_default()
}

/// The name that is nearest to what was typed: at most a third of its letters are wrong, missing, too many or
/// swapped with their neighbour, or it only goes on, as `evict` for `eviction`.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    // Nothing known is as long as what is cut.
    let typed = plain(&typed.chars().take(64).collect::<String>());
    let distances = names.into_iter().map(|name| {
        let full = plain(name);
        let is_begun = typed.len() >= 3 && full.starts_with(&typed);
        (if is_begun { 1 } else { strsim::osa_distance(&typed, &full) }, name)
    });
    let most = typed.chars().count().div_ceil(3).min(3);
    distances
        .filter(|(distance, name)| *distance <= most && *distance < name.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// A checked set of parameters: every key is known, every value in range, defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    prefix: String,
    values: BTreeMap<&'static str, String>,
}

impl Params {
    /// Checks what was typed (`key -> text`) against the parameters of a variant. `prefix` is the table the
    /// keys stand in (`"ftl."`), for error messages.
    pub fn check(info: &Info, prefix: &str, typed: &BTreeMap<String, String>) -> Result<Self, ParamError> {
        if let Some(key) = typed.keys().find(|key| !info.params.iter().any(|p| p.name == key.as_str())) {
            return Err(ParamError::UnknownKey {
                key: format!("{prefix}{key}"),
                owner: info.name.to_owned(),
                known: info.params.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
            });
        }
        let mut values = BTreeMap::new();
        for param in info.params {
            let text = typed.get(param.name).map_or(param.default, String::as_str);
            if text.is_empty() && !typed.contains_key(param.name) {
                continue;
            }
            if !is_valid(param.kind, text) {
                return Err(ParamError::BadValue {
                    key: format!("{prefix}{}", param.name),
                    value: text.to_owned(),
                    expected: param.kind.to_string(),
                });
            }
            values.insert(param.name, text.to_owned());
        }
        Ok(Self { prefix: prefix.to_owned(), values })
    }

    /// The defaults of a variant.
    pub fn defaults(info: &Info) -> Self {
        Self::check(info, "", &BTreeMap::new()).expect("a registry's defaults are valid")
    }

    /// Key and text of every parameter that has a value, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// An error about one of these parameters, for checks that need more than the range.
    pub fn error(&self, name: &str, expected: impl Into<String>) -> ParamError {
        ParamError::BadValue {
            key: format!("{}{name}", self.prefix),
            value: self.values.get(name).cloned().unwrap_or_default(),
            expected: expected.into(),
        }
    }

    /// The text of a parameter, if it has a value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    fn required(&self, name: &str) -> &str {
        self.get(name).unwrap_or_else(|| panic!("parameter '{name}' has no value and no default"))
    }

    /// A whole number.
    pub fn int(&self, name: &str) -> u64 {
        self.required(name).parse().expect("checked")
    }

    /// A whole number that fits 32 bits (its range must say so).
    pub fn int32(&self, name: &str) -> u32 {
        u32::try_from(self.int(name)).expect("the parameter's range fits 32 bits")
    }

    /// A number.
    pub fn float(&self, name: &str) -> f64 {
        self.required(name).parse().expect("checked")
    }

    /// A share from 0 to 1.
    pub fn share(&self, name: &str) -> f64 {
        units::parse_share(self.required(name)).expect("checked")
    }

    /// `true` or `false`.
    pub fn flag(&self, name: &str) -> bool {
        self.required(name) == "true"
    }

    /// Bytes.
    pub fn size(&self, name: &str) -> u64 {
        units::parse_size(self.required(name)).expect("checked")
    }

    /// A count.
    pub fn count(&self, name: &str) -> u64 {
        units::parse_count(self.required(name)).expect("checked")
    }

    /// Nanoseconds.
    pub fn time_ns(&self, name: &str) -> u64 {
        units::parse_time_ns(self.required(name)).expect("checked")
    }

    /// Text, or the chosen name.
    pub fn text(&self, name: &str) -> &str {
        self.required(name)
    }
}

fn is_valid(kind: ParamKind, text: &str) -> bool {
    match kind {
        ParamKind::Int { min, max } => text.parse::<u64>().is_ok_and(|v| (min..=max).contains(&v)),
        ParamKind::Float { min, max } => text.parse::<f64>().is_ok_and(|v| (min..=max).contains(&v)),
        ParamKind::Share => units::parse_share(text).is_ok(),
        ParamKind::Bool => matches!(text, "true" | "false"),
        ParamKind::Size { min, max } => units::parse_size(text).is_ok_and(|v| (min..=max).contains(&v)),
        ParamKind::Count => units::parse_count(text).is_ok(),
        ParamKind::Time => units::parse_time_ns(text).is_ok(),
        ParamKind::Choice { of } => of.contains(&text),
        ParamKind::Text => true,
    }
}

/// An unknown name of a registry, with the names there are.
pub fn unknown_name<'a>(
    what: &'static str,
    name: &str,
    infos: impl IntoIterator<Item = &'a Info>,
) -> ParamError {
    ParamError::UnknownName {
        what,
        name: name.to_owned(),
        known: infos.into_iter().map(|info| info.name).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nearly_a_name_is_suggested_and_what_is_none_is_not() {
        let names = ["mode", "eviction", "admission", "cleaning", "lru", "s3-fifo"];
        for (typed, expected) in [
            ("mdoe", Some("mode")),
            ("Mode", Some("mode")),
            ("evict", Some("eviction")),
            ("cleanning", Some("cleaning")),
            ("s3_fifo", Some("s3-fifo")),
            ("lur", Some("lru")),
            ("x", None),
            ("", None),
            ("quota", None),
            ("ä", None),
        ] {
            assert_eq!(nearest(typed, names), expected, "{typed}");
        }
        let typed = BTreeMap::from([("opp".to_owned(), "1".to_owned())]);
        let error = Params::check(&INFO, "ftl.", &typed).unwrap_err().to_string();
        assert!(error.contains("unknown key 'ftl.opp' for sample; known keys: op"), "{error}");
        assert!(error.ends_with("; did you mean 'op'?"), "{error}");
    }

    const INFO: Info = Info {
        name: "sample",
        summary: "",
        source: "",
        params: &[
            Param {
                name: "op",
                summary: "",
                kind: ParamKind::Float { min: 0.0, max: 10.0 },
                default: "0.28",
            },
            Param { name: "kind", summary: "", kind: ParamKind::Choice { of: &["a", "b"] }, default: "a" },
            Param { name: "limit", summary: "", kind: ParamKind::Size { min: 1, max: 1 << 40 }, default: "" },
        ],
    };

    fn typed(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn defaults_fill_in_and_absent_stays_absent() {
        let params = Params::defaults(&INFO);
        assert!((params.float("op") - 0.28).abs() < 1e-12);
        assert_eq!(params.get("limit"), None);
    }

    #[test]
    fn errors_name_key_value_and_expectation() {
        let err = Params::check(&INFO, "ftl.", &typed(&[("op", "-1")])).unwrap_err().to_string();
        assert_eq!(err, "ftl.op = '-1': expected a number from 0 to 10");
        let err = Params::check(&INFO, "ftl.", &typed(&[("opp", "1")])).unwrap_err().to_string();
        assert!(err.contains("ftl.opp") && err.contains("op, kind, limit"), "{err}");
        assert!(Params::check(&INFO, "ftl.", &typed(&[("op", "nan")])).is_err());
        assert!(Params::check(&INFO, "ftl.", &typed(&[("kind", "c")])).is_err());
    }
}
