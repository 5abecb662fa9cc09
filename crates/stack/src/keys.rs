//! What every table of the configuration is described and checked with, and how a wrong one is reported.

use nandscape_core::registry::ParamKind;
use nandscape_core::{GeometryError, ParamError, Params};
use nandscape_sim::precondition::PreconditionError;
use std::collections::BTreeMap;

/// A configuration that is wrong. The message names file, key, value and what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ConfigError {
    #[error("{path}: {message}")]
    Io { path: String, message: String },
    #[error("{path}: {message}")]
    Syntax { path: String, message: String },
    #[error("{key}: {message}")]
    Shape {
        key: String,
        /// What is wrong and what was expected.
        message: String,
    },
    #[error(transparent)]
    Param(#[from] ParamError),
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    #[error(transparent)]
    Precondition(#[from] PreconditionError),
    #[error("{0}")]
    Unsuited(String),
    #[error(
        "device: {pages} pages in {blocks} blocks take about {needed} of memory: expected at most the {available} that is available"
    )]
    Memory {
        pages: u64,
        blocks: u64,
        /// Memory that the run takes at least, for people.
        needed: String,
        available: String,
    },
    #[error("{0}")]
    Build(String),
    /// The configuration is right; what the flash holds, or does, is not.
    #[error("{stack}: {message}")]
    Start {
        stack: &'static str,
        /// What was found or failed.
        message: String,
    },
}

/// What a configuration gives, or why not.
pub type Result<T, E = ConfigError> = std::result::Result<T, E>;

pub(crate) fn shape(key: impl Into<String>, message: impl Into<String>) -> ConfigError {
    ConfigError::Shape { key: key.into(), message: message.into() }
}

/// Takes a table out of another, an empty one if it is not there. `dotted` names it in errors.
pub(crate) fn take_table(table: &mut toml::Table, key: &str, dotted: &str) -> Result<toml::Table> {
    match table.remove(key) {
        None => Ok(toml::Table::new()),
        Some(toml::Value::Table(inner)) => Ok(inner),
        Some(_) => Err(shape(dotted, "expected a table")),
    }
}

/// The text of a scalar, as a person would type it. `key` names it in errors.
///
/// # Errors
///
/// Tables and dates.
pub fn text_of(key: &str, value: &toml::Value) -> Result<String> {
    Ok(match value {
        toml::Value::String(s) => s.clone(),
        toml::Value::Integer(i) => i.to_string(),
        toml::Value::Float(f) => f.to_string(),
        toml::Value::Boolean(b) => b.to_string(),
        toml::Value::Array(items) => {
            items.iter().map(|v| text_of(key, v)).collect::<Result<Vec<_>, _>>()?.join(",")
        }
        toml::Value::Table(_) | toml::Value::Datetime(_) => {
            return Err(shape(key, "expected a string, number, boolean or list"));
        }
    })
}

/// The scalars of a table as text. `prefix` goes before their names in errors.
pub(crate) fn flat(prefix: &str, table: &toml::Table) -> Result<BTreeMap<String, String>> {
    table.iter().map(|(k, v)| Ok((k.clone(), text_of(&format!("{prefix}{k}"), v)?))).collect()
}

/// Checked parameters as a table that can be read back.
pub(crate) fn table_of(params: &Params) -> toml::Table {
    let typed = |kind, text: &str| match kind {
        ParamKind::Int { .. } => text.parse::<i64>().map_or_else(|_| text.into(), toml::Value::Integer),
        ParamKind::Float { .. } => text.parse::<f64>().map_or_else(|_| text.into(), toml::Value::Float),
        ParamKind::Bool => toml::Value::Boolean(text == "true"),
        _ => text.into(),
    };
    params.in_order().map(|(param, text)| (param.name.to_owned(), typed(param.kind, text))).collect()
}
