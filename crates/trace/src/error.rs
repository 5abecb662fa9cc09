//! Shorthands for [`TraceError`]: every message names the source and the place.

use nandscape_core::TraceError;

/// What a trace gives, or why not.
pub(crate) type Result<T, E = TraceError> = std::result::Result<T, E>;

/// A record is wrong. `place` is "line 17" or "offset 4096".
pub(crate) fn record(source: &str, place: String, message: impl Into<String>) -> TraceError {
    TraceError::Record { source_name: source.to_owned(), place, message: message.into() }
}

pub(crate) fn io(source: &str, message: impl Into<String>) -> TraceError {
    TraceError::Io { source_name: source.to_owned(), message: message.into() }
}

pub(crate) fn spec(spec: &str, message: impl std::fmt::Display) -> TraceError {
    TraceError::Spec { spec: spec.to_owned(), message: format!("{message}") }
}

/// Bytes of a trace as they can be shown in a message: at most 40, anything unprintable escaped.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 40;
    let text = bytes[..bytes.len().min(MOST)].escape_ascii().to_string();
    if bytes.len() > MOST { format!("'{text}...'") } else { format!("'{text}'") }
}
