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
#[non_exhaustive]
pub enum JobError {
    /// The file cannot be read.
    #[error("{place}: cannot read {what}: {message}")]
    Io {
        /// The file, or the line that includes it.
        place: Place,
        /// Which file.
        what: String,
        /// What the operating system said.
        message: String,
    },
    /// A line that is neither a section nor an option.
    #[error("{place}: '{text}': expected {expected}")]
    Syntax {
        /// Where.
        place: Place,
        /// What is there.
        text: String,
        /// What should be.
        expected: String,
    },
    /// fio does not know the option either.
    #[error("{place}: unknown option '{key}'{hint}")]
    UnknownOption {
        /// Where.
        place: Place,
        /// The option.
        key: String,
        /// A similar name, as a half sentence.
        hint: String,
    },
    /// fio knows the option, and what it asks for cannot be done here.
    #[error("{place}: {key}={value} is not supported: {reason}")]
    Refused {
        /// Where.
        place: Place,
        /// The option.
        key: String,
        /// Its value.
        value: String,
        /// Why.
        reason: String,
    },
    /// The value cannot be read.
    #[error("{place}: {key}={value}: expected {expected}")]
    BadValue {
        /// Where.
        place: Place,
        /// The option.
        key: String,
        /// Its value.
        value: String,
        /// What would do.
        expected: String,
    },
    /// Options that are each fine and do not go together.
    #[error("{place}: job '{job}': {message}")]
    Conflict {
        /// The section.
        place: Place,
        /// The job.
        job: String,
        /// What does not go together.
        message: String,
    },
}
