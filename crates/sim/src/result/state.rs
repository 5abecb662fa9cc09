//! Where the state before the counted part comes from.

use serde::{Deserialize, Serialize};

/// A state that was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSource {
    /// The file, as it was given.
    pub file: String,
    /// The preconditioning that brought it about.
    pub precondition: String,
}
