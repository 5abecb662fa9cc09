//! A block device with files on it as XFS puts them there.

use super::StackKind;
use nandscape_core::Info;

pub(crate) const KIND: StackKind = StackKind {
    info: Info {
        name: "xfs",
        summary: "a block device, on which files of recordings lie as in XFS: allocation groups, nothing is discarded",
        source: "Linux XFS; [ATC21 5.3]",
        params: &[],
    },
    layer: None,
    preset: "",
};
