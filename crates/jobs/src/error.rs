//! What can be wrong with a job file. Every message names the file, the line, the option and what was
//! expected.

use std::fmt;

/// A line of a job file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named.
    pub file: String,
    /// From 1; 0 stands for the whole file.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 { f.write_str(&self.file) } else { write!(f, "{}:{}", self.file, self.line) }
    }
}

/// A job file that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct JobError {
    /// The line, or the file.
    pub place: Place,
    /// What is wrong there, and what was expected.
    pub message: String,
}

impl JobError {
    /// Something that is not what it should be.
    pub(crate) fn syntax(place: Place, text: &str, expected: &str) -> Self {
        Self { place, message: format!("'{text}': expected {expected}") }
    }
}
