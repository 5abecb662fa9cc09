//! What a reader must not take from a result.

use serde::{Deserialize, Serialize};

/// A reason to doubt a part of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustNote {
    /// Name of the check, of [`crate::trust::CHECKS`].
    pub check: String,
    /// What was found, what it means for the figures, and what would help.
    pub message: String,
}
