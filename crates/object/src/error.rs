//! Why an object store cannot be built.

use nandscape_core::{NamespaceError, ParamError, Ppn};

/// Why an object store cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ObjectStoreError {
    #[error(transparent)]
    Param(#[from] ParamError),
    /// The device cannot hold a store.
    #[error("oftl does not fit this device: {reason}")]
    Device { reason: String },
    /// What is on the device is not a store, or is damaged.
    #[error("no object store can be opened: {reason}")]
    Damaged { reason: String },
    /// A page of the index or of the root cannot be read.
    #[error("no object store can be opened: page {} of the {what} cannot be read", page.0)]
    Unreadable { page: Ppn, what: &'static str },
    #[error(transparent)]
    Start(#[from] NamespaceError),
}
