//! Registries: what a variant is called, and what it takes.
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

impl Info {
    /// Whether it takes a parameter of that name.
    pub fn has(&self, name: &str) -> bool {
        self.params.iter().any(|param| param.name == name)
    }

    /// The names of its parameters, separated by commas.
    pub fn known(&self) -> String {
        self.params.iter().map(|param| param.name).collect::<Vec<_>>().join(", ")
    }

    /// Removes its parameters from `typed` and returns them.
    pub fn take(&self, typed: &mut BTreeMap<String, String>) -> BTreeMap<String, String> {
        let (own, others) = std::mem::take(typed).into_iter().partition(|(key, _)| self.has(key));
        *typed = others;
        own
    }
}

/// One parameter of a variant, declared as a [`Key`](crate::Key).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Param {
    /// Key, without the table's prefix.
    pub name: &'static str,
    /// One line, with the unit.
    pub summary: &'static str,
    /// Type and range.
    pub kind: ParamKind,
    /// Default as it would be typed; empty if there is none and the parameter may be absent.
    pub default: &'static str,
    /// Hash of the name and the value's type; [`Params`](crate::Params) finds values by it.
    #[serde(skip)]
    pub id: u64,
}

/// Type and range of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ParamKind {
    /// A whole number.
    Int {
        /// Smallest, in bytes.
        min: u64,
        /// Largest, in bytes.
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
#[expect(missing_docs, reason = "the messages say it")]
pub enum ParamError {
    #[error("unknown key '{key}' for {owner}; known keys: {known}{}", suggestion(key.rsplit('.').next().unwrap_or(key), known))]
    UnknownKey { key: String, owner: String, known: String },
    #[error("{key} = '{value}': expected {expected}")]
    BadValue { key: String, value: String, expected: String },
    #[error("unknown {what} '{name}'; known: {known}{}", suggestion(name, known))]
    UnknownName { what: &'static str, name: String, known: String },
}

impl ParamError {
    /// The error for a wrong value.
    pub fn bad(key: impl Into<String>, value: impl fmt::Display, expected: impl Into<String>) -> Self {
        Self::BadValue { key: key.into(), value: value.to_string(), expected: expected.into() }
    }
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

/// Finds an entry by name; `what` names the registry in the error.
///
/// # Errors
///
/// No entry has that name; the message lists the known names.
pub fn find<'a, E>(
    what: &'static str,
    name: &str,
    entries: &'a [E],
    info: fn(&E) -> &Info,
) -> Result<&'a E, ParamError> {
    let found = entries.iter().find(|entry| info(entry).name == name);
    found.ok_or_else(|| unknown_name(what, name, entries.iter().map(info)))
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
    }
}
